import random
import re
from typing import Any

import pytest

from punchlist_apps.common.terminal.render import (
    count_columns,
    fold_finished,
    format_details,
    format_header,
    format_list,
    format_progress,
    format_shared_note,
    format_short_duration,
    format_status_line,
    format_task,
    truncate,
    truncate_painted,
)
from punchlist_apps.common.terminal.style import Style

NO_COUNTS = {"pending": 0, "in_progress": 0, "paused": 0, "completed": 0, "failed": 0, "blocked": 0, "ready": 0}


def task(number: str, title: str = "Write", **members: Any) -> dict[str, Any]:
    return {"id": number, "title": title, "status": "pending", "priority": "normal", **members}


def test_a_list_reads_well() -> None:
    tasks = [
        task("1", "Read", status="completed", owner="ada"),
        task("2", "Lex", status="in_progress", active_form="Writing the lexer", owner="claude"),
        task("3", "Wire", open_blockers=["2", "4"]),
        task("4", "Fix", priority="urgent"),
        task("5", "Test it", parent="4", priority="low"),
        task("6", "Paint", status="paused"),
        task("7", "Ship", status="failed", fail_reason="no credentials"),
    ]
    counts = NO_COUNTS | {"pending": 3, "in_progress": 1, "paused": 1, "completed": 1, "failed": 1, "blocked": 1}
    assert format_list("website", tasks, counts, Style()) == [
        "website  1/7  1 in progress · 1 blocked · 1 paused · 1 failed",
        "  ✓ #1 Read",
        "  ● #2 Lex  @claude",
        "    Writing the lexer",
        "  ▸ #3 Wire  ← #2, #4",
        "  ☐ #4 ‼ Fix",
        "    ☐ #5 ↓ Test it",
        "  ‖ #6 Paint",
        "  ✗ #7 Ship",
        "    no credentials",
    ]


def test_empty_list_is_marked() -> None:
    assert format_list("website", [], NO_COUNTS, Style()) == ["website  0/0", "  no tasks"]


def test_without_unicode_the_marks_are_ascii() -> None:
    lines = format_list(
        "a", [task("1", status="completed"), task("2", open_blockers=["1"])], NO_COUNTS, Style(ascii_only=True)
    )
    assert lines[1:] == ["  [x] #1 Write", "  [-] #2 Write  <- #1"]
    assert "".join(lines).isascii()


def test_task_in_progress_shows_elapsed_time() -> None:
    style = Style(now=600_000)
    assert (
        format_task(task("1", status="in_progress", active_form="Writing", status_changed_at=1), style)[1]
        == "    Writing · 9m"
    )
    assert format_task(task("1", status="in_progress", status_changed_at=1), style)[1] == "    9m"


@pytest.mark.parametrize("width", [10, 20, 33, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    picks = random.Random(seed)
    style = Style(width=width)
    for _ in range(100):
        title = "".join(picks.choices("ab 中文\u0301é🎉\x1b\u202e", k=picks.randint(1, 90)))
        one = task(
            "12", title, status=picks.choice(["pending", "in_progress", "failed"]), fail_reason=title, active_form=title
        )
        one |= {"owner": title[:20], "open_blockers": ["1", "2"]}
        for line in format_list(title, [one], NO_COUNTS | {"failed": 3}, style):
            assert count_columns(line) <= width, line


def test_colors_do_not_change_the_text() -> None:
    tasks = [
        task("1", status="completed"),
        task("2", status="in_progress", active_form="x", priority="high", owner="o"),
    ]
    plain = format_list("a", tasks, NO_COUNTS, Style())
    painted = format_list("a", tasks, NO_COUNTS, Style(color=True))
    assert painted != plain
    assert [re.sub("\x1b\\[[0-9;]*m", "", line) for line in painted] == plain


def test_indentation_is_limited() -> None:
    chain = [task(str(number), parent=str(number - 1) if number > 1 else None) for number in range(1, 3001)]
    assert format_list("a", chain, NO_COUNTS, Style())[-1].startswith(" " * 18 + "☐")


def test_narrow_line_drops_parents_first() -> None:
    path = [{"id": "2", "title": "Backend"}]
    assert format_task(task("3", title="tests"), Style(), path=path) == ["  ☐ #3 Backend › tests"]
    assert format_task(task("3", title="tests"), Style(width=20), path=path) == ["  ☐ #3 tests"]


def test_old_finished_tasks_in_long_list_are_folded() -> None:
    tasks = [task(str(n), status="completed", status_changed_at=n) for n in range(1, 21)]
    tasks += [task("21", parent="5"), task("22")]
    shown, hidden = fold_finished(tasks)
    assert [one["id"] for one in shown] == ["5", "18", "19", "20", "21", "22"]
    assert hidden == 16
    assert format_list("a", tasks, NO_COUNTS, Style(), folded=True)[-1] == "  … 16 finished ones not shown (--all)"


def test_a_short_list_is_not_folded() -> None:
    tasks = [task(str(n), status="completed") for n in range(12)]
    assert fold_finished(tasks) == (tasks, 0)


def test_wide_characters_take_two_columns() -> None:
    assert count_columns("中文") == 4
    assert count_columns("e\u0301") == 1
    assert truncate("中文字", 5) == "中文…"
    assert truncate("abcdef", 4) == "abc…"
    assert truncate("abc", 0) == "abc"
    assert truncate("abcdef", 2, "...") == ".."


def test_details_show_every_member_and_keep_lines() -> None:
    one = task(
        "3",
        description="first\nsecond\x1b[2J",
        owner="ada",
        blocked_by=["1"],
        metadata={"pr": 7},
        result_summary="done",
        version=4,
    )
    assert format_details(one, Style()) == [
        "☐ #3 Write  @ada",
        "  status: pending",
        "  owner: ada",
        "  blocked by: #1",
        "  metadata: pr=7",
        "  version: 4",
        "",
        "  first",
        "  second\\x1b[2J",
        "",
        "  result: done",
    ]


def test_owner_in_shared_list_has_machine() -> None:
    one = task("3", owner="ada", machine="laptop\x1b-ann", version=4)
    assert format_details(one, Style())[:4] == [
        "☐ #3 Write  @ada on laptop\\x1b-ann",
        "  status: pending",
        "  owner: ada",
        "  on: laptop\\x1b-ann",
    ]


def test_stale_shared_list_has_a_note() -> None:
    assert format_shared_note(None) == ""
    assert format_shared_note({"space": "team", "state": "behind"}) == "team: behind"
    away = format_shared_note({"space": "team", "state": "offline", "since": 1_700_000_000_000})
    assert away.startswith("team: offline since ") and away.endswith(", changes are refused")
    assert format_shared_note({"space": "team", "state": "diverged"}) == "team: diverged, changes are refused"
    left = format_shared_note({"space": "team", "state": "forbidden"})
    assert left == "team: no longer followed here, changes are refused"


def test_durations_and_counts_are_formatted() -> None:
    assert [format_short_duration(ms) for ms in (-5, 59_000, 60_000, 7_200_000, 200_000_000)] == [
        "0s",
        "59s",
        "1m",
        "2h",
        "2d",
    ]
    assert format_progress(NO_COUNTS | {"completed": 2, "pending": 5, "blocked": 4}) == "2/7"
    assert format_status_line(NO_COUNTS | {"pending": 2, "paused": 1, "in_progress": 1}) == "3 open, 1 in progress"
    assert format_header("a", NO_COUNTS, Style(), "at version 3") == "a  0/0  at version 3"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("plain words", 7, "plain …"),
        ("a\x1b[1mbold\x1b[0mz", 6, "a\x1b[1mbold\x1b[0mz"),
        ("a\x1b[1mbold\x1b[0mz", 0, "a\x1b[1mbold\x1b[0mz"),
        ("a\x1b[1mbold\x1b[0mz", 5, "a\x1b[1mbol…\x1b[0m"),
        ("a\x1b[1mbold\x1b[0mzz", 6, "a\x1b[1mbold\x1b[0m…\x1b[0m"),
        ("a\x1b[1m中文\x1b[0m", 4, "a\x1b[1m中…\x1b[0m"),
        ("a\x1b[1mbold", 1, "…\x1b[0m"),
    ],
)
def test_color_codes_take_no_columns(text: str, width: int, shown: str) -> None:
    assert truncate_painted(text, width) == shown


def test_details_show_the_whole_title() -> None:
    task = {"id": "1", "title": "long " * 30, "status": "pending"}
    assert format_details(task, Style(width=20))[0].count("long") == 30
    assert format_task(task, Style(width=20))[0].count("long") < 4


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        *(
            ("👨\u200d👩\u200d👧\u200d👦", 2),
            ("❤\ufe0f", 2),
            ("👩🏽\u200d🚀", 2),
            ("می\u200cخواهم", 7),
            ("soft\xadhyphen", 10),
        ),
        *(("☺\ufe0e", 1), ("葛\U000e0100", 2), ("日本", 4), ("e\u0301", 1), ("🇩🇪", 2), ("a\ufe0f", 1)),
    ],
)
def test_invisible_characters_take_no_columns(text: str, columns: int) -> None:
    assert count_columns(text) == columns


def test_emoji_is_never_split() -> None:
    family = "👨\u200d👩\u200d👧"
    assert [truncate(f"a{family}b", width) for width in (4, 3, 2)] == [f"a{family}b", "a…", "a…"]
    assert truncate(f"{family}{family}", 3) == f"{family}…"
