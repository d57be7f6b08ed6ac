"""The blocking face: `Client`, its conversations and watches. Everything that is not waiting is in `punchlist.core`.

A client may be used by several threads; its calls then take turns on one connection. A watch has a connection of its
own, so that calls go on meanwhile, and is used by one thread (`close` may come from any).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from punchlist import scope
from punchlist.calls import Call, ClientCalls
from punchlist.conversation_calls import ConversationCalls
from punchlist.core import Options, Profile, Request, Retry, failure, is_passing, result_of
from punchlist.cursor import Change, Cursor, EventsView, ListView, TaskList, Until, condition
from punchlist.errors import ConnectionLost, PunchlistError, TimedOut
from punchlist.sync_link import FOR_EVER, Link
from punchlist.work import FOLLOW_MS, Claim, Terms, Work
from punchlist_schemas.jsonrpc import Notice, Reply
from punchlist_schemas.results import HelloResult, SubscribeResult

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
    """A connection to the daemon that mends itself: a call that is interrupted by a restart is made again, once.

    Args:
        **options: See `Options`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._profile = Profile(options)
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._watches: WeakSet[Watch[Any]] = WeakSet()

    status = _blocking(ClientCalls.status)
    discover = _blocking(ClientCalls.discover)
    backup = _blocking(ClientCalls.backup)
    shutdown = _blocking(ClientCalls.shutdown)
    conversations = _blocking(ClientCalls.conversations)
    resolve = _blocking(ClientCalls.resolve)
    read = _blocking(ClientCalls.read)

    def open(self) -> HelloResult:
        """Connect now instead of at the first call, and return who answered."""
        with self._lock:
            return self._connected(time.monotonic() + self._profile.timeout_s).hello

    def conversation(self, name: str | None = None, *, actor: str | None = None) -> "Conversation":
        """One list: `name`, or the one of the scope around, or of PUNCHLIST_CONVERSATION, as it is now.

        Args:
            name: The conversation's id.
            actor: Who its changes are recorded for, by default the client's name.

        Raises:
            NoConversation: None is named.
        """
        return Conversation(self, scope.resolve(name), actor)

    def watch(self, *, after: int | None = None, epoch: str | None = None) -> "Watch[Change]":
        """Everything that happens from now, or behind position `after`, in all conversations."""
        return self.follow(Cursor(None, EventsView(), after, epoch))

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make any call by its wire name and get the plain JSON result. Mutations get a key here too."""
        return self._send(Request.raw(method, params or {}), object)

    def run(self, call: Call[R]) -> R:
        """Make a typed call."""
        return call.pick(self._send(call.request, call.result))

    def follow(self, cursor: Cursor[T]) -> "Watch[T]":
        """A watch on a connection of its own."""
        watch = Watch(self._profile, cursor)
        self._watches.add(watch)
        return watch

    def close(self) -> None:
        """Close the connection and end all watches. Using the client again connects again."""
        for watch in list(self._watches):
            watch.close()
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _send(self, request: Request, type_: type[T]) -> T:
        deadline = time.monotonic() + self._profile.timeout_s + request.patience_s
        retry = Retry(deadline, repeatable=request.repeatable)
        while True:
            try:
                return result_of(self._exchange(request, deadline), type_)
            except PunchlistError as error:
                pause_s = retry.pause_s(error, time.monotonic())
            time.sleep(pause_s)

    def _exchange(self, request: Request, deadline: float) -> Reply:
        with self._lock:
            try:
                reply = self._connected(deadline).exchange(request, deadline)
            except BaseException:
                # Also on Ctrl-C: half a request may have been sent. One that is refused unsent costs no connection.
                if self._link is not None and not self._link.is_settled:
                    self._drop()
                raise
            if (error := failure(reply)) and is_passing(error):
                self._drop()
            return reply

    def _connected(self, deadline: float) -> Link:
        if self._link is None:
            self._link = Link(self._profile, deadline)
        return self._link

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


class Conversation:
    """One list. Get it from `Client.conversation`."""

    def __init__(self, client: Client, name: str, actor: str | None = None) -> None:
        self.client = client
        self.calls = ConversationCalls(name, actor)

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
    undo = blocking(ConversationCalls.undo)
    open = blocking(ConversationCalls.open)
    info = blocking(ConversationCalls.info)
    configure = blocking(ConversationCalls.configure)
    attach = blocking(ConversationCalls.attach)
    detach = blocking(ConversationCalls.detach)
    erase = blocking(ConversationCalls.erase)
    append_message = blocking(ConversationCalls.append_message)
    messages = blocking(ConversationCalls.messages)

    @overload
    def watch(
        self, *, view: Literal["events"] = "events", after: int | None = None, epoch: str | None = None
    ) -> "Watch[Change]": ...

    @overload
    def watch(self, *, view: Literal["list"]) -> "Watch[TaskList]": ...

    def watch(
        self, *, view: Literal["events", "list"] = "events", after: int | None = None, epoch: str | None = None
    ) -> "Watch[Change] | Watch[TaskList]":
        """What happens here from now on, for a `for` loop: every change, or with view `list` the newest list.

        It reconnects by itself, without gap or repeat. The list comes at once and then after each change; where many
        follow each other some are skipped.

        Args:
            view: `events` or `list`.
            after: Begin behind this position instead of now: a change's `seq`, or that of a list.
            epoch: Refuse with `WrongEpoch` if `after` belongs to another log (`client.open().epoch`).
        """
        if view == "list":
            return self.client.follow(Cursor(self.id, ListView()))
        return self.client.follow(Cursor(self.id, EventsView(), after, epoch))

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
        return Work(self, Terms(owner, None, lease_ms, FOLLOW_MS if follow else min(wait_ms, FOLLOW_MS - 1)))

    def claim(self, owner: str, task: str | None = None, *, lease_ms: int = 60_000, wait_ms: int = 0) -> "Claim":
        """One task for a `with`: the named one or the next ready one; None if there is none to be had.

        Its end completes the task, an exception fails it; see `punchlist.work`. `take` claims and does nothing more.

        Args:
            owner: Who works.
            task: Its id; by default the next ready one.
            lease_ms: How long the claim outlives the last sign of life of this process.
            wait_ms: How long to wait for it.
        """
        return Claim(Work(self, Terms(owner, task, lease_ms, wait_ms)))

    def wait(self, until: Until = "done", *, timeout_s: float | None = None) -> TaskList:
        """Wait until the list is as wanted, and return it.

        Args:
            until: See `Until`.
            timeout_s: At most so many seconds.

        Raises:
            TimedOut: The time is over.
        """
        satisfied = condition(until)
        with _within(timeout_s, "The list was not as wanted") as deadline, self.watch(view="list") as lists:
            while not satisfied(tasks := lists.next(deadline - time.monotonic())):
                pass
        return tasks


class Watch(Generic[T]):
    """A subscription for a `for` loop. Leave a `with`, or call `close`, to end it.

    It begins when it is made: what is done after that line is seen.
    """

    def __init__(self, profile: Profile, cursor: Cursor[T]) -> None:
        self._profile = profile
        self._cursor = cursor
        self._ready: deque[T] = deque()
        self._link: Link | None = None
        self._retry: Retry | None = None
        self._closed = False
        while self._link is None:
            self._step(FOR_EVER)

    def next(self, timeout_s: float | None = None) -> T:
        """The next item.

        Raises:
            TimedOut: There is none within `timeout_s` seconds; the watch goes on.
        """
        with _within(timeout_s, "Nothing happened") as deadline:
            while not self._ready:
                self._step(deadline)
        return self._ready.popleft()

    def close(self) -> None:
        """End the subscription. A loop over it, also in another thread, ends."""
        self._closed = True
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _step(self, deadline: float) -> None:
        try:
            self._advance(deadline)
            self._retry = None
        except PunchlistError as error:
            if self._closed or isinstance(error, TimedOut):
                raise
            self._retry = self._retry or Retry(time.monotonic() + self._profile.timeout_s)
            pause_s = self._retry.pause_s(error, time.monotonic())
            self._link = _closed(self._link)
            time.sleep(pause_s)

    def _advance(self, deadline: float) -> None:
        if self._closed:
            raise ConnectionLost("The watch is closed.")
        if self._link is not None:
            message = self._link.receive(deadline)
            self._ready.extend(self._cursor.take(message) if isinstance(message, Notice) else ())
            return
        connect_by = min(deadline, time.monotonic() + self._profile.timeout_s)
        link = Link(self._profile, connect_by)
        try:
            reply = link.exchange(Request.of("event.subscribe", self._cursor.subscribe()), connect_by)
            self._ready.extend(self._cursor.begin(result_of(reply, SubscribeResult)))
        except BaseException:
            link.close()
            raise
        self._link = link

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self.next()
        except ConnectionLost:
            if self._closed:
                raise StopIteration from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


@contextmanager
def _within(timeout_s: float | None, what: str) -> Generator[float]:
    """The deadline of a wait; at its end the error says what did not come, instead of blaming the daemon."""
    deadline = FOR_EVER if timeout_s is None else time.monotonic() + timeout_s
    try:
        yield deadline
    except TimedOut as error:
        if time.monotonic() < deadline:
            raise
        raise TimedOut(f"{what} within {timeout_s:g} s.") from error


def _closed(link: Link | None) -> None:
    if link is not None:
        link.close()
