import json
from typing import Annotated, Any, Literal

import msgspec
import pytest

from punchlist.tools.coercion import parse_arguments
from punchlist.tools.model import Arguments, NoArguments, Offset, Problem


class Part(msgspec.Struct, frozen=True):
    title: str
    after: tuple[str, ...] = ()


class Sample(Arguments, frozen=True, rename="camel"):
    task_id: str
    active_form: str = ""
    ids: tuple[str, ...] = ()
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = None
    flag: bool = False
    metadata: dict[str, Any] = {}
    parts: tuple[Part, ...] = ()
    offset: Offset = 0


def parse(**given: Any) -> Sample:
    return parse_arguments(Sample, {"taskId": "1", **given})


@pytest.mark.parametrize("name", ["taskId", "id", "task_id", "taskID", "TaskId", "task", "task-id", "todo_id"])
@pytest.mark.parametrize("value", ["7", 7, 7.0, "#7 "])
def test_similar_names_of_task_id_are_accepted(name: str, value: object) -> None:
    assert parse_arguments(Sample, {name: value}).task_id == "7"


def test_exact_name_wins_over_similar_one() -> None:
    assert parse_arguments(Sample, {"id": "1", "taskId": "2", "task_id": "3"}).task_id == "2"


@pytest.mark.parametrize("name", ["active_form", "ActiveForm", "activeform", "active-form"])
def test_similar_argument_names_are_accepted(name: str) -> None:
    assert parse(**{name: "Testing"}).active_form == "Testing"


@pytest.mark.parametrize("given", [None, "", "  ", {}, [], "{}", "null", '""'])
def test_an_empty_body_counts_as_no_arguments(given: object) -> None:
    assert parse_arguments(NoArguments, given) == NoArguments()


def test_arguments_may_be_json_text() -> None:
    assert parse_arguments(Sample, '{"id": 3, "count": "4"}') == Sample(task_id="3", count=4)


LISTS: list[tuple[Any, tuple[str, ...]]] = [
    (["1", "2"], ("1", "2")),
    ([1, "#2", 3.0, 4.5, None, {}], ("1", "2", "3", "4.5")),
    ('["1", "2"]', ("1", "2")),
    ("[1]", ("1",)),
    ("1", ("1",)),
    (5, ("5",)),
    ("#5", ("5",)),
    ([], ()),
    ("", ()),
    ("ref-a", ("ref-a",)),
]


@pytest.mark.parametrize(("given", "ids"), LISTS)
def test_list_of_ids_may_have_any_form(given: object, ids: tuple[str, ...]) -> None:
    assert parse(ids=given).ids == ids


@pytest.mark.parametrize(("given", "number"), [(3, 3), ("3", 3), (" 3 ", 3), (3.0, 3), ("#3", 3)])
def test_an_integer_may_be_text(given: object, number: int) -> None:
    assert parse(count=given).count == number


@pytest.mark.parametrize("given", ["in_progress", "in-progress", "In Progress", "IN_PROGRESS"])
def test_choices_are_accepted_in_any_spelling(given: str) -> None:
    assert parse(status=given).status == "in_progress"


@pytest.mark.parametrize(("given", "flag"), [(True, True), ("true", True), ("False", False), ("yes", True), (0, False)])
def test_boolean_may_be_text(given: object, flag: bool) -> None:
    assert parse(flag=given).flag is flag


def test_objects_and_their_lists_may_be_json() -> None:
    assert parse(metadata='{"pr": 7}').metadata == {"pr": 7}
    assert parse(parts='[{"Title": "a", "after": "b"}, "c"]').parts == (Part("a", ("b",)), Part("c"))


def test_a_title_may_begin_with_a_bracket() -> None:
    assert parse(parts="[urgent] fix it").parts == (Part("[urgent] fix it"),)
    assert parse(parts=["[P] a", "{{ name }} is shown raw"]).parts == (Part("[P] a"), Part("{{ name }} is shown raw"))


def test_empty_text_and_null_count_as_omitted() -> None:
    assert parse(activeForm="", status="", metadata=None, ids=None) == Sample(task_id="1")


WRONG: list[tuple[Any, str]] = [
    ({}, "taskId is required"),
    ({"taskId": "  "}, "taskId is required"),
    ({"taskId": "1", "activForm": "x"}, "unknown argument: activForm; did you mean activeForm?"),
    ({"taskId": "1", "color": "x"}, "unknown argument: color; known are: taskId, activeForm, ids, count, status"),
    ({"taskId": "1", "status": "x"}, "invalid status: x (must be pending, in_progress, completed, or deleted)"),
    ({"taskId": "1", "count": "many"}, "count must be an integer, not 'many'"),
    ({"taskId": "1", "count": -1}, "count is wrong: expected an integer of at least 0"),
    ({"taskId": "1", "metadata": "x"}, "metadata is wrong: expected an object, not text"),
    ({"taskId": "1", "parts": [{}]}, "parts[0]: title is required"),
    ({"taskId": "1", "parts": "[{'title': 'a', 'after': []}]"}, "parts is not valid JSON: \"[{'title'"),
    ({"taskId": "1", "parts": '[ {"title": "a"'}, "parts is not valid JSON: "),
    ({"taskId": "1", "parts": ["{'title': 'a'}"]}, "parts[0] is not valid JSON: "),
    ({"taskId": "1", "ids": "['1', '2']"}, "ids is not valid JSON: "),
    ({"taskId": {}}, "taskId is wrong: expected the id of one task"),
    ([1], "the arguments must be a JSON object"),
    ("do it", "the arguments must be a JSON object"),
    (7, "the arguments must be a JSON object"),
    ({"taskId": object()}, "the arguments must be a JSON object"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_invalid_arguments_are_explained(given: object, sentence: str) -> None:
    with pytest.raises(Problem) as refused:
        parse_arguments(Sample, given)
    assert refused.value.text.startswith(sentence)


def test_hidden_argument_works_unadvertised() -> None:
    assert parse(offset="20").offset == 20
    with pytest.raises(Problem) as refused:
        parse(color=1)
    assert "offset" not in refused.value.text


def test_lone_surrogates_are_replaced() -> None:
    assert parse(activeForm="a\ud800b").active_form == "a?b"


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_raises_no_internal_error(depth: int) -> None:
    given = '{"taskId": "1", "metadata": ' + '{"a":' * depth + "1" + "}" * depth + "}"
    try:
        assert json.dumps(parse_arguments(Sample, given).metadata)
    except Problem as problem:
        assert problem.text
