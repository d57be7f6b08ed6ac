import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, closing

import pytest

from punchlist import NoConversation, conversation, current_conversation, scoped

Seen = list[str | None]


async def stream(seen: Seen) -> AsyncGenerator[str | None]:
    try:
        while True:
            yield current_conversation()
    finally:
        seen.append(current_conversation())


def plain(seen: Seen) -> Generator[str | None]:
    try:
        while True:
            yield current_conversation()
    finally:
        seen.append(current_conversation())


async def test_each_step_is_in_the_scope_and_what_is_between_them_is_not() -> None:
    closed: Seen = []
    with conversation("around"):
        async with aclosing(scoped(stream(closed), "A")) as one, aclosing(scoped(stream(closed), "B")) as other:
            for _ in range(3):
                assert [await anext(one), current_conversation(), await anext(other)] == ["A", "around", "B"]
            started = asyncio.create_task(asyncio.to_thread(current_conversation))
            assert await started == "around"
    assert closed == ["B", "A"]
    assert current_conversation() is None


async def here() -> str | None:
    return current_conversation()


LOOKS: dict[str, Callable[[], Awaitable[str | None]]] = {
    "here": here,
    "thread": lambda: asyncio.to_thread(current_conversation),
    "task": lambda: asyncio.create_task(here()),
    "time limit": lambda: asyncio.wait_for(here(), 30),
}
STEPS: dict[str, Callable[[AsyncIterator[str | None]], Awaitable[str | None]]] = {
    "own": anext,
    "time limit": lambda stream: asyncio.wait_for(anext(stream), 30),
    "task": lambda stream: asyncio.ensure_future(anext(stream)),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
async def test_streams_that_take_turns_keep_their_scopes(
    step: Callable[[AsyncIterator[str | None]], Awaitable[str | None]], look: Callable[[], Awaitable[str | None]]
) -> None:
    async def looking() -> AsyncGenerator[str | None]:
        for _ in range(2):
            yield await look()

    one, other = scoped(looking(), "A"), scoped(looking(), "B")
    assert [await step(each) for each in (one, other, one, other)] == ["A", "B", "A", "B"]
    assert current_conversation() is None


async def test_a_stream_with_an_end_or_an_error_ends_so() -> None:
    async def short() -> AsyncGenerator[str | None]:
        yield current_conversation()
        raise ZeroDivisionError

    seen: Seen = []
    with pytest.raises(ZeroDivisionError):
        async for part in scoped(short(), "A"):
            seen.append(part)
    assert (seen, current_conversation()) == (["A"], None)


async def test_leaving_the_loop_leaves_no_scope_behind() -> None:
    closed: Seen = []
    async for part in scoped(stream(closed), "GONE"):
        assert part == "GONE"
        break
    assert current_conversation() is None


def test_plain_generators_take_turns_as_well() -> None:
    closed: Seen = []
    with closing(scoped(plain(closed), "A")) as one, closing(scoped(plain(closed), "B")) as other:
        assert [next(one), next(other), next(one), current_conversation()] == ["A", "B", "A", None]
    assert closed == ["B", "A"]
    assert list(scoped(["x", "y"], "A")) == ["x", "y"]


def test_what_can_not_be_closed_needs_no_closing() -> None:
    scoped(iter(["x"]), "A").close()


def test_an_empty_id_is_refused() -> None:
    with pytest.raises(NoConversation):
        scoped([], "")
