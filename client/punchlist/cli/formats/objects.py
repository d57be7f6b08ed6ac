"""The JSON formats: TodoWrite lists, Claude-style task folders (one object for each task), and our own export."""

from collections.abc import Sequence
from typing import Any

from punchlist.cli.failure import FormatError
from punchlist.cli.formats.document import Document, Plan, as_list, as_object, checked, load_json
from punchlist_schemas.params import NewTask

EXPORT_VERSION = 1
_TODO_PRIORITIES = {"high": "high", "medium": "normal", "low": "low", "": "normal"}
_TODO_STATUSES = ("pending", "in_progress", "completed")
_FOLDER_STATUSES = (*_TODO_STATUSES, "deleted")
_OWN_MEMBERS = tuple(name for name in NewTask.__struct_fields__ if name != "ref")


def parse_todos(document: Document) -> Plan:
    """The tasks of a TodoWrite call: `{"todos": [{"content", "status", "activeForm"}]}` or the bare list.

    Raises:
        FormatError: Not JSON, or an item is not such an object.
    """
    value = load_json(document)
    todos = as_list(value["todos"] if isinstance(value, dict) and "todos" in value else value, "todos", document.name)
    plan: Plan = []
    for index, item in enumerate(todos):
        where = f"todos[{index}]"
        todo = as_object(item, where, document.name)
        status = _one_of(todo.get("status", "pending"), _TODO_STATUSES, f"{where}.status", document.name)
        priority = _one_of(todo.get("priority", ""), tuple(_TODO_PRIORITIES), f"{where}.priority", document.name)
        task = {
            "title": _text(todo, "content", where, document.name),
            "status": status,
            "active_form": _text(todo, "activeForm", where, document.name),
            "priority": _TODO_PRIORITIES[priority],
        }
        plan.append(checked(task, document.name, where=where))
    return _not_empty(plan, document.name)


def parse_folder(documents: Sequence[Document]) -> Plan:
    """The tasks of a folder with one JSON object for each: id, subject, description, activeForm, status, owner, edges.

    `blocks` and `blockedBy` of both ends are merged; an edge to a task that is not there (any more) never blocked
    anything and is left out. Deleted tasks are left out. The order is that of the ids.

    Raises:
        FormatError: A file is not such an object, or an id comes twice.
    """
    records: dict[str, tuple[Document, dict[str, Any]]] = {}
    for document in documents:
        record = as_object(load_json(document), "the file", document.name)
        number = record.get("id")
        ident = str(number) if isinstance(number, (str, int)) and str(number) else ""
        if not ident:
            raise FormatError("id: expected the task's number", document.name)
        if ident in records:
            raise FormatError(f"id {ident} is already used by {records[ident][0].name}", document.name)
        status = _one_of(record.get("status", "pending"), _FOLDER_STATUSES, "status", document.name)
        if status != "deleted":
            records[ident] = (document, record)
    ordered = sorted(records, key=lambda ident: (0, int(ident), "") if ident.isdecimal() else (1, 0, ident))
    edges = _edges(records, ordered)
    return [_folder_task(*records[ident], ident, edges[ident]) for ident in ordered]


def parse_export(document: Document) -> Plan:
    """The tasks of our own export, or of `punch list --json`: an object with `tasks`.

    Raises:
        FormatError: Not such an object, of a newer version, or with edges to tasks that are not in it.
    """
    value = as_object(load_json(document), "the file", document.name)
    version = value.get("format_version", EXPORT_VERSION)
    if version != EXPORT_VERSION:
        raise FormatError(f"format_version {version} is not known to this version of punchlist", document.name)
    tasks = [as_object(item, f"tasks[{i}]", document.name) for i, item in enumerate(_tasks(value, document.name))]
    plan: Plan = []
    for index, task in enumerate(tasks):
        members = {name: task[name] for name in _OWN_MEMBERS if name in task}
        plan.append(checked({**members, "ref": task.get("id")}, document.name, where=f"tasks[{index}]"))
    refs = {task.get("ref") for task in plan}
    for index, task in enumerate(plan):
        for other in (*task.get("blocked_by", ()), *filter(None, [task.get("parent")])):
            if other not in refs:
                raise FormatError(f"tasks[{index}]: task {other} is not in this file", document.name)
    return plan


def export(conversation: dict[str, Any], tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A conversation's list as the value that `parse_export` reads."""
    head = {name: conversation[name] for name in ("conversation", "title", "version") if conversation.get(name)}
    return {"format": "punchlist", "format_version": EXPORT_VERSION, **head, "tasks": list(tasks)}


def _tasks(value: dict[str, Any], name: str) -> list[Any]:
    return as_list(value.get("tasks"), "tasks", name)


def _edges(records: dict[str, tuple[Document, dict[str, Any]]], ordered: list[str]) -> dict[str, list[str]]:
    edges: dict[str, list[str]] = {ident: [] for ident in ordered}
    for ident in ordered:
        document, record = records[ident]
        pairs = [(ident, str(one)) for one in as_list(record.get("blockedBy") or [], "blockedBy", document.name)]
        pairs += [(str(one), ident) for one in as_list(record.get("blocks") or [], "blocks", document.name)]
        for task, blocker in pairs:
            if task in edges and blocker in edges and blocker not in edges[task]:
                edges[task].append(blocker)
    return edges


def _folder_task(document: Document, record: dict[str, Any], ident: str, blockers: list[str]) -> dict[str, Any]:
    task: dict[str, Any] = {
        "ref": ident,
        "title": _text(record, "subject", "", document.name),
        "description": _text(record, "description", "", document.name),
        "active_form": _text(record, "activeForm", "", document.name),
        "owner": _text(record, "owner", "", document.name),
        "status": record.get("status", "pending"),
        "metadata": record.get("metadata"),
        "blocked_by": blockers,
    }
    return checked(task, document.name)


def _text(record: dict[str, Any], member: str, where: str, name: str) -> str:
    value = record.get(member) or ""
    if not isinstance(value, str):
        raise FormatError(f"{where + '.' if where else ''}{member}: expected a string", name)
    return value


def _one_of(value: Any, known: tuple[str, ...], where: str, name: str) -> str:
    if value not in known:
        raise FormatError(f"{where}: expected one of {', '.join(one for one in known if one)}", name)
    return str(value)


def _not_empty(plan: Plan, name: str) -> Plan:
    if not plan:
        raise FormatError("no tasks found", name)
    return plan
