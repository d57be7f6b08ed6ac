"""Who is told what: a subscriber is a cursor over the log, never a queue.

A live subscriber is handed each commit's events as it is published, as bytes made once for all. One whose
connection does not take bytes falls back to its cursor and costs nothing more, whatever happens meanwhile; when its
connection takes bytes again it is led on from memory (the log's tail) or from the log itself, in pieces of whole calls,
until it is live again. Nothing here waits for a subscriber, and no subscriber waits for another.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from punchlist_schemas.jsonrpc import notification
from punchlistd.engine.registry import Open, Registry
from punchlistd.settings import Settings
from punchlistd.store.port import EventLog


class Line(NamedTuple):
    """One published event: its wire bytes, and how many of its call follow."""

    conversation: str
    wire: bytes
    left: int


class Sink(Protocol):
    """What the fan-out needs to know of a connection."""

    @property
    def user(self) -> str | None:
        """The user that the connection is bound to."""
        ...

    @property
    def paused(self) -> bool:
        """Whether the peer does not take bytes now."""
        ...

    def push(self, payload: bytes) -> None:
        """Hand one notification to the connection."""
        ...

    def push_framed(self, framed: bytes) -> None:
        """Hand over a notification that already stands in the connection's framing."""
        ...

    def framed(self, payload: bytes) -> bytes:
        """A payload in the connection's framing."""
        ...

    @property
    def framing(self) -> str:
        """The kind of framing: equal kinds frame equally."""
        ...


class Subscription:
    """A cursor: everything up to `position` has been handed to the sink.

    `live` means there is nothing between `position` and the log's head; `fetching` that a piece of the log is on its
    way. `stale` are the conversations whose newest list a `view: list` has still to be told; `visible` those that a
    connection bound to a user may see (None: all).
    """

    __slots__ = ("conversation", "fetching", "id", "live", "position", "sink", "stale", "view", "visible")

    def __init__(self, id: str, sink: Sink, view: str, conversation: str | None, position: int) -> None:
        """A subscription of `sink` to one conversation, or (None) to all of them."""
        self.id = id
        self.sink = sink
        self.view = view
        self.conversation = conversation
        self.position = position
        self.live = False
        self.fetching = False
        self.stale: set[str] = set()
        self.visible: set[str] | None = None


class _Published(NamedTuple):
    """The lines of one commit, kept for those who lag a little."""

    first: int
    last: int
    lines: Sequence[Line]
    size: int


class Fanout:
    """Publishes commits to subscribers and wakes the calls that wait for them.

    Args:
        log: where lagging subscribers are led on from.
        registry: for the lists that `view: list` shows.
        settings: sizes of pieces and of the tail kept in memory.
        spawn: runs a coroutine beside everything else.
    """

    def __init__(
        self, log: EventLog, registry: Registry, settings: Settings, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        """A fan-out without subscribers."""
        self._log = log
        self._registry = registry
        self._chunk = settings.chunk_bytes
        self._tail_limit = settings.tail_bytes
        self._spawn = spawn
        self._tail: deque[_Published] = deque()
        self._tail_size = 0
        self._by_conversation: dict[str, dict[Subscription, None]] = {}
        self._everything: dict[Subscription, None] = {}
        self._waiters: dict[str | None, set[asyncio.Future[None]]] = {}
        self.head = log.head

    # who listens

    def add(self, subscription: Subscription) -> None:
        """Register a subscription; `lead` it on once its answer is in the outgoing bytes."""
        self._group(subscription.conversation)[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        group = self._group(subscription.conversation)
        group.pop(subscription, None)
        if not group and subscription.conversation is not None:
            del self._by_conversation[subscription.conversation]

    def _group(self, conversation: str | None) -> dict[Subscription, None]:
        if conversation is None:
            return self._everything
        return self._by_conversation.setdefault(conversation, {})

    async def changed(self, conversation: str | None) -> None:
        """Return after the next commit that touches the conversation (None: any)."""
        waiter = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(conversation, set())
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)
            if not waiters and self._waiters.get(conversation) is waiters:
                del self._waiters[conversation]

    # what is told

    def publish(self, lines: Sequence[Line], head: int) -> None:
        """Tell everybody concerned of one commit, whose last event has position `head`."""
        before, self.head = self.head, head
        self._keep(_Published(before + 1, head, lines, sum(len(line.wire) for line in lines)))
        by_conversation: dict[str, list[bytes]] = {}
        for line in lines:
            by_conversation.setdefault(line.conversation, []).append(line.wire)
        for conversation, wires in by_conversation.items():
            if group := self._by_conversation.get(conversation):
                self._tell(group, wires, head, (conversation,))
            self._release(conversation)
        if self._everything:
            self._tell(self._everything, [line.wire for line in lines], head, by_conversation)
        self._release(None)

    def _tell(
        self, group: dict[Subscription, None], wires: list[bytes], head: int, conversations: Iterable[str]
    ) -> None:
        joined = b",".join(wires)
        made: dict[tuple[str, str], bytes] = {}
        for subscription in group:
            sink = subscription.sink
            if sink.paused or not subscription.live or len(joined) > self._chunk:
                subscription.live = False
                subscription.stale.update(conversations if subscription.view == "list" else ())
                self.lead(subscription)
                continue
            key = (subscription.id, sink.framing)
            framed = made.get(key)
            if framed is None:
                framed = made[key] = sink.framed(_events(subscription.id, joined))
            subscription.position = head
            sink.push_framed(framed)

    def _release(self, conversation: str | None) -> None:
        for waiter in self._waiters.pop(conversation, ()):
            if not waiter.done():
                waiter.set_result(None)

    def _keep(self, published: _Published) -> None:
        self._tail.append(published)
        self._tail_size += published.size
        while self._tail_size > self._tail_limit and len(self._tail) > 1:
            self._tail_size -= self._tail.popleft().size

    # leading on those behind

    def lead(self, subscription: Subscription) -> None:
        """Hand over as much as the connection takes now; the rest when it takes bytes again."""
        if subscription.view == "list":
            self._lead_list(subscription)
            return
        while not subscription.sink.paused and not subscription.fetching and not subscription.live:
            if subscription.position >= self.head:
                if subscription.visible is not None:
                    return
                subscription.live = True
            elif self._tail and subscription.position + 1 >= self._tail[0].first:
                self._from_tail(subscription)
            else:
                subscription.fetching = True
                self._spawn(self._from_log(subscription))

    def _from_tail(self, subscription: Subscription) -> None:
        """One piece out of memory: whole calls, up to the piece's size."""
        wires, size = list[bytes](), 0
        for published in self._tail:
            if published.last <= subscription.position:
                continue
            for seq, line in enumerate(published.lines, published.first):
                if seq <= subscription.position:
                    continue
                if self._concerns(subscription, line.conversation):
                    wires.append(line.wire)
                    size += len(line.wire)
                if size >= self._chunk and line.left == 0:
                    return self._hand(subscription, wires, seq)
        return self._hand(subscription, wires, self.head)

    async def _from_log(self, subscription: Subscription) -> None:
        """Pieces out of the log, until the connection is full or memory can take over."""
        after = subscription.position
        try:
            stored = await self._log.read(after, 1 << 30, conversation=subscription.conversation, max_bytes=1 << 18)
        finally:
            subscription.fetching = False
        wires, size = list[bytes](), 0
        # What is durable but not published yet comes by the next publication; handed out here it would come twice.
        stored = [event for event in stored if event.seq <= self.head]
        for at, event in enumerate(stored):
            if subscription.visible is None or self._concerns(subscription, event.conversation):
                wires.append(event.wire)
                size += len(event.wire)
            if size >= self._chunk and (at + 1 == len(stored) or not event.left):
                self._hand(subscription, wires, event.seq)
                wires, size = [], 0
                if subscription.sink.paused:
                    return
        self._hand(subscription, wires, stored[-1].seq if stored else self.head)
        self.lead(subscription)

    def _hand(self, subscription: Subscription, wires: Iterable[bytes], seq: int) -> None:
        subscription.position = max(seq, subscription.position)
        if joined := b",".join(wires):
            subscription.sink.push(_events(subscription.id, joined))

    def _concerns(self, subscription: Subscription, conversation: str) -> bool:
        if subscription.conversation is not None:
            return subscription.conversation == conversation
        if subscription.visible is None:
            return True
        opened = self._registry.open.get(conversation)
        if opened is not None and opened.state.exists and opened.state.user == subscription.sink.user:
            subscription.visible.add(conversation)
        return conversation in subscription.visible

    def _lead_list(self, subscription: Subscription) -> None:
        """The newest list of each conversation that changed, as long as the connection takes them."""
        for name in list(subscription.stale):
            opened = self._registry.open.get(name)
            if subscription.sink.paused or subscription.fetching:
                return
            if opened is None:
                subscription.fetching = True
                self._spawn(self._load_list(subscription, name))
            elif not opened.dirty:
                subscription.stale.discard(name)
                if self._concerns(subscription, name):
                    subscription.sink.push(notification("list", list_push(subscription.id, opened)))

    async def _load_list(self, subscription: Subscription, name: str) -> None:
        try:
            await self._registry.load(name)
        finally:
            subscription.fetching = False
        self.lead(subscription)


def list_push(id: str, opened: Open) -> bytes:
    """The params of a `list` notification."""
    state = opened.state
    head = msgspec.json.encode(
        {"subscription": id, "conversation": state.conversation, "version": state.version, "seq": opened.seq}
    )
    return b'%b,"tasks":%b,"counts":%b}' % (head[:-1], opened.list_json(), msgspec.json.encode(state.counts()))


def _events(id: str, joined: bytes) -> bytes:
    return notification("events", b'{"subscription":"%b","events":[%b]}' % (id.encode(), joined))
