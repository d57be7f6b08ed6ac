"""A peer's place at one size: its program, its directory with N tasks, its environment and its processes."""

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from punchlist_bench import process

TITLE = "Task number {:06} of the compared list"
"""Title of every task, so that all peers store and print the same text."""

TIMEOUT_S = 20.0
"""Timeout for a command or an MCP request, in seconds. The cell of a slower one stays empty."""

END_S = 10.0
"""Time that a process has to end after a signal, in seconds."""

SETTLE_S = 0.05
"""Time that a background process gets to finish a command's work after its response, in seconds."""


class UnmeasuredError(Exception):
    """A figure that can't be measured; the message is the reason that the table shows."""


@dataclass(frozen=True)
class Run:
    """A command that ended; its processor time is that of all processes that worked for it."""

    wall_s: float
    processor_s: float
    output: str


class Place:
    """A directory, a home and a runtime directory of its own, so that peers share nothing.

    Attributes:
        program: The peer's program.
        server: The command of its MCP server.
        size: Number of tasks.
        home: The working directory, a Git repository, and the value of HOME.
        titles: Number of the last title that was used.
    """

    def __init__(self, program: Path, server: Sequence[str], env: Mapping[str, str], size: int, home: Path) -> None:
        self.program, self.server = program, server
        self.size, self.home = size, home
        self.titles = size
        # A socket's path has at most 108 bytes. The name also marks the peer's processes: see find_processes.
        self._runtime = tempfile.mkdtemp(prefix="compare-")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_RUNTIME_DIR": self._runtime,
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            **{name: value.format(home=home) for name, value in env.items()},
        }
        home.mkdir(parents=True)
        (home / "gitconfig").write_text("[user]\nname = compare\nemail = compare@localhost\n")
        self.run(["git", "init", "--quiet"])

    def close(self) -> None:
        """End the peer's processes and remove its files."""
        self.end_processes()
        shutil.rmtree(self._runtime, ignore_errors=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def next_title(self) -> str:
        self.titles += 1
        return TITLE.format(self.titles)

    def fill_words(self, words: str, **values: str) -> list[str]:
        """Return a command line: the program and words with `{home}`, `{title}` or `{id}`."""
        return [str(self.program), *(word.format(home=self.home, **values) for word in words.split())]

    def run(self, command: Sequence[str], timeout_s: float = 120.0, text: str = "") -> str:
        """Run a command that prepares something, and return its output.

        Raises:
            UnmeasuredError: It failed.
        """
        try:
            done = subprocess.run(
                command,
                cwd=self.home,
                env=self.env,
                input=text,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnmeasuredError(f"{Path(command[0]).name} did not run: {type(error).__name__}") from None
        if done.returncode:
            raise UnmeasuredError(f"{Path(command[0]).name} failed: {shorten(done.stderr or done.stdout)}")
        return done.stdout

    def time(self, command: Sequence[str]) -> Run:
        """Run a command and read its output through a pipe, as an agent does.

        Raises:
            UnmeasuredError: It failed or took longer than `TIMEOUT_S`.
        """
        before = self.count_processor_s()
        begin = time.perf_counter()
        child = subprocess.Popen(
            command,
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert child.stdout is not None
        try:
            output = _read_until(child.stdout.fileno(), begin + TIMEOUT_S)
        except TimeoutError:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise UnmeasuredError(f"takes longer than {TIMEOUT_S:.0f} s") from None
        finally:
            child.stdout.close()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise UnmeasuredError(f"{Path(command[0]).name} failed: {shorten(output)}")
        if self.find_processes():
            time.sleep(SETTLE_S)
        background_s = max(0.0, self.count_processor_s() - before)
        return Run(wall_s, usage.ru_utime + usage.ru_stime + background_s, output)

    def find_processes(self) -> list[int]:
        """Return the peer's running processes: those whose environment names its runtime directory."""
        mark = f"XDG_RUNTIME_DIR={self._runtime}\0".encode()
        return [pid for pid in process.list_running() if mark in process.read_environment(pid)]

    def count_processor_s(self) -> float:
        """Return the processor time of the peer's running processes and of their ended children."""
        return sum(map(process.precise_cpu_seconds, self.find_processes()))

    def count_memory_bytes(self) -> int:
        """Return the memory of the peer's running processes; shared pages count in proportion (PSS)."""
        return sum(map(process.proportional_bytes, self.find_processes()))

    def end_processes(self) -> None:
        """Terminate the peer's processes, and kill those that remain."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            pids = self.find_processes()
            for pid in pids:
                process.send_signal(pid, number)
            end = time.monotonic() + END_S
            while any(map(process.is_running, pids)) and time.monotonic() < end:
                time.sleep(0.01)


def shorten(text: str) -> str:
    """Return why a command failed: the first line of its output that mentions an error, or else the last line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip() for line in plain.splitlines() if line.strip()] or ["no output"]
    errors = (line for line in lines if "error" in line.lower())
    return next(errors, lines[-1])[:120].replace("|", "/")


def _read_until(descriptor: int, end: float) -> str:
    output = bytearray()
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.perf_counter()))
        if not ready:
            raise TimeoutError
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return output.decode("utf-8", "replace")
        output += piece
