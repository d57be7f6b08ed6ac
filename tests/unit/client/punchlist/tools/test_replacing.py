"""Other agents' work survives when the list is replaced or cleared."""

from typing import Any

import pytest

from punchlist import Client
from punchlist.tools import Toolbox, ToolCaller

REPLACERS: list[tuple[str, str, dict[str, Any]]] = [
    ("checklist", "SetTaskList", {"tasks": [{"title": "New"}]}),
    ("claude", "TodoWrite", {"todos": [{"content": "New", "status": "pending", "activeForm": "Doing"}]}),
    ("checklist", "SetTaskList", {"tasks": [{"title": "One"}, {"title": "New"}]}),
    ("claude", "TodoWrite", {"todos": [{"content": "One", "status": "completed"}, {"content": "New"}]}),
]


@pytest.mark.parametrize(("name", "tool", "arguments"), REPLACERS)
def test_replacing_keeps_another_agents_task(
    name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    other.call("native", "plan", {"tasks": ["One", "Two"]})
    other.call("native", "next")
    reply = box.call(name, tool, arguments)
    assert not reply.refused
    assert "#1 One stays in progress: bob works on it" in reply.text
    assert sorted(task.title for task in client.conversation("work").list()) == ["New", "One"]
    finished = other.call("native", "next", {"result": "by bob"})
    assert "#1 done" in finished.text
    assert client.conversation("work").get("1").result_summary == "by bob"


def test_list_in_use_is_not_cleared(client: Client, box: Toolbox) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    other.call("native", "plan", {"tasks": ["One", "Two"]})
    other.call("native", "next")
    refused = box.call("checklist", "ClearTasks")
    assert refused.refused
    assert refused.data["error"].startswith("Other sessions are working on #1 (bob)")
    assert not other.call("native", "next", {"result": "done"}).refused
    assert not other.call("checklist", "ClearTasks").refused


def test_own_and_idle_tasks_are_replaced_silently(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    box.call("native", "next")
    reply = box.call("checklist", "SetTaskList", {"tasks": ["New"]})
    assert reply.data == {"tasks": [{"id": "3", "title": "New", "description": "", "done": False}]}


def test_replacing_plan_asks_with_dropped_titles(client: Client, box: Toolbox) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    other.call("native", "plan", {"tasks": ["One", "Two", "Three\nand more"]})
    other.call("native", "next")
    new: dict[str, Any] = {"tasks": ["New"], "replace": True}
    asked = box.call("native", "plan", new)
    assert (
        asked.data["question"] == "Replace the list and drop 2 unfinished tasks (#2 Two, #3 Three and more)? (yes/no)"
    )
    told = box.call("native", "plan", {**new, "confirm": asked.data["confirm"]})
    assert "#1 One stays in progress: bob works on it." in told.text.splitlines()
    assert [task.title for task in client.conversation("work").list()] == ["One", "New"]
    assert "#1 done" in other.call("native", "next", {"result": "by bob"}).text


def test_replanned_task_of_another_stays_in_progress(client: Client, box: Toolbox) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    other.call("native", "plan", {"tasks": ["One"]})
    other.call("native", "next")
    told = box.call("native", "plan", {"tasks": ["One", "New"], "replace": True})
    assert not told.refused
    assert client.conversation("work").get("1").owner == "bob"
    assert "#1 done" in other.call("native", "next", {"result": "by bob"}).text


@pytest.mark.parametrize("kept", [True, False])
def test_finished_and_dropped_children_release_their_parent(client: Client, box: Toolbox, kept: bool) -> None:
    plan = client.conversation("work")
    parent = plan.add("Parent")
    plan.add("Child", parent=parent.id)
    todos = [{"content": "Parent", "status": "completed"}, *[{"content": "Child", "status": "completed"}] * kept]
    assert not box.call("claude", "TodoWrite", {"todos": todos}).refused
    assert plan.get(parent.id).status == "completed"


@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("checklist", "SetTaskList", {"tasks": [{"title": "Test"}, {"title": "Push"}, {"title": "Test"}]}),
        ("native", "plan", {"tasks": ["Test", "Push", "Test"], "replace": True}),
        ("claude", "TodoWrite", {"todos": [{"content": "Test"}, {"content": "Push"}, {"content": "Test"}]}),
    ],
)
def test_listed_again_task_stays_paused_or_failed(
    name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    plan = client.conversation("work")
    first, push, second = (plan.add(title) for title in ("Test", "Push", "Test"))
    plan.fail(first.id, "no compiler")
    plan.start(push.id)
    plan.pause(push.id)
    assert not box.call(name, tool, arguments).refused
    tasks = [(task.id, task.status, task.fail_reason) for task in plan.list()]
    assert tasks == [(first.id, "failed", "no compiler"), (push.id, "paused", ""), (second.id, "pending", "")]


@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("checklist", "SetTaskList", {"tasks": [{"title": "New"}, {"title": "One"}]}),
        ("native", "plan", {"tasks": ["New", "One"], "replace": True}),
    ],
)
def test_own_claim_survives_replanning(
    name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    box.call("native", "plan", {"tasks": ["One"]})
    box.call("native", "next")
    assert not box.call(name, tool, arguments).refused
    assert client.conversation("work").get("1").owner == "ann"
    assert "#1 done" in box.call("native", "next", {"result": "in docs"}).text


def test_written_status_restarts_failed_task(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    task = plan.add("Test")
    plan.fail(task.id, "no compiler")
    assert not box.call("claude", "TodoWrite", {"todos": [{"content": "Test", "status": "in_progress"}]}).refused
    assert plan.get(task.id).status == "in_progress"
