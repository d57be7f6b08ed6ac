"""`/chatkit` over HTTP, with openai-chatkit's server classes; needs the extra `chatkit`."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from punchlist_testing.optional import require_package

with warnings.catch_warnings():  # ChatKit warns about its own classes
    warnings.simplefilter("ignore")
    require_package("chatkit")
    import_module("chatkit.server")

from punchlist_apps.chat.models.completions import Completions
from punchlist_testing.scripted_model import honest, results, serving
from punchlist_testing.web import Answer, Web, served

TURNS = 20


async def ask(web: Web, kind: str, headers: dict[str, str] | None = None, **params: Any) -> Any:
    """Send a front-end request; return the response's JSON or events, or the whole response if it is an error."""
    answer = await web.ask("POST", "/chatkit", {"type": kind, "params": params}, **(headers or {}))
    if answer.status != 200:
        return answer
    if "event-stream" not in answer.headers["content-type"]:
        return answer.value
    lines = [line for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(line[6:]) for line in lines]


def build_input(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"input": {"content": content, "attachments": [], "inference_options": {}}}


def list_answers(events: Any) -> list[dict[str, Any]]:
    items = [event["item"] for event in events if event["type"] == "thread.item.done"]
    return [item for item in items if item["type"] == "assistant_message"]


async def test_turns_are_stored_under_distinct_ids(web: Web) -> None:
    events = await ask(web, "threads.create", **build_input("add task 0"))
    (created,) = [event["thread"] for event in events if event["type"] == "thread.created"]
    answers = list_answers(events)
    for number in range(1, TURNS):
        events = await ask(
            web, "threads.add_user_message", thread_id=created["id"], **build_input(f"add task {number}")
        )
        answers += list_answers(events)
    assert [answer["content"][0]["text"] for answer in answers] == [f"Created task: {n}" for n in range(TURNS)]
    page = await ask(web, "items.list", thread_id=created["id"], limit=100, order="asc")
    assert len({item["id"] for item in page["data"]}) == len(page["data"]) == 2 * TURNS
    assert all(item["created_at"].endswith(("Z", "+00:00")) for item in page["data"])
    newest = await ask(web, "items.list", thread_id=created["id"], limit=2, order="desc")
    assert newest["data"][0]["id"] == answers[-1]["id"] and newest["has_more"]
    tasks = (await web.ask("GET", "/api/v1/conversations/default/tasks")).value["tasks"]
    assert len(tasks) == TURNS


async def test_deletion_asks_and_threads_belong_to_users(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(user='ann')}"}
    bob = {"Authorization": f"Bearer {web.session(user='bob')}"}
    events = await ask(web, "threads.create", ann, **build_input("add secret"))
    (thread,) = [event["thread"]["id"] for event in events if event["type"] == "thread.created"]
    (asked,) = list_answers(
        await ask(web, "threads.add_user_message", ann, thread_id=thread, **build_input("delete 1"))
    )
    question = "Are you sure you want to delete task 1? (yes/no)"
    assert [part["text"] for part in asked["content"]] == [question, "#1 secret"]
    (done,) = list_answers(await ask(web, "threads.add_user_message", ann, thread_id=thread, **build_input("yes")))
    assert done["content"][0]["text"] == "Deleted task: secret"
    assert (await ask(web, "threads.list", bob, limit=20, order="desc"))["data"] == []
    for kind, params in (("threads.get_by_id", {}), ("items.list", {"limit": 9}), ("threads.delete", {})):
        assert (await ask(web, kind, bob, thread_id=thread, **params)).status == 404, kind
    assert [row["id"] for row in (await ask(web, "threads.list", ann, limit=20, order="desc"))["data"]] == [thread]
    await ask(web, "threads.update", ann, thread_id=thread, title="My talk")
    assert (await ask(web, "threads.get_by_id", ann, thread_id=thread))["title"] == "My talk"
    await ask(web, "threads.delete", ann, thread_id=thread)
    assert (await ask(web, "threads.get_by_id", ann, thread_id=thread)).status == 404


@pytest.mark.parametrize(
    ("kind", "params", "status"),
    [
        ("threads.add_user_message", {"thread_id": "thr_nope", **build_input("hi")}, 404),
        ("threads.add_user_message", {"thread_id": "plan", **build_input("hi")}, 404),
        ("threads.add_user_message", {**build_input("  ")}, 422),
        ("threads.create", build_input("  "), 422),
        ("threads.create", build_input("x" * 100_001), 422),
        ("threads.create", {"input": {**build_input("hi")["input"], "attachments": ["file-1"]}}, 422),
        ("threads.retry_after_item", {"item_id": "u1"}, 422),
        ("threads.custom_action", {"action": {"type": "x"}}, 422),
        ("attachments.create", {"name": "a", "size": 1, "mime_type": "text/plain"}, 422),
    ],
)
async def test_errors_precede_the_stream(
    web: Web, caplog: pytest.LogCaptureFixture, kind: str, params: dict[str, Any], status: int
) -> None:
    await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "t"})
    thread = (await web.ask("POST", "/api/v1/chats", {})).value["thread"]
    if not kind.startswith("threads.create"):
        params = {"thread_id": thread, **params}
    refused = await ask(web, kind, **params)
    assert isinstance(refused, Answer) and refused.status == status, refused
    assert refused.value["detail"] and "Traceback" not in caplog.text
    assert [row["id"] for row in (await ask(web, "threads.list", limit=9))["data"]] == [thread]


async def test_text_and_tool_calls_are_streamed(tmp_path: Path) -> None:
    def profile(messages: list[dict[str, Any]]) -> Any:
        return "Here it is." if results(messages) else honest(messages)

    with serving(profile) as script:
        async with served(tmp_path, model=Completions("m", script.url)) as web:
            events = await ask(web, "threads.create", **build_input("hello"))
            (created,) = [event["thread"]["id"] for event in events if event["type"] == "thread.created"]
            (added,) = [event["item"] for event in events if event["type"] == "thread.item.added"]
            updates = [event["update"] for event in events if event["type"] == "thread.item.updated"]
            written = "".join(update.get("delta", "") for update in updates)
            (done,) = list_answers(events)
            assert written == "Hello! I'm doing well, thank you." and added["id"] == done["id"]
            assert done["content"][0]["text"] == f"{written}\n\n(no task was read or changed)"
            events = await ask(web, "threads.add_user_message", thread_id=created, **build_input("add milk"))
            progress = [event["text"] for event in events if event["type"] == "progress_update"]
            assert progress[0] == "create_todo_task" and progress[-1].endswith("added #1 milk")
            (done,) = list_answers(events)
            assert done["content"][0]["text"] == "Created task: milk"
            (thread,) = (await ask(web, "threads.list", limit=9))["data"]
            assert thread["title"] == "hello"


async def test_invalid_chatkit_request_is_rejected(web: Web) -> None:
    for body in (b"{}", b"nonsense", b'{"type": "threads.fly", "params": {}}'):
        assert (await web.ask("POST", "/chatkit", body)).status == 422
    assert (await web.ask("POST", "/chatkit", {}, Authorization=None)).status == 401
    only = f"Bearer {web.session(list='plan')}"
    assert (await web.ask("POST", "/chatkit", {}, Authorization=only)).status == 403


async def test_stream_reports_a_revoked_token(tmp_path: Path) -> None:
    with serving(honest) as script:
        script.fault = "stall-mid"
        async with served(tmp_path, model=Completions("m", script.url)) as web:
            body = {"type": "threads.create", "params": build_input("hello")}
            stream = await web.stream("/chatkit", body, Authorization=f"Bearer {web.session()}")
            with anyio.fail_after(30):
                while not script.asked:
                    await anyio.lowlevel.checkpoint()
            web.secret.rotate()
            last = (await stream.to_end()).decode().strip().split("\n\n")[-1]
            event = msgspec.json.decode(last.removeprefix("data: "))
            assert (event["type"], event["allow_retry"]) == ("error", False)
            assert "sign-in has ended" in event["message"]
