import json
from typing import Any

import msgspec
import pytest

from punchlist_schemas import things as t
from punchlist_schemas import vocabulary

TASK = t.Task(
    id="1", title="a", status="pending", priority="normal", created_at=1, updated_at=2, status_changed_at=3, version=4
)


def accepts(kind: Any, value: object) -> bool:
    try:
        msgspec.json.decode(json.dumps(value).encode(), type=kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("id", ["a", "A9", "0", "a.b_c:d-e", "x" * 128, "0b29f1c0-7a43-4d5e-9a4c-aaaaaaaaaaaa"])
def test_valid_conversation_ids_are_accepted(id: str) -> None:
    assert accepts(t.ConversationId, id)


@pytest.mark.parametrize(
    "id",
    ["", ".a", "-a", ":a", "_a", "a b", "a/b", "..", "a\n", "\na", "é", "a\u0301", "x" * 129, "a\x00", "ａ", "a\u2028"],
)
def test_invalid_conversation_ids_are_rejected(id: str) -> None:
    assert not accepts(t.ConversationId, id)


@pytest.mark.parametrize("title", ["a", " a ", "x" * 500, "é😀", "\ta", "a\u200b", "\x1b[31m"])
def test_valid_titles_are_accepted(title: str) -> None:
    assert accepts(t.Title, title)


BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize(
    "title",
    ["", " ", "\t \u00a0\u3000", "x" * 501, "a\n", *(f"a{mark}b" for mark in BREAKS), *(f"a{mark}" for mark in BREAKS)],
)
def test_invalid_titles_are_rejected(title: str) -> None:
    assert not accepts(t.Title, title)


def test_accepted_titles_have_one_line() -> None:
    for point in range(0x3000):
        title = f"a{chr(point)}b"
        assert accepts(t.Title, title) == (title.splitlines() == [title]), hex(point)


def test_positions_fit_json_readers() -> None:
    assert accepts(t.Position, 0)
    assert accepts(t.Position, t.MAX_INTEGER)
    assert not accepts(t.Position, t.MAX_INTEGER + 1)
    assert not accepts(t.Position, -1)
    assert not accepts(t.Position, True)


def test_task_is_encoded_without_defaults() -> None:
    required = {"id", "title", "status", "priority", "created_at", "updated_at", "status_changed_at", "version"}
    assert json.loads(msgspec.json.encode(TASK)).keys() == required


def test_task_round_trips() -> None:
    full = msgspec.structs.replace(
        TASK,
        description="d",
        parent="2",
        blocked_by=("3",),
        blocks=("4",),
        open_blockers=("3",),
        metadata={"a": [1, None]},
        lease_expires_at=9,
        fence=8,
        attempts=1,
    )
    assert msgspec.json.decode(msgspec.json.encode(full), type=t.Task) == full


def test_counts_include_zeros() -> None:
    assert json.loads(msgspec.json.encode(t.Counts())).keys() == {*t.STATUSES, "blocked", "ready"}


def test_unknown_settings_are_rejected() -> None:
    assert accepts(t.SettingsPatch, {"execution": "serial"})
    assert not accepts(t.SettingsPatch, {"executions": "serial"})
    assert accepts(t.Settings, {"later": 1})
    assert t.Settings().__struct_fields__ == t.SettingsPatch().__struct_fields__


def test_vocabulary_matches_the_types() -> None:
    assert (vocabulary.STATUSES, vocabulary.PRIORITIES) == (t.STATUSES, t.PRIORITIES)
    assert set(t.STATUSES) > t.FINISHED


def test_member_without_machine_has_its_own_name() -> None:
    assert [t.machine_of(member) for member in ("ann_1", "a_b_1", "eve", "")] == ["ann", "a_b", "eve", ""]
