"""The calls of both clients, declared once. The class decides whether its methods block or are awaited."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, overload

from punchlist.calls.call import Call, ClientCalls
from punchlist.calls.conversations import ConversationCalls
from punchlist.calls.cursor import Cursor, EventsView, ListView, PresenceView, RowsView

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """Base class of classes whose calls block."""

    calls: Any

    def _make(self, call: Call[R]) -> R:
        raise NotImplementedError

    @staticmethod
    def method_of(build: Callable[Concatenate[Any, P], Call[R]]) -> Callable[Concatenate[Any, P], R]:
        """Return a method that makes the call built by `build`."""

        @wraps(build)
        def method(self: Blocking, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._make(build(self.calls, *args, **kwargs))

        return method


class Awaited:
    """Base class of classes whose calls are awaited."""

    calls: Any

    async def _make(self, call: Call[R]) -> R:
        raise NotImplementedError

    @staticmethod
    def method_of(
        build: Callable[Concatenate[Any, P], Call[R]],
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
        """Return a method that makes the call built by `build`."""

        @wraps(build)
        async def method(self: Awaited, *args: P.args, **kwargs: P.kwargs) -> R:
            return await self._make(build(self.calls, *args, **kwargs))

        return method


class CallMethod(Generic[P, R]):
    """Descriptor for a method that makes the call returned by `build`, with its signature and docstring."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[R]]) -> None:
        self._build = build
        self._methods: dict[type, Any] = {}

    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Awaited, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        if (method := self._methods.get(owner)) is None:
            method = self._methods[owner] = owner.method_of(self._build)
        return method if instance is None else method.__get__(instance, owner)


class ClientMethods:
    """Methods about the daemon as a whole."""

    calls: ClassVar = ClientCalls()

    status = CallMethod(ClientCalls.status)
    discover = CallMethod(ClientCalls.discover)
    backup = CallMethod(ClientCalls.backup)
    add_space = CallMethod(ClientCalls.add_space)
    spaces = CallMethod(ClientCalls.spaces)
    remove_space = CallMethod(ClientCalls.remove_space)
    agents = CallMethod(ClientCalls.agents)
    shutdown = CallMethod(ClientCalls.shutdown)
    conversations = CallMethod(ClientCalls.conversations)
    resolve = CallMethod(ClientCalls.resolve)
    search = CallMethod(ClientCalls.search)
    spans = CallMethod(ClientCalls.spans)
    read = CallMethod(ClientCalls.read)
    confirmation = CallMethod(ClientCalls.confirmation)


class ConversationMethods:
    """Methods about one list."""

    calls: ConversationCalls

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.calls.id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def _cursor(self, view: str, after: int | None, epoch: str | None) -> Cursor[Any]:
        if view == "events":
            return Cursor(self.id, EventsView(), after, epoch)
        views = {"list": ListView, "rows": RowsView, "presence": PresenceView}
        return Cursor(self.id, views[view]())

    add = CallMethod(ConversationCalls.add)
    add_many = CallMethod(ConversationCalls.add_many)
    get = CallMethod(ConversationCalls.get)
    list = CallMethod(ConversationCalls.list)
    edit = CallMethod(ConversationCalls.edit)
    explain = CallMethod(ConversationCalls.explain)
    note = CallMethod(ConversationCalls.note)
    approve = CallMethod(ConversationCalls.approve)
    reject = CallMethod(ConversationCalls.reject)
    set_status = CallMethod(ConversationCalls.set_status)
    start = CallMethod(ConversationCalls.start)
    complete = CallMethod(ConversationCalls.complete)
    fail = CallMethod(ConversationCalls.fail)
    pause = CallMethod(ConversationCalls.pause)
    resume = CallMethod(ConversationCalls.resume)
    reopen = CallMethod(ConversationCalls.reopen)
    move = CallMethod(ConversationCalls.move)
    take = CallMethod(ConversationCalls.take)
    renew = CallMethod(ConversationCalls.renew)
    release = CallMethod(ConversationCalls.release)
    delete = CallMethod(ConversationCalls.delete)
    apply = CallMethod(ConversationCalls.apply)
    replace = CallMethod(ConversationCalls.replace)
    clear = CallMethod(ConversationCalls.clear)
    share = CallMethod(ConversationCalls.share)
    repair_space = CallMethod(ConversationCalls.repair_space)
    join = CallMethod(ConversationCalls.join)
    leave = CallMethod(ConversationCalls.leave)
    end_turn = CallMethod(ConversationCalls.end_turn)
    undo = CallMethod(ConversationCalls.undo)
    open = CallMethod(ConversationCalls.open)
    info = CallMethod(ConversationCalls.info)
    configure = CallMethod(ConversationCalls.configure)
    attach = CallMethod(ConversationCalls.attach)
    detach = CallMethod(ConversationCalls.detach)
    erase = CallMethod(ConversationCalls.erase)
    append_message = CallMethod(ConversationCalls.append_message)
    retract = CallMethod(ConversationCalls.retract)
    messages = CallMethod(ConversationCalls.messages)
    message = CallMethod(ConversationCalls.message)
    presence = CallMethod(ConversationCalls.presence)
    find = CallMethod(ConversationCalls.find)
    histogram = CallMethod(ConversationCalls.histogram)
