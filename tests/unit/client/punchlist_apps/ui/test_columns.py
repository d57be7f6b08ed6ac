import time
from typing import Any

import pytest

from punchlist_apps.common.terminal.render import count_columns
from punchlist_apps.common.terminal.style import UNICODE_GLYPHS
from punchlist_apps.ui.columns import COLUMNS, DROPS, MIN_TITLE, draw_head, draw_task, fit_columns, format_when, measure
from punchlist_apps.ui.groups import GROUPINGS, HEADING, SORTS, Arrangement, arrange, task_of_key
from punchlist_apps.ui.parts import DrawContext, Item, add_signs, width_of
from punchlist_schemas.things import Gate, Task

NOON = int(time.mktime((2026, 11, 27, 12, 0, 0, 0, 0, -1))) * 1000
DAY_MS = 86_400_000
CONTEXT = DrawContext(add_signs(UNICODE_GLYPHS), NOON, 0, 80)


def task(name: int = 1, **members: Any) -> Task:
    defaults: dict[str, Any] = {"id": str(name), "title": "t", "status": "pending", "priority": "normal", "version": 1}
    defaults |= {"created_at": 1, "updated_at": 1, "status_changed_at": NOON - 61_000}
    return Task(**(defaults | members))


FULL = task(
    title="中文 title " * 60,
    labels=("bug", "needs a look"),
    open_blockers=("12", "13"),
    due=NOON,
    owner="claude-code/7f3c1a" * 6,
    fail_reason="x" * 500,
)


@pytest.mark.parametrize("width", [20, 40, 80, 110, 140, 200, 600])
def test_row_fills_its_width_and_cuts_with_mark(width: int) -> None:
    fits = fit_columns(width - 9, measure([FULL]))
    row = draw_task(FULL, CONTEXT._replace(width=width), fits, id_width=2)
    assert width_of(row) == width
    assert "…" in "".join(words for _, words in row)
    assert count_columns("".join(words for _, words in draw_head(fits, 9, width, "due"))) <= width


def test_narrow_rows_drop_columns_in_order() -> None:
    dropped: list[str] = []
    for room in range(160, MIN_TITLE - 1, -1):
        fits = fit_columns(room, measure([FULL]))
        assert room - sum(size + 1 for size in fits.values()) >= MIN_TITLE
        dropped += [name for name in DROPS if name not in fits and name not in dropped]
    assert tuple(dropped) == DROPS


def test_column_without_values_takes_no_room() -> None:
    assert [*fit_columns(200, measure([task()]))] == ["age"]
    assert [*fit_columns(400, measure([FULL]))] == [*COLUMNS]


@pytest.mark.parametrize(
    ("at", "day", "shown"),
    [
        (NOON + 3_600_000, None, "13:00"),
        (NOON + 30 * 3_600_000, None, "tomorrow"),
        (NOON, "2026-11-27", "today"),
        (NOON + 4 * DAY_MS, "2026-12-01", "Tue"),
        (NOON + 20 * DAY_MS, None, "17 Dec"),
        (NOON - 3 * DAY_MS, None, "3d late"),
        (NOON - 3 * DAY_MS, "2026-11-24", "3d late"),
        (NOON - 3_600_000, None, "1h late"),
        (NOON + 800 * DAY_MS, None, "2029-02"),
        (10**18, None, str(10**18)),
        (NOON, "no day", "no day"),
    ],
)
def test_dates_are_relative(at: int, day: str | None, shown: str) -> None:
    assert format_when(at, day, NOON) == shown


def test_dates_of_the_past_version_are_absolute() -> None:
    assert format_when(NOON, "2026-11-27", 0) == "27 Nov"


TASKS = [
    task(1, status="completed", status_changed_at=5),
    task(2, status="paused", gate=Gate(yes=True), waits_for="yes", labels=("b", "a")),
    task(3, open_blockers=("4",), owner="ann", priority="low"),
    task(4, status="in_progress", owner="bob", status_changed_at=9),
    task(5, not_before=9_000_000_000_000, due=9),
    task(6, parent="3", due=3, priority="urgent"),
    task(7, status="failed"),
    task(8, status="paused"),
    task(9, metadata={"heading": 1}),
]


def arrange_tasks(tasks: list[Task], how: Arrangement, *, fold: bool = True) -> list[Item]:
    return arrange([how.place(task, {"3"}) for task in tasks], how, ("-", "+"), fold=fold)[0]


def build(how: Arrangement, *, fold: bool = True) -> str:
    """Return the lines as text: headings with their words, tasks as ids."""
    items = arrange_tasks(TASKS, how, fold=fold)
    return " ".join(item.text.partition(",")[0] or task_of_key(item.key) for item in items)


def test_tasks_are_grouped_by_what_they_need() -> None:
    how = Arrangement()
    assert (
        build(how) == "- Running 1 4 - Needs you 2 2 7 - Ready 1 6 - Blocked 2 3 9 - Paused 1 8 - Put off 1 5 + Done 1"
    )
    assert build(how, fold=False).endswith("- Done 1 1")


def test_tasks_are_grouped_by_owner_label_and_parent() -> None:
    assert build(Arrangement("owner")) == "- @ann 1 3 - @bob 1 4 - nobody 7 1 2 5 6 7 8 9"
    assert build(Arrangement("label")) == "- +a 1 2 - +b 1 2 - no label 8 1 3 4 5 6 7 8 9"
    assert build(Arrangement("parent")) == "1 2 3 6 4 5 7 8 9"
    assert build(Arrangement("none")) == "1 2 3 4 5 6 7 8 9"


@pytest.mark.parametrize(
    ("sort", "first"), [("order", "1"), ("priority", "6"), ("due", "6"), ("owner", "3"), ("age", "1")]
)
def test_tasks_are_sorted(sort: str, first: str) -> None:
    assert build(Arrangement("none", sort)).split()[0] == first


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("sort", SORTS)
def test_no_task_is_lost(grouping: str, sort: str) -> None:
    items = arrange_tasks(TASKS, Arrangement(grouping, sort, frozenset()))
    keys = [item.key for item in items if item.key]
    assert len({*keys}) == len(keys)
    assert {task_of_key(key) for key in keys} == set("123456789")


def test_label_cannot_be_taken_for_a_group() -> None:
    tasks = [task(1, labels=("\x1b[31m", f"{HEADING}x"))]
    items = arrange_tasks(tasks, Arrangement("label"))
    assert [task_of_key(item.key) for item in items if item.key] == ["1", "1"]
    assert all("\x1b" not in item.text and HEADING not in item.text for item in items)
