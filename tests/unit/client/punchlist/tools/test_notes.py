"""What people note reaches the agent that works on the task, in its words and once."""

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
"""How an agent gets task 1 in each dialect in which tasks are begun."""

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
    """Two tasks, as a person sees them."""
    plan = client.conversation("work", actor="root")
    plan.add_many(["One", "Two"])
    return plan


def told(box: Toolbox, text: str, dialect: str = "native", tool: str = "tasks", **arguments: Any) -> int:
    """How often a reply tells a text."""
    return box.call(dialect, tool, arguments).text.count(text)


@pytest.mark.parametrize("dialect", HAND_OUTS)
def test_a_task_is_handed_out_with_its_notes(box: Toolbox, plan: Conversation, dialect: str) -> None:
    plan.note("1", "use the\nnew API")
    tool, arguments = HAND_OUTS[dialect]
    assert told(box, "root: use the new API", dialect, tool, **arguments) == 1
    assert told(box, "use the new API", dialect, CALLS[dialect][0]) == (dialect == "queue"), "shown with the task alone"


@pytest.mark.parametrize("dialect", CALLS)
def test_a_new_note_is_in_the_very_next_reply(box: Toolbox, plan: Conversation, dialect: str) -> None:
    box.call("native", "next")
    plan.note("1", "y" * 280)
    tool, arguments = CALLS[dialect]
    assert told(box, "y" * 280, dialect, tool, **arguments) == 1
    assert told(box, "yyy") == 0


@pytest.mark.parametrize("dialect", CALLS)
def test_a_refusal_tells_the_note_as_well(box: Toolbox, plan: Conversation, dialect: str) -> None:
    box.call("native", "next")
    plan.note("1", "stop")
    reply = box.call(dialect, CALLS[dialect][0], {"id": "99", "taskId": "99", "title": "", "ids": ["99"]})
    assert "Note on #1 by root: stop" in reply.text + box.call("native", "tasks").text


def test_a_bare_array_leaves_the_note_for_the_next_reply(box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    plan.note("1", "stop")
    assert told(box, "stop", "todo", "list_todo_tasks") == 0
    assert told(box, "Note on #1 by root: stop") == 1


def test_the_note_comes_with_the_result_that_it_was_too_late_for(box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    plan.note("1", "second thoughts")
    reply = box.call("native", "next", {"result": "done"})
    assert reply.text.count("second thoughts") == 1
    assert reply.data["notes"] == ["Note on #1 by root: second thoughts"]
    assert "second thoughts" not in box.call("native", "tasks", {"since": "last"}).text


def test_a_note_that_ends_a_wait_is_told_once(client: Client, box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    box.call("native", "tasks")
    plan.edit("2", title="Two.")
    reply = box.call("native", "wait", {"seconds": 20})
    assert "#2 Two. — by root" in reply.text
    plan.note("2", "about two")
    assert 'by root: note "about two"' in box.call("native", "tasks", {"since": "last"}).text
    assert told(box, "about two") == 0


def test_a_restart_tells_what_was_noted_since_the_last_change(client: Client, box: Toolbox, plan: Conversation) -> None:
    plan.note("1", "before")
    box.call("native", "next")
    plan.note("1", "after")
    again = Toolbox(client, ToolCaller("work", "ann"))
    reply = again.call("claude", "TaskList").text
    assert "Note on #1 by root: after" in reply
    assert "before" not in reply


def test_of_many_notes_the_last_three_come_with_the_task(box: Toolbox, plan: Conversation) -> None:
    for number in range(6):
        plan.note("1", f"note {number} {'x' * 400}")
    lines = box.call("native", "next").text.splitlines()
    assert lines[1:5] == [
        "… 3 older: tasks ids=1",
        *(f"Note by root: note {number} {'x' * 292}…" for number in (3, 4, 5)),
    ]
    assert all(f"note {number}" in box.call("native", "tasks", {"ids": ["1"]}).text for number in range(6))


def test_own_notes_and_those_on_other_tasks_are_no_news(client: Client, box: Toolbox, plan: Conversation) -> None:
    box.call("native", "next")
    client.conversation("work", actor="ann").note("1", "mine")
    plan.note("2", "other")
    assert "Note on" not in box.call("claude", "TaskList").text


def test_an_idle_agent_asks_for_no_notes(client: Client, box: Toolbox, plan: Conversation) -> None:
    box.call("native", "tasks")
    before = client.status().calls
    box.call("claude", "TaskList")
    assert client.status().calls - before == 2, "the list, and this status"


def test_the_current_task_of_a_queue_tells_its_notes(client: Client) -> None:
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
def test_a_tasks_details_have_its_notes(
    box: Toolbox, plan: Conversation, dialect: str, tool: str, arguments: dict[str, Any]
) -> None:
    plan.note("1", "by Friday")
    assert told(box, "root: by Friday", dialect, tool, **arguments) == 1


def test_a_serial_list_that_starts_tasks_tells_their_notes(client: Client, box: Toolbox, plan: Conversation) -> None:
    plan.configure(settings=SettingsPatch(execution="serial"))
    box.call("native", "next")
    plan.note("1", "once")
    assert told(box, "Note on #1 by root: once") == 1
