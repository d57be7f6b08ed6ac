import asyncio
import gc
import os
import random
import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from contextvars import copy_context

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from punchlist import NoConversation, conversation, current_conversation
from punchlist.scope import resolve


def test_argument_scope_environment_in_this_order() -> None:
    env = {"PUNCHLIST_CONVERSATION": "from-env"}
    assert resolve(None, env) == "from-env"
    with conversation("from-scope"):
        assert resolve(None, env) == "from-scope"
        assert resolve("given", env) == "given"


@pytest.mark.parametrize("env", [{}, {"PUNCHLIST_CONVERSATION": ""}])
def test_nothing_named_is_refused_with_the_three_ways(env: dict[str, str]) -> None:
    with pytest.raises(NoConversation, match="PUNCHLIST_CONVERSATION"):
        resolve(None, env)


def test_an_empty_id_is_refused() -> None:
    with pytest.raises(NoConversation):
        conversation("")


def test_scopes_nest_and_never_leak_even_through_an_exception() -> None:
    with conversation("outer") as name:
        assert name == "outer"
        with pytest.raises(ZeroDivisionError), conversation("inner"):
            assert current_conversation() == "inner"
            _ = 1 // 0
        assert current_conversation() == "outer"
    assert current_conversation() is None


async def test_a_scope_holds_in_tasks_and_threads_started_in_it_and_not_in_others() -> None:
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


async def test_one_scope_object_may_be_entered_by_many_tasks_at_once() -> None:
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


def test_a_plain_thread_takes_the_scope_along_in_a_copied_context() -> None:
    seen: list[str | None] = []
    with conversation("mine"):
        threads = [
            threading.Thread(target=lambda: seen.append(current_conversation())),
            threading.Thread(target=copy_context().run, args=(lambda: seen.append(current_conversation()),)),
        ]
        for thread in threads:
            thread.start()
            thread.join(5)
    assert seen == [None, "mine"]


async def stream(name: str) -> AsyncGenerator[str | None]:
    async with conversation(name):
        while True:
            yield current_conversation()


async def test_generators_that_take_turns_keep_each_to_its_own_scope() -> None:
    first, second = stream("A"), stream("B")
    assert [await anext(one) for one in (first, second, first, second)] == ["A", "B", "A", "B"]
    assert current_conversation() is None
    await first.aclose()
    assert current_conversation() is None
    assert await anext(second) == "B"
    await second.aclose()
    assert current_conversation() is None


async def test_a_loop_over_a_generator_that_is_left_early_leaves_no_scope_behind() -> None:
    with conversation("mine"):
        async for _ in stream("GONE"):
            assert current_conversation() == "mine"
            break
        assert current_conversation() == "mine"
        gc.collect()
        await anyio.lowlevel.checkpoint()
        assert current_conversation() == "mine"
    assert current_conversation() is None


async def test_a_generator_that_contextlib_closes_ends_its_scope() -> None:
    with conversation("mine"):
        async with aclosing(stream("A")) as one, aclosing(stream("B")) as other:
            assert [await anext(one), await anext(other), current_conversation()] == ["A", "B", "mine"]
        assert current_conversation() == "mine"
    assert current_conversation() is None


async def test_an_exception_thrown_into_a_generator_ends_its_scope_alone() -> None:
    one, other = stream("A"), stream("B")
    await anext(one)
    await anext(other)
    with pytest.raises(ZeroDivisionError):
        await one.athrow(ZeroDivisionError())
    assert current_conversation() is None
    assert await anext(other) == "B"
    await other.aclose()


async def test_a_generator_that_is_run_by_another_task_in_each_step_keeps_its_scope() -> None:
    one = stream("A")

    async def step() -> str | None:
        return await anext(one)

    assert [await asyncio.create_task(step()) for _ in range(3)] == ["A", "A", "A"]
    await one.aclose()
    assert current_conversation() is None


async def test_tasks_and_threads_that_a_generator_starts_are_in_its_scope() -> None:
    async def working() -> AsyncGenerator[str | None]:
        async with conversation("A"):
            yield await anyio.to_thread.run_sync(current_conversation)

            async def note() -> str | None:
                await anyio.lowlevel.checkpoint()
                return current_conversation()

            yield await asyncio.create_task(note())
            yield await note()

    assert [one async for one in working()] == ["A", "A", "A"]
    assert current_conversation() is None


async def test_scopes_nest_in_a_generator_and_around_its_steps() -> None:
    async def nested() -> AsyncGenerator[str | None]:
        with conversation("outer"):
            async with AsyncExitStack() as stack:
                stack.enter_context(conversation("inner"))
                yield current_conversation()
                with conversation("innermost"):
                    yield current_conversation()
                yield current_conversation()
            yield current_conversation()
        yield current_conversation()

    seen: list[str | None] = []
    with conversation("before"):
        steps = nested()
        seen.append(await anext(steps))
    seen.append(current_conversation())
    with conversation("between"):
        seen += [await anext(steps), current_conversation()]
    seen += [one async for one in steps]
    assert seen == ["inner", None, "innermost", "between", "inner", "outer", None]


async def test_a_context_manager_made_of_a_generator_holds_for_its_body() -> None:
    @asynccontextmanager
    async def within(name: str) -> AsyncGenerator[None]:
        async with conversation(name):
            yield

    async with within("A"):
        assert current_conversation() == "A"

    async def streaming() -> AsyncGenerator[str | None]:
        async with within("B"):
            yield current_conversation()
            yield current_conversation()

    async for one in streaming():
        assert (one, current_conversation()) == ("B", None)


async def test_any_interleaving_of_generators_and_scopes_is_kept_apart() -> None:
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"SEED={seed}")
    chance = random.Random(seed)

    async def deep(name: str) -> AsyncGenerator[tuple[str | None, str]]:
        async with conversation(name):
            yield current_conversation(), name
            for depth in range(3):
                with conversation(f"{name}-{depth}"):
                    yield current_conversation(), f"{name}-{depth}"
                yield current_conversation(), name

    async def after(one: AsyncGenerator[tuple[str | None, str]]) -> tuple[str | None, str] | None:
        return await anext(one, None)

    for _ in range(50):
        running = [deep(f"s{number}") for number in range(4)]
        around = [f"w{number}" for number in range(chance.randrange(3))]
        async with AsyncExitStack() as stack:
            for name in around:
                stack.enter_context(conversation(name))
            while running:
                one = chance.choice(running)
                if chance.random() < 0.1:
                    await one.aclose()
                    running.remove(one)
                else:
                    found = await (asyncio.create_task(after(one)) if chance.random() < 0.2 else after(one))
                    if found is None:
                        running.remove(one)
                    else:
                        assert found[0] == found[1]
                assert current_conversation() == (around[-1] if around else None)
        assert current_conversation() is None
