"""A person's note reaches the agent that works on the task, verbatim and once."""

from typing import Any

import pytest

from punchlist import Client, SettingsPatch
from punchlist.clients.sync import Conversation
from punchlist.tools import Toolbox, ToolCaller

HAND_OUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("next", {}),
    "claude": ("TaskUpdate", {"taskId": "1", "status": "in_progress"}),
    "queue": ("resume_task", {"task_id": "1"}),
}
"""Calls that start task 1, in each dialect with such a tool."""

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("tasks", {}),
    "claude": ("TaskList", {}),
    "queue": ("list_tasks", {}),
    "checklist": ("AddTask", {"title": "Three"}),
    "todo": ("get_todo_task", {"task_id": 2}),
    "todo-v1": ("complete_task", {"user_id": "ann", "task_id": 2}),
}


@pytest.fixture
def plan(client: Client) -> Conversation:
    """A person's client of a list with two tasks."""
    plan = client.conversation("work", actor="root")
    plan.add_many(["One", "Two"])
    return plan


def count_in_reply(box: Toolbox, text: str, dialect: str = "native", tool: str = "tasks", **arguments: Any) -> int:
    """Return how often a reply contains some text."""
    return box.call(dialect, tool, arguments).text.count(text)


@pytest.mark.parametrize("dialect", HAND_OUTS)
def test_task_comes_with_its_notes(box: Toolbox, plan: Conversation, dialect: str) -> None:
    plan.note("1", "use the\nnew API")
    tool, arguments = HAND_OUTS[dialect]
    assert count_in_reply(box, "root: use the new API", dialect, tool, **arguments) == 1
    assert count_in_reply(box, "use the new API", dialect, CALLS[dialect][0]) == (dialect == "queue"), (
        "notes are shown only with the task"
    )


@pytest.mark.parametrize("dialect", CALLS)
def test_new_note_is_in_the_next_reply(box: Toolbox, plan: Conversation, dialect: str) -> None:
    box.call("native", "next")
    plan.note("1", "y" * 280)
    tool, arguments = CALLS[dialect]
    assert count_in_reply(box, "y" * 280, dialect, tool, **arguments) == 1
    assert count_in_reply(box, "yyy") == 0


@pytest.mark.parametrize("dialect", CALLS)
def test_rejection_includes_the_note(box: Toolbox, plan: Conversation, dialect: str) -> None:
    box.call("native", "next")
    plan.note("1", "stop")
    reply = box.call(dialect, CALLS[dialect][0], {"id": "99", "taskId": "99", "title": "", "ids": ["99"]})
    assert "Note on #1 by root: stop" in reply.text + box.call("native", "tasks").text


def test_bare_array_leaves_note_for_next_reply(box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    plan.note("1", "stop")
    assert count_in_reply(box, "stop", "todo", "list_todo_tasks") == 0
    assert count_in_reply(box, "Note on #1 by root: stop") == 1


def test_late_note_comes_with_the_result(box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    plan.note("1", "second thoughts")
    reply = box.call("native", "next", {"result": "done"})
    assert reply.text.count("second thoughts") == 1
    assert reply.data["notes"] == ["Note on #1 by root: second thoughts"]
    assert "second thoughts" not in box.call("native", "tasks", {"since": "last"}).text


def test_note_that_ends_a_wait_is_shown_once(client: Client, box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    box.call("native", "tasks")
    plan.edit("2", title="Two.")
    reply = box.call("native", "wait", {"seconds": 20})
    assert "#2 Two. — by root" in reply.text
    plan.note("2", "about two")
    assert 'by root: note "about two"' in box.call("native", "tasks", {"since": "last"}).text
    assert count_in_reply(box, "about two") == 0


def test_restart_shows_notes_since_last_change(client: Client, box: Toolbox, plan: Conversation) -> None:
    plan.note("1", "before")
    box.call("native", "next")
    plan.note("1", "after")
    again = Toolbox(client, ToolCaller("work", "ann"))
    reply = again.call("claude", "TaskList").text
    assert "Note on #1 by root: after" in reply
    assert "before" not in reply


def test_task_comes_with_last_three_notes(box: Toolbox, plan: Conversation) -> None:
    for number in range(6):
        plan.note("1", f"note {number} {'x' * 400}")
    lines = box.call("native", "next").text.splitlines()
    assert lines[1:5] == [
        "… 3 older: tasks ids=1",
        *(f"Note by root: note {number} {'x' * 292}…" for number in (3, 4, 5)),
    ]
    assert all(f"note {number}" in box.call("native", "tasks", {"ids": ["1"]}).text for number in range(6))


def test_own_and_unrelated_notes_are_not_shown(client: Client, box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    client.conversation("work", actor="ann").note("1", "mine")
    plan.note("2", "other")
    assert "Note on" not in box.call("claude", "TaskList").text


def test_idle_agent_loads_no_notes(client: Client, box: Toolbox, plan: Conversation) -> None:
    box.call("native", "tasks")
    before = client.status().calls
    box.call("claude", "TaskList")
    assert client.status().calls - before == 2, "the list shows the note, and so does this status"


def test_current_queue_task_shows_its_notes(client: Client) -> None:
    box = Toolbox(client, ToolCaller("queue", "ann"))
    box.call("queue", "add_task", {"description": "One"})
    client.conversation("queue", actor="root").note("1", "quickly")
    assert box.call("queue", "add_task", {"description": "Two"}).data["notes"] == ["Note on #1 by root: quickly"]
    client.conversation("queue", actor="root").note("2", "slowly")
    done = box.call("queue", "complete_task", {"task_id": "1", "result_summary": "r"})
    assert done.data["nextTask"]["notes"] == ["root: slowly"]


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments"),
    [
        ("claude", "TaskGet", {"taskId": "1"}),
        ("checklist", "ListTasks", {}),
        ("checklist", "CompleteTask", {"taskId": "2"}),
        ("todo", "get_todo_task", {"task_id": 1}),
        ("native", "tasks", {"ids": ["1"]}),
    ],
)
def test_details_include_notes(
    box: Toolbox, plan: Conversation, dialect: str, tool: str, arguments: dict[str, Any]
) -> None:
    plan.note("1", "by Friday")
    assert count_in_reply(box, "root: by Friday", dialect, tool, **arguments) == 1


def test_serial_list_shows_notes_of_started_tasks(client: Client, box: Toolbox, plan: Conversation) -> None:
    plan.configure(settings=SettingsPatch(execution="serial"))
    box.call("native", "next")
    plan.note("1", "once")
    assert count_in_reply(box, "Note on #1 by root: once") == 1
