"""Consequences of a call: parents finish with their children and reopen with them."""

from random import Random
from typing import Any

import msgspec
import pytest

from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import StatusChanged, TaskEdited
from punchlist_schemas.things import FINISHED, Gate, SettingsPatch
from punchlist_testing.domain import (
    CONVERSATION,
    Recorder,
    check_invariants,
    check_parents,
    random_call,
    replay,
    strip_stamps,
)
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}
HEADING = {"heading": 2}
UNDO = p.ListUndo(**C)


def configure(recorder: Recorder, **settings: Any) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(**settings)))


def statuses(recorder: Recorder) -> dict[str, str]:
    return {task.id: task.status for task in recorder.state.ordered()}


@pytest.fixture
def plan(recorder: Recorder) -> Recorder:
    """A plan with two levels of headings: #1 over #2 over the tasks #3 and #4."""
    recorder.add("Plan", metadata={"heading": 1})
    recorder.add("Backend", parent="1", metadata=HEADING)
    recorder.add("schema", parent="2")
    recorder.add("tests", parent="2")
    return recorder


def test_headings_complete_with_their_last_task(plan: Recorder) -> None:
    plan.set_status("3", "completed")
    assert statuses(plan) == {"1": "pending", "2": "pending", "3": "completed", "4": "pending"}
    made = plan.set_status("4", "completed")
    assert set(statuses(plan).values()) == {"completed"}
    assert not isinstance(made, Rejection)
    assert [event.task for event in made.events if isinstance(event, StatusChanged)] == ["4", "2", "1"]


def test_heading_over_failed_task_fails_with_count(plan: Recorder) -> None:
    plan.set_status("3", "failed", fail_reason="no disk")
    plan.set_status("4", "completed")
    backend, top = plan.state.tasks["2"], plan.state.tasks["1"]
    assert (backend.status, backend.fail_reason) == ("failed", "1 of 2 tasks failed")
    assert (top.status, top.fail_reason) == ("failed", "1 of 1 task failed")
    plan.set_status("3", "completed")
    assert set(statuses(plan).values()) == {"completed"}


def test_retried_task_fails_no_heading(plan: Recorder) -> None:
    configure(plan, max_attempts=2)
    plan.set_status("3", "completed")
    plan.set_status("4", "in_progress")
    plan.set_status("4", "failed")
    assert statuses(plan) == {"1": "pending", "2": "pending", "3": "completed", "4": "pending"}


@pytest.mark.parametrize(
    "call",
    [
        p.TaskSetStatus(**C, task="4", status="pending"),
        p.TaskAdd(**C, title="more", parent="2"),
        p.TaskEdit(**C, task="5", parent="2"),
    ],
)
def test_new_task_reopens_its_headings(plan: Recorder, call: Any) -> None:
    plan.add("elsewhere")
    for task in ("3", "4"):
        plan.set_status(task, "completed")
    before = strip_stamps(plan.state)
    plan.do(call)
    assert (statuses(plan)["1"], statuses(plan)["2"]) == ("pending", "pending")
    plan.do(UNDO)
    assert strip_stamps(plan.state) == before


def test_open_tasks_moved_up_reopen_heading(plan: Recorder) -> None:
    plan.add("group", parent="2")
    plan.add("part", parent="5")
    plan.do(p.TaskSetStatus(**C, task="5", status="completed", force=True))
    for task in ("3", "4"):
        plan.set_status(task, "completed")
    assert statuses(plan)["2"] == "completed"
    plan.do(p.TaskDelete(**C, task="5"))
    assert (plan.state.tasks["6"].parent, statuses(plan)["2"], statuses(plan)["1"]) == ("2", "pending", "pending")


@pytest.mark.parametrize(
    "call", [p.TaskDelete(**C, task="4"), p.TaskEdit(**C, task="4", parent=None), p.TaskEdit(**C, task="4", parent="1")]
)
def test_heading_completes_when_last_open_task_leaves(plan: Recorder, call: Any) -> None:
    plan.set_status("3", "completed")
    plan.do(call)
    assert statuses(plan)["2"] == "completed"


def test_empty_heading_is_completed(plan: Recorder) -> None:
    plan.do(p.TaskDelete(**C, tasks=("3", "4")))
    assert statuses(plan) == {"1": "completed", "2": "completed"}


def test_undone_completion_reopens_the_heading_another_completed(plan: Recorder) -> None:
    plan.call(p.TaskSetStatus(**C, task="3", status="completed"), "ann")
    plan.call(p.TaskSetStatus(**C, task="4", status="completed"), "bob")
    plan.do(p.ListUndo(**C, of="ann"))
    assert statuses(plan) == {"1": "pending", "2": "pending", "3": "pending", "4": "completed"}


def test_heading_can_not_be_reopened_alone(plan: Recorder) -> None:
    for task in ("3", "4"):
        plan.set_status(task, "completed")
    refused = plan.set_status("2", "pending")
    assert isinstance(refused, Rejection) and "Reopen one of those" in refused.message


def test_every_parent_completes_with_auto(recorder: Recorder) -> None:
    configure(recorder, complete_parents="auto")
    recorder.add("epic")
    recorder.add("part", parent="1")
    recorder.set_status("2", "completed")
    assert statuses(recorder) == {"1": "completed", "2": "completed"}


def test_no_parent_completes_with_never(plan: Recorder) -> None:
    configure(plan, complete_parents="never")
    for task in ("3", "4"):
        plan.set_status(task, "completed")
    assert (statuses(plan)["1"], statuses(plan)["2"]) == ("pending", "pending")


def test_changed_setting_completes_finished_parents(recorder: Recorder) -> None:
    recorder.add("epic")
    recorder.add("part", parent="1")
    recorder.set_status("2", "completed")
    configure(recorder, complete_parents="auto")
    assert statuses(recorder)["1"] == "completed"


def test_claimed_parent_is_left_to_its_owner(recorder: Recorder) -> None:
    configure(recorder, complete_parents="auto")
    recorder.add("epic")
    recorder.do(p.TaskClaim(**C, owner="ann", task="1"))
    recorder.add("part", parent="1")
    recorder.set_status("2", "completed")
    assert recorder.state.claims["1"].owner == "ann"
    recorder.do(p.TaskRelease(**C, owner="ann", task="1"))
    assert statuses(recorder)["1"] == "completed"


def test_gated_parent_waits_for_approval(recorder: Recorder) -> None:
    configure(recorder, complete_parents="auto")
    recorder.add("epic", gate=Gate(yes=True))
    recorder.add("part", parent="1")
    recorder.set_status("2", "completed")
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].waits_for) == ("paused", "yes")
    recorder.do(p.TaskApprove(**C, task="1", accept=False, text="no docs"))
    assert (statuses(recorder)["1"], recorder.state.ready) == ("pending", {"1"})
    recorder.add("docs", parent="1")
    assert recorder.state.ready == {"3"}
    recorder.set_status("3", "completed")
    assert recorder.state.tasks["1"].waits_for == "yes"
    recorder.set_status("3", "pending")
    assert (statuses(recorder)["1"], recorder.state.ready) == ("pending", {"3"})


def test_a_blocked_heading_completes_when_its_blocker_does(plan: Recorder) -> None:
    plan.add("review")
    plan.do(p.TaskEdit(**C, task="2", add_blocked_by=("5",)))
    for task in ("3", "4"):
        plan.set_status(task, "completed")
    assert statuses(plan)["2"] == "pending"
    plan.set_status("5", "completed")
    assert statuses(plan)["1"] == statuses(plan)["2"] == "completed"


def test_list_clears_with_the_last_task_below_headings(plan: Recorder) -> None:
    configure(plan, auto_clear="when_done")
    plan.set_status("3", "completed")
    before = strip_stamps(plan.state)
    plan.set_status("4", "completed")
    assert plan.ids() == []
    assert plan.state.last_finished is not None and plan.state.last_finished.id == "4"
    plan.do(UNDO)
    assert strip_stamps(plan.state) == before
    done = {"method": "task.set_status", "task": "4", "status": "completed"}
    plan.do(msgspec.convert({**C, "changes": [done]}, ListApply))
    assert plan.ids() == []


def test_headings_in_old_log_complete_with_next_change(plan: Recorder) -> None:
    old = [StatusChanged(task, "pending", "completed") for task in ("3", "4")]
    plan.happen(old)  # an older daemon didn't have this rule
    assert statuses(plan)["1"] == "pending"
    plan.state = load_state(CONVERSATION, dump_state(replay(CONVERSATION, plan.facts)))
    plan.add("something else")
    assert (statuses(plan)["1"], statuses(plan)["2"]) == ("completed", "completed")


def test_cycle_of_parents_ends(recorder: Recorder) -> None:
    configure(recorder, complete_parents="auto")
    for number in ("1", "2"):
        recorder.add(number, metadata=HEADING)
    recorder.happen([TaskEdited("1", parent="2"), TaskEdited("2", parent="1")])  # no call can create this cycle
    recorder.add("part", parent="1")
    recorder.set_status("3", "completed")
    check_invariants(recorder.state)


@pytest.mark.parametrize("_round", range(30))
def test_random_scripts_keep_parents_consistent(_round: int) -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    random, recorder = Random(seed), Recorder()
    for _ in range(80):
        before = len(recorder.facts)
        kind = random.random()
        if kind < 0.1:
            recorder.call(p.ListUndo(**C, of=random.choice((None, "ann", "bob")), redo=random.random() < 0.3))
        elif kind < 0.15 and recorder.state.tasks:
            recorder.call(p.TaskClaim(**C, owner="ann"), "ann")
        else:
            recorder.call(random_call(random, recorder.state), random.choice(("ann", "bob")))
        check_invariants(recorder.state)
        if len(recorder.facts) > before:
            check_parents(recorder.state)
        for task in recorder.state.tasks.values():
            assert task.id not in recorder.state.ready or not any(
                other.parent == task.id and other.status not in FINISHED and task.id not in other.open_blockers
                for other in recorder.state.tasks.values()
            )
    assert dump_state(replay(CONVERSATION, recorder.facts)) == dump_state(recorder.state)


def test_undo_restores_a_forced_heading(plan: Recorder) -> None:
    plan.do(p.TaskSetStatus(**C, task="2", status="completed", force=True))
    before = strip_stamps(plan.state)
    plan.do(p.TaskDelete(**C, task="2"))
    plan.do(UNDO)
    assert strip_stamps(plan.state) == before
