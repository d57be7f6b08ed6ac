"""A command for one task as a child process: its environment, its output line by line, and its exit."""

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
"""Upper limits, in lines and characters, for the end of the output that is stored in a result or reason."""

MAX_LINE = 1 << 16
"""Maximum length of a line in bytes. Longer lines are split."""

_DRAIN_S = 0.5
"""Time to read output after the command has ended, in seconds, because its descendants may keep the pipes open
forever."""

_CHUNK = 1 << 16
_MAX_ENV = 100_000
"""Maximum length of an environment variable's value in bytes. Linux accepts 128 KiB for the name and value together."""


def build_environment(task: Task, **more: str) -> dict[str, str]:
    """Return the environment variables that describe a task.

    Values that don't fit are left out; standard input contains the whole task.
    """
    variables = {
        "PUNCHLIST_TASK": task.id,
        "PUNCHLIST_TITLE": task.title,
        "PUNCHLIST_DESCRIPTION": task.description,
        "PUNCHLIST_ATTEMPT": str(task.attempts),
        **more,
    }
    return {name: value for name, value in variables.items() if "\0" not in value and len(value.encode()) <= _MAX_ENV}


class Ending(msgspec.Struct, frozen=True):
    """The exit of a command: its code, negative for a signal, and the last lines of its outputs."""

    code: int
    out: str
    err: str
    timed_out: bool = False

    def format_reason(self, timeout_ms: int | None) -> str:
        if self.timed_out:
            head = f"timed out after {(timeout_ms or 0) / 1000:g} s"
        elif self.code < 0:
            head = f"killed by {_name_signal(-self.code)}"
        else:
            head = f"exit code {self.code}"
        tail = self.err or self.out
        return f"{head}: {tail}" if tail else head


class Child:
    """A running command. It has its own session, so that it ends with its descendants and doesn't receive Ctrl-C.

    When the command has ended, its remaining processes get SIGTERM, and SIGKILL after 5 seconds. This includes
    processes that left its process group if the system lets this process adopt orphans (`orphans.adopt`).

    Args:
        words: The command.
        env: Its complete environment.
        stdin: Its standard input.
        on_line: Receives each line of output without the newline.

    Raises:
        OSError: The command can't be started.
        ValueError: An argument contains a null byte.
    """

    def __init__(
        self, words: Sequence[str], env: dict[str, str], stdin: bytes, on_line: Callable[[Stream, str], None]
    ) -> None:
        self._mark = secrets.token_hex(8)
        env = {**env, orphans.MARK: self._mark}
        input_file = os_calls.open_memory_file()
        try:
            os.write(input_file, stdin)
            os.lseek(input_file, 0, os.SEEK_SET)
            guard.send(f"+{self._mark}")
            self._process = subprocess.Popen(
                words, env=env, stdin=input_file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
            guard.send(f"={self._mark} {self._process.pid}")
        except BaseException:
            guard.send(f"-{self._mark}")
            raise
        finally:
            os.close(input_file)
        loop = asyncio.get_running_loop()
        assert self._process.stdout is not None and self._process.stderr is not None, "both are pipes"
        self._outputs = {
            "out": _Output(self._process.stdout.fileno(), lambda line: on_line("out", line)),
            "err": _Output(self._process.stderr.fileno(), lambda line: on_line("err", line)),
        }
        self._ended = loop.create_future()
        self._kill_at: float | None = None
        os_calls.watch_child(self._process, loop, self._on_end)

    def _on_end(self) -> None:
        self._schedule_kill()
        # Signal the group before the leader is reaped: until then, the system doesn't reuse the group's number.
        self._signal(signal.SIGTERM)
        self._process.wait()
        if not self._ended.done():
            self._ended.set_result(None)

    async def wait(self, timeout_s: float | None) -> Ending:
        """Wait until the command and its descendants have ended. Stop them after `timeout_s` seconds."""
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
            self._process.returncode, self._outputs["out"].join_tail(), self._outputs["err"].join_tail(), timed_out
        )

    def stop(self) -> None:
        """Send SIGTERM to the process group. `wait` kills processes that don't end."""
        if self._schedule_kill():
            # `wait` kills descendants only after the leader has ended, so the leader is killed here.
            asyncio.get_running_loop().call_later(KILL_AFTER_S, self._kill)
        self._signal(signal.SIGTERM)

    def _kill(self) -> None:
        if not self._ended.done():
            self._signal(signal.SIGKILL)

    def _schedule_kill(self) -> bool:
        """Set the deadline for SIGKILL; return False if it was already set."""
        if self._kill_at is not None:
            return False
        self._kill_at = asyncio.get_running_loop().time() + KILL_AFTER_S
        return True

    async def _wait_for_descendants(self) -> None:
        """Wait until all descendants have ended, inside and outside the group; kill them at the deadline."""
        loop = asyncio.get_running_loop()
        signalled: set[int] = set()
        while True:
            is_late = self._kill_at is not None and loop.time() >= self._kill_at
            pids = set(orphans.find_orphans(self._mark))
            orphans.send_signal(pids if is_late else pids - signalled, signal.SIGKILL if is_late else signal.SIGTERM)
            signalled |= pids
            orphans.reap(self._process.pid, signalled)
            if not self._signal(signal.SIGKILL if is_late else 0) and not pids:
                return
            await asyncio.sleep(POLL_S)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; return False if the group is empty. Only then can the system reuse its number."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # PermissionError: the remaining processes run as another user
            return False
        return True


class _Output:
    """One output stream: passes its lines on and keeps the last ones."""

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

    def join_tail(self) -> str:
        return "\n".join(self._tail)[-TAIL_CHARS:]

    def close(self) -> None:
        if not self.ended.done():
            asyncio.get_running_loop().remove_reader(self._fd)
            self.ended.set_result(None)
            if self._rest:
                self._deliver([self._rest])


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
