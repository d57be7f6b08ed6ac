import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from punchlist import Client, connect_async
from punchlist.tools import AsyncToolbox, Toolbox, ToolCaller, definitions
from punchlist.tools.adapters import (
    agents_tools,
    answer_anthropic,
    answer_openai,
    answer_responses,
    claude_sdk_server,
    langchain_tools,
    pydantic_toolset,
    todo_middleware,
)
from punchlist_testing.daemon import Running, running_daemon
from punchlist_testing.optional import has_package, needs

TASK = {"subject": "Copy", "description": "All of it"}


def test_anthropic_tool_calls_get_results_in_one_message(box: Toolbox) -> None:
    content = [
        {"type": "text", "text": "I'll add it."},
        {"type": "tool_use", "id": "t1", "name": "TaskCreate", "input": TASK},
        SimpleNamespace(type="tool_use", id="t2", name="TaskGet", input={"taskId": "9"}),
    ]
    answer = answer_anthropic("claude", box, content)
    assert answer == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "Task #1 created: Copy"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "task 9 not found", "is_error": True},
        ],
    }
    assert answer_anthropic("claude", box, content[:1]) is None


def test_unoffered_tool_is_rejected(box: Toolbox) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "TodoWrite", "arguments": '{"todos": []}'}}
    made = {"id": "c2", "type": "function", "function": {"name": "queue_add_task", "arguments": '{"description": "a"}'}}
    message = {"role": "assistant", "tool_calls": [call, made]}
    refused = answer_openai("claude", box, message, tools=["TaskGet"])
    assert refused[0]["content"] == "there is no tool 'TodoWrite'; available: TaskGet"
    several = answer_openai(["claude", "queue", "todo-v1"], box, message, tools=["TaskGet", "queue_add_task"])
    assert several[1]["content"].startswith('{"success":true,"taskId":"1"')


def test_chat_completion_calls_get_results(box: Toolbox) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "TaskCreate", "arguments": json.dumps(TASK)}}
    empty = {"id": "c2", "type": "function", "function": {"name": "TaskList", "arguments": ""}}
    answers = answer_openai("claude", box, {"role": "assistant", "content": None, "tool_calls": [call, empty]})
    assert [one["tool_call_id"] for one in answers] == ["c1", "c2"]
    assert [one["content"] for one in answers] == ["Task #1 created: Copy", "☐ #1: Copy [pending]"]
    assert answer_openai("claude", box, {"role": "assistant", "content": "Done."}) == []


def test_responses_calls_get_results(box: Toolbox) -> None:
    output: list[Any] = [
        {"type": "message", "content": []},
        SimpleNamespace(type="function_call", call_id="f1", name="TaskCreate", arguments=json.dumps(TASK)),
    ]
    assert answer_responses("claude", box, output) == [
        {"type": "function_call_output", "call_id": "f1", "output": "Task #1 created: Copy"}
    ]


@needs("agents", has_package("agents"))
async def test_openai_sdk_agent_completes_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdk: Any = import_module("agents")
    script: Any = import_module("agents.testing")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    turns: list[list[Any]] = [
        [script.function_call("plan", {"tasks": ["Copy", "Publish"]}, call_id="a")],
        [script.function_call("next", {}, call_id="b")],
        [script.function_call("next", {"result": "in docs/copy.md"}, call_id="c")],
        [script.function_call("next", {"result": "it is out"}, call_id="d")],
        [script.assistant_message("All done.")],
    ]
    async with running_daemon(tmp_path) as daemon, connect_async(socket=daemon.socket, autostart=False) as client:
        box = AsyncToolbox(client, ToolCaller("agents", "ann"))
        agent: Any = sdk.Agent(name="worker", model=script.ScriptedModel(turns), tools=agents_tools("native", box))
        result: Any = await sdk.Runner.run(agent, "Work.", run_config=sdk.RunConfig(tracing_disabled=True))
        assert result.final_output == "All done."
        tasks = await client.conversation("agents").list()
        assert [(task.status, task.owner) for task in tasks] == [("completed", "ann"), ("completed", "ann")]


@pytest.mark.parametrize(
    ("build", "module", "package"),
    [
        (partial(agents_tools, "native"), "agents", "openai-agents"),
        (partial(langchain_tools, "native"), "langchain_core.tools", "langchain"),
        (partial(pydantic_toolset, "native"), "pydantic_ai", "pydantic-ai-slim"),
        (partial(claude_sdk_server, "native"), "claude_agent_sdk", "claude-agent-sdk"),
        (todo_middleware, "langchain.agents.middleware", "langchain"),
    ],
)
def test_missing_framework_names_the_pip_command(
    build: Callable[[Any], Any], module: str, package: str, box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"^{package} is not installed; run: pip install {package}$"):
        build(box)


@needs("langchain", has_package("langchain"))
async def test_langchain_tools_have_the_dialects_schema(client: Client, box: Toolbox) -> None:
    convert: Any = import_module("langchain_core.utils.function_calling").convert_to_openai_tool
    tools = {tool.name: tool for tool in langchain_tools(["native", "queue"], box)}
    functions = {name: convert(tool)["function"] for name, tool in tools.items()}
    for definition in definitions(["native", "queue"], "openai"):
        function = definition["function"]
        assert functions[function["name"]]["description"] == function["description"]
        assert functions[function["name"]]["parameters"]["properties"] == function["parameters"].get("properties", {})
    assert "#1" in await tools["plan"].ainvoke({"tasks": [{"title": "Copy"}]})
    assert tools["update"].invoke({"id": "9", "status": "paused"}) == "Refused: task 9 not found"
    assert [task.title for task in client.conversation("work").list()] == ["Copy"]


@needs("langchain", has_package("claude_agent_sdk"))
async def test_claude_sdk_marks_refusals_as_errors(daemon: Running) -> None:
    mcp: Any = import_module("mcp")
    async with connect_async(socket=daemon.socket, autostart=False) as client:
        server = claude_sdk_server("native", AsyncToolbox(client, ToolCaller("work", "ann")))
        async with mcp.Client(server["instance"]) as host:
            added = await host.call_tool("plan", {"tasks": [{"title": "Copy"}]})
            assert not added.is_error and added.content[0].text.startswith("Added #1.")
            refused = await host.call_tool("update", {"id": "9", "status": "paused"})
            assert (refused.is_error, refused.content[0].text) == (True, "Refused: task 9 not found")
