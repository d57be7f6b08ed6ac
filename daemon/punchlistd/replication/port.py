"""The port of the shared log: what daemons on several machines ask of the engine that orders their posts.

A space is one place that machines share; it has a log for each shared list. A post is bytes that stand in a list's log
for ever, at a position. Positions of one list only grow, and may leave numbers out. Whoever posts names the position
that he believes to be the last one, and is refused if another post is there: this compare-and-set is all that
exclusion rests on. An adapter knows nothing of tasks, and never raises anything but the errors named here.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

import msgspec

from punchlist_schemas.things import MAX_INTEGER

LinkState = Literal["connecting", "up", "down", "refused"]
"""`up` promises that posts can be read; `refused` that nothing will change before somebody acts on the reason."""


class Posted(msgspec.Struct, frozen=True, gc=False):
    """A post in its place.

    `before` is the position of the post before it in the same list, 0 for the first one: a reader who has not seen that
    one has missed something. `nonce` is what its poster named it. `at` is when the engine stored it, in milliseconds
    since 1970, 0 where that is unknown.

    `fault` says why no daemon of punchlist can have made it. Of such a post only the position is certain, and `body` is
    empty.
    """

    list: str
    position: int
    before: int
    nonce: str
    body: bytes
    at: int = 0
    fault: str = ""


class Link(msgspec.Struct, frozen=True):
    """How the way to a space stands.

    `kind` names the reason as a short word for programs (`unreachable`, `no_quorum`, `server_too_old`, `no_tls`, …),
    `reason` is a sentence that says what to do; both are "" while it is up. `since` is the wall clock's time in
    milliseconds at which this state began. `may_post` is False for a member that may only read.
    """

    state: LinkState = "connecting"
    kind: str = ""
    reason: str = ""
    since: int = 0
    server: str = ""
    server_version: str = ""
    round_trip_ms: float = 0.0
    may_post: bool = True


Version = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
_MEMBER_PATTERN = r"^[A-Za-z0-9_-]{1,64}\Z"
MemberId = Annotated[str, msgspec.Meta(pattern=_MEMBER_PATTERN)]


def is_member_id(text: str) -> bool:
    return re.match(_MEMBER_PATTERN, text) is not None


RoundTrip = Annotated[float, msgspec.Meta(ge=0, le=60)]
"""Seconds that a post takes: more than that was forged."""


class Beat(msgspec.Struct, frozen=True):
    """A sign of life of a member: whatever is claimed through it in these lists lasts.

    `stuck` tells how far it has come in lists that the space has lost or that do not go on, by their versions.
    `follows` are the lists that it follows; a sign of life without them says nothing about that.
    """

    member: MemberId
    lists: tuple[str, ...] = ()
    stuck: dict[str, Version] = {}
    follows: tuple[str, ...] = ()


class SharedLogError(Exception):
    """Why a shared log did not do what it was asked; the message is a sentence for people."""


class Conflict(SharedLogError):
    """The engine says that another post follows the expected position.

    A deposed leader may say so wrongly, even of a post that its successor takes: only who stands there makes it
    certain.
    """


class OutcomeUnknown(SharedLogError):
    """The post may be in the log, or may still come into it."""


class Unreachable(SharedLogError):
    """The engine can't be asked; a post that was refused with this is not in the log, and never will be."""


class Garbled(Unreachable):
    """The engine answered with something that this daemon can't read."""


class Forbidden(SharedLogError):
    """This member may not do that, however often it tries."""


class TooLarge(SharedLogError):
    """A post is larger than the engine takes; it is not in the log.

    Attributes:
        size: Bytes of the post.
        maximum: Bytes that the engine takes.
    """

    def __init__(self, size: int, maximum: int) -> None:
        super().__init__(f"The change has {size} bytes and the space takes {maximum} at once: make smaller ones.")
        self.size = size
        self.maximum = maximum


class Listener(Protocol):
    """Who hears of what happens in a space. Its methods return at once, and may be called in any order."""

    def on_post(self, post: Posted) -> None:
        """A post was made, by whomever. It may come twice, late, or never."""
        ...

    def on_link_change(self, link: Link) -> None: ...

    def on_beat(self, beat: Beat) -> None: ...

    def on_turn_request(self, list: str, member: str, round_trip_s: float) -> None:
        """A member, this one perhaps, asks for a turn to post to a list; its posts take so long."""
        ...


class SharedLog(Protocol):
    """The logs of one space, as one member sees them.

    Every call but `run` may raise Unreachable and Forbidden. None takes longer than a few seconds.
    """

    @property
    def member(self) -> str:
        """Who this is: `MACHINE_ID`, of letters, digits, `-` and `_`; the id is the daemon's own."""
        ...

    @property
    def link(self) -> Link: ...

    @property
    def round_trip_s(self) -> float:
        """About how long a post takes, in seconds."""
        ...

    async def run(self, listener: Listener) -> None:
        """Keep the way open, and the listener informed, until cancelled.

        `link_changed` comes before the first post is heard of, and with `up` only once it is known whether this member
        may read and may post.
        """
        ...

    def hurry(self) -> None:
        """Try a way that is away again soon: somebody was refused because of it."""
        ...

    async def lists(self) -> list[str]:
        """The lists of the space, in the order of their names."""
        ...

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        """Post once, if `expected` is still the position of the list's last post (0: it has none); the new position.

        What is returned is on a quorum of disks.

        Raises:
            Conflict: Another post is said to follow.
            OutcomeUnknown: It may be in.
            TooLarge: It is not in.
        """
        ...

    async def read(self, list: str, after: int, most: int | None = None) -> list[Posted]:
        """All posts behind a position up to now, or the first `most` of them, in order; nothing where there is no such
        list."""
        ...

    async def last(self, list: str) -> int:
        """The position of the last post, 0 where there is none. A deposed leader may know only an older one."""
        ...

    async def is_current(self, list: str, position: int) -> bool:
        """Whether this is the position of the last post: a quorum says so, as of a moment after it was asked."""
        ...

    async def beat(self, beat: Beat) -> None:
        """Give a sign of life; it may be lost."""
        ...

    async def request_turn(self, list: str) -> None:
        """Ask for a turn; the listeners of all members hear of it in one order, this one's too, unless it is lost."""
        ...

    async def erase(self, list: str, before: int) -> None:
        """Take the bodies of all posts before a position off the engine's disks; repeating it is harmless."""
        ...

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        """Remove these posts, and none that has got the position of one of them; repeating it is harmless."""
        ...
