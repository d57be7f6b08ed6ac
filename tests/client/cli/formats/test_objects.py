import json
from typing import Any

import pytest

from punchlist.cli.failure import FormatError
from punchlist.cli.formats import objects
from punchlist.cli.formats.document import Document


def doc(value: Any, name: str = "f.json") -> Document:
    return Document(name, value if isinstance(value, str) else json.dumps(value))


def test_a_todowrite_list_is_read_wrapped_and_bare() -> None:
    todos = [
        {"content": "Read", "status": "completed", "activeForm": "Reading"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing", "priority": "high", "id": "x"},
    ]
    wanted = [
        {"title": "Read", "status": "completed", "active_form": "Reading", "priority": "normal"},
        {"title": "Write", "status": "in_progress", "active_form": "Writing", "priority": "high"},
    ]
    assert objects.parse_todos(doc({"todos": todos})) == wanted
    assert objects.parse_todos(doc(todos)) == wanted


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"todos": {}}, "todos: expected a list"),
        ({"todos": []}, "no tasks found"),
        ([1], "todos[0]: expected an object"),
        ([{"content": "a", "status": "cancelled"}], "todos[0].status"),
        ([{"content": 5}], "todos[0].content: expected a string"),
        ([{"content": ""}], "title"),
        ([{"content": "a", "priority": "huge"}], "todos[0].priority"),
    ],
)
def test_a_wrong_todowrite_list_says_where(value: Any, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        objects.parse_todos(doc(value))
    assert words in str(caught.value)


def test_a_task_folder_becomes_tasks_with_the_edges_of_both_ends() -> None:
    files = [
        doc({"id": "10", "subject": "Ship", "blockedBy": ["2"], "status": "pending"}, "10.json"),
        doc({"id": "2", "subject": "Test", "owner": "ada", "blocks": ["10", "3"], "activeForm": "Testing"}, "2.json"),
        doc({"id": "3", "subject": "Paint", "blockedBy": ["99", "4"], "description": "blue"}, "3.json"),
        doc({"id": "4", "subject": "Gone", "status": "deleted"}, "4.json"),
    ]
    assert objects.parse_folder(files) == [
        {"ref": "2", "title": "Test", "status": "pending", "owner": "ada", "active_form": "Testing"},
        {"ref": "3", "title": "Paint", "status": "pending", "description": "blue", "blocked_by": ["2"]},
        {"ref": "10", "title": "Ship", "status": "pending", "blocked_by": ["2"]},
    ]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([doc({"subject": "a"}, "1.json")], "1.json: id"),
        (
            [doc({"id": "1", "subject": "a"}, "1.json"), doc({"id": 1, "subject": "b"}, "2.json")],
            "2.json: id 1 is already",
        ),
        ([doc({"id": "1", "subject": "a", "status": "odd"}, "1.json")], "1.json: status"),
        ([doc({"id": "1", "subject": "a", "blocks": "2"}, "1.json")], "1.json: blocks"),
        ([doc("[]", "1.json")], "1.json: the file: expected an object"),
        ([doc({"id": "1"}, "1.json")], "1.json: "),
        ([doc("{\n", "1.json")], "1.json:2: not JSON"),
    ],
)
def test_a_wrong_task_folder_names_the_file(files: list[Document], words: str) -> None:
    with pytest.raises(FormatError) as caught:
        objects.parse_folder(files)
    assert words in str(caught.value)


def test_an_export_reads_back_with_its_edges() -> None:
    tasks = [
        {
            "id": "3",
            "title": "a",
            "status": "completed",
            "priority": "high",
            "created_at": 1,
            "updated_at": 2,
            "version": 4,
            "blocks": ["5"],
        },
        {
            "id": "5",
            "title": "b",
            "status": "pending",
            "priority": "normal",
            "blocked_by": ["3"],
            "parent": "3",
            "metadata": {"x": [1]},
        },
    ]
    value = objects.export({"conversation": "c", "title": "", "version": 9}, tasks)
    assert objects.parse_export(doc(value)) == [
        {"ref": "3", "title": "a", "status": "completed", "priority": "high"},
        {
            "ref": "5",
            "title": "b",
            "status": "pending",
            "priority": "normal",
            "blocked_by": ["3"],
            "parent": "3",
            "metadata": {"x": [1]},
        },
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"format_version": 2, "tasks": []}, "format_version 2"),
        ({"tasks": 1}, "tasks: expected a list"),
        ({"tasks": [1]}, "tasks[0]"),
        ({"tasks": [{"id": "1", "title": "a", "blocked_by": ["7"]}]}, "tasks[0]: task 7 is not in this file"),
        ({"tasks": [{"id": "1", "title": ""}]}, "tasks[0]"),
        ({"tasks": [{"id": "1", "title": "a", "blocked_by": 3}]}, "tasks[0]"),
        ([], "expected an object"),
    ],
)
def test_a_wrong_export_says_where(value: Any, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        objects.parse_export(doc(value))
    assert words in str(caught.value)
