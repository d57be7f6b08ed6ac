"""The table of a task's members and the wire structs agree."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from punchlist_schemas.events import AddedTask, TaskAdded, TaskEdited
from punchlist_schemas.params import NewTask, TaskEdit
from punchlist_schemas.params import TaskAdd as TaskAddParams
from punchlist_schemas.things import Gate, Link, Note, Task
from punchlistd.domain.decide.add import build_task
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import initial_state
from punchlistd.domain.state.members import EDITABLE, MEMBERS, RARE, RESTORABLE, STORED
from punchlistd.domain.state.snapshot import dump_state, load_state

FIRST = (
    "id title status priority description active_form owner parent blocked_by blocks open_blockers metadata "
    "result_summary fail_reason attempts lease_expires_at created_at updated_at status_changed_at version"
).split()


def test_snapshot_starts_with_the_first_versions_members() -> None:
    assert list(STORED[: len(FIRST)]) == FIRST
    assert STORED[len(FIRST) :] == tuple(name for name in STORED if name not in FIRST)


@pytest.mark.parametrize("name", EDITABLE)
def test_editable_members_agree_in_events_and_calls(name: str) -> None:
    for struct in (TaskEdit, TaskEdited, AddedTask, TaskAddParams, NewTask):
        assert name in struct.__struct_fields__
    assert MEMBERS[name].restorable and MEMBERS[name].stored


def test_restorable_members_are_members_of_tasks() -> None:
    assert set(RESTORABLE) == set(AddedTask.__struct_fields__)


def test_rare_members_default_to_false_in_every_struct() -> None:
    for name in RARE:
        assert not MEMBERS[name].default
        for struct in (AddedTask, Task):
            field = next(each for each in msgspec.structs.fields(struct) if each.name == name)
            assert not field.required


OTHER: dict[str, Any] = {
    "status": "in_progress",
    "priority": "high",
    "metadata": {"a": 1},
    "attempts": 2,
    "created_at": 5,
    "status_changed_at": 6,
    "due": 7,
    "not_before": 1 << 50,
    "labels": ("l",),
    "links": (Link(kind="url", to="https://example.org"),),
    "estimate_ms": 8,
    "notes": (Note(version=1, at=1, actor="a", text="n"),),
    "gate": Gate(yes=True),
    "waits_for": "yes",
    "spent_ms": 9,
    "due_day": "2026-01-01",
    "not_before_day": "2099-01-01",
    "blocked_by": ("2",),
    "blocks": ("3",),
    "open_blockers": ("2",),
    "parent": "2",
    "lease_expires_at": 10,
    "updated_at": 11,
    "version": 12,
}
"""A value other than the default for each member that isn't text."""


def full(struct: type[Any], names: Iterable[str]) -> Any:
    return struct(**{name: OTHER.get(name, f"a {name}") for name in names})


def test_constructors_of_tasks_name_every_member() -> None:
    asked = full(NewTask, (*EDITABLE, "title", "status", "metadata", "result_summary", "fail_reason"))
    begun = build_task("1", asked)
    unset = {name for name in RESTORABLE if getattr(begun, name) == MEMBERS[name].default}
    assert unset == {"blocked_by", "created_at", "notes", "parent", "spent_ms", "status_changed_at", "waits_for"}
    added, state = full(AddedTask, RESTORABLE), initial_state("c")
    evolve(state, TaskAdded(AddedTask("2", "above")), 1, 1, 1)
    evolve(state, TaskAdded(added), 2, 2, 2)
    assert {name: getattr(state.tasks[added.id], name) for name in RESTORABLE} == msgspec.structs.asdict(added)
    stored, saved = full(Task, STORED), initial_state("c")
    saved.load((state.tasks["2"], stored), {})
    assert load_state("c", dump_state(saved)).tasks == saved.tasks


@pytest.mark.parametrize("name", RARE)
def test_each_rare_member_is_kept_on_its_own(name: str) -> None:
    state = initial_state("c")
    evolve(state, TaskAdded(AddedTask("1", "t", **{name: OTHER[name]})), 1, 1, 1)
    assert getattr(state.tasks["1"], name) == OTHER[name]
    assert load_state("c", dump_state(state)).tasks == state.tasks
