"""A call on its way through the writer: who asked, what, and where the answer goes."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, final

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import Method
from punchlist_schemas.params import Mutation
from punchlistd.domain.commands import Command
from punchlistd.domain.lookback import Lookback

if TYPE_CHECKING:
    from punchlistd.engine.registry import Open


@final
class Pieces(msgspec.Struct, frozen=True, gc=False):
    """JSON in several pieces: the first and the last are short, the others may be shared by all who are sent them."""

    parts: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """The length of all pieces together."""
        return sum(map(len, self.parts))


Reply = bytes | Pieces
"""A result as JSON."""

Outcome = Reply | Rejection


REPLY_BYTES = 4 << 20
"""A connection for which replies of so many bytes wait already has no further read answered beside them."""


def size_of(outcome: Outcome) -> int:
    """About how many bytes a result has; a refusal counts as none."""
    if type(outcome) is Pieces:
        return outcome.size
    return len(outcome) if type(outcome) is bytes else 0


class Holder(Protocol):
    """A connection as the holder of claims."""

    @property
    def heard_at(self) -> float:
        """When it was heard of last, in seconds of the monotonic clock."""
        ...

    @property
    def pid(self) -> int:
        """The process at its other end."""
        ...

    @property
    def is_gone(self) -> bool:
        """Whether it is closed."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """How many bytes wait for its peer to take them."""
        ...


INTERNAL_ERROR = Rejection("internal_error", "That is a fault of ours; the daemon's log has the details.")


class Caller(Protocol):
    """What the engine needs to know of a connection."""

    @property
    def actor(self) -> str:
        """Who is recorded where a call names nobody."""
        ...

    @property
    def user(self) -> str | None:
        """The user that the connection is bound to."""
        ...

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

    def flush(self) -> None:
        """Hand the outgoing bytes to the system."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Enter it to make a long answer: one at a time for each connection, and not before its peer took the last."""
        ...


class Nobody:
    """On whose behalf the daemon itself acts: sees everything, is told nothing."""

    actor = "punchlistd"
    user = None
    confirm = False
    holder = None

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Nobody listens."""

    def flush(self) -> None:
        """Nothing to hand on."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """It is always its turn."""
        return nullcontext()


@final
class Write(msgspec.Struct, eq=False):
    """A mutation waiting for its turn, asked by `caller` under the raw JSON request `id` (None: a notification).

    `opened` is the conversation that it changes, found when its turn comes. `outcome` is its answer once decided; it is
    given only after the commit, and `done` says that it was. `call` is the fingerprint of a call with a key, and
    `asked` the same with the name by which the conversation was called, as older logs have it; `repeat` marks a key
    that the log has seen before this batch: the answer is rebuilt from the log. `fresh` says that the log
    was asked and the key is new. `past` is what an undo has read of the history before its turn, `depth` how far it
    looks back (0: to the stored snapshot), and `again` says that this was not far enough. `parked` marks a claim that
    found nothing and waits; `claims` are the tasks and fences that a claim got, and `unwanted` is its answer if it was
    given up meanwhile.
    """

    caller: Caller
    id: bytes | None
    method: Method
    params: Mutation
    command: Command
    opened: "Open | None" = None
    call: str = ""
    asked: str = ""
    outcome: Outcome | None = None
    done: bool = False
    repeat: bool = False
    fresh: bool = False
    parked: bool = False
    past: Lookback | None = None
    depth: int | None = 0
    again: bool = False
    claims: tuple[tuple[str, int], ...] = ()
    unwanted: Rejection | None = None

    def answer(self, outcome: Outcome) -> None:
        """Answer the caller, once."""
        self.done = True
        self.caller.answer(self.id, outcome)


@final
class Read(msgspec.Struct, eq=False):
    """A read that takes its turn in the writer, to see the writes of its own connection before it and none after it.

    It was asked by `caller` under the raw JSON request `id`. `run` does what can't be answered from the state alone,
    once everything before it is durable; `later` does the rest when too many bytes of answers wait for the caller to
    take them: its answer may then show changes that came behind it. `opened` is the conversation that it is about,
    found when its turn comes.
    """

    caller: Caller
    id: bytes | None
    method: Method
    params: Any
    run: Callable[[], None] | None = None
    later: Callable[[], None] | None = None
    opened: "Open | None" = None
    outcome: Outcome | None = None

    def answer(self, outcome: Outcome) -> None:
        """Answer the caller."""
        self.caller.answer(self.id, outcome)


Item = Write | Read


def fingerprint(method: str, params: Mutation) -> str:
    """What must be equal for a repeated idempotency key: the method and everything but key and confirmation."""
    bare = msgspec.structs.replace(params, key=None)
    if getattr(bare, "confirm", None) is not None:
        bare = msgspec.structs.replace(bare, confirm=None)
    text = method.encode() + msgspec.json.encode(bare, order="deterministic")
    return blake2b(text, digest_size=8).hexdigest()


def key_conflict(key: str) -> Rejection:
    """The refusal of a key that was used for another call."""
    return Rejection("key_conflict", "This idempotency key was used for another call. Use a new one.", {"key": key})
