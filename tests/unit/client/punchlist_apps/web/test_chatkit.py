"""`/chatkit` over HTTP, by openai-chatkit's own server classes; needs the extra `chatkit`."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from punchlist_testing.optional import require_package

with warnings.catch_warnings():  # ChatKit warns of classes of its own
    warnings.simplefilter("ignore")
    require_package("chatkit")
    import_module("chatkit.server")

from punchlist_apps.chat.models.completions import Completions
from punchlist_testing.scripted_model import honest, results, serving
from punchlist_testing.web import Answer, Web, served

TURNS = 20


async def ask(web: Web, kind: str, headers: dict[str, str] | None = None, **params: Any) -> Any:
    """One request of the front-end; the JSON of its answer, or its events."""
    answer = await web.ask("POST", "/chatkit", {"type": kind, "params": params}, **(headers or {}))
    if answer.status != 200:
        return answer
    if "event-stream" not in answer.headers["content-type"]:
        return answer.value
    lines = [line for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(line[6:]) for line in lines]


def said(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"input": {"content": content, "attachments": [], "inference_options": {}}}


def answered(events: Any) -> list[dict[str, Any]]:
    items = [one["item"] for one in events if one["type"] == "thread.item.done"]
    return [item for item in items if item["type"] == "assistant_message"]


async def test_many_turns_have_an_id_each_and_the_store_keeps_them_all(web: Web) -> None:
    events = await ask(web, "threads.create", **said("add task 0"))
    (created,) = [one["thread"] for one in events if one["type"] == "thread.created"]
    answers = answered(events)
    for number in range(1, TURNS):
        events = await ask(web, "threads.add_user_message", thread_id=created["id"], **said(f"add task {number}"))
        answers += answered(events)
    assert [one["content"][0]["text"] for one in answers] == [f"Created task: {n}" for n in range(TURNS)]
    page = await ask(web, "items.list", thread_id=created["id"], limit=100, order="asc")
    assert len({one["id"] for one in page["data"]}) == len(page["data"]) == 2 * TURNS
    assert all(one["created_at"].endswith(("Z", "+00:00")) for one in page["data"])
    newest = await ask(web, "items.list", thread_id=created["id"], limit=2, order="desc")
    assert newest["data"][0]["id"] == answers[-1]["id"] and newest["has_more"]
    tasks = (await web.ask("GET", "/api/v1/conversations/default/tasks")).value["tasks"]
    assert len(tasks) == TURNS


async def test_deleting_is_asked_about_and_threads_are_their_users(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(user='ann')}"}
    bob = {"Authorization": f"Bearer {web.session(user='bob')}"}
    events = await ask(web, "threads.create", ann, **said("add secret"))
    (thread,) = [one["thread"]["id"] for one in events if one["type"] == "thread.created"]
    (asked,) = answered(await ask(web, "threads.add_user_message", ann, thread_id=thread, **said("delete 1")))
    question = "Are you sure you want to delete task 1? (yes/no)"
    assert [one["text"] for one in asked["content"]] == [question, "#1 secret"]
    (done,) = answered(await ask(web, "threads.add_user_message", ann, thread_id=thread, **said("yes")))
    assert done["content"][0]["text"] == "Deleted task: secret"
    assert (await ask(web, "threads.list", bob, limit=20, order="desc"))["data"] == []
    for kind, params in (("threads.get_by_id", {}), ("items.list", {"limit": 9}), ("threads.delete", {})):
        assert (await ask(web, kind, bob, thread_id=thread, **params)).status == 404, kind
    assert [one["id"] for one in (await ask(web, "threads.list", ann, limit=20, order="desc"))["data"]] == [thread]
    await ask(web, "threads.update", ann, thread_id=thread, title="My talk")
    assert (await ask(web, "threads.get_by_id", ann, thread_id=thread))["title"] == "My talk"
    await ask(web, "threads.delete", ann, thread_id=thread)
    assert (await ask(web, "threads.get_by_id", ann, thread_id=thread)).status == 404


@pytest.mark.parametrize(
    ("kind", "params", "status"),
    [
        ("threads.add_user_message", {"thread_id": "thr_nope", **said("hi")}, 404),
        ("threads.add_user_message", {"thread_id": "plan", **said("hi")}, 404),
        ("threads.add_user_message", {**said("  ")}, 422),
        ("threads.create", said("  "), 422),
        ("threads.create", said("x" * 100_001), 422),
        ("threads.create", {"input": {**said("hi")["input"], "attachments": ["file-1"]}}, 422),
        ("threads.retry_after_item", {"item_id": "u1"}, 422),
        ("threads.custom_action", {"action": {"type": "x"}}, 422),
        ("attachments.create", {"name": "a", "size": 1, "mime_type": "text/plain"}, 422),
    ],
)
async def test_a_refusal_comes_before_the_stream(
    web: Web, caplog: pytest.LogCaptureFixture, kind: str, params: dict[str, Any], status: int
) -> None:
    await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "t"})
    thread = (await web.ask("POST", "/api/v1/chats", {})).value["thread"]
    if not kind.startswith("threads.create"):
        params = {"thread_id": thread, **params}
    refused = await ask(web, kind, **params)
    assert isinstance(refused, Answer) and refused.status == status, refused
    assert refused.value["detail"] and "Traceback" not in caplog.text
    assert [one["id"] for one in (await ask(web, "threads.list", limit=9))["data"]] == [thread]


async def test_words_and_tools_come_as_they_are_made(tmp_path: Path) -> None:
    def profile(messages: list[dict[str, Any]]) -> Any:
        return "Here it is." if results(messages) else honest(messages)

    with serving(profile) as script:
        async with served(tmp_path, model=Completions("m", script.url)) as web:
            events = await ask(web, "threads.create", **said("hello"))
            (created,) = [one["thread"]["id"] for one in events if one["type"] == "thread.created"]
            (added,) = [one["item"] for one in events if one["type"] == "thread.item.added"]
            updates = [one["update"] for one in events if one["type"] == "thread.item.updated"]
            written = "".join(one.get("delta", "") for one in updates)
            (done,) = answered(events)
            assert written == "Hello! I'm doing well, thank you." and added["id"] == done["id"]
            assert done["content"][0]["text"] == f"{written}\n\n(no task was read or changed)"
            events = await ask(web, "threads.add_user_message", thread_id=created, **said("add milk"))
            told = [one["text"] for one in events if one["type"] == "progress_update"]
            assert told[0] == "create_todo_task" and "create_todo_task · #1 · seq " in told[-1]
            (done,) = answered(events)
            assert done["content"][0]["text"] == "Created task: milk"
            (thread,) = (await ask(web, "threads.list", limit=9))["data"]
            assert thread["title"] == "hello"


async def test_what_is_no_request_of_chatkit_is_told(web: Web) -> None:
    for body in (b"{}", b"nonsense", b'{"type": "threads.fly", "params": {}}'):
        assert (await web.ask("POST", "/chatkit", body)).status == 422
    assert (await web.ask("POST", "/chatkit", {}, Authorization=None)).status == 401
    only = f"Bearer {web.session(list='plan')}"
    assert (await web.ask("POST", "/chatkit", {}, Authorization=only)).status == 403


async def test_a_stream_says_that_its_token_was_revoked(tmp_path: Path) -> None:
    with serving(honest) as script:
        script.fault = "stall-mid"
        async with served(tmp_path, model=Completions("m", script.url)) as web:
            body = {"type": "threads.create", "params": said("hello")}
            stream = await web.stream("/chatkit", body, Authorization=f"Bearer {web.session()}")
            with anyio.fail_after(30):
                while not script.asked:
                    await anyio.lowlevel.checkpoint()
            web.secret.rotate()
            last = (await stream.to_end()).decode().strip().split("\n\n")[-1]
            event = msgspec.json.decode(last.removeprefix("data: "))
            assert (event["type"], event["allow_retry"]) == ("error", False)
            assert "sign-in has ended" in event["message"]
