"""Tasks that need someone, as a list's card shows them."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.things import Gate, Need, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.state.needs import MAX_EDGES, MAX_FREED, MAX_NEEDS_SHOWN
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def needs(recorder: Recorder) -> tuple[Need, ...]:
    view = recorder.state.conversation_view()
    assert load_state(CONVERSATION, dump_state(recorder.state)).conversation_view().needs == view.needs
    return view.needs


def fail(recorder: Recorder, *tasks: str, reason: str = "") -> None:
    for task in tasks:
        recorder.at += 1
        recorder.set_status(task, "failed", fail_reason=reason)


def test_need_describes_its_task(recorder: Recorder) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(max_attempts=1)))
    recorder.add("deploy", gate=Gate(yes=True, by="ann"), owner="codex")
    recorder.add("build")
    recorder.set_status("1", "completed", result_summary="\n\n all\n\tgreen  " + "x" * 300)
    recorder.set_status("2", "in_progress")
    recorder.set_status("2", "failed", fail_reason="no\ndisk")
    question, failure = needs(recorder)
    task = recorder.state.tasks["1"]
    assert (question.id, question.kind, question.owner, question.by) == ("1", "yes", "codex", "ann")
    assert (question.title, question.since, question.version) == ("deploy", task.status_changed_at, task.version)
    assert question.text.startswith("all green xxx")
    assert len(question.text) <= 200
    assert (failure.kind, failure.text, failure.attempts, failure.max_attempts, failure.by) == (
        "failed",
        "no disk",
        1,
        1,
        "",
    )


def test_needs_are_sorted_by_kind_effect_and_age(recorder: Recorder) -> None:
    for gate in (Gate(check="tests"), None, None, Gate(yes=True), None):
        recorder.add("work", gate=gate)
    recorder.add("waits", blocked_by=("5",))
    recorder.add("waits too", blocked_by=("6",))
    recorder.set_status("1", "completed")
    fail(recorder, "3", "2", "5")
    recorder.set_status("4", "completed")
    assert [(need.id, need.kind, need.frees) for need in needs(recorder)] == [
        ("4", "yes", 0),
        ("5", "failed", 2),
        ("3", "failed", 0),
        ("2", "failed", 0),
        ("1", "check", 0),
    ]


def test_answered_task_leaves_the_needs(recorder: Recorder) -> None:
    for _ in range(4):
        recorder.add("work", gate=Gate(yes=True))
    fail(recorder, "1", "2")
    recorder.set_status("3", "completed")
    recorder.set_status("4", "completed")
    recorder.set_status("1", "pending")
    recorder.do(p.TaskDelete(**C, task="2"))
    recorder.do(p.TaskApprove(**C, task="3"), "ann")
    assert [need.id for need in needs(recorder)] == ["4"]
    recorder.do(p.ListClear(**C))
    assert needs(recorder) == ()


def test_new_dependent_brings_a_need_forward(recorder: Recorder) -> None:
    for _ in range(MAX_NEEDS_SHOWN + 2):
        recorder.add("work")
    fail(recorder, *recorder.ids())
    assert [need.id for need in needs(recorder)] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    recorder.add("waits", blocked_by=("10",))
    assert [need.id for need in needs(recorder)] == ["10", "1", "2", "3", "4", "5", "6", "7"]
    recorder.do(p.TaskEdit(**C, task="11", remove_blocked_by=("10",)))
    assert needs(recorder)[0].id == "1"


def test_freed_tasks_are_counted_once_and_to_a_limit(recorder: Recorder) -> None:
    recorder.add("root")
    recorder.add("left", blocked_by=("1",))
    recorder.add("right", blocked_by=("1",))
    recorder.add("both", blocked_by=("2", "3"))
    recorder.add("done", blocked_by=("1",), status="completed")
    recorder.add("waits for the finished one", blocked_by=("5",))
    fail(recorder, "1")
    assert [need.frees for need in needs(recorder)] == [3]
    for _ in range(MAX_FREED):
        recorder.add("more", blocked_by=("4",))
    assert [need.frees for need in needs(recorder)] == [MAX_FREED]


def test_count_stops_after_many_finished_dependents(recorder: Recorder) -> None:
    recorder.add("root")
    fail(recorder, "1")
    tasks = tuple(p.NewTask(title="done", status="completed", blocked_by=("1",)) for _ in range(MAX_EDGES))
    recorder.do(p.TaskAddMany(**C, tasks=tasks))
    recorder.add("waits", blocked_by=("1",))
    assert [need.frees for need in needs(recorder)] == [0]
