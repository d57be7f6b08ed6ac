"""Cost of whole commands: `punch`, which hands them to a warm process, the plain program, and taskwarrior."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from punchlist_bench import table
from punchlist_bench.entries import Command, Cost, find_processes, measure
from punchlist_bench.harness import Bench, middle, ratio
from punchlist_bench.requests import tasks
from punchlist_bench.servers import Client, Daemon
from punchlist_bench.table import Row

PUNCH = Path(sys.executable).with_name("punch")
PLAIN = PUNCH.with_name("punchlist")
SIZES = {50: "≤ 1.0 ×", 1_000: "≤ 0.7 ×"}
"""Number of tasks in the list → target for the ratio to taskwarrior."""

START_S = 30.0
"""Timeout for the start of the warm process, in seconds."""


def run(bench: Bench) -> list[Row]:
    """Compare commands with taskwarrior's and with a bare interpreter; check the status file."""
    if not PUNCH.exists():
        return [table.skipped_row("punch list", f"there is no {PUNCH.name} beside the interpreter: pip install -e .")]
    daemon = bench.daemon()
    home = daemon.socket.parent
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(bench.work),
        "XDG_RUNTIME_DIR": str(home),
        "PUNCHLIST_SOCKET": str(daemon.socket),
        "PUNCHLIST_CONVERSATION": "default",
        "LANG": "C.UTF-8",
    }
    rows: list[Row] = []
    try:
        for size, target in SIZES.items():
            _fill(daemon, size)
            _start_warm_process(env, home)
            rows += _compare_with_taskwarrior(bench, daemon, env, size, target)
        rows += _compare_with_python(bench, daemon, env)
    finally:
        for pid in _find_warm_processes(home):
            os.kill(pid, 15)
    with Client(daemon.socket) as client:
        lists = client.call("conversation.list")["conversations"]
    return [*rows, _status_file(home / "status", [conversation["counts"] for conversation in lists])]


def _fill(daemon: Daemon, size: int) -> None:
    with Client(daemon.socket) as client:
        for name in ("default", f"add-{size}", f"done-{size}"):  # `punch add` would change the output of `punch list`
            have = client.call("task.list", conversation=name)["tasks"]
            client.call("task.add_many", conversation=name, tasks=tasks(size - len(have)))


def _find_warm_processes(home: Path) -> list[int]:
    return find_processes(f"{home}/punchlist/warm-")


def _start_warm_process(env: dict[str, str], home: Path) -> None:
    """Run commands until a worker of the warm process runs them. Without the compiled program, there is none."""
    deadline = time.monotonic() + START_S
    is_compiled = PUNCH.read_bytes().startswith(b"\x7fELF")
    while is_compiled and len(_find_warm_processes(home)) < 2 and time.monotonic() < deadline:  # noqa: PLR2004 - with a worker
        subprocess.run([PUNCH, "list"], env=env, stdout=subprocess.DEVNULL, check=True)


def _compare_with_taskwarrior(
    bench: Bench, daemon: Daemon, env: dict[str, str], size: int, target: str
) -> Iterator[Row]:
    program = shutil.which("task")
    if program is None:
        yield table.skipped_row(
            f"punch list of {size:,} tasks", "taskwarrior is not installed: apt-get install taskwarrior"
        )
        return
    table.progress(f"commands with {size:,} tasks")
    theirs = _fill_taskwarrior(bench.fresh("taskwarrior"), program, env, size)
    helpers = partial(_find_helpers, daemon)
    lists = {"list": "default", "next": "default", "add": f"add-{size}", "done": f"done-{size}"}
    words = {"list": ["list"], "next": ["next"], "add": ["add", "Write the lexer"], "done": ["done", "1"]}
    commands: dict[str, Command] = {}
    for name, list_ in lists.items():
        chosen = {**env, "PUNCHLIST_CONVERSATION": list_}
        reopen = reopen_theirs = None
        if name == "done":
            reopen = partial(_run_quietly, [PUNCH, "reopen", "1"], chosen)
            reopen_theirs = partial(_run_quietly, [program, "1", "modify", "status:pending"], theirs[name])
        commands[f"punch {name}"] = Command([PUNCH, *words[name]], chosen, helpers, reopen)
        other = words[name] if name != "done" else ["1", "done"]
        commands[f"task {name}"] = Command([program, *other], theirs[name], prepare=reopen_theirs)
    taken = _measure_in_turn(bench, commands)
    for name in lists:
        for what, pick in (("time", 0), ("processor time, with the daemon's", 1)):
            mine, anchor = ([cost[pick] for cost in taken[f"{who} {name}"]] for who in ("punch", "task"))
            yield table.ratio_row(
                f"punch {name}, {size:,} tasks: {what}",
                f"{middle(mine):.1f} ms",
                f"task {name} {middle(anchor):.1f} ms",
                ratio(mine, anchor),
                target,
            )


def _fill_taskwarrior(home: Path, program: str, env: dict[str, str], size: int) -> dict[str, dict[str, str]]:
    """Give taskwarrior the same tasks. Return the environment of each of its commands."""
    (home / "rc").write_text("confirmation=no\n")
    (home / "tasks").write_text(json.dumps([{"description": f"task number {number}"} for number in range(size)]))
    environments: dict[str, dict[str, str]] = {}
    for name in ("list", "add", "done"):
        environments[name] = {**env, "TASKRC": str(home / "rc"), "TASKDATA": str(home / name)}
        subprocess.run([program, "import", home / "tasks"], env=environments[name], capture_output=True, check=True)
    return {**environments, "next": environments["list"]}


def _compare_with_python(bench: Bench, daemon: Daemon, env: dict[str, str]) -> Iterator[Row]:
    table.progress("whole processes")
    helpers = partial(_find_helpers, daemon)
    commands = {
        f"{program.name} {line}": Command([program, *line.split()], env, helpers)
        for program, line in (
            *((program, line) for line in ("list", "add x -c add-50", "next", "find x") for program in (PUNCH, PLAIN)),
            (PUNCH, "daemon status --line"),
            (PUNCH, "agent prime -c default --session s"),
        )
    }
    commands["python -c pass"] = Command([sys.executable, "-c", "pass"], env)
    status = f"read -r line < {daemon.socket.parent}/status"
    commands["sh that reads the status file"] = Command(["/bin/sh", "-c", status], env)
    taken = {name: [cost.wall for cost in costs] for name, costs in _measure_in_turn(bench, commands).items()}
    bare = taken.pop("python -c pass")
    anchor = f"python -c pass {middle(bare):.1f} ms"
    for name, walls in taken.items():
        what = f"{name}, {max(SIZES):,} tasks" if name.endswith(" list") else name
        yield table.ratio_row(what, f"{middle(walls):.1f} ms", anchor, ratio(walls, bare), "")


def _run_quietly(words: Sequence[str | Path], env: dict[str, str]) -> None:
    subprocess.run(words, env=env, capture_output=True, check=False)


def _find_helpers(daemon: Daemon) -> list[int]:
    return [daemon.pid, *_find_warm_processes(daemon.socket.parent)]


def _measure_in_turn(bench: Bench, commands: dict[str, Command]) -> dict[str, list[Cost]]:
    return bench.in_turn({name: partial(measure, command) for name, command in commands.items()}, bench.rounds)


def _status_file(path: Path, counts: Sequence[dict[str, int]]) -> Row:
    """Check that the status file, which prompts read without a process, has the totals of all lists."""
    running = sum(status.get("in_progress", 0) for status in counts)
    unfinished = sum(status.get(name, 0) for status in counts for name in ("pending", "in_progress", "paused"))
    expected = f"{unfinished} open, {running} in progress"
    end = time.monotonic() + 5
    while (line := path.read_text().strip() if path.exists() else "") != expected and time.monotonic() < end:
        time.sleep(0.05)
    return Row("status file read by a shell", line or "absent", "", "", "no process", line == expected)
