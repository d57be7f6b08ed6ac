from typing import Any

import pytest

from punchlist_testing.optional import require_package

require_package("mcp")


def answering(action: Any, confirm: bool, asked: list[str]) -> Any:
    from mcp_types import ElicitResult

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return ElicitResult(action=action, content={"confirm": confirm} if action == "accept" else None)

    return answer


async def test_yes_of_the_user_runs_the_call(connect: Any) -> None:
    asked: list[str] = []
    async with connect("todo", elicitation_callback=answering("accept", True, asked)) as host:
        await host.client.conversation("work").add("Milk")
        done = await host.session.call_tool("delete_todo_task", {"task_id": 1})
        assert asked == ["Are you sure you want to delete task 1? (yes/no)"]
        assert done.structured_content["status"] == "deleted"
        assert await host.client.conversation("work").list() == []


@pytest.mark.parametrize(("action", "confirm"), [("accept", False), ("decline", True), ("cancel", True)])
async def test_unconfirmed_call_has_no_effect(action: str, confirm: bool, connect: Any) -> None:
    asked: list[str] = []
    async with connect("todo", elicitation_callback=answering(action, confirm, asked)) as host:
        await host.client.conversation("work").add("Milk")
        done = await host.session.call_tool("delete_todo_task", {"task_id": 1})
        assert len(asked) == 1
        assert done.content[0].text == "The user said no: nothing was changed."
        assert len(await host.client.conversation("work").list()) == 1


async def test_model_can_not_confirm_its_own_call(connect: Any) -> None:
    async with connect("todo") as host:
        plan = host.client.conversation("work")
        await plan.add("Milk")
        first = await host.session.call_tool("delete_todo_task", {"task_id": 1})
        token = first.structured_content["confirm"]
        assert first.structured_content["question"] == "Are you sure you want to delete task 1? (yes/no)"
        for _ in range(3):
            again = await host.session.call_tool("delete_todo_task", {"task_id": 1, "confirm": token})
            assert again.structured_content["status"] == "confirmation_required"
            assert again.structured_content["confirm"] == token and "ask the user" in again.structured_content["note"]
        assert len(await plan.list()) == 1
        asked = await host.client.confirmation(token)
        assert asked.summary == "delete 1 task: #1 Milk"
        await plan.delete("1", confirm=token, ask=True, answered=True)
        assert len(await plan.list()) == 0


async def test_all_tasks_are_deleted_after_one_question(connect: Any) -> None:
    asked: list[str] = []
    async with connect("todo", elicitation_callback=answering("accept", True, asked)) as host:
        plan = host.client.conversation("work")
        await plan.add_many([f"task {number}" for number in range(12)])
        done = await host.session.call_tool("delete_todo_task", {"task_id": 1, "also": list(range(2, 13))})
        assert done.structured_content["deleted"] == list(range(1, 13))
        assert len(await plan.list()) == 0
        assert asked == [f"Are you sure you want to delete tasks {', '.join(map(str, range(1, 13)))}? (yes/no)"]


@pytest.mark.parametrize(("dialect", "tool"), [("todo", "update_todo_task"), ("todo-v1", "update_task")])
async def test_user_sees_new_title_before_rename(dialect: str, tool: str, connect: Any) -> None:
    asked: list[str] = []
    user = {"user_id": "ann"} if dialect == "todo-v1" else {}
    async with connect(dialect, elicitation_callback=answering("accept", True, asked)) as host:
        await host.session.call_tool("add_task" if user else "create_todo_task", {"title": "Milk", **user})
        done = await host.session.call_tool(tool, {"task_id": 1, "title": "Oat milk 🌾", **user})
        assert asked == ["Are you sure you want to rename task 1? (yes/no)\nNew title: Oat milk 🌾"]
        assert done.structured_content["title"] == "Oat milk 🌾"


async def test_words_of_the_user_replace_the_question(connect: Any) -> None:
    async with connect("todo") as host:
        plan = host.client.conversation("work")
        await plan.add("Milk")
        words = "delete task 1, yes I am sure"
        done = await host.session.call_tool("delete_todo_task", {"task_id": 1, "user_words": words})
        assert done.structured_content["status"] == "deleted"
        (deleted,) = [change.event for change in await host.client.read(0) if type(change.event).__name__ == "Deleted"]
        assert deleted.quote == words
