"""`/ag-ui` over HTTP: order and format of events, questions as interrupts, repeated runs, errors."""

import json
import warnings
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import AsyncClient
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_apps.web.ag_ui import Translator
from punchlist_testing.optional import NODE, needs
from punchlist_testing.scripted_model import Script, honest, liar, serving
from punchlist_testing.web import Answer, Web, served

with warnings.catch_warnings(), suppress(ImportError):  # ChatKit warns about its own classes
    warnings.simplefilter("ignore")
    import_module("chatkit.server")

NPM = Path(__file__).resolve().parents[5] / "build/agents-sdk/node_modules"
SAYING = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]
CALLING = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
GREETING = "Hello! I'm doing well, thank you.\n\n(no task was read or changed)"
NODE_S = 60


def run(text: str | None, id: str = "m1", *, thread: str = "t1", **members: Any) -> dict[str, Any]:
    """Return the request body of a run."""
    messages = [] if text is None else [{"id": id, "role": "user", "content": text}]
    common: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return {"threadId": thread, "runId": f"run-{id}", "messages": messages, **common, **members}


def parse_events(answer: Answer) -> list[dict[str, Any]]:
    """Parse the events of a response."""
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    if find_spec("ag_ui") is not None:  # validate against the protocol's types
        adapter: Any = import_module("pydantic").TypeAdapter(import_module("ag_ui.core").Event)
        for event in events:
            adapter.validate_python(event)
    return events


async def run_agent(web: Web, body: Any, path: str = "/ag-ui", **headers: Any) -> list[dict[str, Any]]:
    return parse_events(await web.ask("POST", path, body, **headers))


def list_types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def join_text(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


async def titles(web: Web, name: str = "plan") -> list[str]:
    tasks = (await web.ask("GET", f"/api/v1/conversations/{name}/tasks")).value["tasks"]
    return [task["title"] for task in tasks]


async def test_run_streams_tool_call_result_and_answer(web: Web) -> None:
    events = await run_agent(web, run("add milk"), "/ag-ui?list=plan")
    assert list_types(events) == [SAYING[0], *CALLING, *SAYING[1:]]
    started, arguments, _, result = events[1:5]
    assert (started["toolCallName"], json.loads(arguments["delta"])) == ("create_todo_task", {"title": "milk"})
    assert json.loads(result["content"])["title"] == "milk" and result["toolCallId"] == started["toolCallId"]
    assert join_text(events) == "Created task: milk" and events[5]["messageId"] == "um1.a"
    receipts = events[-1]["result"]["receipts"]
    assert [receipt["type"] for receipt in receipts][-1] == "TaskAdded" and await titles(web) == ["milk"]


async def test_repeated_run_executes_once(web: Web) -> None:
    first = await run_agent(web, run("add milk"), "/ag-ui?list=plan")
    again = await run_agent(web, run("add milk"), "/ag-ui?list=plan")
    assert join_text(first) == join_text(again) and await titles(web) == ["milk"]
    history = [{"id": "m1", "role": "user", "content": "add milk"}]
    history += [{"id": "um1.a", "role": "assistant", "content": "Created task: milk"}]
    parts = [{"type": "text", "text": "add "}, {"type": "text", "text": "bread"}]
    body = {**run(None, "m2"), "messages": [*history, {"id": "m2", "role": "user", "content": parts}]}
    assert join_text(await run_agent(web, body, "/ag-ui?list=other")) == "Created task: bread"
    assert await titles(web) == ["milk", "bread"], "a thread keeps its list"


async def test_next_run_answers_the_interrupt(web: Web) -> None:
    await run_agent(web, run("add milk; bread; eggs"), "/ag-ui?list=plan")
    for number, (payload, status, left) in enumerate(
        (
            (True, "resolved", 2),
            (False, "resolved", 2),
            ({"approved": True}, "cancelled", 2),
            ("yes", "resolved", 1),
        )
    ):
        first = (await titles(web))[0]
        asked = await run_agent(web, run("delete the first one", f"q{number}"))
        assert list_types(asked) == [SAYING[0], *CALLING[:3], *SAYING[1:]]
        (interrupt,) = asked[-1]["outcome"]["interrupts"]
        assert interrupt["message"].startswith("Are you sure you want to delete task")
        assert interrupt["message"].endswith(f" {first}") and join_text(asked) == interrupt["message"]
        entry = {"interruptId": interrupt["id"], "status": status, "payload": payload}
        body = run(None, f"a{number}", resume=[entry])
        answered = await run_agent(web, body)
        assert join_text(answered) == join_text(await run_agent(web, body)), "a repeated answer counts once"
        assert len(await titles(web)) == left and "outcome" not in answered[-1]
        late = await web.ask("POST", "/ag-ui", run(None, f"late{number}", resume=[entry]))
        assert late.status == 422 and b"the open question" in late.body


async def test_run_without_message_returns_the_thread(web: Web) -> None:
    await run_agent(web, run("add milk"))
    events = await run_agent(web, run(None, "m2"))
    assert list_types(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    message, called, result, answer = events[1]["messages"]
    assert message == {"id": "m1", "role": "user", "content": "add milk"}
    (call,) = called["toolCalls"]
    assert call["function"] == {"name": "create_todo_task", "arguments": '{"title":"milk"}'}
    assert result["toolCallId"] == call["id"] == "um1.c1.1" and json.loads(result["content"])["title"] == "milk"
    assert answer == {"id": "um1.a", "role": "assistant", "content": "Created task: milk"}


@pytest.fixture
def script() -> Any:
    with serving(honest) as script:
        yield script


async def test_model_text_streams_and_a_lie_is_replaced(tmp_path: Path, script: Script) -> None:
    async with served(tmp_path, model=Completions("m", script.url)) as web:
        events = await run_agent(web, run("hello"))
        assert list_types(events).count("TEXT_MESSAGE_CONTENT") == 5 and join_text(events) == GREETING
        assert "MESSAGES_SNAPSHOT" not in list_types(events), "the marker is appended to the streamed text"
        assert (await run_agent(web, run(None)))[1]["messages"][-1]["content"] == GREETING
        assert events[-1]["usage"] == [{"inputTokens": 100, "outputTokens": 10}]
        script.profile = liar
        events = await run_agent(web, run("add milk", "m2"))
        assert list_types(events)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"] and "CUSTOM" in list_types(events)
        assert events[-2]["messages"][-1] == {"id": "um2.a", "role": "assistant", "content": "Created task: milk"}


async def test_stopped_run_reports_cancellation(tmp_path: Path, script: Script) -> None:
    script.fault = "stall-mid"
    events: list[Any] = []
    async with served(tmp_path, model=Completions("m", script.url)) as web, anyio.create_task_group() as group:

        async def begin() -> None:
            events.extend(await run_agent(web, run("hello", thread="chat-9")))

        group.start_soon(begin)
        with anyio.fail_after(10):
            while (await web.ask("POST", "/api/v1/chats/chat-9/stop", {})).body != b'{"stopped":true}':
                await anyio.lowlevel.checkpoint()
    assert events[-1]["outcome"] == {"type": "cancelled"}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "threadId"),
        ({"threadId": "t", "runId": "r", "messages": "hi"}, "messages"),
        (run("hi", thread="../x"), "threadId"),
        (run("hi", thread=""), "threadId"),
        (run("  "), "empty"),
        (run("x" * 100_001), "100,001 characters"),
        ({**run(None), "messages": [{"id": "a", "role": "assistant", "content": "hi"}]}, "must be the user's"),
        ({**run(None), "messages": [{"id": "a", "role": "user", "content": [{"type": "image"}]}]}, "must be text"),
        (run(None, resume=[{"interruptId": "u1.a", "status": "resolved"}]), "the open question"),
        (run(None, resume=[{"interruptId": "u1.a", "status": "maybe"}]), "resume"),
    ],
)
async def test_invalid_run_is_rejected(web: Web, body: Any, detail: str) -> None:
    refused = await web.ask("POST", "/ag-ui", body)
    assert refused.status == 422 and detail in refused.value["detail"], refused.body


async def test_threads_match_the_tokens_user_and_list(web: Web) -> None:
    ann, bob, only, reading = (
        {"Authorization": f"Bearer {web.session(**scope)}"}
        for scope in ({"user": "ann"}, {"user": "bob"}, {"list": "plan"}, {"mode": "ro"})
    )
    await run_agent(web, run("add secret"), **ann)
    for thread in ("t1", "t4"):
        assert join_text(await run_agent(web, run("show my tasks", thread=thread), **bob)) == "You have no tasks."
    assert join_text(await run_agent(web, run("show my tasks", "m2"), **ann)) == "You have 1 task:\n  ☐ #1 secret"
    assert (await web.ask("POST", "/ag-ui?list=other", run("hi", thread="t2"), **only)).status == 403
    await run_agent(web, run("hi", thread="t3"), "/ag-ui?list=other")
    assert (await web.ask("POST", "/ag-ui", run("hi", thread="t3"), **only)).status == 403
    assert (await web.ask("POST", "/ag-ui", run("hi"), **reading)).status == 403
    assert (await web.ask("POST", "/ag-ui", run("hi"), Authorization=None)).status == 401
    await web.ask("POST", "/api/v1/conversations/chat-list/tasks", {"title": "t"})
    taken = await web.ask("POST", "/ag-ui", run("hi", thread="list"))
    assert taken.status == 422 and "is a list, not a chat thread" in taken.value["detail"]


async def test_older_threads_belong_to_their_users(web: Web) -> None:
    async with AsyncClient(socket=web.daemon.socket, user="ann", autostart=False, name="old") as client:
        thread = await Thread.open(client, "my:default", "chat-t1")
        await Worker().answer(thread, await thread.send("add milk", turn="um1"))
    ann, bob = ({"Authorization": f"Bearer {web.session(user=user)}"} for user in ("ann", "bob"))
    messages = (await run_agent(web, run(None), **ann))[1]["messages"]
    assert [message["content"] for message in messages if message["role"] == "user"] == ["add milk"]
    assert (await run_agent(web, run(None), **bob))[1]["messages"] == []
    refused = await web.ask("POST", "/ag-ui", run("show my tasks"))
    assert (refused.status, refused.value["kind"]) == (403, "forbidden"), "not even for the owner of the server"
    assert (await web.ask("POST", "/api/v1/chats/chat-t1/stop", {}, **bob)).value == {"stopped": False}


async def test_used_message_id_rejects_another_text(web: Web) -> None:
    await run_agent(web, run("add milk; bread"), "/ag-ui?list=plan")
    asked = await run_agent(web, run("delete 1", "m2"))
    (interrupt,) = asked[-1]["outcome"]["interrupts"]
    answer = [{"interruptId": interrupt["id"], "status": "resolved", "payload": False}]
    await run_agent(web, run(None, "m3", resume=answer))
    for body in (run("add eggs"), run(None, "m3", resume=[{**answer[0], "payload": True}])):
        refused = await web.ask("POST", "/ag-ui", body)
        assert (refused.status, refused.value["kind"]) == (422, "key_conflict"), refused.body
    assert await titles(web) == ["milk", "bread"]


async def test_threads_can_share_message_ids(web: Web) -> None:
    for thread in ("project-one", "project-two"):
        for name, title in (("m1", "milk"), ("a message", thread)):
            events = await run_agent(web, run(f"add {title}", name, thread=thread), "/ag-ui?list=plan")
            assert join_text(events) == f"Created task: {title}"
    assert await titles(web) == ["milk", "project-one", "milk", "project-two"]
    await run_agent(web, run("undo that", "m2", thread="project-one"))
    assert await titles(web) == ["milk", "milk", "project-two"], "a thread undoes its own changes"


def test_text_before_a_tool_call_is_stale() -> None:
    translator = Translator("u1")
    call: dict[str, Any] = {"id": "c1.1", "tool": "create_todo_task", "arguments": {}}
    answered = [*translator.translate("delta", {"text": "Let me see."}), *translator.translate("tool.started", call)]
    answered += translator.translate("tool.completed", {**call, "chips": [], "result": "{}"})
    answered += [*translator.translate("delta", {"text": "Done."}), *translator.translate("delta", {"text": ""})]
    answered += [*translator.translate("message", {"text": "Created task: x"}), *translator.translate("end", {})]
    assert list_types(answered) == [*SAYING[1:4], *CALLING, *SAYING[1:4]]
    assert [event["messageId"] for event in answered if event["type"] == "TEXT_MESSAGE_START"] == ["u1.a", "u1.a2"]
    assert translator.is_stale and translator.answer == {"text": "Created task: x"}


@needs("ag-ui", (NPM / "@ag-ui/client").exists())
async def test_ag_ui_client_completes_a_conversation(tmp_path: Path, script: Script) -> None:
    async with served(tmp_path, model=Completions("m", script.url)) as web:
        steps = [
            {"say": "hello"},
            {"say": "add milk; bread"},
            {"say": "delete 1"},
            {"agree": True},
            {"forget": True},
        ]
        words = [NODE, str(Path(__file__).with_name("ag_ui.mjs")), str(NPM), f"http://127.0.0.1:{web.port}/ag-ui"]
        with anyio.fail_after(NODE_S):
            done = await anyio.run_process([*words, web.token, "t9", json.dumps(steps)], check=False)
        assert done.returncode == 0, done.stderr.decode()
        hello, added, asked, agreed, back = (json.loads(line) for line in done.stdout.splitlines())
        assert hello["messages"][-1]["content"] == GREETING
        tools = [name for message in added["messages"] for name in message.get("tools") or ()]
        assert tools == ["create_todo_task"] * 2
        assert added["messages"][-1]["content"] == "Created task: milk\nCreated task: bread"
        assert asked["outcome"]["type"] == "interrupt"
        assert agreed["messages"][-1]["content"] == "Deleted task: milk" and agreed["outcome"] is None
        texts = [message for message in back["messages"] if message["role"] != "tool" and not message.get("tools")]
        assert [message["role"] for message in texts] == ["user", "assistant"] * 4
        assert await titles(web, "default") == ["bread"]
