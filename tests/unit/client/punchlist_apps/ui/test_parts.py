import random
from typing import Any

import pytest

from punchlist.base.text import is_safe
from punchlist.base.tree import find_open_parents
from punchlist_apps.common.terminal.render import count_columns
from punchlist_apps.common.terminal.style import ASCII_GLYPHS, UNICODE_GLYPHS
from punchlist_apps.ui.columns import draw_task, fit_columns, measure
from punchlist_apps.ui.detail import draw_dependencies, draw_detail
from punchlist_apps.ui.filters import build_list_test, build_task_test
from punchlist_apps.ui.parts import (
    FRAMES,
    DrawContext,
    build_board_items,
    build_tree,
    draw_card,
    draw_progress,
    fit_parts,
    width_of,
)
from punchlist_schemas.things import Conversation, Counts, Running, Shared, Task
from punchlist_testing.domain import HOSTILE_TITLES

TIMES: dict[str, Any] = {"created_at": 1, "updated_at": 1, "status_changed_at": 1_000, "version": 1}


def task(name: int = 1, **members: Any) -> Task:
    defaults: dict[str, Any] = {"id": str(name), "title": "t", "status": "pending", "priority": "normal"}
    return Task(**{**defaults, **TIMES, **members})


def card(**members: Any) -> Conversation:
    defaults: dict[str, Any] = {
        "conversation": "c",
        "counts": Counts(),
        "version": 1,
        "created_at": 1,
        "updated_at": 1,
    }
    return Conversation(**{**defaults, **members})


@pytest.mark.parametrize("words", [*HOSTILE_TITLES, "\u0301" * 40, "中文" * 200, "\x9b31m", "\u202e\u2066"])
def test_hostile_texts_are_escaped_and_cut(words: str) -> None:
    context = DrawContext(UNICODE_GLYPHS, 61_000, 3, 40)
    shown = [
        task(status="in_progress", title=words, active_form=words, owner=words, priority="urgent"),
        task(status="failed", title=words, fail_reason=words, open_blockers=("2",), metadata={words: words}),
    ]
    fits = fit_columns(60, measure(shown))
    lines = [
        draw_task(one, context, fits, depth=depth, parent=words, id_width=2, marked=True)
        for one in shown
        for depth in (0, 30)
    ]
    running = (Running(id="1", title=words, active_form=words, owner=words, since=1),)
    lines += [draw_card(card(title=words, running=running, counts=Counts(in_progress=1)), context, 20)]
    for parts in lines:
        assert all(is_safe(char) for _, part in parts for char in part)
        assert width_of(fit_parts(parts, 40)) <= 40
    whole = {one.id: one for one in shown}
    for parts in (draw_detail(shown[0], whole, context), draw_dependencies(shown[1], whole, context)):
        assert all(is_safe(char) or char in "\n\t" for _, part in parts for char in part)


def test_card_shows_state_of_space() -> None:
    context = DrawContext(UNICODE_GLYPHS, 61_000, 3, 40)
    assert not any("team" in part for _, part in draw_card(card(), context, 20))
    away = card(shared=Shared("team", "offline"))
    assert ("paused", "team: offline, changes are refused  ") in draw_card(away, context, 20)


def test_row_shows_owner_has_left() -> None:
    context = DrawContext(UNICODE_GLYPHS, 1_260_000, 0, 200)
    left = task(status="in_progress", owner="bot/1", left_at=60_000, lease_expires_at=1_300_000)
    row = "".join(words for _, words in draw_task(left, context, fit_columns(190, measure([left]))))
    assert "t  left 20 min ago, free at " in row
    assert "@bot/1" in row
    assert "left 20 min ago, free at " in "".join(words for _, words in draw_detail(left, {}, context))


def test_spinner_needs_unicode_and_present() -> None:
    running = task(status="in_progress")
    looks = [
        DrawContext(UNICODE_GLYPHS, 61_000, 3, 40),
        DrawContext(UNICODE_GLYPHS, 0, 3, 40),
        DrawContext(ASCII_GLYPHS, 61_000, 3, 40),
    ]
    signs = [draw_task(running, context, {})[1][1].strip() for context in looks]
    assert signs == [FRAMES[3], "●", "[>]"]


def test_progress_bar_shows_all_with_constant_width() -> None:
    for _ in range(200):
        counts = Counts(**{name: random.randrange(60) for name in ("pending", "completed", "failed", "in_progress")})
        parts = dict(draw_progress(counts))
        assert sum(count_columns(part) for part in parts.values()) == 10
        if sum((counts.completed, counts.failed, counts.in_progress)) and counts.completed:
            assert parts["completed"]


def test_tree_keeps_children_and_cycles() -> None:
    tasks = [task(1), task(2, parent="3"), task(3), task(4, parent="4"), task(5, parent="6"), task(6, parent="5")]
    assert [(item.key, item.depth) for item in build_tree(tasks)][:4] == [("1", 0), ("3", 0), ("2", 1), ("4", 0)]
    assert sorted(item.key for item in build_tree(tasks)) == list("123456")


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("", "123456"), ("is:open", "1246"), ("is:ready", "1"), ("is:def", "6"), ("is:late", "2"),
        ("+to.r", "6"), ("-+x", "12345"), ("is:blocked", "2"), ("is:run", "4"), ("is:x", ""),
        ("@ann", "1"), ("p:h", "2"), ("#3", "3"), ("-is:open", "35"), ("WRITE -tests", "2"), ("is:open @ann x", ""),
    ],
)  # fmt: skip
def test_filter_needs_all_words(words: str, ids: str) -> None:
    tasks = [
        task(1, title="Read", owner="Ann B"),
        task(2, title="Write", priority="high", open_blockers=("1",), due=1),
        task(3, title="Write tests", status="completed"),
        task(4, status="in_progress"),
        task(5, status="failed", due=1),
        task(6, labels=("to read", "x"), not_before=9_000_000_000_000),
    ]
    test = build_task_test(words)
    assert "".join(one.id for one in tasks if test is None or test(one)) == ids


def test_parent_of_open_task_is_not_ready() -> None:
    tasks = [
        task(1),
        task(2, parent="1"),
        task(3, metadata={"heading": 2}),
        task(4),
        task(5, parent="4", status="failed"),
    ]
    test = build_task_test("is:ready", find_open_parents(tasks))
    assert test is not None
    assert [one.id for one in tasks if test(one)] == ["2", "4"]


def test_lists_are_filtered_and_sorted_by_creation() -> None:
    cards = [card(conversation="a", title="Bread", created_at=1), card(conversation="b", created_at=2)]
    test = build_list_test("brea -x")
    assert test is not None
    assert [test(one) for one in cards] == [True, False]
    assert [item.key or item.text for item in build_board_items(cards)] == ["Quiet 2", "b", "a"]
