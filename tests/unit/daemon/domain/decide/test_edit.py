"""task.edit, task.delete and list.clear."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Deleted, DependencyAdded, DependencyRemoved, ListCleared, TaskEdited
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants
from punchlistd.domain.commands import Decision
from punchlistd.domain.decide.edit import MAX_METADATA_BYTES


def edit(task: str, **members: Any) -> p.TaskEdit:
    return p.TaskEdit(conversation=CONVERSATION, task=task, **members)


def delete(**members: Any) -> p.TaskDelete:
    return p.TaskDelete(conversation=CONVERSATION, **members)


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.add("one", description="d", priority="high", active_form="a", owner="o", metadata={"k": 1, "n": 0})
    recorder.add("two", parent="1")
    recorder.add("three", blocked_by=("2",))
    return recorder


@pytest.mark.parametrize("how", ["edit", "replace"])
def test_merged_metadata_stays_below_its_limit(recorder: Recorder, how: str) -> None:
    def merge(key: str, size: int) -> Decision | Rejection:
        metadata = {key: "x" * size}
        if how == "edit":
            return recorder.call(edit("1", metadata=metadata))
        asked = (p.NewTask(title="one", metadata=metadata),)
        return recorder.call(p.ListReplace(conversation=CONVERSATION, tasks=asked))

    for number in range(10):
        assert isinstance(merge(f"m{number}", 100_000), Decision)
    refused, before = merge("more", 100_000), recorder.state.tasks["1"]
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["limit"]) == ("limit_exceeded", "metadata_bytes")
    assert refused.data["value"] > refused.data["maximum"] == MAX_METADATA_BYTES
    recorder.do(edit("1", metadata={"m0": None}))
    assert set(before.metadata) - set(recorder.state.tasks["1"].metadata) == {"m0"}
    assert isinstance(merge("more", 100_000), Decision)


@pytest.mark.parametrize(
    ("members", "changes"),
    [
        ({}, None),
        ({"title": "one", "description": "d", "priority": "high", "parent": None, "metadata": {}}, None),
        ({"title": "uno", "owner": "o"}, {"title": "uno"}),
        (
            {"description": None, "active_form": None, "owner": None},
            {"description": "", "active_form": "", "owner": ""},
        ),
        ({"priority": None}, {"priority": "normal"}),
        ({"priority": "low"}, {"priority": "low"}),
        ({"metadata": {"k": 1, "new": [1], "gone": None}}, {"metadata": {"new": [1]}}),
        ({"metadata": {"k": None}}, {"metadata": {"k": None}}),
        ({"metadata": {"k": True, "n": False}}, {"metadata": {"k": True, "n": False}}),
        ({"metadata": None}, {"metadata": {"k": None, "n": None}}),
    ],
)
def test_only_what_changes_is_recorded(recorder: Recorder, members: Any, changes: dict[str, Any] | None) -> None:
    expected = () if changes is None else (TaskEdited("1", **changes),)
    assert recorder.decide(edit("1", **members)) == Decision(expected)


def test_metadata_merges_and_null_deletes_a_key(recorder: Recorder) -> None:
    recorder.do(edit("1", metadata={"k": None, "x": {"y": 1}}))
    assert recorder.state.tasks["1"].metadata == {"n": 0, "x": {"y": 1}}


def test_edge_can_be_reversed_in_one_call(recorder: Recorder) -> None:
    decision = recorder.do(edit("3", remove_blocked_by=("2",), add_blocks=("2",)))
    assert decision.events == (DependencyRemoved("3", "2"), DependencyAdded("2", "3"))
    decision = recorder.do(edit("3", remove_blocks=("2",), add_blocked_by=("2",)))
    assert decision.events == (DependencyRemoved("2", "3"), DependencyAdded("3", "2"))
    check_invariants(recorder.state)


def test_redundant_edge_changes_add_no_event(recorder: Recorder) -> None:
    recorder.do(edit("1", add_blocks=("3",)))
    members = {"add_blocked_by": ("2",), "remove_blocked_by": (), "remove_blocks": ("1",)}
    assert recorder.decide(edit("3", **members)) == Decision()
    assert recorder.decide(edit("1", add_blocks=("3",), remove_blocked_by=("2",))) == Decision()


@pytest.mark.parametrize(
    ("task", "members", "kind", "data"),
    [
        ("9", {}, "not_found", {"what": "task", "id": "9"}),
        ("1", {"parent": "9"}, "not_found", {"what": "task", "id": "9"}),
        ("1", {"add_blocks": ("9",)}, "not_found", {"what": "task", "id": "9"}),
        ("1", {"remove_blocked_by": ("9",)}, "not_found", {"what": "task", "id": "9"}),
        ("1", {"add_blocked_by": ("1",)}, "dependency_cycle", {"path": ["1", "1"]}),
        ("1", {"add_blocks": ("1",)}, "dependency_cycle", {"path": ["1", "1"]}),
        ("2", {"add_blocked_by": ("3",)}, "dependency_cycle", {"path": ["2", "3", "2"]}),
        ("3", {"add_blocks": ("2",)}, "dependency_cycle", {"path": ["3", "2", "3"]}),
        ("1", {"add_blocks": ("2",), "add_blocked_by": ("3",)}, "dependency_cycle", {"path": ["1", "3", "2", "1"]}),
        ("1", {"parent": "1"}, "dependency_cycle", {"path": ["1", "1"]}),
        ("1", {"parent": "2"}, "dependency_cycle", {"path": ["1", "2", "1"]}),
    ],
)
def test_rejected_edit_has_its_facts(recorder: Recorder, task: str, members: Any, kind: str, data: Any) -> None:
    refusal = recorder.call(edit(task, **members))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data) == (kind, data)


@pytest.mark.parametrize("side", ["blocked_by", "blocks"])
def test_adding_and_removing_one_edge_is_rejected(recorder: Recorder, side: str) -> None:
    refusal = recorder.decide(edit("1", **{f"add_{side}": ("3",), f"remove_{side}": ("3",)}))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data["field"]) == ("invalid_params", f"remove_{side}")


def test_deletion_drops_edges_and_moves_children_up(recorder: Recorder) -> None:
    recorder.add("four", parent="2")
    assert recorder.do(delete(task="2")).events == (Deleted("2"),)
    assert recorder.state.tasks["4"].parent == "1"
    assert recorder.state.tasks["3"].blocked_by == ()
    check_invariants(recorder.state)


def test_several_deletions_are_all_or_nothing(recorder: Recorder) -> None:
    refusal = recorder.call(delete(tasks=("1", "9")))
    assert isinstance(refusal, Rejection)
    assert refusal.data == {"what": "task", "id": "9"}
    assert recorder.do(delete(tasks=("3", "1", "3"))).events == (Deleted("3"), Deleted("1"))
    assert recorder.ids() == ["2"]


@pytest.mark.parametrize("members", [{}, {"task": "1", "tasks": ("2",)}])
def test_deletion_names_one_task_or_several(recorder: Recorder, members: Any) -> None:
    refusal = recorder.decide(delete(**members))
    assert isinstance(refusal, Rejection)
    assert refusal.kind == "invalid_params"


def test_clear_restarts_numbering_of_an_empty_list(recorder: Recorder) -> None:
    clear = p.ListClear(conversation=CONVERSATION)
    recorder.do(delete(tasks=("1", "2", "3")))
    recorder.do(clear)
    assert recorder.decide(clear) == Decision()
    assert recorder.add().id == "1"


def test_end_of_turn_clears_a_finished_idle_list(recorder: Recorder) -> None:
    end = p.TurnEnd(conversation=CONVERSATION)
    recorder.do(p.ConversationConfigure(conversation=CONVERSATION, settings=SettingsPatch(auto_clear="idle")))
    assert recorder.decide(end) == Decision(), "the list has unfinished tasks"
    recorder.do(delete(tasks=("2", "3")))
    recorder.set_status("1", "completed")
    assert recorder.do(end) == Decision((ListCleared(),))
    assert recorder.decide(end) == Decision(), "the list has no unfinished tasks"
    assert recorder.add().id == "1"
