from typing import Any

from punchlist.taskfiles.checklist import Checklist
from punchlist.taskfiles.file_format import Document, Fields, Origin
from punchlist_apps.files.mirror.merge import Add, Edit
from punchlist_apps.files.mirror.proposal import AddedTask, History, Snapshot, find_likeliest, read_proposal
from punchlist_schemas.things import Task

FORM = Checklist()
NONE = History({}, (), False)


def task(number: int, title: str, **members: Any) -> Task:
    return Task(
        id=str(number),
        title=title,
        status="pending",
        priority="normal",
        created_at=1,
        updated_at=1,
        status_changed_at=1,
        version=1,
        **members,
    )


def document(*tasks: tuple[str, str], version: int | None = 1) -> Document:
    said: dict[str, Fields] = {one: {"title": title, "description": "", "done": False} for one, title in tasks}
    return Document(said, None if version is None else Origin("c", "e", version), "d", is_whole=True)


def test_second_edit_does_not_conflict_with_first() -> None:
    base = Snapshot(1, [task(1, "a")])
    first = FORM.fields(task(1, "b"))
    found = read_proposal(FORM, document(("1", "c")), base, [task(1, "b")], History({}, ({"1": first},), False))
    assert found.changes.changes == (Edit("1", {"title": "c"}),)
    assert found.changes.conflicts == ()
    stale = read_proposal(FORM, document(("1", "c")), base, [task(1, "b")], NONE)
    assert [conflict.member for conflict in stale.changes.conflicts] == ["title"]


def test_task_added_by_a_file_is_recognized() -> None:
    base = Snapshot(1, [])
    memory = {(1, "x"): AddedTask("7", FORM.fields(task(7, "new")))}
    again = read_proposal(FORM, document(("x", "new, edited")), base, [task(7, "new")], History(memory, (), False))
    assert again.changes.changes == (Edit("7", {"title": "new, edited"}),)


def test_number_used_by_both_sides_is_two_tasks() -> None:
    found = read_proposal(
        FORM, document(("1", "a"), ("2", "mine")), Snapshot(1, [task(1, "a")]), [task(1, "a"), task(2, "x")], NONE
    )
    (change,) = found.changes.changes
    assert isinstance(change, Add)
    assert change.ref == "+2"


def test_deleted_task_does_not_return_without_base() -> None:
    found = read_proposal(FORM, document(("1", "gone"), ("9", "new"), version=None), None, [task(3, "c")], NONE)
    assert [conflict.reason for conflict in found.changes.conflicts] == ["no such task any more"]
    assert [change.ref for change in found.changes.changes if isinstance(change, Add)] == ["+9"]


def test_file_without_version_uses_nearest_base() -> None:
    recent = [Snapshot(1, [task(1, "a")]), Snapshot(2, [task(1, "a"), task(2, "b")]), Snapshot(3, [task(2, "b")])]
    assert find_likeliest(FORM, document(("1", "A"), version=None), recent) == recent[0]
    assert find_likeliest(FORM, document(("1", "a"), ("2", "B"), version=None), recent) == recent[1]
    assert find_likeliest(FORM, document(version=None), []) is None
