"""Equal tasks are kept instead of added again, with edges that don't close a cycle."""

import random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import title_key
from punchlist_testing.domain import CONVERSATION, Recorder, replay
from punchlistd.domain.responses import respond

C: dict[str, Any] = {"conversation": CONVERSATION}


def planned(recorder: Recorder, *tasks: p.NewTask) -> Any:
    """Return the response to a plan; check that it is the same after replaying the log."""
    call = p.TaskAddMany(**C, tasks=tasks, keep_equal=True)
    decision = recorder.do(call)
    answer = respond(call, recorder.state, decision.events, recorder.seq, decision)
    assert answer == respond(call, replay(CONVERSATION, recorder.facts), decision.events, recorder.seq)
    return answer


def new(title: str, **members: Any) -> p.NewTask:
    return p.NewTask(title=title, **members)


def rejected(recorder: Recorder, call: p.Mutation) -> str:
    decision = recorder.decide(call)
    assert isinstance(decision, Rejection)
    return decision.kind


def ids(answer: Any) -> list[str]:
    return [task.id for task in answer.tasks]


@pytest.mark.parametrize("title", ["fix login", " Fix  Login ", "FIX LOGIN.", "Fix login …", "Fix\u00a0login!?"])
def test_case_space_and_final_punctuation_are_ignored(recorder: Recorder, title: str) -> None:
    recorder.add("Fix login")
    answer = planned(recorder, new(title), new("Fix logout"))
    assert (ids(answer), answer.kept) == (["1", "2"], ("1",))


def test_punctuation_alone_is_a_title() -> None:
    assert title_key("?!") == "?!"


def test_finished_tasks_and_other_parents_are_not_equal(recorder: Recorder) -> None:
    recorder.add("tests", status="completed")
    recorder.add("Backend")
    recorder.add("tests", parent="2")
    answer = planned(recorder, new("tests"), new("tests", status="completed"))
    assert (ids(answer), answer.kept) == (["4", "5"], ())


def test_children_of_a_kept_parent_are_found(recorder: Recorder) -> None:
    steps = (new("tests", parent="b"), new("Backend", ref="b"), new("Frontend", ref="f"), new("tests", parent="f"))
    assert ids(planned(recorder, *steps)) == ["1", "2", "3", "4"]
    again = planned(recorder, *steps, new("docs", parent="f"))
    assert (ids(again), again.kept) == (["1", "2", "3", "4", "5"], ("1", "2", "3", "4"))
    assert recorder.state.tasks["5"].parent == "3"


def test_equal_tasks_of_one_call_stay_apart(recorder: Recorder) -> None:
    steps = (new("tests"), new("refactor"), new("tests"))
    assert ids(planned(recorder, *steps)) == ["1", "2", "3"]
    again = planned(recorder, *steps, new("tests"))
    assert (ids(again), again.kept) == (["1", "2", "3", "4"], ("1", "2", "3"))


def test_refs_lead_to_the_kept_task(recorder: Recorder) -> None:
    recorder.add("Fix login")
    answer = planned(recorder, new("fix login", ref="a"), new("Docs", blocked_by=("a",)))
    assert answer.tasks[1].blocked_by == ("1",)


def test_a_pending_kept_task_gets_the_edges(recorder: Recorder) -> None:
    recorder.add("Fix login")
    recorder.add("Fix logout", description="keep the cookie")
    planned(recorder, new("fix login", ref="a"), new("fix logout", description="other", blocked_by=("a",)))
    kept = recorder.state.tasks["2"]
    assert (kept.blocked_by, kept.description, kept.title) == (("1",), "keep the cookie", "Fix logout")


def test_kept_task_in_progress_gets_no_edge(recorder: Recorder) -> None:
    recorder.add("Fix login")
    recorder.add("Fix logout", status="in_progress")
    planned(recorder, new("Fix login", ref="a"), new("Fix logout", blocked_by=("a",)))
    assert recorder.state.tasks["2"].blocked_by == ()


def test_edges_of_kept_tasks_never_close_a_cycle(recorder: Recorder) -> None:
    recorder.add("one")
    recorder.add("two", blocked_by=("1",))
    answer = planned(recorder, new("two", ref="t"), new("one", blocked_by=("t",)), new("three", blocked_by=("t",)))
    assert [task.blocked_by for task in answer.tasks] == [("1",), (), ("2",)]


def test_a_cycle_within_the_call_is_still_rejected() -> None:
    tasks = (new("a", ref="a", blocked_by=("b",)), new("b", ref="b", blocked_by=("a",)))
    assert rejected(Recorder(), p.TaskAddMany(**C, tasks=tasks, keep_equal=True)) == "dependency_cycle"


def test_parents_in_a_circle_are_still_rejected() -> None:
    tasks = (new("a", ref="a", parent="b"), new("b", ref="b", parent="a"))
    assert rejected(Recorder(), p.TaskAddMany(**C, tasks=tasks, keep_equal=True)) == "dependency_cycle"


def test_one_added_task_is_kept_with_its_edges(recorder: Recorder) -> None:
    recorder.add("one")
    recorder.add("two")
    call = p.TaskAdd(**C, title="Two.", blocked_by=("1",), description="new", keep_equal=True)
    decision = recorder.do(call)
    answer: Any = respond(call, recorder.state, decision.events, recorder.seq)
    assert (answer.kept, answer.task.id, answer.task.blocked_by, answer.task.description) == (True, "2", ("1",), "")
    back = recorder.do(p.TaskAdd(**C, title="one", blocked_by=("2",), keep_equal=True))
    assert back.events == ()
    assert rejected(recorder, p.TaskAdd(**C, title="one", blocked_by=("9",), keep_equal=True)) == "not_found"


def test_added_task_without_equal_is_new(recorder: Recorder) -> None:
    recorder.add("two", status="failed")
    call = p.TaskAdd(**C, title="two", keep_equal=True)
    answer: Any = respond(call, recorder.state, recorder.do(call).events, recorder.seq)
    assert (answer.kept, answer.task.id) == (False, "2")


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_made_twice_adds_nothing(seed: int) -> None:
    chance = random.Random(seed)
    recorder = Recorder()
    for title in chance.choices("abc", k=3):
        recorder.add(title)
    steps = tuple(
        new(
            chance.choice(("a", "B", "c.", "d")),
            ref=f"r{number}",
            parent=chance.choice((None, *(f"r{other}" for other in range(8) if other > number))),
            blocked_by=tuple(f"r{other}" for other in range(number) if chance.random() < 0.2),
        )
        for number in range(8)
    )
    first = planned(recorder, *steps)
    before = dict(recorder.state.tasks)
    again = planned(recorder, *steps)
    assert set(ids(again)) == set(ids(first)) == set(again.kept)
    assert recorder.state.tasks == before
