"""Port of the shared log: the interface to the engine that orders the posts of several machines.

A space contains one log for each shared list. A post is an immutable byte string at a position in a list's log.
Positions increase and may have gaps. A post names the position that its member believes to be the last, and is rejected
if another post follows that position. Mutual exclusion depends only on this compare-and-set. Adapters don't depend on
tasks, and only raise the errors defined here.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

import msgspec

from punchlist_schemas.things import MAX_INTEGER

LinkState = Literal["connecting", "up", "down", "refused"]
"""`up` means that posts can be read, `refused` that retrying is useless until a person has fixed the cause."""


class Posted(msgspec.Struct, frozen=True, gc=False):
    """A post in the log.

    Attributes:
        before: Position of the list's previous post; 0 for the first. A reader that lacks that post has missed posts.
        nonce: ID chosen by the member that posted it.
        at: Time when the engine stored the post, in milliseconds since 1970; 0 if unknown.
        fault: Why no punchlist daemon can have created the post, else empty. If set, `body` is empty and only the
            position is reliable.
    """

    list: str
    position: int
    before: int
    nonce: str
    body: bytes
    at: int = 0
    fault: str = ""


class Link(msgspec.Struct, frozen=True):
    """State of the connection to a space.

    Attributes:
        kind: Machine-readable reason (`unreachable`, `no_quorum`, `server_too_old`, `no_tls`, …); empty while up.
        reason: Human-readable reason, with advice on what to do; empty while up.
        since: Time when this state began, in milliseconds since 1970.
        may_post: Whether the member may post; otherwise it may only read.
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
"""Duration of a post, in seconds. Values above 60 are rejected, because only a forged message can contain them."""


class Beat(msgspec.Struct, frozen=True):
    """Heartbeat of a member.

    Attributes:
        lists: Lists in which the heartbeat renews all claims made through the member.
        stuck: The member's versions of the lists that it can no longer follow.
        follows: Lists that the member follows; empty if the heartbeat doesn't report them.
    """

    member: MemberId
    lists: tuple[str, ...] = ()
    stuck: dict[str, Version] = {}
    follows: tuple[str, ...] = ()


class SharedLogError(Exception):
    """Failure of a shared log. The message is human-readable."""


class Conflict(SharedLogError):
    """The engine reports that another post follows the expected position.

    A deposed leader may wrongly report this, even for a post that its successor accepts. Read the log to be certain.
    """


class OutcomeUnknown(SharedLogError):
    """The post may be in the log, or may still be added to it."""


class Unreachable(SharedLogError):
    """The engine is unreachable. A post that failed with this error is not in the log and never will be."""


class Garbled(Unreachable):
    """The engine sent data that this daemon can't parse."""


class Forbidden(SharedLogError):
    """This member lacks the permission; retrying is useless."""


class TooLarge(SharedLogError):
    """A post exceeds the engine's limit and is not in the log.

    Attributes:
        size: Size of the post, in bytes.
        maximum: The engine's limit, in bytes.
    """

    def __init__(self, size: int, maximum: int) -> None:
        super().__init__(f"The change has {size} bytes, but the space accepts at most {maximum}. Make smaller changes.")
        self.size = size
        self.maximum = maximum


class Listener(Protocol):
    """Callbacks for events in a space. They return immediately, and may be called in any order."""

    def on_post(self, post: Posted) -> None:
        """Handle a post from any member. It may be delivered twice, late, or never."""
        ...

    def on_link_change(self, link: Link) -> None: ...

    def on_beat(self, beat: Beat) -> None: ...

    def on_turn_request(self, list: str, member: str, round_trip_s: float) -> None:
        """Handle a member's request for a turn to post to a list, perhaps this member's own.

        `round_trip_s` is the time that one of the member's posts takes.
        """
        ...


class SharedLog(Protocol):
    """The logs of one space, accessed as one member.

    Every coroutine except `run` may raise Unreachable and Forbidden, and takes at most a few seconds.
    """

    @property
    def member(self) -> str:
        """ID of this member: `MACHINE_ID`, with letters, digits, `-` and `_`. The second part identifies the daemon."""
        ...

    @property
    def link(self) -> Link: ...

    @property
    def round_trip_s(self) -> float:
        """Typical duration of a post, in seconds."""
        ...

    async def run(self, listener: Listener) -> None:
        """Keep the connection open and call `listener` until cancelled.

        `on_link_change` is called before the first `on_post`. It reports `up` only once the member's permissions to
        read and post are known.
        """
        ...

    def hurry(self) -> None:
        """If disconnected, reconnect soon, because a call has failed."""
        ...

    async def lists(self) -> list[str]:
        """Return the lists of the space, sorted by name."""
        ...

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        """Post if the position of the list's last post is still `expected` (0 for none). Return the new position.

        Once this returns, the post is on a quorum of disks.

        Raises:
            Conflict: The engine reports another post after `expected`.
            OutcomeUnknown: The post may be in the log.
            TooLarge: The post is not in the log.
        """
        ...

    async def read(self, list: str, after: int, limit: int | None = None) -> list[Posted]:
        """Return the posts after a position in order, at most `limit`. Return no posts if the list doesn't exist."""
        ...

    async def last(self, list: str) -> int:
        """Return the position of the last post; 0 if the list has none. A deposed leader may return an older
        position."""
        ...

    async def is_current(self, list: str, position: int) -> bool:
        """Return True if a quorum, queried during this call, confirms that the last post has this position."""
        ...

    async def beat(self, beat: Beat) -> None:
        """Send a heartbeat. The heartbeat may be lost."""
        ...

    async def request_turn(self, list: str) -> None:
        """Request a turn to post.

        All members, including this one, receive requests in the same order. A request may be lost.
        """
        ...

    async def erase(self, list: str, before: int) -> None:
        """Erase the bodies of all posts before a position from the engine's disks. Idempotent."""
        ...

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        """Remove these posts, but no other posts that have taken their positions. Idempotent."""
        ...
