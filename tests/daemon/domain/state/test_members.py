"""The table of a task's members, and that the structs of the contract agree about it."""

import msgspec
import pytest

from punchlist_schemas.events import AddedTask, TaskEdited
from punchlist_schemas.params import NewTask, TaskAdd, TaskEdit
from punchlist_schemas.things import Task
from punchlistd.domain.state.members import EDITABLE, MEMBERS, RARE, RESTORABLE, STORED

FIRST = (
    "id title status priority description active_form owner parent blocked_by blocks open_blockers metadata "
    "result_summary fail_reason attempts lease_expires_at created_at updated_at status_changed_at version"
).split()


def test_a_snapshot_begins_with_the_members_of_the_first_version_in_their_order() -> None:
    assert list(STORED[: len(FIRST)]) == FIRST
    assert STORED[len(FIRST) :] == tuple(name for name in STORED if name not in FIRST)


@pytest.mark.parametrize("name", EDITABLE)
def test_what_an_event_can_edit_a_call_can_edit_and_a_new_task_can_have(name: str) -> None:
    for struct in (TaskEdit, TaskEdited, AddedTask, TaskAdd, NewTask):
        assert name in struct.__struct_fields__
    assert MEMBERS[name].restorable and MEMBERS[name].stored


def test_what_a_task_can_be_restored_with_is_a_member_of_tasks() -> None:
    assert set(RESTORABLE) == set(AddedTask.__struct_fields__)


def test_rare_members_begin_false_and_may_be_missing_in_every_struct() -> None:
    for name in RARE:
        assert not MEMBERS[name].default
        for struct in (AddedTask, Task):
            field = next(each for each in msgspec.structs.fields(struct) if each.name == name)
            assert not field.required
