import io
import json
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import pytest

from punchlist_apps.cli import main
from punchlist_apps.cli.printing import failure, stored
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import WARM_DIRECTORY, command, environment
from punchlist_testing.workers import stop_workers


class Outcome(NamedTuple):
    """The exit code and output of one command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Punch = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _no_earlier_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the changes and options of an earlier test's commands."""
    stored.forget()
    monkeypatch.setattr(failure, "_as_json", False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """An isolated environment and directory. No daemon is started automatically."""
    for name in ("PUNCHLIST_CONVERSATION", "CLAUDE_PROJECT_DIR", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    settings = {"HOME": tmp_path, "XDG_RUNTIME_DIR": tmp_path / "runtime", "XDG_DATA_HOME": tmp_path / "share"}
    settings |= {"PUNCHLIST_SOCKET": tmp_path / "run" / "daemon.sock", "PUNCHLIST_DATA_DIR": tmp_path / "data"}
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PUNCHLIST_AUTOSTART", "0")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    stop_workers(tmp_path / "run")


@pytest.fixture
def run(home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Punch:
    """Runs the command line in this process, without a daemon."""

    def run(*words: str, stdin: str = "") -> Outcome:
        capfd.readouterr()
        if WARM_DIRECTORY:
            data = stdin.encode("utf-8", "surrogateescape")
            done = subprocess.run(command(*words), input=data, env=environment(), capture_output=True, check=False)
            return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
        # Outside of tests, a process runs only one command.
        stored.forget()
        with TemporaryFile() as file:
            file.write(stdin.encode("utf-8", "surrogateescape"))
            file.seek(0)
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            code = main(list(words))
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def punch(run: Punch, daemon: Running) -> Generator[Punch]:
    """Runs the command line in this process, with a daemon."""
    yield run
