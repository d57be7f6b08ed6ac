"""`punch run` with real commands: their input, and the results for their tasks."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.terminal import command, environment

SHOW = "import json, os, sys; t = json.load(sys.stdin); print(sys.argv[1:], t['id'], os.environ['PUNCHLIST_TITLE'])"


@pytest.fixture(autouse=True)
def slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the delay of retries, because lanes and the daemon share a clock in this process."""
    monkeypatch.setattr("punchlist_apps.cli.running.lanes._CLOCK_SLACK_S", 0.5)


@pytest.fixture
def plan(punch: Any) -> Any:
    for title in ("a b; $(touch x)", "{id}", "c"):
        punch("add", title, "-d", f"about {title}")
    return punch


def statuses(punch: Any) -> list[str]:
    return [task["status"] for task in punch("list", "--all", "--json").json["tasks"]]


def task(punch: Any, number: int) -> dict[str, Any]:
    return punch("show", str(number), "--json").json["task"]


def test_command_gets_task_in_arguments_environment_and_input(plan: Any) -> None:
    outcome = plan("run", "--", sys.executable, "-c", SHOW, "{title}", "x{id}x", "{description}")
    assert outcome.code == 0, outcome.err
    assert outcome.lines[0] == "#1 ['a b; $(touch x)', 'x1x', 'about a b; $(touch x)'] 1 a b; $(touch x)"
    assert outcome.lines[2].startswith("#2 ['{id}', 'x2x'"), "inserted text isn't expanded again"
    assert statuses(plan) == ["completed"] * 3
    assert task(plan, 3)["result_summary"] == "['c', 'x3x', 'about c'] 3 c"


def test_failed_command_fails_task_with_stderr(plan: Any, home: Path) -> None:
    outcome = plan("run", "--", "sh", "-c", 'echo out; echo broken >&2; test "$0" != c', "{title}")
    assert outcome.code == 1
    assert statuses(plan) == ["completed", "completed", "failed"]
    assert task(plan, 3)["fail_reason"] == "exit code 1: broken"
    log = home / "data" / "runs" / "default" / "3.1.log"
    assert sorted(log.read_text().splitlines()) == ["broken", "out"]
    assert log.stat().st_mode & 0o777 == 0o600


def test_unknown_command_changes_no_task(plan: Any, tmp_path: Path) -> None:
    before = plan("log", "--json").out
    outcome = plan("run", "--", "mkae", "{title}")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: command not found: 'mkae'; no task was touched")
    assert plan("log", "--json").out == before
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o700)
    outcome = plan("run", "--", str(broken))
    assert (outcome.code, "can't start" in outcome.err) == (2, True)
    assert statuses(plan) == ["pending"] * 3


def test_title_like_option_never_reaches_command(punch: Any, tmp_path: Path) -> None:
    punch("add", "--", f"--checkpoint-action=exec=touch {tmp_path}/PWNED")
    outcome = punch("run", "--", "tar", "-cf", "/dev/null", "--checkpoint=1", "{title}", "/etc/hostname")
    assert outcome.code == 1
    assert task(punch, 1)["fail_reason"].startswith("{title} begins with a dash, and tar could read it as an option")
    assert not (tmp_path / "PWNED").exists()


def test_keep_going_overrides_stop_on_failure(plan: Any) -> None:
    plan("daemon", "call", "conversation.configure", "conversation=default", 'settings={"on_failure":"stop"}')
    assert plan("run", "--", "false").code == 1
    assert statuses(plan) == ["failed", "pending", "pending"]
    assert plan("run", "--keep-going", "--", "true").code == 0
    assert statuses(plan) == ["failed", "completed", "completed"]


def test_owner_is_option_variable_or_run(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    show = ("sh", "-c", 'echo "$PUNCHLIST_OWNER"')
    monkeypatch.setenv("PUNCHLIST_OWNER", "ann")
    plan("run", "--", *show)
    plan("add", "d")
    plan("run", "--owner", "bob", "--", *show)
    monkeypatch.delenv("PUNCHLIST_OWNER")
    plan("add", "e")
    plan("run", "--", *show)
    result = [task(plan, number)["result_summary"] for number in (3, 4, 5)]
    assert result[:2] == ["ann", "bob"]
    assert result[2].startswith("punch-run-")


def test_command_times_out(punch: Any) -> None:
    punch("add", "a")
    assert punch("run", "--timeout", "200ms", "--", "sleep", "60").code == 1
    assert task(punch, 1)["fail_reason"] == "timed out after 0.2 s"


def test_killed_command_reports_signal(punch: Any) -> None:
    punch("add", "a")
    punch("run", "--", "sh", "-c", "kill -SEGV $$")
    assert task(punch, 1)["fail_reason"] == "killed by SIGSEGV"


def test_output_is_escaped_and_bounded(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("run", "--", "sh", "-c", r"printf '\033[31mred\n'; seq 100; printf '\377tail'")
    assert "#1 \\x1b[31mred" in outcome.lines
    assert outcome.lines[-3:] == ["#1 �tail", "✓ #1 a  �tail", "1 done"]
    assert task(punch, 1)["result_summary"].splitlines() == [str(n) for n in range(82, 101)] + ["�tail"]


def test_parallel_lanes_wait_for_blocked_tasks(punch: Any, home: Path) -> None:
    punch("add", "first")
    for title in "xyz":
        punch("add", title, "-b", "1")
    meet = 'cd "$0"; touch $1; test $1 = 1 && exit'
    meet += "; for i in $(seq 800); do test $(ls | wc -l) = 4 && exit; sleep 0.05; done"
    (home / "met").mkdir()
    outcome = punch("run", "-j", "4", "--", "sh", "-c", f"{meet}; exit 1", str(home / "met"), "{id}")
    assert outcome.code == 0, "three commands run in parallel after the first one"
    assert statuses(punch) == ["completed"] * 4


def test_serial_list_runs_in_order_with_retries(punch: Any, home: Path) -> None:
    settings = 'settings={"execution":"serial","max_attempts":2}'
    punch("daemon", "call", "conversation.open", "conversation=default", settings)
    for title in "abc":
        punch("add", title)
    script = 'echo $PUNCHLIST_TASK.$PUNCHLIST_ATTEMPT >> "$0"; test "$PUNCHLIST_TASK" != 2'
    outcome = punch("run", "--json", "--", "sh", "-c", script, str(home / "order"))
    assert outcome.code == 1 and json.loads(outcome.lines[-1])["failed"] == 1, "a task that failed twice counts once"
    assert (home / "order").read_text().split() == ["1.1", "2.1", "2.2", "3.1"]
    assert statuses(punch) == ["completed", "failed", "completed"]


def test_run_without_command_is_rejected(punch: Any) -> None:
    assert punch("run").code == 2
    assert punch("run", "-j", "0", "--", "true").code == 2
    assert punch("run", "--", "true").code == 0


def test_failed_task_is_retried_with_growing_delay(punch: Any, home: Path) -> None:
    punch("add", "a")
    punch("add", "b")
    script = f'test "$PUNCHLIST_TITLE" = b && exit; echo x >> {home}/tries; test "$(wc -l < {home}/tries)" = 3'
    outcome = punch("run", "--retries", "2", "--retry-delay", "50ms", "--", "sh", "-c", script)
    assert outcome.code == 0, outcome.out
    assert [line for line in outcome.lines if "attempt" in line] == [
        "  attempt 1 of 3 failed; retry in 0.05 s",
        "  attempt 2 of 3 failed; retry in 0.1 s",
    ]
    assert outcome.lines[-1] == "2 done"
    assert (task(punch, 1)["attempts"], task(punch, 1)["owner"][:9]) == (3, "punch-run")


def test_exhausted_retries_fail_task_and_report_blocked(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--blocked-by", "1")
    outcome = punch("run", "--retries", "1", "--retry-delay", "0", "--", "false")
    assert outcome.code == 1
    assert (
        outcome.lines[-1] == "0 done, 1 failed, 1 left behind #1, which failed (to retry: punch run --restart-failed)"
    )
    again = punch("run", "--restart-failed", "--retries", "1", "--retry-delay", "0", "--", "true")
    assert again.lines[0] == "restarted 1 failed task"
    assert (again.code, again.lines[-1]) == (0, "2 done")
    assert punch("run", "--", "true").lines == ["nothing to do: 0 done"]


def test_reopened_task_has_all_attempts(punch: Any) -> None:
    punch("add", "a")
    punch("set", "max_attempts=2")
    punch("run", "--", "false")
    assert (task(punch, 1)["status"], task(punch, 1)["attempts"]) == ("failed", 2)
    punch("reopen", "1")
    assert {"attempts", "owner"}.isdisjoint(task(punch, 1))


def test_groups_have_own_lanes(punch: Any, home: Path) -> None:
    for name in ("g1", "g2", "c1", "c2"):
        punch("add", name, *(("--label", "gpu") if name[0] == "g" else ()))
    # Commands in the group fail if they overlap. The other two fail unless they overlap.
    script = (
        f'cd {home}; k=$(printf %.1s "$PUNCHLIST_TITLE"); mkdir -p r; touch r/$PUNCHLIST_TITLE;'
        'if test $k = g; then test "$(ls r | grep -c g)" = 1 || exit 3; sleep 0.2;'
        'else for i in $(seq 100); do test "$(ls r | grep -c c)" = 2 && break; sleep 0.05; done;'
        'test "$(ls r | grep -c c)" = 2 || exit 4; sleep 0.2; exit 0; fi; rm r/$PUNCHLIST_TITLE'
    )
    outcome = punch("run", "-j", "2", "--group", "gpu=1", "--", "sh", "-c", script)
    assert (outcome.code, outcome.lines[-1]) == (0, "4 done"), outcome.out


def test_invalid_group_is_rejected(run: Any) -> None:
    for wrong in ("gpu", "=1", "gpu=0", "gpu=x"):
        assert run("run", "--group", wrong, "--", "true").code == 2, wrong


def test_notify_command_gets_failures_gates_and_end(punch: Any, home: Path) -> None:
    punch("add", "bad")
    punch("add", "gated", "--gate", "yes")
    log = home / "told"
    tell = home / "tell.sh"
    tell.write_text(f'#!/bin/sh\nread line; echo "$PUNCHLIST_EVENT $line" >> {log}\n')
    tell.chmod(0o700)
    outcome = punch("run", "--notify", str(tell), "--", "sh", "-c", 'test "$PUNCHLIST_TITLE" = gated')
    assert outcome.lines[-1] == "0 done, 1 failed, 1 waiting for approval"
    events = dict(line.split(" ", 1) for line in log.read_text().splitlines())
    assert json.loads(events["failed"])["reason"] == "exit code 1"
    assert json.loads(events["waiting"])["task"]["waits_for"] == "yes"
    assert json.loads(events["finished"])["waiting"] == 1


def test_webhook_failure_stops_nothing(punch: Any) -> None:
    punch("add", "a")
    got: list[bytes] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204 if len(got) == 1 else 500)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/hook"
        assert punch("run", "--notify-url", url, "--", "true").code == 0
        assert json.loads(got[0])["event"] == "finished"
        outcome = punch("run", "--notify-url", url, "--", "true")
        assert (outcome.code, "can't notify: 127.0.0.1: HTTP Error 500" in outcome.out) == (0, True)
        server.shutdown()


def test_invalid_notification_is_rejected_first(punch: Any) -> None:
    punch("add", "a")
    for wrong in (("--notify", "no-such-command"), ("--notify", "'"), ("--notify-url", "file:///etc/passwd")):
        assert punch("run", *wrong, "--", "true").code == 2, wrong
    assert statuses(punch) == ["pending"]


@pytest.mark.usefixtures("plan")
def test_closed_output_loses_no_result(punch: Any, home: Path) -> None:
    """Running commands finish and no others start."""
    line = f"echo told; echo ran >> {home}/ran"
    with open("/dev/full", "wb") as full:
        process = subprocess.run(
            command("run", "--", "sh", "-c", line), stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert (home / "ran").read_text() == "ran\n"
    assert statuses(punch) == ["completed", "pending", "pending"]
    error = b"error: standard output: No space left on device\n"
    assert (process.returncode, process.stderr) == (
        1,
        error + b"  the change is stored (#1 of default), so don't repeat it\n",
    )


def test_command_gets_path_of_task(punch: Any) -> None:
    punch("add", "Backend")
    punch("add", "tests", "--parent", "1", "-p", "high")
    outcome = punch("run", "--", "sh", "-c", 'echo "$PUNCHLIST_PATH"')
    assert outcome.lines[:2] == ["#2 Backend › tests", "✓ #2 Backend › tests  Backend › tests"]


PARTS = "## Backend\n\n- [ ] schema\n- [ ] tests\n"


def imported(punch: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(PARTS)
    punch("import", str(tmp_path / "plan.md"))


def test_headings_are_completed_without_command(punch: Any, tmp_path: Path) -> None:
    imported(punch, tmp_path)
    outcome = punch("run", "--", sys.executable, "-c", SHOW)
    assert [line for line in outcome.lines if line.startswith("#")] == ["#2 [] 2 schema", "#3 [] 3 tests"]
    assert statuses(punch) == ["completed"] * 3
    assert outcome.lines[-1] == "2 done"


def test_headings_are_not_counted(punch: Any, tmp_path: Path) -> None:
    imported(punch, tmp_path)
    punch("add", "later", "--after-date", "2099-01-01", "--parent", "1")
    failed = punch("run", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert "2 failed, 1 left" in failed.lines[-1]
    punch("rm", "4")
    assert task(punch, 1)["fail_reason"] == "2 of 2 tasks failed"
    again = punch("run", "--restart-failed", "--", sys.executable, "-c", SHOW)
    assert "restarted 2 failed tasks" in again.out
    assert statuses(punch) == ["completed"] * 3
