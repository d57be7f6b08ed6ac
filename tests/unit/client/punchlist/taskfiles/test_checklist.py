import json
from typing import Any

import pytest

from punchlist.taskfiles.checklist import Checklist, file_ids
from punchlist.taskfiles.file_format import Origin, Unreadable
from punchlist_schemas.things import Task

ORIGIN = Origin("website", "e", 7)


def task(number: int, **members: Any) -> Task:
    made: dict[str, Any] = {"title": f"t{number}", "status": "pending", "priority": "normal", "version": 1} | members
    return Task(id=str(number), created_at=1, updated_at=1, status_changed_at=1, **made)


def test_file_suits_older_readers_and_names_origin() -> None:
    (data,) = Checklist().render(ORIGIN, [task(1, status="completed", description="é"), task(2)], "website").values()
    value = json.loads(data)
    assert value["tasks"] == [
        {"id": "1", "title": "t1", "description": "é", "done": True},
        {"id": "2", "title": "t2", "description": "", "done": False},
    ]
    document = Checklist().parse("website.json", data)
    assert document.is_untouched
    assert document.origin == Origin("website", "e", 7, document.digest)
    assert document.tasks["1"] == Checklist().fields(task(1, status="completed", description="é"))


def test_equal_values_in_other_spelling_are_untouched() -> None:
    (data,) = Checklist().render(ORIGIN, [task(1, title="é <&>")], "website").values()
    ascii_only = json.dumps(json.loads(data), separators=(",", ":")).encode()
    assert Checklist().parse("x", b"\xef\xbb\xbf" + ascii_only).is_untouched
    assert not Checklist().parse("x", ascii_only.replace(b"&", b"+")).is_untouched


def test_bare_file_of_older_program_is_read() -> None:
    data = b'{"tasks": [{"id": "0af3", "title": " a\\nb ", "description": null}, {"title": "c", "done": true}], "x": 1}'
    document = Checklist().parse("x", data)
    first, second = document.tasks.items()
    assert first == ("0af3", {"title": "a b", "description": "", "done": False})
    assert second[0].startswith(" ")
    assert document.origin is None


def test_foreign_members_stay_without_effect() -> None:
    (data,) = Checklist().render(ORIGIN, [task(1, metadata={"mirror_id": "0af3"}), task(2)], "website").values()
    there = {
        "sessionTitle": "Ünï",
        "punchlist": {"version": 1},
        "tasks": [
            {"createdAt": "2026-02-18", "id": "0af3", "title": "old", "done": True, "tags": [1, {"a": None}]},
            {"id": "9", "title": "gone", "createdAt": "x"},
            {"id": 2, "title": "t2", "owner": "ann"},
            "no task",
        ],
    }
    made = Checklist().merge_foreign_members(data, b"\xef\xbb\xbf" + json.dumps(there).encode())
    value = json.loads(made)
    assert value["sessionTitle"] == "Ünï" and value["punchlist"] == json.loads(data)["punchlist"]
    assert value["tasks"] == [
        {
            "createdAt": "2026-02-18",
            "id": "0af3",
            "title": "t1",
            "description": "",
            "done": False,
            "tags": [1, {"a": None}],
        },
        {"id": "2", "title": "t2", "description": "", "done": False, "owner": "ann"},
    ]
    assert Checklist().parse("x", made) == Checklist().parse("x", data)
    assert Checklist().merge_foreign_members(made, made) == made


@pytest.mark.parametrize(
    "present",
    [
        b"",
        b"[]",
        b"{",
        b'{"tasks": 1}',
        b'{"tasks": [{"id": "1", "x": "\\ud800"}]}',
        b'{"x":' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_foreign_content_never_makes_file_unreadable(present: bytes) -> None:
    (data,) = Checklist().render(ORIGIN, [task(1)], "website").values()
    made = Checklist().merge_foreign_members(data, present)
    assert Checklist().parse("x", made) == Checklist().parse("x", data)


def test_copied_line_is_new_task() -> None:
    document = Checklist().parse("x", b'{"tasks": [{"id": "1", "title": "a"}, {"id": "1", "title": "b"}]}')
    assert [fields["title"] for fields in document.tasks.values()] == ["a", "b"]
    assert len(document.tasks) == 2


def test_unambiguous_foreign_id_is_kept() -> None:
    tasks = [task(1, metadata={"mirror_id": "0af3"}), task(2, metadata={"mirror_id": "0af3"}), task(3)]
    tasks += [task(4, metadata={"mirror_id": "3"}), task(5, metadata={"mirror_id": 3})]
    assert file_ids(tasks) == {"1": "0af3", "2": "2", "3": "3", "4": "4", "5": "5"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"tasks": {}}',
        b'{"tasks": [1]}',
        b'{"tasks": [{"title": 3}]}',
        b'{"tasks": [{"title": "a", "done": "yes"}]}',
        b'{"tasks": [{"title": "\\ud800"}]}',
        b'{"tasks": [{"title": "a"',
        b"\xff\xfe{}",
        b'{"tasks": NaN}',
        b"[" * 100_000,
    ],
)
def test_file_without_list_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        Checklist().parse("x.json", data)
