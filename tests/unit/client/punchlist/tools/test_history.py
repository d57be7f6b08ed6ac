"""An agent that is too late gets the name of the agent that was first, in every dialect."""

from typing import Any

import pytest

from punchlist import Client
from punchlist.tools import Toolbox

COMPLETERS: list[tuple[str, str, dict[str, Any]]] = [
    ("checklist", "CompleteTask", {"taskId": "1"}),
    ("claude", "TaskUpdate", {"taskId": "1", "status": "completed"}),
    ("todo", "complete_todo_task", {"task_id": 1}),
    ("todo-v1", "complete_task", {"user_id": "ann", "task_id": 1}),
]


@pytest.mark.parametrize(("name", "tool", "arguments"), COMPLETERS)
def test_second_completion_names_the_first_actor(
    name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    bob = client.conversation("work", actor="bob")
    bob.add("One")
    bob.complete("1", "by bob")
    reply = box.call(name, tool, arguments)
    assert "bob completed it before" in reply.text
    assert bob.get("1").result_summary == "by bob"
    bob.reopen("1")
    assert "before" not in box.call(name, tool, arguments).text
    assert "before" not in box.call(name, tool, arguments).text, "the agent itself did it"


@pytest.mark.parametrize(("name", "tool", "arguments"), COMPLETERS)
def test_completing_deleted_task_names_who_deleted_it(
    name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    bob = client.conversation("work", actor="bob")
    bob.add_many(["One", "Two"])
    bob.delete("1")
    gone = box.call(name, tool, arguments)
    assert gone.refused
    assert "bob deleted it" in gone.text
    bob.clear()
    assert "bob cleared the list" in box.call(name, tool, arguments).text


def test_end_is_found_far_back_in_the_log(client: Client, box: Toolbox) -> None:
    bob = client.conversation("work", actor="bob")
    bob.add("One")
    bob.delete("1")
    for part in range(3):
        bob.add_many([f"{part}.{number}" for number in range(1_000)])
    assert box.call("claude", "TaskGet", {"taskId": "1"}).text == "task 1 not found: bob deleted it"


def test_task_that_never_existed_names_no_one(client: Client, box: Toolbox) -> None:
    client.conversation("work", actor="bob").add("One")
    assert box.call("checklist", "CompleteTask", {"taskId": "7"}).text == '{"ok":false,"error":"Task not found"}'
