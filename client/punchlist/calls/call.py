"""Everything that can be asked, written down once: each method builds a `Call`, and the faces run it.

Both faces take a method over by `clients.methods.CallMethod`, which keeps its parameters, its documentation and its
result, so that they have the same and an editor shows it. A test compares the parameters with the structs of
`punchlist_schemas.params`.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Generic, Literal, TypedDict, TypeVar

import msgspec

from punchlist.calls.cursor import Change
from punchlist.connection.core import Request
from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.changes import MAKES, OF_THE_CALL, TaskChange
from punchlist_schemas.methods import METHODS
from punchlist_schemas.spaces import SpaceAdd, SpacePlace, SpaceResult, SpaceView
from punchlist_schemas.things import Agent, Status

R = TypeVar("R")


class Call(Generic[R]):
    """A typed call that has not been made yet.

    Args:
        method: The wire's name of it.
        params: Its parameters.
        pick: What the caller wants of the result.
    """

    def __init__(self, method: str, params: p.Params, pick: Callable[[Any], R]) -> None:
        self.method = method
        self.request = Request.of(method, params)
        result = METHODS[method].result
        self.result: type[Any] = dict if result is r.Result else result
        self.pick = pick


class Write(TypedDict, total=False):
    """What every mutation accepts besides its own parameters."""

    key: str
    """Idempotency key: the same call with the same key happens once. A fresh one is drawn if none is given."""

    expect_version: int
    """Refuse with `VersionConflict` unless the conversation is at this version."""

    actor: str
    """Who does it, instead of the facade's or the connection's name."""


class Confirming(Write, total=False):
    """What a call that may have to be confirmed accepts besides."""

    ask: bool
    """Raise `ConfirmationRequired` unless `confirm` is its token, which is for a later turn of a model."""

    answered: bool
    """Beside `confirm`: the person has answered the question, so nobody has to wait."""

    quote: str
    """The person's own words by which they agreed beforehand; kept in the event."""


def itself(result: R) -> R:
    return result


def ids_of(ids: Iterable[str]) -> tuple[str, ...]:
    """Task ids; one bare id counts as a list of one, since the letters of it are never meant."""
    return (ids,) if isinstance(ids, str) else tuple(ids)


def new_tasks(tasks: Iterable[p.NewTask | str]) -> tuple[p.NewTask, ...]:
    """New tasks; a bare text is the title of one."""
    return tuple(p.NewTask(title=task) if isinstance(task, str) else task for task in tasks)


def to_task_change(change: Call[Any] | Mapping[str, Any]) -> TaskChange:
    """A change of `list.apply`, from the call that would make it alone, or from the wire's form of it."""
    if isinstance(change, Call):
        members = msgspec.to_builtins(change.request.params)
        members = {name: value for name, value in members.items() if name not in OF_THE_CALL}
        change = {"method": change.method, **members}
    try:
        return msgspec.convert(change, TaskChange)
    except msgspec.ValidationError as error:
        raise ValueError(f"No change of list.apply: {error}. Known methods are {', '.join(MAKES)}.") from None


class ClientCalls:
    """What is asked of the daemon as a whole."""

    def status(self) -> Call[r.StatusResult]:
        """What the daemon knows about itself: uptime, clients, subscriptions with their lag, sizes, last errors."""
        return Call("daemon.status", p.Nothing(), itself)

    def discover(self) -> Call[dict[str, Any]]:
        """The OpenRPC document of the contract."""
        return Call("rpc.discover", p.Nothing(), itself)

    def backup(self, path: str, *, check: bool = True) -> Call[r.BackupResult]:
        """A copy of the log at an absolute path where nothing is, made by the daemon while it serves.

        Args:
            path: Where to; the daemon writes it.
            check: Look through the whole copy, and keep it only if it is sound.

        Raises:
            InvalidParams: The name is taken, or the daemon can't write there.
            Damaged: The log is not sound; nothing was left behind.
            StorageFull: There is no space for it; nothing was left behind.
        """
        return Call("daemon.backup", p.Backup(path=path, check=check), itself)

    def add_space(  # noqa: PLR0913 - one parameter for each member of the wire
        self,
        space: str,
        urls: Iterable[str],
        *,
        creds: str | None = None,
        ca: str | None = None,
        monitors: Iterable[str] = (),
        replicas: int | None = None,
    ) -> Call[SpaceResult]:
        """Adds a space, where several machines share lists, after trying everything that it needs.

        Args:
            space: Its name, the same on all machines.
            urls: Its servers, as `tls://HOST` or `tls://HOST:PORT`.
            creds: Absolute path of the file that lets this machine in.
            ca: Absolute path of the authorities that are trusted instead of the system's.
            monitors: Addresses that tell whether the servers write to their disks before they acknowledge.
            replicas: How many servers hold each change where the space has to be made; by default three in a cluster.

        Raises:
            Unreachable: It can't be used; the message says why and what to do.
            Forbidden: The creds do not suffice.
        """
        addresses = (urls,) if isinstance(urls, str) else tuple(urls)
        params = SpaceAdd(space=space, urls=addresses, creds=creds, ca=ca, monitors=tuple(monitors), replicas=replicas)
        return Call("space.add", params, itself)

    def agents(self, *, conversation: str | None = None) -> Call[tuple[Agent, ...]]:
        """Who is connected, and then who has left lately, with what each has claimed.

        Args:
            conversation: Only those who have a task of this list, or whose last call was about it.
        """
        return Call("agent.list", p.AgentList(conversation=conversation), attrgetter("agents"))

    def spaces(self) -> Call[tuple[SpaceView, ...]]:
        """The spaces of this daemon: how the way to each stands, and which lists are shared there."""
        return Call("space.list", p.Nothing(), attrgetter("spaces"))

    def remove_space(self, space: str) -> Call[str]:
        """Forgets a space in which nothing is shared any more; returns its name."""
        return Call("space.remove", SpacePlace(space=space), attrgetter("removed"))

    def shutdown(self, *, if_idle: bool = False) -> Call[bool]:
        """Asks the daemon to answer what it has taken and to stop; true when it does.

        Args:
            if_idle: Only if nobody else is connected and no claim is in force.
        """
        return Call("daemon.shutdown", p.Shutdown(if_idle=if_idle), attrgetter("stopping"))

    def conversations(
        self,
        query: str = "",
        *,
        active: bool | None = None,
        kind: Literal["list", "chat", "any"] = "list",
        limit: int = 100,
        cursor: str | None = None,
    ) -> Call[r.ConversationListResult]:
        """Conversations by last change, newest first.

        Args:
            query: Text to be found in id or title.
            active: Keep those with unfinished tasks (True) or without (False).
            kind: The lists, the threads of chats, or both.
            limit: At most so many.
            cursor: `next_cursor` of the page before.
        """
        params = p.ConversationList(query=query, active=active, kind=kind, limit=limit, cursor=cursor)
        return Call("conversation.list", params, itself)

    def search(
        self,
        query: str,
        *,
        conversation: str | None = None,
        status: Status | Iterable[Status] | None = None,
        limit: int = 50,
    ) -> Call[r.TaskSearchResult]:
        """Tasks with all these words in title, labels, description, notes or result, the best match first.

        Args:
            query: Words, of which the beginning is enough, and `"several words"` as they stand.
            conversation: Only in this list; by default in all.
            status: Keep these statuses.
            limit: At most so many, up to 500.
        """
        statuses: Any = status if status is None or isinstance(status, str) else tuple(status)
        params = p.TaskSearch(query=query, conversation=conversation, status=statuses, limit=limit)
        return Call("task.search", params, itself)

    def confirmation(self, token: str) -> Call[r.ConfirmationResult]:
        """What a confirmation token would do. Repeat that call with `confirm` to do it.

        Raises:
            NotFound: It was used, has expired, is another user's, or the daemon was restarted since.
        """
        return Call("confirmation.get", p.ConfirmationGet(token=token), itself)

    def resolve(self, path: str) -> Call[r.ConversationResolveResult]:
        """The list that a directory means, by its project file or its git repository.

        Args:
            path: The directory, or a file in it, as an absolute path.

        Raises:
            InvalidParams: There is a project file or a repository that can't be used; the message says what to do.
        """
        return Call("conversation.resolve", p.ConversationResolve(path=path), itself)

    def read(
        self, after: int, conversation: str | None = None, *, limit: int = 1_000, epoch: str | None = None
    ) -> Call[list[Change]]:
        """What happened behind position `after`, in one conversation or in all of them, at most `limit` events."""
        params = p.EventRead(after=after, conversation=conversation, limit=limit, epoch=epoch)
        return Call("event.read", params, lambda result: [Change.of(event) for event in result.events])
