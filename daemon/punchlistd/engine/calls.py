"""Calls on their way through the writer: who asked, what, how far it has come, and where the answer goes.

A write is in one stage at a time, and `NEXT` is the table of its life:

    ─▶ QUEUED ─▶ DECIDED ──────────────▶ ANSWERED
        │ ▲ ├──▶ PARKED ───▶ WAITING ──▶ │
        │ │ │                   │        │
        │ ├─┼───────────────────┘        │
        │ ├─┼──▶ REPLAYING ────────────▶ │
        │ ├─┴──▶ READING_PAST ─────────▶ │
        │ └────▶ POSTING ──────────────▶ │
        └──────────────────────────────▶ ┘

What is decided or parked becomes visible only with the commit of the transaction that it is in. So does the way into
the other stages: a write is replayed, or looked back for, behind everything that was decided before it. A change of a
list that machines share is posted by its lane; what was posted comes back as an `Arrival`, decided already.
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
"""The actor of a connection that has not introduced itself."""


class Holder(Protocol):
    """A connection as the holder of claims."""

    @property
    def heard_at(self) -> float:
        """When it was heard of last, in seconds of the monotonic clock."""
        ...

    @property
    def pid(self) -> int: ...

    @property
    def is_gone(self) -> bool: ...

    @property
    def is_agents(self) -> bool: ...

    @property
    def unsent_bytes(self) -> int:
        """How many bytes wait for its peer to take them."""
        ...


class Caller(Protocol):
    """What the engine needs to know of a connection."""

    @property
    def actor(self) -> str:
        """Who is recorded where a call names nobody."""
        ...

    @property
    def user(self) -> str | None: ...

    @property
    def confirm(self) -> bool:
        """Whether destructive calls are two-step."""
        ...

    @property
    def holder(self) -> Holder | None:
        """The connection that holds what this caller claims, if it is one."""
        ...

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Put a reply (an encoded result or a refusal) into the outgoing bytes; nothing for a notification."""
        ...

    def flush(self) -> None: ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Enter it to make a long answer: one at a time for each connection, and not before its peer took the last."""
        ...

    def admit(self, outcome: Outcome) -> Outcome:
        """The answer to a read, or the refusal of a long one that the daemon has no room for."""
        ...


class Nobody:
    """On whose behalf the daemon itself acts: sees everything, is told nothing."""

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
    """How far a write has come."""

    QUEUED = auto()
    """It waits for its turn."""
    DECIDED = auto()
    """It has its outcome, and waits for the commit."""
    PARKED = auto()
    """It is a claim that found nothing, and waits for the commit of what it did not find."""
    WAITING = auto()
    """It is a claim that waits for a task, or for its time to end."""
    REPLAYING = auto()
    """It has a key that the log knows: its first answer is rebuilt."""
    READING_PAST = auto()
    """It is an undo that is worked out: for the first time, or anew since its list has moved."""
    POSTING = auto()
    """Its list is shared with other machines: its lane decides it and posts what follows."""
    ANSWERED = auto()
    """It is over."""


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
"""Where a write may go from each stage."""


@final
class Write(msgspec.Struct, eq=False):
    """A mutation on its way, asked by `caller` under the raw JSON request `id` (None: a notification).

    `loaded` is the conversation that it changes, found when its turn comes. `outcome` is its answer once decided; it is
    given only after the commit. `call` is the fingerprint of a call with a key, and `asked` the same with the name by
    which the conversation was called, as older logs have it; `fresh` says that the log was asked and the key is new.
    `alone` says that it takes long, so that it is a transaction of its own, and `let_others` how often what
    others asked for before its turn came has gone first.
    `past` is what an undo has read of the history before its turn, `depth` how far it looks back (0: to the stored
    snapshot), and `tries` how often it was worked out. `claims` are the tasks and fences that a claim got, and
    `unwanted` is its answer if it was given up meanwhile.
    """

    caller: Caller
    id: bytes | None
    method: Method
    params: Mutation
    command: Command
    stage: Stage = Stage.QUEUED
    loaded: LoadedConversation | None = None
    call: str = ""
    asked: str = ""
    outcome: Outcome | None = None
    fresh: bool = False
    alone: bool = False
    let_others: int = 0
    past: Lookback | None = None
    depth: int | None = 0
    tries: int = 0
    claims: tuple[tuple[str, int], ...] = ()
    unwanted: Rejection | None = None

    def to(self, stage: Stage) -> None:
        assert stage in NEXT[self.stage], f"{self.method.name} can't go from {self.stage.name} to {stage.name}"
        self.stage = stage

    def answer(self, outcome: Outcome) -> None:
        """Answer the caller, once."""
        self.to(Stage.ANSWERED)
        self.caller.answer(self.id, outcome)

    def refuse(self, rejection: Rejection) -> None:
        """Answer the caller out of turn."""
        self.answer(rejection)
        self.caller.flush()


StateQuery = Callable[[Any, LoadedConversation, int], Outcome]
"""Answers a read from the params, one conversation's present state and the log's position."""


@final
class Read(msgspec.Struct, eq=False):
    """A read of one conversation's state that takes its turn among the writes, those that a lane posts included.

    It sees the writes of its own connection before it and none after it. It was asked by `caller` under the raw JSON
    request `id`, and `query` answers it. `later` does it otherwise when too many bytes of answers wait for the caller
    to take them: the answer may then show changes that came behind it. `loaded` is the conversation that it is about,
    found when its turn comes, and `lane` the one whose writes of the same connection come first.
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
        long = type(outcome) is Pieces or (type(outcome) is bytes and len(outcome) > LONG_BYTES)
        self.caller.answer(self.id, self.caller.admit(outcome) if long else outcome)

    def refuse(self, rejection: Rejection) -> None:
        self.answer(rejection)
        self.caller.flush()


@final
class Barrier(msgspec.Struct, eq=False):
    """A place among the writes. `done` once everything before it is published: None, or why it never is."""

    done: Future[Rejection | None]
    params: None = None

    def reached(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def refuse(self, rejection: Rejection) -> None:
        """What is before it may never be published."""
        if not self.done.done():
            self.done.set_result(rejection)


class Step(msgspec.Struct, eq=False):
    """One group of events that a post brought or, without events, a call that made none.

    `write` is the call of this daemon that it answers, `refusal` its answer if it is one; `parked` says that it is a
    claim which found nothing and waits.
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
    """What was decided for a shared list: a post's groups in their order, or what the present state answers.

    `first` is the version of its first event, `behind` the place in the shared log that it follows, and `place` the one
    that it leads to. `alone` is as in `Write`. `arrived` is called once: with None when it is published, else with the
    reason why it is not.
    """

    conversation: str
    first: int
    behind: Place
    place: Place
    steps: list[Step]
    arrived: Callable[[Rejection | None], None]
    loaded: LoadedConversation | None = None
    refusal: Rejection | None = None
    alone: bool = False
    params: None = None

    @property
    def is_alone(self) -> bool:
        """Whether it takes long or changes where names lead."""
        return self.alone or any(type(event) in _LEADING for step in self.steps for event in step.events)

    def refuse(self, rejection: Rejection) -> None:
        self.arrived(rejection)


_LEADING = frozenset({ConversationConfigured, ConversationDeleted})

Item = Write | Read | Barrier | Arrival


def stamp(caller: Caller, params: Mutation) -> Command:
    """Turn a mutation into a command: by whom, when, and with fresh ids."""
    message = f"m{os.urandom(12).hex()}" if type(params) is MessageAppend and params.message is None else ""
    return Command(params, now_ms(), params.actor or caller.actor, caller.user, message)
