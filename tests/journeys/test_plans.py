"""A Markdown plan from its import to its end: processes of the command line, and sessions of agents."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist import connect
from punchlist.tools import Toolbox, ToolCaller
from punchlist_testing.blocking import eventually
from punchlist_testing.daemon import Spawned
from punchlist_testing.unmeasured import unmeasured

PLAN = "# Plan\n\n## Backend\n\n- [ ] schema\n- [ ] tests\n\n## Frontend\n\n- Forms\n  - [ ] login\n- [ ] tests\n"
_CLI = "import sys; from punchlist_apps.cli import main; sys.exit(main(sys.argv[1:]))"


class World:
    """A daemon, and a plan on the list `work`."""

    def __init__(self, daemon: Spawned, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory
        (directory / "plan.md").write_text(PLAN)
        self.punch("import", "plan.md")

    def start(self, *words: str) -> subprocess.Popen[str]:
        env = {**unmeasured(), "PUNCHLIST_SOCKET": self.daemon.socket, "PUNCHLIST_DATA_DIR": self.daemon.data_dir}
        env |= {"PUNCHLIST_ACTOR": "ann", "PUNCHLIST_CONVERSATION": "work", "PUNCHLIST_AUTOSTART": "0"}
        return subprocess.Popen(
            [sys.executable, "-c", _CLI, *words],
            env=env,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def punch(self, *words: str) -> str:
        """What one process of the command line says."""
        return self.start(*words).communicate(timeout=60)[0]

    def titles(self, status: str) -> list[str]:
        return [
            task["title"] for task in json.loads(self.punch("list", "--all", "--status", status, "--json"))["tasks"]
        ]


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    daemon = Spawned(tmp_path / "daemon")
    daemon.start()
    try:
        yield World(daemon, tmp_path)
    finally:
        daemon.stop()


def test_agents_get_tasks_and_no_headings_until_the_plan_is_done(world: World) -> None:
    waiting = world.start("wait")
    with connect(socket=world.daemon.socket, autostart=False) as client:
        agents = [Toolbox(client, ToolCaller("work", f"claude-code/{number}")) for number in "ab"]
        handed: list[str] = []
        for turn in range(8):
            reply = agents[turn % 2].call("native", "next", {"result": "done"} if turn > 1 else {})
            if reply.data.get("next"):
                handed.append(reply.data["next"]["title"])
    assert handed == ["schema", "tests", "login", "tests"]
    assert world.titles("pending") == world.titles("in_progress") == []
    assert waiting.communicate(timeout=60)[0] is not None
    assert waiting.returncode == 0
    exported = re.sub(" <!-- .* -->", "", world.punch("export", "-", "--format", "markdown"))
    assert exported == PLAN.partition("\n\n")[2].replace("[ ]", "[x]")


def test_a_mirrored_plan_with_every_box_ticked_ends_its_list(world: World) -> None:
    plan = world.directory / "ours.md"
    plan.write_text(PLAN)
    world.punch("mirror", "add", "ours.md", "-c", "ours")
    mirror = world.start("mirror", "run")
    try:
        known = Path(world.daemon.data_dir) / "mirror" / "plans"
        assert eventually(lambda: any(known.glob("*.json"))), "the mirror has read the file"
        waiting = world.start("wait", "-c", "ours")
        plan.write_text(PLAN.replace("[ ]", "[x]"))
        os.utime(plan, (1, 1))
        waiting.communicate(timeout=60)
        assert waiting.returncode == 0
        shown = json.loads(world.punch("list", "--all", "-c", "ours", "--json"))
        assert shown["counts"]["completed"] == len(shown["tasks"]) == 7
    finally:
        mirror.terminate()
        mirror.communicate(timeout=60)


def test_a_person_takes_the_first_task_and_not_its_heading(world: World) -> None:
    assert world.punch("next").splitlines()[1] == "  \u2610 #2 Backend › schema"
    assert "#2 Backend › schema" in world.punch("next", "--take")
    assert world.punch("why", "1").splitlines()[1:] == ["  \u2190 has 2 open tasks: #2, #3"]
    assert "is a heading" not in world.punch("start", "1")
    world.punch("done", "2", "3")
    assert world.titles("completed") == ["Backend", "schema", "tests"]
    assert "Reopen one of those" in world.punch("reopen", "1")
    world.punch("undo")
    assert world.titles("completed") == []
