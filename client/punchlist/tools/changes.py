"""Reads from the log the changes made by others since an agent last looked.

The position up to which changes were reported to an agent is kept in memory. It advances when a reply reports changes
in full, but not when a line only counts them. After a restart, it is the position of the agent's own last event. Later
changes may then be reported twice, but none is missed.
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
_MAX_LOOKBACK = 64_000
"""Maximum number of positions to look back in the log for an event."""


class TaskChanges(msgspec.Struct):
    """Changes by others to one task after a position.

    Attributes:
        by: Actor of the last change.
        first: Position of the first change, and the list's version at that position.
        notes: New notes that have not been reported to the agent.
        notes_version: Version of the list when the last of these notes was added.
        members: Edited members that a line about the task does not show, or `_REOPENED`.
    """

    by: str
    first: tuple[int, int]
    notes: list[str] = []
    notes_version: int = 0
    members: dict[str, None] = {}


class Changes(msgspec.Struct):
    """Changes by others after a position.

    Attributes:
        seq: Position up to which the changes were read.
        version: Version of the list at that position.
        changed: Changes to existing tasks, by id.
        deleted: Changes to deleted tasks, by id.
        is_incomplete: Whether the agent must read the whole list, because it was cleared or the log can't be read that
            far back.
    """

    seq: int
    version: int
    changed: dict[str, TaskChanges] = {}
    deleted: dict[str, TaskChanges] = {}
    is_incomplete: bool = False

    def get_position_before(self, task: str) -> tuple[int, int]:
        """Return the position and version before the first change to a task, to continue reading from there."""
        seq, version = (self.changed.get(task) or self.deleted[task]).first
        return seq - 1, version - 1


def find_seen(context: ToolContext) -> Generator[Call[Any], Any, int | None]:
    """Return the position up to which changes were reported to the agent; None if it has not looked yet."""
    if context.state.seen is None:
        tasks: TaskList = yield context.calls.list(limit=1)
        if not tasks.version:
            return None  # The list doesn't exist yet.
        last_own = context.view.last or (
            yield from search_back(
                context, tasks.seq, lambda event: (event.seq, event.version) if event.actor == context.actor else None
            )
        )
        if last_own is not None and last_own != (0, 0):
            mark_seen(context, *last_own)
    return context.state.seen


def mark_seen(context: ToolContext, seq: int, version: int) -> None:
    """Record that changes up to this position and version were reported to the agent."""
    context.state.seen, context.state.version = seq, version


def find_position(context: ToolContext, version: int) -> Generator[Call[Any], Any, int | None]:
    """Return the position in the log of a version of the list, or None if it is too far back.

    Raises:
        Problem: The list has not reached this version.
    """
    tasks: TaskList = yield context.calls.list(limit=1)
    if version > tasks.version:
        text = f'the list is at version {tasks.version}: since must be "last" or the version of an earlier reply'
        raise Problem("invalid_arguments", text)
    if version == tasks.version:
        return tasks.seq
    return (yield from search_back(context, tasks.seq, lambda event: event.seq if event.version <= version else None))


def read_changes(context: ToolContext, after: int) -> Generator[Call[Any], Any, Changes]:
    """Return the changes that others made after a position."""
    tasks: TaskList = yield context.calls.list(limit=1)
    changes = Changes(after, tasks.version)
    try:
        while True:
            snapshot = context.view.snapshot
            page = None if snapshot is None else snapshot.read_changes(changes.seq, context.log)
            if page is None:
                page = yield read_events(context, changes.seq)
            _fold_page(changes, page, context)
            if len(page.events) < _PAGE:
                return changes
            if changes.seq - after > _MAX_LOOKBACK:
                break
    except (Damaged, Gap, WrongEpoch):
        pass
    tasks = yield context.calls.list(limit=1)
    return Changes(tasks.seq, tasks.version, is_incomplete=True)


def wait_for_events(context: ToolContext, after: int, timeout_ms: int) -> Call[EventsResult]:
    """Return the call that waits for events after a position. If the timeout passes, its result is empty."""
    params = EventWait(
        after=after, conversation=context.conversation, timeout_ms=timeout_ms, limit=_PAGE, epoch=context.log or None
    )
    return Call("event.wait", params, itself)


def is_by_others(context: ToolContext, result: EventsResult) -> bool:
    """Return whether any of the events is from another actor."""
    return any(event.actor != context.actor for event in result.events)


def _fold_page(changes: Changes, page: EventsResult, context: ToolContext) -> None:
    for recorded in page.events:
        changes.version = max(changes.version, recorded.version)
        event = decode_event(recorded.event)
        is_own = recorded.actor == context.actor
        if isinstance(event, ListCleared) and not is_own:
            changes.is_incomplete = True  # Later events may reuse the ids for other tasks.
        task = _get_task_id(event)
        if task is None or (isinstance(event, NoteAdded) and recorded.version <= context.state.notes_read.get(task, 0)):
            continue
        update = changes.changed.pop(task, None) or changes.deleted.pop(task, None)
        if update is None and is_own:
            continue
        update = update or TaskChanges("", (recorded.seq, recorded.version))
        if not is_own:
            _record_event(update, event, recorded)
        (changes.deleted if isinstance(event, Deleted) else changes.changed)[task] = update
    changes.seq = max(changes.seq, page.next)


_SHOWN_MEMBERS = frozenset(("task", "title", "priority", "owner", "quote", "parent"))
"""Members of a TaskEdited event that are shown in a line about the task."""

_REOPENED = "no longer completed"


def _record_event(update: TaskChanges, event: AnyEvent, recorded: Recorded) -> None:
    update.by = recorded.actor
    if isinstance(event, NoteAdded):
        update.notes.append(event.text)
        update.notes_version = recorded.version
    elif isinstance(event, StatusChanged):
        update.members.pop(_REOPENED, None)
        if event.from_ == "completed" and event.to not in FINISHED:
            update.members[_REOPENED] = None
    elif isinstance(event, TaskEdited):
        edited = (name for name in event.__struct_fields__ if getattr(event, name) is not msgspec.UNSET)
        update.members |= dict.fromkeys(name for name in edited if name not in _SHOWN_MEMBERS)


def _get_task_id(event: AnyEvent) -> str | None:
    if isinstance(event, TaskAdded):
        return event.task.id
    return getattr(event, "task", None)


def read_events(context: ToolContext, after: int) -> Call[EventsResult]:
    """Return the call that reads a page of the list's events after a position.

    Raises:
        WrongEpoch: The daemon's log is not the same as at the start of the tool call.
    """
    params = EventRead(after=after, conversation=context.conversation, limit=_PAGE, epoch=context.log or None)
    return Call("event.read", params, itself)


def search_back(
    context: ToolContext, head: int, match: Callable[[Recorded], T | None]
) -> Generator[Call[Any], Any, T | None]:
    """Return the first result of `match` that isn't None, searching backward from position `head`.

    Reads the log in windows that double in size, over at most `_MAX_LOOKBACK` positions. Returns None if the log can't
    be read.
    """
    end, size = head, _PAGE
    while end > 0 and head - end < _MAX_LOOKBACK:
        start = max(0, end - size)
        newest: T | None = None
        after = start
        while after < end:
            try:
                page: EventsResult = yield read_events(context, after)
            except (Damaged, Gap):
                return None
            for recorded in page.events:
                if recorded.seq <= end and (value := match(recorded)) is not None:
                    newest = value
            if not page.events or page.next <= after:
                break
            after = page.next
        if newest is not None:
            return newest
        end, size = start, size * 2
    return None
