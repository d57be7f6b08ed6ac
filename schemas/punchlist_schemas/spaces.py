"""Params and results of methods about spaces, in which several machines share lists."""

from typing import Annotated, Literal

import msgspec

from punchlist_schemas.params import ConversationParams, FilePath, Params
from punchlist_schemas.results import Result
from punchlist_schemas.things import ConversationId

SPACE_PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}(?![\s\S])"

SpaceName = Annotated[
    str,
    msgspec.Meta(max_length=32, pattern=SPACE_PATTERN, description="1 to 32 of a-z 0-9 -, the same on all machines"),
]
Address = Annotated[
    str,
    msgspec.Meta(
        min_length=1, max_length=512, description="tls://HOST, tls://HOST:PORT, postgres://USER@HOST/DATABASE"
    ),
]
Addresses = Annotated[tuple[Address, ...], msgspec.Meta(min_length=1, max_length=16)]

LinkState = Literal["connecting", "up", "down", "refused"]
SharedState = Literal["current", "behind", "offline", "diverged", "upgrade_needed", "damaged", "sharing", "left"]


class SpaceParams(Params, frozen=True, kw_only=True):
    """Parameters of a method about one space."""

    space: SpaceName


class SpaceAdd(Params, frozen=True, kw_only=True):
    """Adds a space after testing all operations it needs, or changes the space of this name.

    `creds` is the file with this machine's credentials, `ca` a file with certificate authorities that replace the
    system's; the daemon reads both at each connection. `monitors` are addresses of servers' monitoring, which reports
    whether they write to disk before they acknowledge. `replicas` is the number of servers that store each change if
    the space has to be created (default: three in a cluster, else one).
    """

    space: SpaceName
    urls: Addresses
    creds: FilePath | None = None
    ca: FilePath | None = None
    monitors: Annotated[tuple[Address, ...], msgspec.Meta(max_length=16)] = ()
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None


class ListShare(ConversationParams, frozen=True, kw_only=True):
    """Shares a list with its whole history in a space. Repeating the call resumes an interrupted one.

    With `repair`, posts of a shared list that the space has lost are posted again, and a lost space is created again.
    The call is rejected while another machine that can be reached has more of the list.
    """

    space: SpaceName
    repair: bool = False


class ListJoin(ConversationParams, frozen=True, kw_only=True):
    """Follows a list of a space, with its whole history. Repeating the call resumes an interrupted one."""

    space: SpaceName


class ListLeave(ConversationParams, frozen=True, kw_only=True):
    """Stops following a shared list: its copy here stays, read-only. Other machines are not affected.

    `keep_as` also creates a list of that name with its history. Deleting a list that was left erases the copy here.
    """

    keep_as: ConversationId | None = None


class Deletion(Result, frozen=True, kw_only=True):
    """Time, in milliseconds since 1970, and actor of a list's deletion. Any change starts the list again."""

    at: int
    by: str = ""


MAX_REPAIRED = 1000
"""Maximum number of posts that one call of space.repair returns or removes."""

PostId = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{16}(?![\s\S])", description="Id of a post, as space.repair returns it")
]


class SpaceRepair(ConversationParams, frozen=True, kw_only=True):
    """Finds the posts of a list in a space that no machine can follow, and removes those that `remove` names.

    Removing takes the creds of a keeper. Machines then continue with the list automatically, within seconds.
    """

    space: SpaceName
    remove: Annotated[tuple[PostId, ...], msgspec.Meta(max_length=MAX_REPAIRED)] = ()


class SharedListView(Result, frozen=True, kw_only=True):
    """State of a shared list on this machine.

    `state` is `current` if it can be changed, `offline` while the space can't be reached, `behind` until the newest
    changes are here, `sharing` until its history is in the space, and `left` once it is no longer followed. In any
    other state the list is read-only. `reason` is set if the user has to act. `posts` counts the posts from here since
    the daemon's start, `conflicts` those that lost to another machine's post. `deleted` is set from the list's deletion
    until it is started again.
    """

    conversation: str
    state: SharedState
    version: int = 0
    posts: int = 0
    conflicts: int = 0
    reason: str = ""
    deleted: Deletion | None = None


class MachineView(Result, frozen=True, kw_only=True):
    """Another machine of a space: its latest sign of life since this daemon's start, and the lists that it followed."""

    member: str
    seen_at: int
    lists: tuple[str, ...] = ()


class SpaceView(Result, frozen=True, kw_only=True):
    """A space, and the state of its link.

    `kind` and `reason` are the cause if the link is not up, for programs and for people. `since` is when this state
    began, `round_trip_ms` the approximate duration of a change. `unchecked` names the requirements that could not be
    checked when the space was added. `machines` are the other active machines, the latest first; read-only machines
    send no sign of life.
    """

    space: str
    urls: tuple[str, ...]
    state: LinkState
    kind: str = ""
    reason: str = ""
    since: int = 0
    server: str = ""
    server_version: str = ""
    round_trip_ms: float = 0.0
    may_post: bool = True
    replicas: int = 1
    source: Literal["file", "environment"] = "file"
    member: str = ""
    creds: str = ""
    ca: str = ""
    monitors: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    lists: tuple[SharedListView, ...] = ()
    machines: tuple[MachineView, ...] = ()


class SpaceResult(Result, frozen=True, kw_only=True):
    """The added space. `made` is whether it was also created on its servers."""

    space: SpaceView
    made: bool = False


class SpaceListResult(Result, frozen=True, kw_only=True):
    """All spaces of this daemon."""

    spaces: tuple[SpaceView, ...] = ()


class SpaceRemoved(Result, frozen=True, kw_only=True):
    """Name of the removed space.

    `copies` are the lists of the space that had been left: they are local lists now and can be changed again.
    """

    removed: str
    copies: tuple[str, ...] = ()


class SharedResult(Result, frozen=True, kw_only=True):
    """The list that is now shared: its version, and the number of posts that were sent or received."""

    conversation: str
    space: str
    version: int
    posts: int


class BadPost(Result, frozen=True, kw_only=True):
    """A post that no machine can follow; `why` is a sentence.

    With `certain`, no machine has ever followed the post, so that removing it loses no change. `certain` is false if
    the post may be of a later version of punchlist, or may follow a post that the space has lost. `at` is when the
    space stored it (milliseconds since 1970 UTC; 0: unknown).
    """

    id: str
    position: int
    why: str
    certain: bool
    at: int = 0


class SpaceRepaired(Result, frozen=True, kw_only=True):
    """The first posts that no machine can follow, the number of `more` such posts, and of `removed` ones."""

    space: str
    conversation: str
    posts: tuple[BadPost, ...] = ()
    more: int = 0
    removed: int = 0


class LeftResult(Result, frozen=True, kw_only=True):
    """The list that is no longer followed; `kept_as` is the local list that has its tasks now."""

    conversation: str
    kept_as: str | None = None
