"""The client for asyncio: `AsyncClient`, its conversations and watches, over `connection.core`, which does no I/O.

Calls of one client share a connection and may run at the same time; each answer finds its call. Cancelling a call
cancels it at the daemon too. A watch has a connection of its own: while its loop is slow we stop reading, and the
daemon stores nothing but a position for us.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec

# By name, which loads them now: anyio loads a part of itself when it is first asked for. An import that an interrupt
# ends may leave its lock taken, and the loop's thread would wait for that for good: no call may import anything.
from anyio import CancelScope, Lock, current_time, move_on_after, sleep

from punchlist.calls.call import Call, ClientCalls
from punchlist.calls.conversations import ConversationCalls
from punchlist.calls.cursor import (
    Change,
    Cursor,
    EventsView,
    ListView,
    PresenceView,
    RowsView,
    TaskList,
    Until,
    condition,
)
from punchlist.clients import scope
from punchlist.clients.watch import AsyncWatch
from punchlist.clients.work import FOLLOW_MS, AsyncClaim, AsyncWork, Terms
from punchlist.connection.core import Profile, Request, Retry, failure, given_back, is_passing, result_of
from punchlist.connection.forks import on_fork
from punchlist.connection.link import Link
from punchlist.connection.options import Options
from punchlist.errors import PunchlistError, TimedOut
from punchlist_schemas.jsonrpc import Reply
from punchlist_schemas.results import HelloResult, Present

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def connect_async(**options: Unpack[Options]) -> "AsyncClient":
    """A client for `async with`, which connects and starts a daemon if none runs.

    Args:
        **options: See `Options`.
    """
    return AsyncClient(**options)


def awaiting(
    build: Callable[Concatenate[ConversationCalls, P], Call[R]],
) -> Callable[Concatenate["AsyncConversation", P], Coroutine[Any, Any, R]]:
    """A method of `AsyncConversation` that makes the call which `build` describes."""

    @wraps(build)
    async def method(self: "AsyncConversation", *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.client.run(build(self.calls, *args, **kwargs))

    return method


def _awaiting(
    build: Callable[Concatenate[ClientCalls, P], Call[R]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, R]]:
    @wraps(build)
    async def method(self: "AsyncClient", *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.run(build(ClientCalls(), *args, **kwargs))

    return method


class AsyncClient:
    """A connection to the daemon. It reconnects by itself, and repeats a call that a restart interrupted.

    Args:
        **options: See `Options`.
    """

    _link: Link | None = None  # of the class: a finalizer also meets what an interrupted constructor left half made

    def __init__(self, **options: Unpack[Options]) -> None:
        self.options = options
        self._profile = Profile(options)
        self._lock = Lock()
        self._watches: set[AsyncWatch[Any]] = set()
        on_fork(self, AsyncClient._forked)

    status = _awaiting(ClientCalls.status)
    discover = _awaiting(ClientCalls.discover)
    backup = _awaiting(ClientCalls.backup)
    add_space = _awaiting(ClientCalls.add_space)
    spaces = _awaiting(ClientCalls.spaces)
    remove_space = _awaiting(ClientCalls.remove_space)
    agents = _awaiting(ClientCalls.agents)
    shutdown = _awaiting(ClientCalls.shutdown)
    conversations = _awaiting(ClientCalls.conversations)
    resolve = _awaiting(ClientCalls.resolve)
    search = _awaiting(ClientCalls.search)
    read = _awaiting(ClientCalls.read)
    confirmation = _awaiting(ClientCalls.confirmation)

    def as_user(self, user: str) -> "AsyncClient":
        """Another client of the same daemon, confined to the lists of this user."""
        return AsyncClient(**{**self.options, "user": user})

    async def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return who answered."""
        with move_on_after(self._profile.timeout_s):
            return (await self._connected()).hello
        raise self._profile.target.too_late()

    def conversation(self, name: str | None = None, *, actor: str | None = None) -> "AsyncConversation":
        """One list: `name`, else the list of the surrounding scope, else PUNCHLIST_CONVERSATION.

        Args:
            name: The conversation's id.
            actor: The actor that its changes are recorded for; by default the name of the client.

        Raises:
            NoConversation: No list is named.
        """
        return AsyncConversation(self, scope.resolve(name), actor)

    def watch(self, *, after: int | None = None, epoch: str | None = None) -> "AsyncWatch[Change]":
        """Everything that happens in all lists, from now on or after position `after`."""
        return self.follow(Cursor(None, EventsView(), after, epoch))

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make any call by its name on the wire and return the plain JSON result. Changes get a key here too."""
        return await self._send(Request.raw(method, params or {}), object)

    async def forward(self, request: Request) -> bytes:
        """Make any call and return the JSON of its result as it came, to pass it on."""
        return bytes(await self._send(request, msgspec.Raw))

    async def run(self, call: Call[R]) -> R:
        """Make a typed call."""
        return call.pick(await self._send(call.request, call.result))

    def post(self, request: Request) -> None:
        """Send a request whose answer nobody waits for; does nothing without a connection."""
        if self._link is not None and not self._link.is_lost:
            self._link.post(request)

    def give_back(self, request: Request, result: object) -> None:
        """Release the tasks of a claim whose caller doesn't get the result; must be called on the loop."""
        for release in given_back(request, result):
            self.post(release)

    def follow(self, cursor: Cursor[T]) -> "AsyncWatch[T]":
        """A watch on a connection of its own."""
        return AsyncWatch(self._profile, cursor, self._watches)

    async def aclose(self) -> None:
        """Close the connection and end all watches. The next call connects again."""
        with CancelScope(shield=True):
            for watch in list(self._watches):
                await watch.aclose()
            link, self._link = self._link, None
            if link is not None:
                await link.aclose()

    def _forked(self) -> None:
        """The connection and its waiting calls belong to the parent; the child opens its own."""
        self._lock = Lock()
        self._link = None
        self._watches = set()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._link is not None:
            self._link.abandon()

    async def _send(self, request: Request, type_: type[T]) -> T:
        patience_s = self._profile.timeout_s + request.patience_s
        retry = Retry(current_time() + patience_s, repeatable=request.repeatable)
        with move_on_after(patience_s):
            while True:
                try:
                    return result_of(await self._exchange(request), type_)
                except PunchlistError as error:
                    pause_s = retry.pause_s(error, current_time())
                await sleep(pause_s)
        raise self._profile.target.too_late()

    async def _exchange(self, request: Request) -> Reply:
        link = await self._connected()
        reply = await link.exchange(request)
        if (error := failure(reply)) and is_passing(error):
            link.close()
        return reply

    async def _connected(self) -> Link:
        async with self._lock:
            if self._link is None or self._link.is_lost:
                self._link = await Link.open(self._profile)
            return self._link


class AsyncConversation:
    """One list. Get it from `AsyncClient.conversation`."""

    def __init__(self, client: AsyncClient, name: str, actor: str | None = None) -> None:
        self.client = client
        self.calls = ConversationCalls(name, actor)

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.calls.id

    def __repr__(self) -> str:
        return f"AsyncConversation({self.id!r})"

    add = awaiting(ConversationCalls.add)
    add_many = awaiting(ConversationCalls.add_many)
    get = awaiting(ConversationCalls.get)
    list = awaiting(ConversationCalls.list)
    edit = awaiting(ConversationCalls.edit)
    explain = awaiting(ConversationCalls.explain)
    note = awaiting(ConversationCalls.note)
    approve = awaiting(ConversationCalls.approve)
    reject = awaiting(ConversationCalls.reject)
    set_status = awaiting(ConversationCalls.set_status)
    start = awaiting(ConversationCalls.start)
    complete = awaiting(ConversationCalls.complete)
    fail = awaiting(ConversationCalls.fail)
    pause = awaiting(ConversationCalls.pause)
    resume = awaiting(ConversationCalls.resume)
    reopen = awaiting(ConversationCalls.reopen)
    move = awaiting(ConversationCalls.move)
    take = awaiting(ConversationCalls.take)
    renew = awaiting(ConversationCalls.renew)
    release = awaiting(ConversationCalls.release)
    delete = awaiting(ConversationCalls.delete)
    apply = awaiting(ConversationCalls.apply)
    replace = awaiting(ConversationCalls.replace)
    clear = awaiting(ConversationCalls.clear)
    share = awaiting(ConversationCalls.share)
    repair_space = awaiting(ConversationCalls.repair_space)
    join = awaiting(ConversationCalls.join)
    leave = awaiting(ConversationCalls.leave)
    end_turn = awaiting(ConversationCalls.end_turn)
    undo = awaiting(ConversationCalls.undo)
    open = awaiting(ConversationCalls.open)
    info = awaiting(ConversationCalls.info)
    configure = awaiting(ConversationCalls.configure)
    attach = awaiting(ConversationCalls.attach)
    detach = awaiting(ConversationCalls.detach)
    erase = awaiting(ConversationCalls.erase)
    append_message = awaiting(ConversationCalls.append_message)
    retract = awaiting(ConversationCalls.retract)
    messages = awaiting(ConversationCalls.messages)
    message = awaiting(ConversationCalls.message)
    presence = awaiting(ConversationCalls.presence)
    find = awaiting(ConversationCalls.find)

    @overload
    def watch(
        self, *, view: Literal["events"] = "events", after: int | None = None, epoch: str | None = None
    ) -> "AsyncWatch[Change]": ...

    @overload
    def watch(self, *, view: Literal["list", "rows"]) -> "AsyncWatch[TaskList]": ...

    @overload
    def watch(self, *, view: Literal["presence"]) -> "AsyncWatch[tuple[Present, ...]]": ...

    def watch(
        self,
        *,
        view: Literal["events", "list", "rows", "presence"] = "events",
        after: int | None = None,
        epoch: str | None = None,
    ) -> "AsyncWatch[Change] | AsyncWatch[TaskList] | AsyncWatch[tuple[Present, ...]]":
        """What happens to this list from now on, for `async for`: every change, or with view `list` the newest list.

        The watch reconnects by itself, without gap or repeat. View `list` delivers the list at once and then after
        changes; if many changes follow each other, it skips some of the lists in between.

        Args:
            view: `events`, `list`, or `rows`: the same lists as `list`, but only what changed comes over the wire.
                `presence`: who follows the list, as `presence` tells it, at once and when somebody comes or goes.
            after: Begin after this position instead of now: the `seq` of a change or of a list.
            epoch: Raise `WrongEpoch` if `after` belongs to another log (`(await client.open()).epoch`).
        """
        if view == "presence":
            return self.client.follow(Cursor(self.id, PresenceView()))
        if view != "events":
            return self.client.follow(Cursor(self.id, ListView() if view == "list" else RowsView()))
        return self.client.follow(Cursor(self.id, EventsView(), after, epoch))

    def work(self, owner: str, *, lease_ms: int = 60_000, wait_ms: int = 0, follow: bool = False) -> "AsyncWork":
        """Claims one task after the other for `async for`. See `punchlist.clients.work`.

        Each task is finished when the body ends, and its claim is renewed while the body runs. The loop ends when no
        task is available.

        Args:
            owner: Who works.
            lease_ms: How long a claim lasts after the last renewal by this process.
            wait_ms: How long to wait for a task before the loop ends.
            follow: Never end: wait for new tasks.

        Raises:
            LeaseLost: A claim was lost while the body ran, and the task is open again.
            LeaseHeld: A claim was lost while the body ran, and somebody else has the task now.
        """
        return AsyncWork(
            self.client, self.calls, Terms(owner, None, lease_ms, FOLLOW_MS if follow else min(wait_ms, FOLLOW_MS - 1))
        )

    def claim(self, owner: str, task: str | None = None, *, lease_ms: int = 60_000, wait_ms: int = 0) -> "AsyncClaim":
        """One task for an `async with`: the named one or the next ready one; None if no task is available.

        The end of the `async with` completes the task, an exception fails it; see `clients.work`. `take` only claims.

        Args:
            owner: Who works.
            task: Its id; by default the next ready one.
            lease_ms: How long the claim lasts after the last renewal by this process.
            wait_ms: How long to wait for a task.
        """
        return AsyncClaim(AsyncWork(self.client, self.calls, Terms(owner, task, lease_ms, wait_ms)))

    async def wait(self, until: Until = "done", *, timeout_s: float | None = None) -> TaskList:
        """Wait until the list meets a condition, and return it.

        Args:
            until: See `Until`.
            timeout_s: How many seconds to wait at most.

        Raises:
            TimedOut: The time has passed.
        """
        satisfied = condition(until)
        with move_on_after(timeout_s):
            async with self.watch(view="list") as lists:
                while not satisfied(tasks := await lists.next()):
                    pass
            return tasks
        raise TimedOut(f"The list did not meet the condition within {timeout_s:g} s.")
