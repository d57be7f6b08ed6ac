"""Explanations of why a task or list is blocked, derived from the rules that decide calls."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Gate, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.explain import MAX_REASONS, explain
from punchlistd.domain.state import is_sent_back

C: dict[str, Any] = {"conversation": CONVERSATION}


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.add("a")
    recorder.add("b", blocked_by=("1",))
    recorder.add("c", blocked_by=("1", "2"))
    return recorder


def told(recorder: Recorder, task: str | None = None) -> list[tuple[int, str, str | None, str]]:
    found = explain(recorder.state, None if task is None else recorder.state.tasks[task])
    return [(reason.depth, reason.kind, reason.of, reason.by) for reason in found.reasons]


def test_causes_are_listed_once_below_their_effects(recorder: Recorder) -> None:
    recorder.do(p.TaskClaim(**C, task="1", owner="ann"))
    assert told(recorder, "3") == [
        (0, "blocker", "3", "1"),
        (1, "in_progress", "1", "1"),
        (0, "blocker", "3", "2"),
        (1, "blocker", "2", "1"),
    ]
    reasons = explain(recorder.state, recorder.state.tasks["3"]).reasons
    assert [reason.again for reason in reasons] == [False, False, False, True]
    assert (reasons[0].owner, reasons[0].attempts, reasons[0].status) == ("ann", 1, "in_progress")


def test_ready_task_has_a_place_and_no_reasons(recorder: Recorder) -> None:
    recorder.add("low", priority="low")
    found = explain(recorder.state, recorder.state.tasks["4"])
    assert (found.ready, found.ahead, found.next and found.next.id, found.reasons) == (True, 1, "1", ())
    assert (found.startable, found.completable) == (True, True)


def test_stopped_list_serial_list_and_paused_parent_explain(recorder: Recorder) -> None:
    recorder.add("d", parent="1")
    recorder.set_status("1", "failed", fail_reason="broken")
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(on_failure="stop")))
    assert told(recorder, "4") == [(0, "stopped", None, "1"), (0, "parent", "4", "1")]
    recorder.add("e")
    assert not explain(recorder.state, recorder.state.tasks["5"]).ready
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(execution="serial", on_failure="continue")))
    assert told(recorder, "4") == [(0, "serial", None, "5"), (0, "parent", "4", "1")]
    recorder.add("f")
    assert told(recorder, "6") == [(0, "serial", None, "5")]
    assert not explain(recorder.state, recorder.state.tasks["6"]).ready


def test_list_names_paused_tasks_and_blocking_failures(recorder: Recorder) -> None:
    recorder.set_status("1", "failed", fail_reason="broken")
    recorder.add("d")
    recorder.set_status("4", "paused")
    recorder.add("e")
    recorder.set_status("5", "failed")
    assert told(recorder) == [(0, "paused", "4", "4"), (0, "failed", "1", "1")]
    found = explain(recorder.state, None)
    assert (found.ready, found.next, found.reasons[1].fail_reason) == (False, None, "broken")


@pytest.mark.parametrize("status", ["in_progress", "completed"])
def test_offered_action_works(recorder: Recorder, status: Any) -> None:
    for task in ("1", "2", "3"):
        found = explain(recorder.state, recorder.state.tasks[task])
        may = found.startable if status == "in_progress" else found.completable
        refused = isinstance(recorder.set_status(task, status), Rejection)
        assert may != refused
        if status == "in_progress" and not refused:
            assert not explain(recorder.state, recorder.state.tasks[task]).startable


def test_reasons_above_the_limit_are_counted() -> None:
    recorder = Recorder()
    for _ in range(MAX_REASONS + 5):
        recorder.add()
    last = recorder.add(blocked_by=tuple(recorder.state.tasks))
    found = explain(recorder.state, last)
    assert (len(found.reasons), found.more) == (MAX_REASONS, 5)


def test_rejected_heading_is_named_without_open_tasks_below() -> None:
    recorder = Recorder()
    recorder.add("phase", metadata={"heading": 1}, gate=Gate(yes=True))
    recorder.add("part", parent="1")
    recorder.set_status("2", "completed")
    recorder.do(p.TaskApprove(**C, task="1", accept=False, text="Look again."), "ann")
    assert told(recorder) == [(0, "heading", "1", "1")]
    recorder.set_status("2", "pending")
    recorder.set_status("1", "pending", fail_reason="Look again.")
    assert is_sent_back(recorder.state.tasks["1"])
    assert told(recorder) == []


def test_waiting_empty_heading_is_not_named(recorder: Recorder) -> None:
    recorder.add("phase", metadata={"heading": 1}, blocked_by=("1",))
    assert recorder.state.tasks["4"].status == "pending"
    assert told(recorder) == []


def test_each_failure_is_named_once(recorder: Recorder) -> None:
    recorder.add("d", parent="1")
    recorder.set_status("1", "failed")
    assert told(recorder) == [(0, "failed", "1", "1")]
