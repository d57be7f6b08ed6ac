"""A command and its output, without a daemon."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from punchlist_apps.cli.running import orphans
from punchlist_apps.cli.running.child import MAX_LINE, Child, Ending, build_environment
from punchlist_schemas.things import Task


def task(**members: str) -> Task:
    base = {"id": "7", "title": "t", "status": "in_progress", "priority": "normal"}
    return Task(**{**base, **members}, created_at=1, updated_at=1, status_changed_at=1, version=1)  # pyright: ignore[reportArgumentType]


async def run(*words: str, stdin: bytes = b"", timeout_s: float | None = None) -> tuple[Ending, list[str]]:
    lines: list[str] = []
    with anyio.fail_after(30):
        child = Child(words, dict(os.environ), stdin, lambda stream, line: lines.append(f"{stream}:{line}"))
        return await child.wait(timeout_s), lines


def test_what_does_not_fit_into_the_environment_is_left_out() -> None:
    told = build_environment(task(title="a\0b", description="é" * 60_000), PUNCHLIST_LOG="l")
    assert told == {"PUNCHLIST_TASK": "7", "PUNCHLIST_ATTEMPT": "0", "PUNCHLIST_LOG": "l"}


async def test_a_command_reads_its_input_and_is_heard_line_by_line() -> None:
    ending, lines = await run("sh", "-c", "cat; echo oops >&2; printf rest; exit 3", stdin=b"a\r\nb\n")
    assert sorted(lines) == ["err:oops", "out:a", "out:b", "out:rest"]
    assert (ending.code, ending.out, ending.err) == (3, "a\nb\nrest", "oops")
    assert ending.format_reason(None) == "exit code 3: oops"


async def test_a_line_without_end_is_cut_and_the_told_end_is_bounded() -> None:
    ending, lines = await run(sys.executable, "-c", f"print('x' * {3 * MAX_LINE})")
    assert len(lines) >= 2
    assert sum(len(line) - 4 for line in lines) == 3 * MAX_LINE
    assert len(ending.out) == 2_000


def runs(pid: int) -> bool:
    try:
        os.readlink(f"/proc/{pid}/exe")  # fails of a zombie too
    except FileNotFoundError:
        return False
    return True


async def test_what_a_command_left_running_ends_with_it_and_does_not_hold_it_up() -> None:
    assert orphans.adopt(), "else its end waits until the system's first process buries what was left"
    with anyio.fail_after(30):
        ending, _ = await run("sh", "-c", "sleep 60 & echo $!; exit 0")
    assert ending.code == 0
    assert not runs(int(ending.out))


async def test_what_has_left_the_group_ends_with_the_command_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert orphans.adopt()
    monkeypatch.setattr("punchlist_apps.cli.running.child.KILL_AFTER_S", 0.2)
    stubborn = """setsid sh -c 'trap "" TERM; echo $$; setsid sleep 60 & echo $!; exec sleep 60' & sleep 0.3"""
    ending, lines = await run("sh", "-c", stubborn)
    assert ending.code == 0
    started = [int(line.removeprefix("out:")) for line in lines]
    assert len(started) == 2
    assert not any(map(runs, started))


async def test_a_process_of_ours_that_no_command_started_is_left_alone() -> None:
    assert orphans.adopt()
    async with await anyio.open_process(["sleep", "60"]) as other:
        await run("true")
        assert other.returncode is None
        other.kill()


async def test_a_command_and_what_it_started_are_stopped_together(tmp_path: Path) -> None:
    ending, _ = await run("sh", "-c", "sleep 60; echo never", timeout_s=0.1)
    assert ending.timed_out
    assert ending.format_reason(100) == "timed out after 0.1 s"


async def test_what_can_not_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        await run("/no/such/command")
    with pytest.raises(ValueError, match="null byte"):
        await run("echo", "a\0b")


async def test_what_ignores_the_request_to_end_is_killed_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist_apps.cli.running.child.KILL_AFTER_S", 0.2)
    script = '(trap "" TERM; exec sleep 60 >/dev/null 2>&1) & echo $!; wait'
    ending, lines = await run("sh", "-c", script, timeout_s=0.3)
    assert ending.timed_out
    stubborn = int(lines[0].removeprefix("out:"))
    with pytest.raises(FileNotFoundError):  # also of a zombie
        os.readlink(f"/proc/{stubborn}/exe")
