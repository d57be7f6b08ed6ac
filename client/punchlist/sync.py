"""The blocking face: `Client`, its conversations, watches and work. All of it is `punchlist.aio` behind a portal.

A client may be used by any number of threads: their calls go on at the same time over one connection, a call that
waits (`take`, `wait`, a watch, `work`) holds up no other, and claims are renewed meanwhile. One client may have 64
calls waiting (`LimitExceeded`). The time of a call counts from the call. After `os.fork` the child has a connection
of its own and holds none of its parent's claims. What is left behind unclosed is closed when it is collected, and at
the latest when the interpreter exits.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from punchlist.aio import AsyncClient, AsyncConversation, AsyncWatch
from punchlist.calls import Call, ClientCalls
from punchlist.conversation_calls import ConversationCalls
from punchlist.cursor import Change, Cursor, TaskList, Until, condition
from punchlist.errors import TimedOut
from punchlist.options import Options
from punchlist.portal import portal, post
from punchlist.work import AsyncClaim, AsyncWork
from punchlist_schemas.results import HelloResult
from punchlist_schemas.things import Task

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def connect(**options: Unpack[Options]) -> "Client":
    """Connect to the daemon, starting one if none runs. Use the client in a `with`, or close it.

    Args:
        **options: See `Options`.

    Raises:
        DaemonUnavailable: Nobody answers; the message says what to change.
    """
    client = Client(**options)
    client.open()
    return client


def blocking(
    build: Callable[Concatenate[ConversationCalls, P], Call[R]],
) -> Callable[Concatenate["Conversation", P], R]:
    """A method of `Conversation` that makes the call which `build` describes."""

    @wraps(build)
    def method(self: "Conversation", *args: P.args, **kwargs: P.kwargs) -> R:
        return self.client.run(build(self.calls, *args, **kwargs))

    return method


def _blocking(build: Callable[Concatenate[ClientCalls, P], Call[R]]) -> Callable[Concatenate["Client", P], R]:
    @wraps(build)
    def method(self: "Client", *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(build(ClientCalls(), *args, **kwargs))

    return method


class Client:
    """A connection to the daemon that mends itself: a call that is interrupted by a restart is made again.

    Threads may share it, and a forked child may use it on; see the module's description.

    Args:
        **options: See `Options`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._face = AsyncClient(**options)

    status = _blocking(ClientCalls.status)
    discover = _blocking(ClientCalls.discover)
    backup = _blocking(ClientCalls.backup)
    shutdown = _blocking(ClientCalls.shutdown)
    conversations = _blocking(ClientCalls.conversations)
    resolve = _blocking(ClientCalls.resolve)
    read = _blocking(ClientCalls.read)
    confirmation = _blocking(ClientCalls.confirmation)

    def as_user(self, user: str) -> "Client":
        """Another client of the same daemon, whose connection is confined to this user's conversations."""
        return Client(**{**self._face.options, "user": user})

    def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return who answered."""
        return portal().call(self._face.open)

    def conversation(self, name: str | None = None, *, actor: str | None = None) -> "Conversation":
        """One list: `name`, or the one of the scope around, or of PUNCHLIST_CONVERSATION, as it is now.

        Args:
            name: The conversation's id.
            actor: Who its changes are recorded for, by default the client's name.

        Raises:
            NoConversation: None is named.
        """
        return Conversation(self, self._face.conversation(name, actor=actor))

    def watch(self, *, after: int | None = None, epoch: str | None = None) -> "Watch[Change]":
        """Everything that happens from now, or behind position `after`, in all conversations."""
        return Watch(self._face.watch(after=after, epoch=epoch))

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make any call by its wire name and get the plain JSON result. Mutations get a key here too."""
        return portal().call(self._face.call, method, params)

    def run(self, call: Call[R]) -> R:
        """Make a typed call."""
        return portal().call(self._face.run, call)

    def follow(self, cursor: Cursor[T]) -> "Watch[T]":
        """A watch on a connection of its own."""
        return Watch(self._face.follow(cursor))

    def close(self) -> None:
        """Close the connection and end all watches. Calls that other threads wait for end with `ConnectionLost`.

        Using the client again connects again.
        """
        portal().call(self._face.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Conversation:
    """One list. Get it from `Client.conversation`."""

    def __init__(self, client: Client, face: AsyncConversation) -> None:
        self.client = client
        self.calls = face.calls
        self._face = face

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.calls.id

    def __repr__(self) -> str:
        return f"Conversation({self.id!r})"

    add = blocking(ConversationCalls.add)
    add_many = blocking(ConversationCalls.add_many)
    get = blocking(ConversationCalls.get)
    list = blocking(ConversationCalls.list)
    edit = blocking(ConversationCalls.edit)
    explain = blocking(ConversationCalls.explain)
    note = blocking(ConversationCalls.note)
    approve = blocking(ConversationCalls.approve)
    reject = blocking(ConversationCalls.reject)
    set_status = blocking(ConversationCalls.set_status)
    start = blocking(ConversationCalls.start)
    complete = blocking(ConversationCalls.complete)
    fail = blocking(ConversationCalls.fail)
    pause = blocking(ConversationCalls.pause)
    resume = blocking(ConversationCalls.resume)
    reopen = blocking(ConversationCalls.reopen)
    move = blocking(ConversationCalls.move)
    take = blocking(ConversationCalls.take)
    renew = blocking(ConversationCalls.renew)
    release = blocking(ConversationCalls.release)
    delete = blocking(ConversationCalls.delete)
    replace = blocking(ConversationCalls.replace)
    clear = blocking(ConversationCalls.clear)
    end_turn = blocking(ConversationCalls.end_turn)
    undo = blocking(ConversationCalls.undo)
    open = blocking(ConversationCalls.open)
    info = blocking(ConversationCalls.info)
    configure = blocking(ConversationCalls.configure)
    attach = blocking(ConversationCalls.attach)
    detach = blocking(ConversationCalls.detach)
    erase = blocking(ConversationCalls.erase)
    append_message = blocking(ConversationCalls.append_message)
    messages = blocking(ConversationCalls.messages)
    message = blocking(ConversationCalls.message)
    find = blocking(ConversationCalls.find)

    @overload
    def watch(
        self, *, view: Literal["events"] = "events", after: int | None = None, epoch: str | None = None
    ) -> "Watch[Change]": ...

    @overload
    def watch(self, *, view: Literal["list", "rows"]) -> "Watch[TaskList]": ...

    def watch(
        self, *, view: Literal["events", "list", "rows"] = "events", after: int | None = None, epoch: str | None = None
    ) -> "Watch[Change] | Watch[TaskList]":
        """What happens here from now on, for a `for` loop: every change, or with view `list` the newest list.

        It reconnects by itself, without gap or repeat. The list comes at once and then after each change; where many
        follow each other some are skipped.

        Args:
            view: `events`, `list`, or `rows`: the same lists as `list`, of which only what changed comes over the wire.
            after: Begin behind this position instead of now: a change's `seq`, or that of a list.
            epoch: Refuse with `WrongEpoch` if `after` belongs to another log (`client.open().epoch`).
        """
        if view != "events":
            return Watch(self._face.watch(view=view))
        return Watch(self._face.watch(after=after, epoch=epoch))

    def work(self, owner: str, *, lease_ms: int = 60_000, wait_ms: int = 0, follow: bool = False) -> "Work":
        """Claims one task after the other for a `for` loop. See `punchlist.work`.

        Each is finished by how the body ended, and its claim renewed while the body runs. The loop ends when there is
        no task to be had.

        Args:
            owner: Who works.
            lease_ms: How long a claim outlives the last sign of life of this process.
            wait_ms: How long to wait for a task before the loop ends.
            follow: Wait for ever.

        Raises:
            LeaseLost: A claim was lost while the body ran, and the task is open again.
            LeaseHeld: The same, and somebody else has it by now.
        """
        return Work(self._face.work(owner, lease_ms=lease_ms, wait_ms=wait_ms, follow=follow))

    def claim(self, owner: str, task: str | None = None, *, lease_ms: int = 60_000, wait_ms: int = 0) -> "Claim":
        """One task for a `with`: the named one or the next ready one; None if there is none to be had.

        Its end completes the task, an exception fails it; see `punchlist.work`. `take` claims and does nothing more.

        Args:
            owner: Who works.
            task: Its id; by default the next ready one.
            lease_ms: How long the claim outlives the last sign of life of this process.
            wait_ms: How long to wait for it.
        """
        return Claim(self._face.claim(owner, task, lease_ms=lease_ms, wait_ms=wait_ms))

    def wait(self, until: Until = "done", *, timeout_s: float | None = None) -> TaskList:
        """Wait until the list is as wanted, and return it.

        Args:
            until: See `Until`.
            timeout_s: At most so many seconds.

        Raises:
            TimedOut: The time is over.
        """
        satisfied = condition(until)  # asked in this thread, where it may make calls of its own
        end = None if timeout_s is None else time.monotonic() + timeout_s
        lists = self._face.watch(view="list")
        try:
            while not satisfied(tasks := portal().call(lists.next, None if end is None else end - time.monotonic())):
                pass
        except TimedOut as error:
            if end is None or time.monotonic() < end:
                raise
            raise TimedOut(f"The list was not as wanted within {timeout_s:g} s.") from error
        finally:
            portal().call(lists.aclose)
        return tasks


class Watch(Generic[T]):
    """A subscription for a `for` loop. Leave a `with`, or call `close`, to end it.

    It begins when it is made: what is done after that line is seen. One thread takes from it, any may close it.
    """

    def __init__(self, face: AsyncWatch[T]) -> None:
        self._face = face
        portal().call(face.__aenter__)

    def next(self, timeout_s: float | None = None) -> T:
        """The next item.

        Raises:
            TimedOut: There is none within `timeout_s` seconds; the watch goes on.
        """
        return portal().call(self._face.next, timeout_s)

    def close(self) -> None:
        """End the subscription. A loop over it, also in another thread, ends."""
        portal().call(self._face.aclose)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return portal().call(self._face.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if (face := getattr(self, "_face", None)) is not None:  # the constructor may have been interrupted
            post(face.drop)


class Work:
    """Tasks claimed one after the other, for a `for` loop in a `with`. See `Conversation.work`.

    The claim is renewed on the client's own loop, whatever this thread does. A forked child holds no claim.
    """

    def __init__(self, face: AsyncWork) -> None:
        self._face = face

    @property
    def fence(self) -> int | None:
        """The number of the present claim."""
        return self._face.fence

    def take(self, task: str | None = None) -> Task | None:
        """Claim the next task, or a named one; None if there is none to be had."""
        return portal().call(self._face.take, task)

    def complete(self, result: str | None = None) -> None:
        """Complete the present task, saying in `result` what came of it, unless it was finished or laid aside already.

        Raises:
            LeaseLost: The claim was lost meanwhile, and the task is somebody else's or open again.
            LeaseHeld: Somebody else has it by now.
        """
        portal().call(self._face.complete, result)

    def fail(self, reason: str) -> None:
        """Give the present task up as failed; raises as `complete` does."""
        portal().call(self._face.fail, reason)

    def release(self) -> None:
        """Give the present task back, for another to claim."""
        portal().call(self._face.release)

    close = release

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Task:
        try:
            return portal().call(self._face.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        portal().call(self._face.end, error)


class Claim:
    """One claimed task for a `with`. See `Conversation.claim`."""

    def __init__(self, face: AsyncClaim) -> None:
        self._face = face

    def __enter__(self) -> Task | None:
        return portal().call(self._face.__aenter__)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        portal().call(self._face.__aexit__, kind, error, trace)
