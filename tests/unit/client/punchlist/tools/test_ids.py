"""Task ids as models send them, in every dialect."""

import json
from typing import Any

import pytest

from punchlist import Client
from punchlist.taskfiles.file_format import FOREIGN_ID
from punchlist.tools import Toolbox

GUID = "aa11bb22cc33dd44ee55ff6600112233"

NOT_FOUND: list[tuple[str, str, dict[str, Any], str]] = [
    ("checklist", "CompleteTask", {"taskId": GUID}, '{"ok":false,"error":"Task not found"}'),
    ("checklist", "UncompleteTask", {"taskId": GUID}, '{"ok":false,"error":"Task not found"}'),
    ("checklist", "DeleteTask", {"taskId": GUID}, '{"ok":false,"error":"Task not found"}'),
    ("claude", "TaskGet", {"taskId": GUID}, f"task {GUID} not found"),
    ("claude", "TaskUpdate", {"taskId": GUID, "subject": "x"}, f"task {GUID} not found"),
    ("claude", "TaskUpdate", {"taskId": GUID, "status": "deleted"}, f"task {GUID} not found"),
    ("native", "update", {"id": GUID, "title": "x"}, f"Refused: task {GUID} not found"),
    ("native", "tasks", {"ids": [GUID]}, f"Refused: task {GUID} not found"),
    (
        "native",
        "plan",
        {"tasks": [{"title": "x", "after": [GUID]}]},
        f"Refused: task {GUID} not found; after and parent take ids, or refs of tasks in the same call",
    ),
]


@pytest.mark.parametrize(("name", "tool", "arguments", "text"), NOT_FOUND)
def test_impossible_id_gets_the_dialects_error(
    name: str, tool: str, arguments: dict[str, Any], text: str, box: Toolbox
) -> None:
    box.call("checklist", "AddTask", {"title": "One"})
    reply = box.call(name, tool, arguments)
    assert (reply.text, reply.refused) == (text, True)


STRANGE: list[Any] = [
    "0",
    "-1",
    "1.5",
    "x" * 5_000,
    "12345678901234567890123",
    "💥",
    "#",
    "a b",
    0,
    -1,
    1.5,
    2**60,
    10**40,
    "abc",
    GUID,
]


@pytest.mark.parametrize("strange", STRANGE)
def test_other_unknown_ids_are_not_found(strange: Any, box: Toolbox) -> None:
    box.call("checklist", "AddTask", {"title": "One"})
    assert box.call("checklist", "CompleteTask", {"taskId": strange}).data == {"ok": False, "error": "Task not found"}
    not_found = {"status": "error", "error": f"task {str(strange)[:60]} not found"}
    for tool in ("get_todo_task", "complete_todo_task", "delete_todo_task"):
        assert box.call("todo", tool, {"task_id": strange}).data == not_found
    assert box.call("todo", "update_todo_task", {"task_id": strange, "title": "x"}).data == not_found
    assert box.call("todo", "delete_todo_task", {"task_id": 1, "also": [strange]}).data == not_found
    for tool, more in (("complete_task", {}), ("delete_task", {}), ("update_task", {"title": "x"})):
        assert box.call("todo-v1", tool, {"user_id": "ann", "task_id": strange, **more}).data == not_found


@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("checklist", "CompleteTask", {"taskId": "#1"}),
        ("claude", "TaskUpdate", {"taskId": "#1", "status": "completed"}),
        ("native", "update", {"id": "#1", "status": "completed"}),
        ("queue", "complete_task", {"task_id": "#1", "result_summary": "r"}),
        ("todo", "complete_todo_task", {"task_id": "#1"}),
        ("todo-v1", "complete_task", {"user_id": "ann", "task_id": "#1"}),
    ],
)
def test_id_with_number_sign_is_accepted(
    name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    box.call("checklist", "AddTask", {"title": "One"})
    assert not (reply := box.call(name, tool, arguments)).refused
    assert "##" not in reply.text
    assert client.conversation("work").get("1").status == "completed"


def test_unknown_edge_is_rejected_alone(box: Toolbox) -> None:
    box.call("checklist", "AddTask", {"title": "One"})
    made = box.call("claude", "TaskCreate", {"subject": "Two", "description": "d", "addBlockedBy": [GUID, "1"]})
    assert made.text.splitlines() == ["Task #2 created: Two", f"not blocked by {GUID}: task {GUID} not found"]
    assert box.call("claude", "TaskGet", {"taskId": "2"}).data["task"]["blockedBy"] == ("1",)


def test_mirror_file_guid_finds_its_task(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add("One")
    plan.add("From a file", metadata={FOREIGN_ID: GUID})
    plan.add("Another", metadata={FOREIGN_ID: "short"})
    assert json.loads(box.call("checklist", "CompleteTask", {"taskId": GUID}).text)["task"]["id"] == "2"
    made = box.call("claude", "TaskCreate", {"subject": "Four", "description": "d", "addBlockedBy": ["short", GUID]})
    assert made.text == "Task #4 created: Four"
    assert plan.get("4").blocked_by == ("2", "3")
    planned = box.call(
        "native", "plan", {"tasks": [{"title": "a", "ref": "short"}, {"title": "b", "after": ["short"]}]}
    )
    assert not planned.refused
    assert plan.get("6").blocked_by == ("5",)


WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("claude", "TaskCreate", {"subject": "x" * 501, "description": "d"}, "subject is wrong: expected at most 500 "),
    (
        "claude",
        "TaskCreate",
        {"subject": "x", "description": "d", "activeForm": "y" * 501},
        "activeForm is wrong: expected at most 500 characters",
    ),
    ("claude", "TodoWrite", {"todos": [{"content": "x" * 501}]}, "todos[0].content is wrong: expected at most 500"),
    (
        "claude",
        "TaskUpdate",
        {"taskId": "1", "subject": "x" * 501},
        "subject is wrong: expected at most 500 characters",
    ),
    ("todo", "get_todo_task", {"task_id": True}, "task_id is wrong: expected the id of one task"),
    (
        "queue",
        "fail_task",
        {"task_id": "1", "reason": "x" * 9_000},
        "reason is wrong: expected at most 8192 characters",
    ),
    ("native", "next", {"result": "x" * 9_000}, "result is wrong: expected at most 8192 characters"),
]


@pytest.mark.parametrize(("name", "tool", "arguments", "text"), WRONG)
def test_errors_use_the_models_argument_names(
    name: str, tool: str, arguments: dict[str, Any], text: str, box: Toolbox
) -> None:
    box.call("checklist", "AddTask", {"title": "One"})
    box.call("native", "next")
    reply = box.call(name, tool, arguments)
    assert reply.refused
    assert text in reply.text
