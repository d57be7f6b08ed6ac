"""Child processes and their output, without a daemon."""

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


def test_long_values_are_left_out_of_the_environment() -> None:
    variables = build_environment(task(title="a\0b", description="é" * 60_000), PUNCHLIST_LOG="l")
    assert variables == {"PUNCHLIST_TASK": "7", "PUNCHLIST_ATTEMPT": "0", "PUNCHLIST_LOG": "l"}


async def test_a_command_gets_input_and_delivers_lines() -> None:
    ending, lines = await run("sh", "-c", "cat; echo oops >&2; printf rest; exit 3", stdin=b"a\r\nb\n")
    assert sorted(lines) == ["err:oops", "out:a", "out:b", "out:rest"]
    assert (ending.code, ending.out, ending.err) == (3, "a\nb\nrest", "oops")
    assert ending.format_reason(None) == "exit code 3: oops"


async def test_long_lines_are_split_and_the_tail_limited() -> None:
    ending, lines = await run(sys.executable, "-c", f"print('x' * {3 * MAX_LINE})")
    assert len(lines) >= 2
    assert sum(len(line) - 4 for line in lines) == 3 * MAX_LINE
    assert len(ending.out) == 2_000


def is_running(pid: int) -> bool:
    try:
        os.readlink(f"/proc/{pid}/exe")  # readlink also fails for a zombie
    except FileNotFoundError:
        return False
    return True


async def test_descendants_end_without_delaying_the_command() -> None:
    assert orphans.adopt(), "otherwise the test waits for the init process to reap"
    with anyio.fail_after(30):
        ending, _ = await run("sh", "-c", "sleep 60 & echo $!; exit 0")
    assert ending.code == 0
    assert not is_running(int(ending.out))


async def test_descendants_outside_the_group_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert orphans.adopt()
    monkeypatch.setattr("punchlist_apps.cli.running.child.KILL_AFTER_S", 0.2)
    stubborn = """setsid sh -c 'trap "" TERM; echo $$; setsid sleep 60 & echo $!; exec sleep 60' & sleep 0.3"""
    ending, lines = await run("sh", "-c", stubborn)
    assert ending.code == 0
    started = [int(line.removeprefix("out:")) for line in lines]
    assert len(started) == 2
    assert not any(map(is_running, started))


async def test_other_children_are_not_ended() -> None:
    assert orphans.adopt()
    async with await anyio.open_process(["sleep", "60"]) as other:
        await run("true")
        assert other.returncode is None
        other.kill()


async def test_a_command_is_stopped_with_its_descendants(tmp_path: Path) -> None:
    ending, _ = await run("sh", "-c", "sleep 60; echo never", timeout_s=0.1)
    assert ending.timed_out
    assert ending.format_reason(100) == "timed out after 0.1 s"


async def test_a_failed_start_raises() -> None:
    with pytest.raises(FileNotFoundError):
        await run("/no/such/command")
    with pytest.raises(ValueError, match="null byte"):
        await run("echo", "a\0b")


async def test_descendants_that_ignore_sigterm_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist_apps.cli.running.child.KILL_AFTER_S", 0.2)
    script = '(trap "" TERM; exec sleep 60 >/dev/null 2>&1) & echo $!; wait'
    ending, lines = await run("sh", "-c", script, timeout_s=0.3)
    assert ending.timed_out
    stubborn = int(lines[0].removeprefix("out:"))
    with pytest.raises(FileNotFoundError):  # readlink fails even for a zombie
        os.readlink(f"/proc/{stubborn}/exe")
