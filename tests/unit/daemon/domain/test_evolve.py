"""The effect of each event."""

from typing import Any

import pytest
from msgspec import UNSET, Raw

from punchlist_schemas.events import (
    AddedTask,
    AnyEvent,
    Claimed,
    ConversationConfigured,
    ConversationOpened,
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    Released,
    StatusChanged,
    TaskAdded,
    TaskEdited,
    TaskMoved,
    UnknownEvent,
)
from punchlist_schemas.things import Task
from punchlist_testing.domain import Recorder, check_invariants, strip_stamps
from punchlistd.domain.state import State


def given(*events: AnyEvent) -> State:
    """Return the state after these events, whose times start at 1,000 and are one millisecond apart."""
    recorder = Recorder()
    for event in events:
        recorder.happen([event])
        recorder.at += 1
    check_invariants(recorder.state)
    return recorder.state


ONE = TaskAdded(AddedTask("1", "one"))
TWO = TaskAdded(AddedTask("2", "two", blocked_by=("1",)))
THREE = TaskAdded(AddedTask("3", "three", blocked_by=("2", "1"), parent="1"))


def members(task: Task, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(task, name) for name in names)


def test_added_task_has_its_stamps() -> None:
    task = given(ConversationOpened(), ONE).tasks["1"]
    assert members(task, "created_at", "updated_at", "status_changed_at", "version") == (1_001, 1_001, 1_001, 2)


def test_restored_task_keeps_its_age() -> None:
    task = given(TaskAdded(AddedTask("1", "t", created_at=5, status_changed_at=6))).tasks["1"]
    assert members(task, "created_at", "status_changed_at", "updated_at") == (5, 6, 1_000)


@pytest.mark.parametrize(
    "event",
    [
        TaskAdded(AddedTask("1", "again")),
        TaskEdited("9", title="x"),
        TaskMoved(task="9", rank="Z"),
        StatusChanged("9", "pending", "failed"),
        Deleted("9"),
        DependencyAdded("1", "9"),
        DependencyAdded("9", "1"),
        DependencyAdded("1", "1"),
        DependencyRemoved("9", "1"),
        Claimed("9", "o", 1),
        Released(task="9", owner="o", reason="expired"),
        UnknownEvent(Raw(b"{}")),
    ],
)
def test_event_about_unknown_task_changes_only_numbers(event: AnyEvent) -> None:
    before, after = given(ONE, TWO), given(ONE, TWO, event)
    assert strip_stamps(after) == strip_stamps(before)
    assert (after.version, after.updated_at) == (3, 1_002)


def test_unknown_relations_of_added_task_are_omitted() -> None:
    task = given(TaskAdded(AddedTask("1", "t", blocked_by=("1", "9"), parent="9"))).tasks["1"]
    assert (task.blocked_by, task.parent) == ((), None)


@pytest.mark.parametrize(("name", "following"), [("7", 8), ("007", 8), ("x", 1), ("9" * 15, 10**15), ("9" * 16, 1)])
def test_numbering_continues_after_the_largest_valid_id(name: str, following: int) -> None:
    assert given(TaskAdded(AddedTask(name, "t"))).next_task == following


def test_edge_is_visible_from_both_sides() -> None:
    state = given(ONE, TWO, THREE)
    assert members(state.tasks["3"], "blocked_by", "open_blockers") == (("1", "2"), ("1", "2"))
    assert [task.blocks for task in state.ordered()] == [("2", "3"), ("3",), ()]


def test_completed_blocker_leaves_the_dependents_stamps() -> None:
    state = given(ONE, TWO, THREE, StatusChanged("1", "pending", "completed"))
    assert [task.open_blockers for task in state.ordered()] == [(), (), ("2",)]
    assert members(state.tasks["2"], "version", "updated_at") == (2, 1_001)
    assert members(state.tasks["1"], "version", "updated_at", "status_changed_at") == (4, 1_003, 1_003)
    state = given(ONE, TWO, StatusChanged("1", "pending", "completed"), StatusChanged("1", "completed", "failed"))
    assert state.tasks["2"].open_blockers == ("1",)


def test_edge_to_completed_task_is_not_open() -> None:
    state = given(ONE, StatusChanged("1", "pending", "completed"), TWO, TaskAdded(AddedTask("3", "t")))
    assert state.tasks["2"].open_blockers == ()
    state = given(
        TaskAdded(AddedTask("1", "t", "completed")), TaskAdded(AddedTask("2", "t")), DependencyAdded("2", "1")
    )
    assert members(state.tasks["2"], "blocked_by", "open_blockers", "version") == (("1",), (), 3)


def test_edges_are_added_and_removed_once() -> None:
    state = given(ONE, TWO, DependencyAdded("2", "1"), DependencyRemoved("2", "1"), DependencyRemoved("2", "1"))
    assert members(state.tasks["2"], "blocked_by", "open_blockers", "version") == ((), (), 5)
    assert state.tasks["1"].blocks == ()


def test_deleted_task_leaves_its_children_to_its_parent() -> None:
    child = TaskAdded(AddedTask("4", "child", parent="3"))
    state = given(ONE, TWO, THREE, child, Deleted("3"))
    assert state.tasks["4"].parent == "1"
    assert [task.blocks for task in state.ordered()] == [("2",), (), ()]
    assert state.children("1") == ["4"]


def test_cycle_of_parents_does_no_harm() -> None:
    state = given(
        ONE, TaskAdded(AddedTask("2", "t", parent="1")), TaskEdited("1", parent="2"), TaskEdited("1", parent="1")
    )
    assert state.tasks["1"].parent == "2"
    assert (
        given(ONE, TaskAdded(AddedTask("2", "t", parent="1")), TaskEdited("1", parent="2"), Deleted("2"))
        .tasks["1"]
        .parent
        is None
    )


def test_edit_sets_named_members_and_merges_metadata() -> None:
    added = TaskAdded(AddedTask("1", "t", owner="o", metadata={"a": 1, "b": 2}))
    task = given(added, TaskEdited("1", title="u", metadata={"a": None, "c": 3})).tasks["1"]
    assert members(task, "title", "owner", "metadata") == ("u", "o", {"b": 2, "c": 3})


def test_move_can_be_reversed() -> None:
    assert [task.id for task in given(ONE, TWO, TaskMoved(task="2", before="1", rank="Z9")).ordered()] == ["2", "1"]
    state = given(ONE, TWO, TaskMoved(task="2", rank="Z9"), TaskMoved(task="2", rank=""))
    assert ([task.id for task in state.ordered()], state.ranks) == (["1", "2"], {})


def test_claim_starts_and_release_resets_a_task() -> None:
    task = given(ONE, Claimed("1", "ann", 500, attempts=1)).tasks["1"]
    assert members(task, "status", "owner", "attempts", "lease_expires_at") == ("in_progress", "ann", 1, None)
    assert task.status_changed_at == 1_001
    task = given(ONE, Claimed("1", "ann", 500, attempts=1), Claimed("1", "bob", 500)).tasks["1"]
    assert members(task, "owner", "attempts", "status_changed_at") == ("bob", 1, 1_001)
    released = Released(task="1", owner="ann", reason="expired")
    task = given(ONE, Claimed("1", "ann", 500, attempts=1), released).tasks["1"]
    assert members(task, "status", "owner", "attempts") == ("pending", "", 1)
    released = Released(task="1", owner="ann", reason="released", to="failed", attempts=4)
    task = given(ONE, Claimed("1", "ann", 500), released, released).tasks["1"]
    assert members(task, "status", "attempts", "status_changed_at") == ("failed", 4, 1_002)


def test_second_opening_resets_nothing() -> None:
    state = given(ConversationOpened("a", "ann"), ConversationOpened("b", "bob"))
    assert (state.title, state.user, state.created_at) == ("a", "ann", 1_000)


def test_configuration_sets_named_members() -> None:
    state = given(ConversationOpened("a"), ConversationConfigured(attached="s"), ConversationConfigured(title="b"))
    assert (state.title, state.sessions) == ("b", ("s",))
    assert ConversationConfigured().title is UNSET
