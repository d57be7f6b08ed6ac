"""What a turn has done, as events of the log, and the sentences that are made of them and of nothing else."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import UNSET

from punchlist.base.text import clip, one_line
from punchlist_schemas.events import AddedTask, Recorded, StatusChanged, TaskAdded, TaskEdited, decode_event


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event that a call made: its place in the log, the call's key, and what it says about which task."""

    seq: int
    version: int
    key: str
    type: str
    task: str = ""
    title: str = ""
    to: str = ""


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one call of a tool, as it is written into the thread.

    `changes` are the receipts, none if it changed nothing. `question` says that the person has to agree first.
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


def receipts(events: Iterable[Recorded], key: str, titles: Mapping[str, str]) -> tuple[Receipt, ...]:
    """Return receipts of the events made with a key. `titles`: task titles before the change."""
    found: list[Receipt] = []
    for recorded in events:
        event = decode_event(recorded.event)
        task, title, to = str(getattr(event, "task", "")), "", ""
        if isinstance(event, TaskAdded):
            task, title, to = event.task.id, event.task.title, _due(event.task)
        elif isinstance(event, StatusChanged):
            to = event.to
        elif isinstance(event, TaskEdited):
            changed = (name for name in ("title", "priority", "owner") if getattr(event, name) is not UNSET)
            to = next(changed, "")
            title = event.title if event.title is not UNSET else ""
            to = f"owner {event.owner}" if to == "owner" and event.owner else to
        title = title or titles.get(task, "")
        kind = type(event).__name__
        found.append(Receipt(recorded.seq, recorded.version, key, kind, task, title, to))
    return tuple(found)


def _due(task: AddedTask) -> str:
    try:
        return task.due_day or (f"{datetime.fromtimestamp(task.due / 1000):%Y-%m-%d %H:%M}" if task.due else "")
    except (OverflowError, ValueError, OSError):
        return ""


def sentences(done: Iterable[Done]) -> str:
    """What is said about the calls of a turn: changes by their receipts, lists and tasks by what was read."""
    told: list[str] = []
    calls = [one for one in done if not one.question]
    for at, one in enumerate(calls):
        said = _of(one, calls[:at])
        if said.startswith(_ALL_GONE):  # says more than the sentence about the deletion itself
            told.clear()
        if said and said not in told:
            told.append(said)
    return "\n".join(told)


def mark_of(done: Iterable[Done]) -> str:
    """What stands with a model's words about a turn without changes, whatever these words claim."""
    return "nothing was changed" if any(not one.refused for one in done) else "no task was read or changed"


_ALL_GONE = "I've deleted all "


def _of(done: Done, before: list[Done]) -> str:
    if done.refused:
        return f"That did not work: {one_line(str(done.facts.get('error') or done.text))}"
    if done.changes:
        return _changed(done)
    read = _READ.get(done.tool)
    return read(done, before) if read is not None else _nothing(done)


def _changed(done: Done) -> str:
    if done.tool in _UNDOS:
        lines: list[str] = done.facts.get("undone", [])
        head = _UNDOS[done.tool]
        return "\n".join([f"{head}:", *(f"  {one_line(line)}" for line in lines)]) if lines else f"{head}."
    gone = [one for one in done.changes if one.type == "Deleted"]
    if len(gone) > 1:
        return f"Deleted {len(gone)} tasks: {_named(gone)}"
    return "\n".join(dict.fromkeys(_SENTENCES[one.type](one) for one in done.changes if one.type in _SENTENCES))


_UNDOS = {"undo_changes": "Taken back", "redo_changes": "Redone"}
_MOST_NAMED = 12


def _named(receipts: list[Receipt]) -> str:
    names = ", ".join(one.title or f"task {one.task}" for one in receipts[:_MOST_NAMED])
    return names + (f" and {len(receipts) - _MOST_NAMED} more" if len(receipts) > _MOST_NAMED else "")


def _edited(receipt: Receipt) -> str:
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
    "TaskAdded": lambda one: f"Created task: {one.title}{f' (due {one.to})' if one.to else ''}",
    "StatusChanged": lambda one: _STATUS[one.to].format(title=one.title or one.task),
    "TaskEdited": _edited,
    "Deleted": lambda one: f"Deleted task: {one.title or one.task}",
    "ListCleared": lambda one: "The list was cleared.",
}
"""Type of an event → the sentence about it. Events that follow from others have none."""


_WAITS = "waits for "
"""Start of the status of a task at its gate (`tools.phrases.waiting`)."""
_SIGNS = {"completed": "✓", "in_progress": "●", "paused": "‖", "failed": "✗"}
_TAILS = {"waiting": " waiting for your yes"}
_WORDS = {"pending": "pending ", "completed": "completed ", "in_progress": "running "}


def _listed(done: Done, before: list[Done]) -> str:
    rows = done.rows
    left_out = sum(int(row.get("omitted", 0)) for row in rows)
    rows = [row for row in rows if row.get("id")]
    count = len(rows) + left_out
    status = str(done.arguments.get("status", ""))
    word, tail = _WORDS.get(status, ""), _TAILS.get(status, "")
    gone = sum(1 for one in before for change in one.changes if change.type == "Deleted")
    if not count and gone and not (word or tail):
        return f"{_ALL_GONE}{gone} task{'' if gone == 1 else 's'}. Verified: Your task list is now empty."
    if not count:
        return f"You have no {word}tasks{tail}."
    lines = [_line(row) for row in rows]
    lines += [f"  … and {left_out} more"] if left_out else []
    return "\n".join([f"You have {count} {word}task{'' if count == 1 else 's'}{tail}:", *lines])


def _line(row: Mapping[str, Any]) -> str:
    status = str(row.get("status", ""))
    beside = [status] if status.startswith(_WAITS) else []
    beside += [f"@{row['owner']}"] if row.get("owner") else []
    sign = "‖" if status.startswith(_WAITS) else _SIGNS.get(status, "☐")
    more = f" ({', '.join(beside)})" if beside else ""
    return f"  {sign} #{row['id']} {clip(one_line(str(row['title'])), 200)}{more}"


def _got(done: Done, _before: list[Done]) -> str:
    task = done.facts
    status = task.get("status") or ("completed" if task.get("completed") else "pending")
    lines = [f"Task {task.get('id')}: {task.get('title')}", f"Status: {status}"]
    lines += [f"{name.capitalize()}: {task[name]}" for name in ("description", "result", "reason") if task.get(name)]
    return "\n".join(lines)


def _nothing(done: Done) -> str:
    data = done.facts
    if done.tool == "undo_changes":
        return (
            "This thread has changed nothing that could be taken back. punch undo takes back what was done elsewhere."
        )
    if done.tool == "redo_changes":
        return "This thread has taken back nothing that could be redone."
    if done.tool == "assign_todo_task":
        return f"Nothing changed: task {data['id']} ({data.get('title')}) has this owner already."
    if "id" in data:
        status = "completed" if data.get("completed") else data.get("status", "pending")
        return f"Nothing changed: task {data['id']} ({data.get('title')}) is {status} already."
    return "Nothing changed."


_READ: dict[str, Callable[[Done, list[Done]], str]] = {"list_todo_tasks": _listed, "get_todo_task": _got}
"""Tool that reads → the text about what it read."""


def chips(done: Iterable[Done]) -> list[str]:
    """The receipts in a line each, as faces show them: the tool, the task, and the place in the log."""
    return [
        f"{one.tool} · {f'#{change.task} · ' if change.task else ''}seq {change.seq}"
        for one in done
        for change in one.changes
    ]
