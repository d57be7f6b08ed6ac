"""Serial lists: one task at a time; the end of one task starts the next."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import StatusChanged
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, strip_stamps
from punchlistd.domain.commands import Decision, EndClaims
from punchlistd.domain.explain import explain

C: dict[str, Any] = {"conversation": CONVERSATION}


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.do(p.ConversationOpen(**C, settings=SettingsPatch(execution="serial")))
    for title in "abc":
        recorder.add(title)
    return recorder


def configure(recorder: Recorder, **settings: Any) -> Any:
    return recorder.call(p.ConversationConfigure(**C, settings=SettingsPatch(**settings)))


def running(recorder: Recorder) -> list[str]:
    return list(recorder.state.running)


def test_task_added_to_an_idle_list_starts(recorder: Recorder) -> None:
    assert [len(group.facts) for group in recorder.history] == [1, 2, 1, 1]
    assert (running(recorder), recorder.state.tasks["1"].attempts) == (["1"], 1)


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_finished_task_starts_the_next_ready_one(recorder: Recorder, status: Any) -> None:
    recorder.do(p.TaskEdit(**C, task="2", add_blocked_by=("3",)))
    recorder.set_status("1", status)
    assert (running(recorder), len(recorder.history[-1].facts)) == (["3"], 2)


def test_deleted_task_starts_the_next_unpaused_one(recorder: Recorder) -> None:
    recorder.set_status("2", "paused")
    recorder.do(p.TaskDelete(**C, task="1"))
    assert running(recorder) == ["3"]


def test_second_start_is_rejected_with_the_running_task(recorder: Recorder) -> None:
    refused = recorder.set_status("2", "in_progress")
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["running"], refused.data["from"]) == ("illegal_transition", "1", "pending")
    assert "#1 'a' is in progress" in refused.message
    for call in (p.TaskAdd(**C, title="x", status="in_progress"), p.TaskClaim(**C, owner="o", task="2")):
        refused = recorder.call(call)
        assert isinstance(refused, Rejection)
        assert refused.data["running"] == "1"


def test_paused_task_resumes_after_another(recorder: Recorder) -> None:
    recorder.set_status("1", "paused")
    assert running(recorder) == []
    recorder.do(p.TaskDelete(**C, task="3"))
    assert running(recorder) == ["2"]
    recorder.set_status("2", "completed")
    recorder.set_status("1", "in_progress")
    assert running(recorder) == ["1"]


def test_reopened_current_task_does_not_restart(recorder: Recorder) -> None:
    recorder.set_status("1", "pending")
    assert running(recorder) == []


def test_failure_stops_the_queue_until_reopened(recorder: Recorder) -> None:
    configure(recorder, on_failure="stop")
    recorder.set_status("1", "failed")
    assert running(recorder) == []
    recorder.add("d")
    assert running(recorder) == []
    recorder.set_status("1", "pending")
    assert running(recorder) == ["1"]


def test_failed_task_is_retried_until_attempts_run_out(recorder: Recorder) -> None:
    configure(recorder, max_attempts=2)
    recorder.set_status("1", "failed", fail_reason="once")
    task = recorder.state.tasks["1"]
    assert (task.status, task.attempts, task.fail_reason) == ("in_progress", 2, "once")
    recorder.set_status("1", "failed", fail_reason="twice")
    assert (recorder.state.tasks["1"].status, running(recorder)) == ("failed", ["2"])


def test_failed_task_of_a_parallel_list_waits() -> None:
    recorder = Recorder()
    recorder.do(p.ConversationOpen(**C, settings=SettingsPatch(max_attempts=2)))
    recorder.add("a", status="in_progress")
    recorder.set_status("1", "failed", fail_reason="once")
    task = recorder.state.tasks["1"]
    assert (task.status, task.attempts, task.fail_reason) == ("pending", 1, "once")


def test_list_that_becomes_serial_starts_a_task() -> None:
    recorder = Recorder()
    recorder.add("a")
    assert len(configure(recorder, execution="serial").events) == 2
    assert running(recorder) == ["1"]


def test_failure_of_unstarted_task_is_no_attempt(recorder: Recorder) -> None:
    configure(recorder, max_attempts=2)
    recorder.set_status("3", "failed")
    assert recorder.state.tasks["3"].status == "failed"


def test_claim_returns_the_current_task_only(recorder: Recorder) -> None:
    recorder.do(p.TaskClaim(**C, owner="o"))
    assert (list(recorder.state.claims), recorder.state.tasks["1"].attempts) == (["1"], 1)
    assert recorder.do(p.TaskClaim(**C, owner="q", count=5)).events == ()
    fence = recorder.state.claims["1"].fence
    recorder.do(EndClaims(**C, claims=(("1", fence),), reason="expired"))
    assert (running(recorder), recorder.state.claims) == (["1"], {})
    recorder.do(p.TaskClaim(**C, owner="q"))
    assert recorder.state.tasks["1"].attempts == 2


def test_undone_completion_also_undoes_the_next_start(recorder: Recorder) -> None:
    before = strip_stamps(recorder.state)
    recorder.set_status("1", "completed")
    recorder.do(p.ListUndo(**C))
    assert strip_stamps(recorder.state) == before


def test_undo_starts_no_task(recorder: Recorder) -> None:
    recorder.set_status("1", "paused")
    before = strip_stamps(recorder.state)
    recorder.do(p.TaskDelete(**C, task="3"))
    assert running(recorder) == ["2"]
    recorder.do(p.ListUndo(**C))
    assert strip_stamps(recorder.state) == before


def test_undo_never_leaves_two_in_progress(recorder: Recorder) -> None:
    recorder.call(p.TaskSetStatus(**C, task="1", status="paused"), "ann")
    recorder.call(p.TaskSetStatus(**C, task="3", status="in_progress"), "bob")
    recorder.do(p.ListUndo(**C, actor="ann"))
    assert len(running(recorder)) == 1
    check_invariants(recorder.state)


def test_list_with_two_in_progress_cannot_become_serial(recorder: Recorder) -> None:
    configure(recorder, execution="manual")
    recorder.set_status("2", "in_progress")
    refused = configure(recorder, execution="serial")
    assert isinstance(refused, Rejection)
    assert refused.data["running"] == "1"
    recorder.set_status("1", "pending")
    assert isinstance(configure(recorder, execution="serial"), Decision)


def test_replacement_leaves_one_in_progress(recorder: Recorder) -> None:
    tasks = tuple(p.NewTask(title=title, status="in_progress") for title in "xyz")
    recorder.do(p.ListReplace(**C, tasks=tasks))
    assert len(running(recorder)) == 1


@pytest.fixture
def waiting(recorder: Recorder) -> Recorder:
    """A list where task 2 waited for task 1 and started when task 1 was completed."""
    recorder.do(p.TaskEdit(**C, task="2", add_blocked_by=("1",)))
    recorder.set_status("1", "completed")
    assert running(recorder) == ["2"]
    return recorder


def test_reopened_blocker_resets_the_task_it_started(waiting: Recorder) -> None:
    waiting.set_status("1", "pending")
    task = waiting.state.tasks["2"]
    assert (running(waiting), task.status, task.attempts) == (["1"], "pending", 0)
    waiting.set_status("1", "completed")
    assert running(waiting) == ["2"]


def test_new_blocker_resets_the_current_task(waiting: Recorder) -> None:
    waiting.do(p.TaskEdit(**C, task="2", owner="ann", add_blocked_by=("3",)))
    assert (running(waiting), waiting.state.tasks["2"].owner) == (["3"], "ann")


def test_claimed_task_keeps_owner_until_claim_ends(waiting: Recorder) -> None:
    waiting.do(p.TaskClaim(**C, owner="bot", task="2", keep=True))
    waiting.set_status("1", "pending")
    assert running(waiting) == ["2"]
    assert [(each.kind, each.by) for each in explain(waiting.state, waiting.state.tasks["2"]).reasons][:2] == [
        ("in_progress", "2"),
        ("blocker", "1"),
    ]
    waiting.do(p.TaskRelease(**C, owner="bot", task="2"))
    assert (running(waiting), waiting.state.tasks["2"].status) == (["1"], "pending")


def test_blocked_current_task_is_not_claimable(waiting: Recorder) -> None:
    waiting.happen((StatusChanged("1", "completed", "pending"),))  # as an earlier version left it
    refused = waiting.call(p.TaskClaim(**C, owner="bot", task="2"))
    assert isinstance(refused, Rejection) and refused.kind == "blocked"
    assert waiting.do(p.TaskClaim(**C, owner="bot")).events == ()


def test_claimed_task_keeps_its_attempts_when_blocked(waiting: Recorder) -> None:
    waiting.do(p.TaskClaim(**C, owner="bot", task="2", keep=True))
    waiting.do(EndClaims(**C, claims=(("2", waiting.state.claims["2"].fence),), reason="expired"))
    waiting.set_status("1", "pending")
    assert (waiting.state.tasks["2"].status, waiting.state.tasks["2"].attempts) == ("pending", 1)


def test_attempts_of_a_blocked_task_are_never_negative(waiting: Recorder) -> None:
    waiting.happen((StatusChanged("2", "in_progress", "pending", attempts=0),))
    waiting.happen((StatusChanged("2", "pending", "in_progress", attempts=0),))  # as an earlier version started it
    waiting.set_status("1", "pending")
    assert (waiting.state.tasks["2"].status, waiting.state.tasks["2"].attempts) == ("pending", 0)
