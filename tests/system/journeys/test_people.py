"""A person at the command line and agents with tools share a list."""

import json
import os
import re
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from punchlist import connect
from punchlist.tools import Toolbox, ToolCaller
from punchlist_testing.blocking import eventually
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.terminal import command
from punchlist_testing.unmeasured import unmeasured

A, B = "claude-code/7f3c1a", "claude-code/90b2e4"
PLAN = "# Plan\n\n## Backend\n\n- [ ] schema\n- [ ] tests\n\n## Frontend\n\n- Forms\n  - [ ] login\n- [ ] tests\n"


class Desk:
    """Directory where a person runs `punch` on the list `work`."""

    def __init__(self, daemon: Spawned, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory

    def start(self, *words: str) -> subprocess.Popen[str]:
        env = {**unmeasured(), "PUNCHLIST_SOCKET": self.daemon.socket, "PUNCHLIST_DATA_DIR": self.daemon.data_dir}
        env |= {"PUNCHLIST_ACTOR": "ann", "PUNCHLIST_CONVERSATION": "work", "PUNCHLIST_AUTOSTART": "0"}
        return subprocess.Popen(
            command(*words),
            env=env,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command; return its exit code and output."""
        with self.start(*words) as process:
            said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def punch(self, *words: str) -> str:
        """Run a command that succeeds; return its output."""
        code, said = self.run(*words)
        assert code == 0, said
        return said

    def task(self, id: str) -> Any:
        return json.loads(self.punch("show", id, "--json"))["task"]

    def titles(self, status: str) -> list[str]:
        listed = json.loads(self.punch("list", "--all", "--status", status, "--json"))["tasks"]
        return [task["title"] for task in listed]


@pytest.fixture
def desk(tmp_path: Path) -> Generator[Desk]:
    with spawned_daemon(tmp_path / "daemon") as daemon:
        yield Desk(daemon, tmp_path)


@pytest.fixture
def planned(desk: Desk) -> Desk:
    (desk.directory / "plan.md").write_text(PLAN)
    desk.punch("import", "plan.md")
    return desk


@pytest.mark.parametrize("taken_away", [("rm", "1"), ("done", "1", "--force"), ("pause", "1"), ("list", "clear", "-y")])
def test_undone_task_stays_with_its_agent(desk: Desk, taken_away: tuple[str, ...]) -> None:
    desk.punch("add", "one")
    with connect(socket=desk.daemon.socket, autostart=False, name="a") as client:
        a, b = (Toolbox(client, ToolCaller("work", name)) for name in (A, B))
        assert "Now #1" in a.call("native", "next").text
        desk.punch(*taken_away)
        desk.punch("undo")
        assert desk.task("1")["owner"] == A
        assert (
            f"task 1 is being worked on by {A}" in b.call("native", "update", {"id": "1", "status": "completed"}).text
        )
        assert b.call("native", "next").data["next"] is None
        code, said = desk.run("done", "1")
        assert code == 1 and "--force" in said
        assert desk.run("queue", "claim", "1")[0] == 1
        desk.punch("queue", "renew", "1", "--owner", A)
        assert "punch reopen 1" in desk.punch("why", "1")
        assert "#1 done" in a.call("native", "next", {"result": "by a"}).text
        assert desk.task("1")["result_summary"] == "by a"


def test_claim_restored_by_undo_expires(desk: Desk) -> None:
    desk.punch("add", "one")
    with connect(socket=desk.daemon.socket, autostart=False, name="b") as client:
        plan = client.conversation("work", actor="ann")
        plan.take("gone", "1", lease_ms=1_000, keep=True)
        plan.delete("1")
        plan.undo(1, of="ann")
        assert plan.get("1").owner == "gone"
        assert plan.take(B, wait_ms=30_000).task is not None
        assert plan.get("1").owner == B


def test_agents_get_tasks_and_no_headings(planned: Desk) -> None:
    waiting = planned.start("wait")
    with connect(socket=planned.daemon.socket, autostart=False) as client:
        agents = [Toolbox(client, ToolCaller("work", f"claude-code/{number}")) for number in "ab"]
        handed: list[str] = []
        for turn in range(8):
            reply = agents[turn % 2].call("native", "next", {"result": "done"} if turn > 1 else {})
            if reply.data.get("next"):
                handed.append(reply.data["next"]["title"])
    assert handed == ["schema", "tests", "login", "tests"]
    assert planned.titles("pending") == planned.titles("in_progress") == []
    assert waiting.communicate(timeout=60)[0] is not None
    assert waiting.returncode == 0
    exported = re.sub(" <!-- .* -->", "", planned.punch("export", "-", "--format", "markdown"))
    assert exported == PLAN.partition("\n\n")[2].replace("[ ]", "[x]")


def test_fully_ticked_plan_completes_its_list(desk: Desk) -> None:
    plan = desk.directory / "ours.md"
    plan.write_text(PLAN)
    desk.punch("mirror", "add", "ours.md", "-c", "ours")
    mirror = desk.start("mirror", "run")
    try:
        known = Path(desk.daemon.data_dir) / "mirror" / "plans"
        assert eventually(lambda: any(known.glob("*.json"))), "the mirror has read the file"
        waiting = desk.start("wait", "-c", "ours")
        plan.write_text(PLAN.replace("[ ]", "[x]"))
        os.utime(plan, (1, 1))
        waiting.communicate(timeout=60)
        assert waiting.returncode == 0
        shown = json.loads(desk.punch("list", "--all", "-c", "ours", "--json"))
        assert shown["counts"]["completed"] == len(shown["tasks"]) == 7
    finally:
        mirror.terminate()
        mirror.communicate(timeout=60)


def test_person_takes_first_task_not_heading(planned: Desk) -> None:
    assert planned.punch("next").splitlines()[1] == "  \u2610 #2 Backend › schema"
    assert "#2 Backend › schema" in planned.punch("next", "--take")
    assert planned.run("why", "1")[1].splitlines()[1:] == ["  \u2190 has 2 open tasks: #2, #3"]
    assert "is a heading" not in planned.run("start", "1")[1]
    planned.punch("done", "2", "3")
    assert planned.titles("completed") == ["Backend", "schema", "tests"]
    assert "Reopen one of those" in planned.run("reopen", "1")[1]
    planned.punch("undo")
    assert planned.titles("completed") == []
