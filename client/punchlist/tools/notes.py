"""Notes for agents: the newest come with the task, new ones on an agent's task with its next reply.

A note is what a person writes for the agent that works on a task. `look` runs before each call of a tool and collects
what others have noted since on the tasks that the agent works on; `with_unread` adds that to the reply. A handler that
shows such a task with its notes takes them out of the collection by `with_task`, so that each is told once.
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
from punchlist.tools.phrases import author, name_of
from punchlist_schemas.things import Note, Task

TEXT = 300
"""Characters of a note in a reply."""

_WITH_TASK = 3
"""Maximum number of notes returned with a task; the newest are kept."""

_AT_ONCE = 20
"""Maximum number of new notes on one task in a reply."""


def _line(note: Note) -> str:
    return f"{name_of(author(note))}: {clip(one_line(note.text), TEXT)}"


def labelled(notes: Iterable[str], label: str = "Note by") -> list[str]:
    """Return notes as lines of a reply; the one that counts older notes gets no label."""
    return [line if line.startswith("…") else f"{label} {line}" for line in notes]


def newest(task: Task, older: str = "… {} older") -> list[str]:
    """Return the newest notes of a task, the last one last, after a line that counts the others: `older`."""
    return _cut(task.notes, older, _WITH_TASK)


def with_task(context: ToolContext, task: Task, older: str = "… {} older") -> list[str]:
    """Return the newest notes for a reply that shows a task, all unread ones among them; they are read by that."""
    _mark_all(context, task)
    unread = context.mind.unread.pop(task.id, [])
    return newest(task, older) if len(unread) <= _WITH_TASK else _cut(unread, older, _AT_ONCE)


def members(context: ToolContext, task: Task) -> dict[str, list[str]]:
    found = with_task(context, task)
    return {"notes": found} if found else {}


def follow(context: ToolContext, task: Task) -> None:
    """Show the agent what others note on a task from now on. Existing notes count as seen, or are unread."""
    _mark_all(context, task)
    if task.status == "in_progress":
        context.mind.works_on.add(task.id)


def mark(context: ToolContext, task: str, version: int) -> None:
    context.mind.noted[task] = max(version, context.mind.noted.get(task, 0))


def _mark_all(context: ToolContext, task: Task) -> None:
    mark(context, task.id, max((note.version for note in task.notes), default=0))


def begin(context: ToolContext, task: Task) -> None:
    """Record that the agent begins a task: others' notes on it are unread until a reply shows them."""
    context.mind.unread[task.id] = [note for note in task.notes if note.actor != context.actor][-_WITH_TASK:]
    follow(context, task)


def look(context: ToolContext) -> Generator[Call[Any], Any, None]:
    """Collect other agents' new notes on this agent's tasks. Make no call if it works on none.

    Agents that share a name can't be told apart. A chat remembers nothing between its turns, and would ask in each.
    """
    mind = context.mind
    if context.is_nameless or (not mind.works_on and (mind.has_looked or is_chat(context.actor))):
        return
    with suppress(RequestRefused):  # what the tool asks for is refused with the reason
        running: TaskList = yield context.calls.list(status="in_progress")
        own = [task for task in running if task.owner == context.actor or task.id in mind.works_on]
        for task in own:
            if task.id not in mind.noted and task.notes:
                # After a restart: what was noted before the agent's last change was told in the reply to it.
                known = yield from changes.find_back(
                    context, running.seq, lambda event: event.version if event.actor == context.actor else None
                )
                mark(context, task.id, known or 0)
            known = mind.noted.get(task.id, 0)
            new = [note for note in task.notes if note.version > known and note.actor != context.actor]
            if new:
                mind.unread.setdefault(task.id, []).extend(new)
            follow(context, task)
        mind.works_on.intersection_update(task.id for task in own)
        mind.has_looked = True


def with_unread(context: ToolContext, reply: Reply) -> Reply:
    """Return the reply with the notes that the agent has not read. They wait if it is a bare JSON array."""
    if not any(context.mind.unread.values()) or reply.text.startswith("["):
        return reply
    lines = [
        line
        for task, unread in context.mind.unread.items()
        for line in labelled(_cut(unread, f"… {{}} older notes on #{task}", _AT_ONCE), f"Note on #{task} by")
    ]
    context.mind.unread.clear()
    data: Any = reply.data
    if isinstance(data, dict):
        data = {**cast("dict[str, Any]", data), "notes": lines}
    if reply.text.startswith("{"):
        return msgspec.structs.replace(reply, text=msgspec.json.encode(data).decode(), data=data)
    return msgspec.structs.replace(reply, text="\n".join([reply.text, *lines]), data=data)


def _cut(notes: Sequence[Note], older: str, most: int) -> list[str]:
    left_out = max(len(notes) - most, 0)
    return ([older.format(left_out)] if left_out else []) + [_line(note) for note in notes[left_out:]]
