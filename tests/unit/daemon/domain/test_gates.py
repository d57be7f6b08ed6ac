"""Gates: a completed task waits for a check or an approval. Also the time spent on tasks."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ListCleared
from punchlist_schemas.things import Gate, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants
from punchlistd.domain.commands import Decision
from punchlistd.domain.explain import explain
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}


def gated(gate: Gate, **members: Any) -> Recorder:
    recorder = Recorder()
    recorder.add("deploy", gate=gate, **members)
    return recorder


def done(recorder: Recorder, result: str | None = "did it", actor: str = "agent") -> Any:
    return recorder.call(p.TaskSetStatus(**C, task="1", status="completed", result_summary=result), actor)


def answer(recorder: Recorder, actor: str = "ann", **members: Any) -> Any:
    return recorder.call(p.TaskApprove(**C, task="1", **members), actor)


def state(recorder: Recorder) -> tuple[str, str | None]:
    task = recorder.state.tasks["1"]
    check_invariants(recorder.state)
    return task.status, task.waits_for


def refused(answered: Decision | Rejection) -> str:
    assert isinstance(answered, Rejection)
    return answered.kind


def test_check_and_approval_come_before_completion() -> None:
    recorder = gated(Gate(check="tests", yes=True))
    recorder.add("after", blocked_by=("1",))
    done(recorder)
    assert state(recorder) == ("paused", "check")
    assert load_state(CONVERSATION, dump_state(recorder.state)).ordered() == recorder.state.ordered()
    assert refused(answer(recorder)) == "illegal_transition"
    answer(recorder, waits_for="check")
    assert state(recorder) == ("paused", "yes")
    assert not recorder.state.ready
    answer(recorder, text="looks right")
    assert state(recorder) == ("completed", None)
    task = recorder.state.tasks["1"]
    assert (task.result_summary, [note.text for note in task.notes]) == ("did it", ["looks right"])
    assert set(recorder.state.ready) == {"2"}
    assert answer(recorder) == Decision()


def test_rejected_task_is_pending_with_a_required_reason() -> None:
    recorder = gated(Gate(yes=True))
    done(recorder)
    assert refused(answer(recorder, accept=False, text=" ")) == "invalid_params"
    answer(recorder, accept=False, text="no tests")
    task = recorder.state.tasks["1"]
    assert (task.status, task.waits_for, task.fail_reason, task.result_summary) == ("pending", None, "no tests", "")
    recorder.do(p.ListUndo(**C))
    assert state(recorder) == ("paused", "yes")
    assert recorder.state.tasks["1"].result_summary == "did it"


@pytest.mark.parametrize(
    ("gate", "owner", "actor", "kind"),
    [
        (Gate(yes=True), "agent", "agent", "forbidden"),
        (Gate(yes=True), "agent", "ann", ""),
        (Gate(yes=True), "", "agent", ""),
        (Gate(by="ann"), "", "agent", "forbidden"),
        (Gate(by="ann"), "ann", "ann", ""),
    ],
)
def test_approver_is_not_owner_unless_gate_names_it(gate: Gate, owner: str, actor: str, kind: str) -> None:
    recorder = gated(gate, owner=owner)
    done(recorder)
    answered = answer(recorder, actor)
    assert (answered.kind if isinstance(answered, Rejection) else "") == kind
    assert state(recorder)[0] == ("paused" if kind else "completed")


def test_owner_can_not_remove_the_gate() -> None:
    recorder = gated(Gate(yes=True), owner="agent")
    for call in (
        p.TaskEdit(**C, task="1", gate=None),
        p.ListReplace(**C, tasks=(p.NewTask(title="deploy", gate=Gate(check="x")),)),
    ):
        assert refused(recorder.call(call, "agent")) == "forbidden"
    recorder.call(p.TaskEdit(**C, task="1", gate=None), "ann")
    done(recorder)
    assert state(recorder) == ("completed", None)


def test_completion_by_replacement_waits_at_the_gate() -> None:
    recorder = gated(Gate(yes=True))
    recorder.do(p.ListReplace(**C, tasks=(p.NewTask(title="deploy", status="completed"),)))
    assert state(recorder) == ("paused", "yes")
    assert recorder.state.tasks["1"].gate == Gate(yes=True)


def test_new_result_is_checked_again() -> None:
    recorder = gated(Gate(check="tests", yes=True))
    done(recorder)
    answer(recorder, waits_for="check")
    assert done(recorder).events == ()
    assert done(recorder, None).events == ()
    done(recorder, "better")
    assert state(recorder) == ("paused", "check")


def test_approval_of_an_old_result_is_rejected() -> None:
    recorder = gated(Gate(yes=True))
    done(recorder)
    shown = recorder.state.tasks["1"].version
    done(recorder, "something else")
    assert refused(answer(recorder, version=shown)) == "version_conflict"
    assert state(recorder) == ("paused", "yes")


def test_new_blockers_prevent_completion_at_the_gate() -> None:
    recorder = gated(Gate(yes=True))
    done(recorder)
    recorder.add("first", blocks=("1",))
    assert refused(answer(recorder)) == "blocked"


def test_serial_list_continues_and_clears_after_approval(recorder: Recorder) -> None:
    settings = SettingsPatch(execution="serial", auto_clear="when_done")
    recorder.do(p.ConversationOpen(**C, settings=settings))
    recorder.add("deploy", gate=Gate(yes=True))
    recorder.add("next")
    done(recorder)
    assert set(recorder.state.running) == {"2"}
    recorder.set_status("2", "completed")
    assert recorder.state.tasks
    assert any(isinstance(event, ListCleared) for event in answer(recorder).events)
    assert not recorder.state.tasks


@pytest.mark.parametrize("to", ["pending", "in_progress", "failed"])
def test_any_other_status_ends_the_wait(to: Any) -> None:
    recorder = gated(Gate(yes=True))
    done(recorder)
    recorder.set_status("1", to)
    assert state(recorder) == (to, None)


def test_explanation_names_the_gate() -> None:
    recorder = gated(Gate(check="tests"))
    done(recorder)
    (reason,) = explain(recorder.state, recorder.state.tasks["1"]).reasons
    assert (reason.kind, reason.gate) == ("check", Gate(check="tests"))


def test_gate_with_a_name_requires_that_approver() -> None:
    recorder = gated(Gate())
    done(recorder)
    assert state(recorder) == ("completed", None)
    named = gated(Gate(by="ann"))
    done(named)
    assert state(named) == ("paused", "yes")


def test_time_spent_never_decreases(
    recorder: Recorder,
) -> None:
    recorder.add("a")
    recorder.set_status("1", "in_progress")
    recorder.at += 993
    recorder.set_status("1", "paused")
    assert recorder.state.tasks["1"].spent_ms == 1_000
    recorder.do(p.ListUndo(**C))
    assert recorder.state.tasks["1"].spent_ms == 0
    recorder.at -= 500
    recorder.set_status("1", "completed")
    assert recorder.state.tasks["1"].spent_ms == 0
    recorder.add("b")
    recorder.do(p.TaskClaim(**C, task="2", owner="me"))
    recorder.do(p.TaskRelease(**C, task="2", owner="me"))
    recorder.do(p.TaskDelete(**C, task="2"))
    recorder.do(p.ListUndo(**C))
    assert recorder.state.tasks["2"].spent_ms == 7


def test_list_counts_tasks_that_wait_for_approval(recorder: Recorder) -> None:
    for _ in range(4):
        recorder.add("deploy", gate=Gate(yes=True))
    for name in "1234":
        recorder.call(p.TaskSetStatus(**C, task=name, status="completed"), "agent")
    waiting = [recorder.state.conversation_view().waiting]
    recorder.call(p.TaskApprove(**C, task="1"), "ann")
    recorder.call(p.TaskDelete(**C, task="2"), "ann")
    recorder.call(p.TaskSetStatus(**C, task="3", status="in_progress"), "ann")
    for current in (recorder.state, load_state(CONVERSATION, dump_state(recorder.state))):
        check_invariants(current)
        waiting.append(current.conversation_view().waiting)
    recorder.call(p.ListClear(**C), "ann")
    assert [*waiting, recorder.state.conversation_view().waiting] == [4, 1, 1, 0]


def test_blocked_list_names_its_gates() -> None:
    recorder = gated(Gate(yes=True))
    done(recorder)
    recorder.add("aside")
    recorder.call(p.TaskSetStatus(**C, task="2", status="paused"), "agent")
    told = explain(recorder.state, None)
    assert [(reason.kind, reason.by) for reason in told.reasons] == [("yes", "1"), ("paused", "2")]
