"""Duration of whole `punch` processes."""

import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from punchlist_bench import table
from punchlist_bench.harness import Bench, middle, ratio
from punchlist_bench.requests import tasks
from punchlist_bench.servers import Client
from punchlist_bench.table import Row

PUNCH = Path(sys.executable).parent / "punch"
RUNS = 6
STARTABLE = 500
"""Number of tasks to start: more than the number of runs, including repetitions of disturbed samples."""


def run(bench: Bench) -> list[Row]:
    """Compare `punch list` of 50 tasks and other commands with a bare interpreter; check the status file."""
    if not PUNCH.exists():
        return [table.skipped_row("punch list", f"there is no {PUNCH.name} beside the interpreter: pip install -e .")]
    daemon = bench.daemon()
    with Client(daemon.socket) as client:
        client.call("task.add_many", conversation="default", tasks=tasks(50))
        for name in ("add", "done", "next"):  # Separate lists keep the output of `punch list` the same.
            client.call("task.add_many", conversation=name, tasks=tasks(50))
        client.call("task.add_many", conversation="start", tasks=tasks(STARTABLE))
    number = itertools.count(1)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(bench.work),
        "PUNCHLIST_SOCKET": str(daemon.socket),
        "PUNCHLIST_CONVERSATION": "default",
        "LANG": "C.UTF-8",
    }
    commands = {
        "list": [str(PUNCH), "list"],
        "status": [str(PUNCH), "daemon", "status", "--line"],
        "add": [str(PUNCH), "add", "Write the lexer", "-c", "add"],
        "done": [str(PUNCH), "done", "1", "-c", "done"],
        "again": [str(PUNCH), "start", "3", "-c", "done"],
        "next": [str(PUNCH), "next", "--take", "-c", "next"],
        "prime": [str(PUNCH), "agent", "prime", "-c", "default", "--session", "s"],
        "edit": [str(PUNCH), "edit", "1", "-p", "high", "-c", "next"],
        "fail": [str(PUNCH), "fail", "2", "-c", "done"],
        "python": [sys.executable, "-c", "pass"],
        "sh": ["/bin/sh", "-c", f"read -r line < {daemon.socket.parent}/status"],
    }
    table.progress("whole processes")
    taken = bench.in_turn(
        {
            **{name: partial(_median_ms, lambda command=command: command, env) for name, command in commands.items()},
            "start": partial(_median_ms, lambda: [str(PUNCH), "start", str(next(number)), "-c", "start"], env),
        },
        bench.rounds * 2,
    )
    anchor = f"python -c pass {middle(taken['python']):.1f} ms"
    rows = [
        table.ratio_row(what, f"{middle(taken[name]):.1f} ms", anchor, ratio(taken[name], taken["python"]), target)
        for name, what, target in (
            ("list", "punch list of 50 tasks, whole process", "≤ 1.6 ×"),
            ("status", "punch daemon status --line, whole process", ""),
            ("add", "punch add, whole process", "≤ 3 ×"),
            ("done", "punch done, whole process", "≤ 3 ×"),
            ("start", "punch start, whole process", "≤ 3 ×"),
            ("again", "punch start of one's own task in progress, whole process", "≤ 3 ×"),
            ("next", "punch next, whole process", "≤ 3 ×"),
            ("prime", "punch agent prime, whole process", "≤ 3 ×"),
            ("edit", "punch edit, whole process", "≤ 3 ×"),
            ("fail", "punch fail, whole process", "≤ 5 ×"),
            ("sh", "sh that reads the status file, whole process", ""),
        )
    ]
    with Client(daemon.socket) as client:
        lists = client.call("conversation.list")["conversations"]
    return [*rows, _status_file(daemon.socket.parent / "status", [conversation["counts"] for conversation in lists])]


def _median_ms(command: Callable[[], Sequence[str]], env: dict[str, str]) -> float:
    return middle([_run_ms(command(), env) for _ in range(RUNS)])


def _run_ms(command: Sequence[str], env: dict[str, str]) -> float:
    # posix_spawn costs the same for all commands.
    begin = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, descriptor, "/dev/null", os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    pid = os.posix_spawn(command[0], list(command), env, file_actions=quiet)
    _, status = os.waitpid(pid, 0)
    spent = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return spent * 1e3


def _status_file(path: Path, counts: Sequence[dict[str, int]]) -> Row:
    """Check that the status file, which prompts read without a process, has the totals of all lists."""
    running = sum(status.get("in_progress", 0) for status in counts)
    unfinished = sum(status.get(name, 0) for status in counts for name in ("pending", "in_progress", "paused"))
    expected = f"{unfinished} open, {running} in progress"
    end = time.monotonic() + 5
    while (line := path.read_text().strip() if path.exists() else "") != expected and time.monotonic() < end:
        time.sleep(0.05)
    return Row("status file read by a shell", line or "absent", "", "", "no process", line == expected)
