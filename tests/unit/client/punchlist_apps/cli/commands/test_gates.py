"""`punch approve` and `punch gate` with a daemon."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.blocking import eventually
from punchlist_testing.terminal import run_half_terminal, spawned


@pytest.fixture
def gated(punch: Any) -> Any:
    punch("add", "deploy", "--gate", "check:tests,yes")
    assert "waits for the check tests" in punch("done", "1", "--result", "did \x1b[2Jit").out
    return punch


def task(punch: Any) -> dict[str, Any]:
    found: dict[str, Any] = punch("list", "--json").json["tasks"][0]
    return found


def test_passed_check_still_needs_approval(gated: Any) -> None:
    assert "punch gate tests" in gated("why", "1").out
    assert (
        gated("gate", "tests", "--once", "--", "sh", "-c", 'grep -q deploy && test "$PUNCHLIST_CHECK" = tests').code
        == 0
    )
    assert task(gated)["waits_for"] == "yes"
    shown = gated("approve").out
    assert "waits for a yes" in shown
    outcome = gated("approve", "1")
    assert (outcome.code, "--yes" in outcome.err) == (2, True)
    unasked = run_half_terminal("approve", "1", shows=False)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)
    assert gated("approve", "1", "--yes", "--note", "fine").code == 0
    assert (task(gated)["status"], task(gated)["notes"][0]["text"]) == ("completed", "fine")
    assert gated("approve").lines == ["no task waits for approval"]
    again = gated("approve", "1", "--yes")
    assert (again.code, again.lines) == (0, ["#1 was already completed"])
    assert "#1 passed the check, waits for a yes" in gated("log").out
    assert "\x1b[2J" not in gated("show", "1").out


def test_failed_check_reopens_task_with_output(gated: Any) -> None:
    run = gated("gate", "tests", "--once", "--json", "--", "sh", "-c", "echo broken >&2; exit 3")
    assert (run.code, run.lines[-1]) == (1, '{"passed":0,"failed":1}')
    assert (task(gated)["status"], task(gated)["fail_reason"]) == ("pending", "tests: exit code 3: broken")
    assert gated("approve", "1", "--yes").code == 1


def test_hanging_check_is_killed_with_its_children(gated: Any, home: Path) -> None:
    pids = home / "pids"
    script = f"(sleep 60 & echo $! >> {pids}; wait) & echo $$ >> {pids}; sleep 60"
    assert gated("gate", "tests", "--once", "--timeout", "300ms", "--", "sh", "-c", script).code == 1
    assert task(gated)["fail_reason"] == "tests: timed out after 0.3 s"
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_gate_checks_new_tasks_until_interrupted(gated: Any) -> None:
    with spawned("gate", "tests", "--", "true") as gate:
        assert eventually(lambda: task(gated)["waits_for"] == "yes")
        gated("add", "test", "--gate", "check:tests")
        gated("done", "2")
        assert eventually(lambda: gated("list", "--json").json["tasks"][1]["status"] == "completed")
        gate.send_signal(signal.SIGINT)
        assert gate.communicate(timeout=15)[0].count("tests passed") == 2


def test_task_changed_during_check_is_checked_again(gated: Any, home: Path) -> None:
    runs = home / "runs"
    script = f'echo run >> {runs}; test "$(wc -l < {runs})" = 2 || {sys.executable} -m punchlist edit 1 -d changed'
    outcome = gated("gate", "tests", "--once", "--", "sh", "-c", script)
    assert outcome.code == 0 and "#1 changed during the check" in outcome.out
    assert runs.read_text() == "run\nrun\n"
    assert task(gated)["waits_for"] == "yes"


def test_gate_checks_only_named_tasks(gated: Any) -> None:
    gated("add", "test", "--gate", "check:tests")
    gated("done", "2")
    outcome = gated("gate", "tests", "--once", "--task", "#2,9", "--", "true")
    assert outcome.code == 0 and "#9 doesn't wait for the check tests" in outcome.out
    assert [task.get("waits_for") for task in gated("list", "--json").json["tasks"]] == ["check", None]
    assert gated("gate", "tests", "--task", "", "--", "true").code == 2


def test_other_checks_and_missing_commands_change_nothing(gated: Any) -> None:
    assert gated("gate", "lint", "--once", "--", "true").code == 0
    assert gated("gate", "tests", "--once", "--", "no-such-command").code == 2
    assert task(gated)["waits_for"] == "check"


def test_rejection_needs_reason_and_waiting_task(punch: Any) -> None:
    punch("add", "deploy", "--gate", "yes:ann")
    punch("done", "1")
    assert punch("approve", "1", "--yes").code == 1
    assert punch("approve", "1", "--actor", "ann", "--reject", "not today").code == 0
    assert task(punch)["fail_reason"] == "not today"
    assert punch("approve", "1", "--reject", "").code == 1


def test_invalid_gate_is_rejected(punch: Any) -> None:
    for text in ("no", "yes:", "check", "check:a,check:b", "yes,yes", "check:a b", ","):
        assert punch("add", "deploy", "--gate", text).code != 0, text
    assert not punch("list", "--json").json["tasks"]
