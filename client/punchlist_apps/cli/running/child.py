"""One command for one task: what it is given, its output line by line, and how it ended."""

import asyncio
import os
import secrets
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from punchlist_apps.cli.running import guard, orphans
from punchlist_apps.cli.running.guard import KILL_AFTER_S, POLL_S
from punchlist_schemas.system import os_calls
from punchlist_schemas.things import Task

Stream = Literal["out", "err"]

TAIL_LINES = 20
TAIL_CHARS = 2_000
"""How much of the end of an output is told in a result or a reason."""

MAX_LINE = 1 << 16
"""A longer line is cut into several, in bytes."""

_DRAIN_S = 0.5
"""How long output is still read after the command has ended: what it left running may hold the pipes for ever."""

_CHUNK = 1 << 16
_MAX_ENV = 100_000
"""Longest value for the environment, in bytes: Linux takes 128 KiB for a name with its value."""


def build_environment(task: Task, **more: str) -> dict[str, str]:
    """What the environment tells of a task; what does not fit in there is on standard input."""
    told = {
        "PUNCHLIST_TASK": task.id,
        "PUNCHLIST_TITLE": task.title,
        "PUNCHLIST_DESCRIPTION": task.description,
        "PUNCHLIST_ATTEMPT": str(task.attempts),
        **more,
    }
    return {name: value for name, value in told.items() if "\0" not in value and len(value.encode()) <= _MAX_ENV}


class Ending(msgspec.Struct, frozen=True):
    """How a command ended: its exit code (negative: the signal), and the ends of its outputs."""

    code: int
    out: str
    err: str
    timed_out: bool = False

    def format_reason(self, timeout_ms: int | None) -> str:
        if self.timed_out:
            head = f"timed out after {(timeout_ms or 0) / 1000:g} s"
        elif self.code < 0:
            head = f"killed by {_signal_name(-self.code)}"
        else:
            head = f"exit code {self.code}"
        last_lines = self.err or self.out
        return f"{head}: {last_lines}" if last_lines else head


class Child:
    """A running command, in a session of its own: it and what it starts end together, and Ctrl-C is ours.

    What it leaves running is asked to end when it has ended, and killed after 5 seconds: its group, and where the
    system lets us adopt orphans (`orphans.adopt`), also what has left the group.

    Args:
        words: The command.
        env: Its whole environment.
        stdin: What it may read.
        on_line: Told each line of its output, without the newline.

    Raises:
        OSError: It can't be started.
        ValueError: A word holds a null byte.
    """

    def __init__(
        self, words: Sequence[str], env: dict[str, str], stdin: bytes, on_line: Callable[[Stream, str], None]
    ) -> None:
        self._mark = secrets.token_hex(8)
        env = {**env, orphans.MARK: self._mark}
        given = os_calls.memory_file()
        try:
            os.write(given, stdin)
            os.lseek(given, 0, os.SEEK_SET)
            guard.send(f"+{self._mark}")
            self._process = subprocess.Popen(
                words, env=env, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
            guard.send(f"={self._mark} {self._process.pid}")
        except BaseException:
            guard.send(f"-{self._mark}")
            raise
        finally:
            os.close(given)
        loop = asyncio.get_running_loop()
        assert self._process.stdout is not None and self._process.stderr is not None, "asked for"
        self._outputs = {
            "out": _Output(self._process.stdout.fileno(), lambda line: on_line("out", line)),
            "err": _Output(self._process.stderr.fileno(), lambda line: on_line("err", line)),
        }
        self._ended = loop.create_future()
        self._kill_at: float | None = None
        os_calls.when_ended(self._process, loop, self._on_end)

    def _on_end(self) -> None:
        self._schedule_kill()
        self._signal(signal.SIGTERM)  # where the leader is not reaped yet, its group's number is surely still its own
        self._process.wait()
        if not self._ended.done():
            self._ended.set_result(None)

    async def wait(self, timeout_s: float | None) -> Ending:
        """Wait until it ends; after `timeout_s` seconds it is stopped."""
        timed_out = False
        try:
            await asyncio.wait_for(asyncio.shield(self._ended), timeout_s)
        except TimeoutError:
            timed_out = True
            self.stop()
            await self._ended
        await self._wait_for_descendants()
        guard.send(f"-{self._mark}")
        await asyncio.wait([output.ended for output in self._outputs.values()], timeout=_DRAIN_S)
        for output in self._outputs.values():
            output.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        return Ending(
            self._process.returncode, self._outputs["out"].last_lines(), self._outputs["err"].last_lines(), timed_out
        )

    def stop(self) -> None:
        """Ask it, and what it has started, to end. `wait` kills what still runs after that."""
        if self._schedule_kill():
            loop = asyncio.get_running_loop()
            loop.call_later(KILL_AFTER_S, self._kill)  # the leader, for whose end `wait` waits first
        self._signal(signal.SIGTERM)

    def _kill(self) -> None:
        if not self._ended.done():
            self._signal(signal.SIGKILL)

    def _schedule_kill(self) -> bool:
        """Set the time at which what is left is killed; False if it was set before."""
        if self._kill_at is not None:
            return False
        self._kill_at = asyncio.get_running_loop().time() + KILL_AFTER_S
        return True

    async def _wait_for_descendants(self) -> None:
        """Wait until nothing is left of the group nor of what has left it; kill it at the deadline."""
        loop = asyncio.get_running_loop()
        asked: set[int] = set()
        while True:
            is_late = self._kill_at is not None and loop.time() >= self._kill_at
            left = set(orphans.find_orphans(self._mark))
            orphans.send_signal(left if is_late else left - asked, signal.SIGKILL if is_late else signal.SIGTERM)
            asked |= left
            orphans.reap(self._process.pid, asked)
            if not self._signal(signal.SIGKILL if is_late else 0) and not left:
                return
            await asyncio.sleep(POLL_S)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; False when nothing is left of it. Its number is not given out before that."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # what is left has changed its user: it is beyond our reach
            return False
        return True


class _Output:
    """One output: told line by line, its end kept."""

    def __init__(self, fd: int, on_line: Callable[[str], None]) -> None:
        self._fd = fd
        self._on_line = on_line
        self._rest = b""
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            lines, self._rest = [*lines, self._rest], b""
        self._deliver(lines)

    def _deliver(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text.strip():
                self._tail.append(text[:TAIL_CHARS])
            self._on_line(text)

    def last_lines(self) -> str:
        return "\n".join(self._tail)[-TAIL_CHARS:]

    def close(self) -> None:
        if not self.ended.done():
            asyncio.get_running_loop().remove_reader(self._fd)
            self.ended.set_result(None)
            if self._rest:
                self._deliver([self._rest])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
