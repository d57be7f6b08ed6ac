"""Receipts: the events that a turn added to the log, and sentences built only from these events."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import UNSET

from punchlist.base.text import clip, one_line
from punchlist_schemas.events import AddedTask, Recorded, StatusChanged, TaskAdded, TaskEdited, decode_event


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event produced by a call: its position in the log, the call's key, the task and the change.

    Attributes:
        to: The new status or due date, or the name of the member that was edited, with the new owner or priority.
        text: The change in words, such as "added #2 milk"; empty in receipts of earlier versions.
    """

    seq: int
    version: int
    key: str
    type: str
    task: str = ""
    title: str = ""
    to: str = ""
    text: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one tool call, as stored in the thread.

    Attributes:
        question: Whether the call wasn't made because the person must confirm it first.
        changes: Receipts; empty if the call changed nothing.
    """

    tool: str
    arguments: dict[str, Any] = {}
    text: str = ""
    data: Any = None
    refused: bool = False
    question: bool = False
    changes: tuple[Receipt, ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self.data) if isinstance(self.data, list) else []

    @property
    def facts(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.data) if isinstance(self.data, dict) else {}


def build_receipts(events: Iterable[Recorded], key: str, titles: Mapping[str, str]) -> tuple[Receipt, ...]:
    """Return receipts for the events with a key. `titles` are the task titles before the change."""
    receipts: list[Receipt] = []
    for recorded in events:
        event = decode_event(recorded.event)
        task, title, to = str(getattr(event, "task", "")), "", ""
        if isinstance(event, TaskAdded):
            task, title, to = event.task.id, event.task.title, _format_due(event.task)
        elif isinstance(event, StatusChanged):
            to = event.to
        elif isinstance(event, TaskEdited):
            changed = (name for name in ("title", "priority", "owner") if getattr(event, name) is not UNSET)
            to = next(changed, "")
            title = event.title if event.title is not UNSET else ""
            value = getattr(event, to) if to in ("owner", "priority") else None
            to = f"{to} {value}" if value else to
        title = title or titles.get(task, "")
        kind = type(event).__name__
        text = _describe(kind, f"#{task} {one_line(title)}".rstrip(), to)
        receipts.append(Receipt(recorded.seq, recorded.version, key, kind, task, title, to, text))
    return tuple(receipts)


def _describe(kind: str, task: str, to: str) -> str:
    """Return the words for an event: those of its change, if the kind has several, else those of its kind."""
    change, _, value = to.partition(" ") if kind == "TaskEdited" else (to, "", "")
    return _WORDS_OF_CHANGES.get((kind, change), _WORDS_OF_KINDS.get(kind, "changed {task}")).format(
        task=task, value=value or "nobody"
    )


_WORDS_OF_KINDS = {
    "ConversationOpened": "began the list",
    "TaskAdded": "added {task}",
    "TaskMoved": "moved {task}",
    "TaskWoken": "no longer puts {task} off",
    "NoteAdded": "wrote a note on {task}",
    "NoteRemoved": "removed a note of {task}",
    "Claimed": "claimed {task}",
    "Released": "released {task}",
    "DependencyAdded": "made {task} wait for another task",
    "DependencyRemoved": "freed {task} of a task that it waited for",
    "Deleted": "deleted {task}",
    "ListCleared": "cleared the list",
}
_WORDS_OF_CHANGES = {
    ("StatusChanged", "completed"): "completed {task}",
    ("StatusChanged", "in_progress"): "started {task}",
    ("StatusChanged", "pending"): "reopened {task}",
    ("StatusChanged", "paused"): "paused {task}",
    ("StatusChanged", "failed"): "gave up {task}",
    ("TaskEdited", "title"): "renamed {task}",
    ("TaskEdited", "owner"): "assigned {task} to {value}",
    ("TaskEdited", "priority"): "made {task} {value}",
}


def _format_due(task: AddedTask) -> str:
    try:
        return task.due_day or (f"{datetime.fromtimestamp(task.due / 1000):%Y-%m-%d %H:%M}" if task.due else "")
    except (OverflowError, ValueError, OSError):
        return ""


def format_results(results: Iterable[ToolResult]) -> str:
    """Describe the calls of a turn. Changes are described from receipts, and lists and tasks from read results."""
    texts: list[str] = []
    made = [result for result in results if not result.question]
    for index, result in enumerate(made):
        text = _format_result(result, made[:index])
        # This sentence also covers the deletion.
        if text.startswith(_ALL_GONE):
            texts.clear()
        if text and text not in texts:
            texts.append(text)
    return "\n".join(texts)


def mark_of(results: Iterable[ToolResult]) -> str:
    """Return the note shown with a model's text after a turn without changes, regardless of the text's claims."""
    return "nothing was changed" if any(not result.refused for result in results) else "no task was read or changed"


_ALL_GONE = "I've deleted all "


def _format_result(result: ToolResult, earlier: list[ToolResult]) -> str:
    if result.refused:
        return f"That did not work: {one_line(str(result.facts.get('error') or result.text))}"
    if result.changes:
        return _format_changes(result)
    format_read = _READ_FORMATTERS.get(result.tool)
    return format_read(result, earlier) if format_read is not None else _format_no_change(result)


def _format_changes(result: ToolResult) -> str:
    if result.tool in _UNDO_HEADINGS:
        lines: list[str] = result.facts.get("undone", [])
        heading = _UNDO_HEADINGS[result.tool]
        return "\n".join([f"{heading}:", *(f"  {one_line(line)}" for line in lines)]) if lines else f"{heading}."
    deleted = [receipt for receipt in result.changes if receipt.type == "Deleted"]
    if len(deleted) > 1:
        return f"Deleted {len(deleted)} tasks: {_format_names(deleted)}"
    described = (receipt for receipt in result.changes if receipt.type in _SENTENCES)
    return "\n".join(dict.fromkeys(_SENTENCES[receipt.type](receipt) for receipt in described))


_UNDO_HEADINGS = {"undo_changes": "Undone", "redo_changes": "Redone"}
_MAX_NAMES = 12


def _format_names(receipts: list[Receipt]) -> str:
    names = ", ".join(receipt.title or f"task {receipt.task}" for receipt in receipts[:_MAX_NAMES])
    return names + (f" and {len(receipts) - _MAX_NAMES} more" if len(receipts) > _MAX_NAMES else "")


def _format_edit(receipt: Receipt) -> str:
    if receipt.to == "title":
        return f"Renamed task {receipt.task}: {receipt.title}"
    owner = receipt.to.partition("owner ")[2]
    return f"Assigned to {owner}: {receipt.title}" if owner else f"Changed task: {receipt.title}"


_STATUS = {
    "completed": "Completed task: {title}",
    "in_progress": "Started task: {title}",
    "pending": "Reopened task: {title}",
    "paused": "Paused task: {title}",
    "failed": "Gave up task: {title}",
}
_SENTENCES: dict[str, Callable[[Receipt], str]] = {
    "TaskAdded": lambda receipt: f"Created task: {receipt.title}{f' (due {receipt.to})' if receipt.to else ''}",
    "StatusChanged": lambda receipt: _STATUS[receipt.to].format(title=receipt.title or receipt.task),
    "TaskEdited": _format_edit,
    "Deleted": lambda receipt: f"Deleted task: {receipt.title or receipt.task}",
    "ListCleared": lambda _receipt: "The list was cleared.",
}
"""Event type → sentence about the event. Follow-up events have no sentence."""


_WAITING_PREFIX = "waits for "
"""Start of the status text of a task at its gate (`tools.phrases.waiting`)."""
_SIGNS = {"completed": "✓", "in_progress": "●", "paused": "‖", "failed": "✗"}
_TAILS = {"waiting": " waiting for your yes"}
_WORDS = {
    "pending": "pending ",
    "completed": "completed ",
    "in_progress": "running ",
    "failed": "failed ",
    "blocked": "blocked ",
}


def _format_list(result: ToolResult, earlier: list[ToolResult]) -> str:
    rows = result.rows
    omitted = sum(int(row.get("omitted", 0)) for row in rows)
    rows = [row for row in rows if row.get("id")]
    count = len(rows) + omitted
    status = str(result.arguments.get("status", ""))
    word, tail = _WORDS.get(status, ""), _TAILS.get(status, "")
    deleted = sum(1 for other in earlier for receipt in other.changes if receipt.type == "Deleted")
    if not count and deleted and not (word or tail):
        return f"{_ALL_GONE}{deleted} task{'' if deleted == 1 else 's'}. Verified: Your task list is now empty."
    if not count:
        return f"You have no {word}tasks{tail}."
    lines = [_format_row(row) for row in rows]
    lines += [f"  … and {omitted} more"] if omitted else []
    return "\n".join([f"You have {count} {word}task{'' if count == 1 else 's'}{tail}:", *lines])


def _format_row(row: Mapping[str, Any]) -> str:
    status = str(row.get("status", ""))
    details = [status] if status.startswith(_WAITING_PREFIX) else []
    details += [f"@{row['owner']}"] if row.get("owner") else []
    details += [str(row["because"])] if row.get("because") else []
    sign = "‖" if status.startswith(_WAITING_PREFIX) else _SIGNS.get(status, "☐")
    suffix = f" ({', '.join(details)})" if details else ""
    return f"  {sign} #{row['id']} {clip(one_line(str(row['title'])), 200)}{suffix}"


def _format_task(result: ToolResult, _earlier: list[ToolResult]) -> str:
    task = result.facts
    status = task.get("status") or ("completed" if task.get("completed") else "pending")
    lines = [f"Task {task.get('id')}: {task.get('title')}", f"Status: {status}"]
    lines += [f"{name.capitalize()}: {task[name]}" for name in ("description", "result", "reason") if task.get(name)]
    return "\n".join(lines)


def _format_no_change(result: ToolResult) -> str:
    data = result.facts
    if result.tool == "undo_changes":
        return "This thread has no changes to undo. To undo changes made elsewhere, run: punch undo"
    if result.tool == "redo_changes":
        return "This thread has no undone changes to redo."
    if result.tool == "assign_todo_task":
        return f"Nothing changed: task {data['id']} ({data.get('title')}) already has this owner."
    if "id" in data:
        status = "completed" if data.get("completed") else data.get("status", "pending")
        return f"Nothing changed: task {data['id']} ({data.get('title')}) is already {status}."
    return "Nothing changed."


_READ_FORMATTERS: dict[str, Callable[[ToolResult, list[ToolResult]], str]] = {
    "list_todo_tasks": _format_list,
    "get_todo_task": _format_task,
}


def format_chips(results: Iterable[ToolResult]) -> list[str]:
    """Return the changes of all results in words."""
    return [receipt.text for result in results for receipt in result.changes]
