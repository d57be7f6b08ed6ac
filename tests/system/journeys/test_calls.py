"""The calls on the wire of each agent tool and of the commands that people use most.

The requests are counted in the daemon, so that retries and greetings can't hide. `daemon.hello` isn't counted.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from punchlist import Client, connect
from punchlist.tools import Reply, Toolbox, ToolCaller
from punchlist_testing.daemon import Running, running_daemon
from punchlistd.net.router import Router

PATIENCE_S = 30


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods called since the list was last cleared."""
    seen: list[str] = []
    begin = Router.begin

    def record(router: Router, connection: Any, caller: Any, call: Any) -> None:
        if call.method != "daemon.hello":
            seen.append(call.method)
        begin(router, connection, caller, call)

    monkeypatch.setattr(Router, "begin", record)
    return seen


@pytest.fixture
def portal() -> Generator[BlockingPortal]:
    with start_blocking_portal("asyncio") as portal:
        yield portal


@pytest.fixture
def daemon(tmp_path: Path, portal: BlockingPortal, requests: list[str]) -> Generator[Running]:
    with portal.wrap_async_context_manager(running_daemon(tmp_path)) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="tester") as client:
        yield client


def count(requests: list[str], box: Toolbox, tool: str, **arguments: Any) -> tuple[tuple[str, ...], Reply]:
    """Return the calls of a tool, given as `dialect.tool`, and its reply."""
    dialect, _, name = tool.partition(".")
    requests.clear()
    reply = box.call(dialect, name, arguments)
    return tuple(requests), reply


PLAN: list[dict[str, Any]] = [{"title": f"task {number}"} for number in range(1, 9)]
FAMILY: list[dict[str, Any]] = [{"title": "build", "ref": "b", "priority": "urgent"}, {"title": "link", "parent": "b"}]

SESSION: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    # The first call of a process looks for work that an earlier process of the agent has left.
    ("native.plan", {"tasks": PLAN}, ("task.list", "task.add_many")),
    ("native.plan", {"tasks": FAMILY}, ("task.add_many",)),
    ("native.next", {}, ("task.claim",)),
    ("native.next", {}, ("task.list",)),
    ("native.next", {"result": "done"}, ("task.set_status", "task.claim")),
    ("native.next", {"failed": "no key"}, ("task.set_status", "task.claim")),
    ("native.next", {"id": "6", "result": "by the way"}, ("task.set_status", "task.claim")),
    ("native.update", {"id": "7", "status": "in_progress"}, ("task.claim",)),
    ("native.update", {"id": "7", "status": "paused"}, ("task.set_status",)),
    ("native.update", {"id": "7", "status": "pending"}, ("task.set_status",)),
    ("native.update", {"id": "7", "status": "completed", "note": "in passing"}, ("task.set_status",)),
    ("native.update", {"id": "8", "title": "other words"}, ("task.edit",)),
    ("native.update", {"id": "8", "title": "and done", "status": "completed"}, ("task.edit", "task.set_status")),
    ("native.update", {"id": "5", "priority": "high"}, ("task.edit",)),
    ("native.update", {"id": "5", "status": "deleted"}, ("task.delete",)),
    ("native.tasks", {}, ("task.list", "task.list")),
    ("native.tasks", {"since": "last"}, ("task.list", "task.list")),
    ("native.tasks", {"ids": ["2"]}, ("task.list", "task.get")),
    ("native.plan", {"tasks": PLAN[:3], "replace": True}, ("task.list", "list.replace")),
    ("claude.TaskCreate", {"subject": "deploy", "description": "to the cluster"}, ("task.add",)),
    ("claude.TaskList", {}, ("task.list",)),
    ("claude.TaskUpdate", {"taskId": "11", "status": "in_progress"}, ("task.list", "task.get", "task.claim")),
    ("claude.TaskUpdate", {"taskId": "11", "status": "completed"}, ("task.list", "task.set_status")),
    ("claude.TaskUpdate", {"taskId": "11", "subject": "deployed"}, ("task.list", "task.get", "task.edit")),
    ("claude.TaskGet", {"taskId": "11"}, ("task.list", "task.get")),
    ("claude.TodoWrite", {"todos": [{"content": "rest"}]}, ("task.list", "list.replace", "task.list")),
)
"""A session of one agent: each tool with its arguments and its calls."""


def test_tools_make_these_calls(client: Client, requests: list[str]) -> None:
    box = Toolbox(client, ToolCaller("work", "ann"))
    assert [(tool, arguments, count(requests, box, tool, **arguments)[0]) for tool, arguments, _ in SESSION] == [
        *SESSION
    ]


FIRST: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("native.next", {}, ("task.list", "task.claim")),
    ("native.update", {"id": "2", "title": "other words"}, ("task.list", "task.edit")),
    ("native.tasks", {"since": "last"}, ("task.list", "task.list")),
    ("native.plan", {"tasks": PLAN}, ("task.list", "task.add_many", "task.list")),
    ("claude.TaskList", {}, ("task.list", "task.list")),
)
"""The first tool of a process with its arguments and its calls, in a list that agents use."""


@pytest.mark.parametrize(("tool", "arguments", "calls"), FIRST, ids=[tool for tool, _, _ in FIRST])
def test_first_call_of_a_process(
    client: Client, requests: list[str], tool: str, arguments: dict[str, Any], calls: tuple[str, ...]
) -> None:
    others = Toolbox(client, ToolCaller("work", "bob"))
    others.call("native", "plan", {"tasks": [{"title": "write"}, {"title": "read"}]})
    assert count(requests, Toolbox(client, ToolCaller("work", "ann")), tool, **arguments)[0] == calls


def test_first_call_of_a_restarted_process(client: Client, requests: list[str]) -> None:
    """A process renews the claims of its agent, and reports changes since its last event."""
    plan = client.conversation("work", actor="bob")
    plan.add_many(["write", "read"])
    Toolbox(client, ToolCaller("work", "ann")).call("native", "next")
    plan.edit("2", title="read twice")
    calls, reply = count(requests, Toolbox(client, ToolCaller("work", "ann")), "native.next")
    assert calls == ("task.list", "task.renew")
    assert "#2 read twice — by bob" in reply.text
    calls, reply = count(requests, Toolbox(client, ToolCaller("work", "ann")), "native.next", result="done")
    assert calls == ("task.list", "task.renew", "task.set_status", "task.claim")
    assert reply.data["finished"] == "1"


def test_first_call_on_an_old_list_reads_the_log(client: Client, requests: list[str]) -> None:
    """A list that no agent has used since the daemon loaded it has no events in memory."""
    client.conversation("work", actor="bob").add_many(["write", "read"])
    calls, _ = count(requests, Toolbox(client, ToolCaller("work", "ann")), "native.next")
    assert calls == ("task.list", "event.read", "task.claim")


def test_others_changes_cost_no_call(client: Client, requests: list[str]) -> None:
    plan = client.conversation("work", actor="bob")
    plan.add_many(["write", "read", "print", "sell"])
    box = Toolbox(client, ToolCaller("work", "ann"))
    box.call("native", "next")
    plan.edit("2", title="read twice", description="aloud")
    plan.note("1", "in blue")
    plan.add("bind", parent="4")
    plan.delete("3")
    calls, reply = count(requests, box, "native.next", result="done")
    assert calls == ("task.set_status", "task.claim")
    assert "#5 sell › bind — by bob" in reply.text
    assert "gone: #3" in reply.text
    assert "Note on #1 by bob: in blue" in reply.text


def test_empty_claim_costs_no_call(client: Client, requests: list[str]) -> None:
    plan = client.conversation("work", actor="bob")
    plan.add_many(["write", "read"])
    box = Toolbox(client, ToolCaller("work", "ann"))
    box.call("native", "next")
    plan.take("bob", "2")
    calls, reply = count(requests, box, "native.next", result="done")
    assert (calls, reply.data["next"]) == (("task.set_status", "task.claim"), None)
    assert "Nothing ready: 1 in progress" in reply.text
    calls, reply = count(requests, box, "native.next")
    assert (calls, reply.data["next"]) == (("task.claim",), None)


def test_notes_on_a_claimed_task_cost_no_call(client: Client, requests: list[str]) -> None:
    plan = client.conversation("work", actor="eve")
    plan.add_many(["write", "read"])
    plan.note("2", "in blue")
    box = Toolbox(client, ToolCaller("work", "ann"))
    box.call("native", "next")
    calls, reply = count(requests, box, "native.update", id="2", status="in_progress")
    assert calls == ("task.claim",)
    assert "Note on #2 by eve: in blue" in reply.text


@pytest.mark.parametrize("size", [1, 1_000])
def test_many_completions_are_one_call(client: Client, requests: list[str], size: int) -> None:
    client.conversation("work").add_many([f"task {number}" for number in range(size + 1)])
    box = Toolbox(client, ToolCaller("work", "ann"))
    box.call("checklist", "ListTasks")
    ids = [str(number) for number in range(1, size + 1)]
    calls, reply = count(requests, box, "checklist.CompleteTasks", taskIds=ids)
    assert calls == ("list.apply",)
    assert (reply.data["completed"], reply.data["nextTask"]["id"], reply.data["remaining"]) == (ids, str(size + 1), 1)


COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("add write", ("task.add",)),
    ("list", ("task.list",)),
    ("find write", ("task.search",)),
    ("next", ("task.list", "task.explain", "task.get")),
    ("start 1", ("task.claim",)),
    ("done 1", ("task.set_status",)),
    ("export", ("task.list", "conversation.get")),
    ("export --format markdown", ("task.list",)),
    ("show 1", ("task.get",)),
)
"""Commands and their calls, in order."""


def test_commands_make_these_calls(tmp_path: Path, daemon: Running, requests: list[str]) -> None:
    env = os.environ | {
        "HOME": str(tmp_path),
        "PUNCHLIST_SOCKET": daemon.socket,
        "PUNCHLIST_DATA_DIR": str(daemon.data_dir),
        "PUNCHLIST_CONVERSATION": "work",
    }
    made: list[tuple[str, tuple[str, ...]]] = []
    for command, _ in COMMANDS:
        requests.clear()
        words = [sys.executable, "-m", "punchlist", *command.split()]
        subprocess.run(words, env=env, check=True, capture_output=True, timeout=PATIENCE_S)
        made.append((command, tuple(requests)))
    assert made == [*COMMANDS]
