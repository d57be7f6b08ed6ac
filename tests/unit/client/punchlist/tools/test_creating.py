"""In each dialect, existing tasks are not added again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist.tools import Toolbox, ToolCaller
from punchlist_testing.daemon import Running

KEPT = "#1 has this title already (in_progress, codex/1a2b3c): kept"
CREATES: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("plan", {"tasks": ["fix  login."]}),
    "claude": ("TaskCreate", {"subject": "fix  login.", "description": "d"}),
    "checklist": ("AddTask", {"title": "fix  login."}),
    "queue": ("add_task", {"description": "Fix login"}),
    "todo": ("create_todo_task", {"title": "fix  login."}),
    "todo-v1": ("add_task", {"user_id": "ann", "title": "fix  login."}),
}


@pytest.fixture
def codex(client: Client) -> Toolbox:
    """An agent that works on "Fix login" and has planned "Fix logout"."""
    codex = Toolbox(client, ToolCaller("work", "codex/1a2b3c"))
    codex.call("native", "plan", {"tasks": ["Fix login", "Fix logout"]})
    codex.call("native", "next")
    return codex


def titles(client: Client) -> list[str]:
    return [task.title for task in client.conversation("work").list()]


@pytest.mark.parametrize("dialect", CREATES)
def test_create_keeps_open_task_of_same_title(client: Client, box: Toolbox, codex: Toolbox, dialect: str) -> None:
    tool, arguments = CREATES[dialect]
    reply = box.call(dialect, tool, arguments)
    assert KEPT in reply.text
    assert not reply.refused
    assert titles(client) == ["Fix login", "Fix logout"]


CHANGERS = {"native": "update", "claude": "TaskUpdate", "checklist": "", "todo-v1": "update_task"}


@pytest.mark.parametrize("dialect", CHANGERS)
def test_create_reports_a_different_description(client: Client, box: Toolbox, codex: Toolbox, dialect: str) -> None:
    shared = client.conversation("work", actor="root")
    shared.edit("1", description="as  before")
    tool, arguments = CREATES[dialect]
    for description, is_said in (("", False), ("as before", False), ("other", True)):
        asked = arguments | {"description": description}
        if dialect == "native":
            asked = {"tasks": [{"title": "Fix login", "description": description}]}
        text = box.call(dialect, tool, asked).text
        advice = f": use {CHANGERS[dialect]} to change it" if CHANGERS[dialect] else ""
        assert (f"{KEPT}; its description was not changed{advice}" in text) == is_said
    assert shared.get("1").description == "as  before"


def test_plan_reports_different_members(box: Toolbox) -> None:
    steps = [{"title": f"step {number}"} for number in range(30)]
    box.call("native", "plan", {"tasks": steps})
    steps[20] |= {"description": "d", "priority": "high"}
    lines = box.call("native", "plan", {"tasks": steps}).text.splitlines()
    said = "its description and priority were not changed: use update to change them"
    assert lines[1] == f"#21 has this title already (pending): kept; {said}."


def test_second_plan_names_kept_and_others_tasks(client: Client, box: Toolbox, codex: Toolbox) -> None:
    client.conversation("work", actor="root").add("Docs")
    reply = box.call(
        "native", "plan", {"tasks": [{"title": "Fix Login!", "ref": "a"}, {"title": "Ship", "after": "a"}]}
    )
    assert reply.text.splitlines() == [
        "Added #4. Ready: none. Call next to begin.",
        f"{KEPT}.",
        "Also open: #2 Fix logout, #3 Docs.",
    ]
    assert reply.data["kept"] == ["1"]
    assert client.conversation("work").get("4").blocked_by == ("1",)


def test_later_plan_shows_sub_agents_tasks(box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    box.call("native", "next", {"agent": "reviewer"})
    text = box.call("native", "plan", {"tasks": ["Three"]}).text
    assert "#1 [in_progress ann/reviewer] One" in text


def test_many_kept_tasks_are_counted(box: Toolbox) -> None:
    steps = [f"step {number}" for number in range(30)]
    box.call("native", "plan", {"tasks": steps})
    lines = box.call("native", "plan", {"tasks": steps}).text.splitlines()
    assert lines[0] == "Added nothing. Ready: #1, #2, #3, #4 and 26 more. Call next to begin."
    assert lines[-1] == "22 more are on the list already: kept."


def test_equal_first_lines_make_two_tasks(client: Client, box: Toolbox) -> None:
    for end in ("one", "two"):
        box.call("queue", "add_task", {"description": f"{'x' * 90} {end}"})
    assert len(titles(client)) == 2


def test_concurrent_plans_make_one_plan(daemon: Running, client: Client) -> None:
    steps = [{"title": f"step {number}", "ref": f"r{number}"} for number in range(40)]

    def plan(name: str) -> str:
        with connect(socket=daemon.socket, autostart=False, name=name) as own:
            return Toolbox(own, ToolCaller("work", name)).call("native", "plan", {"tasks": steps}).text

    with ThreadPoolExecutor(4) as pool:
        texts = [*pool.map(plan, ("a", "b", "c", "d"))]
    assert sorted(titles(client)) == sorted(step["title"] for step in steps)
    assert sum("Added #1-#40" in text for text in texts) == 1
    assert sum("Added nothing" in text for text in texts) == 3
