"""Who works on what, from the first claim to the last: processes of the command line, and sessions of agents."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist.tools import Toolbox, ToolCaller
from punchlist_testing.daemon import Spawned
from punchlist_testing.unmeasured import unmeasured

A, B = "claude-code/7f3c1a", "claude-code/90b2e4"


class World:
    """A daemon, two sessions and a person on the list `work`."""

    def __init__(self, daemon: Spawned, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory

    def session(self, client: Client, name: str) -> Toolbox:
        return Toolbox(client, ToolCaller("work", name))

    def punch(self, *words: str, actor: str = "ann") -> tuple[int, str]:
        """One process of the command line: its exit code, and what it says."""
        env = {**unmeasured(), "PUNCHLIST_SOCKET": self.daemon.socket, "PUNCHLIST_DATA_DIR": self.daemon.data_dir}
        env |= {"PUNCHLIST_ACTOR": actor, "PUNCHLIST_CONVERSATION": "work", "PUNCHLIST_AUTOSTART": "0"}
        command = [
            sys.executable,
            "-c",
            "import sys; from punchlist_apps.cli import main; sys.exit(main(sys.argv[1:]))",
        ]
        done = subprocess.run(
            [*command, *words], env=env, cwd=self.directory, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def task(self, id: str) -> Any:
        return json.loads(self.punch("show", id, "--json")[1])["task"]


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    """With one task."""
    daemon = Spawned(tmp_path / "daemon")
    daemon.start()
    try:
        found = World(daemon, tmp_path)
        found.punch("add", "one")
        yield found
    finally:
        daemon.stop()


@pytest.mark.parametrize("taken_away", [("rm", "1"), ("done", "1", "--force"), ("pause", "1"), ("list", "clear", "-y")])
def test_what_a_person_takes_back_is_still_the_agents_that_worked_on_it(
    world: World, taken_away: tuple[str, ...]
) -> None:
    with connect(socket=world.daemon.socket, autostart=False, name="a") as client:
        a, b = world.session(client, A), world.session(client, B)
        assert "Now #1" in a.call("native", "next").text
        code, said = world.punch(*taken_away)
        assert code == 0, said
        code, said = world.punch("undo")
        assert code == 0, said
        assert world.task("1")["owner"] == A
        assert (
            f"task 1 is being worked on by {A}" in b.call("native", "update", {"id": "1", "status": "completed"}).text
        )
        assert b.call("native", "next").data["next"] is None
        code, said = world.punch("done", "1")
        assert code == 1 and "--force" in said
        assert world.punch("queue", "claim", "1")[0] == 1
        code, said = world.punch("queue", "renew", "1", "--owner", A)
        assert code == 0, said
        assert "punch reopen 1" in world.punch("why", "1")[1]
        assert "#1 done" in a.call("native", "next", {"result": "by a"}).text
        assert world.task("1")["result_summary"] == "by a"


def test_a_claim_that_an_undo_gave_back_is_over_when_its_time_is(world: World) -> None:
    with connect(socket=world.daemon.socket, autostart=False, name="b") as client:
        plan = client.conversation("work", actor="ann")
        plan.take("gone", "1", lease_ms=1_000, keep=True)
        plan.delete("1")
        plan.undo(1, of="ann")
        assert plan.get("1").owner == "gone"
        assert plan.take(B, wait_ms=30_000).task is not None
        assert plan.get("1").owner == B
