"""Tasks with unfinished children, and headings."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Gate, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.commands import EndClaims
from punchlistd.domain.decide.claim import Supply, find_available
from punchlistd.domain.explain import explain

C: dict[str, Any] = {"conversation": CONVERSATION}
HEADING = {"heading": 2}


def claim(recorder: Recorder, task: str | None = None, owner: str = "ann") -> Any:
    return recorder.call(p.TaskClaim(**C, owner=owner, task=task))


def ready(recorder: Recorder) -> list[str]:
    return sorted(recorder.state.ready)


def test_task_with_open_child_is_not_claimable(recorder: Recorder) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    recorder.add("other")
    assert ready(recorder) == ["2", "3"]
    assert [event.task for event in claim(recorder).events] == ["2"]
    assert recorder.state.counts().ready == 1


def test_started_paused_parent_waits_for_its_children(recorder: Recorder) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    recorder.set_status("1", "paused")
    assert ready(recorder) == []
    recorder.set_status("1", "in_progress")
    assert recorder.state.tasks["1"].status == "pending"
    assert ready(recorder) == ["2"]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_manual_parent_becomes_ready_with_its_last_child(recorder: Recorder, status: Any) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    recorder.set_status("2", status)
    assert (recorder.state.tasks["1"].status, ready(recorder)) == ("pending", ["1"])


def test_claim_of_a_parent_names_its_open_children(recorder: Recorder) -> None:
    recorder.add("epic")
    for title in ("a", "b"):
        recorder.add(title, parent="1")
    refused = claim(recorder, "1")
    assert isinstance(refused, Rejection)
    assert (refused.kind, [one["id"] for one in refused.data["open_children"]]) == ("blocked", ["2", "3"])
    assert refused.message == "Task #1 has 2 open tasks: #2, #3. Work on those."


def test_parent_with_open_children_can_not_be_started(recorder: Recorder) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    refused = recorder.set_status("1", "in_progress")
    assert isinstance(refused, Rejection) and refused.message.startswith("Task #1 has 1 open task: #2.")


def test_completing_parent_names_open_children_unless_forced(recorder: Recorder) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    refused = recorder.set_status("1", "completed")
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["open_children"]) == (
        "illegal_transition",
        [{"id": "2", "title": "part", "status": "pending"}],
    )
    recorder.do(p.TaskSetStatus(**C, task="1", status="completed", force=True))
    assert [task.status for task in recorder.state.ordered()] == ["completed", "pending"]
    recorder.add("later")
    assert recorder.state.tasks["1"].status == "completed"


def test_parent_may_fail_with_open_children(recorder: Recorder) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    recorder.set_status("1", "failed")
    assert (recorder.state.tasks["1"].status, ready(recorder)) == ("failed", [])


@pytest.mark.parametrize("to", ["completed", "pending"])
def test_later_child_delays_no_response(recorder: Recorder, to: Any) -> None:
    recorder.add("epic", gate=Gate(yes=True))
    recorder.set_status("1", "completed")
    recorder.add("part", parent="1")
    recorder.do(p.TaskApprove(**C, task="1", accept=to == "completed", text="look again"))
    assert recorder.state.tasks["1"].status == to


def test_heading_is_neither_claimable_nor_started(recorder: Recorder) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(complete_parents="never")))
    recorder.add("Phase 1", metadata=HEADING)
    recorder.add("part", parent="1")
    recorder.set_status("2", "completed")
    for answer in (claim(recorder, "1"), recorder.set_status("1", "in_progress")):
        assert isinstance(answer, Rejection) and answer.data["heading"]
    assert (ready(recorder), claim(recorder).events) == ([], ())
    recorder.set_status("1", "completed")
    assert not recorder.state.remaining


def test_claimed_task_with_new_children_keeps_its_owner(recorder: Recorder) -> None:
    recorder.add("epic")
    given = claim(recorder, "1").events[0]
    recorder.add("part", parent="1")
    assert recorder.state.claims["1"].owner == "ann"
    recorder.do(p.TaskRelease(**C, task="1", owner="ann"))
    assert (given.task, ready(recorder)) == ("1", ["2"])


def test_started_task_with_new_children_is_not_claimable(recorder: Recorder) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(execution="serial")))
    recorder.add("epic")
    claim(recorder)
    recorder.add("part", parent="1")
    recorder.do(p.TaskRelease(**C, task="1", owner="ann"))
    assert recorder.state.tasks["1"].status == "in_progress"
    assert [task.id for task in find_available(recorder.state, 9, [])] == ["2"]
    assert Supply(recorder.state).take([], 9) == 1


def test_serial_list_continues_below_a_task_in_progress(recorder: Recorder) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(execution="serial")))
    recorder.add("epic")
    recorder.add("part", parent="1")
    assert [task.status for task in recorder.state.ordered()] == ["in_progress", "in_progress"]
    recorder.set_status("2", "completed")
    assert [task.status for task in recorder.state.ordered()] == ["in_progress", "completed"]


def test_child_waiting_for_parent_does_not_block_it(recorder: Recorder) -> None:
    recorder.add("design")
    recorder.add("build", parent="1", blocked_by=("1",))
    assert ready(recorder) == ["1"]
    recorder.set_status("1", "completed")
    assert ready(recorder) == ["2"]


def test_explanation_names_open_children_and_headings(recorder: Recorder) -> None:
    recorder.add("Phase 1", metadata=HEADING, blocked_by=())
    for title in ("a", "b"):
        recorder.add(title, parent="1")
    told = explain(recorder.state, recorder.state.tasks["1"])
    assert [(one.kind, one.of, one.by) for one in told.reasons] == [("child", "1", "2"), ("child", "1", "3")]
    assert not (told.ready or told.startable or told.completable)
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(complete_parents="never")))
    for task in ("2", "3"):
        recorder.set_status(task, "completed")
    told = explain(recorder.state, recorder.state.tasks["1"])
    assert [(one.kind, one.by) for one in told.reasons] == [("heading", "1")]


def test_abandoned_parent_is_not_offered(recorder: Recorder) -> None:
    recorder.add("epic")
    fence = claim(recorder) and recorder.state.claims["1"].fence
    recorder.add("part", parent="1")
    recorder.do(EndClaims(**C, claims=(("1", fence),), reason="restarted"))
    assert list(recorder.state.offered) == ["1"]
    assert [task.id for task in find_available(recorder.state, 9, [])] == ["2"]
    assert Supply(recorder.state).take([], 9) == 1


def test_cycle_through_a_parent_is_rejected(recorder: Recorder) -> None:
    recorder.do(p.TaskAdd(**C, title="A"))
    recorder.do(p.TaskAdd(**C, title="part", parent="1"))
    recorder.do(p.TaskAdd(**C, title="B", blocked_by=("1",)))
    calls: list[p.Mutation] = [
        p.TaskEdit(**C, task="2", add_blocked_by=("3",)),
        p.TaskEdit(**C, task="3", add_blocks=("2",)),
        p.TaskAdd(**C, title="C", parent="2", blocked_by=("3",)),
        p.TaskAddMany(**C, tasks=(p.NewTask(title="C", parent="1", blocked_by=("3",)),)),
    ]
    for call in calls:
        refused = recorder.call(call)
        assert isinstance(refused, Rejection) and refused.kind == "dependency_cycle", call
    story = (
        p.NewTask(title="Epic", ref="e"),
        p.NewTask(title="Story", ref="s", parent="e"),
        p.NewTask(title="Task", parent="s", blocked_by=("e",)),
    )
    for call in (p.TaskAddMany(**C, tasks=story), p.ListReplace(**C, tasks=story)):
        refused = recorder.call(call)
        assert isinstance(refused, Rejection) and refused.kind == "dependency_cycle", call
    assert not isinstance(recorder.call(p.TaskEdit(**C, task="2", add_blocked_by=("1",))), Rejection)


def test_heading_gets_no_owner(recorder: Recorder) -> None:
    recorder.add("Backend", metadata=HEADING)
    refused = recorder.call(p.TaskEdit(**C, task="1", owner="ann"))
    assert isinstance(refused, Rejection) and refused.data["field"] == "owner"
    assert not isinstance(recorder.call(p.TaskEdit(**C, task="1", owner=None)), Rejection)
