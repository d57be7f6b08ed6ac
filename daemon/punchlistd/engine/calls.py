"""Calls in the writer's pipeline: caller, parameters, stage and outcome.

A write is in one stage at a time. `NEXT` is the table of transitions:

    ─▶ QUEUED ─▶ DECIDED ──────────────▶ ANSWERED
        │ ▲ ├──▶ PARKED ───▶ WAITING ──▶ │
        │ │ │                   │        │
        │ ├─┼───────────────────┘        │
        │ ├─┼──▶ REPLAYING ────────────▶ │
        │ ├─┴──▶ READING_PAST ─────────▶ │
        │ └────▶ POSTING ──────────────▶ │
        └──────────────────────────────▶ ┘

Decided and parked writes become visible with the commit of their transaction. Replaying, reading the past and posting
also start after that commit, so that they see every call that was decided earlier. A change to a shared list is posted
by the list's lane. The post comes back as an `Arrival`, whose calls are already decided.
"""

import os
from asyncio import Future
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from enum import IntEnum, auto
from typing import Any, Protocol, final

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured, ConversationDeleted, KnownEvent
from punchlist_schemas.methods import Method
from punchlist_schemas.params import MessageAppend, Mutation
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.undo.lookback import Lookback
from punchlistd.engine.lists.loaded import Lane, LoadedConversation, Place
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces
from punchlistd.store.port import Side

ANONYMOUS = "anonymous"
"""The actor of a connection that has not identified itself."""


class Holder(Protocol):
    """The part of a connection that claims use."""

    @property
    def last_seen_at(self) -> float:
        """Monotonic time of its last activity, in seconds."""
        ...

    @property
    def pid(self) -> int: ...

    @property
    def is_gone(self) -> bool: ...

    @property
    def is_agents(self) -> bool: ...

    @property
    def unsent_bytes(self) -> int:
        """Number of buffered bytes that the peer has not read yet."""
        ...


class Caller(Protocol):
    """The part of a connection that the engine uses."""

    @property
    def actor(self) -> str:
        """The actor of calls that don't name one."""
        ...

    @property
    def user(self) -> str | None: ...

    @property
    def confirm(self) -> bool:
        """Whether destructive calls need confirmation."""
        ...

    @property
    def holder(self) -> Holder | None:
        """The connection that holds this caller's claims, or None for the daemon itself."""
        ...

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Buffer the response to a request. A notification, whose `id` is None, gets no response."""
        ...

    def flush(self) -> None: ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager for building a long response.

        One is built at a time, and only after the peer has read the previous one.
        """
        ...

    def admit(self, outcome: Outcome) -> Outcome:
        """Return a read's outcome, or a rejection if there isn't enough memory left for it."""
        ...


class DaemonCaller:
    """The daemon as the caller of its own calls. It sees all lists and discards responses."""

    actor = "punchlistd"
    user = None
    confirm = False
    holder = None

    def answer(self, id: bytes | None, outcome: Outcome) -> None: ...

    def flush(self) -> None: ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def admit(self, outcome: Outcome) -> Outcome:
        return outcome


class Stage(IntEnum):
    """Lifecycle stage of a write."""

    QUEUED = auto()
    """Waiting for its turn."""
    DECIDED = auto()
    """Decided; waiting for the commit."""
    PARKED = auto()
    """A claim that found no task and waits for the commit of the state on which it was decided."""
    WAITING = auto()
    """A claim waiting for a task or its timeout."""
    REPLAYING = auto()
    """A repeated call whose original response is being rebuilt from the log."""
    READING_PAST = auto()
    """An undo that is being computed, or recomputed because its list has changed since."""
    POSTING = auto()
    """A write to a shared list, which the lane decides and posts."""
    ANSWERED = auto()
    """Answered."""


NEXT: dict[Stage, frozenset[Stage]] = {
    Stage.QUEUED: frozenset(Stage) - {Stage.QUEUED, Stage.WAITING},
    Stage.DECIDED: frozenset({Stage.ANSWERED}),
    Stage.PARKED: frozenset({Stage.WAITING, Stage.ANSWERED}),
    Stage.WAITING: frozenset({Stage.QUEUED, Stage.ANSWERED}),
    Stage.REPLAYING: frozenset({Stage.QUEUED, Stage.ANSWERED}),
    Stage.READING_PAST: frozenset({Stage.QUEUED, Stage.ANSWERED}),
    Stage.POSTING: frozenset({Stage.QUEUED, Stage.DECIDED, Stage.PARKED, Stage.ANSWERED}),
    Stage.ANSWERED: frozenset(),
}
"""The stages that may follow each stage."""


@final
class Write(msgspec.Struct, eq=False):
    """A call that changes a list.

    Attributes:
        caller: The sender, which gets the response.
        id: Raw JSON of the request id; None for a notification.
        loaded: The conversation it changes, assigned when its turn comes.
        fingerprint: Hash of method and params, if the call has a key. See `idempotency`.
        legacy_fingerprint: The same hash, but computed with the conversation's name as spelled in the call. Older logs
            contain this one.
        outcome: Its response once decided, sent after the commit.
        key_is_new: Whether the log has been searched and does not contain the key.
        is_long: Whether it has so many parts that it needs a transaction of its own.
        times_yielded: How many times the call has yielded to calls of other connections.
        lookback: The history that an undo read before its turn.
        depth: How many calls back an undo reads. With 0, it starts at a cached or stored state. None means all calls.
        attempts: How many times the undo has been computed.
        claims: The tasks and fences that a claim got.
        cancellation: The response to a claim that its caller cancelled before the commit.
    """

    caller: Caller
    id: bytes | None
    method: Method
    params: Mutation
    command: Command
    stage: Stage = Stage.QUEUED
    loaded: LoadedConversation | None = None
    fingerprint: str = ""
    legacy_fingerprint: str = ""
    outcome: Outcome | None = None
    key_is_new: bool = False
    is_long: bool = False
    times_yielded: int = 0
    lookback: Lookback | None = None
    depth: int | None = 0
    attempts: int = 0
    claims: tuple[tuple[str, int], ...] = ()
    cancellation: Rejection | None = None

    def to(self, stage: Stage) -> None:
        assert stage in NEXT[self.stage], f"{self.method.name} can't go from {self.stage.name} to {stage.name}"
        self.stage = stage

    def answer(self, outcome: Outcome) -> None:
        self.to(Stage.ANSWERED)
        self.caller.answer(self.id, outcome)

    def refuse(self, rejection: Rejection) -> None:
        """Respond with a rejection, and send it immediately."""
        self.answer(rejection)
        self.caller.flush()


StateQuery = Callable[[Any, LoadedConversation, int], Outcome]
"""Computes a read's outcome from its params, one conversation's current state and the log's head."""


@final
class Read(msgspec.Struct, eq=False):
    """A read of one conversation's state. It is ordered relative to writes, including posted ones.

    A read sees the earlier writes of its connection and no later ones.

    Attributes:
        caller: The sender, which gets the response.
        id: Raw JSON of the request id; None for a notification.
        query: Computes the response.
        later: Called instead of `query` if too many bytes of responses are waiting to be sent. The response may then
            show later changes.
        loaded: The conversation it reads, assigned when its turn comes.
        lane: The lane that may hold earlier writes of its connection.
    """

    caller: Caller
    id: bytes | None
    method: Method
    params: Any
    query: StateQuery
    later: Callable[[], None]
    loaded: LoadedConversation | None = None
    outcome: Outcome | None = None
    lane: Lane | None = None

    def answer(self, outcome: Outcome) -> None:
        is_long = type(outcome) is Pieces or (type(outcome) is bytes and len(outcome) > LONG_BYTES)
        self.caller.answer(self.id, self.caller.admit(outcome) if is_long else outcome)

    def refuse(self, rejection: Rejection) -> None:
        self.answer(rejection)
        self.caller.flush()


@final
class Barrier(msgspec.Struct, eq=False):
    """A marker in the queue. `done` resolves to None once all earlier items are published, or else to a rejection."""

    done: Future[Rejection | None]
    params: None = None

    def reached(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def refuse(self, rejection: Rejection) -> None:
        if not self.done.done():
            self.done.set_result(rejection)


class Step(msgspec.Struct, eq=False):
    """One group of events in a post, or a call that produced none.

    Attributes:
        write: This daemon's call that the group belongs to, if any.
        refusal: The call's rejection, if any.
        parked: Whether the call is a claim that found no task and waits.
    """

    events: tuple[KnownEvent, ...]
    at: int
    actor: str
    side: Side | None
    decision: Decision
    write: Write | None = None
    refusal: Rejection | None = None
    parked: bool = False


@final
class Arrival(msgspec.Struct, eq=False):
    """The decided groups of a post to a shared list, in order.

    An arrival contains no events if none of its calls changes the current state.

    Attributes:
        first: Version of its first event.
        previous: Place in the shared log before the post.
        place: Place in the shared log after the post.
        arrived: Called once: with None when the post is published, or with the reason if it can't be published.
        is_long: As in `Write`.
    """

    conversation: str
    first: int
    previous: Place
    place: Place
    steps: list[Step]
    arrived: Callable[[Rejection | None], None]
    loaded: LoadedConversation | None = None
    refusal: Rejection | None = None
    is_long: bool = False
    params: None = None

    @property
    def is_exclusive(self) -> bool:
        """Whether the post is long or changes name resolution."""
        return self.is_long or any(type(event) in _RESOLVING for step in self.steps for event in step.events)

    def refuse(self, rejection: Rejection) -> None:
        self.arrived(rejection)


_RESOLVING = frozenset({ConversationConfigured, ConversationDeleted})

Item = Write | Read | Barrier | Arrival


def stamp(caller: Caller, params: Mutation) -> Command:
    """Turn a mutation into a command with an actor, a time and new ids."""
    message = f"m{os.urandom(12).hex()}" if type(params) is MessageAppend and params.message is None else ""
    return Command(params, now_ms(), params.actor or caller.actor, caller.user, message)
