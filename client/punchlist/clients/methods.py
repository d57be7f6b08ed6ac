"""The calls of both clients, declared once: a method blocks or is awaited, as the class says that has it."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, overload

from punchlist.calls.call import Call, ClientCalls
from punchlist.calls.conversations import ConversationCalls
from punchlist.calls.cursor import Cursor, EventsView, ListView, PresenceView, RowsView

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """A class whose calls block."""

    calls: Any

    def _make(self, call: Call[R]) -> R:
        raise NotImplementedError

    @staticmethod
    def method_of(build: Callable[Concatenate[Any, P], Call[R]]) -> Callable[Concatenate[Any, P], R]:
        """Return a method that makes the call which `build` describes."""

        @wraps(build)
        def method(self: Blocking, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._make(build(self.calls, *args, **kwargs))

        return method


class Awaited:
    """A class whose calls are awaited."""

    calls: Any

    async def _make(self, call: Call[R]) -> R:
        raise NotImplementedError

    @staticmethod
    def method_of(
        build: Callable[Concatenate[Any, P], Call[R]],
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
        """Return a method that makes the call which `build` describes."""

        @wraps(build)
        async def method(self: Awaited, *args: P.args, **kwargs: P.kwargs) -> R:
            return await self._make(build(self.calls, *args, **kwargs))

        return method


class makes(Generic[P, R]):  # noqa: N801 - reads as a declaration
    """A method that makes the call which `build` describes."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[R]]) -> None:
        self._build = build
        self._methods: dict[type, Any] = {}

    @overload
    def __get__(self, face: Blocking, kind: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, face: Awaited, kind: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, face: None, kind: type) -> Callable[..., Any]: ...
    def __get__(self, face: object, kind: Any) -> Any:
        if (method := self._methods.get(kind)) is None:
            method = self._methods[kind] = kind.method_of(self._build)
        return method if face is None else method.__get__(face, kind)


class ClientMethods:
    """What is asked of the daemon as a whole."""

    calls: ClassVar = ClientCalls()

    status = makes(ClientCalls.status)
    discover = makes(ClientCalls.discover)
    backup = makes(ClientCalls.backup)
    add_space = makes(ClientCalls.add_space)
    spaces = makes(ClientCalls.spaces)
    remove_space = makes(ClientCalls.remove_space)
    agents = makes(ClientCalls.agents)
    shutdown = makes(ClientCalls.shutdown)
    conversations = makes(ClientCalls.conversations)
    resolve = makes(ClientCalls.resolve)
    search = makes(ClientCalls.search)
    read = makes(ClientCalls.read)
    confirmation = makes(ClientCalls.confirmation)


class ConversationMethods:
    """What is asked of one list."""

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

    add = makes(ConversationCalls.add)
    add_many = makes(ConversationCalls.add_many)
    get = makes(ConversationCalls.get)
    list = makes(ConversationCalls.list)
    edit = makes(ConversationCalls.edit)
    explain = makes(ConversationCalls.explain)
    note = makes(ConversationCalls.note)
    approve = makes(ConversationCalls.approve)
    reject = makes(ConversationCalls.reject)
    set_status = makes(ConversationCalls.set_status)
    start = makes(ConversationCalls.start)
    complete = makes(ConversationCalls.complete)
    fail = makes(ConversationCalls.fail)
    pause = makes(ConversationCalls.pause)
    resume = makes(ConversationCalls.resume)
    reopen = makes(ConversationCalls.reopen)
    move = makes(ConversationCalls.move)
    take = makes(ConversationCalls.take)
    renew = makes(ConversationCalls.renew)
    release = makes(ConversationCalls.release)
    delete = makes(ConversationCalls.delete)
    apply = makes(ConversationCalls.apply)
    replace = makes(ConversationCalls.replace)
    clear = makes(ConversationCalls.clear)
    share = makes(ConversationCalls.share)
    repair_space = makes(ConversationCalls.repair_space)
    join = makes(ConversationCalls.join)
    leave = makes(ConversationCalls.leave)
    end_turn = makes(ConversationCalls.end_turn)
    undo = makes(ConversationCalls.undo)
    open = makes(ConversationCalls.open)
    info = makes(ConversationCalls.info)
    configure = makes(ConversationCalls.configure)
    attach = makes(ConversationCalls.attach)
    detach = makes(ConversationCalls.detach)
    erase = makes(ConversationCalls.erase)
    append_message = makes(ConversationCalls.append_message)
    retract = makes(ConversationCalls.retract)
    messages = makes(ConversationCalls.messages)
    message = makes(ConversationCalls.message)
    presence = makes(ConversationCalls.presence)
    find = makes(ConversationCalls.find)
