"""Streams of a turn: read-only tokens start nothing, and every stream ends."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect_async
from punchlist_apps.chat.live import Live
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.scripted_model import honest, serving
from punchlist_testing.web import Stream, Web, served

CHATS = "/api/v1/chats"
PLAN = "/api/v1/conversations/plan"


async def add_pending_turn(web: Web) -> tuple[str, str]:
    """Create a thread about `plan` with a pending turn; return both."""
    created = await web.ask("POST", CHATS, {"list": "plan"})
    thread: str = created.value["thread"]
    async with connect_async(socket=web.daemon.socket, autostart=False) as client:
        return thread, await (await Thread.find(client, thread)).send("add milk")


async def titles(web: Web) -> list[str]:
    return [task["title"] for task in (await web.ask("GET", f"{PLAN}/tasks")).value["tasks"]]


async def read_answer(stream: Stream) -> Any:
    while (event := await stream.next()).event != "message":
        pass
    answer = event.data
    assert (await stream.next()).event == "end"
    return answer["text"]


@pytest.mark.parametrize("worker", ["here", "elsewhere"])
async def test_read_only_token_starts_no_turn(web: Web, worker: str) -> None:
    thread, turn = await add_pending_turn(web)
    path = f"{CHATS}/{thread}/turns/{turn}"
    for scope in ({"mode": "ro"}, {"mode": "ro", "list": "plan"}):
        stream = await web.stream(path, Authorization=f"Bearer {web.session(**scope)}")
        with anyio.fail_after(30):
            while b":\n\n" not in stream.rest:  # a keep-alive: the stream has polled and the log has no answer yet
                await stream.more()
        assert await titles(web) == []
    if worker == "here":
        await web.stream(path)
    else:
        async with connect_async(socket=web.daemon.socket, autostart=False) as client:
            await Worker().answer(await Thread.find(client, thread), turn)
    assert await read_answer(stream) == "Created task: milk"
    assert await titles(web) == ["milk"]


async def test_turn_of_another_process_can_be_followed(tmp_path: Path) -> None:
    with serving(honest) as script:
        script.fault = "stall-mid"
        async with (
            served(tmp_path) as web,
            connect_async(socket=web.daemon.socket, autostart=False) as client,
            anyio.create_task_group() as group,
        ):
            thread, turn = await add_pending_turn(web)
            log_thread = await Thread.find(client, thread)
            group.start_soon(Worker(Completions("m", script.url)).answer, log_thread, turn)
            with anyio.fail_after(30):
                while not script.asked:
                    await anyio.lowlevel.checkpoint()
            stream = await web.stream(f"{CHATS}/{thread}/turns/{turn}")
            await log_thread.stop(turn)
            assert await read_answer(stream) == "Stopped."


@pytest.mark.parametrize("after", ["1000000", "9" * 190, "last"])
async def test_stream_ends_for_any_last_event_id(web: Web, after: str) -> None:
    thread, turn = await add_pending_turn(web)
    path, last = f"{CHATS}/{thread}/turns/{turn}", ""
    stream = await web.stream(path)
    while (event := await stream.next()).event != "end":
        pass
    last = event.id
    again = await web.stream(path, Last_Event_ID=last if after == "last" else after)
    assert b"event: end" in await again.to_end()


async def test_follower_continues_after_renumbering() -> None:
    """Events are renumbered after a server restart, or once the server has dropped the turn."""
    live = Live()
    tell = live.start("t/u1")
    tell("delta", {"text": "a"})
    names = list[str]()
    async with anyio.create_task_group() as group:

        async def follow() -> None:
            async for _, name, _ in live.follow("t/u1", 40):
                names.append(name)

        group.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        for number in range(200):
            live.start(f"t/other{number}")("end", {})
        tell("end", {})
    assert names == ["delta", "end"]
