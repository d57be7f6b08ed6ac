"""Subscriptions: each subscriber is a cursor over the log, without a queue.

A live subscriber gets the events of each commit when it is published, encoded once for all subscribers. If its
connection applies backpressure, the subscriber falls behind and costs nothing until the connection accepts bytes again.
It then catches up from recent commits in memory or from the log, in pieces that contain whole calls, until it is live
again. No code in this module waits for a subscriber, and no subscriber waits for another. `NEXT` is the table of
transitions:

    ─▶ BEHIND ◀──▶ LIVE ──────▶ OVER
         │ ▲                     ▲
         ▼ │                     │
       FETCHING ─────────────────┘   (BEHIND can also end)
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from enum import IntEnum, auto
from itertools import takewhile
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import msgspec

from punchlist_schemas.errors import Rejection, error_object
from punchlist_schemas.results import EndPush
from punchlistd.clock import now_ms
from punchlistd.domain.state import State
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations, damage_of, gap_of
from punchlistd.engine.lists.titles import Titles, add_about
from punchlistd.engine.replies import Reply, notification
from punchlistd.engine.watching.presence import Presence
from punchlistd.engine.watching.views import Cache, Lists, Rows, View
from punchlistd.settings import Settings
from punchlistd.store.port import Damaged, EventLog, Gap, Stored


class PublishedEvent(msgspec.Struct, frozen=True, gc=False):
    """A published event.

    Attributes:
        remaining: Number of later events of the same call.
        user: The owner of the conversation; "" if it has none.
        title: The title of its task; "" if it has none.
        list: The name under which the conversation is shown.
    """

    conversation: str
    wire: bytes
    remaining: int
    user: str
    title: str = ""
    list: str = ""


class Sink(Protocol):
    """The part of a connection that subscriptions use."""

    @property
    def actor(self) -> str | None:
        """The name that other connections see; None if it is hidden from them."""
        ...

    @property
    def user(self) -> str | None: ...

    @property
    def paused(self) -> bool:
        """Whether the connection applies backpressure."""
        ...

    def push(self, payload: Reply) -> None: ...

    @property
    def push_framed(self) -> Callable[[bytes], Any]:
        """Sends a framed notification. Called only while the connection is not paused."""
        ...

    def framed(self, payload: bytes) -> bytes:
        """Return a payload in the connection's framing."""
        ...

    def ended(self, id: str, payload: bytes) -> None:
        """Remove a subscription, and send a notification that it has ended."""
        ...

    @property
    def framing(self) -> str:
        """The kind of framing. Connections with the same kind can share framed bytes."""
        ...


class Phase(IntEnum):
    """Lifecycle phase of a subscription."""

    BEHIND = auto()
    """Behind the log's head. It catches up when its connection accepts bytes."""
    FETCHING = auto()
    """Waiting for a piece of the log."""
    LIVE = auto()
    """At the log's head. It gets each commit when the commit is published."""
    OVER = auto()
    """Ended."""


NEXT: dict[Phase, frozenset[Phase]] = {
    Phase.BEHIND: frozenset({Phase.FETCHING, Phase.LIVE, Phase.OVER}),
    Phase.FETCHING: frozenset({Phase.BEHIND, Phase.OVER}),
    Phase.LIVE: frozenset({Phase.BEHIND, Phase.OVER}),
    Phase.OVER: frozenset(),
}
"""The phases that may follow each phase."""


class Subscription:
    """A cursor over the log.

    Attributes:
        about: Whether its events contain the titles of their tasks and lists.
        conversation: The conversation it follows; None for all.
        position: Log position up to which everything has been pushed. Not updated while the subscription is live.
        individual: Whether it catches up separately after each commit, because its pushes differ from those of other
            subscriptions.
        shown: Its view; None for events.
        stale: Conversations whose newest state the view has not pushed yet.
        known: Log position up to which `stale` is complete.
        since: When it started, in milliseconds since 1970.
    """

    __slots__ = (
        "about",
        "conversation",
        "id",
        "individual",
        "known",
        "phase",
        "position",
        "shown",
        "since",
        "sink",
        "stale",
        "view",
    )

    def __init__(  # noqa: PLR0913 - what a subscriber chooses
        self,
        id: str,
        sink: Sink,
        view: str,
        conversation: str | None,
        position: int,
        shown: View | None = None,
        *,
        about: bool = False,
    ) -> None:
        self.id = id
        self.sink = sink
        self.view = view
        self.since = now_ms()
        self.conversation = conversation
        self.position = position
        self.known = position
        self.phase = Phase.BEHIND
        self.shown = shown
        self.about = about
        self.individual = shown is not None or sink.user is not None or about
        self.stale: dict[str, None] = {}

    @property
    def live(self) -> bool:
        return self.phase is Phase.LIVE

    @property
    def may_push(self) -> bool:
        """Whether it is behind and its connection accepts bytes."""
        return self.phase is Phase.BEHIND and not self.sink.paused

    def to(self, phase: Phase) -> None:
        assert phase in NEXT[self.phase], f"a subscription can't go from {self.phase.name} to {phase.name}"
        self.phase = phase


class _Group:
    """The subscriptions to one conversation, or to all.

    Attributes:
        live: Live subscriptions that get the events of each commit, grouped by id and framing. All subscriptions with
            the same id and framing get the same bytes.
    """

    def __init__(self) -> None:
        self.individual: dict[Subscription, None] = {}
        self.live: dict[tuple[str, str], dict[Subscription, Callable[[bytes], Any]]] = {}


class _Commit(NamedTuple):
    """The events of a recent commit, kept in memory for subscribers that lag only a little."""

    first: int
    last: int
    lines: Sequence[PublishedEvent]
    size: int


class _Once:
    """A sink that waits for one push and ignores its content."""

    actor = None
    paused = False
    framing = ""

    def __init__(self, user: str | None) -> None:
        self.user = user
        self.pushed = asyncio.get_running_loop().create_future()

    def push(self, payload: Reply) -> None:  # noqa: ARG002 - the caller reads the events from the log
        if not self.pushed.done():
            self.pushed.set_result(None)

    push_framed = push

    def framed(self, payload: bytes) -> bytes:
        return payload

    def ended(self, id: str, payload: bytes) -> None:  # noqa: ARG002 - it has one subscription
        self.push(payload)


class Subscriptions:
    """Pushes commits to subscribers.

    Args:
        spawn: Starts a background task.
    """

    def __init__(
        self,
        log: EventLog,
        conversations: Conversations,
        access: Access,
        settings: Settings,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        titles: Titles,
    ) -> None:
        self._log = log
        self._titles = titles
        self._conversations = conversations
        self._access = access
        self._chunk = settings.chunk_bytes
        self._recent_limit = settings.recent_bytes
        self._spawn = spawn
        self._recent: deque[_Commit] = deque()
        self._recent_bytes = 0
        self._groups: dict[str | None, _Group] = {}
        self._delivering = False
        self._cache: Cache = {}
        self._pausing: list[Subscription] = []
        self._turn = asyncio.Lock()
        self.presence = Presence(self._show_presence)
        self.head = log.head

    # subscribers

    def add(self, subscription: Subscription) -> None:
        """Register a subscription. Call `catch_up` once the response is buffered, so that pushes come after it."""
        if subscription.individual:
            self._group(subscription).individual[subscription] = None
        self.presence.come(subscription)

    def remove(self, subscription: Subscription) -> None:
        self._fall_behind(subscription, self.head)
        subscription.to(Phase.OVER)
        group = self._group(subscription)
        group.individual.pop(subscription, None)
        if not (group.individual or group.live):
            del self._groups[subscription.conversation]
        self.presence.go(subscription)

    def _show_presence(self, conversation: str) -> None:
        self._show(conversation, conversation, lambda subscription: subscription.view == "presence")

    def show_again(self, conversation: str) -> None:
        """Push a list whose displayed state has changed without a new event."""
        self._show(conversation, conversation, _shows_lists)
        if None in self._groups:
            self._spawn(self._show_in_boards(conversation))

    def show_tasks(self, conversation: str, tasks: Iterable[str]) -> None:
        """Push tasks whose displayed state has changed without a new event."""
        if (loaded := self._conversations.loaded.get(conversation)) is not None:
            loaded.forget_listing()
        group = self._groups.get(conversation)
        for subscription in [] if group is None else list(group.individual):
            if isinstance(subscription.shown, Lists | Rows):
                if isinstance(subscription.shown, Rows):
                    subscription.shown.show(tasks)
                self._show_to(subscription, conversation)
        if loaded is not None:
            self._show_in_board(loaded.state)

    async def _show_in_boards(self, conversation: str) -> None:
        self._show_in_board((await self._conversations.durable(conversation)).state)

    def _show_in_board(self, state: State) -> None:
        if state.exists:
            self._show(
                state.conversation,
                None,
                lambda subscription: _shows_lists(subscription) and _may_see(subscription, state.user),
            )

    def _show(self, conversation: str, followed: str | None, is_target: Callable[[Subscription], bool]) -> None:
        """Push a conversation to the subscriptions to `followed` for which `is_target` is true.

        If `followed` is None, these are the subscriptions to all conversations.
        """
        group = self._groups.get(followed)
        for subscription in [] if group is None else list(group.individual):
            if is_target(subscription):
                self._show_to(subscription, conversation)

    def _show_to(self, subscription: Subscription, conversation: str) -> None:
        subscription.stale[conversation] = None
        self._fall_behind(subscription, subscription.position)
        self.catch_up(subscription)

    @property
    def subscribed(self) -> int:
        """The number of subscriptions."""
        return sum(len(group.individual) + sum(map(len, group.live.values())) for group in self._groups.values())

    def pause(self, subscription: Subscription) -> None:
        """Stop pushing to a subscription whose connection applies backpressure, until it catches up."""
        if self._delivering:
            # The subscription still gets the push for the current commit.
            self._pausing.append(subscription)
        else:
            self._fall_behind(subscription, self.head)

    def _group(self, subscription: Subscription) -> _Group:
        return self._groups.setdefault(subscription.conversation, _Group())

    def _go_live(self, subscription: Subscription) -> None:
        subscription.to(Phase.LIVE)
        if not subscription.individual:
            sink, live = subscription.sink, self._group(subscription).live
            live.setdefault((subscription.id, sink.framing), {})[subscription] = sink.push_framed

    def _fall_behind(self, subscription: Subscription, position: int) -> None:
        """Stop pushing to a live subscription until it catches up from `position`."""
        if not subscription.live:
            return
        subscription.to(Phase.BEHIND)
        subscription.position = position
        if not subscription.individual:
            key, live = (subscription.id, subscription.sink.framing), self._group(subscription).live
            del live[key][subscription]
            if not live[key]:
                del live[key]

    async def change(self, conversation: str | None, user: str | None, after: int) -> None:
        """Wait for an event after position `after`, in one conversation or in all (None).

        When waiting for all conversations, only events that the user may see count. When waiting for one, the caller
        must check access again and read the events, because the conversation may now belong to another user or be
        damaged.
        """
        once = _Once(user if conversation is None else None)
        subscription = Subscription("", once, "events", conversation, after)
        self.add(subscription)
        self.catch_up(subscription)
        try:
            await once.pushed
        finally:
            if subscription.phase is not Phase.OVER:
                self.remove(subscription)

    # pushes

    def publish(self, lines: Sequence[PublishedEvent], head: int, erased: Collection[str] = ()) -> None:
        """Push one commit to its subscribers; `head` is the position of its last event.

        Earlier events of the `erased` conversations are no longer pushed.
        """
        before, self.head = self.head, head
        if erased:
            self._recent = deque(commit._replace(lines=_blank(erased, commit.lines)) for commit in self._recent)
        self._recent.append(_Commit(before + 1, head, lines, size := sum(map(len, map(_wire, lines)))))
        self._recent_bytes += size
        while self._recent_bytes > self._recent_limit and len(self._recent) > 1:
            self._recent_bytes -= self._recent.popleft().size
        if not self._groups:
            return
        by_conversation: dict[str, list[PublishedEvent]] = {}
        for line in lines:
            by_conversation.setdefault(line.conversation, []).append(line)
        self._delivering = True
        for conversation, group_lines in (*by_conversation.items(), (None, lines)):
            if (group := self._groups.get(conversation)) is not None:
                self._deliver(group, group_lines, before)
        self._delivering = False
        self._cache = {}
        pausing, self._pausing = self._pausing, []
        for subscription in pausing:
            self._fall_behind(subscription, self.head)

    def _deliver(self, group: _Group, lines: Sequence[PublishedEvent], before: int) -> None:
        joined = b",".join(map(_wire, lines))
        behind = list(group.individual)
        if len(joined) > self._chunk:
            behind += [subscription for live in group.live.values() for subscription in live]
            for subscription in behind:
                self._fall_behind(subscription, before)
        for (id, _), live in group.live.items():
            framed = next(iter(live)).sink.framed(_EVENTS % (id.encode(), joined))
            for push in live.values():
                push(framed)
        for subscription in behind:
            if subscription.shown is not None:
                _note_stale(subscription, lines, before, self.head)
            self._fall_behind(subscription, before)
            if len(joined) <= self._chunk:
                self.catch_up(subscription)
            elif subscription.phase is Phase.BEHIND:
                self._fetch(subscription, self._take_turn)

    # catching up

    def catch_up(self, subscription: Subscription) -> None:
        """Push until the connection applies backpressure or the subscription is live."""
        if subscription.shown is not None:
            self._catch_up_view(subscription, subscription.shown)
            return
        while subscription.may_push:
            if subscription.position >= self.head:
                self._go_live(subscription)
            elif self._recent and subscription.position + 1 >= self._recent[0].first:
                self._from_memory(subscription)
            else:
                self._fetch(subscription, self._from_log)

    def catch_up_stale(self) -> None:
        """Let subscriptions catch up if they waited for a list whose changes were rolled back."""
        for group in self._groups.values():
            for subscription in group.individual:
                if subscription.stale:
                    self.catch_up(subscription)

    def _from_memory(self, subscription: Subscription) -> None:
        """Push one piece of whole calls from memory."""
        wires, size = list[bytes](), 0
        missing = takewhile(lambda commit: commit.last > subscription.position, reversed(self._recent))
        for commit in reversed(list(missing)):
            for seq, line in enumerate(commit.lines, commit.first):
                if seq <= subscription.position:
                    continue
                is_followed = line.wire and subscription.conversation in (None, line.conversation)
                if is_followed and _may_see(subscription, line.user):
                    wire = add_about(line.wire, line.title, line.list) if subscription.about else line.wire
                    wires.append(wire)
                    size += len(wire)
                if size >= self._chunk and line.remaining == 0:
                    return self._push(subscription, wires, seq)
        return self._push(subscription, wires, self.head)

    def _fetch(self, subscription: Subscription, fetch: Callable[[Subscription], Coroutine[Any, Any, None]]) -> None:
        """Run `fetch` in the background, and then let the subscription catch up."""
        subscription.to(Phase.FETCHING)
        self._spawn(self._run_fetch(subscription, fetch))

    async def _run_fetch(
        self, subscription: Subscription, fetch: Callable[[Subscription], Coroutine[Any, Any, None]]
    ) -> None:
        try:
            await fetch(subscription)
        except Damaged as damaged:
            self._end(subscription, damage_of(damaged), subscription.position)
        except Gap as gap:
            self._end(subscription, gap_of(gap), gap.first - 1)
        finally:
            if subscription.phase is Phase.FETCHING:
                subscription.to(Phase.BEHIND)
        self.catch_up(subscription)

    async def _from_log(self, subscription: Subscription) -> None:
        """Push pieces from one page of the log, until the connection applies backpressure."""
        wires, size = list[bytes](), 0
        stored, seq, visible = await self._read(subscription, subscription.position)
        shown = [event for event in stored if event.seq in visible]
        titled = zip(shown, await self._titles.add(shown), strict=True) if subscription.about else ()
        wire_of = {event.seq: wire for event, wire in titled}
        for index, event in enumerate(stored):
            if event.seq in visible:
                wire = wire_of.get(event.seq) or event.wire
                wires.append(wire)
                size += len(wire)
            if size >= self._chunk and (index + 1 == len(stored) or not event.remaining):
                self._push(subscription, wires, event.seq)
                wires, size = [], 0
                if subscription.sink.paused:
                    return
        self._push(subscription, wires, seq)

    async def _read(self, subscription: Subscription, after: int) -> tuple[list[Stored], int, set[int]]:
        """Read the next events from the log. Return them, the position to continue from, and the visible positions.

        Events that are durable but not published yet are left out. Otherwise they would be pushed twice.
        """
        name, head = subscription.conversation, self.head
        stored = await self._log.read(after, 1 << 30, conversation=name, max_bytes=1 << 18)
        visible = await self._access.visible(subscription.sink.user, stored)
        stored = [event for event in stored if event.seq <= self.head]
        return stored, stored[-1].seq if stored else head, {event.seq for event in visible}

    def _end(self, subscription: Subscription, rejection: Rejection, position: int) -> None:
        """End a subscription, and send the reason and the position to continue from."""
        if subscription.phase is not Phase.OVER:
            self.remove(subscription)
            error = msgspec.to_builtins(error_object(rejection))
            push = EndPush(subscription=subscription.id, error=error, next=position)
            subscription.sink.ended(subscription.id, notification("end", msgspec.json.encode(push)))

    def _push(self, subscription: Subscription, wires: Iterable[bytes], seq: int) -> None:
        subscription.position = max(seq, subscription.position)
        if subscription.phase is not Phase.OVER and (joined := b",".join(wires)):
            subscription.sink.push(_EVENTS % (subscription.id.encode(), joined))

    def _catch_up_view(self, subscription: Subscription, shown: View) -> None:
        """Push the newest state of each changed conversation, until the connection applies backpressure."""
        while subscription.may_push:
            name = next(iter(subscription.stale), None)
            loaded = None if name is None else self._conversations.loaded.get(name)
            if subscription.conversation is None and subscription.known < self.head:
                self._fetch(subscription, self._note_stale_from_log)
            elif name is None:
                subscription.position = self.head
                self._go_live(subscription)
            elif loaded is None or loaded.dirty:
                self._fetch(subscription, self._load_list)
            else:
                push, more = None, False
                if not loaded.state.exists or _may_see(subscription, loaded.state.user):
                    position = subscription.known if len(subscription.stale) == 1 else subscription.position
                    cache = self._cache if self._delivering else {}
                    push, more = shown.push(subscription.id, loaded, position, cache)
                if not more:
                    del subscription.stale[name]
                if push is not None:
                    subscription.sink.push(push)
                if more and subscription.phase is Phase.BEHIND:
                    self._fetch(subscription, self._take_turn)

    async def _note_stale_from_log(self, subscription: Subscription) -> None:
        stored, seq, visible = await self._read(subscription, subscription.known)
        subscription.stale.update({event.conversation: None for event in stored if event.seq in visible})
        subscription.known = max(seq, subscription.known)

    async def _take_turn(self, _subscription: Subscription) -> None:
        """Let other work run between large pushes, so that each iteration of the event loop sends one."""
        async with self._turn:
            await asyncio.sleep(0)

    async def _load_list(self, subscription: Subscription) -> None:
        for name in list(subscription.stale)[:1]:
            await self._conversations.durable(name)


_wire = attrgetter("wire")


def _shows_lists(subscription: Subscription) -> bool:
    """Return True if a subscription shows tasks or lists rather than events or presence."""
    return subscription.view in ("list", "rows", "board")


def _blank(erased: Collection[str], lines: Sequence[PublishedEvent]) -> list[PublishedEvent]:
    """Return a commit's events. Those of erased conversations are emptied, so that the rest keep their positions."""
    return [
        line if line.conversation not in erased else msgspec.structs.replace(line, wire=b"", title="") for line in lines
    ]


def _may_see(subscription: Subscription, user: str) -> bool:
    """Return True if the subscriber may see this user's conversations."""
    return subscription.sink.user in (None, user)


def _note_stale(subscription: Subscription, lines: Sequence[PublishedEvent], before: int, head: int) -> None:
    subscription.stale.update({line.conversation: None for line in lines if _may_see(subscription, line.user)})
    if subscription.known >= before:
        subscription.known = head


_EVENTS = notification("events", b'{"subscription":"%b","events":[%b]}')
