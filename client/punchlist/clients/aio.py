"""The asyncio client: `AsyncClient` and its conversations.

Calls of one client run concurrently over one connection. Cancelling a call cancels it in the daemon too. Each watch has
its own connection. If its consumer is slow, the client stops reading from the socket, and the daemon stores only the
watch's position.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Self, TypeVar, Unpack, overload

import msgspec

# Imported by name, because anyio loads parts of itself on first access. If an interrupt ended such an import during a
# call, the import lock could stay locked, and the loop's thread would wait for it forever.
from anyio import CancelScope, Lock, current_time, move_on_after, sleep

from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist.calls.cursor import Change, Cursor, EventsView, TaskList, Until, to_predicate
from punchlist.clients import scope
from punchlist.clients.methods import Awaited, ClientMethods, ConversationMethods
from punchlist.clients.watch import AsyncWatch
from punchlist.clients.work import FOLLOW_MS, AsyncClaim, AsyncWork, Terms
from punchlist.connection.core import Profile, Request, Retry, build_releases, error_of, is_transient, result_of
from punchlist.connection.forks import on_fork
from punchlist.connection.link import Link
from punchlist.connection.options import Options
from punchlist.errors import PunchlistError, TimedOut
from punchlist_schemas.jsonrpc import Reply
from punchlist_schemas.results import HelloResult, Present

R = TypeVar("R")
T = TypeVar("T")


def connect_async(**options: Unpack[Options]) -> "AsyncClient":
    """Return a client for `async with`, which connects and starts a daemon if none is running.

    Args:
        **options: See `Options`.
    """
    return AsyncClient(**options)


class AsyncClient(ClientMethods, Awaited):
    """A connection to the daemon. It reconnects automatically and repeats calls that a daemon restart interrupted.

    Args:
        **options: See `Options`.

    Attributes:
        on_connect: Called with each new connection before its first call, for what the daemon forgets when the
            connection ends.
    """

    on_connect: Callable[[Link], Awaitable[None]] | None = None

    # Set on the class, because `__del__` also runs after an interrupted `__init__`.
    _link: Link | None = None

    def __init__(self, **options: Unpack[Options]) -> None:
        self.options = options
        self._profile = Profile(options)
        self._lock = Lock()
        self._watches: set[AsyncWatch[Any]] = set()
        on_fork(self, AsyncClient._reset_after_fork)

    def as_user(self, user: str) -> "AsyncClient":
        """Return another client of the same daemon, limited to this user's lists."""
        return AsyncClient(**{**self.options, "user": user})

    async def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return the result of `daemon.hello`.

        Raises:
            TimedOut, DaemonUnavailable: Connecting failed, or took longer than `timeout_s`.
        """
        with move_on_after(self._profile.timeout_s):
            return (await self._ensure_link()).hello
        raise self._profile.target.build_timeout_error()

    async def stay_connected(self) -> None:
        """Connect, and return when the connection has ended.

        Raises:
            TimedOut, DaemonUnavailable: Connecting failed.
        """
        await (await self._ensure_link()).wait_closed()

    def conversation(self, name: str | None = None, *, actor: str | None = None) -> "AsyncConversation":
        """Return the conversation with an id, as `Client.conversation` does."""
        return AsyncConversation(self, scope.resolve(name), actor)

    def watch(self, *, after: int | None = None, epoch: str | None = None) -> "AsyncWatch[Change]":
        """Watch changes to all lists, from now on or after position `after`."""
        return self.follow(Cursor(None, EventsView(), after, epoch))

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make a call by its JSON-RPC method name and return the plain JSON result.

        A change without an idempotency key gets one.
        """
        return await self._send(Request.raw(method, params or {}), object)

    async def forward(self, request: Request) -> bytes:
        """Make a call and return the undecoded JSON of its result."""
        return bytes(await self._send(request, msgspec.Raw))

    async def run(self, call: Call[R]) -> R:
        """Make a typed call and return its result."""
        return call.pick(await self._send(call.request, call.result))

    async def _make(self, call: Call[R]) -> R:
        return await self.run(call)

    def post(self, request: Request) -> None:
        """Send a request and ignore its response. Does nothing if not connected."""
        if self._link is not None and not self._link.is_lost:
            self._link.post(request)

    def give_back(self, request: Request, result: object) -> None:
        """Release the tasks of a claim whose result can't be delivered. Must be called on the loop."""
        for release in build_releases(request, result):
            self.post(release)

    def follow(self, cursor: Cursor[T]) -> "AsyncWatch[T]":
        """Return a watch that delivers the items of a cursor over its own connection."""
        return AsyncWatch(self._profile, cursor, self._watches)

    async def aclose(self) -> None:
        """Close the connection and end all watches. The next call connects again."""
        with CancelScope(shield=True):
            for watch in list(self._watches):
                await watch.aclose()
            link, self._link = self._link, None
            if link is not None:
                await link.aclose()

    def _reset_after_fork(self) -> None:
        # The connection and its waiting calls belong to the parent process. The child opens its own connection.
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
        raise self._profile.target.build_timeout_error()

    async def _exchange(self, request: Request) -> Reply:
        link = await self._ensure_link()
        reply = await link.exchange(request)
        if (error := error_of(reply)) and is_transient(error):
            link.close()
        return reply

    async def _open_link(self) -> Link:
        link = await Link.open(self._profile)
        try:
            if self.on_connect is not None:
                await self.on_connect(link)
        except BaseException:
            link.close()
            raise
        return link

    async def _ensure_link(self) -> Link:
        async with self._lock:
            if self._link is None or self._link.is_lost:
                self._link = await self._open_link()
            return self._link


class AsyncConversation(ConversationMethods, Awaited):
    """One list. Get it from `AsyncClient.conversation`."""

    def __init__(self, client: AsyncClient, name: str, actor: str | None = None) -> None:
        self.client = client
        self.calls = ConversationCalls(name, actor)

    async def _make(self, call: Call[R]) -> R:
        return await self.client.run(call)

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
        """Watch this list with `async for`; see `Conversation.watch`."""
        return self.client.follow(self._cursor(view, after, epoch))

    def work(self, owner: str, *, lease_ms: int = 60_000, wait_ms: int = 0, follow: bool = False) -> "AsyncWork":
        """Claim one task after another with `async for`; see `Conversation.work`."""
        return AsyncWork(
            self.client, self.calls, Terms(owner, None, lease_ms, FOLLOW_MS if follow else min(wait_ms, FOLLOW_MS - 1))
        )

    def claim(self, owner: str, task: str | None = None, *, lease_ms: int = 60_000, wait_ms: int = 0) -> "AsyncClaim":
        """Claim one task for an `async with` block; see `Conversation.claim`."""
        return AsyncClaim(AsyncWork(self.client, self.calls, Terms(owner, task, lease_ms, wait_ms)))

    async def wait(self, until: Until = "done", *, timeout_s: float | None = None) -> TaskList:
        """Wait until the list meets a condition, and return the list; see `Conversation.wait`."""
        satisfied = to_predicate(until)
        with move_on_after(timeout_s):
            async with self.watch(view="list") as lists:
                while not satisfied(tasks := await lists.next()):
                    pass
            return tasks
        raise TimedOut(f"The list did not meet the condition within {timeout_s:g} s.")
