"""A task that waits for a person's approval: every dialect shows it, and no tool changes it."""

from typing import Any

import pytest

from punchlist import Client, Gate, SettingsPatch
from punchlist.tools import Toolbox, ToolCaller
from punchlist_schemas.things import Task

TAKING: list[tuple[str, str, dict[str, Any]]] = [
    *(("native", "update", {"id": "1", "status": to}) for to in ("pending", "in_progress", "paused", "failed")),
    ("native", "update", {"id": "1", "status": "completed", "note": "again"}),
    ("native", "update", {"id": "1", "owner": "root"}),
    ("native", "update", {"id": "1", "status": "deleted"}),
    ("native", "next", {"id": "1", "result": "again"}),
    *(("claude", "TaskUpdate", {"taskId": "1", "status": to}) for to in ("pending", "in_progress", "deleted")),
    *(("native", "update", {"id": "1", name: "x"}) for name in ("title", "description")),
    *(("claude", "TaskUpdate", {"taskId": "1", name: "x"}) for name in ("subject", "description")),
    ("todo", "update_todo_task", {"task_id": 1, "title": "x", "user_words": "yes, rename it"}),
    ("todo-v1", "update_task", {"user_id": "u", "task_id": 1, "description": "x"}),
    ("checklist", "UncompleteTask", {"taskId": "1"}),
    ("checklist", "DeleteTask", {"taskId": "1"}),
    *(("queue", tool, {"task_id": "1"}) for tool in ("pause_task", "resume_task", "delete_task")),
    ("queue", "complete_task", {"task_id": "1", "result_summary": "again"}),
    ("queue", "fail_task", {"task_id": "1", "reason": "no"}),
    ("todo", "delete_todo_task", {"task_id": 1, "user_words": "yes, delete it"}),
    ("todo-v1", "delete_task", {"user_id": "u", "task_id": 1, "user_words": "yes, delete it"}),
]


def is_still_waiting(client: Client, was: Task) -> bool:
    return client.conversation("work").get("1") == was


@pytest.fixture
def waiting(client: Client, box: Toolbox) -> Task:
    """Task 1, completed by ann and waiting for approval, and a second task in progress."""
    plan = client.conversation("work")
    plan.add("Delete the old backups", gate=Gate(yes=True))
    plan.add("Next")
    plan.configure(settings=SettingsPatch(execution="serial"))
    box.call("queue", "list_tasks")
    assert "once a person says yes" in box.call(*completion("deleted them")).text
    return plan.get("1")


def completion(result: str) -> tuple[str, str, dict[str, Any]]:
    return "queue", "complete_task", {"task_id": "1", "result_summary": result}


@pytest.mark.parametrize(
    "caller", [ToolCaller("work", "ann"), ToolCaller("work", "bob"), ToolCaller("work", "c", person="r")]
)
@pytest.mark.parametrize(("dialect", "tool", "arguments"), TAKING)
def test_no_tool_takes_task_waiting_for_yes(
    dialect: str, tool: str, arguments: dict[str, Any], caller: ToolCaller, client: Client, waiting: Task
) -> None:
    refused = Toolbox(client, caller).call(dialect, tool, arguments)
    assert refused.refused
    assert "1 waits for a person's yes: leave it. They answer with: punch approve 1" in refused.text
    assert is_still_waiting(client, waiting)


def test_list_with_waiting_task_is_not_cleared(client: Client, box: Toolbox, waiting: Task) -> None:
    refused = box.call("checklist", "ClearTasks")
    assert refused.refused
    assert "1 waits for a person's yes: leave it" in refused.text
    assert is_still_waiting(client, waiting)


def test_repeated_completion_gets_same_reply(client: Client, box: Toolbox, waiting: Task) -> None:
    for call in (completion("deleted them"), ("checklist", "CompleteTask", {"taskId": "1"})):
        assert not box.call(*call).refused
    assert is_still_waiting(client, waiting)


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments"),
    [
        ("checklist", "SetTaskList", {"tasks": [{"title": "New"}]}),
        ("checklist", "SetTaskList", {"tasks": [{"title": "Delete the old backups"}]}),
        ("claude", "TodoWrite", {"todos": [{"content": "New"}]}),
        ("claude", "TodoWrite", {"todos": [{"content": "Delete the old backups", "status": "in_progress"}]}),
    ],
)
def test_waiting_task_survives_replacement(
    dialect: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox, waiting: Task
) -> None:
    reply = box.call(dialect, tool, arguments)
    assert not reply.refused
    assert "#1 Delete the old backups stays: it waits for a person's yes" in reply.text
    assert (client.conversation("work").get("1").waits_for, waiting.waits_for) == ("yes", "yes")


SHOWN: list[tuple[str, str, dict[str, Any], str]] = [
    ("native", "tasks", {}, "#1 [waits for a person's yes ann] Delete the old backups"),
    ("native", "tasks", {"ids": ["1"]}, "Waits: recorded; it counts as completed once a person says yes"),
    ("claude", "TaskList", {}, "[waits for a person's yes]"),
    ("claude", "TaskGet", {"taskId": "1"}, "Waits: recorded; it counts as completed once a person says yes"),
    ("checklist", "ListTasks", {}, '"done":false,"waitsFor":"yes"'),
    ("queue", "list_tasks", {}, '"paused":[{"id":"1","description":"Delete the old backups","waits_for":"yes"}]'),
    ("todo", "list_todo_tasks", {}, '"status":"waits for a person\'s yes"'),
    ("todo-v1", "list_tasks", {"user_id": "u"}, '"status":"waits for a person\'s yes"'),
]


@pytest.mark.parametrize(("dialect", "tool", "arguments", "words"), SHOWN)
def test_every_dialect_shows_waiting_task(
    dialect: str, tool: str, arguments: dict[str, Any], words: str, box: Toolbox, waiting: Task
) -> None:
    assert words in box.call(dialect, tool, arguments).text


def test_queue_advises_to_leave_waiting_task(client: Client, box: Toolbox, waiting: Task) -> None:
    done = box.call("queue", "complete_task", {"task_id": "2", "result_summary": "done"})
    note = "Nothing is in progress: task 1 waits for a person's yes: leave it."
    assert (done.data["nextTask"], done.data["note"]) == (None, note)
    assert box.call("queue", "list_tasks").data["note"] == note
    assert "Task 1 waits for a person's yes: leave it." in box.call("native", "next").text


def test_check_and_approver_are_named(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add("One", gate=Gate(check="tests"))
    plan.add("Two", gate=Gate(by="eve"))
    for number in "12":
        plan.complete(number)
    listed = box.call("native", "tasks").text
    assert "[waits for the check tests]" in listed
    assert "[waits for eve's yes]" in listed
    assert (
        "task 2 waits for eve's yes: leave it" in box.call("checklist", "UncompleteTask", {"taskId": "2"}).text.lower()
    )
    assert not box.call("checklist", "UncompleteTask", {"taskId": "1"}).refused


REASON = "docs are missing"
REJECTED: list[tuple[str, str, dict[str, Any], str]] = [
    ("native", "next", {}, f"Now #1: Deploy — by tester\nRejected: {REASON}\n"),
    ("native", "update", {"id": "1", "status": "in_progress"}, f"#1 is yours. Rejected: {REASON}"),
    ("native", "tasks", {"ids": ["1"]}, f"Rejected: {REASON}"),
    ("claude", "TaskList", {}, f"☐ #1: Deploy [pending] (rejected: {REASON})"),
    ("claude", "TaskGet", {"taskId": "1"}, f"Rejected: {REASON}"),
    ("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress"}, f"Updated task #1 (rejected: {REASON})"),
    ("checklist", "ListTasks", {}, f'"reason":"Rejected: {REASON}"'),
    ("queue", "list_tasks", {}, f'"reason":"Rejected: {REASON}"'),
    ("queue", "resume_task", {"task_id": "1"}, f'"reason":"Rejected: {REASON}"'),
    ("todo", "get_todo_task", {"task_id": 1}, f'"reason":"{REASON}"'),
]


@pytest.mark.parametrize(("dialect", "tool", "arguments", "words"), REJECTED)
def test_every_dialect_shows_the_rejection_reason(
    dialect: str, tool: str, arguments: dict[str, Any], words: str, client: Client, box: Toolbox
) -> None:
    plan = client.conversation("work")
    plan.add("Deploy", gate=Gate(yes=True))
    box.call("native", "next")
    box.call("native", "next", {"result": "done"})
    plan.reject("1", REASON)
    assert words in box.call(dialect, tool, arguments).text


def test_rejection_reason_disappears_after_new_result(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add("Deploy", gate=Gate(yes=True))
    for _ in range(2):
        box.call("native", "next")
        box.call("native", "next", {"result": "done"})
        assert "ejected" not in box.call("native", "tasks", {"ids": ["1"]}).text
        plan.reject("1", REASON)


def test_rejected_heading_is_reported(client: Client) -> None:
    work = client.conversation("work", actor="zoe")
    heading = work.add("H", metadata={"heading": 2}, gate=Gate(yes=True))
    child = work.add("c", parent=heading.id)
    work.complete(child.id)
    work.approve(heading.id, "no tests", accept=False)
    told = Toolbox(client, ToolCaller("work", "codex/1")).call("native", "next").text
    assert f"#{heading.id} H was rejected: no tests; add a task below it" in told
    assert f"{heading.id} was rejected (no tests)" in str(
        Toolbox(client, ToolCaller("work", "codex/1")).call("queue", "list_tasks").data
    )
