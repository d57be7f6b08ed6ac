"""The task form: its texts round-trip, and invalid ones are reported."""

import random
from typing import Any

import pytest

from punchlist_apps.ui.members import MEMBERS, format_duration, parse_changes
from punchlist_schemas.things import Link, Task

TIMES: dict[str, Any] = {"created_at": 1, "updated_at": 1, "status_changed_at": 1, "version": 1}


def texts(**members: Any) -> dict[str, str]:
    draw_frame: dict[str, Any] = {
        "id": "1",
        "title": "t",
        "status": "pending",
        "priority": "normal",
        **TIMES,
        **members,
    }
    task = Task(**draw_frame)
    return {member.name: member.text(task) for member in MEMBERS}


def test_form_texts_round_trip() -> None:
    members: dict[str, Any] = {
        "title": "Write",
        "labels": ("web", "needs a look"),
        "priority": "high",
        "owner": "ann",
        "due": 1_798_218_000_000,
        "not_before": 1_798_131_600_000,
        "estimate_ms": 5_400_000,
        "active_form": "Writing",
        "description": "a\nb",
        "links": (Link(kind="url", to="https://a.example/?b=c"), Link(kind="path", to="src/a b.py:12")),
    }
    assert parse_changes(texts(**members)) == members
    assert set(parse_changes(texts()).values()) == {"t", "normal", None}


def test_durations_round_trip() -> None:
    for _ in range(300):
        ms = random.choice((1, 1_000, 60_000, 3_600_000, 86_400_000)) * random.randrange(1, 500)
        assert parse_changes({"estimate_ms": format_duration(ms)}) == {"estimate_ms": ms}


def test_link_kind_is_detected() -> None:
    given = "https://a.example/x\n src/a.py:3 \n\nrelates-to=4"
    assert parse_changes({"links": given})["links"] == (
        Link(kind="url", to="https://a.example/x"),
        Link(kind="path", to="src/a.py:3"),
        Link(kind="relates-to", to="4"),
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("due", "soon", "is not a time; write 2026-12-24"),
        ("estimate_ms", "long", "is not a duration; write 90s"),
        ("priority", "huge", "unknown priority 'huge': use low, normal"),
    ],
)
def test_invalid_text_is_reported(name: str, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_changes({name: text})
