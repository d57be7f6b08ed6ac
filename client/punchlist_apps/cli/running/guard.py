"""Ends the commands left by a killed runner.

The guard is a separate process whose standard input closes when the runner dies. The runner writes `+MARK` before it
starts a command, `=MARK GROUP` once the command's process group is known, and `-MARK` once the command and its
descendants have ended. The guard finds the commands by marker and process group, sends SIGTERM, and sends SIGKILL after
five seconds. This happens before the daemon assigns their tasks again.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from punchlist_apps.cli.running import orphans

KILL_AFTER_S = 5.0
"""Grace period between SIGTERM and SIGKILL, in seconds, for a command and its descendants."""

POLL_S = 0.05
"""Time between checks of whether processes have ended, in seconds. The kernel only reports the end of child
processes."""

_REAP_TIMEOUT_S = 1.0
"""Longest wait for killed processes, in seconds. A zombie whose parent does not reap it never ends."""

_input: int | None = None
"""Descriptor of the guard's standard input; None without a guard."""


@contextmanager
def start_guard() -> Generator[None]:
    """Start a guard that ends the commands this process leaves running, even if it is killed."""
    global _input  # noqa: PLW0603 - a process has one guard
    # Drop the marker of an outer runner that may have started this one: that runner would end the guard together with
    # its command.
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
    assert guard.stdin is not None, "it is a pipe"
    _input = guard.stdin.fileno()
    os.set_blocking(_input, False)
    try:
        yield
    finally:
        _input = None
        guard.stdin.close()
        guard.wait()  # the guard ends commands that an exception has left running


def send(line: str) -> None:
    """Send a line to the guard without waiting. Does nothing without a guard."""
    if _input is not None:
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(_input, f"{line}\n".encode())


def main() -> None:
    """Track the runner's commands until the runner has ended, then end those still running."""
    commands: dict[str, int | None] = {}
    for line in sys.stdin:
        mark, _, group = line[1:-1].partition(" ")
        if line[0] == "-":
            commands.pop(mark, None)
        else:
            commands[mark] = int(group) if group else None
    _end_commands(commands.keys(), {group for group in commands.values() if group is not None})


def _end_commands(marks: Iterable[str], groups: set[int]) -> None:
    kill_at = time.monotonic() + KILL_AFTER_S
    signalled: set[int] = set()
    while time.monotonic() < kill_at + _REAP_TIMEOUT_S:
        number = signal.SIGTERM if time.monotonic() < kill_at else signal.SIGKILL
        pids = {-group for group in groups if _is_alive(group)}
        pids |= {pid for mark in marks for pid in orphans.find_marked(mark) if _find_group(pid) not in groups}
        if not pids:
            return
        # Send SIGTERM only once to each process, because a second one makes some programs exit without cleaning up.
        orphans.send_signal(pids - signalled if number == signal.SIGTERM else pids, number)
        signalled |= pids
        time.sleep(POLL_S)


def _find_group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # another user's processes can't be ended
        return False
    return True


if __name__ == "__main__":
    main()
