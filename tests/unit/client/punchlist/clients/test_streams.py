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


async def test_only_steps_are_in_scope() -> None:
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
async def test_alternating_streams_keep_their_scopes(
    step: Callable[[AsyncIterator[str | None]], Awaitable[str | None]], look: Callable[[], Awaitable[str | None]]
) -> None:
    async def looking() -> AsyncGenerator[str | None]:
        for _ in range(2):
            yield await look()

    one, other = scoped(looking(), "A"), scoped(looking(), "B")
    assert [await step(each) for each in (one, other, one, other)] == ["A", "B", "A", "B"]
    assert current_conversation() is None


async def test_stream_keeps_its_end_or_error() -> None:
    async def short() -> AsyncGenerator[str | None]:
        yield current_conversation()
        raise ZeroDivisionError

    seen: Seen = []
    with pytest.raises(ZeroDivisionError):
        async for part in scoped(short(), "A"):
            seen.append(part)
    assert (seen, current_conversation()) == (["A"], None)


async def test_leaving_loop_leaks_no_scope() -> None:
    closed: Seen = []
    async for part in scoped(stream(closed), "GONE"):
        assert part == "GONE"
        break
    assert current_conversation() is None


def test_alternating_plain_generators_keep_their_scopes() -> None:
    closed: Seen = []
    with closing(scoped(plain(closed), "A")) as one, closing(scoped(plain(closed), "B")) as other:
        assert [next(one), next(other), next(one), current_conversation()] == ["A", "B", "A", None]
    assert closed == ["B", "A"]
    assert list(scoped(["x", "y"], "A")) == ["x", "y"]


def test_iterator_without_close_is_accepted() -> None:
    scoped(iter(["x"]), "A").close()


def test_empty_id_is_rejected() -> None:
    with pytest.raises(NoConversation):
        scoped([], "")
