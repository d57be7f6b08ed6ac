from typing import Any

from punchlist.taskfiles.checklist import Checklist
from punchlist.taskfiles.file_format import Document, Fields, Origin
from punchlist_apps.files.mirror.merge import Add, Edit
from punchlist_apps.files.mirror.proposal import Adopted, Past, Snapshot, likeliest, read
from punchlist_schemas.things import Task

FORM = Checklist()
NONE = Past({}, (), False)


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


def test_a_second_edit_before_our_answer_is_no_conflict_with_the_first() -> None:
    base = Snapshot(1, [task(1, "a")])
    first = FORM.fields(task(1, "b"))
    found = read(FORM, document(("1", "c")), base, [task(1, "b")], Past({}, ({"1": first},), False))
    assert found.found.changes == (Edit("1", {"title": "c"}),)
    assert found.found.conflicts == ()
    stale = read(FORM, document(("1", "c")), base, [task(1, "b")], NONE)
    assert [conflict.member for conflict in stale.found.conflicts] == ["title"]


def test_a_task_that_a_file_added_before_is_known_when_it_comes_again() -> None:
    base = Snapshot(1, [])
    memory = {(1, "x"): Adopted("7", FORM.fields(task(7, "new")))}
    again = read(FORM, document(("x", "new, edited")), base, [task(7, "new")], Past(memory, (), False))
    assert again.found.changes == (Edit("7", {"title": "new, edited"}),)


def test_a_number_that_both_sides_gave_is_two_tasks() -> None:
    found = read(
        FORM, document(("1", "a"), ("2", "mine")), Snapshot(1, [task(1, "a")]), [task(1, "a"), task(2, "x")], NONE
    )
    (change,) = found.found.changes
    assert isinstance(change, Add)
    assert change.ref == "+2"


def test_without_a_base_an_old_number_does_not_come_back() -> None:
    found = read(FORM, document(("1", "gone"), ("9", "new"), version=None), None, [task(3, "c")], NONE)
    assert [conflict.reason for conflict in found.found.conflicts] == ["no such task any more"]
    assert [change.ref for change in found.found.changes if isinstance(change, Add)] == ["+9"]


def test_a_file_that_does_not_say_came_from_the_list_that_it_is_nearest_to() -> None:
    recent = [Snapshot(1, [task(1, "a")]), Snapshot(2, [task(1, "a"), task(2, "b")]), Snapshot(3, [task(2, "b")])]
    assert likeliest(FORM, document(("1", "A"), version=None), recent) == recent[0]
    assert likeliest(FORM, document(("1", "a"), ("2", "B"), version=None), recent) == recent[1]
    assert likeliest(FORM, document(version=None), []) is None
