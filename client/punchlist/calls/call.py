"""The calls about the daemon, declared once: each method builds a `Call`, which both clients can run.

`clients.methods.CallMethod` turns each method into one of the clients, with the same signature and docstring. A test
compares the parameters with the structs of `punchlist_schemas.params`.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Generic, Literal, TypedDict, TypeVar

import msgspec

from punchlist.calls.cursor import Change
from punchlist.connection.core import Request
from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.changes import CALL_PARAMS, CHANGE_PARAMS, TaskChange
from punchlist_schemas.methods import METHODS
from punchlist_schemas.spaces import SpaceAdd, SpaceParams, SpaceResult, SpaceView
from punchlist_schemas.things import Agent, Status

R = TypeVar("R")


class Call(Generic[R]):
    """A typed call that has not been made yet.

    Args:
        method: JSON-RPC method name.
        params: Parameters of the call.
        pick: Extracts the value to return from the result.
    """

    def __init__(self, method: str, params: p.Params, pick: Callable[[Any], R]) -> None:
        self.method = method
        self.request = Request.of(method, params)
        result = METHODS[method].result
        self.result: type[Any] = dict if result is r.Result else result
        self.pick = pick


class Write(TypedDict, total=False):
    """Parameters that every change accepts."""

    key: str
    """Idempotency key: the same call with the same key is made only once. Generated if left out."""

    expect_version: int
    """Raise `VersionConflict` unless the conversation is at this version."""

    actor: str
    """Actor recorded with the change, instead of that of the conversation object or the connection."""


class Confirming(Write, total=False):
    """Additional parameters of changes that may need confirmation."""

    ask: bool
    """Raise `ConfirmationRequired` unless `confirm` is its token. The process that received the token can use it only
    after a moment, in a later turn of the model, unless `answered` is set."""

    answered: bool
    """With `confirm`: the user has answered the question, so that the token is accepted immediately."""

    quote: str
    """The user's own words by which they agreed in advance. Recorded in the event; `ask` then has no effect."""


def itself(result: R) -> R:
    return result


def ids_of(ids: Iterable[str]) -> tuple[str, ...]:
    """Return ids as a tuple. A string is one id, not one for each character."""
    return (ids,) if isinstance(ids, str) else tuple(ids)


def new_tasks(tasks: Iterable[p.NewTask | str]) -> tuple[p.NewTask, ...]:
    """Return new tasks. A string is the title of one."""
    return tuple(p.NewTask(title=task) if isinstance(task, str) else task for task in tasks)


def to_task_change(change: Call[Any] | Mapping[str, Any]) -> TaskChange:
    """Return a change for `list.apply`, from a `Call` that would make it alone or from its JSON form."""
    if isinstance(change, Call):
        members = msgspec.to_builtins(change.request.params)
        members = {name: value for name, value in members.items() if name not in CALL_PARAMS}
        change = {"method": change.method, **members}
    try:
        return msgspec.convert(change, TaskChange)
    except msgspec.ValidationError as error:
        raise ValueError(
            f"Not a change of list.apply: {error}. Known methods are {', '.join(CHANGE_PARAMS)}."
        ) from None


class ClientCalls:
    """Calls about the daemon as a whole."""

    def status(self) -> Call[r.StatusResult]:
        """Return the daemon's status: uptime, clients, subscriptions with their lag, sizes, latest errors."""
        return Call("daemon.status", p.NoParams(), itself)

    def discover(self) -> Call[dict[str, Any]]:
        """Return the OpenRPC document of the protocol."""
        return Call("rpc.discover", p.NoParams(), itself)

    def backup(self, path: str, *, check: bool = True) -> Call[r.BackupResult]:
        """Copy the log to a new file while the daemon keeps running.

        Args:
            path: Absolute path of the new file, which the daemon writes.
            check: Verify the whole copy, and delete it if it is damaged.

        Raises:
            InvalidParams: The file exists, or the daemon can't write there.
            Damaged: The log is damaged. No file was kept.
            StorageFull: The disk is full. No file was kept.
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
        """Add a space, where several machines share lists, or change the one of this name.

        The daemon first tests everything that it needs of the servers.

        Args:
            space: Name of the space, the same on all machines: 1 to 32 of a-z 0-9 -.
            urls: Servers of the space: `tls://HOST`, `tls://HOST:PORT` or `postgres://USER@HOST/DATABASE`.
            creds: Absolute path of the credentials file of this machine.
            ca: Absolute path of the certificate authorities to trust instead of the system's.
            monitors: Monitoring addresses, to check that the servers sync their disks before they acknowledge.
            replicas: Number of servers that store each change of a space that is created now. By default three in a
                cluster, else one.

        Raises:
            Unreachable: The space can't be used. The message says why and what to do.
            Forbidden: The credentials lack permissions.
        """
        addresses = (urls,) if isinstance(urls, str) else tuple(urls)
        params = SpaceAdd(space=space, urls=addresses, creds=creds, ca=ca, monitors=tuple(monitors), replicas=replicas)
        return Call("space.add", params, itself)

    def agents(self, *, conversation: str | None = None) -> Call[tuple[Agent, ...]]:
        """Return connected agents and people, then those that left recently, with the tasks each has claimed.

        Args:
            conversation: Keep those that have claimed a task of this list, or whose last call was about it.
        """
        return Call("agent.list", p.AgentList(conversation=conversation), attrgetter("agents"))

    def spaces(self) -> Call[tuple[SpaceView, ...]]:
        """Return the spaces of this daemon, with the state of each connection and the lists shared there."""
        return Call("space.list", p.NoParams(), attrgetter("spaces"))

    def remove_space(self, space: str) -> Call[str]:
        """Remove a space that has no shared lists left on this machine. Returns its name."""
        return Call("space.remove", SpaceParams(space=space), attrgetter("removed"))

    def shutdown(self, *, if_idle: bool = False) -> Call[bool]:
        """Stop the daemon after it has finished accepted calls. Returns whether it stops.

        Args:
            if_idle: Stop only if no other client is connected and no claim is in force.
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
        """Return one page of conversations by last change, newest first.

        Args:
            query: Text that id or title must contain.
            active: Keep those with unfinished tasks (True) or without (False).
            kind: `list` for task lists, `chat` for chat threads, `any` for both.
            limit: Maximum number of conversations, 1 to 10,000.
            cursor: `next_cursor` of the previous page.
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
        """Search tasks for words in title, labels, description, notes or result. Best matches come first.

        Args:
            query: Words that must all occur, each possibly as a prefix; a phrase in double quotes matches exactly. Case
                and accents are ignored.
            conversation: Search this list only; by default all.
            status: Keep tasks with one of these statuses.
            limit: Maximum number of tasks, 1 to 500.
        """
        statuses: Any = status if status is None or isinstance(status, str) else tuple(status)
        params = p.TaskSearch(query=query, conversation=conversation, status=statuses, limit=limit)
        return Call("task.search", params, itself)

    def confirmation(self, token: str) -> Call[r.ConfirmationResult]:
        """Return the call that a confirmation token stands for. Repeat that call with `confirm` to make it.

        Raises:
            NotFound: The token was used, has expired, belongs to another user, or was lost in a daemon restart.
        """
        return Call("confirmation.get", p.ConfirmationGet(token=token), itself)

    def resolve(self, path: str) -> Call[r.ConversationResolveResult]:
        """Return the list of a directory, according to its project file or its git repository.

        Args:
            path: Absolute path of the directory, or of a file in it.

        Raises:
            InvalidParams: The project file or the repository can't be used. The message says what to do.
        """
        return Call("conversation.resolve", p.ConversationResolve(path=path), itself)

    def read(
        self, after: int, conversation: str | None = None, *, limit: int = 1_000, epoch: str | None = None
    ) -> Call[list[Change]]:
        """Return the events after a position, oldest first.

        Args:
            after: Position in the log; 0 for all events.
            conversation: Return events of this conversation only; by default of all.
            limit: Maximum number of events, 1 to 10,000.
            epoch: Raise `WrongEpoch` if the log has another epoch.

        Raises:
            Gap: Events after this position are no longer available.
        """
        params = p.EventRead(after=after, conversation=conversation, limit=limit, epoch=epoch)
        return Call("event.read", params, lambda result: [Change.of(event) for event in result.events])
