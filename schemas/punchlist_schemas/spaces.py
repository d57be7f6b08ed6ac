"""Spaces, where several machines share lists: what may be asked about them, and what is answered."""

from typing import Annotated, Literal

import msgspec

from punchlist_schemas.params import FilePath, Params, Place
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


class SpacePlace(Params, frozen=True, kw_only=True):
    """Nothing but a space."""

    space: SpaceName


class SpaceAdd(Params, frozen=True, kw_only=True):
    """Adds a space after trying everything it needs; one of this name is changed.

    `creds` is the file that lets this machine in, `ca` one with the authorities that are trusted instead of the
    system's; the daemon reads both at each connection. `monitors` are asked whether the servers write to their disks
    before they acknowledge. `replicas` is how many servers hold each change where the space has to be made; left out:
    three in a cluster, else one.
    """

    space: SpaceName
    urls: Addresses
    creds: FilePath | None = None
    ca: FilePath | None = None
    monitors: Annotated[tuple[Address, ...], msgspec.Meta(max_length=16)] = ()
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None


class ListShare(Place, frozen=True, kw_only=True):
    """Shares a list with its whole history in a space; repeating it goes on where it stopped.

    With `repair` a list that is shared puts back what the space has lost of it, and makes the space anew if that is
    lost, too; it is refused while another machine that is reached has more of the list.
    """

    space: SpaceName
    repair: bool = False


class ListJoin(Place, frozen=True, kw_only=True):
    """Follows a list of a space from here on, with its whole history; repeating it goes on where it stopped."""

    space: SpaceName


class ListLeave(Place, frozen=True, kw_only=True):
    """Follows a shared list no more: its copy here stays and takes no changes. Others keep theirs.

    `keep_as` also lets a list of that name begin with its history. Deleting a list that was left erases the copy here.
    """

    keep_as: ConversationId | None = None


class Deletion(Result, frozen=True, kw_only=True):
    """When a list was deleted, in milliseconds since 1970, and by which actor. Any change starts the list again."""

    at: int
    by: str = ""


MAX_REPAIRED = 1000
"""Posts that one call of space.repair returns or removes."""

PostId = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{16}(?![\s\S])", description="Id of a post, as space.repair returns it")
]


class SpaceRepair(Place, frozen=True, kw_only=True):
    """Finds the posts of a list in a space that no machine can follow, and removes those that `remove` names.

    Removing takes the creds of a keeper. Machines then continue with the list automatically, within seconds.
    """

    space: SpaceName
    remove: Annotated[tuple[PostId, ...], msgspec.Meta(max_length=MAX_REPAIRED)] = ()


class SharedListView(Result, frozen=True, kw_only=True):
    """A list in a space, as this machine knows it.

    `state` is `current` where it may be changed; `offline` while the space can't be reached, `behind` until the newest
    changes are here; `sharing` until its history is in the space, `left` once it is followed no more; else it takes no
    changes. `reason` says what to do where nothing gets better by itself. `posts` and `conflicts` count what
    was posted from here since the daemon's start, and how often another machine came first. `deleted` is set from its
    deletion until it is started again.
    """

    conversation: str
    state: SharedState
    version: int = 0
    posts: int = 0
    conflicts: int = 0
    reason: str = ""
    deleted: Deletion | None = None


class MachineView(Result, frozen=True, kw_only=True):
    """Another machine of a space: the latest sign of life since this daemon's start, and the lists it came with."""

    member: str
    seen_at: int
    lists: tuple[str, ...] = ()


class SpaceView(Result, frozen=True, kw_only=True):
    """A space, and how the way to it stands.

    `kind` and `reason` say why it is not up, for programs and for people. `since` is when this state began,
    `round_trip_ms` about how long a change takes. `unchecked` names what nobody could find out when it was added.
    `machines` are the others that were heard of, the latest first; those that may only read give no sign of life.
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
    """A space that was added; `made` tells whether it was made at its servers, too."""

    space: SpaceView
    made: bool = False


class SpaceListResult(Result, frozen=True, kw_only=True):
    """All spaces of this daemon."""

    spaces: tuple[SpaceView, ...] = ()


class SpaceRemoved(Result, frozen=True, kw_only=True):
    """The space that this machine does not know any more.

    `copies` are the lists of it that were left: they are lists of this machine alone now, and take changes again.
    """

    removed: str
    copies: tuple[str, ...] = ()


class SharedResult(Result, frozen=True, kw_only=True):
    """A list that is shared here now: its version, and how many posts it took to share or to get it."""

    conversation: str
    space: str
    version: int
    posts: int


class BadPost(Result, frozen=True, kw_only=True):
    """A post that no machine can follow; `why` is a sentence.

    `certain` says that no machine ever followed it, so that removing it loses no change. It is false for a post that
    may be of a later version of punchlist, or may follow a post that the space has lost. `at` is when the space stored
    it (milliseconds since 1970 UTC; 0: unknown).
    """

    id: str
    position: int
    why: str
    certain: bool
    at: int = 0


class SpaceRepaired(Result, frozen=True, kw_only=True):
    """The first posts that no machine can follow, how many `more` there are, and how many were `removed`."""

    space: str
    conversation: str
    posts: tuple[BadPost, ...] = ()
    more: int = 0
    removed: int = 0


class LeftResult(Result, frozen=True, kw_only=True):
    """A list that is followed no more; `kept_as` is the local list that its tasks are in now."""

    conversation: str
    kept_as: str | None = None
