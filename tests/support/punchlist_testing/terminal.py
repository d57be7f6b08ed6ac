"""Runs the command line in a child process, with pipes or on a pseudo-terminal. Every wait has a timeout."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from punchlist.connection.readable import is_readable

PATIENCE_S = 30.0
"""Timeout for each wait, in seconds."""

WARM_DIRECTORY = os.environ.get("WARM_DIRECTORY", "")
"""If it is set, tests run the installed program `punch`, whose warm process listens in this directory."""


def environment(**more: str) -> dict[str, str]:
    """Return the environment for a child process, which can import the same modules as this one."""
    warm = {"PUNCHLIST_WARM": "", "XDG_RUNTIME_DIR": WARM_DIRECTORY} if WARM_DIRECTORY else {}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **warm, **more}


def command(*words: str) -> list[str]:
    """Return the argument vector that runs `punch` in a child process."""
    if WARM_DIRECTORY:
        return [os.path.join(os.path.dirname(sys.executable), "punch"), *words]
    return [sys.executable, "-m", "punchlist", *words]


@contextmanager
def spawned(*words: str) -> "Generator[subprocess.Popen[str]]":
    """Run `punch` with pipes for its output; kill it at the end of the block."""
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run_half_terminal(*words: str, shows: bool) -> subprocess.CompletedProcess[str]:
    """Run `punch` with only its output (`shows`) or only its input on a terminal."""
    master, slave = pty.openpty()
    try:
        return subprocess.run(
            command(*words),
            stdin=subprocess.DEVNULL if shows else slave,
            stdout=slave if shows else subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=PATIENCE_S,
            text=True,
            check=False,
        )
    finally:
        os.close(master)
        os.close(slave)


class Terminal:
    """A child process whose standard streams are a pseudo-terminal.

    Attributes:
        shown: Output read since the last `wait_for`.
    """

    def __init__(self, words: list[str], env: Mapping[str, str], *, columns: int, rows: int) -> None:
        self._master, slave = pty.openpty()
        self.resize(columns, rows, tell=False)
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=env)
        os.close(slave)
        self.shown = ""

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self.process.send_signal(signal.SIGWINCH)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> str:
        """Read until `text` appears; return the output since the last wait, up to and including it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            readable = is_readable(self._master, deadline - time.monotonic())
            assert readable and self._read(), f"{text!r} did not appear in {self.shown[-2000:]!r}"
        end = self.shown.index(text) + len(text)
        output, self.shown = self.shown[:end], self.shown[end:]
        return output

    def is_quiet(self, for_s: float) -> bool:
        """Return whether the process writes no output for `for_s` seconds."""
        return not self.shown and not is_readable(self._master, for_s)

    def finish(self) -> int:
        """Read the remaining output and return the exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self._master)

    def _read(self) -> bool:
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False  # the program's side is closed
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def terminal(
    *words: str, env: Mapping[str, str] | None = None, columns: int = 60, rows: int = 20
) -> Generator[Terminal]:
    """Run `punch` on a terminal; kill it at the end of the block."""
    child = Terminal(command(*words), environment(**{"TERM": "xterm", **(env or {})}), columns=columns, rows=rows)
    try:
        yield child
    finally:
        child.close()
