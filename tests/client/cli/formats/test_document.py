from typing import Any

import pytest

from punchlist.cli.failure import FormatError
from punchlist.cli.formats.document import Document, as_list, as_object, checked, load_json


def test_json_is_read_with_or_without_a_byte_order_mark() -> None:
    assert load_json(Document("f", '{"a": 1}')) == load_json(Document("f", '\ufeff{"a": 1}')) == {"a": 1}


def test_broken_json_names_the_file_the_line_and_the_column() -> None:
    with pytest.raises(FormatError, match=r"^f\.json:3: not JSON: .*\(column 8\)$") as caught:
        load_json(Document("f.json", '{"a": 1,\n\n  "b": }\n'))
    assert (caught.value.name, caught.value.line) == ("f.json", 3)


def test_json_nested_without_end_is_refused() -> None:
    with pytest.raises(FormatError, match=r"^f: nested too deeply$") as caught:
        load_json(Document("f", "[" * 1_000_000))
    assert caught.value.line == 0


@pytest.mark.parametrize("value", [None, 1, "text", True])
def test_a_value_of_another_shape_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(FormatError, match=r"^f: tasks\[2\]: expected an object$"):
        as_object(value, "tasks[2]", "f")
    with pytest.raises(FormatError, match=r"^f: tasks: expected a list$"):
        as_list(value, "tasks", "f")


def test_objects_and_lists_are_not_taken_for_each_other() -> None:
    assert as_object({"a": 1}, "x", "f") == {"a": 1}
    assert as_list([1], "x", "f") == [1]
    with pytest.raises(FormatError):
        as_object([], "x", "f")
    with pytest.raises(FormatError):
        as_list({}, "x", "f")


def test_a_task_loses_what_says_nothing_and_keeps_what_does() -> None:
    task: dict[str, Any] = {
        "title": "a",
        "owner": "",
        "parent": None,
        "blocked_by": [],
        "metadata": {},
        "status": "pending",
    }
    assert checked(task, "f") == {"title": "a", "status": "pending"}
    kept = {"title": "a", "metadata": {"n": 0, "empty": ""}, "blocked_by": ["1"]}
    assert checked(kept, "f") == kept


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({}, "title"),
        ({"title": ""}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"title": "x" * 501}, "title"),
        ({"title": "a", "status": "doing"}, "status"),
        ({"title": "a", "colour": "red"}, "colour"),
        ({"title": "a", "blocked_by": [1]}, "blocked_by"),
    ],
)
def test_a_task_that_the_daemon_would_refuse_is_refused_with_its_place(task: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        checked(task, "plan.md", line=7)
    assert str(caught.value).startswith("plan.md:7: ")
    with pytest.raises(FormatError, match=r"^todos\.json: todos\[3\]: "):
        checked(task, "todos.json", where="todos[3]")
