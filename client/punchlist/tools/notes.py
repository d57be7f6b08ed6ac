"""Shows agents the notes on their tasks: the newest ones with the task, and new ones with the next reply.

A note is a message from a person to the agent that works on a task. `collect_unread` runs before each tool and collects
other actors' new notes on the agent's tasks, and `add_unread` adds them to the reply. A handler that shows a task with
its notes calls `read_notes`, which removes them from the collection, so that each is shown only once.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from punchlist.base.actors import is_chat
from punchlist.base.text import clip, one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import RequestRefused
from punchlist.tools import changes
from punchlist.tools.model import Reply, ToolContext
from punchlist.tools.phrases import format_actor, get_author
from punchlist_schemas.things import Note, Task

MAX_TEXT = 300
"""Maximum length of a note in a reply, in characters."""

_MAX_WITH_TASK = 3
"""Maximum number of notes shown with a task. The newest are shown."""

_MAX_UNREAD = 20
"""Maximum number of unread notes on one task in a reply."""


def _format_note(note: Note) -> str:
    return f"{format_actor(get_author(note))}: {clip(one_line(note.text), MAX_TEXT)}"


def label_lines(notes: Iterable[str], label: str = "Note by") -> list[str]:
    """Return notes as lines of a reply. A line that counts older notes gets no label."""
    return [line if line.startswith("…") else f"{label} {line}" for line in notes]


def format_newest(task: Task, older: str = "… {} older") -> list[str]:
    """Return the newest notes of a task in order, after a line with the number of older ones in the format `older`."""
    return _format_last(task.notes, older, _MAX_WITH_TASK)


def read_notes(context: ToolContext, task: Task, older: str = "… {} older") -> list[str]:
    """Return the newest notes on a task, including all unread ones, and mark all its notes as read."""
    _mark_all_read(context, task)
    unread = context.state.unread_notes.pop(task.id, [])
    return format_newest(task, older) if len(unread) <= _MAX_WITH_TASK else _format_last(unread, older, _MAX_UNREAD)


def read_as_members(context: ToolContext, task: Task) -> dict[str, list[str]]:
    """Like `read_notes`, but return a member of a JSON reply; {} if there are no notes."""
    lines = read_notes(context, task)
    return {"notes": lines} if lines else {}


def follow(context: ToolContext, task: Task) -> None:
    """Report new notes on a task in progress to the agent from now on. Existing notes count as read."""
    _mark_all_read(context, task)
    if task.status == "in_progress":
        context.state.active_tasks.add(task.id)


def mark_read(context: ToolContext, task: str, version: int) -> None:
    context.state.notes_read[task] = max(version, context.state.notes_read.get(task, 0))


def _mark_all_read(context: ToolContext, task: Task) -> None:
    mark_read(context, task.id, max((note.version for note in task.notes), default=0))


def start(context: ToolContext, task: Task) -> None:
    """Follow a task that the agent starts. Existing notes by others are unread until a reply shows them."""
    context.state.unread_notes[task.id] = [note for note in task.notes if note.actor != context.actor][-_MAX_WITH_TASK:]
    follow(context, task)


def are_due(context: ToolContext) -> bool:
    """Return whether new notes must be collected: the agent works on a task, or may have before a restart."""
    # Agents that share a name can't be distinguished. A chat keeps no state between turns, so it would read the list in
    # each turn.
    state = context.state
    return not context.is_nameless and (bool(state.active_tasks) or not (state.has_looked or is_chat(context.actor)))


def collect_unread(context: ToolContext) -> Generator[Call[Any], Any, None]:
    """Collect other actors' new notes on this agent's tasks. Make no call if the agent works on no task."""
    if not are_due(context):
        return
    with suppress(RequestRefused):  # The tool's own calls report the error.
        running: TaskList = yield context.calls.list(status="in_progress")
        yield from collect(context, running, running.seq)


def collect(context: ToolContext, tasks: Iterable[Task], seq: int) -> Generator[Call[Any], Any, None]:
    """Collect the new notes on this agent's tasks in progress, and on those that its latest change has finished.

    Args:
        tasks: All tasks in progress, and the finished ones.
        seq: Position in the log at which the tasks were read.
    """
    state = context.state
    own = [task for task in tasks if task.owner == context.actor or task.id in state.active_tasks]
    for task in own:
        if task.id not in state.notes_read and task.notes:
            # This is the first call after a restart. Notes older than the agent's last change were shown in the
            # reply to that change.
            read_version = yield from changes.search_back(
                context, seq, lambda event: event.version if event.actor == context.actor else None
            )
            mark_read(context, task.id, read_version or 0)
        read_version = state.notes_read.get(task.id, 0)
        new = [note for note in task.notes if note.version > read_version and note.actor != context.actor]
        if new:
            state.unread_notes.setdefault(task.id, []).extend(new)
        follow(context, task)
    state.active_tasks.intersection_update(task.id for task in own)
    state.has_looked = True


def add_unread(context: ToolContext, reply: Reply) -> Reply:
    """Add the unread notes to a reply.

    If the reply is a bare JSON array, the notes are added to the next reply instead.
    """
    if not any(context.state.unread_notes.values()) or reply.text.startswith("["):
        return reply
    lines = [
        line
        for task, unread in context.state.unread_notes.items()
        for line in label_lines(
            _format_last(unread, f"… {{}} older notes on #{task}", _MAX_UNREAD), f"Note on #{task} by"
        )
    ]
    context.state.unread_notes.clear()
    data: Any = reply.data
    if isinstance(data, dict):
        data = {**cast("dict[str, Any]", data), "notes": lines}
    if reply.text.startswith("{"):
        return msgspec.structs.replace(reply, text=msgspec.json.encode(data).decode(), data=data)
    return msgspec.structs.replace(reply, text="\n".join([reply.text, *lines]), data=data)


def _format_last(notes: Sequence[Note], older: str, max_count: int) -> list[str]:
    left_out = max(len(notes) - max_count, 0)
    return ([older.format(left_out)] if left_out else []) + [_format_note(note) for note in notes[left_out:]]
