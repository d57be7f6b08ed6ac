"""The writer's queue, and ways to wait for the calls in it."""

import asyncio
from collections import deque

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import ConversationAttach, ConversationDelete, ConversationDetach, ListUndo
from punchlistd.engine.calls import Arrival, Barrier, Holder, Item, Read, Write
from punchlistd.engine.replies import SHUTTING_DOWN

EXCLUSIVE = frozenset({ListUndo, ConversationAttach, ConversationDetach, ConversationDelete})
"""Calls that need their own transaction, because they read the log or change name resolution."""

_MAY_BE_EXCLUSIVE = EXCLUSIVE | {type(None)}
"""Types of params for which `is_exclusive` must be called. The params of an `Arrival` are None."""

MAX_YIELDS = 2
"""How many times an exclusive call yields to other calls."""


def is_exclusive(item: Item) -> bool:
    if type(item) is Write:
        return item.is_long or type(item.params) in EXCLUSIVE
    return type(item) is Arrival and item.is_exclusive


class Signal:
    """Wakes waiting tasks. A signal given before a task waits is not lost, but several such signals count as one.

    It is cheaper than creating an event for each wait.
    """

    __slots__ = ("_given", "_waiters")

    def __init__(self) -> None:
        self._given = False
        self._waiters: list[asyncio.Future[None]] = []

    def give(self) -> None:
        """Wake all waiting tasks. If there are none, the next `take` returns immediately."""
        if not self._waiters:
            self._given = True
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def take(self) -> None:
        """Wait for the signal, unless it has been given since it was last taken."""
        if self._given:
            self._given = False
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


class Inbox:
    """The calls that wait for the writer.

    Attributes:
        queue: The calls in order of arrival.
        work: Given when the writer has work: a call, a settle waiter, or the shutdown.
        settle_waiters: Futures of tasks that wait until no state is ahead of the log.
        closing: Whether new calls are rejected.
    """

    def __init__(self) -> None:
        self.queue: deque[Item] = deque()
        self.work = Signal()
        self.settle_waiters: list[asyncio.Future[None]] = []
        self.closing = False

    def submit(self, item: Item) -> None:
        """Queue a call. Its caller is answered after the commit, or immediately if the daemon is stopping."""
        if self.closing:
            item.refuse(SHUTTING_DOWN)
            return
        self.queue.append(item)
        self.work.give()

    def take_more(self, items: list[Item], room: int) -> None:
        """Move calls from the queue to `items`, up to the next exclusive one or until `items` contains `room` calls."""
        queue = self.queue
        kinds: list[object] = [type(item.params) for item in queue]
        if len(queue) < room and _MAY_BE_EXCLUSIVE.isdisjoint(kinds):  # fast path, almost always taken
            items += queue
            queue.clear()
        while queue and len(items) < room and not is_exclusive(queue[0]):
            items.append(queue.popleft())

    def yield_to_others(self) -> None:
        """Move exclusive calls, and later calls of their connections, after the calls of other connections.

        An exclusive call may be slow. The calls of one connection keep their order. When a call yields for the second
        time, only reads go first. It doesn't yield a third time, because other calls could keep arriving forever.
        """
        head = self.queue[0]
        if type(head) is not Write or head.times_yielded >= MAX_YIELDS:
            return
        reads_only = head.times_yielded > 0
        head.times_yielded += 1
        first, later, holders = list[Item](), list[Item](), set[Holder | str | None]()
        for item in self.queue:
            if type(item) is Barrier:  # must stay after every call that preceded it
                is_later = bool(later)
            else:
                # The posts to a list keep their order too.
                holder = item.conversation if type(item) is Arrival else item.caller.holder
                is_later = (
                    is_exclusive(item)
                    or (reads_only and type(item) is not Read)
                    or (holder is not None and holder in holders)
                )
                if is_later:
                    holders.add(holder)
            (later if is_later else first).append(item)
        self.queue.clear()
        self.queue += (*first, *later)

    async def barrier(self) -> Rejection | None:
        """Wait until everything submitted earlier is published. Return the reason if that can't happen, else None."""
        done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
        self.submit(Barrier(done))
        return await done

    async def wait_until_settled(self) -> None:
        """Wait until all decided calls are published or rejected. The writer decides no calls until then."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.settle_waiters.append(done)
        self.work.give()
        await done

    def close(self) -> None:
        self.closing = True
        self.work.give()
