"""Every harness in its small size, each time with another seed: `make NAME SEED=…` runs the same, and more of it."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from punchlist_faults import (
    chat,
    connections,
    crash,
    damage,
    fairness,
    fuzz,
    memory,
    restart,
    resume,
    simulate,
    soak,
    stuck,
    sweep,
    together,
)
from punchlist_faults.mounts import why_not
from punchlist_faults.options import Figures, Options, Unavailable, Violation, workplace
from punchlist_faults.process import daemon_in
from punchlist_faults.sweep import SCENARIOS, Fault, Sweep
from punchlist_testing.nats_server import needs_server


def small(run: Callable[[Options], Figures], size: int) -> Figures:
    seed = random.SystemRandom().randrange(1_000_000)
    try:
        return run(Options(seed, size))
    except Unavailable as missing:
        pytest.skip(str(missing))
    except Exception as error:
        raise AssertionError(f"SEED={seed} SIZE={size}: {error}") from error


def as_program(name: str, size: int, *programs: str, seconds: int = 0) -> str:
    """Run a harness that needs namespaces of its own, and return what it said."""
    if said := why_not(*programs):
        pytest.skip(said)
    path = os.pathsep.join(filter(None, sys.path))
    env = {**os.environ, "SIZE": str(size), "SECONDS": str(seconds or ""), "PYTHONPATH": path}
    ended = subprocess.run(
        [sys.executable, "-m", f"punchlist_faults.{name}"],
        env=env,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    if ": skipped: " in ended.stdout:
        pytest.skip(ended.stdout.strip())
    return ended.stdout


def test_what_was_acknowledged_survives_kill_9_once_and_whole() -> None:
    figures = small(crash.run, 3)
    assert figures["kills"] == 3 and figures["acked"] > 0


@pytest.mark.long
def test_what_was_acknowledged_survives_a_power_cut_and_without_flushes_it_would_not() -> None:
    assert "cuts until the control lost" in as_program("powercut", 2, "mkfs.ext4")


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
def test_a_fault_at_one_system_call_breaks_no_promise(scenario: str, fault: Fault) -> None:
    def run(_options: Options) -> Figures:
        with workplace() as place:
            struck = Sweep(place).point(next(each for each in SCENARIOS if each.name == scenario), fault)
        return {"struck": struck}

    if why := sweep.why_not():
        pytest.skip(why)
    assert small(run, 1)["struck"]


@pytest.mark.long
def test_spoiled_bytes_are_noticed_and_the_rest_is_served() -> None:
    assert small(damage.run, 24)["served beside a damaged one"] == damage.CONVERSATIONS - 1


@pytest.mark.long
def test_a_full_disk_or_quota_refuses_writes_and_a_failing_disk_ends_the_daemon() -> None:
    said = as_program("full", 6, "strace", "mkfs.ext4")
    assert "EIO: acks after the first          0" in said
    assert "quota: acked falsely               0" in said or "quota: skipped" in said


def test_a_stream_cut_at_any_byte_resumes_without_gap_or_repeat() -> None:
    assert small(resume.run, 40)["gaps"] == 0


def test_subscribers_that_stop_reading_cost_little() -> None:
    assert small(stuck.run, 20)["of them stuck"] == 10


@pytest.mark.long
def test_a_client_that_asks_for_all_it_can_holds_nobody_up_and_costs_little() -> None:
    assert small(fairness.run, 2_000)["exit code"] == 0


@pytest.mark.long
def test_idle_connections_cost_little() -> None:
    assert small(connections.run, 200)["idle"] == 200


@pytest.mark.long
def test_nothing_acknowledged_is_lost_when_memory_runs_out() -> None:
    assert small(memory.run, 1)["lost"] == 0


@pytest.mark.long
def test_a_killed_daemon_starts_and_answers_over_what_it_left() -> None:
    assert small(restart.run, 6_400)["kills"] == 1


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_no_input_gets_an_exception_out_of(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARGET", target)
    assert small(fuzz.run, 400)["broken rules"] == 0


def test_no_order_of_events_breaks_a_rule_in_virtual_time() -> None:
    assert small(simulate.run, 15)["violations"] == 0


def test_a_seed_gives_the_same_life_again() -> None:
    first, second = simulate.one(11), simulate.one(11)
    assert [event.line for event in first.log.everything()] == [event.line for event in second.log.everything()]
    assert first.turns == second.turns


@pytest.mark.long
def test_five_kinds_of_clients_work_one_list_and_no_edit_is_lost_or_doubled() -> None:
    assert small(together.run, 100)["operations"] == 100


@pytest.mark.long
def test_a_mirror_on_a_full_disk_or_one_without_power_keeps_whole_files_and_comes_right() -> None:
    assert "torn                               0" in as_program("mirrordisk", 1, "mkfs.ext4")


@pytest.mark.long
@needs_server
def test_whatever_befalls_three_machines_and_servers_no_answer_was_wrong() -> None:
    assert "violations                         0" in as_program("apart", 1, "ip", "nsenter", "mkfs.ext4", seconds=3)


@pytest.mark.long
def test_nothing_grows_while_clients_come_and_go() -> None:
    assert small(soak.run, 3)["rounds"] >= 2


def test_what_people_write_is_not_in_the_daemons_log(tmp_path: Path) -> None:
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
        assert (
            link.call("task.add", **{**params, "title": f"other {canary}"})["error"]["data"]["kind"] == "key_conflict"
        )
        assert "error" in link.call("task.edit", conversation="c", task=canary, description=canary)
        assert "error" in link.call(canary, canary=canary)
        link.sock.sendall(canary.encode() + b"{\n")
        assert "error" in link.receive()
        daemon.kill()
        daemon.start()
        assert daemon.stop() == 0
        assert "serving" in daemon.said() and canary not in daemon.said()


def test_a_disk_that_forgets_is_seen_by_the_judge() -> None:
    """The control of the controls: the judge does see a loss, a double and half a call."""
    with pytest.raises(Violation, match="half-applied"):
        events = simulate.one(3).log.everything()
        last = next(place for place, event in enumerate(events) if event.left)
        simulate.groups_in(events[: last + 1])


@pytest.mark.long
def test_a_killed_chat_changes_once_and_answers_once_and_truly() -> None:
    figures = small(chat.run, 5)
    assert figures["turns"] == 5
