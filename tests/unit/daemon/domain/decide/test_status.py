"""task.set_status and the table of transitions."""

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ListCleared, StatusChanged
from punchlist_schemas.things import STATUSES, SettingsPatch, Status
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.commands import Decision

ILLEGAL = {("completed", "paused"), ("completed", "failed"), ("failed", "paused")}


@pytest.mark.parametrize("start", STATUSES)
@pytest.mark.parametrize("to", STATUSES)
def test_every_transition_but_three_is_legal(recorder: Recorder, start: Status, to: Status) -> None:
    recorder.add(status=start)
    answer = recorder.set_status("1", to)
    if (start, to) in ILLEGAL:
        assert isinstance(answer, Rejection)
        assert answer.kind == "illegal_transition"
        assert (answer.data["task"], answer.data["from"], answer.data["to"]) == ("1", start, to)
        assert to not in answer.data["allowed"]
        assert recorder.state.tasks["1"].status == start
    else:
        assert isinstance(answer, Decision)
        assert (answer.events == ()) == (start == to)
        assert recorder.state.tasks["1"].status == to


def test_unknown_task_is_rejected() -> None:
    refusal = Recorder().set_status("1", "completed")
    assert isinstance(refusal, Rejection)
    assert refusal.kind == "not_found"


@pytest.mark.parametrize("to", ["in_progress", "completed"])
def test_blocked_task_can_be_neither_started_nor_completed(recorder: Recorder, to: Status) -> None:
    recorder.add("first")
    recorder.add("second", blocked_by=("1",))
    refusal = recorder.set_status("2", to)
    assert isinstance(refusal, Rejection)
    blockers = [{"id": "1", "title": "first", "status": "pending"}]
    assert (refusal.kind, refusal.data) == ("blocked", {"task": "2", "blockers": blockers})
    assert isinstance(recorder.set_status("2", "paused"), Decision)
    recorder.set_status("1", "completed")
    assert isinstance(recorder.set_status("2", to), Decision)


def test_same_status_is_recorded_only_with_new_text(recorder: Recorder) -> None:
    recorder.add()
    recorder.set_status("1", "completed", result_summary="a")
    changed_at = recorder.state.tasks["1"].status_changed_at
    again = recorder.set_status("1", "completed", result_summary="a")
    other = recorder.set_status("1", "completed", result_summary="b")
    assert isinstance(again, Decision)
    assert isinstance(other, Decision)
    assert again.events == ()
    assert other.events == (StatusChanged("1", "completed", "completed", "b"),)
    task = recorder.state.tasks["1"]
    assert (task.result_summary, task.status_changed_at) == ("b", changed_at)


def test_starts_are_counted(recorder: Recorder) -> None:
    recorder.add()
    for status in ("in_progress", "paused", "in_progress", "failed", "in_progress", "pending", "in_progress"):
        recorder.set_status("1", status)
    assert recorder.state.tasks["1"].attempts == 3


def test_reopened_task_loses_its_result_and_reason(recorder: Recorder) -> None:
    recorder.add()
    recorder.set_status("1", "failed", fail_reason="no")
    assert recorder.state.tasks["1"].fail_reason == "no"
    recorder.set_status("1", "completed", result_summary="yes")
    assert (recorder.state.tasks["1"].fail_reason, recorder.state.tasks["1"].result_summary) == ("", "yes")
    recorder.set_status("1", "pending")
    assert recorder.state.tasks["1"].result_summary == ""


def test_auto_clear_follows_the_last_completion(recorder: Recorder) -> None:
    settings = SettingsPatch(auto_clear="when_done")
    recorder.do(p.ConversationOpen(conversation=CONVERSATION, settings=settings))
    recorder.add(status="failed")
    recorder.add()
    recorder.add()
    recorder.set_status("2", "completed")
    assert recorder.set_status("1", "completed") == Decision((StatusChanged("1", "failed", "completed"),))
    assert recorder.set_status("3", "completed") == Decision(
        (StatusChanged("3", "pending", "completed"), ListCleared())
    )
    assert recorder.add().id == "1"
