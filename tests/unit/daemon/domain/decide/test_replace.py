"""list.replace."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import StatusChanged, TaskMoved
from punchlist_schemas.things import Link
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants


def replace(*tasks: dict[str, Any] | str, keep: bool = True) -> p.ListReplace:
    asked = tuple(p.NewTask(title=task) if isinstance(task, str) else p.NewTask(**task) for task in tasks)
    return p.ListReplace(conversation=CONVERSATION, tasks=asked, keep_unfinished=keep)


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    for title in "abc":
        recorder.add(title)
    return recorder


@pytest.mark.parametrize(
    ("titles", "keep", "order", "moves"),
    [
        ("abc", True, "abc", 0),
        ("cab", True, "cab", 1),
        ("cba", True, "cba", 2),
        ("xabc", True, "xabc", 0),
        ("axbc", True, "axbc", 0),
        ("abcx", True, "abcx", 0),
        ("xy", True, "abcxy", 0),
        ("xy", False, "xy", 0),
        ("cxa", True, "bcxa", 1),
        ("", False, "", 0),
        ("aab", False, "aab", 0),
    ],
)
def test_replacement_needs_few_moves(recorder: Recorder, titles: str, keep: bool, order: str, moves: int) -> None:
    decision = recorder.do(replace(*titles, keep=keep))
    assert "".join(recorder.titles()) == order
    assert sum(isinstance(event, TaskMoved) for event in decision.events) == moves
    check_invariants(recorder.state)


def test_ref_in_a_link_becomes_the_task_id(recorder: Recorder) -> None:
    links = (Link(kind="relates-to", to="b"), Link(kind="url", to="b"))
    recorder.do(replace({"title": "a", "links": links}, {"title": "new", "ref": "b"}))
    assert recorder.state.tasks["1"].links == (Link(kind="relates-to", to="4"), Link(kind="url", to="b"))


def test_same_list_again_changes_nothing(recorder: Recorder) -> None:
    tasks = ({"title": "x", "ref": "x", "blocked_by": ("a",)}, {"title": "y", "ref": "a", "parent": "x"})
    recorder.do(replace(*tasks))
    assert recorder.do(replace(*tasks)).events == ()


def test_kept_task_changes_only_in_passed_members() -> None:
    recorder = Recorder()
    recorder.add("a", description="old", owner="o", metadata={"k": 1})
    recorder.do(replace({"title": "a", "status": "in_progress", "description": "new", "metadata": {"n": 2}}))
    task = recorder.state.tasks["1"]
    assert (task.status, task.attempts, task.description) == ("in_progress", 1, "new")
    assert (task.owner, task.metadata) == ("o", {"k": 1, "n": 2})


def test_unnamed_finished_tasks_are_deleted(recorder: Recorder) -> None:
    recorder.set_status("1", "completed")
    recorder.do(replace("x"))
    assert recorder.titles() == ["b", "c", "x"]


def test_replacement_may_set_any_status(recorder: Recorder) -> None:
    recorder.set_status("1", "completed")
    decision = recorder.do(replace({"title": "a", "status": "paused"}, "b", "c"))
    assert decision.events == (StatusChanged("1", "completed", "paused"),)


def test_edges_and_parents_become_the_named_ones(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="1", add_blocked_by=("2",), parent="2"))
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="3", parent="1"))
    recorder.do(
        replace(
            {"title": "a", "ref": "a", "blocked_by": ("c",), "parent": "n"},
            {"title": "b", "ref": "b", "blocked_by": ("a",), "parent": "a"},
            {"title": "c", "ref": "c"},
            {"title": "new", "ref": "n"},
        )
    )
    tasks = recorder.state.tasks
    assert (tasks["1"].blocked_by, tasks["1"].parent) == (("3",), "4")
    assert (tasks["2"].blocked_by, tasks["2"].parent) == (("1",), "1")
    assert (tasks["3"].blocked_by, tasks["3"].parent) == ((), "1")
    check_invariants(recorder.state)


def test_children_of_a_dropped_task_move_up(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", parent="1", add_blocked_by=("3",)))
    recorder.do(replace({"title": "b", "ref": "b", "parent": "x"}, {"title": "x", "ref": "x"}, keep=False))
    assert recorder.state.tasks["2"].parent == "4"
    recorder.do(replace("b", keep=False))
    assert recorder.state.tasks["2"].parent is None
    check_invariants(recorder.state)


@pytest.mark.parametrize(
    ("tasks", "kind", "data"),
    [
        (({"title": "x", "ref": "r"}, {"title": "y", "ref": "r"}), "invalid_params", None),
        (({"title": "x", "blocked_by": ("9",)},), "not_found", {"what": "task", "id": "9"}),
        (({"title": "x", "parent": "1"},), "not_found", {"what": "task", "id": "1"}),
        (({"title": "x", "ref": "r", "parent": "r"},), "dependency_cycle", {"path": ["r", "r"]}),
        (
            ({"title": "a", "ref": "r", "blocked_by": ("s",)}, {"title": "x", "ref": "s", "blocked_by": ("r",)}),
            "dependency_cycle",
            {"path": ["1", "s", "1"]},
        ),
    ],
)
def test_invalid_replacement_changes_nothing(recorder: Recorder, tasks: Any, kind: str, data: Any) -> None:
    refusal = recorder.call(replace(*tasks, keep=False))
    assert isinstance(refusal, Rejection)
    assert refusal.kind == kind
    assert data in (None, refusal.data)
    assert recorder.ids() == ["1", "2", "3"]


def test_old_and_new_edges_can_form_a_cycle(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", add_blocked_by=("1",), parent="1"))
    refusal = recorder.call(replace({"title": "a", "blocked_by": ("2",)}))
    assert isinstance(refusal, Rejection)
    assert refusal.data == {"path": ["1", "2", "1"]}
    assert isinstance(recorder.call(replace({"title": "a", "parent": "2"})), Rejection)
