"""Ends the commands of a runner that was killed. The guard is a process, and the end of its input is the runner's end.

The runner sends a line before it starts a command (`+MARK`), one with the command's group (`=MARK GROUP`), and one when
nothing is left of the command (`-MARK`). The guard finds commands and what they started by mark and group, asks them to
end, and kills them after five seconds, before the daemon hands their tasks out again.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from punchlist.cli.runner import orphans

KILL_AFTER_S = 5.0
"""How long a command, and what it has started, may take to end after SIGTERM, in seconds."""

LOOK_S = 0.05
"""How often what was asked to end is checked: the kernel reports the end of children, not of their own."""

_LAST_S = 1.0
"""How long the end of what was killed is waited for, in seconds: a zombie that nobody buries stays for good."""

_input: int | None = None
"""Where the guard of this process reads; None without one."""


@contextmanager
def guarded() -> Generator[None]:
    """Have a guard end the commands that this process leaves running, even if it is killed."""
    global _input  # noqa: PLW0603 - a process has one guard
    # Without the mark of a runner around this one, which would take the guard for something that a command left.
    env = {name: value for name, value in os.environ.items() if name != orphans.MARK}
    guard = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=env,
        start_new_session=True,
    )
    assert guard.stdin is not None, "asked for"
    _input = guard.stdin.fileno()
    os.set_blocking(_input, False)
    try:
        yield
    finally:
        _input = None
        guard.stdin.close()
        guard.wait()  # it ends what an error of ours has left running


def tell(line: str) -> None:
    """Send the guard a line, if there is one and it reads: nothing waits for it."""
    if _input is not None:
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(_input, f"{line}\n".encode())


def main() -> None:
    """Read which commands run until their runner has ended, then end them."""
    commands: dict[str, int | None] = {}
    for line in sys.stdin:
        mark, _, group = line[1:-1].partition(" ")
        if line[0] == "-":
            commands.pop(mark, None)
        else:
            commands[mark] = int(group) if group else None
    _end(commands.keys(), {group for group in commands.values() if group is not None})


def _end(marks: Iterable[str], groups: set[int]) -> None:
    kill_at = time.monotonic() + KILL_AFTER_S
    asked: set[int] = set()
    while time.monotonic() < kill_at + _LAST_S:
        number = signal.SIGTERM if time.monotonic() < kill_at else signal.SIGKILL
        left = {-group for group in groups if _is_left(group)}
        # Nobody is asked twice: a second SIGTERM makes some programs end without cleaning up.
        left |= {pid for mark in marks for pid in orphans.marked(mark) if _group_of(pid) not in groups}
        if not left:
            return
        orphans.end(left - asked if number == signal.SIGTERM else left, number)
        asked |= left
        time.sleep(LOOK_S)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # what has changed its user is beyond our reach
        return False
    return True


if __name__ == "__main__":
    main()
