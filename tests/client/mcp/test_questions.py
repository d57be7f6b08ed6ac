from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: make conformance has it")


def answering(action: Any, confirm: bool, asked: list[str]) -> Any:
    from mcp_types import ElicitResult

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return ElicitResult(action=action, content={"confirm": confirm} if action == "accept" else None)

    return answer


async def test_the_user_is_asked_and_a_yes_does_it(connect: Any) -> None:
    asked: list[str] = []
    async with connect("todo", elicitation_callback=answering("accept", True, asked)) as host:
        await host.client.conversation("work").add("Milk")
        done = await host.session.call_tool("delete_todo_task", {"task_id": 1})
        assert asked == ["Are you sure you want to delete task 1? (yes/no)"]
        assert done.structured_content["status"] == "deleted"
        assert await host.client.conversation("work").list() == []


@pytest.mark.parametrize(("action", "confirm"), [("accept", False), ("decline", True), ("cancel", True)])
async def test_without_a_yes_nothing_happens(action: str, confirm: bool, connect: Any) -> None:
    asked: list[str] = []
    async with connect("todo", elicitation_callback=answering(action, confirm, asked)) as host:
        await host.client.conversation("work").add("Milk")
        done = await host.session.call_tool("delete_todo_task", {"task_id": 1})
        assert len(asked) == 1
        assert done.content[0].text == "The user said no: nothing was changed."
        assert len(await host.client.conversation("work").list()) == 1


async def test_a_host_that_can_not_ask_gets_the_token(connect: Any) -> None:
    async with connect("todo") as host:
        await host.client.conversation("work").add("Milk")
        first = await host.session.call_tool("delete_todo_task", {"task_id": 1})
        assert first.structured_content["status"] == "confirmation_required"
        again = {"task_id": 1, "confirm": first.structured_content["confirm"]}
        done = await host.session.call_tool("delete_todo_task", again)
        assert done.structured_content["status"] == "deleted"
