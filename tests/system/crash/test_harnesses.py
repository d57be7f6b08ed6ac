"""Fault programs at a small size, with another seed each time. `make fault NAME=…` runs the full versions."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_faults import fuzz, runner, simulate
from punchlist_faults.mounts import why_not
from punchlist_faults.options import Figures, Options, Unavailable, Violation, workplace
from punchlist_faults.process import daemon_in, environment
from punchlist_faults.sweep import SCENARIOS, Fault, Sweep, need_strace
from punchlist_testing.nats_server import needs_server


def small(name: str, size: int, only: str = "") -> Figures:
    options = Options(random.SystemRandom().randrange(1_000_000), size, only=only)
    try:
        return runner.run(name, options)
    except Unavailable as missing:
        pytest.skip(str(missing))
    except Exception as error:
        raise AssertionError(f"{runner.describe(name, options)}: {error}") from error


def as_program(name: str, size: int, seconds: int | None = None, bug: str = "") -> subprocess.CompletedProcess[str]:
    program = runner.PROGRAMS[name]
    if program.needs is not None and (missing := why_not(*program.needs, network=program.network)):
        pytest.skip(missing)
    env = {**environment(), "SIZE": str(size), "SECONDS": str(seconds or ""), "SEED": "", "BUG": bug}
    command = [sys.executable, "-m", "punchlist_faults", name]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=55, check=False)
    if ": skipped: " in ended.stdout:
        pytest.skip(ended.stdout.strip())
    return ended


@pytest.mark.parametrize(("name", "size"), [("crash", 3), ("resume", 40), ("simulate", 15), ("stuck", 20)])
def test_fault_breaks_no_promise(name: str, size: int) -> None:
    small(name, size)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("chat", 5),
        ("connections", 200),
        ("damage", 24),
        ("events", 240),
        ("memory", 1),
        ("race", 4),
        ("restart", 6_400),
        ("soak", 3),
        ("together", 100),
        ("workers", 300),
    ],
)
def test_longer_fault_breaks_no_promise(name: str, size: int) -> None:
    small(name, size)


@pytest.mark.long
@pytest.mark.parametrize(("name", "size"), [("drain", 200), ("full", 6), ("mirrordisk", 1)])
def test_fault_in_its_own_process_breaks_no_promise(name: str, size: int) -> None:
    ended = as_program(name, size)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
def test_power_cut_loses_acknowledged_calls_only_without_flushes() -> None:
    ended = as_program("powercut", 2)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "cuts until the control lost" in ended.stdout


@pytest.mark.long
def test_greedy_client_delays_no_other() -> None:
    small("fairness", 2_000)


@pytest.mark.long
@needs_server
def test_machines_under_faults_give_no_wrong_response() -> None:
    ended = as_program("apart", 1, seconds=3)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
@needs_server
def test_wrong_post_order_is_detected() -> None:
    ended = as_program("apart", 5, seconds=4, bug="late-post")  # a short run may have no post that matters
    assert ended.returncode == 1 and "Diverged: " in ended.stderr, ended.stdout + ended.stderr


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_no_input_raises_an_exception(target: str) -> None:
    small("fuzz", 400, target)


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [
        ("first start", Fault("pwrite64", "EIO", 7)),
        ("first start", Fault("pwrite64", "EIO", 32)),
        ("first start", Fault("link", "KILL", 1)),
        ("append", Fault("fdatasync", "EIO", 2)),
        ("append", Fault("pwrite64", "ENOSPC", 1)),
        ("append", Fault("fdatasync", "KILL", 2)),
        ("upgrade", Fault("pwrite64", "KILL", 2)),
    ],
    ids=str,
)
def test_fault_at_one_system_call_breaks_no_promise(scenario: str, fault: Fault) -> None:
    try:
        need_strace()
        with workplace() as place:
            assert Sweep(place).point(next(each for each in SCENARIOS if each.name == scenario), fault), (
                "the fault occurred"
            )
    except Unavailable as missing:
        pytest.skip(str(missing))


def test_seed_repeats_run() -> None:
    first, second = simulate.run_seed(11), simulate.run_seed(11)
    assert [event.line for event in first.log.everything()] == [event.line for event in second.log.everything()]
    assert first.turns == second.turns


def test_judge_detects_half_call() -> None:
    events = simulate.run_seed(3).log.everything()
    last = next(place for place, event in enumerate(events) if event.remaining)
    with pytest.raises(Violation, match="half-applied"):
        simulate.group_calls(events[: last + 1])


def test_user_text_is_not_in_the_daemons_log(tmp_path: Path) -> None:
    canary = "canary-7f3a"
    with daemon_in(tmp_path) as daemon:
        daemon.start()
        link = daemon.connect()
        params = {
            "conversation": "c",
            "key": canary,
            "title": canary,
            "description": canary,
            "metadata": {canary: canary},
        }
        link.result("task.add", **params)
        link.result("message.append", conversation="c", role="user", content={canary: [canary]})
        changed = link.call("task.add", **{**params, "title": f"other {canary}"})
        assert changed["error"]["data"]["kind"] == "key_conflict"
        assert "error" in link.call("task.edit", conversation="c", task=canary, description=canary)
        assert "error" in link.call(canary, canary=canary)
        link.sock.sendall(canary.encode() + b"{\n")
        assert "error" in link.receive()
        daemon.kill()
        daemon.start()
        daemon.stop()
        assert "serving" in daemon.output() and canary not in daemon.output()
