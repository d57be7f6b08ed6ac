"""Turns save calls, and nothing else: a daemon with them and one without lead to the same replies."""

import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from punchlist import Client, OutcomeUnknown, PunchlistError, connect
from punchlist.calls.call import Call
from punchlist.connection.core import derived_keys, hold_key, new_key, release_key
from punchlist.tools import Reply, Toolbox, ToolCaller
from punchlist.tools.agent_memory import Memory
from punchlist.tools.budget import to_json
from punchlist.tools.toolbox import run_tool
from punchlist_testing.daemon import Running, Spawned
from punchlistd.engine.lists import trail, turns
from punchlistd.net import methods

STEPS = 80
TASKS = [str(number) for number in range(1, 15)]


def connect_without_turns(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Connect to the daemon as if it were an older one, which has no turns."""
    with monkeypatch.context() as patch:
        patch.setattr(methods, "FEATURES", tuple(name for name in methods.FEATURES if name != "turns"))
        client = connect(socket=daemon.socket, autostart=False, name="tester")
        client.open()
    return client


def as_text(reply: Reply) -> str:
    """Return the reply without its ages, since the two lists change at different times."""
    return re.sub(r"\b\d{1,3} (?:s|min) ago\b", "a while ago", f"{reply.refused} {reply.text} {to_json(reply.data)}")


class Twin:
    """The same list twice: one whose agents get turns, and one whose agents don't."""

    def __init__(self, current: Client, older: Client) -> None:
        self._boxes: dict[str, tuple[Toolbox, Toolbox]] = {}
        self._clients = current, older

    def call(self, agent: str, dialect: str, tool: str, arguments: dict[str, Any]) -> str:
        """Return the reply, which must be the same in both lists."""
        if agent not in self._boxes:
            current, older = (
                Toolbox(client, ToolCaller(name, agent))
                for client, name in zip(self._clients, ("current", "older"), strict=True)
            )
            self._boxes[agent] = current, older
        current, older = (box.call(dialect, tool, arguments) for box in self._boxes[agent])
        assert as_text(older).replace("older", "current") == as_text(current), f"{agent}: {dialect} {tool} {arguments}"
        return current.text

    def change(self, actor: str, method: str, *args: Any, **members: Any) -> None:
        for client, name in zip(self._clients, ("current", "older"), strict=True):
            try:
                getattr(client.conversation(name, actor=actor), method)(*args, **members)
            except PunchlistError:
                pass

    def restart(self, agent: str) -> None:
        """Forget what the agent's process knows."""
        self._boxes.pop(agent, None)


@pytest.fixture
def twin(daemon: Running, client: Client, monkeypatch: pytest.MonkeyPatch) -> Any:
    with connect_without_turns(daemon, monkeypatch) as older:
        yield Twin(client, older)


def act(twin: Twin, pick: random.Random) -> None:
    """Make a random tool call or a random change by somebody else."""
    agent, task = pick.choice(("host/ann", "host/bob")), pick.choice(TASKS)
    statuses = ("pending", "in_progress", "paused", "completed", "failed", "deleted")
    text = f"words {pick.randrange(1_000)}"
    tools: list[tuple[str, str, dict[str, Any]]] = [
        ("native", "next", {}),
        ("native", "next", {"result": text}),
        ("native", "next", {"result": text}),
        ("native", "next", {"failed": text}),
        ("native", "next", {"id": task, "result": text}),
        ("native", "next", {"result": text, "failed": text}),
        ("native", "update", {"id": task, "status": pick.choice(statuses)}),
        ("native", "update", {"id": task, "status": pick.choice(statuses), "note": text, "title": text}),
        ("native", "update", {"id": task, "title": text}),
        ("native", "update", {"id": task, "owner": pick.choice(("host/ann", "host/bob", "eve"))}),
        ("native", "update", {"id": task, "after": [pick.choice(TASKS)]}),
        ("native", "plan", {"tasks": [{"title": text}, {"title": f"{text} b", "parent": task}]}),
        ("native", "plan", {"tasks": [{"title": text, "ref": "a"}, {"title": f"{text} b", "after": ["a"]}]}),
        ("native", "tasks", {"since": "last"}),
        ("native", "tasks", {"all": True}),
        ("native", "tasks", {"ids": [task]}),
        ("claude", "TaskCreate", {"subject": text, "description": text, "addBlockedBy": [task]}),
        ("claude", "TaskUpdate", {"taskId": task, "status": pick.choice(("pending", "in_progress", "completed"))}),
        ("claude", "TaskUpdate", {"taskId": task, "subject": text}),
        ("claude", "TaskList", {}),
        ("claude", "TaskGet", {"taskId": task}),
        ("checklist", "CompleteTasks", {"taskIds": pick.sample(TASKS, 3)}),
        ("checklist", "CompleteTask", {"taskId": task}),
        ("queue", "complete_task", {"task_id": task, "result_summary": text}),
        ("queue", "resume_task", {"task_id": task}),
        ("todo", "list_todo_tasks", {}),
    ]
    changes: list[Callable[[], None]] = [
        lambda: twin.change("eve", "note", task, text),
        lambda: twin.change("eve", "edit", task, description=text),
        lambda: twin.change("eve", "edit", task, owner=pick.choice(("host/ann", "eve"))),
        lambda: twin.change("eve", "start", task),
        lambda: twin.change("eve", "reopen", task),
        lambda: twin.change("eve", "complete", task),
        lambda: twin.change("eve", "take", "eve"),
        lambda: twin.change("eve", "add", text, gate=None),
        lambda: twin.change("eve", "move", task, to_end=True),
        lambda: twin.change(agent, "start", task),
        lambda: twin.restart(agent),
    ]
    if pick.random() < 0.3:
        state = pick.getstate()
        pick.choice(changes)()
        pick.setstate(state)
        pick.random()
    else:
        twin.call(agent, *pick.choice(tools))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limit", [100, 1])
def test_replies_are_the_same_without_turns(twin: Twin, seed: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_RUNNING", limit)
    monkeypatch.setattr(turns, "MAX_CHANGED", limit)
    monkeypatch.setattr(trail, "MAX_EVENTS", 4 * limit)
    pick = random.Random(seed)
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": f"task {number}"} for number in range(8)]})
    for _ in range(STEPS):
        act(twin, pick)


def test_blocked_task_stays_the_current_one(twin: Twin) -> None:
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": "own"}, {"title": "blocker"}]})
    twin.call("host/ann", "native", "next", {})
    twin.change("eve", "add", "child of the blocker", parent="2")
    twin.change("eve", "edit", "1", add_blocked_by=["2"])
    assert "Now #1: own" in twin.call("host/ann", "native", "next", {})


def test_many_tasks_are_completed_in_the_given_order(twin: Twin) -> None:
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": "one"}, {"title": "two"}, {"title": "three"}]})
    twin.change("eve", "edit", "2", add_blocked_by=["1"])
    twin.call("host/bob", "native", "tasks", {})
    twin.call("host/ann", "checklist", "CompleteTasks", {"taskIds": ["1", "2", "3"]})
    news = twin.call("host/bob", "native", "next", {})
    assert "Others changed #1, #2, #3:" in news


def test_second_process_of_an_agent_is_noticed(twin: Twin) -> None:
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": "one"}, {"title": "two"}]})
    twin.call("host/ann", "native", "next", {})
    twin.change("host/ann", "take", "host/ann", "2")
    assert "you are working on #1, #2" in twin.call("host/ann", "native", "next", {"result": "done"})


def test_claim_by_another_process_is_noticed(twin: Twin) -> None:
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": "one"}, {"title": "two"}]})
    twin.change("host/ann", "take", "host/ann", "2")
    assert "You are at it already.\nNow #2: two" in twin.call("host/ann", "native", "next", {})


def test_task_that_an_undo_gave_back_is_finished(twin: Twin) -> None:
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": "one"}]})
    twin.call("host/ann", "native", "next", {})
    twin.change("eve", "reopen", "1")
    twin.change("eve", "take", "eve", "1")
    twin.change("eve", "undo", 2, claims=True)
    twin.call("host/ann", "native", "next", {"result": "done"})


def test_note_comes_with_a_rejected_call(twin: Twin) -> None:
    twin.call("host/ann", "native", "plan", {"tasks": [{"title": "one"}]})
    twin.call("host/ann", "native", "next", {})
    twin.change("eve", "note", "1", "in blue")
    assert "Note on #1 by eve: in blue" in twin.call("host/ann", "native", "next", {"result": "x", "failed": "y"})


def call_with_interruption(
    client: Client,
    memory: Memory,
    tool: str,
    arguments: dict[str, Any],
    method: str,
    *interrupts: Callable[[Call[Any]], Any],
) -> Reply:
    """Call a tool with turns. `interrupts` run before its first calls of this method, in the same process."""
    dialect, _, name = tool.partition(".")
    steps = run_tool(
        ToolCaller("work", "host/ann"), dialect, name, arguments, memory, client.open().epoch, has_turns=True
    )
    pending = list(interrupts)
    try:
        call = next(steps)
        while True:
            try:
                if call.method == method and pending:
                    pending.pop(0)(call)
                result = client.run(call)
            except PunchlistError as error:
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as stop:
        assert not pending, f"{tool} calls {method}"
        return stop.value


@pytest.fixture
def memory(client: Client) -> Memory:
    """The memory of an agent that works on the first of two tasks."""
    memory = Memory()
    box = Toolbox(client, ToolCaller("work", "host/ann"), memory)
    box.call("native", "plan", {"tasks": [{"title": "one"}, {"title": "two"}]})
    box.call("native", "next")
    return memory


def test_task_lost_during_the_call_is_kept_for_its_owner(client: Client, memory: Memory) -> None:
    plan = client.conversation("work", actor="bob")

    def take_over(_call: Call[Any]) -> None:
        plan.reopen("1")
        plan.edit("1", owner=None)
        plan.start("1")

    arguments = {"taskId": "1", "status": "completed"}
    reply = call_with_interruption(client, memory, "claude.TaskUpdate", arguments, "task.set_status", take_over)
    assert "bob has begun task 1" in reply.text
    assert plan.get("1").status == "in_progress"


def test_wait_shows_the_change_that_ended_it(client: Client, memory: Memory) -> None:
    plan = client.conversation("work", actor="bob")
    plan.take("bob", "2")
    plan.set_status("1", "paused")
    Toolbox(client, ToolCaller("work", "host/ann"), memory).call("native", "tasks")
    reply = call_with_interruption(
        client, memory, "native.wait", {"seconds": 30}, "event.wait", lambda _: plan.edit("2", title="other words")
    )
    assert "#2 [in_progress bob] other words — by bob" in reply.text


def test_response_rebuilt_from_the_log_is_enough(process: Spawned) -> None:
    with connect(socket=process.socket, autostart=False, name="tester") as client:
        memory = Memory()
        box = Toolbox(client, ToolCaller("work", "host/ann"), memory)
        box.call("native", "plan", {"tasks": [{"title": "one"}, {"title": "two"}]})
        box.call("native", "next")

        def restart(call: Call[Any]) -> None:
            client.run(call)
            process.restart()
            client.open()

        arguments = {"result": "done"}
        reply = call_with_interruption(client, memory, "native.next", arguments, "task.set_status", restart)
    assert reply.text.startswith("#1 done.\nNow #2: two\n1 left")


def test_restored_log_hides_no_changes(process: Spawned) -> None:
    with connect(socket=process.socket, autostart=False, name="tester") as client:
        memory = Memory()
        box = Toolbox(client, ToolCaller("work", "host/ann"), memory)
        box.call("native", "plan", {"tasks": [{"title": "one"}, {"title": "two"}]})
        box.call("native", "next")
        backup = str(process.directory / "copy.db")
        client.backup(backup)
        for title in ("lost", "lost too"):
            box.call("native", "update", {"id": "2", "title": title})

        def restore(_call: Call[Any]) -> None:
            process.stop()
            place = ["--data-dir", process.data_dir, "--aside", f"{process.data_dir}/aside"]
            subprocess.run([sys.executable, "-m", "punchlistd", "--restore", backup, *place], check=True)
            process.start()
            other = Toolbox(client, ToolCaller("work", "host/bob"))
            other.call("native", "tasks")
            for text in ("in blue", "or in red", "or green"):  # past the position that ann's process knows
                other.call("native", "update", {"id": "2", "description": text})

        arguments = {"result": "done"}
        reply = call_with_interruption(client, memory, "native.next", arguments, "task.set_status", restore)
    assert "Others cleared the list, or changed much of it" in reply.text


def test_repetition_with_other_knowledge_changes_nothing(client: Client, memory: Memory) -> None:
    plan = client.conversation("work", actor="host/ann")
    plan.set_status("1", "pending")
    plan.take("host/ann", "1")
    with derived_keys("request"):
        first = Toolbox(client, ToolCaller("work", "host/ann"), memory).call("native", "next", {"result": "did one"})
    assert "Now #2" in first.text
    with derived_keys("request"):
        again = Toolbox(client, ToolCaller("work", "host/ann")).call("native", "next", {"result": "did one"})
    assert "had been carried out" in again.text
    assert plan.get("2").status == "in_progress"


def test_repetition_after_a_rejected_attempt_changes_nothing(client: Client, memory: Memory) -> None:
    plan, arguments = client.conversation("work", actor="bob"), {"todos": [{"content": "mine"}]}

    def add(_call: Call[Any]) -> None:
        plan.add("meanwhile")

    with derived_keys("request"):
        call_with_interruption(client, memory, "claude.TodoWrite", arguments, "list.replace", add)
    assert [task.title for task in plan.list()] == ["mine"]
    plan.add("later")
    with derived_keys("request"):
        again = Toolbox(client, ToolCaller("work", "host/ann")).call("claude", "TodoWrite", arguments)
    assert "had been carried out" in again.text
    assert [task.title for task in plan.list()] == ["mine", "later"]


def test_repetition_completes_an_interrupted_update(client: Client, memory: Memory) -> None:
    plan = client.conversation("work", actor="host/ann")
    arguments = {"taskId": "1", "status": "completed", "addBlocks": ["2", "99"]}

    class Killed(Exception):
        pass

    def wait(_call: Call[Any]) -> None:
        pass

    def kill(_call: Call[Any]) -> None:
        raise Killed

    with derived_keys("request"), pytest.raises(Killed):
        call_with_interruption(client, memory, "claude.TaskUpdate", arguments, "task.edit", wait, wait, kill)
    assert plan.get("2").blocked_by == ("1",)
    with derived_keys("request"):
        again = Toolbox(client, ToolCaller("work", "host/ann")).call("claude", "TaskUpdate", arguments)
    assert again.data["updatedFields"] == ["addBlocks", "status"], again.text
    assert plan.get("1").status == "completed"


def test_change_with_unknown_outcome_keeps_its_key(client: Client, memory: Memory) -> None:
    todos = [{"content": title, "status": "in_progress"} for title in ("mine", "mine too")]

    def lose(call: Call[Any]) -> None:
        client.run(call)
        raise OutcomeUnknown("outcome_unknown", -32000, "The space doesn't respond.", {"space": "team"})

    with derived_keys("request"):
        call_with_interruption(client, memory, "claude.TodoWrite", {"todos": todos}, "task.claim", lose, lose)
    assert [task.owner for task in client.conversation("work").list()] == ["host/ann"] * 2


def test_rejected_change_gives_its_key_to_the_next() -> None:
    with derived_keys("request"):
        first, other = new_key("task.edit"), new_key("task.claim")
        release_key("task.edit", first)
        release_key("task.edit", first)  # a key is released once
        assert new_key("task.edit") == first
        second = new_key("task.edit")
        release_key("task.edit", first)  # not the last one
        assert new_key("task.edit") not in (first, second)
        release_key("task.claim", other)
        hold_key("task.claim", other)  # the same change is tried again
        hold_key("task.claim", other)
        assert new_key("task.claim") != other
