import json
from typing import Any

import pytest

from punchlist.taskfiles.claude import Claude
from punchlist.taskfiles.file_format import Origin, Unreadable
from punchlist_schemas.things import Task

ORIGIN = Origin("website", "e", 7)


def task(number: int, **members: Any) -> Task:
    made: dict[str, Any] = {"title": f"t{number}", "status": "pending", "priority": "normal", "version": 1} | members
    return Task(id=str(number), created_at=1, updated_at=1, status_changed_at=1, **made)


def test_each_task_is_one_file() -> None:
    tasks = [task(1, status="failed", blocks=("2", "10")), task(2, blocked_by=("1",), owner="ada", metadata={"a": 1})]
    files = Claude().render(ORIGIN, tasks, "website")
    first, second = (json.loads(files[name]) for name in ("1.json", "2.json"))
    assert first["subject"] == "t1"
    assert first["status"] == "pending"
    assert first["blocks"] == ["2", "10"]
    assert first["activeForm"] == ""
    assert (second["owner"], second["blockedBy"], second["metadata"]) == ("ada", ["1"], {"a": 1})
    document = Claude().parse("2.json", files["2.json"])
    assert document.is_untouched
    assert document.tasks == {"2": Claude().fields(tasks[1])}


def test_foreign_file_is_read_with_deleted_tasks() -> None:
    document = Claude().parse("3.json", b'{"id": 3, "subject": "a", "status": "deleted", "blocks": [4, "5"]}')
    assert document.deleted == {"3"}
    assert document.tasks["3"]["blocks"] == {"4", "5"}
    assert not document.is_whole


def test_only_numbers_name_tasks() -> None:
    names = [
        "1.json",
        "01.json",
        ".1.json",
        "1.json.mirror",
        "1.conflict",
        "x.json",
        "٣.json",
        ".lock",
        "1" * 30 + ".json",
    ]
    assert [name for name in names if Claude().is_document(name, "website")] == ["1.json"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"id": "2", "subject": "a"}',
        b'{"subject": "a", "status": "paused"}',
        b'{"subject": "a", "metadata": [1]}',
        b'{"subject": "a", "blocks": "2"}',
        b'{"subject": "a", "blocks": [true]}',
        b"{",
    ],
)
def test_file_without_task_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        Claude().parse("1.json", data)
