"""The examples for agent frameworks, each in a process that is killed together with the daemon."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from punchlist_testing.optional import require_package

require_package("langchain")

from punchlist import connect
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.frameworks import RUNNERS

PATIENCE_S = 60.0
FIRST: list[Any] = [[("plan", {"tasks": [{"title": "Copy"}, {"title": "Publish"}]})], [("next", {})], None]
SECOND: list[Any] = [
    [("next", {"result": "in docs/copy.md"})],
    [("next", {"result": "it is out"})],
    [("next", {"result": "v2"})],
    "All done.",
]


def build_todos(*statuses: str) -> list[Any]:
    todos = zip(("Copy", "Publish", "Tag"), statuses, strict=False)
    return [("write_todos", {"todos": [{"content": content, "status": status} for content, status in todos]})]


SCRIPTS: dict[str, tuple[list[Any], list[Any]]] = {name: (FIRST, SECOND) for name in RUNNERS} | {
    "langchain_todos": (
        [build_todos("in_progress", "pending"), None],
        [build_todos("completed", "completed", "completed"), "All done."],
    )
}


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


class Example:
    """An example in a process of its own. `reports` has the last message that its model received, for each turn."""

    def __init__(self, process: subprocess.Popen[str], reports: IO[str]) -> None:
        self.process = process
        self._reports = reports

    def read_report(self) -> str:
        assert select.select([self._reports], [], [], PATIENCE_S)[0], "the model got a message"
        return json.loads(self._reports.readline())


@contextmanager
def running(name: str, turns: list[Any], daemon: Spawned) -> Generator[Example]:
    fifo, claude = daemon.directory / "report", daemon.directory / "claude"
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo)
    claude.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m punchlist_testing.frameworks claude\n')
    claude.chmod(0o700)
    env = {
        **os.environ,
        "PATH": f"{claude.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
        "PUNCHLIST_SOCKET": daemon.socket,
        "PUNCHLIST_DATA_DIR": daemon.data_dir,
        "REPORT": str(fifo),
        "TURNS": json.dumps(turns),
    }
    command = [sys.executable, "-m", "punchlist_testing.frameworks", name]
    with (
        open(os.open(fifo, os.O_RDWR), encoding="utf-8", buffering=1) as reports,
        subprocess.Popen(command, env=env, start_new_session=True, text=True) as process,
    ):
        try:
            yield Example(process, reports)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("name", RUNNERS)
def test_list_survives_kills_of_program_and_daemon(name: str, daemon: Spawned) -> None:
    first, second = SCRIPTS[name]
    with running(name, first, daemon) as example:
        for _ in first:
            example.read_report()
        os.killpg(example.process.pid, signal.SIGKILL)
    daemon.restart()
    with connect(socket=daemon.socket, autostart=False) as client:
        plan = client.conversation("release")
        assert [(task.title, task.status) for task in plan.list()] == [("Copy", "in_progress"), ("Publish", "pending")]
        plan.add("Tag")
        with running(name, second, daemon) as example:
            reports = [example.read_report() for _ in second]
            assert example.process.wait(PATIENCE_S) == 0
        assert "Tag" in " ".join(reports)
        assert [(task.id, task.status) for task in plan.list()] == [(str(id), "completed") for id in (1, 2, 3)]
