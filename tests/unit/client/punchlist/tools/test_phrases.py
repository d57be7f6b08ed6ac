from typing import Any

import pytest

from punchlist import Counts, Link, Note, Task
from punchlist.tools import phrases


def task(**members: Any) -> Task:
    given: dict[str, Any] = {"id": "7", "title": "Copy", "status": "pending", "priority": "normal", **members}
    return Task(created_at=0, updated_at=0, status_changed_at=0, version=1, **given)


@pytest.mark.parametrize(
    ("ids", "text"), [([], ""), (["1"], "#1"), (["3", "1", "2"], "#1-#3"), (["1", "2", "9"], "#1, #2, #9")]
)
def test_consecutive_ids_become_a_range(ids: list[str], text: str) -> None:
    assert phrases.format_ranges(ids) == text


def test_many_ids_are_counted() -> None:
    assert phrases.format_some(["1", "2"]) == "#1, #2"
    assert phrases.format_some([str(number) for number in range(1, 9)]) == "#1, #2, #3, #4 and 4 more"


def test_line_omits_default_values() -> None:
    assert phrases.format_line(task()) == "#7 Copy"
    busy = task(status="in_progress", priority="high", owner="ann", open_blockers=("3",))
    assert phrases.format_line(busy) == "#7 [in_progress high ann] Copy (after #3)"


@pytest.mark.parametrize(
    ("counts", "start"),
    [
        (Counts(), "The list is empty."),
        (Counts(completed=3), "Nothing left"),
        (Counts(failed=1), "Nothing left"),
        (Counts(pending=2, blocked=2, in_progress=1), "Nothing ready: 1 in progress, 2 blocked"),
        (Counts(pending=1, ready=1, failed=1), "The queue has stopped at a failed task"),
    ],
)
def test_missing_task_is_explained(counts: Counts, start: str) -> None:
    assert phrases.explain_no_task(counts).startswith(start)


@pytest.mark.parametrize(
    ("title", "description", "hint"),
    [
        ("t" * 100, "", []),
        ("t" * 101, "", ["(all of it: tasks ids=7)"]),
        ("t" * 101, "short", ["short", "(all of it: tasks ids=7)"]),
        ("t" * 101, "d" * 141, [f"{'d' * 139}… (all of it: tasks ids=7)"]),
    ],
)
def test_shortened_task_names_its_call_once(title: str, description: str, hint: list[str]) -> None:
    head, *rest = phrases.format_current(task(title=title, description=description), 100)
    assert head == f"Now #7: {title if len(title) <= 100 else title[:99] + '…'}"
    assert rest == hint


def test_details_are_complete_and_limited() -> None:
    notes = tuple(Note(version=at, at=at, actor="ann\n", text=f"note {at} " + "x" * 5_000) for at in range(1, 9))
    links = tuple(Link(kind="url", to=f"u{at}" + "y" * 2_000) for at in range(40))
    found = phrases.format_details(
        task(labels=("ops", "ui"), due=1_000, not_before=1 << 62, links=links, notes=notes, waits_for="yes"), 1_000
    )
    text = "\n".join(found)
    assert "Labels: ops, ui\nDue: 1970-01-01 00:00 UTC\nNot before: 4611686018427387904\n" in text
    assert "Waits: recorded; it counts as completed once a person says yes" in text
    told = [line[:18] for line in found if "note" in line]
    assert told == ["… 5 older notes", *(f"Note by ann: note {at}"[:18] for at in range(6, 9))]
    assert len(text) < 3_000
