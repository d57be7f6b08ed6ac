"""The changes of one list: pages read from the log, and then those that a shared subscription delivers.

`Tail` is fed by a feed (`updates.py`). A tail that can't know all changes is behind, and its reader reads the log again
from its own position, so nothing is lost or delivered twice whatever happened to the subscription.
"""

from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

import anyio

from punchlist.calls.call import Call, itself
from punchlist.calls.cursor import Change
from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import is_transient
from punchlist.errors import Damaged, Gap, PunchlistError, RequestRefused, WrongEpoch
from punchlist_apps.mcp.event_types import Position
from punchlist_schemas.events import ConversationDeleted, EventLost
from punchlist_schemas.params import EventRead, TaskList
from punchlist_schemas.results import EventsResult, TaskListResult

RETRY_S = 1.0
"""Time before the log is read again after the daemon couldn't be reached, in seconds."""

PAGE = 500
"""Number of changes read from the log at a time."""

_MAX_BUFFERED = 1_000
"""Number of changes above which a slow reader reads them from the log instead."""


class HistoryLost(Exception):
    """Changes after the reader's position are gone: the log was replaced, or is damaged."""


class Page(NamedTuple):
    """Changes in order.

    Attributes:
        position: The position after them.
        truncated: Whether changes before them may be missing.
        more: Whether the log may have more.
    """

    changes: list[Change]
    position: Position
    truncated: bool = False
    more: bool = False


class Tail:
    """The latest changes of one list, for one reader.

    Attributes:
        conversation: The list's id; None if the list doesn't exist yet, so that its id is unknown.
        is_behind: Whether changes may be missing here.
    """

    def __init__(self) -> None:
        self.conversation: str | None = None
        self.is_behind = True
        self._changes: list[Change] = []
        self._wake = anyio.Event()

    def push(self, change: Change) -> None:
        """Take a change of any list."""
        if self.conversation is None:
            self.fall_behind()
        # A tail that is behind stays empty: its reader would take the position after a gap.
        if self.is_behind or self.conversation != change.conversation:
            return
        self._changes.append(change)
        if len(self._changes) > _MAX_BUFFERED:
            self.fall_behind()
        self._wake.set()

    def fall_behind(self) -> None:
        self._changes.clear()
        self.is_behind = True
        self._wake.set()

    def reset(self) -> None:
        """Start again, right before the reader reads the log."""
        self._changes.clear()
        self.is_behind = False

    async def take(self, timeout_s: float) -> list[Change]:
        """Return the changes since the last call. Waits for one, or until the tail is behind, for a limited time."""
        with anyio.move_on_after(timeout_s):
            await self._wake.wait()
        self._wake = anyio.Event()
        changes, self._changes = self._changes, []
        return changes


async def read_page(client: AsyncClient, conversation: str, after: Position | None, limit: int = PAGE) -> Page:
    """Return the changes after a position, or the current position without changes if it is None or invalid."""
    if after is None:
        return Page([], await _read_head(client, conversation))
    params = EventRead(conversation=conversation, after=after.seq, limit=limit, epoch=after.epoch)
    try:
        read: EventsResult = await client.run(Call("event.read", params, itself))
    except (Damaged, Gap, WrongEpoch):
        return Page([], await _read_head(client, conversation), truncated=True)
    changes = [Change.of(recorded) for recorded in read.events]
    # Both take the place of erased changes. What follows a deletion belongs to a new list of the same name.
    is_erased = any(isinstance(change.event, ConversationDeleted | EventLost) for change in changes)
    # A page is also limited by its size, so only an empty one is the last.
    return Page(changes, Position(read.epoch, read.next), is_erased, bool(changes))


async def _read_head(client: AsyncClient, conversation: str) -> Position:
    listed: TaskListResult = await client.run(Call("task.list", TaskList(conversation=conversation, limit=1), itself))
    return Position((await client.open()).epoch, listed.seq)


async def follow(
    client: AsyncClient, tail: Tail, conversation: str, after: Position | None, get_idle_s: Callable[[], float]
) -> AsyncGenerator[Page]:
    """Yield the changes after a position as they happen, and an empty page after `get_idle_s()` seconds without one.

    Only the first page may be truncated.

    Raises:
        HistoryLost: A later page would be.
        RequestRefused: The list can't be read.
    """
    position, has_more, may_be_truncated, damage = after, False, True, None
    while True:
        page = None if position is None else Page([], position)
        try:
            if tail.is_behind or has_more or position is None:
                tail.reset()
                if tail.conversation is None:
                    info = await client.conversation(conversation).info()
                    tail.conversation = info.conversation if info.version else None
                    damage = info.damaged
                page = await read_page(client, conversation, position)
                if page.truncated and not may_be_truncated:
                    raise HistoryLost
                may_be_truncated = False
            else:
                changes = [change for change in await tail.take(get_idle_s()) if change.seq > position.seq]
                if changes:
                    page = Page(changes, Position(position.epoch, changes[-1].seq))
                elif not tail.is_behind:
                    info = await client.conversation(conversation).info()
                    # The reader has skipped the damage from before it began.
                    if info.damaged not in (None, damage):
                        raise HistoryLost
        except PunchlistError as error:
            if isinstance(error, RequestRefused) and not is_transient(error):
                raise
            tail.fall_behind()
            await anyio.sleep(RETRY_S)
        if page is not None:
            position, has_more = page.position, page.more
            yield page
