"""The panel's endpoints over HTTP: turns, streams that resume, stop, and whose threads they are."""

import re
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


async def begun(web: Web, name: str = "plan", **headers: Any) -> str:
    made = await web.ask("POST", CHATS, {"list": name}, **headers)
    assert made.status == 201, made.body
    return f"{CHATS}/{made.value['thread']}"


async def sent(web: Web, thread: str, text: str) -> str:
    answer = await web.ask("POST", thread, {"text": text})
    assert answer.status == 202, answer.body
    return f"{thread}/turns/{answer.value['turn']}"


async def heard(stream: Stream) -> list[tuple[str, str, Any]]:
    """The events of a turn to its end."""
    events: list[tuple[str, str, Any]] = []
    while not events or events[-1][1] != "end":
        event = await stream.next()
        events.append((event.id, event.event, event.data))
    return events


async def test_a_turn_is_said_followed_and_kept(web: Web) -> None:
    thread = await begun(web)
    events = await heard(await web.stream(await sent(web, thread, "add <b>milk</b>")))
    assert [number for number, _, _ in events] == [str(n) for n in range(1, len(events) + 1)]
    (answer,) = [data for _, name, data in events if name == "message"]
    assert answer["text"] == "Created task: <b>milk</b>"
    told = (await web.ask("GET", thread)).value
    assert [(one["role"], one["text"]) for one in told["messages"]] == [
        ("user", "add <b>milk</b>"),
        ("assistant", "Created task: <b>milk</b>"),
    ]
    (listed,) = (await web.ask("GET", f"{CHATS}?list=plan")).value["threads"]
    assert thread.endswith(listed["thread"])


async def test_a_stream_that_was_cut_goes_on_behind_the_last_number_and_a_late_one_has_the_answer(web: Web) -> None:
    turn = await sent(web, await begun(web), "add eggs; flour")
    whole = await heard(await web.stream(turn))
    for after in (1, len(whole) - 1):
        assert await heard(await web.stream(turn, Last_Event_ID=str(after))) == whole[after:]


async def test_a_browser_that_goes_leaves_the_turn_to_its_end(web: Web) -> None:
    thread = await begun(web)
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


async def test_the_models_words_come_piece_by_piece_and_stop_ends_them(tmp_path: Path) -> None:
    with serving(honest) as script:
        script.fault = "stall-mid"
        async with served(tmp_path, model=Completions("m", script.url)) as web:
            thread = await begun(web)
            stream = await web.stream(await sent(web, thread, "hello"))
            event = await stream.next()
            while event.event != "delta":
                event = await stream.next()
            assert event.data == {"text": "Hello! I'"}
            began = time.monotonic()
            assert (await web.ask("POST", f"{thread}/stop", {})).value == {"stopped": True}
            rest = await heard(stream)
            assert time.monotonic() - began < 5
            (answer,) = [data for _, name, data in rest if name == "message"]
            assert (answer["text"], answer["source"]) == ("Stopped.", "stopped")


async def test_threads_are_those_of_the_tokens_user_and_list(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(user='ann')}"}
    bob = {"Authorization": f"Bearer {web.session(user='bob')}"}
    thread = await begun(web, **ann)
    await heard(await web.stream(await _as(web, thread, "add secret", ann), **ann))
    for verb, path, body in (
        ("GET", thread, None),
        ("POST", thread, {"text": "hi"}),
        ("POST", f"{thread}/stop", {}),
    ):
        assert (await web.ask(verb, path, body, **bob)).status == 404
    assert (await web.ask("GET", f"{CHATS}?list=plan", **bob)).value == {"threads": []}
    only = {"Authorization": f"Bearer {web.session(list='other')}"}
    assert (await web.ask("POST", CHATS, {"list": "plan"}, **only)).status == 403
    mine = await begun(web)
    assert (await web.ask("GET", mine, **only)).status == 403
    reading = {"Authorization": f"Bearer {web.session(mode='ro')}"}
    assert (await web.ask("POST", mine, {"text": "hi"}, **reading)).status == 403
    assert (await web.ask("GET", mine, Authorization=None)).status == 401


async def test_two_users_with_one_id_for_their_messages_each_hear_their_own_answer(web: Web) -> None:
    for user in ("ann", "bob"):
        headers = {"Authorization": f"Bearer {web.session(user=user)}"}
        thread = await begun(web, **headers)
        await web.ask("POST", thread, {"text": f"add of {user}", "turn": "u1"}, **headers)
        events = await heard(await web.stream(f"{thread}/turns/u1", **headers))
        assert [data["text"] for _, name, data in events if name == "message"] == [f"Created task: of {user}"]


async def test_a_thread_works_for_its_user_alone(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(user='ann')}"}
    thread = await begun(web, "default", **ann)
    await heard(await web.stream(await _as(web, thread, "add milk", ann), **ann))
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
    await heard(await web.stream(f"{thread}/turns/{turn}", **ann))
    tasks = (await web.ask("GET", "/api/v1/conversations/default/tasks", **ann)).value["tasks"]
    assert [task["title"] for task in tasks] == ["milk", "bread"]
    nobodys = (await web.ask("GET", "/api/v1/conversations/my:default")).value["conversation"]
    assert nobodys["version"] == 0


async def test_a_used_turn_takes_no_other_text(web: Web) -> None:
    thread = await begun(web)
    for text, status in (("add milk", 202), ("add milk", 202), ("add bread", 422)):
        said = await web.ask("POST", thread, {"text": text, "turn": "u1"})
        assert said.status == status, said.body
    assert said.value["kind"] == "key_conflict" and "u1" in said.value["detail"]
    assert len([one for one in (await web.ask("GET", thread)).value["messages"] if one["role"] == "user"]) == 1


async def test_a_message_without_a_turn_gets_one(web: Web) -> None:
    thread = await begun(web)
    async with AsyncClient(socket=web.daemon.socket, autostart=False, name="killed") as client:
        killed = await Thread.find(client, thread.rpartition("/")[2])
        await killed.append("u1", "user", {"text": "add milk"})
        events = await heard(await web.stream(f"{thread}/turns/u1"))
        assert [data["text"] for _, name, data in events if name == "message"] == ["Created task: milk"]
        await killed.append("u2", "user", {"text": "add bread"})
    events = await heard(await web.stream(await sent(web, thread, "show my tasks")))
    (told,) = [data["text"] for _, name, data in events if name == "message"]
    assert told == "You have 2 tasks:\n  ☐ #1 milk\n  ☐ #2 bread"


async def _as(web: Web, thread: str, text: str, headers: dict[str, str]) -> str:
    return f"{thread}/turns/{(await web.ask('POST', thread, {'text': text}, **headers)).value['turn']}"


async def test_bad_requests_are_told(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "t"})
    thread = await begun(web)
    for body in ({}, {"text": ""}, {"text": 7}, {"text": "a", "more": 1}, {"text": "a", "turn": "x.a"}):
        assert (await web.ask("POST", thread, body)).status in (400, 422), body
    assert (await web.ask("POST", CHATS, {"list": 7})).status in (400, 422)
    assert (await web.ask("GET", f"{CHATS}/chat-none")).status == 404
    assert (await web.ask("GET", f"{CHATS}/plan")).status in (400, 422)
    assert (await web.ask("GET", f"{thread}/turns/u9")).status == 404
    assert (await web.ask("POST", thread, {"text": "x" * 200_000})).status in (400, 413, 422)


async def test_the_page_of_the_panel_is_served_with_all_that_it_loads(web: Web) -> None:
    page = await web.ask("GET", "/chat", Authorization=None)
    assert page.status == 200 and b'src="/chat.js"' in page.body
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for name in re.findall(rb'(?:href|src)="(/[a-z.]+)"', page.body):
        assert (await web.ask("GET", name.decode(), Authorization=None)).status == 200
