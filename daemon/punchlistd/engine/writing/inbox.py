"""The queue in front of the writer, and the ways to wait for what is in it."""

import asyncio
from collections import deque

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import ConversationAttach, ConversationDelete, ConversationDetach, ListUndo
from punchlistd.engine.calls import Arrival, Barrier, Holder, Item, Read, Write
from punchlistd.engine.replies import SHUTTING_DOWN

ALONE = frozenset({ListUndo, ConversationAttach, ConversationDetach, ConversationDelete})
"""Calls that are a transaction of their own: they look at the log or change where names lead, not only one state."""

_MAY_BE_ALONE = ALONE | {type(None)}
"""What the params of calls are like that have to be looked at for whether they must be alone."""


LET_OTHERS = 2
"""So often others go before a call that must be alone."""


def is_alone(item: Item) -> bool:
    if type(item) is Write:
        return item.alone or type(item.params) in ALONE
    return type(item) is Arrival and item.is_alone


class Signal:
    """Wakes those who wait for it. A signal given before it is taken is not lost; given twice, it counts once.

    It is cheaper than an event that has to be made anew each time.
    """

    __slots__ = ("_given", "_waiters")

    def __init__(self) -> None:
        self._given = False
        self._waiters: list[asyncio.Future[None]] = []

    def give(self) -> None:
        """Wake everybody who waits, or else the next one who does."""
        if not self._waiters:
            self._given = True
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def take(self) -> None:
        """Return at once if it was given since it was last taken; otherwise wait until it is."""
        if self._given:
            self._given = False
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


class Inbox:
    """What waits for the writer.

    Attributes:
        queue: The calls that wait for their turn, in the order in which they came.
        work: Given when there is something to do: a call, somebody who waits, or the end.
        pausing: Those who wait until no state runs ahead of the log.
        closing: Whether no more calls are taken.
    """

    def __init__(self) -> None:
        self.queue: deque[Item] = deque()
        self.work = Signal()
        self.pausing: list[asyncio.Future[None]] = []
        self.closing = False

    def submit(self, item: Item) -> None:
        """Queue a call; its caller is answered after the commit, or at once if the daemon is stopping."""
        if self.closing:
            item.refuse(SHUTTING_DOWN)
            return
        self.queue.append(item)
        self.work.give()

    def take_more(self, items: list[Item], room: int) -> None:
        """Take what waits behind a call up to `room` items together, up to the next one that must be alone."""
        queue = self.queue
        kinds: list[object] = [type(item.params) for item in queue]
        if len(queue) < room and _MAY_BE_ALONE.isdisjoint(kinds):  # as nearly always
            items += queue
            queue.clear()
        while queue and len(items) < room and not is_alone(queue[0]):
            items.append(queue.popleft())

    def let_others_first(self) -> None:
        """Put back calls that must be alone, and what their connections asked for behind them.

        Each may take long, and a connection's calls have an order: what others ask for has its turn in between. Before
        the same call only reads do so again, and no more than that, since they could come for ever.
        """
        head = self.queue[0]
        if type(head) is not Write or head.let_others >= LET_OTHERS:
            return
        reads_only = head.let_others > 0
        head.let_others += 1
        first, later, holders = list[Item](), list[Item](), set[Holder | str | None]()
        for item in self.queue:
            if type(item) is Barrier:  # it has to stay behind whatever was before it
                is_later = bool(later)
            else:
                # The posts of a list have an order, too.
                holder = item.conversation if type(item) is Arrival else item.caller.holder
                is_later = (
                    is_alone(item)
                    or (reads_only and type(item) is not Read)
                    or (holder is not None and holder in holders)
                )
                if is_later:
                    holders.add(holder)
            (later if is_later else first).append(item)
        self.queue.clear()
        self.queue += (*first, *later)

    async def barrier(self) -> Rejection | None:
        """Wait until everything submitted earlier is published. Return the rejection if that never happens, or None."""
        done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
        self.submit(Barrier(done))
        return await done

    async def settled(self) -> None:
        """Wait until all that is decided is published or refused; deciding stops for it, so it is never in vain."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pausing.append(done)
        self.work.give()
        await done

    def close(self) -> None:
        self.closing = True
        self.work.give()
