"""Reports of changes by others: each exactly once. A line that only has ids does not count as a report."""

import random
import re
from typing import Any

import pytest

from punchlist import Client
from punchlist.tools import Toolbox, ToolCaller
from punchlist_schemas.events import Deleted, NoteAdded


def restart(client: Client) -> Toolbox:
    """Return the agent's tools without any state, as after a restart of the process."""
    return Toolbox(client, ToolCaller("work", "ann"))


def test_only_new_changes_by_others_are_reported(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One", "Two", "Three"]})
    box.call("native", "tasks")
    box.call("native", "update", {"id": "1", "title": "Mine"})
    plan.edit("2", title="Changed")
    plan.delete("3")
    told = box.call("native", "tasks", {"since": "last"})
    assert told.text.splitlines()[1:] == ["#2 Changed — by bob", "gone: #3"]
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_restart_repeats_changes_instead_of_missing_them(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    plan.edit("1", title="Before the restart")
    box = restart(client)
    plan.edit("2", title="After it")
    told = box.call("native", "tasks", {"since": "last"})
    assert [task["id"] for task in told.data["tasks"]] == ["1", "2"]


def test_write_reports_earlier_changes_by_others(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    client.conversation("work", actor="bob").edit("2", title="Changed")
    box = restart(client)
    reply = box.call("native", "next")
    assert reply.text.splitlines()[-2:] == ["Others changed #2:", "#2 Changed — by bob"]
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_first_look_returns_the_whole_list(client: Client) -> None:
    client.conversation("work").add_many(["One", "Two"])
    told = Toolbox(client, ToolCaller("work", "newcomer")).call("native", "tasks", {"since": "last"})
    assert [task["title"] for task in told.data["tasks"]] == ["One", "Two"]


def test_last_own_event_is_found_far_back(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["Own"]})
    for part in range(3):
        client.conversation("work", actor="bob").add_many([f"{part}.{number}" for number in range(1_000)])
    box = restart(client)
    told = box.call("native", "tasks", {"since": "last"})
    assert told.text.startswith("3000 changed")


def test_restored_task_counts_as_changed(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One"]})
    plan.delete("1")
    plan.undo()
    told = box.call("native", "tasks", {"since": "last"})
    assert (told.data["tasks"][0]["id"], told.data["gone"]) == ("1", [])


def test_cleared_list_is_reported_whole(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    plan.clear()
    plan.add("New one")
    told = box.call("native", "tasks", {"since": "last"})
    assert "New one" in told.text
    assert "One" not in told.text


def test_wait_returns_changes_by_others(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One"]})
    client.conversation("work", actor="bob").edit("1", title="Changed")
    assert "#1 Changed — by bob" in box.call("native", "wait", {"seconds": "20"}).text


def test_counted_changes_remain_for_since_last(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": [f"task {number}" for number in range(9)]})
    for number in range(2, 9):
        client.conversation("work", actor="bob").edit(str(number), priority="high")
    for _ in range(2):
        reply = box.call("native", "update", {"id": "1", "priority": "low"})
        assert reply.text.endswith("Others changed #2, #3, #4, #5 and 3 more: tasks since=last shows them.")
    told = box.call("native", "tasks", {"since": "last"}).text.splitlines()
    assert [line for line in told if "— by bob" in line][::6] == [
        "#2 [high] task 1 — by bob",
        "#8 [high] task 7 — by bob",
    ]
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_changes_that_do_not_fit_come_next(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": [f"task {number}" for number in range(120)]})
    for number in range(120, 0, -1):
        client.conversation("work", actor="bob").edit(str(number), priority="high")
    told: list[str] = []
    while (lines := box.call("native", "tasks", {"since": "last"}).text.splitlines())[0][0] != "N":
        told += [line.split()[0] for line in lines if "— by bob" in line]
    assert told == [f"#{number}" for number in range(120, 0, -1)], "tasks are in the order of their changes"


def test_later_position_does_not_skip_earlier_changes(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    plan = client.conversation("work", actor="bob")
    plan.edit("1", priority="high")
    later = plan.list().seq
    plan.edit("2", priority="high")
    assert "#1" not in box.call("native", "tasks", {"since": str(later)}).text
    assert "#1 [high] One — by bob" in box.call("native", "tasks", {"since": "last"}).text


def test_list_marks_tasks_changed_by_others(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two", "Three"]})
    plan = client.conversation("work", actor="bob")
    plan.edit("1", description="keep the cookie")
    plan.complete("2")
    assert box.call("native", "tasks").text.splitlines()[1:] == [
        "#1 One — by bob: description",
        "#3 Three",
        "Others changed #2:",
        "#2 [completed] Two — by bob",
    ]
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_tree_is_planned_and_shown(client: Client, box: Toolbox) -> None:
    steps: list[dict[str, Any]] = [{"title": "Backend", "ref": "b"}, {"title": "Frontend", "ref": "f"}]
    steps += [{"title": "tests", "parent": name, "priority": "high"} for name in ("f", "b")]
    box.call("native", "plan", {"tasks": steps})
    assert box.call("native", "tasks").text.splitlines()[1:] == [
        "#1 Backend",
        "  #4 [high] tests",
        "#2 Frontend",
        "  #3 [high] tests",
    ]
    assert box.call("native", "tasks", {"offset": 3}).text.splitlines()[1:] == ["  #3 [high] tests"]
    assert "Now #3: Frontend › tests [high]" in box.call("native", "next").text
    assert "Now #3: Frontend › tests [high]" in box.call("native", "next").text
    assert box.call("native", "tasks", {"ids": ["4"]}).text.startswith("#4 [high] Backend › tests")
    assert "Path: Backend › tests" in box.call("claude", "TaskGet", {"taskId": "4"}).text
    client.conversation("work", actor="bob").edit("4", priority="urgent")
    assert "#4 [urgent] Backend › tests — by bob" in box.call("native", "tasks", {"since": "last"}).text
    assert box.call("checklist", "CompleteTask", {"taskId": "3"}).data["nextTask"]["path"] == "Backend › tests"


def test_plan_names_others_tasks_once(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    client.conversation("work", actor="bob").take("bob", "2")
    told = box.call("native", "plan", {"tasks": ["Three"]}).text.splitlines()
    assert told[1:] == ["Others changed #2:", "#2 [in_progress bob] Two — by bob"]
    assert box.call("native", "plan", {"tasks": ["Four"]}).text.splitlines()[1:] == [
        "Also open: #2 [in_progress bob] Two."
    ]


def test_next_marks_changes_on_its_task(client: Client, box: Toolbox) -> None:
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    plan = client.conversation("work", actor="bob")
    plan.edit("1", description="cold", active_form="Being one")
    plan.edit("2", priority="low")
    told = box.call("native", "next").text.splitlines()
    assert told[0] == "Now #1: One — by bob: description, active_form"
    assert told[3:] == ["Others changed #2:", "#2 [low] Two — by bob"]
    plan.note("1", "hurry")
    plan.edit("1", title="Uno")
    told = box.call("native", "next").text.splitlines()
    assert told[1:3] == ["Now #1: Uno — by bob", "cold"]
    assert sum("hurry" in line for line in told) == 1
    assert "by bob" not in box.call("native", "next").text.replace("Note by bob", "")
    assert box.call("native", "tasks", {"since": "last"}).text.startswith("Nothing changed")


def test_offers_without_changes_count_none(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work", actor="bob")
    for number in range(3):
        agent = f"claude-code-{'x' * 40}/{number}"
        client.call("agent.enter", {"agent": agent})
        plan.add(str(number))
        Toolbox(client, ToolCaller("work", agent)).call("native", "next")
        client.call("agent.leave", {"agent": agent})
    box.call("native", "next")
    told = box.call("native", "next").text
    assert told.count("session ended") == 3
    assert "Others changed" not in told


class Follower:
    """An agent that relies on its replies. Records which changes were reported, and at which log position."""

    def __init__(self, client: Client, chance: random.Random) -> None:
        self.client = client
        self.chance = chance
        self.box = Toolbox(client, ToolCaller("work", "ann"))
        self.replies: list[tuple[int, str]] = []
        self.added = 0

    def call(self, tool: str, **arguments: Any) -> str:
        head = self.client.conversation("work").list(limit=1).seq
        text = self.box.call("native", tool, arguments).text
        self.replies.append((head, text))
        return text

    def step(self) -> None:
        self.added += 1
        calls: list[tuple[str, dict[str, Any]]] = [
            ("plan", {"tasks": [f"by ann {self.added}"]}),
            ("next", {}),
            ("next", {"result": "done"}),
            ("update", {"id": "1", "priority": self.chance.choice(("low", "high"))}),
            ("tasks", {}),
            ("tasks", {"since": "last"}),
        ]
        tool, arguments = self.chance.choice(calls)
        if "tasks since=last shows them" in self.call(tool, **arguments) and self.chance.random() < 0.5:
            self.call("tasks", since="last")

    def reported_at(self, task: str) -> list[int]:
        """Return the positions at which a line reported a change to a task."""
        line = re.compile(rf"^(?: *|Now )#{task}\b.* — by |^gone: (.*, )?#{task}\b", re.MULTILINE)
        return [head for head, text in self.replies if line.search(text)]


def act(client: Client, chance: random.Random, number: int) -> None:
    """Make a random change as another agent or a person."""
    plan = client.conversation("work", actor=chance.choice(("bob", "root")))
    tasks = [task for task in plan.list(status=("pending", "in_progress")) if task.id != "1"]
    if not tasks or chance.random() < 0.2:
        plan.add(f"by others {number}")
        return
    task = chance.choice(tasks)
    steps = [
        lambda: plan.note(task.id, f"note {number}."),
        lambda: plan.edit(task.id, description=f"about {number}"),
        lambda: plan.edit(task.id, priority=chance.choice(("low", "normal", "urgent"))),
        lambda: plan.delete(task.id) if task.status == "pending" else plan.note(task.id, f"note {number}."),
        lambda: plan.complete(task.id) if task.status == "pending" else plan.edit(task.id, title=f"again {number}"),
    ]
    chance.choice(steps)()


@pytest.mark.parametrize("seed", range(20))
def test_every_change_is_reported_exactly_once(client: Client, seed: int) -> None:
    chance = random.Random(seed)
    ann = Follower(client, chance)
    ann.call("plan", tasks=["One", "Two", "Three"])
    start = client.conversation("work").list(limit=1).seq
    for number in range(60):
        if chance.random() < 0.6:
            act(client, chance, number)
        else:
            ann.step()
    ann.call("tasks", since="last")
    assert ann.call("tasks", since="last").startswith("Nothing changed")
    others = [change for change in client.read(start, "work") if change.actor != "ann"]
    deleted = {change.event.task for change in others if isinstance(change.event, Deleted)}
    for change in others:
        event: Any = change.event
        task = event.task if isinstance(event.task, str) else event.task.id
        if isinstance(event, NoteAdded):
            text = re.escape(event.text)
            news = re.compile(rf"^Note on #{task} by .*{text}|— by .*{text}", re.MULTILINE)
            assert sum(len(news.findall(text)) for _, text in ann.replies) <= 1, "each note is reported once"
            assert task in deleted or any(event.text in text for _, text in ann.replies), event.text
        else:
            assert any(head >= change.seq for head in ann.reported_at(task)), (task, event)
    for task in {str(number) for number in range(1, 100)}:
        heads = ann.reported_at(task)
        seqs = [change.seq for change in others if task in (getattr(change.event, "task", None), _added(change))]
        for before, after in zip(heads, heads[1:], strict=False):
            assert any(before < seq <= after for seq in seqs), f"#{task} was reported twice"


def _added(change: Any) -> str | None:
    return getattr(getattr(change.event, "task", None), "id", None)
