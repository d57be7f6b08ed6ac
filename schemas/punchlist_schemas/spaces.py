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
    """Adds a space after testing all operations it needs, or changes the space with this name.

    `creds` is the file with this machine's credentials, and `ca` a file with certificate authorities that replace the
    system's. The daemon reads both for each connection. `monitors` are the servers' monitoring addresses, which report
    whether the servers write to disk before they acknowledge. `replicas` is the number of servers that store each
    change if the space has to be created (default: three in a cluster, else one).
    """

    space: SpaceName
    urls: Addresses
    creds: FilePath | None = None
    ca: FilePath | None = None
    monitors: Annotated[tuple[Address, ...], msgspec.Meta(max_length=16)] = ()
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None


class ListShare(ConversationParams, frozen=True, kw_only=True):
    """Shares a list, with its whole history, in a space. Repeating the call resumes an interrupted one.

    With `repair`, posts of a shared list that the space has lost are sent again, and a lost space is created again. The
    call is rejected while another reachable machine has a more complete copy of the list.
    """

    space: SpaceName
    repair: bool = False


class ListJoin(ConversationParams, frozen=True, kw_only=True):
    """Follows a list in a space, with its whole history. Repeating the call resumes an interrupted one."""

    space: SpaceName


class ListLeave(ConversationParams, frozen=True, kw_only=True):
    """Stops following a shared list: this machine's copy stays and becomes read-only. Other machines are not affected.

    `keep_as` also creates a list with that name and this history. Deleting a list after leaving it erases this
    machine's copy.
    """

    keep_as: ConversationId | None = None


class Deletion(Result, frozen=True, kw_only=True):
    """Time (milliseconds since 1970 UTC) and actor of a list's deletion. Any change starts the list again."""

    at: int
    by: str = ""


MAX_REPAIRED = 1000
"""Maximum number of posts that one call of space.repair returns or removes."""

PostId = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{16}(?![\s\S])", description="Id of a post, as space.repair returns it")
]


class SpaceRepair(ConversationParams, frozen=True, kw_only=True):
    """Finds the posts of a list in a space that no machine can apply, and removes those listed in `remove`.

    Removal requires the credentials of a keeper. Machines then continue with the list automatically within seconds.
    """

    space: SpaceName
    remove: Annotated[tuple[PostId, ...], msgspec.Meta(max_length=MAX_REPAIRED)] = ()


class SharedListView(Result, frozen=True, kw_only=True):
    """State of a shared list on this machine.

    `state` is `current` if it can be changed, `offline` while the space can't be reached, `behind` until the newest
    changes are here, `sharing` until its history is in the space, and `left` once it is no longer followed. In any
    other state the list is read-only. `reason` is set if the user has to do something. `posts` counts the posts from
    this machine since the daemon's start, `conflicts` those that lost to another machine's post. `deleted` is set after
    the list is deleted, until a change starts the list again.
    """

    conversation: str
    state: SharedState
    version: int = 0
    posts: int = 0
    conflicts: int = 0
    reason: str = ""
    deleted: Deletion | None = None


class MachineView(Result, frozen=True, kw_only=True):
    """Another machine of a space: its latest heartbeat since this daemon's start, and the lists that it followed."""

    member: str
    seen_at: int
    lists: tuple[str, ...] = ()


class SpaceView(Result, frozen=True, kw_only=True):
    """A space, and the state of its link.

    If the link is not up, `kind` is the cause for programs and `reason` the cause for people. `since` is when this
    state began, `round_trip_ms` the approximate duration of a change. `unchecked` names the requirements that could not
    be checked when the space was added. `machines` are the other active machines, latest first; read-only machines send
    no heartbeats.
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
    """The added space. `made` is true if it was also created on its servers."""

    space: SpaceView
    made: bool = False


class SpaceListResult(Result, frozen=True, kw_only=True):
    """All spaces of this daemon."""

    spaces: tuple[SpaceView, ...] = ()


class SpaceRemoved(Result, frozen=True, kw_only=True):
    """Name of the removed space.

    `copies` are the lists of the space that this machine had stopped following. They are now local lists and can be
    changed again.
    """

    removed: str
    copies: tuple[str, ...] = ()


class SharedResult(Result, frozen=True, kw_only=True):
    """The list that is now shared: its version, and the number of posts sent or received."""

    conversation: str
    space: str
    version: int
    posts: int


class BadPost(Result, frozen=True, kw_only=True):
    """A post that no machine can apply; `why` is a sentence.

    With `certain`, no machine has ever applied the post, so removing it loses no changes. `certain` is false if a later
    version of punchlist may have sent the post, or if it may follow a post that the space has lost. `at` is when the
    space stored it (milliseconds since 1970 UTC; 0: unknown).
    """

    id: str
    position: int
    why: str
    certain: bool
    at: int = 0


class SpaceRepaired(Result, frozen=True, kw_only=True):
    """The first posts that no machine can apply.

    `more` is the number of posts that are not listed, and `removed` the number of removed posts.
    """

    space: str
    conversation: str
    posts: tuple[BadPost, ...] = ()
    more: int = 0
    removed: int = 0


class LeftResult(Result, frozen=True, kw_only=True):
    """The list that is no longer followed; `kept_as` is the local list that now has its tasks."""

    conversation: str
    kept_as: str | None = None
