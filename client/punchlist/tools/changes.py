"""What others have changed since an agent last looked, from the log.

How far an agent has been told is kept for the life of the process, and moves with the changes that a reply tells, not
with a line that only counts them. After a restart its last own event is looked up: all that was said to it before that
is known, and what came later is told again rather than missed.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from punchlist.calls.call import Call, itself
from punchlist.calls.cursor import TaskList
from punchlist.errors import Damaged, Gap, WrongEpoch
from punchlist.tools.model import Problem, ToolContext
from punchlist_schemas.events import (
    AnyEvent,
    Deleted,
    ListCleared,
    NoteAdded,
    Recorded,
    StatusChanged,
    TaskAdded,
    TaskEdited,
    decode_event,
)
from punchlist_schemas.params import EventRead, EventWait
from punchlist_schemas.results import EventsResult
from punchlist_schemas.things import FINISHED

T = TypeVar("T")

_PAGE = 1_000
_FARTHEST = 64_000
"""How many positions of the log are looked at, backwards, for one event."""


class Touched(msgspec.Struct):
    """Changes by others to one task after a position.

    Attributes:
        by: Who changed it last.
        first: Position of the first of the changes, and the list's version there.
        notes: What they noted, as far as the agent was not told before.
        noted: Version of the last of these notes.
        members: What they edited that a line about the task does not show, and that it is no longer completed.
    """

    by: str
    first: tuple[int, int]
    notes: list[str] = []
    noted: int = 0
    members: dict[str, None] = {}


class Changes(msgspec.Struct):
    """Changes by others after a position, by the ids of existing and of deleted tasks.

    `seq` is the position up to which it tells, `version` the list's there. With `everything`, the whole list has to be
    looked at.
    """

    seq: int
    version: int
    changed: dict[str, Touched] = {}
    gone: dict[str, Touched] = {}
    everything: bool = False

    def before(self, task: str) -> tuple[int, int]:
        """Position and version before the first change to a task, from which the unshown changes continue."""
        seq, version = (self.changed.get(task) or self.gone[task]).first
        return seq - 1, version - 1


def seen(context: ToolContext) -> Generator[Call[Any], Any, int | None]:
    """The position up to which the agent has been told, or None if it never looked."""
    if context.mind.seen is None:
        tasks: TaskList = yield context.calls.list(limit=1)
        found = yield from find_back(
            context, tasks.seq, lambda event: (event.seq, event.version) if event.actor == context.actor else None
        )
        if found is not None:
            note_seen(context, *found)
    return context.mind.seen


def note_seen(context: ToolContext, seq: int, version: int) -> None:
    """The agent has been told everything up to this position, and to this version of the list."""
    context.mind.seen, context.mind.version = seq, version


def position_of(context: ToolContext, version: int) -> Generator[Call[Any], Any, int | None]:
    """Return the position in the log that a version of the list had; None: it is too far back.

    Raises:
        Problem: The list has not reached this version.
    """
    tasks: TaskList = yield context.calls.list(limit=1)
    if version > tasks.version:
        text = f'the list is at version {tasks.version}: since must be "last" or the version of an earlier reply'
        raise Problem("invalid_arguments", text)
    if version == tasks.version:
        return tasks.seq
    return (yield from find_back(context, tasks.seq, lambda event: event.seq if event.version <= version else None))


def since(context: ToolContext, after: int) -> Generator[Call[Any], Any, Changes]:
    """What others have changed behind a position."""
    tasks: TaskList = yield context.calls.list(limit=1)
    changes = Changes(after, tasks.version)
    try:
        while True:
            page: EventsResult = yield read(context, changes.seq)
            _take(changes, page, context)
            if len(page.events) < _PAGE:
                return changes
            if changes.seq - after > _FARTHEST:
                break
    except (Damaged, Gap, WrongEpoch):
        pass
    tasks = yield context.calls.list(limit=1)
    return Changes(tasks.seq, tasks.version, everything=True)


def wait(context: ToolContext, after: int, timeout_ms: int) -> Call[EventsResult]:
    """Events behind a position, as soon as there are any, or none when the time is up."""
    params = EventWait(
        after=after, conversation=context.conversation, timeout_ms=timeout_ms, limit=_PAGE, epoch=context.log or None
    )
    return Call("event.wait", params, itself)


def is_others(context: ToolContext, result: EventsResult) -> bool:
    """Whether somebody else than the agent has done any of it."""
    return any(event.actor != context.actor for event in result.events)


def _take(changes: Changes, page: EventsResult, context: ToolContext) -> None:
    for recorded in page.events:
        changes.version = max(changes.version, recorded.version)
        event = decode_event(recorded.event)
        is_own = recorded.actor == context.actor
        if isinstance(event, ListCleared) and not is_own:
            changes.everything = True  # and numbers mean other tasks from here on
        task = _task_of(event)
        if task is None or (isinstance(event, NoteAdded) and recorded.version <= context.mind.noted.get(task, 0)):
            continue
        touched = changes.changed.pop(task, None) or changes.gone.pop(task, None)
        if touched is None and is_own:
            continue
        touched = touched or Touched("", (recorded.seq, recorded.version))
        if not is_own:
            _tell(touched, event, recorded)
        (changes.gone if isinstance(event, Deleted) else changes.changed)[task] = touched
    changes.seq = max(changes.seq, page.next)


_SHOWN = frozenset(("task", "title", "priority", "owner", "quote", "parent"))
"""Members of an edited task that its line shows."""

_TAKEN_BACK = "no longer completed"


def _tell(touched: Touched, event: AnyEvent, recorded: Recorded) -> None:
    touched.by = recorded.actor
    if isinstance(event, NoteAdded):
        touched.notes.append(event.text)
        touched.noted = recorded.version
    elif isinstance(event, StatusChanged):
        touched.members.pop(_TAKEN_BACK, None)
        if event.from_ == "completed" and event.to not in FINISHED:
            touched.members[_TAKEN_BACK] = None
    elif isinstance(event, TaskEdited):
        edited = (name for name in event.__struct_fields__ if getattr(event, name) is not msgspec.UNSET)
        touched.members |= dict.fromkeys(name for name in edited if name not in _SHOWN)


def _task_of(event: AnyEvent) -> str | None:
    if isinstance(event, TaskAdded):
        return event.task.id
    return getattr(event, "task", None)


def read(context: ToolContext, after: int) -> Call[EventsResult]:
    """A page of the list's events behind a position of the agent's log.

    Raises:
        WrongEpoch: The daemon serves another log by now.
    """
    params = EventRead(after=after, conversation=context.conversation, limit=_PAGE, epoch=context.log or None)
    return Call("event.read", params, itself)


def find_back(
    context: ToolContext, head: int, wanted: Callable[[Recorded], T | None]
) -> Generator[Call[Any], Any, T | None]:
    """What `wanted` makes of the newest event up to `head` for which it is not None.

    The log is read backwards in windows that double, as far as `_FARTHEST` positions and as it can be read.
    """
    end, size = head, _PAGE
    while end > 0 and head - end < _FARTHEST:
        start = max(0, end - size)
        found: T | None = None
        after = start
        while after < end:
            try:
                page: EventsResult = yield read(context, after)
            except (Damaged, Gap):
                return None
            for recorded in page.events:
                if recorded.seq <= end and (value := wanted(recorded)) is not None:
                    found = value
            if not page.events or page.next <= after:
                break
            after = page.next
        if found is not None:
            return found
        end, size = start, size * 2
    return None
