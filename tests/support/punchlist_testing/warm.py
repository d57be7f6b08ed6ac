"""The C program `punch` in a directory of its own, with a warm process started on purpose.

In place of the plain program, `PLAIN` ends every command that isn't handed over, so that a test can't miss it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

from punchlist_testing.daemon import READY_S, Raw, spawned_daemon

PROGRAM = Path(sys.executable).with_name("punch")
SOURCE = Path(__file__).resolve().parents[3] / "client/punch.c"
PLAIN = 99
"""Exit code of a command that wasn't handed over. Its output is the path on which to start a warm process."""

_STUB = f'#!/bin/sh\necho "$PUNCHLIST_WARM"\nexit {PLAIN}\n'


def is_compiled() -> bool:
    return PROGRAM.is_file() and PROGRAM.read_bytes()[:4] == b"\x7fELF" and shutil.which("cc") is not None


@cache
def compile_patient_program() -> bytes:
    """Return the program, compiled to wait longer for a worker: on a busy machine it may give up one that works."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["cc", f"-DPATIENCE_MS={READY_S * 1000:.0f}", "-o", f"{folder}/punch", str(SOURCE)]
        subprocess.run(command, check=True)
        return Path(folder, "punch").read_bytes()


def wait_until(condition: Callable[[], Any], what: str) -> None:
    """Evaluate a condition that makes a call until it holds."""
    deadline = time.monotonic() + READY_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {READY_S:.0f} s: {what}"


class Warm:
    """A home with a daemon and the C program.

    Attributes:
        env: The environment of its commands.
        process: The warm process, once it was started.
    """

    process: "subprocess.Popen[bytes] | None" = None

    def __init__(self, home: Path, socket: str, data_dir: str) -> None:
        self.home = home
        self.daemon = socket
        self.program = home / "bin/punch"
        self.program.parent.mkdir()
        (home / "punchlist").mkdir()
        self.program.write_bytes(compile_patient_program())
        self.program.chmod(0o755)
        stub = self.program.with_name("punchlist")
        stub.write_text(_STUB)
        stub.chmod(0o755)
        measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        self.env = {
            **measured,
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": str(home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PUNCHLIST_SOCKET": socket,
            "PUNCHLIST_DATA_DIR": data_dir,
            "PUNCHLIST_AUTOSTART": "0",
        }

    def run(self, *words: str, wrapper: Sequence[str] = (), **how: Any) -> "subprocess.CompletedProcess[str]":
        """Run the C program, run by the command `wrapper`."""
        return self._run([*wrapper, str(self.program), *words], **how)

    def run_plainly(self, *words: str, **how: Any) -> "subprocess.CompletedProcess[str]":
        """Run the plain program."""
        return self._run([sys.executable, "-m", "punchlist", *words], **how)

    def run_script(self, script: str, *, plainly: bool = False) -> "subprocess.CompletedProcess[str]":
        """Run a shell script, in which `punch` is the C program or the plain one."""
        function = f'punch() {{ {sys.executable} -m punchlist "$@"; }}\n' if plainly else ""
        path = f"{self.program.parent}:{self.env['PATH']}"
        return self._run(["bash", "-c", function + script], env={**self.env, "PATH": path})

    def popen(self, *words: str, wrapper: Sequence[str] = ()) -> "subprocess.Popen[str]":
        """Start the C program, run by the command `wrapper`."""
        return subprocess.Popen(
            # The tests may run under `nohup`.
            ["env", "--default-signal=HUP", *wrapper, str(self.program), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self.env,
        )

    def _run(self, words: list[str], **how: Any) -> "subprocess.CompletedProcess[str]":
        defaults: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.env,
            "cwd": self.home,
            "stdin": None if "input" in how else subprocess.DEVNULL,
        }
        return subprocess.run(
            words, text=True, errors="surrogateescape", timeout=READY_S, check=False, **{**defaults, **how}
        )

    def find_path(self, **how: Any) -> str:
        """Return the path on which the C program wants a warm process, while there is none."""
        outcome = self.run("list", **how)
        assert outcome.returncode == PLAIN, outcome
        return outcome.stdout.strip()

    def start(self, wrapper: Sequence[str] = ()) -> Self:
        """Start the warm process by the command `wrapper`, and wait until it runs commands that `wrapper` starts."""
        path = self.find_path(wrapper=wrapper)
        self.process = subprocess.Popen(
            [*wrapper, sys.executable, "-P", "-m", "punchlist_apps.cli.warm.server", path], env=self.env
        )
        wait_until(lambda: self.is_used(wrapper), "the warm process runs a command")
        return self

    def is_used(self, wrapper: Sequence[str] = ()) -> bool:
        return self.run("list", wrapper=wrapper).returncode == 0

    def list_workers(self) -> list[int]:
        """Return the process ids of the workers."""
        assert self.process is not None, "start it first"
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def count_clients(self) -> int:
        """Return the number of the daemon's clients, without the one that asks."""
        raw = Raw(self.daemon)
        try:
            return len(raw.result("daemon.status")["clients"]) - 1
        finally:
            raw.close()

    @contextmanager
    def waiting(self, wrapper: Sequence[str] = ()) -> "Generator[subprocess.Popen[str]]":
        """Run a command that waits for a task."""
        with self.popen("queue", "claim", "--wait", "60s", wrapper=wrapper) as process:
            try:
                wait_until(self.count_clients, "the command is connected")
                yield process
            finally:
                process.kill()

    def close(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(READY_S)


@contextmanager
def warm_home() -> Generator[Warm]:
    """A home with a daemon, whose path is short enough for a socket's address."""
    with (
        tempfile.TemporaryDirectory(prefix="w", ignore_cleanup_errors=True) as folder,
        spawned_daemon(Path(folder)) as daemon,
    ):
        warm = Warm(Path(folder), daemon.socket, daemon.data_dir)
        try:
            yield warm
        finally:
            warm.close()
