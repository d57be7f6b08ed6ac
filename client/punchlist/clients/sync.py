"""The blocking client: `Client`, its conversations, watches and work. All of it is `clients.aio` behind a portal.

Any number of threads may use one client: their calls run at the same time over one connection, a call that waits
(`take`, `wait`, a watch, `work`) does not block the others, and claims are renewed in the background. At most 64 calls
of one client may wait (`LimitExceeded`). The timeout of a call starts with the call. After `os.fork` the child opens
its own connection and holds none of its parent's claims. An open client is closed when collected, or at exit.
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
    """Connect to the daemon, starting one if none runs. Use the client in a `with`, or close it.

    Args:
        **options: See `Options`.

    Raises:
        DaemonUnavailable: No daemon answers; the message says what to change.
    """
    client = Client(**options)
    client.open()
    return client


class Client(ClientMethods, Blocking):
    """A connection to the daemon. It reconnects by itself, and repeats a call that a restart interrupted.

    Threads may share it, and a forked child may keep using it; see the description of the module.

    Args:
        **options: See `Options`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._async = AsyncClient(**options)

    def as_user(self, user: str) -> "Client":
        """Another client of the same daemon, confined to the lists of this user."""
        return Client(**{**self._async.options, "user": user})

    def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return who answered."""
        return portal().call(self._async.open)

    def conversation(self, name: str | None = None, *, actor: str | None = None) -> "Conversation":
        """One list: `name`, else the list of the surrounding scope, else PUNCHLIST_CONVERSATION.

        Args:
            name: The conversation's id.
            actor: The actor that its changes are recorded for; by default the name of the client.

        Raises:
            NoConversation: No list is named.
        """
        return Conversation(self, self._async.conversation(name, actor=actor))

    def watch(self, *, after: int | None = None, epoch: str | None = None) -> "Watch[Change]":
        """Everything that happens in all lists, from now on or after position `after`."""
        return Watch(self._async.watch(after=after, epoch=epoch))

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make any call by its name on the wire and return the plain JSON result. Changes get a key here too."""
        request = Request.raw(method, params or {})
        return portal().deliver(
            lambda: self._async.call(method, params), lambda result: self._async.give_back(request, result)
        )

    def run(self, call: Call[R]) -> R:
        """Make a typed call."""
        return portal().deliver(
            lambda: self._async.run(call), lambda result: self._async.give_back(call.request, result)
        )

    def _make(self, call: Call[R]) -> R:
        return self.run(call)

    def follow(self, cursor: Cursor[T]) -> "Watch[T]":
        """A watch on a connection of its own."""
        return Watch(self._async.follow(cursor))

    def close(self) -> None:
        """Close the connection and end all watches. Calls in other threads end with `ConnectionLost`.

        The next call connects again.
        """
        portal().call(self._async.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Conversation(ConversationMethods, Blocking):
    """One list. Get it from `Client.conversation`."""

    def __init__(self, client: Client, face: AsyncConversation) -> None:
        self.client = client
        self.calls = face.calls
        self._async = face

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
        """What happens to this list from now on, for a `for` loop: every change, or with view `list` the newest list.

        The watch reconnects by itself, without gap or repeat. View `list` delivers the list at once and then after
        changes; if many changes follow each other, it skips some of the lists in between.

        Args:
            view: `events`, `list`, or `rows`: the same lists as `list`, but only what changed comes over the wire.
                `presence`: who follows the list, as `presence` tells it, at once and when somebody comes or goes.
            after: Begin after this position instead of now: the `seq` of a change or of a list.
            epoch: Raise `WrongEpoch` if `after` belongs to another log (`client.open().epoch`).
        """
        return self.client.follow(self._cursor(view, after, epoch))

    def work(self, owner: str, *, lease_ms: int = 60_000, wait_ms: int = 0, follow: bool = False) -> "Work":
        """Claims one task after the other for a `for` loop. See `punchlist.clients.work`.

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
        return Work(self._async.work(owner, lease_ms=lease_ms, wait_ms=wait_ms, follow=follow))

    def claim(self, owner: str, task: str | None = None, *, lease_ms: int = 60_000, wait_ms: int = 0) -> "Claim":
        """One task for a `with`: the named one or the next ready one; None if no task is available.

        The end of the `with` completes the task, an exception fails it; see `clients.work`. `take` only claims.

        Args:
            owner: Who works.
            task: Its id; by default the next ready one.
            lease_ms: How long the claim lasts after the last renewal by this process.
            wait_ms: How long to wait for a task.
        """
        return Claim(self._async.claim(owner, task, lease_ms=lease_ms, wait_ms=wait_ms))

    def wait(self, until: Until = "done", *, timeout_s: float | None = None) -> TaskList:
        """Wait until the list meets a to_predicate, and return it.

        Args:
            until: See `Until`.
            timeout_s: How many seconds to wait at most.

        Raises:
            TimedOut: The time has passed.
        """
        satisfied = to_predicate(until)  # called in this thread, where it may make calls of its own
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
    """A subscription for a `for` loop. Leave a `with`, or call `close`, to end it.

    It begins when it is made, so it sees every change after that line. One thread may read from it; any may close it.
    """

    def __init__(self, face: AsyncWatch[T]) -> None:
        self._async = face
        portal().call(face.__aenter__)

    def next(self, timeout_s: float | None = None) -> T:
        """The next item.

        Raises:
            TimedOut: Nothing came within `timeout_s` seconds; the watch continues.
        """
        return portal().deliver(lambda: self._async.next(timeout_s), self._async.put_back)

    def close(self) -> None:
        """End the subscription. A loop over it, also in another thread, ends."""
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
        if (face := getattr(self, "_async", None)) is not None:  # the constructor may have been interrupted
            post(face.drop)


class Work:
    """Tasks claimed one after the other, for a `for` loop in a `with`. See `Conversation.work`.

    The client renews the claim in the background, whatever this thread does. A forked child holds no claim.
    """

    def __init__(self, face: AsyncWork) -> None:
        self._async = face

    @property
    def fence(self) -> int | None:
        """The number of the current claim."""
        return self._async.fence

    def take(self, task: str | None = None) -> Task | None:
        """Claim the next task, or a named one; None if no task is available."""
        return portal().deliver(lambda: self._async.take(task), self._async.give_back)

    def complete(self, result: str | None = None) -> None:
        """Complete the current task with its result, unless it is finished or paused already.

        Raises:
            LeaseLost: The claim was lost, and the task is open again.
            LeaseHeld: The claim was lost, and somebody else has the task now.
        """
        portal().call(self._async.complete, result)

    def fail(self, reason: str) -> None:
        """Mark the current task as failed; raises the same errors as `complete`."""
        portal().call(self._async.fail, reason)

    def release(self) -> None:
        """Release the current task, so that others can claim it."""
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
    """One claimed task for a `with`. See `Conversation.claim`."""

    def __init__(self, face: AsyncClaim) -> None:
        self._async = face

    def __enter__(self) -> Task | None:
        return portal().deliver(self._async.__aenter__, self._async.give_back)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        portal().call(self._async.__aexit__, kind, error, trace)
