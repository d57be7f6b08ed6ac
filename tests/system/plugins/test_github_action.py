"""The script of the GitHub Action, with a real repository, NATS server and a daemon of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist import Client, connect
from punchlist_schemas.things import Gate
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.nats_server import NatsServer, needs_server, running_server

ANSWER = Path(__file__).resolve().parents[3] / "plugins/github/answer"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    with running_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


class Job:
    """A CI job on a checkout of a repository, and another machine's list `plan`, which is shared."""

    def __init__(self, directory: Path, server: NatsServer, client: Client) -> None:
        self.repository = directory / "checkout"
        self.plan = client.conversation(directory.name)
        self.plan.open()
        self._server = server
        programs = directory / "bin"
        programs.mkdir()
        (programs / "punch").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m punchlist "$@"\n')
        (programs / "punch").chmod(0o700)
        self._env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PUNCHLIST_MACHINE": "ci"}
        self.git("init", "--quiet", str(self.repository))

    def git(self, *words: str) -> str:
        user = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        directory = () if words[0] == "init" else ("-C", str(self.repository))
        command = ["git", *user, *directory, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def wait_at_check(self, title: str) -> str:
        """Add a task that waits for the check."""
        task = self.plan.add(title, gate=Gate(check="ci"))
        self.plan.complete(task.id)
        return task.id

    def end(self, outcome: str, *, code: int = 0, **inputs: str) -> str:
        """Run the action at the end of the job. Return its output. `code` is its exit code."""
        values = {"LIST": self.plan.id, "SPACE": "team", "SERVERS": self._server.url, "CHECK": "ci"}
        empty = dict.fromkeys(("CREDENTIALS", "AUTHORITIES", "TASKS", "BEFORE"), "")
        env = {**self._env, **empty, **values, "OUTCOME": outcome, "RUN": "run 7", **inputs}
        done = subprocess.run([ANSWER], cwd=self.repository, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def statuses(self) -> list[str]:
        return [task.status for task in self.plan.list()]


@pytest.fixture
def job(tmp_path: Path, server: NatsServer) -> Generator[Job]:
    with spawned_daemon(tmp_path) as daemon, connect(socket=daemon.socket, autostart=False) as client:
        job = Job(tmp_path, server, client)
        words = ("--socket", daemon.socket)
        for command in (("space", "add", "team", server.url), ("share", job.plan.id)):
            subprocess.run([sys.executable, "-m", "punchlist", *command, *words], check=True, capture_output=True)
        yield job


@needs_server
def test_outcome_answers_tasks_of_trailers(job: Job) -> None:
    ids = [job.wait_at_check(title) for title in ("Copy", "Publish", "Tag", "Tell")]
    before = job.commit("Begin")
    job.commit(f"Copy\n\nCloses-Task: #{ids[0]}, {ids[1]}")
    job.commit(f"Tag\n\nCloses-Task: #{ids[2]}\t(partly) *")
    assert "No task id: (partly)\nNo task id: *\n" in job.end("success", BEFORE=before)
    assert job.statuses() == ["completed", "completed", "completed", "paused"]


@needs_server
def test_failed_job_reopens_its_task(job: Job) -> None:
    task = job.wait_at_check("Copy")
    job.commit(f"Copy\n\nCloses-Task: #{task}")
    job.end("cancelled")
    assert job.statuses() == ["paused"]
    job.end("failure", BEFORE="0" * 40)
    assert job.statuses() == ["pending"]
    assert "run 7" in job.plan.get(task).fail_reason


@needs_server
def test_failure_of_the_action_is_reported(job: Job) -> None:
    task = job.wait_at_check("Copy")
    job.end("failure", code=2, TASKS=f"9-3 {task}")
    assert job.statuses() == ["pending"]


def test_program_is_installed_from_the_actions_checkout(tmp_path: Path) -> None:
    pipx = tmp_path / "pipx"
    pipx.write_text('#!/bin/sh\nprintf %s "$*"\n')
    pipx.chmod(0o700)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(ANSWER.parent)}
    (command,) = re.findall("run: (pipx .*)", (ANSWER.parent / "action.yml").read_text())
    words = subprocess.run(["bash", "-c", command], env=env, check=True, capture_output=True, text=True).stdout
    assert words == f"install --force {ANSWER.parent}/../..[shared]"
    assert (ANSWER.parent / "../../pyproject.toml").is_file()


@needs_server
def test_named_tasks_need_no_trailer(job: Job) -> None:
    ids = [job.wait_at_check(title) for title in ("Copy", "Publish")]
    job.commit("Copy")
    assert "No commit has a Closes-Task trailer" in job.end("success")
    job.end("success", TASKS=ids[1])
    assert job.statuses() == ["paused", "completed"]
