"""Cursors, arguments and the events of each type; without the SDK."""

from typing import Any

import pytest

from punchlist.calls.cursor import Change
from punchlist_apps.mcp.event_types import EVENT_TYPES, INPUT_SCHEMA, Arguments, Position, Selection, parse_cursor
from punchlist_schemas.events import (
    AddedTask,
    AnyEvent,
    ConversationConfigured,
    Deleted,
    ListCleared,
    MessageAppended,
    StatusChanged,
    TaskAdded,
)

EVENTS: list[AnyEvent] = [
    TaskAdded(AddedTask("1", "One")),
    StatusChanged("1", "pending", "in_progress"),
    StatusChanged("1", "in_progress", "completed"),
    StatusChanged("1", "completed", "completed", result_summary="Only the summary"),
    StatusChanged("2", "in_progress", "failed"),
    Deleted("2"),
    ListCleared(),
    ConversationConfigured(),
    MessageAppended("m", "user", "text"),
]
ACTORS = ["claude-code/a", "claude-code", "codex"]


def select(name: str, arguments: object = None) -> list[int]:
    changes = [
        Change(seq, "work", seq, 1_700_000_000_000 + seq, ACTORS[seq % 3], event) for seq, event in enumerate(EVENTS)
    ]
    return [seq for seq, _ in Selection.parse(name, arguments).list_occurrences(changes, "ab")]


@pytest.mark.parametrize(
    ("name", "arguments", "seqs"),
    [
        ("task.changed", None, [0, 1, 2, 3, 4, 5, 6]),
        ("task.added", {}, [0]),
        ("task.finished", {}, [2, 4]),
        ("task.changed", {"tasks": ["2"]}, [4, 5, 6]),
        ("task.changed", {"actor": "claude-code"}, [0, 1, 3, 4, 6]),
        ("task.changed", {"actor": "claude-code/a", "tasks": ["1"]}, [0, 3, 6]),
        ("task.finished", {"tasks": []}, []),
    ],
)
def test_events_match_type_and_arguments(name: str, arguments: object, seqs: list[int]) -> None:
    assert select(name, arguments) == seqs


def test_occurrence_has_cursor_time_and_change() -> None:
    change = Change(7, "work", 3, 1_700_000_000_123, "ann", EVENTS[0])
    occurrence: dict[str, Any] = next(Selection.parse("task.added", {}).list_occurrences([change], "ab"))[1]
    assert occurrence == {
        "eventId": "ab.7",
        "name": "task.added",
        "timestamp": "2023-11-14T22:13:20.123Z",
        "data": {
            "conversation": "work",
            "seq": 7,
            "actor": "ann",
            "task": "1",
            "change": {"type": "TaskAdded", "task": {"id": "1", "title": "One"}},
        },
    }
    assert parse_cursor(occurrence["eventId"]) == Position("ab", 7)


@pytest.mark.parametrize("text", ["", "ab", "ab.", ".7", "ab.-7", "ab.7.8", "AB.7", "ab.7\n", "ab." + "9" * 16, "é.1"])
def test_made_up_cursor_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        parse_cursor(text)


@pytest.mark.parametrize("arguments", [{"list": "work"}, {"tasks": "1"}, {"actor": 1}, {"tasks": ["1"] * 1_001}, [1]])
def test_invalid_arguments_are_rejected(arguments: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Selection.parse("task.changed", arguments)


def test_schema_names_all_arguments() -> None:
    assert {*INPUT_SCHEMA["properties"]} == {*Arguments.__struct_fields__}
    with pytest.raises(KeyError):
        Selection.parse("task.exploded", {})
    assert {*EVENT_TYPES} == {"task.changed", "task.added", "task.finished"}
