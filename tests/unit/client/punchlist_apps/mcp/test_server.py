from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import tools
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository

require_package("mcp")


def text(result: Any) -> str:
    return result.content[0].text


async def test_tools_and_hints_match_dialects(connect: Any) -> None:
    async with connect("claude") as host:
        listed = (await host.session.list_tools()).tools
        assert [tool.name for tool in listed] == [tool.name for tool in tools.dialect("claude").tools]
        by_name = {tool.name: tool for tool in listed}
        assert by_name["TaskList"].annotations.read_only_hint
        assert by_name["TaskUpdate"].annotations.destructive_hint
        assert by_name["TaskCreate"].input_schema["required"] == ["subject", "description"]


async def test_tool_returns_text_and_structure(connect: Any) -> None:
    async with connect("claude") as host:
        made = await host.session.call_tool("TaskCreate", {"subject": "Copy", "description": "d"})
        assert text(made) == "Task #1 created: Copy"
        assert made.structured_content == {"task": {"id": "1", "subject": "Copy"}}
        assert not made.is_error
        assert [task.title for task in await host.client.conversation("work").list()] == ["Copy"]


async def test_native_replies_match_their_output_schemas(connect: Any) -> None:
    """The host's SDK validates each reply against the tool's output schema."""
    async with connect() as host:
        listed = {tool.name: tool.output_schema for tool in (await host.session.list_tools()).tools}
        assert all(listed.values())
        calls: list[tuple[str, dict[str, Any]]] = [
            ("plan", {"tasks": [{"title": "a"}, {"title": "b"}]}),
            ("next", {}),
            ("next", {"result": "done"}),
            ("update", {"id": "2", "title": "B"}),
            ("update", {"id": "9", "title": "B"}),
            ("tasks", {}),
            ("tasks", {"ids": ["1"]}),
            ("tasks", {"since": "last"}),
            ("wait", {"seconds": 1}),
            ("next", {"result": "done"}),
        ]
        for name, arguments in calls:
            answer = await host.session.call_tool(name, arguments)
            named = set(answer.structured_content) & set(listed[name]["properties"])
            assert named or answer.is_error, (name, answer)


async def test_rejection_is_tool_error_with_sentence(connect: Any) -> None:
    async with connect("claude") as host:
        refused = await host.session.call_tool("TaskGet", {"taskId": "9"})
        assert (text(refused), refused.is_error) == ("task 9 not found", True)
        missing = await host.session.call_tool("TaskCreate", {"description": "d"})
        assert (text(missing), missing.is_error) == ("subject is required", True)


async def test_a_waiting_call_reports_progress(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist_apps.mcp.progress.PROGRESS_S", 0.05)
    reported: list[tuple[float, str]] = []
    arrived = anyio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, message or ""))
        if len(reported) == 3:
            arrived.set()

    async with connect() as host, anyio.create_task_group() as group:
        await host.client.conversation("work").add("one")

        async def change() -> None:
            with anyio.fail_after(20):
                await arrived.wait()
            await host.client.conversation("work").add("two")

        group.start_soon(change)
        answer = await host.session.call_tool("wait", {}, progress_callback=report)
        assert "two" in text(answer)
    assert [progress for progress, _ in reported] == sorted(progress for progress, _ in reported)
    assert all(message.startswith("waiting for ") for _, message in reported)


async def test_an_unknown_tool_is_a_protocol_error(connect: Any) -> None:
    from mcp.shared.exceptions import MCPError

    async with connect() as host:
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await host.session.call_tool("nothing", {})


async def test_several_dialects_are_served_at_once(connect: Any) -> None:
    async with connect("claude", "checklist") as host:
        await host.session.call_tool("AddTask", {"title": "One"})
        assert text(await host.session.call_tool("TaskList", {})) == "☐ #1: One [pending]"


async def test_only_the_named_tools_are_served(connect: Any) -> None:
    from mcp.shared.exceptions import MCPError

    async with connect("checklist", tools=("ListTasks", "AddTask")) as host:
        assert [tool.name for tool in (await host.session.list_tools()).tools] == ["ListTasks", "AddTask"]
        assert "CompleteTask" not in host.session.instructions
        with pytest.raises(MCPError, match="Unknown tool: ClearTasks"):
            await host.session.call_tool("ClearTasks", {})


async def test_instructions_and_advice_use_offered_tool_names(connect: Any) -> None:
    async with connect("queue", "todo-v1") as host:
        assert "queue_add_task it, tell the user so, and go on" in host.session.instructions
        await host.client.conversation("work").add_many([f"{'long ' * 90}{number}" for number in range(200)])
        listed = await host.session.call_tool("queue_list_tasks", {})
        assert "call queue_list_tasks with offset=" in listed.structured_content["hint"]


async def test_structured_list_result_is_an_object(connect: Any) -> None:
    async with connect("todo") as host:
        await host.session.call_tool("create_todo_task", {"title": "Milk"})
        listed = await host.session.call_tool("list_todo_tasks", {})
        assert listed.structured_content == {"tasks": [{"id": 1, "title": "Milk", "completed": False}]}


async def test_directory_names_the_list(connect: Any, tmp_path: Path) -> None:
    website = repository(tmp_path / "website")
    async with connect("claude", "checklist", conversation=None, directory=str(tmp_path)) as host:
        assert "punch init" in text(await host.session.call_tool("TaskList", {}))
        refused = await host.session.call_tool("ListTasks", {})
        assert text(refused) == "Error: Task list is not available (no conversation context)."
    async with connect("claude", "checklist", conversation=None, directory=str(website)) as host:
        told = text(await host.session.call_tool("TaskList", {}))
        assert told.startswith("No tasks found.\n(conversation: website")
        assert text(await host.session.call_tool("ListTasks", {})) == '{"tasks":[]}'


async def test_a_request_may_name_its_list(connect: Any) -> None:
    async with connect("checklist") as host:
        await host.session.call_tool("AddTask", {"title": "There"}, meta={"punchlist/conversation": "elsewhere"})
        assert [task.title for task in await host.client.conversation("elsewhere").list()] == ["There"]
        assert await host.client.conversation("work").list() == []


async def test_the_prompts_plan_and_resume(connect: Any) -> None:
    async with connect() as host:
        assert [one.name for one in (await host.session.list_prompts()).prompts] == ["plan", "resume"]
        plan = await host.session.get_prompt("plan", {"goal": "Ship it"})
        assert "Ship it" in plan.messages[0].content.text
        await host.client.conversation("work").add("Copy")
        resume = await host.session.get_prompt("resume")
        assert "#1 Copy" in resume.messages[0].content.text


@pytest.mark.parametrize(("name", "arguments"), [("plan", {}), ("nothing", {})])
async def test_invalid_prompt_request_is_rejected(name: str, arguments: dict[str, str], connect: Any) -> None:
    from mcp.shared.exceptions import MCPError

    async with connect() as host:
        with pytest.raises(MCPError):
            await host.session.get_prompt(name, arguments)


async def test_mcp_tasks_extension_is_not_offered(connect: Any) -> None:
    async with connect() as host:
        told = host.session.server_capabilities.model_dump(by_alias=True)
        assert "tasks" not in {name for name, value in told.items() if value}
        assert "io.modelcontextprotocol/tasks" not in (told.get("extensions") or {})
