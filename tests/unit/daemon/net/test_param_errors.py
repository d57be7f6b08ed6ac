from typing import Any

import pytest

from punchlist_schemas.errors import ERRORS, Rejection
from punchlist_schemas.methods import METHODS
from punchlist_testing.calls import parse_params
from punchlistd.net import param_errors

STATUSES = "one of completed, failed, in_progress, paused, pending"


def refusal(method: str, **params: Any) -> Rejection:
    rejection = parse_params(METHODS[method], params)
    assert isinstance(rejection, Rejection)
    assert rejection.kind == "invalid_params"
    assert {"field", "expected"} <= rejection.data.keys() <= set(ERRORS["invalid_params"].data)
    return rejection


TABLE: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (
        "task.get",
        {"conversation": "c"},
        {"field": "task", "expected": 'A decimal string counting up from "1" in its list'},
    ),
    (
        "task.add",
        {"conversation": "c"},
        {"field": "title", "expected": "1 to 500 characters on one line, not all blank"},
    ),
    ("task.add", {"conversation": "c", "title": 1}, {"field": "title", "expected": "string"}),
    ("task.add", {"conversation": "c", "title": ""}, {"field": "title", "expected": "at least 1 character"}),
    ("task.add", {"conversation": "c", "title": "x" * 501}, {"field": "title", "expected": "at most 500 characters"}),
    ("task.add_many", {"conversation": "c", "tasks": []}, {"field": "tasks", "expected": "at least 1 entry"}),
    (
        "task.add",
        {"conversation": "c", "title": "a\nb"},
        {"field": "title", "expected": "1 to 500 characters on one line, not all blank"},
    ),
    (
        "list.apply",
        {"conversation": "c", "changes": [{"method": "task.move", "task": "1"}, {"method": "task.get", "task": "1"}]},
        {
            "field": "changes[1].method",
            "expected": "one of task.add, task.edit, task.set_status, task.claim, task.move, task.delete, task.note",
        },
    ),
    (
        "list.apply",
        {"conversation": "c", "changes": [{"method": "task.edit", "task": "1", "titel": "n"}]},
        {"field": "changes[0].titel", "expected": "a known name", "nearest": "title"},
    ),
    ("task.add", {"conversation": "c", "title": "a", "status": "done"}, {"field": "status", "expected": STATUSES}),
    ("task.add", {"conversation": "c", "title": "a", "blocks": ["1", 2]}, {"field": "blocks[1]", "expected": "string"}),
    (
        "task.add_many",
        {"conversation": "c", "tasks": [{"title": "a"}, {}]},
        {"field": "tasks[1].title", "expected": "1 to 500 characters on one line, not all blank"},
    ),
    (
        "task.add_many",
        {"conversation": "c", "tasks": [{"title": "a", "statuss": 1}]},
        {"field": "tasks[0].statuss", "expected": "a known name", "nearest": "status"},
    ),
    ("task.add_many", {"conversation": "c", "tasks": [3]}, {"field": "tasks[0]", "expected": "object"}),
    ("task.list", {"conversation": "c", "status": ["open"]}, {"field": "status[0]", "expected": STATUSES}),
    ("task.list", {"conversation": "c", "limit": 0}, {"field": "limit", "expected": "integer >= 1"}),
    (
        "task.list",
        {"converstion": "c"},
        {"field": "converstion", "expected": "a known name", "nearest": "conversation"},
    ),
    ("task.list", {"conversation": "c", "zzz": 1}, {"field": "zzz", "expected": "a known name"}),
    ("daemon.status", {"zzz": 1}, {"field": "zzz", "expected": "a known name"}),
    (
        "conversation.open",
        {"conversation": "c", "settings": {"execution": "x"}},
        {"field": "settings.execution", "expected": "one of manual, serial or null"},
    ),
    (
        "conversation.open",
        {"conversation": "c", "settings": {"exec": "x"}},
        {"field": "settings.exec", "expected": "a known name", "nearest": "execution"},
    ),
    ("daemon.hello", {"client": {}}, {"field": "client.name", "expected": "string"}),
]


@pytest.mark.parametrize(("method", "params", "data"), TABLE)
def test_error_names_field_expectation_and_nearest_name(
    method: str, params: dict[str, Any], data: dict[str, str]
) -> None:
    assert refusal(method, **params).data == data


WRONG: tuple[Any, ...] = (None, True, 1.5, -1, "", "x" * 70_000, [], [None], {}, {"zzz": 1}, 10**15)


@pytest.mark.parametrize("method", METHODS)
def test_every_invalid_parameter_is_explained(method: str) -> None:
    fields = METHODS[method].params.__struct_fields__
    good = {"conversation": "c", "task": "1", "title": "a", "session": "s", "status": "pending", "owner": "o"}
    base = {name: value for name, value in good.items() if name in fields}
    for name in fields:
        for value in WRONG:
            parsed = parse_params(METHODS[method], {**base, name: value})
            if isinstance(parsed, Rejection):
                assert parsed.kind == "invalid_params"
                assert parsed.data["expected"]
                assert str(parsed.data["field"]).split(".")[0].split("[")[0] in fields


def test_message_gives_advice() -> None:
    assert refusal("task.add", conversation="c", titel="a").message == "Unknown parameter; did you mean title?"
    assert "known are conversation, task" in refusal("task.get", zzz="a").message
    assert refusal("task.get", conversation=1).message == "conversation is wrong: expected string."
    assert refusal("task.get").message.startswith("conversation is missing: expected 1 to 128 of")


@pytest.mark.parametrize("name", ["x" * 1_000_000, "a` - at `$.task", "a`b", "\n", "\u202e", "tasks[3].x", "$"])
def test_hostile_names_are_truncated(name: str) -> None:
    rejection = refusal("task.get", **{name: 1})
    assert len(str(rejection.data["field"])) <= 100
    assert "nearest" not in rejection.data


def test_long_unknown_method_is_truncated() -> None:
    assert param_errors.unknown_method("tasks.list").data["nearest"] == "task.list"
    far = param_errors.unknown_method("x" * 1_000_000)
    assert far.data == {"method": "x" * 64}
    assert "rpc.discover" in far.message
