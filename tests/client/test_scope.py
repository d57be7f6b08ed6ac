import threading
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

    with anyio.fail_after(5):
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

    with anyio.fail_after(5):
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
