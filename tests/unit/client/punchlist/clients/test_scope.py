import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pluggy
import pytest

from punchlist import MisplacedScope, NoConversation, conversation, current_conversation
from punchlist.clients.scope import resolve


def test_argument_scope_environment_in_this_order() -> None:
    env = {"PUNCHLIST_CONVERSATION": "from-env"}
    assert resolve(None, env) == "from-env"
    with conversation("from-scope"):
        assert resolve(None, env) == "from-scope"
        assert resolve("given", env) == "given"


@pytest.mark.parametrize("env", [{}, {"PUNCHLIST_CONVERSATION": ""}])
def test_missing_scope_is_rejected_with_three_options(env: dict[str, str]) -> None:
    with pytest.raises(NoConversation, match="PUNCHLIST_CONVERSATION"):
        resolve(None, env)


def test_empty_id_is_rejected() -> None:
    with pytest.raises(NoConversation):
        conversation("")


def test_scopes_nest_without_leaks() -> None:
    with conversation("outer") as name:
        assert name == "outer"
        with pytest.raises(ZeroDivisionError), conversation("inner"):
            assert current_conversation() == "inner"
            _ = 1 // 0
        assert current_conversation() == "outer"
    assert current_conversation() is None


async def test_scope_holds_only_in_its_tasks_and_threads() -> None:
    seen: dict[str, str | None] = {}
    inside = anyio.Event()

    async def note(name: str) -> None:
        await inside.wait()
        seen[name] = await anyio.to_thread.run_sync(current_conversation)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(note, "outside")
            async with conversation("mine"):
                tasks.start_soon(note, "inside")
                inside.set()
                with conversation("other"):
                    await anyio.lowlevel.checkpoint()
    assert seen == {"outside": None, "inside": "mine"}


async def test_many_tasks_may_enter_one_scope_object() -> None:
    shared = conversation("shared")

    async def enter() -> None:
        async with shared:
            await anyio.lowlevel.checkpoint()
            assert current_conversation() == "shared"
        assert current_conversation() is None

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(enter)


# Places where a scope wouldn't hold


async def stream() -> AsyncGenerator[str | None]:
    async with conversation("A"):
        yield current_conversation()


async def stream_in_a_plain_with() -> AsyncGenerator[str | None]:
    with conversation("A"):
        yield current_conversation()


async def stream_with_an_exit_stack() -> AsyncGenerator[str | None]:
    async with AsyncExitStack() as stack:
        stack.enter_context(conversation("A"))
        await stack.enter_async_context(conversation("A"))
        yield current_conversation()


@contextmanager
def within(name: str) -> Generator[None]:
    with conversation(name):
        yield


@asynccontextmanager
async def within_async(name: str) -> AsyncGenerator[None]:
    async with conversation(name):
        yield


class Within:
    def __enter__(self) -> None:
        self._scope = conversation("A")
        self._scope.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._scope.__exit__(None, None, None)


async def stream_in_a_generated_manager() -> AsyncGenerator[str | None]:
    with within("A"):
        yield current_conversation()


async def stream_in_a_generated_async_manager() -> AsyncGenerator[str | None]:
    async with within_async("A"):
        yield current_conversation()


async def stream_in_a_manager_of_a_class() -> AsyncGenerator[str | None]:
    with Within():
        yield current_conversation()


def opening(name: str) -> Generator[str | None]:
    with conversation(name):
        yield current_conversation()


@contextmanager
def delegating(name: str) -> Generator[str | None]:
    yield from opening(name)


def twice(name: str) -> Generator[str | None]:
    yield from opening(name)


@contextmanager
def delegating_twice(name: str) -> Generator[str | None]:
    yield from twice(name)


STREAMS = (
    *(stream, stream_in_a_plain_with, stream_with_an_exit_stack, stream_in_a_generated_manager),
    *(stream_in_a_generated_async_manager, stream_in_a_manager_of_a_class),
)


@pytest.mark.parametrize("make", STREAMS)
async def test_a_stream_opens_no_scope(make: Callable[[], AsyncGenerator[str | None]]) -> None:
    with conversation("around"):
        for step in (anext(make()), asyncio.wait_for(anext(make()), 30), asyncio.ensure_future(anext(make()))):
            with pytest.raises(MisplacedScope, match=r"punchlist\.scoped\(stream.*\(\.\.\.\), 'A'\)"):
                await step
        assert current_conversation() == "around"


def test_a_plain_stream_opens_no_scope() -> None:
    def plain() -> Generator[str | None]:
        with conversation("A"):
            yield current_conversation()

    with pytest.raises(MisplacedScope, match=r"punchlist\.scoped\(plain\(\.\.\.\), 'A'\)"):
        next(plain())
    with ThreadPoolExecutor(1) as pool, pytest.raises(MisplacedScope):
        pool.submit(next, plain()).result(30)
    assert current_conversation() is None


def test_a_delegated_manager_holds_for_its_block() -> None:
    for _ in range(100):  # the interpreter specializes the delegation after some rounds
        with delegating("A"), ExitStack() as stack:
            stack.enter_context(delegating_twice("B"))
            assert current_conversation() == "B"
        assert current_conversation() is None
    with pytest.raises(ZeroDivisionError), delegating("A"):
        _ = 1 // 0
    assert current_conversation() is None


def test_a_delegated_stream_opens_no_scope() -> None:
    def outer() -> Generator[str | None]:
        yield from opening("A")

    for _ in range(100):
        with pytest.raises(MisplacedScope, match=r"punchlist\.scoped\(outer\(\.\.\.\), 'A'\)"):
            next(outer())
    assert current_conversation() is None


def test_stream_in_manager_opens_no_scope() -> None:
    @contextmanager
    def first() -> Generator[str | None]:
        yield next(opening("A"))

    @contextmanager
    def loop() -> Generator[str | None]:
        for one in opening("A"):  # noqa: UP028 - `yield from` behaves differently
            yield one

    for manager in (first, loop):
        for _ in range(100):
            with pytest.raises(MisplacedScope, match=r"scoped\(opening\(.*by `yield from`"), manager():
                pass
    assert current_conversation() is None


@pytest.mark.parametrize("is_old", [False, True])
def test_a_hook_wrapper_holds_for_its_hook(is_old: bool) -> None:
    class Wrapper:
        @pluggy.HookimplMarker("scopes")(wrapper=not is_old, hookwrapper=is_old)
        def look(self) -> Generator[None, Any, Any]:
            with conversation("hook"):
                return (yield)

    class Inner:
        @pluggy.HookimplMarker("scopes")
        def look(self) -> str | None:
            return current_conversation()

    class Spec:
        @pluggy.HookspecMarker("scopes")
        def look(self) -> None: ...

    hooks = pluggy.PluginManager("scopes")
    hooks.add_hookspecs(Spec)
    for one in (Wrapper(), Inner()):
        hooks.register(one)
    assert hooks.hook.look() == ["hook"]
    assert current_conversation() is None


def _join(thread: threading.Thread) -> None:
    thread.start()
    thread.join(30)


def _submit(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(30)


THREADS: tuple[Callable[[Callable[[], None]], None], ...] = (
    lambda work: _join(threading.Thread(target=work)),
    lambda work: _join(threading.Timer(0, work)),
    _submit,
)


@pytest.mark.parametrize("run", THREADS)
def test_plain_thread_gets_advice_about_scopes(run: Callable[[Callable[[], None]], None]) -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            seen.append(resolve(None, {}))
        except NoConversation as error:
            seen.append(str(error))

    with conversation("A"):
        run(work)
        run(partial(copy_context().run, work))
    assert "contextvars.copy_context().run" in seen[0]
    assert seen[1:] == ["A"]


async def test_function_called_by_stream_opens_scope() -> None:
    async def ask(name: str) -> str | None:
        async with within_async(name):
            return await asyncio.to_thread(current_conversation)

    async def asking(name: str) -> AsyncGenerator[str | None]:
        for _ in range(2):
            yield await ask(name)

    one, other = asking("A"), asking("B")
    assert [await anext(each) for each in (one, other, one, other)] == ["A", "B", "A", "B"]
    assert current_conversation() is None


async def test_thread_or_task_opens_no_scope_for_caller() -> None:
    """FastAPI runs dependencies with `yield` in a thread unless they are `async def`."""
    manager = within("A")
    with pytest.raises(MisplacedScope, match="must be an `async def`"):
        await anyio.to_thread.run_sync(manager.__enter__)
    with pytest.raises(MisplacedScope):
        await asyncio.to_thread(conversation("A").__enter__)
    with pytest.raises(MisplacedScope):
        await asyncio.create_task(within_async("A").__aenter__())


async def test_a_scope_is_closed_where_it_was_opened() -> None:
    async def close(scope: conversation, error: Exception | None) -> str | None:
        with conversation("here"):
            await scope.__aexit__(error and type(error), error, None)
            return current_conversation()

    with conversation("A"):
        assert await asyncio.create_task(close(conversation("B"), ZeroDivisionError())) == "here"
        with pytest.raises(MisplacedScope, match="'B' is closed in another task"):
            await asyncio.create_task(close(conversation("B"), None))
        assert current_conversation() == "A"


# Generators that don't leak their scope


def test_a_generated_manager_holds_for_its_block() -> None:
    with within("A"), ExitStack() as stack:
        assert current_conversation() == "A"
        stack.enter_context(within("B"))
        assert current_conversation() == "B"
    assert current_conversation() is None


@within("decorated")
def decorated() -> str | None:
    return current_conversation()


async def test_a_generated_async_manager_holds_for_its_block() -> None:
    async with within_async("A"), AsyncExitStack() as stack:
        assert await asyncio.create_task(asyncio.to_thread(current_conversation)) == "A"
        await stack.enter_async_context(within_async("B"))
        assert current_conversation() == "B"
        assert decorated() == "decorated"
    assert current_conversation() is None


async def test_an_async_dependency_holds_for_its_request() -> None:
    """FastAPI enters async dependencies in the request's task.

    That task runs the endpoint, or a thread does if it is a `def`.
    """

    async def request(name: str) -> tuple[str | None, str | None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(within_async(name))
            await anyio.lowlevel.checkpoint()
            return current_conversation(), await anyio.to_thread.run_sync(current_conversation)

    assert await asyncio.gather(request("A"), request("B")) == [("A", "A"), ("B", "B")]


@pytest.fixture
def fixed() -> Generator[None]:
    with conversation("fixed"):
        yield


@pytest.fixture
async def fixed_async() -> AsyncGenerator[None]:
    async with conversation("fixed async"):
        yield


@pytest.fixture
def fixed_by_delegation() -> Generator[str | None]:
    yield from opening("fixed")


@pytest.fixture
def refused() -> str:
    """Start a generator that would leak its scope into the test, and return the error."""
    with pytest.raises(MisplacedScope) as error:
        next(opening("leaked"))
    return str(error.value)


def test_a_fixture_delegates(fixed_by_delegation: str | None) -> None:
    assert current_conversation() == fixed_by_delegation == "fixed"


def test_stream_in_fixture_opens_no_scope(refused: str) -> None:
    assert "punchlist.scoped(opening(...)" in refused
    assert current_conversation() is None


@pytest.mark.usefixtures("fixed")
def test_a_fixture_holds_for_its_test() -> None:
    assert current_conversation() == "fixed"


@pytest.mark.usefixtures("fixed_async")
async def test_an_async_fixture_holds_for_its_test() -> None:
    assert await asyncio.to_thread(current_conversation) == "fixed async"


def test_fixtures_leak_no_scope() -> None:
    assert current_conversation() is None
