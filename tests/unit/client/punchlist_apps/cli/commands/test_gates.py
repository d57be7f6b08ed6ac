"""`punch approve` and `punch gate`, over a daemon."""

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


def test_a_check_that_passes_leaves_the_yes_to_a_person(gated: Any) -> None:
    assert "punch gate tests" in gated("why", "1").out
    assert (
        gated("gate", "tests", "--once", "--", "sh", "-c", 'grep -q deploy && test "$PUNCHLIST_CHECK" = tests').code
        == 0
    )
    assert task(gated)["waits_for"] == "yes"
    shown = gated("approve").out
    assert "waits for a yes" in shown
    refused = gated("approve", "1")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    unasked = run_half_terminal("approve", "1", shows=False)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)
    assert gated("approve", "1", "--yes", "--note", "fine").code == 0
    assert (task(gated)["status"], task(gated)["notes"][0]["text"]) == ("completed", "fine")
    assert gated("approve").lines == ["nothing waits for a yes"]
    again = gated("approve", "1", "--yes")
    assert (again.code, again.lines) == (0, ["#1 was completed already: it waited for no yes"])
    assert "#1 passed the check, waits for a yes" in gated("log").out
    assert "\x1b[2J" not in gated("show", "1").out


def test_a_check_that_fails_makes_the_task_pending_with_the_end_of_its_output(gated: Any) -> None:
    run = gated("gate", "tests", "--once", "--json", "--", "sh", "-c", "echo broken >&2; exit 3")
    assert (run.code, run.lines[-1]) == (1, '{"passed":0,"failed":1}')
    assert (task(gated)["status"], task(gated)["fail_reason"]) == ("pending", "tests: exit code 3: broken")
    assert gated("approve", "1", "--yes").code == 1


def test_a_check_that_hangs_and_forks_ends_in_bounded_time_with_all_that_it_started(gated: Any, home: Path) -> None:
    pids = home / "pids"
    script = f"(sleep 60 & echo $! >> {pids}; wait) & echo $$ >> {pids}; sleep 60"
    assert gated("gate", "tests", "--once", "--timeout", "300ms", "--", "sh", "-c", script).code == 1
    assert task(gated)["fail_reason"] == "tests: timed out after 0.3 s"
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_gate_checks_what_comes_to_wait_until_it_is_interrupted(gated: Any) -> None:
    with spawned("gate", "tests", "--", "true") as gate:
        assert eventually(lambda: task(gated)["waits_for"] == "yes")
        gated("add", "test", "--gate", "check:tests")
        gated("done", "2")
        assert eventually(lambda: gated("list", "--json").json["tasks"][1]["status"] == "completed")
        gate.send_signal(signal.SIGINT)
        assert gate.communicate(timeout=15)[0].count("tests passed") == 2


def test_a_task_that_changes_while_its_check_runs_is_checked_once_more(gated: Any, home: Path) -> None:
    runs = home / "runs"
    script = f'echo run >> {runs}; test "$(wc -l < {runs})" = 2 || {sys.executable} -m punchlist edit 1 -d changed'
    told = gated("gate", "tests", "--once", "--", "sh", "-c", script)
    assert told.code == 0 and "#1 has changed meanwhile" in told.out
    assert runs.read_text() == "run\nrun\n"
    assert task(gated)["waits_for"] == "yes"


def test_another_check_and_a_command_that_is_not_there_touch_no_task(gated: Any) -> None:
    assert gated("gate", "lint", "--once", "--", "true").code == 0
    assert gated("gate", "tests", "--once", "--", "no-such-command").code == 2
    assert task(gated)["waits_for"] == "check"


def test_a_no_needs_a_reason_and_what_waits_for_nothing_takes_no_answer(punch: Any) -> None:
    punch("add", "deploy", "--gate", "yes:ann")
    punch("done", "1")
    assert punch("approve", "1", "--yes").code == 1
    assert punch("approve", "1", "--actor", "ann", "--reject", "not today").code == 0
    assert task(punch)["fail_reason"] == "not today"
    assert punch("approve", "1", "--reject", "").code == 1


def test_a_gate_that_is_none_is_refused(punch: Any) -> None:
    for text in ("no", "yes:", "check", "check:a,check:b", "yes,yes", "check:a b", ","):
        assert punch("add", "deploy", "--gate", text).code != 0, text
    assert not punch("list", "--json").json["tasks"]
