"""Our own export: `punch export --format json`, and what `punch list --json` prints."""

from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers.document import Document, as_list, as_object, json_value, text_of
from punchlist_apps.files.importers.draft import Draft, Note
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.things import PRIORITIES, STATUSES

EXPORT_VERSION = 1
_SAME = (
    *("description", "status", "priority", "active_form", "owner", "metadata", "result_summary", "fail_reason", "due"),
    *("not_before", "labels", "estimate_ms", "gate", "due_day", "not_before_day"),
)
_READ = frozenset((*_SAME, "id", "title", "parent", "blocked_by", "links", "notes"))
_COUNTED = frozenset(
    "blocks open_blockers waits_for spent_ms"
    " attempts fence machine lease_expires_at left_at silent_at"
    " created_at updated_at status_changed_at version rank".split()
)


def read(documents: Sequence[Document]) -> Draft:
    """Parse a punchlist export."""
    document = documents[0]
    name = document.name
    value = as_object(json_value(document), "the file", name)
    version = value.get("format_version", EXPORT_VERSION)
    if version != EXPORT_VERSION:
        raise FormatError(f"format_version {version} is not known to this version of punchlist", name)
    draft = Draft("json", name)
    tasks = [as_object(one, f"tasks[{i}]", name) for i, one in enumerate(as_list(value.get("tasks"), "tasks", name))]
    idents = {text_of(task.get("id")) for task in tasks}
    for index, task in enumerate(tasks):
        where = f"tasks[{index}]"
        for member, known in (("status", STATUSES), ("priority", PRIORITIES)):
            if task.get(member, known[0]) not in known:
                raise FormatError(f"{where}.{member}: expected one of {', '.join(known)}", name)
        if not isinstance(task.get("title"), str):
            raise FormatError(f"{where}.title: expected a string", name)
        blocked_by = [text_of(one) for one in as_list(task.get("blocked_by", []), f"{where}.blocked_by", name)]
        parent = text_of(task.get("parent"))
        if missing := [one for one in (*blocked_by, parent) if one and one not in idents]:
            raise FormatError(f"{where}: task {missing[0]} is not in this file", name)
        draft.pass_over_rest(task, _READ | _COUNTED)
        links = [
            as_object(one, f"{where}.links", name) for one in as_list(task.get("links", []), f"{where}.links", name)
        ]
        notes = as_list(task.get("notes", []), f"{where}.notes", name)
        draft.add(
            task["title"],
            exact=True,
            ref=text_of(task.get("id")) or f"\0{index}",
            links=[(text_of(one.get("kind")), one.get("to")) for one in links],
            notes=[_note(one) for one in notes],
            **{member: _checked(task[member], member, where, name) for member in _SAME if member in task},
            blocked_by=blocked_by,
            parent=parent,
        )
    return draft.finish()


def value(conversation: dict[str, Any], tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A conversation's list as the value that `read` reads."""
    head = {name: conversation[name] for name in ("conversation", "title", "version") if conversation.get(name)}
    return {"format": "punchlist", "format_version": EXPORT_VERSION, **head, "tasks": list(tasks)}


_KINDS: dict[str, type] = {
    "metadata": dict,
    "gate": dict,
    "labels": list,
    "due": int,
    "not_before": int,
    "estimate_ms": int,
}


def _checked(found: Any, member: str, where: str, name: str) -> Any:
    kind = _KINDS.get(member, str)
    if found is not None and not isinstance(found, kind):
        said = {str: "a string", dict: "an object", list: "a list", int: "a number"}[kind]
        raise FormatError(f"{where}.{member}: expected {said}", name)
    return found


def _note(one: Any) -> Note:
    note: dict[str, Any] = cast("dict[str, Any]", one) if isinstance(one, dict) else {"text": one}
    at = note.get("at")
    return Note(text_of(note.get("text")), text_of(note.get("actor")), at if type(at) is int and at > 0 else 0)
