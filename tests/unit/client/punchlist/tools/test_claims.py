"""Two agents of one host on one list: ownership of tasks, and reports of each other's changes."""

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from anyio.from_thread import BlockingPortal

from punchlist import Client, SettingsPatch, connect
from punchlist.calls.conversations import ConversationCalls
from punchlist.clients.sync import Conversation
from punchlist.tools import Toolbox, ToolCaller, claims, offered
from punchlist.tools.agent_memory import Memory
from punchlist.tools.model import Dialect, ToolContext
from punchlist_testing.daemon import running_daemon

T = TypeVar("T")
A, B = "claude-code/7f3c1a", "claude-code/90b2e4"


def native(names: list[str]) -> Dialect:
    (dialect,) = offered(("native",), names)
    return dialect


def agent(client: Client, name: str, memory: Memory | None = None) -> Toolbox:
    return Toolbox(client, ToolCaller("work", name), memory)


@pytest.fixture
def sessions(client: Client) -> tuple[Toolbox, Toolbox]:
    """Two sessions served by one process, on a list of three tasks."""
    memory = Memory()
    client.conversation("work", actor="zed").add_many(["one", "two", "three"])
    return agent(client, A, memory), agent(client, B, memory)


ENDS: list[tuple[Callable[[Conversation], object], str]] = [
    (lambda plan: plan.clear(), "the list was cleared by zed"),
    (lambda plan: plan.delete("1"), "task 1 was deleted by zed"),
    (lambda plan: plan.complete("1", "by hand", fence=plan.get("1").fence), "task 1 was completed by zed"),
    (lambda plan: plan.pause("1"), "task 1 was paused by zed"),
]
"""Actions that end the claim of task 1, and the text that its owner then reads."""


FINISHING: list[tuple[str, str, dict[str, object]]] = [
    ("native", "next", {"id": "1", "result": "r"}),
    *(("native", "update", {"id": "1", "status": status}) for status in ("completed", "failed")),
    ("claude", "TaskUpdate", {"taskId": "1", "status": "completed"}),
    ("queue", "complete_task", {"task_id": "1", "result_summary": "r"}),
    ("queue", "fail_task", {"task_id": "1", "reason": "r"}),
    ("checklist", "CompleteTask", {"taskId": "1"}),
    ("checklist", "CompleteTasks", {"taskIds": ["1"]}),
    ("todo", "complete_todo_task", {"task_id": 1}),
    ("todo-v1", "complete_task", {"user_id": "ann", "task_id": 1}),
]
BEGINNING: list[tuple[str, str, dict[str, object]]] = [
    ("native", "update", {"id": "1", "status": "in_progress"}),
    ("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress"}),
    ("queue", "resume_task", {"task_id": "1"}),
]
DELETING: list[tuple[str, str, dict[str, object]]] = [
    ("native", "update", {"id": "1", "status": "deleted"}),
    ("claude", "TaskUpdate", {"taskId": "1", "status": "deleted"}),
    ("queue", "delete_task", {"task_id": "1"}),
    ("checklist", "DeleteTask", {"taskId": "1"}),
]
TAKING_AWAY: list[tuple[str, str, dict[str, object]]] = [
    *DELETING,
    *(("native", "update", {"id": "1", "status": status}) for status in ("pending", "paused")),
    ("native", "update", {"id": "1", "owner": "me"}),
    ("claude", "TaskUpdate", {"taskId": "1", "status": "pending"}),
    ("claude", "TaskUpdate", {"taskId": "1", "owner": "me"}),
    ("queue", "pause_task", {"task_id": "1"}),
    ("checklist", "UncompleteTask", {"taskId": "1"}),
]
"""Calls of each dialect that finish, start, delete or reassign task 1."""


def desk(name: str) -> ToolContext:
    return ToolContext(ConversationCalls("work", name), name, None, Memory(), "")


def run_to_end(running: Generator[Any, Any, T]) -> T:
    """Return the result of a generator that makes no calls."""
    with pytest.raises(StopIteration) as stop:
        next(running)
    return stop.value.value


def results(client: Client) -> dict[str, tuple[str, str, str]]:
    return {task.id: (task.status, task.owner, task.result_summary) for task in client.conversation("work").list()}


def test_each_session_finishes_its_own_task(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    assert "Now #1: one" in a.call("native", "next").text
    assert "Now #2: two" in b.call("native", "next").text
    assert "You are at it already.\nNow #2: two" in b.call("native", "next").text
    assert "#2 done.\nNow #3: three" in b.call("native", "next", {"result": "by B"}).text
    assert "#1 done." in a.call("native", "next", {"result": "by A"}).text
    assert results(client)["1"] == ("completed", A, "by A")
    assert results(client)["2"] == ("completed", B, "by B")
    assert "#3" in a.call("native", "tasks", {"since": "1"}).text


def test_changes_by_another_session_are_reported(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    a.call("native", "tasks")
    b.call("native", "next")
    assert a.call("native", "tasks", {"since": "last"}).text.splitlines()[1:] == [f"#1 [in_progress {B}] one — by {B}"]


def test_late_result_names_the_new_owner(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    a.call("native", "next")
    client.conversation("work", actor="zed").reopen("1")
    assert "Now #1" in b.call("native", "next").text
    refused = a.call("native", "next", {"result": "late"})
    assert refused.refused
    assert refused.text.startswith(
        f"Refused: task 1 was set back to pending by zed, then task 1 was taken by {B}: your result was not recorded."
    )
    named = a.call("native", "update", {"id": "1", "status": "completed", "note": "late"})
    assert named.text == f"Refused: task 1 is being worked on by {B}: take another one"
    assert results(client)["1"] == ("in_progress", B, "")
    assert "Now #2: two" in a.call("native", "next").text


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("step", "told"), ENDS)
def test_result_without_task_names_who_ended_it(
    client: Client,
    sessions: tuple[Toolbox, Toolbox],
    step: Callable[[Conversation], object],
    told: str,
    restarted: bool,
) -> None:
    a, _ = sessions
    a.call("native", "next")
    step(client.conversation("work", actor="zed"))
    refused = (agent(client, A) if restarted else a).call("native", "next", {"result": "r"})
    assert refused.text.startswith(f"Refused: {told}: your result was not recorded."), refused.text


def test_task_started_without_owner_belongs_to_starter(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    client.conversation("work", actor="zed").start("1")
    assert a.call("native", "next", {"result": "r"}).text.startswith("Refused: you have no task in progress")
    assert "Now #2: two" in a.call("native", "next").text
    theirs = "Refused: zed has begun task 1 without an owner, so it is theirs to finish: take another one"
    for arguments in ({"id": "1", "status": "completed"}, {"id": "1", "status": "in_progress"}):
        assert a.call("native", "update", arguments).text == theirs
    assert a.call("native", "next", {"id": "1", "result": "r"}).text == theirs
    assert results(client)["1"] == ("in_progress", "", "")


@pytest.mark.parametrize(("dialect", "tool", "arguments"), BEGINNING[:2])
def test_task_completed_by_another_is_not_restarted(
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, tool: str, arguments: dict[str, object]
) -> None:
    a, b = sessions
    a.call("native", "next", {})
    a.call("native", "next", {"result": "hours of work"})
    assert f"task 1 was completed by {A}: set it to pending first" in b.call(dialect, tool, arguments).text
    assert results(client)["1"] == ("completed", A, "hours of work")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("update", {"id": "1", "status": "completed", "note": "mine"}), ("next", {"id": "1", "result": "mine"})],
)
def test_result_of_another_is_not_overwritten(
    client: Client, sessions: tuple[Toolbox, Toolbox], tool: str, arguments: dict[str, object]
) -> None:
    client.conversation("work", actor="zed").complete("1", "theirs")
    refused = sessions[0].call("native", tool, arguments)
    said = "task 1 is completed already (zed completed it): its result stays, and yours was not recorded"
    assert refused.text == f"Refused: {said}"
    assert results(client)["1"] == ("completed", "", "theirs")


BEGUN: list[tuple[str, str, dict[str, object]]] = [
    *FINISHING,
    *BEGINNING,
    *TAKING_AWAY,
    ("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress", "owner": "me"}),
    ("checklist", "ClearTasks", {}),
]


@pytest.mark.parametrize(("dialect", "tool", "arguments"), BEGUN)
def test_no_dialect_takes_task_started_without_owner(
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, tool: str, arguments: dict[str, object]
) -> None:
    a, _ = sessions
    zed = client.conversation("work", actor="zed")
    zed.start("1")
    refused = a.call(dialect, tool, arguments)
    assert refused.refused
    theirs = "ed has begun task 1 without an owner, so it is theirs to finish: take another one"
    assert theirs in refused.text or "working on #1 (zed): leave these tasks in the list" in refused.text
    assert results(client)["1"] == ("in_progress", "", "")
    zed.reopen("1")
    assert not a.call(dialect, tool, arguments).refused


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments"),
    [
        ("claude", "TodoWrite", {"todos": [{"content": "two", "status": "pending"}]}),
        ("claude", "TodoWrite", {"todos": [{"content": "one", "status": "completed"}, {"content": "two"}]}),
        ("checklist", "SetTaskList", {"tasks": [{"title": "two"}]}),
    ],
)
def test_replacing_keeps_tasks_started_by_a_person(
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, tool: str, arguments: dict[str, object]
) -> None:
    client.conversation("work", actor="zed").start("1")
    told = sessions[0].call(dialect, tool, arguments)
    assert "#1 one stays in progress: zed works on it" in told.text
    assert results(client) == {"1": ("in_progress", "", ""), "2": ("pending", "", "")}


def test_task_started_by_serial_list_is_free(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    zed = client.conversation("work", actor="zed")
    zed.configure(settings=SettingsPatch(execution="serial"))
    zed.start("1")
    for at, (dialect, tool, arguments) in enumerate(
        [
            ("checklist", "CompleteTask", {"taskId": "1"}),
            ("claude", "TaskUpdate", {"taskId": "2", "status": "completed"}),
            ("todo", "complete_todo_task", {"task_id": 3}),
        ]
    ):
        assert results(client)[str(at + 1)] == ("in_progress", "", "")
        assert not sessions[1].call(dialect, tool, arguments).refused


Step = tuple[str, dict[str, object]]
COMPLETED: Step = ("TaskUpdate", {"taskId": "1", "status": "completed"})
BEGINS: list[tuple[str, Step, Step]] = [
    ("claude", ("TaskUpdate", {"taskId": "1", "status": "in_progress"}), COMPLETED),
    ("claude", ("TodoWrite", {"todos": [{"content": "one", "status": "in_progress"}]}), COMPLETED),
    ("queue", ("resume_task", {"task_id": "1"}), ("complete_task", {"task_id": "1", "result_summary": "r"})),
]
"""Calls that start task 1, and calls that finish it."""


@pytest.mark.parametrize(("dialect", "begin", "finish"), BEGINS)
def test_started_task_is_claimed_in_every_dialect(
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, begin: Step, finish: Step
) -> None:
    a, b = sessions
    assert not a.call(dialect, *begin).refused
    assert results(client)["1"][:2] == ("in_progress", A)
    refused = b.call(dialect, *finish)
    assert f"task 1 is being worked on by {A}: take another one" in refused.text
    assert not a.call(dialect, *begin).refused, "a repeated start has no effect"
    assert not agent(client, A).call(dialect, *finish).refused, "a restarted agent still owns the claim"
    assert results(client)["1"][0] == "completed"


def test_assigned_task_is_started_for_its_owner(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    a.call("claude", "TaskUpdate", {"taskId": "1", "owner": "researcher"})
    assert not b.call("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress"}).refused
    assert results(client)["1"][:2] == ("in_progress", "researcher")
    assert not b.call("claude", "TaskUpdate", {"taskId": "1", "status": "completed"}).refused


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments"),
    [
        ("native", "tasks", {}),
        ("claude", "TaskList", {}),
        ("checklist", "AddTask", {"title": "x"}),
        ("queue", "list_tasks", {}),
        ("todo", "list_todo_tasks", {}),
        ("todo-v1", "list_tasks", {"user_id": "ann"}),
    ],
)
def test_any_call_renews_claims(  # noqa: PLR0913
    client: Client,
    sessions: tuple[Toolbox, Toolbox],
    dialect: str,
    tool: str,
    arguments: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = sessions
    plan = client.conversation("work")

    def hours_left() -> int:
        return round((plan.get("1").lease_expires_at or 0) / 3_600_000 - time.time() / 3_600)

    plan.take(A, "1", lease_ms=3_600_000, keep=True)
    b.call(dialect, tool, arguments)
    assert hours_left() == 1, "another session's call doesn't renew the claim"
    a.call(dialect, tool, arguments)
    assert hours_left() == 2
    plan.renew("1", A, lease_ms=3_600_000)
    a.call(dialect, tool, arguments)
    assert hours_left() == 1, "claims are renewed at most every 15 minutes"
    monkeypatch.setattr(claims, "RENEW_S", 0.0)
    a.call(dialect, tool, arguments)
    assert hours_left() == 2
    plan.release("1", A)
    assert not a.call(dialect, tool, arguments).refused, "an ended claim doesn't fail the call"


@pytest.mark.parametrize(("dialect", "tool", "arguments"), TAKING_AWAY)
def test_claimed_task_is_not_taken_from_another_session(
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, tool: str, arguments: dict[str, object]
) -> None:
    a, b = sessions
    a.call("native", "next")
    refused = b.call(dialect, tool, arguments)
    assert refused.refused
    said = f"1 is being worked on by {A}: leave it to them; a person frees it with: punch reopen 1"
    assert said in refused.text
    assert results(client)["1"] == ("in_progress", A, "")
    parent = agent(client, "claude-code")
    assert not parent.call(dialect, tool, arguments).refused  # an agent may free its sub-agents' tasks


def test_restarted_process_finds_its_claims(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    a.call("native", "next")
    again = agent(client, A)
    assert "You are at it already.\nNow #1: one" in again.call("native", "next").text
    assert "#1 done." in agent(client, A).call("native", "next", {"result": "r"}).text
    client.conversation("work", actor="zed").reopen("1")


def test_several_tasks_at_once_need_an_id(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    a.call("native", "update", {"id": "1", "status": "in_progress"})
    assert a.call("native", "update", {"id": "3", "status": "in_progress"}).text == "#3 is yours."
    assert a.call("native", "update", {"id": "3", "status": "in_progress"}).text == "#3 is yours already."
    refused = a.call("native", "next", {"result": "r"})
    assert refused.text == "Refused: you are working on #1, #3: give the id of the one that this is about"
    assert "#3 done." in a.call("native", "next", {"result": "r", "id": "3"}).text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"result": "r", "failed": "f"}, "give result or failed, not both: nothing was changed"),
        ({"id": "2"}, "id needs result or failed; to take task 2: update with status in_progress"),
    ],
)
def test_contradictory_arguments_change_nothing(
    arguments: dict[str, str], said: str, client: Client, sessions: tuple[Toolbox, Toolbox]
) -> None:
    a, _ = sessions
    a.call("native", "next")
    assert a.call("native", "next", arguments).text == f"Refused: {said}"
    assert results(client)["1"][0] == "in_progress"
    assert results(client)["2"][0] == "pending"


def test_failed_blocker_comes_with_advice(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    plan = client.conversation("work", actor="zed")
    plan.delete("2")
    plan.edit("3", add_blocked_by=["1"])
    a.call("native", "next")
    told = a.call("native", "next", {"failed": "no framework"}).text
    assert "Nothing ready: 1 blocked, since #1 one failed." in told
    assert "status pending" in told
    assert "call wait" not in told.lower()
    a.call("native", "update", {"id": "1", "status": "pending"})
    assert "Now #1: one" in a.call("native", "next").text


def test_next_on_empty_list_names_plan(client: Client) -> None:
    box = agent(client, A)
    assert box.call("native", "next").text.splitlines()[0] == "The list is empty: add tasks with plan."
    alone = native(["next"])
    assert box.call(alone, "next").text.splitlines()[0] == "The list is empty."
    client.conversation("work").add("one")
    client.conversation("work").complete("1")
    assert box.call("native", "next").text.splitlines()[0] == "Nothing left: all tasks are finished."


def test_shortened_title_names_the_call_for_it(client: Client) -> None:
    title = "t" * 150
    client.conversation("work").add(title)
    box = agent(client, A)
    assert box.call("native", "next").text.splitlines()[:2] == [f"Now #1: {title[:99]}…", "(all of it: tasks ids=1)"]
    assert title in box.call("native", "tasks", {"ids": ["1"]}).text


def test_named_sub_agent_has_its_own_tasks(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    a.call("native", "next")
    assert "Now #2" in a.call("native", "next", {"agent": "reviewer"}).text
    assert results(client)["2"][1] == f"{A}/reviewer"
    assert "#2 done.\nNow #3" in a.call("native", "next", {"agent": "reviewer", "result": "r"}).text
    assert "Now #1" in a.call("native", "next").text
    running = client.conversation("work").list(status="in_progress")
    others = {"1": A, "3": f"{A}/reviewer"}
    assert run_to_end(claims.find_others_tasks(desk(B), running)) == others
    assert run_to_end(claims.find_others_tasks(desk(A), running)) == {}, "a session owns its sub-agents"
    assert claims.reject_drop(others).text == (
        f"other sessions are working on #1 ({A}), #3 ({A}/reviewer): leave these tasks in the list"
    )


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "x" * 41, "a/b", "a\x1b[2J", "ä"])
def test_invalid_sub_agent_name_is_rejected(name: str, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    reply = a.call("native", "next", {"agent": name})
    assert reply.refused == bool(name)
    assert "\x1b" not in reply.text


def test_nameless_agents_claim_nothing(client: Client) -> None:
    client.conversation("work").add_many(["one", "two"])
    shared = Toolbox(client, ToolCaller("work", "backend", is_nameless=True))
    refused = shared.call("native", "next")
    assert refused.data["refused"] == "agent_required"
    assert not shared.call("native", "tasks").refused
    assert "Now #1" in shared.call("native", "next", {"agent": "one"}).text
    assert "Now #2" in shared.call("native", "next", {"agent": "two"}).text


@pytest.mark.parametrize("end", [end for end, _ in ENDS])
def test_undo_restores_the_claim(
    end: Callable[[Conversation], object], client: Client, sessions: tuple[Toolbox, Toolbox]
) -> None:
    a, b = sessions
    plan = client.conversation("work", actor="zed")
    a.call("native", "next")
    before = plan.get("1")
    end(plan)
    plan.undo(1, of="zed")
    again = plan.get("1")
    assert (again.status, again.owner) == ("in_progress", A)
    assert again.fence is not None and before.fence is not None and again.fence > before.fence
    assert again.lease_expires_at is not None
    refused = b.call("native", "update", {"id": "1", "status": "completed"})
    assert f"task 1 is being worked on by {A}" in refused.text
    assert "#1 done" in a.call("native", "update", {"id": "1", "status": "completed", "note": "by a"}).text
    assert results(client)["1"] == ("completed", A, "by a")


def test_no_dialect_finishes_owned_task_without_claim(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    plan = client.conversation("work", actor="zed")
    plan.edit("1", owner="root")
    plan.start("1")
    for dialect, tool, arguments in (
        ("native", "update", {"id": "1", "status": "completed"}),
        ("native", "next", {"id": "1", "result": "x"}),
        ("claude", "TaskUpdate", {"taskId": "1", "status": "completed"}),
        ("queue", "complete_task", {"task_id": "1", "result_summary": "x"}),
        ("todo", "complete_todo_task", {"task_id": 1}),
    ):
        refused = sessions[0].call(dialect, tool, arguments)
        assert "task 1 is being worked on by root: take another one; a person frees it with: punch reopen 1" in (
            refused.text
        ), (dialect, tool)
    assert results(client)["1"][:2] == ("in_progress", "root")
    plan.reopen("1")
    assert "Now #1" in sessions[0].call("native", "next").text


@pytest.mark.parametrize(("dialect", "tool", "arguments"), [("native", "next", {}), *BEGINNING])
def test_continuing_own_task_claims_it_again(
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, tool: str, arguments: dict[str, Any]
) -> None:
    plan = client.conversation("work", actor="zed")
    plan.edit("1", owner=A)
    plan.start("1")
    assert plan.get("1").fence is None
    assert not sessions[0].call(dialect, tool, arguments).refused
    held = plan.get("1")
    assert held.owner == A and held.fence is not None and held.lease_expires_at is not None, "the claim expires"


def test_only_the_persons_tools_finish_its_task(client: Client) -> None:
    plan = client.conversation("work", actor="zed")
    plan.add_many(["one", "two"])
    plan.take("root", "1", keep=True)
    plan.set_status("2", "in_progress", actor="chat/22222222")
    finishes = {id: ("todo", "complete_todo_task", {"task_id": id}) for id in (1, 2)}
    assert all(agent(client, A).call(*call).refused for call in finishes.values())
    assert Toolbox(client, ToolCaller("work", "chat/11111111")).call(*finishes[1]).refused
    chat = Toolbox(client, ToolCaller("work", "chat/11111111", person="root"))
    for id, call in finishes.items():
        assert not chat.call(*call).refused
        assert plan.get(str(id)).status == "completed"


def test_reserved_task_is_taken_only_by_its_owner(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    plan = client.conversation("work", actor="ann")
    plan.edit("3", owner=B)
    plan.edit("1", owner="ann")
    assert b.call("native", "next", {}).data["next"]["id"] == "3", "tasks reserved for an agent come first"
    assert a.call("native", "next", {}).data["next"]["id"] == "2"
    a.call("native", "update", {"id": "2", "status": "completed"})
    nothing = a.call("native", "next", {})
    assert "Nothing ready for you: #1 is reserved for ann." in nothing.text
    for status in ("in_progress", "completed"):
        refused = a.call("native", "update", {"id": "1", "status": status})
        assert (refused.refused, "task 1 is reserved for ann" in refused.text) == (True, True)
    a.call("native", "update", {"id": "1", "owner": A})
    assert a.call("native", "next", {}).data["next"]["id"] == "1"


@pytest.mark.parametrize("owner", ["zed", "codex"])
@pytest.mark.parametrize(("dialect", "tool", "arguments"), FINISHING + BEGINNING + DELETING)
def test_no_dialect_changes_reserved_tasks(  # noqa: PLR0913
    client: Client, sessions: tuple[Toolbox, Toolbox], dialect: str, tool: str, arguments: dict[str, object], owner: str
) -> None:
    client.call("agent.enter", {"agent": "codex/ff31a8"})
    client.conversation("work", actor="zed").edit("1", owner=owner)
    refused = sessions[0].call(dialect, tool, arguments)
    assert refused.refused
    assert f"ask 1 is reserved for {owner}: " in refused.text
    assert results(client)["1"] == ("pending", owner, "")


def test_restarted_daemon_finds_owner_in_the_log(tmp_path: Path, portal: BlockingPortal) -> None:
    for is_restarted in (False, True):
        with (
            portal.wrap_async_context_manager(running_daemon(tmp_path)) as daemon,
            connect(socket=daemon.socket, autostart=False, name="tester") as client,
        ):
            if not is_restarted:
                client.conversation("work", actor="zed").add("one", owner="zed")
                continue
            begun = agent(client, A).call("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress"})
            assert "task 1 is reserved for zed: take another one" in begun.text


def test_chat_gets_tasks_reserved_for_its_person(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    client.conversation("work", actor="zed").edit("2", owner="ann")
    chat = Toolbox(client, ToolCaller("work", "chat/1f", person="ann"))
    assert chat.call("native", "next", {}).data["next"]["id"] == "2"


def test_agent_that_split_a_task_gets_its_children(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    plan = client.conversation("work", actor=A)
    a.call("native", "next")
    for title in ("first half", "second half"):
        plan.add(title, parent="1")
    refused = a.call("native", "next", {"result": "all", "id": "1"})
    assert refused.refused
    assert "task 1 has 2 open tasks: #4 first half, #5 second half: those come first" in refused.text
    assert "Now #2: two" in a.call("native", "next").text
    for part in ("4", "5"):
        a.call("native", "update", {"id": part, "status": "completed", "note": "done"})
    a.call("native", "next", {"result": "two", "id": "2"})
    assert "Now #1: one" in a.call("native", "next").text
    assert "#1 done." in a.call("native", "next", {"result": "all", "id": "1"}).text


@pytest.fixture
def split(sessions: tuple[Toolbox, Toolbox]) -> Toolbox:
    """An agent that has split task 1 and works on its only child. The other tasks belong to another agent."""
    a, b = sessions
    a.call("native", "next")
    a.call("native", "plan", {"tasks": [{"title": "part", "parent": "1"}]})
    for task in ("2", "3"):
        b.call("native", "update", {"id": task, "status": "in_progress"})
    assert "Now #4: one › part" in a.call("native", "next").text
    return a


def test_last_child_leads_back_to_its_parent(split: Toolbox) -> None:
    reply = split.call("native", "next", {"result": "part"})
    assert reply.text.splitlines()[:2] == ["#4 done.", "Now #1: one"]
    assert (reply.data["finished"], reply.data["next"]["id"]) == ("4", "1")
    assert "#1 done." in split.call("native", "next", {"result": "all"}).text


def test_parent_comes_before_a_new_task(client: Client, split: Toolbox) -> None:
    client.conversation("work").add("four")
    assert "Now #1: one" in split.call("native", "next", {"failed": "no"}).text


def test_result_for_parent_names_open_children(split: Toolbox, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    b.call("native", "next", {"id": "2", "result": "r"})
    a.call("native", "update", {"id": "4", "status": "pending"})
    refused = a.call("native", "next", {"result": "all of it"})
    assert refused.text == "Refused: task 1 has 1 open task: #4 part: those come first"
    assert "Now #4: one › part" in a.call("native", "next").text


def test_next_reports_a_reopened_task(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, _ = sessions
    a.call("native", "next")
    a.call("native", "update", {"id": "1", "status": "completed", "note": "done"})
    client.conversation("work", actor="zed").undo(1, of=A)
    assert "Now #1: one — by zed: no longer completed\n" in a.call("native", "next").text


def test_next_returns_the_agents_other_task(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    for task in ("1", "2", "3"):
        sessions[0].call("native", "update", {"id": task, "status": "in_progress"})
    assert "Now #1: one" in sessions[0].call("native", "next", {"id": "3", "result": "r"}).text


def test_wait_returns_immediately_for_own_last_task(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    plan = client.conversation("work", actor="zed")
    plan.delete("3")
    a.call("native", "next")
    a.call("native", "plan", {"tasks": [{"title": "part", "parent": "1"}, {"title": "late", "after": ["1"]}]})
    b.call("native", "next")
    a.call("native", "update", {"id": "4", "status": "completed"})
    assert "Nothing changed within 1 s" in a.call("native", "wait", {"seconds": 1}).text, "another agent works on #2"
    b.call("native", "next", {"result": "two"})
    begun = time.monotonic()
    told = a.call("native", "wait", {"seconds": 300}).text.splitlines()
    assert told[0] == "Nothing to wait for: #1 one is yours; call next."
    assert told[2] == f"#2 [completed {B}] two — by {B}"
    again = a.call("native", "wait", {"seconds": 300}).text.splitlines()
    assert again[1].startswith("Nothing changed, version ")
    assert time.monotonic() - begun < 60


def test_checklist_completes_parent_after_children(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    client.conversation("work").add("part", parent="1")
    reply = sessions[0].call("checklist", "CompleteTasks", {"taskIds": ["1", "4"]})
    assert (reply.data["ok"], reply.data["completed"]) == (True, ["1", "4"])


def test_rejected_heading_comes_with_advice(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    plan = client.conversation("work")
    plan.add("Phase", metadata={"heading": 2})
    plan.add("part", parent="4")
    plan.complete("5")
    refused = sessions[0].call("native", "update", {"id": "4", "status": "in_progress"})
    assert "task 4 is a heading: work on the tasks below it" in refused.text
    refused = sessions[0].call("native", "update", {"id": "4", "status": "pending"})
    assert "all tasks below it are finished: reopen one of them, or add one" in refused.text


def test_update_names_who_completed_a_task(sessions: tuple[Toolbox, Toolbox]) -> None:
    a, b = sessions
    for _ in range(2):
        assert a.call("native", "update", {"id": "1", "status": "completed"}).text.startswith("#1 done")
    told = b.call("native", "update", {"id": "1", "status": "completed"}).text
    assert told.startswith(f"#1 was completed already ({A} completed it, ")


def test_replacing_a_list_leaves_headings_and_reserved_tasks(client: Client, sessions: tuple[Toolbox, Toolbox]) -> None:
    plan = client.conversation("work", actor="ann")
    plan.add("Phase", metadata={"heading": 2})
    plan.add("part", parent="4")
    plan.edit("3", owner="ann")
    todos = [{"content": name, "status": "in_progress", "activeForm": name} for name in ("Phase", "three")]
    reply = sessions[0].call("claude", "TodoWrite", {"todos": [*todos, {**todos[0], "content": "part"}]})
    assert not reply.refused, reply.text
    assert [plan.get(one).status for one in ("4", "3", "5")] == ["pending", "pending", "in_progress"]
    sessions[0].call("claude", "TodoWrite", {"todos": []})
    assert plan.get("3").owner == "ann"
