"""Chat endpoints over HTTP: turns, resumed streams, stop, and access to threads."""

import time
from pathlib import Path
from typing import Any

import anyio

from punchlist import AsyncClient
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.thread import Thread
from punchlist_testing.scripted_model import honest, serving
from punchlist_testing.web import Stream, Web, served

CHATS = "/api/v1/chats"


async def open_thread(web: Web, name: str = "plan", **headers: Any) -> str:
    created = await web.ask("POST", CHATS, {"list": name}, **headers)
    assert created.status == 201, created.body
    return f"{CHATS}/{created.value['thread']}"


async def send(web: Web, thread: str, text: str) -> str:
    answer = await web.ask("POST", thread, {"text": text})
    assert answer.status == 202, answer.body
    return f"{thread}/turns/{answer.value['turn']}"


async def read_turn(stream: Stream) -> list[tuple[str, str, Any]]:
    """Read the events of a turn to its end."""
    events: list[tuple[str, str, Any]] = []
    while not events or events[-1][1] != "end":
        event = await stream.next()
        events.append((event.id, event.event, event.data))
    return events


async def test_turn_is_streamed_and_stored(web: Web) -> None:
    thread = await open_thread(web)
    events = await read_turn(await web.stream(await send(web, thread, "add <b>milk</b>")))
    assert [number for number, _, _ in events] == [str(n) for n in range(1, len(events) + 1)]
    (answer,) = [data for _, name, data in events if name == "message"]
    assert answer["text"] == "Created task: <b>milk</b>"
    page = (await web.ask("GET", thread)).value
    assert [(message["role"], message["text"]) for message in page["messages"]] == [
        ("user", "add <b>milk</b>"),
        ("assistant", "Created task: <b>milk</b>"),
    ]
    (listed,) = (await web.ask("GET", f"{CHATS}?list=plan")).value["threads"]
    assert thread.endswith(listed["thread"])


async def test_turn_stream_resumes_after_last_event_id(web: Web) -> None:
    turn = await send(web, await open_thread(web), "add eggs; flour")
    events = await read_turn(await web.stream(turn))
    for after in (1, len(events) - 1):
        assert await read_turn(await web.stream(turn, Last_Event_ID=str(after))) == events[after:]


async def test_turn_finishes_without_a_browser(web: Web) -> None:
    thread = await open_thread(web)
    turn = "u1"
    await web.ask("POST", thread, {"text": "add milk", "turn": turn})
    with anyio.fail_after(30):
        while len((await web.ask("GET", thread)).value["messages"]) < 2:
            await anyio.lowlevel.checkpoint()
    again = await web.ask("POST", thread, {"text": "add milk", "turn": turn})
    assert again.status == 202
    assert len((await web.ask("GET", thread)).value["messages"]) == 2
    tasks = (await web.ask("GET", "/api/v1/conversations/plan/tasks")).value["tasks"]
    assert [task["title"] for task in tasks] == ["milk"]


async def test_model_text_streams_until_stopped(tmp_path: Path) -> None:
    with serving(honest) as script:
        script.fault = "stall-mid"
        async with served(tmp_path, model=Completions("m", script.url)) as web:
            thread = await open_thread(web)
            stream = await web.stream(await send(web, thread, "hello"))
            event = await stream.next()
            while event.event != "delta":
                event = await stream.next()
            assert event.data == {"text": "Hello! I'"}
            started = time.monotonic()
            assert (await web.ask("POST", f"{thread}/stop", {})).value == {"stopped": True}
            rest = await read_turn(stream)
            assert time.monotonic() - started < 5
            (answer,) = [data for _, name, data in rest if name == "message"]
            assert (answer["text"], answer["source"]) == ("Stopped.", "stopped")


async def test_threads_match_the_tokens_user_and_list(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(user='ann')}"}
    bob = {"Authorization": f"Bearer {web.session(user='bob')}"}
    thread = await open_thread(web, **ann)
    await read_turn(await web.stream(await send_as(web, thread, "add secret", ann), **ann))
    for verb, path, body in (
        ("GET", thread, None),
        ("POST", thread, {"text": "hi"}),
        ("POST", f"{thread}/stop", {}),
    ):
        assert (await web.ask(verb, path, body, **bob)).status == 404
    assert (await web.ask("GET", f"{CHATS}?list=plan", **bob)).value == {"threads": []}
    only = {"Authorization": f"Bearer {web.session(list='other')}"}
    assert (await web.ask("POST", CHATS, {"list": "plan"}, **only)).status == 403
    mine = await open_thread(web)
    assert (await web.ask("GET", mine, **only)).status == 403
    reading = {"Authorization": f"Bearer {web.session(mode='ro')}"}
    assert (await web.ask("POST", mine, {"text": "hi"}, **reading)).status == 403
    assert (await web.ask("GET", mine, Authorization=None)).status == 401


async def test_users_with_equal_turn_ids_get_own_answers(web: Web) -> None:
    for user in ("ann", "bob"):
        headers = {"Authorization": f"Bearer {web.session(user=user)}"}
        thread = await open_thread(web, **headers)
        await web.ask("POST", thread, {"text": f"add of {user}", "turn": "u1"}, **headers)
        events = await read_turn(await web.stream(f"{thread}/turns/u1", **headers))
        assert [data["text"] for _, name, data in events if name == "message"] == [f"Created task: of {user}"]


async def test_thread_works_only_for_its_user(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(user='ann')}"}
    thread = await open_thread(web, "default", **ann)
    await read_turn(await web.stream(await send_as(web, thread, "add milk", ann), **ann))
    async with AsyncClient(socket=web.daemon.socket, user="ann", autostart=False, name="test") as client:
        turn = await (await Thread.find(client, thread.rpartition("/")[2])).send("add bread")
    for verb, path, body in (
        ("POST", thread, {"text": "add stolen"}),
        ("POST", f"{thread}/stop", {}),
        ("GET", thread, None),
        ("GET", f"{thread}/turns/{turn}", None),
    ):
        refused = await web.ask(verb, path, body)
        assert (refused.status, refused.value["kind"]) == (403, "forbidden"), path
        assert "punch web --link --user ann" in refused.value["detail"]
    assert (await web.ask("GET", f"{CHATS}?list=my:default")).value == {"threads": []}
    await read_turn(await web.stream(f"{thread}/turns/{turn}", **ann))
    tasks = (await web.ask("GET", "/api/v1/conversations/default/tasks", **ann)).value["tasks"]
    assert [task["title"] for task in tasks] == ["milk", "bread"]
    unowned = (await web.ask("GET", "/api/v1/conversations/my:default")).value["conversation"]
    assert unowned["version"] == 0


async def test_used_turn_rejects_another_text(web: Web) -> None:
    thread = await open_thread(web)
    for text, status in (("add milk", 202), ("add milk", 202), ("add bread", 422)):
        answer = await web.ask("POST", thread, {"text": text, "turn": "u1"})
        assert answer.status == status, answer.body
    assert answer.value["kind"] == "key_conflict" and "u1" in answer.value["detail"]
    assert (
        len([message for message in (await web.ask("GET", thread)).value["messages"] if message["role"] == "user"]) == 1
    )


async def test_message_without_turn_is_answered(web: Web) -> None:
    thread = await open_thread(web)
    async with AsyncClient(socket=web.daemon.socket, autostart=False, name="killed") as client:
        killed = await Thread.find(client, thread.rpartition("/")[2])
        await killed.append("u1", "user", {"text": "add milk"})
        events = await read_turn(await web.stream(f"{thread}/turns/u1"))
        assert [data["text"] for _, name, data in events if name == "message"] == ["Created task: milk"]
        await killed.append("u2", "user", {"text": "add bread"})
    events = await read_turn(await web.stream(await send(web, thread, "show my tasks")))
    (answer,) = [data["text"] for _, name, data in events if name == "message"]
    assert answer == "You have 2 tasks:\n  ☐ #1 milk\n  ☐ #2 bread"


async def send_as(web: Web, thread: str, text: str, headers: dict[str, str]) -> str:
    return f"{thread}/turns/{(await web.ask('POST', thread, {'text': text}, **headers)).value['turn']}"


async def test_bad_chat_requests_are_rejected(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "t"})
    thread = await open_thread(web)
    for body in ({}, {"text": ""}, {"text": 7}, {"text": "a", "more": 1}, {"text": "a", "turn": "x.a"}):
        assert (await web.ask("POST", thread, body)).status in (400, 422), body
    assert (await web.ask("POST", CHATS, {"list": 7})).status in (400, 422)
    assert (await web.ask("GET", f"{CHATS}/chat-none")).status == 404
    assert (await web.ask("GET", f"{CHATS}/plan")).status in (400, 422)
    assert (await web.ask("GET", f"{thread}/turns/u9")).status == 404
    assert (await web.ask("POST", thread, {"text": "x" * 200_000})).status in (400, 413, 422)


async def test_earlier_address_leads_to_the_screen(web: Web) -> None:
    moved = await web.ask("GET", "/chat?list=caf%C3%A9%0a&thread=chat-1/2", Authorization=None)
    assert (moved.status, moved.headers["location"]) == (307, "/#/chat/chat-1%2F2?list=caf%C3%A9%0A")
