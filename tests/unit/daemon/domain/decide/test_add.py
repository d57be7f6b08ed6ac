"""task.add and task.add_many."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationOpened, TaskAdded
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants


def new(title: str = "t", **members: Any) -> p.NewTask:
    return p.NewTask(title=title, **members)


def many(*tasks: dict[str, Any]) -> p.TaskAddMany:
    return p.TaskAddMany(conversation=CONVERSATION, tasks=tuple(new(**task) for task in tasks))


def add(**members: Any) -> p.TaskAdd:
    return p.TaskAdd(conversation=CONVERSATION, title="new", **members)


def refused_by(recorder: Recorder, params: p.Mutation) -> Rejection:
    refusal = recorder.call(params)
    assert isinstance(refusal, Rejection), refusal
    return refusal


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    for title in ("one", "two", "three"):
        recorder.add(title)
    return recorder


def test_first_task_opens_its_conversation() -> None:
    recorder = Recorder()
    decision = recorder.do(add())
    assert [type(event) for event in decision.events] == [ConversationOpened, TaskAdded]
    assert recorder.state.tasks["1"].version == 2


def test_ids_count_up_and_are_never_reused(recorder: Recorder) -> None:
    recorder.do(p.TaskDelete(conversation=CONVERSATION, task="3"))
    assert recorder.add().id == "4"


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ({}, ["1", "2", "3", "4"]),
        ({"before": "1"}, ["4", "1", "2", "3"]),
        ({"before": "3"}, ["1", "2", "4", "3"]),
        ({"after": "1"}, ["1", "4", "2", "3"]),
        ({"after": "3"}, ["1", "2", "3", "4"]),
    ],
)
def test_task_is_added_at_the_requested_place(recorder: Recorder, place: dict[str, str], order: list[str]) -> None:
    recorder.add(**place)
    assert recorder.ids() == order


def test_task_after_the_last_one_needs_no_rank(recorder: Recorder) -> None:
    recorder.add(after="3")
    assert recorder.state.ranks == {}


def test_edges_can_be_given_from_both_sides(recorder: Recorder) -> None:
    task = recorder.add(blocked_by=("2", "1", "2"), blocks=("3",), parent="1")
    assert (task.blocked_by, task.blocks, task.parent) == (("1", "2"), ("3",), "1")
    assert recorder.state.tasks["3"].blocked_by == ("4",)
    check_invariants(recorder.state)


def test_a_task_added_in_progress_counts_as_started(recorder: Recorder) -> None:
    assert recorder.add(status="in_progress").attempts == 1
    assert recorder.add().attempts == 0


def test_null_in_new_metadata_is_dropped(recorder: Recorder) -> None:
    assert recorder.add(metadata={"a": 1, "b": None}).metadata == {"a": 1}


@pytest.mark.parametrize("member", ["parent", "before", "after", "blocked_by", "blocks"])
def test_unknown_task_is_rejected(recorder: Recorder, member: str) -> None:
    value = ("9",) if member.startswith("block") else "9"
    refusal = recorder.decide(add(**{member: value}))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data) == ("not_found", {"what": "task", "id": "9"})


def test_before_and_after_together_are_rejected(recorder: Recorder) -> None:
    refusal = recorder.decide(add(before="1", after="2"))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data["field"]) == ("invalid_params", "after")


def test_task_between_blocker_and_dependent_is_cycle(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", add_blocked_by=("1",)))
    refusal = recorder.decide(add(blocked_by=("2",), blocks=("1",)))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data) == ("dependency_cycle", {"path": ["4", "2", "1", "4"]})
    assert isinstance(recorder.decide(add(blocked_by=("1",), blocks=("1",))), Rejection)


def test_tasks_in_one_call_may_reference_each_other(recorder: Recorder) -> None:
    recorder.do(
        many({"ref": "a", "blocked_by": ("b", "1"), "parent": "c"}, {"ref": "b"}, {"ref": "c", "blocked_by": ("b",)})
    )
    a, b, c = (recorder.state.tasks[name] for name in ("4", "5", "6"))
    assert (a.blocked_by, a.parent) == (("1", "5"), "6")
    assert b.blocks == ("4", "6")
    assert c.blocked_by == ("5",)
    check_invariants(recorder.state)


def test_ref_wins_over_an_equal_id(recorder: Recorder) -> None:
    recorder.do(many({"ref": "1"}, {"blocked_by": ("1",)}))
    assert recorder.state.tasks["5"].blocked_by == ("4",)


@pytest.mark.parametrize(
    ("tasks", "kind", "data"),
    [
        (({"ref": "a"}, {"ref": "a"}), "invalid_params", {"field": "ref", "expected": "a unique ref for each task"}),
        (({"blocked_by": ("x",)},), "not_found", {"what": "task", "id": "x"}),
        (({"parent": "x"},), "not_found", {"what": "task", "id": "x"}),
        (({"ref": "a", "blocked_by": ("a",)},), "dependency_cycle", {"path": ["a", "a"]}),
        (
            ({"ref": "a", "blocked_by": ("b",)}, {"ref": "b", "blocked_by": ("a",)}),
            "dependency_cycle",
            {"path": ["a", "b", "a"]},
        ),
        (({"ref": "a", "parent": "b"}, {"ref": "b", "parent": "a"}), "dependency_cycle", {"path": ["a", "b", "a"]}),
    ],
)
def test_invalid_batch_adds_nothing(tasks: Any, kind: str, data: dict[str, Any]) -> None:
    recorder = Recorder()
    refusal = recorder.call(many({"title": "fine"}, *tasks))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data) == (kind, data)
    assert recorder.state.tasks == {}


def test_update_changes_only_passed_members(recorder: Recorder) -> None:
    recorder.do(p.TaskSetStatus(conversation=CONVERSATION, task="2", status="completed", result_summary="was it"))
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", description="old", labels=("a",), owner="ann"))
    recorder.do(
        many(
            {"title": "four", "ref": "x", "parent": "y", "blocked_by": ("y",)},
            {"title": "two!", "ref": "y", "task": "2", "labels": ("b",), "blocked_by": ("1",), "notes": ("n", "m")},
        )
    )
    two = recorder.state.tasks["2"]
    assert (two.title, two.status, two.result_summary) == ("two!", "completed", "was it")
    assert (two.description, two.labels, two.owner, two.blocked_by) == ("old", ("b",), "ann", ("1",))
    assert [note.text for note in two.notes] == ["n", "m"]
    assert (recorder.state.tasks["4"].parent, recorder.state.tasks["4"].blocked_by) == ("2", ("2",))
    again = recorder.do(many({"title": "two!", "task": "2", "labels": ("b",), "blocked_by": ("1",)}))
    assert again.events == ()
    check_invariants(recorder.state)


def test_status_is_updated_unless_the_task_is_claimed(recorder: Recorder) -> None:
    recorder.do(p.TaskClaim(conversation=CONVERSATION, task="1", owner="ann"))
    recorder.do(many(*({"title": t, "task": n, "status": "completed"} for t, n in (("one", "1"), ("two", "2")))))
    assert [recorder.state.tasks[task].status for task in "12"] == ["in_progress", "completed"]


@pytest.mark.parametrize(
    ("tasks", "kind"),
    [
        (({"task": "9"},), "not_found"),
        (({"task": "1"}, {"task": "1"}), "invalid_params"),
        (({"task": "1", "blocked_by": ("2",)}, {"task": "2", "blocked_by": ("1",)}), "dependency_cycle"),
        (({"task": "1", "parent": "2"}, {"task": "2", "parent": "1"}), "dependency_cycle"),
        (({"task": "1", "notes": ("x" * 8_192,) * 33},), "limit_exceeded"),
        (({"notes": ("x" * 8_192,) * 33},), "limit_exceeded"),
        (({"task": "1", "metadata": {"k": "x" * (1 << 20)}},), "limit_exceeded"),
    ],
)
def test_updates_are_all_or_nothing(recorder: Recorder, tasks: Any, kind: str) -> None:
    before = recorder.state.version
    refused = refused_by(recorder, many({"title": "another"}, *tasks))
    assert (refused.kind, recorder.state.version) == (kind, before)


def test_cycle_error_names_its_path(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", add_blocked_by=("1",)))
    told = [
        refused_by(recorder, p.TaskEdit(conversation=CONVERSATION, task="1", add_blocked_by=(other,))).message
        for other in ("1", "2")
    ]
    assert told == [
        "Task #1 can't wait for itself or be its own parent.",
        "This would create the cycle #1 → #2 → #1; drop one of these dependencies or parents.",
    ]


def test_cycle_through_an_old_edge_is_rejected(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", add_blocked_by=("1",)))
    refused = refused_by(recorder, many({"title": "one", "task": "1", "ref": "x", "blocked_by": ("2",)}))
    assert refused.kind == "dependency_cycle"


def test_replacement_keeps_named_task_with_new_title(recorder: Recorder) -> None:
    asked = (new("two", task="1", notes=("n",)), new("two"))
    recorder.do(p.ListReplace(conversation=CONVERSATION, tasks=asked, keep_unfinished=False))
    assert [(task.id, task.title) for task in recorder.state.ordered()] == [("1", "two"), ("2", "two")]
    assert [note.text for note in recorder.state.tasks["1"].notes] == ["n"]
    for wrong in (("9",), ("1", "1")):
        tasks = tuple(new("x", task=task) for task in wrong)
        assert refused_by(recorder, p.ListReplace(conversation=CONVERSATION, tasks=tasks)).kind == "not_found"
