"""The blocking client: `Client`, its conversations, watches and work. Wraps `clients.aio` through a portal.

Any number of threads may share a client. Their calls run concurrently over one connection: a call that waits (`take`,
`wait`, a watch, `work`) does not block the others. Claims are renewed in the background. At most 64 calls of one client
may wait at a time; more raise `LimitExceeded`. A call's timeout starts when the call is made. After `os.fork` the child
opens its own connection and holds none of its parent's claims. An open client is closed when it is garbage-collected,
or at exit.
"""

import time
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload

from punchlist.calls.call import Call
from punchlist.calls.cursor import Change, Cursor, TaskList, Until, to_predicate
from punchlist.clients.aio import AsyncClient, AsyncConversation
from punchlist.clients.methods import Blocking, ClientMethods, ConversationMethods
from punchlist.clients.watch import AsyncWatch
from punchlist.clients.work import AsyncClaim, AsyncWork
from punchlist.connection.core import Request
from punchlist.connection.options import Options
from punchlist.connection.portal import portal, post
from punchlist.errors import TimedOut
from punchlist_schemas.results import HelloResult, Present
from punchlist_schemas.things import Task

R = TypeVar("R")
T = TypeVar("T")


def connect(**options: Unpack[Options]) -> "Client":
    """Connect to the daemon, starting one if none is running. Use the client in a `with` block, or close it.

    Args:
        **options: See `Options`.

    Raises:
        DaemonUnavailable: No daemon responds; the message says what to change.
        TimedOut: Connecting took longer than `timeout_s`.
    """
    client = Client(**options)
    client.open()
    return client


class Client(ClientMethods, Blocking):
    """A connection to the daemon. It reconnects automatically and repeats calls that a daemon restart interrupted.

    Threads may share it, and a forked child may keep using it; see the module's docstring.

    Args:
        **options: See `Options`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._async = AsyncClient(**options)

    def as_user(self, user: str) -> "Client":
        """Return another client of the same daemon, limited to this user's lists."""
        return Client(**{**self._async.options, "user": user})

    def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return the result of `daemon.hello`.

        Raises:
            TimedOut, DaemonUnavailable: Connecting failed, or took longer than `timeout_s`.
        """
        return portal().call(self._async.open)

    def conversation(self, name: str | None = None, *, actor: str | None = None) -> "Conversation":
        """Return one list: `name`, else the list of the surrounding scope, else PUNCHLIST_CONVERSATION.

        Args:
            name: The conversation's id.
            actor: Actor recorded with changes made through this object; by default, the client's name.

        Raises:
            NoConversation: No list is named.
        """
        return Conversation(self, self._async.conversation(name, actor=actor))

    def watch(self, *, after: int | None = None, epoch: str | None = None) -> "Watch[Change]":
        """Watch changes to all lists, from now on or after position `after`."""
        return Watch(self._async.watch(after=after, epoch=epoch))

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make a call by its JSON-RPC method name and return the plain JSON result.

        A change without an idempotency key gets one.
        """
        request = Request.raw(method, params or {})
        return portal().deliver(
            lambda: self._async.call(method, params), lambda result: self._async.give_back(request, result)
        )

    def run(self, call: Call[R]) -> R:
        """Make a typed call and return its result."""
        return portal().deliver(
            lambda: self._async.run(call), lambda result: self._async.give_back(call.request, result)
        )

    def _make(self, call: Call[R]) -> R:
        return self.run(call)

    def follow(self, cursor: Cursor[T]) -> "Watch[T]":
        """Return a watch that delivers the items of a cursor over its own connection."""
        return Watch(self._async.follow(cursor))

    def close(self) -> None:
        """Close the connection and end all watches. Calls in other threads fail with `ConnectionLost`.

        The next call connects again.
        """
        portal().call(self._async.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Conversation(ConversationMethods, Blocking):
    """One list. Get it from `Client.conversation`."""

    def __init__(self, client: Client, async_conversation: AsyncConversation) -> None:
        self.client = client
        self.calls = async_conversation.calls
        self._async = async_conversation

    def _make(self, call: Call[R]) -> R:
        return self.client.run(call)

    @overload
    def watch(
        self, *, view: Literal["events"] = "events", after: int | None = None, epoch: str | None = None
    ) -> "Watch[Change]": ...

    @overload
    def watch(self, *, view: Literal["list", "rows"]) -> "Watch[TaskList]": ...

    @overload
    def watch(self, *, view: Literal["presence"]) -> "Watch[tuple[Present, ...]]": ...

    def watch(
        self,
        *,
        view: Literal["events", "list", "rows", "presence"] = "events",
        after: int | None = None,
        epoch: str | None = None,
    ) -> "Watch[Change] | Watch[TaskList] | Watch[tuple[Present, ...]]":
        """Watch this list with a `for` loop. The watch reconnects automatically, without gaps or repeats.

        Args:
            view: What the watch delivers.
                `events`: every change, from now on or after position `after`.
                `list`: the whole list, immediately and after changes; intermediate states may be skipped.
                `rows`: the same as `list`, but the daemon sends only the tasks that changed.
                `presence`: the subscribers of the list, immediately and whenever they change.
            after: Start after this position instead of now: the `seq` of a change or of a list. For `events` only.
            epoch: Raise `WrongEpoch` if `after` belongs to another log (`client.open().epoch`).
        """
        return self.client.follow(self._cursor(view, after, epoch))

    def work(self, owner: str, *, lease_ms: int = 60_000, wait_ms: int = 0, follow: bool = False) -> "Work":
        """Claim one task after another with a `for` loop; see `punchlist.clients.work`.

        Each task is completed when the body ends, and its claim is renewed while the body runs. The loop ends when no
        task is available.

        Args:
            owner: Name of the worker, recorded as the tasks' owner.
            lease_ms: Milliseconds a claim lasts after the last renewal, from 1 second to 24 hours.
            wait_ms: Milliseconds to wait for a task before the loop ends.
            follow: Wait for new tasks without a time limit.

        Raises:
            LeaseLost: A claim was lost while the body ran, and the task is open again.
            LeaseHeld: A claim was lost while the body ran, and another owner has claimed the task.
        """
        return Work(self._async.work(owner, lease_ms=lease_ms, wait_ms=wait_ms, follow=follow))

    def claim(self, owner: str, task: str | None = None, *, lease_ms: int = 60_000, wait_ms: int = 0) -> "Claim":
        """Claim one task for a `with` block. `as` binds the task, or None if no task is available.

        The task is completed when the block ends, and marked as failed if the block raises an exception; see
        `punchlist.clients.work`. To claim a task without finishing it, use `take`, whose documentation also lists the
        errors.

        Args:
            owner: Name of the worker, recorded as the task's owner.
            task: Id of the task; by default the next ready one.
            lease_ms: Milliseconds the claim lasts after the last renewal, from 1 second to 24 hours.
            wait_ms: Milliseconds to wait for a task.
        """
        return Claim(self._async.claim(owner, task, lease_ms=lease_ms, wait_ms=wait_ms))

    def wait(self, until: Until = "done", *, timeout_s: float | None = None) -> TaskList:
        """Wait until the list meets a condition, and return the list.

        Args:
            until: `done`, `idle`, `change` or a predicate; see `Until`.
            timeout_s: Upper limit in seconds; None for no limit.

        Raises:
            TimedOut: The condition was not met in time.
        """
        # The predicate runs in this thread, not on the loop, so it may make blocking calls itself.
        satisfied = to_predicate(until)
        end = None if timeout_s is None else time.monotonic() + timeout_s
        lists = self._async.watch(view="list")
        try:
            while not satisfied(tasks := portal().call(lists.next, None if end is None else end - time.monotonic())):
                pass
        except TimedOut as error:
            if end is None or time.monotonic() < end:
                raise
            raise TimedOut(f"The list did not meet the condition within {timeout_s:g} s.") from error
        finally:
            portal().call(lists.aclose)
        return tasks


class Watch(Generic[T]):
    """A subscription for a `for` loop. It ends when its `with` block is left, or with `close`.

    The subscription starts in the constructor, so it delivers every change made afterwards. Only one thread may read
    from it. Any thread may close it.
    """

    def __init__(self, async_watch: AsyncWatch[T]) -> None:
        self._async = async_watch
        portal().call(async_watch.__aenter__)

    def next(self, timeout_s: float | None = None) -> T:
        """Wait for the next item and return it.

        Raises:
            TimedOut: No item arrived within `timeout_s` seconds. The watch continues.
            ConnectionLost: The watch is closed.
        """
        return portal().deliver(lambda: self._async.next(timeout_s), self._async.put_back)

    def close(self) -> None:
        """End the subscription and any loop over it, even in another thread."""
        portal().call(self._async.aclose)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return portal().deliver(self._async.__anext__, self._async.put_back)
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The attribute is missing if the constructor was interrupted.
        if (watch := getattr(self, "_async", None)) is not None:
            post(watch.drop)


class Work:
    """Tasks claimed one after another, for a `for` loop in a `with` block; see `Conversation.work`.

    The claim is renewed in the background while this thread works. A forked child holds no claims.
    """

    def __init__(self, async_work: AsyncWork) -> None:
        self._async = async_work

    @property
    def fence(self) -> int | None:
        """Number of the current claim; None if no task is claimed."""
        return self._async.fence

    def take(self, task: str | None = None) -> Task | None:
        """Claim the next ready task, or the task with id `task`. Return None if no task is available."""
        return portal().deliver(lambda: self._async.take(task), self._async.give_back)

    def complete(self, result: str | None = None) -> None:
        """Complete the current task with its result, unless it is already finished or paused.

        Raises:
            LeaseLost: The claim was lost, and the task is open again.
            LeaseHeld: The claim was lost, and another owner has claimed the task.
        """
        portal().call(self._async.complete, result)

    def fail(self, reason: str) -> None:
        """Mark the current task as failed; raises the same errors as `complete`."""
        portal().call(self._async.fail, reason)

    def release(self) -> None:
        """Release the current task so that others can claim it."""
        portal().call(self._async.release)

    close = release

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Task:
        try:
            return portal().deliver(self._async.__anext__, self._async.give_back)
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        portal().call(self._async.end, error)


class Claim:
    """One claimed task for a `with` block; see `Conversation.claim`."""

    def __init__(self, async_claim: AsyncClaim) -> None:
        self._async = async_claim

    def __enter__(self) -> Task | None:
        return portal().deliver(self._async.__aenter__, self._async.give_back)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        portal().call(self._async.__aexit__, kind, error, trace)
