"""A date without a time is the same day in every time zone, in every application and file."""

import json
import re
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from punchlist.tools import phrases
from punchlist_apps.common.terminal.style import UNICODE_GLYPHS
from punchlist_apps.ui.detail import draw_detail
from punchlist_apps.ui.members import MEMBERS
from punchlist_apps.ui.parts import DrawContext
from punchlist_schemas.things import Task

ZONES = ("Europe/Berlin", "America/New_York", "UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago")
DAY = "2126-12-24"

Zone = Callable[[str], None]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Generator[Zone]:
    """Moves this process, but not the daemon, to another time zone."""

    def move(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def join_text(parts: list[tuple[str, str]]) -> str:
    return "".join(text for _, text in parts)


def show_everywhere(punch: Any) -> dict[str, str]:
    """Return task 1 as each application shows it."""
    value = punch("show", "1", "--json").json["task"]
    task = msgspec.convert(value, Task)
    context = DrawContext(UNICODE_GLYPHS, round(time.time() * 1000), 0, 200)
    form = {member.name: member.text(task) for member in MEMBERS}
    return {
        "list": punch("list").out,
        "show": punch("show", "1").out,
        "log": punch("log").out,
        "why": punch("why", "1").out,
        "detail": join_text(draw_detail(task, {}, context)),
        "form": f"{form['due']} {form['not_before']}",
        "agents": "\n".join(phrases.format_details(task, 1_000)),
    }


@pytest.mark.parametrize("origin", ZONES)
def test_a_day_is_the_same_in_every_zone(punch: Any, zone: Zone, origin: str) -> None:
    zone(origin)
    punch("add", "release", "--due", DAY)
    punch("edit", "1", "--after-date", DAY)
    for name in ZONES:
        zone(name)
        for face, text in show_everywhere(punch).items():
            assert DAY in text, (name, face)
            assert "2126-12-23" not in text and "2126-12-25" not in text, (name, face)
            assert not re.search(rf"{DAY} \d\d:", text), f"{face} in {name} shows no time of day"


def test_a_deferral_ends_where_it_was_set(punch: Any, zone: Zone) -> None:
    zone("Pacific/Kiritimati")
    punch("add", "a", "--after-date", DAY)
    task = punch("show", "1", "--json").json["task"]
    begins = time.mktime((2126, 12, 24, 0, 0, 0, 0, 0, -1))
    assert (task["not_before"], task["not_before_day"]) == (begins * 1000, DAY)


def test_due_today_includes_overdue_tasks(punch: Any, zone: Zone) -> None:
    for name in ZONES:
        zone(name)
        punch("list", "clear", "--yes")
        for due in ("yesterday", "today", "tomorrow", "in 1 minute", "tomorrow 13:00", "3d"):
            punch("add", due, "--due", due)

        def titles(due: str) -> set[str]:
            return {task["title"] for task in punch("list", "--due", due, "--json").json["tasks"]}

        late_in_the_day = time.localtime(time.time() + 60).tm_mday != time.localtime().tm_mday
        assert titles("today") | {"in 1 minute"} == {"yesterday", "today", "in 1 minute"} or late_in_the_day, name
        assert titles("tomorrow") == {"yesterday", "today", "in 1 minute", "tomorrow", "tomorrow 13:00"}, name
        assert titles("tomorrow 12:00") == {"yesterday", "today", "in 1 minute"}, "a day is due until its end"
        assert len(titles("1w")) == 6
        assert titles("") == titles("1w")


FILES: dict[str, str] = {
    "a.ics": (
        "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VTODO\nUID:1\nSUMMARY:release\nDUE;VALUE=DATE:21261224\n"
        "DTSTART;VALUE=DATE:21261201\nEND:VTODO\nEND:VCALENDAR\n"
    ),
    "a.org": f"* TODO release\nDEADLINE: <{DAY} Tue> SCHEDULED: <2126-12-01 Sun>\n:PROPERTIES:\n:ID: x\n:END:\n",
    "todo.txt": f"(A) release due:{DAY} t:2126-12-01 +a\n",
    "tasks.json": json.dumps([{"uuid": "u", "description": "release", "status": "pending", "due": "21261224T000000Z"}]),
    "jira.csv": 'Summary,Issue key,Issue id,Status,Due Date\nrelease,A-1,1,To Do,"24/Dec/26 12:00 AM"\n',
    "linear.csv": f'ID,Team,Title,Status,Due Date,Parent issue\nE-1,Core,release,Todo,"{DAY}",\n',
    "issues.json": json.dumps(
        [{"number": 7, "title": "release", "state": "OPEN", "milestone": {"title": "v", "dueOn": f"{DAY}T08:00:00Z"}}]
    ),
    "plan.md": f'- [ ] release <!-- punchlist: {{"due": "{DAY}"}} -->\n',
    "own.json": json.dumps(
        {"format": "punchlist", "tasks": [{"id": "1", "title": "release", "due_day": DAY, "due": 1}]}
    ),
}


@pytest.mark.parametrize("file", FILES)
def test_a_second_import_elsewhere_changes_nothing(punch: Any, home: Path, zone: Zone, file: str) -> None:
    (home / file).write_text(FILES[file])
    day = "2026-12-24" if file == "jira.csv" else DAY
    zone("UTC")
    first = punch("import", file)
    assert first.code == 0, first.err
    version = punch("list", "--json").json["version"]
    for name in ZONES:
        zone(name)
        assert f"due {day}" in punch("list").out, name
        again = punch("import", file, "--json").json
        assert (again["added"], again["updated"], again["unchanged"], again["kept"]) == (0, [], 1, 0), (name, again)
    assert punch("list", "--json").json["version"] == version


@pytest.mark.parametrize("form", ["json", "md"])
def test_an_export_keeps_days_notes_and_times(punch: Any, home: Path, zone: Zone, form: str) -> None:
    zone("Europe/Berlin")
    punch("add", "release", "--due", DAY, "--after-date", "2126-12-01")
    punch("add", "call", "--due", "2126-12-24 18:00")
    punch("note", "1", "hello", "--actor", "ann")
    for number, name in enumerate(("America/New_York", "Pacific/Kiritimati", "UTC")):
        zone(name)
        assert punch("export", f"{number}.{form}", *(("-c", f"n{number}") if number else ())).code == 0
        assert punch("import", f"{number}.{form}", "-c", f"n{number + 1}").code == 0
    if form == "md":
        text = (home / "2.md").read_text()
        assert f'"due": "{DAY}"' in text and '"due": "2126-12-24T17:00:00Z"' in text
    release = punch("list", "-c", "n3", "--json").json["tasks"][0]
    assert (release["due_day"], release["not_before_day"]) == (DAY, "2126-12-01")
    (note,) = release["notes"]
    (first,) = punch("show", "1", "--json").json["task"]["notes"]
    assert (note["text"], note["actor"], note["at"]) == ("hello", "ann", first["at"])
    assert note["imported_by"] != "ann"
    assert "ann (imported by " in punch("show", "1", "-c", "n3").out
    assert "note of ann: hello" in punch("log", "-c", "n3").out
    zone("Europe/Berlin")
    assert "due 2126-12-24 18:00" in punch("list", "-c", "n3").out
    assert punch("import", f"2.{form}", "-c", "n3", "--json").json["unchanged"] == 2


def test_a_day_is_sorted_by_its_end_here(punch: Any, zone: Zone) -> None:
    zone("UTC")
    punch("add", "taxes", "--due", "2126-11-28")
    punch("add", "call", "--due", "2126-11-28 12:00")
    punch("add", "sometime")
    punch("add", "tea", "--due", "2126-11-29")
    for name, order in (("UTC", "2 1 4 3"), ("Pacific/Kiritimati", "1 2 4 3"), ("Pacific/Pago_Pago", "2 1 4 3")):
        zone(name)
        result = punch("list", "--sort", "due", "--json").json
        assert [task["id"] for task in result["tasks"]] == order.split(), name
    zone("Pacific/Kiritimati")
    first = punch("list", "--sort", "due", "--limit", "2")
    assert "2 of 4" in first.lines[0]
    assert [line.split()[1] for line in first.lines[1:]] == ["#1", "#2"]


def test_an_old_file_keeps_local_changes(punch: Any, home: Path) -> None:
    (home / "i.jsonl").write_text('{"id":"x-1","title":"Alpha","status":"open","issue_type":"task"}\n')
    punch("import", "i.jsonl")
    punch("edit", "1", "--title", "Alpha, better")
    again = punch("import", "i.jsonl")
    assert again.lines[0] == "imported 0 tasks, 1 unchanged, 1 kept with local changes (beads)"
    assert "Alpha, better" in punch("list").out
    assert "imported" not in punch("show", "1").out
    (home / "i.jsonl").write_text('{"id":"x-1","title":"Beta","status":"open","issue_type":"task","priority":0}\n')
    assert punch("import", "i.jsonl").lines[0].startswith("imported 0 tasks, 1 updated, 1 kept")
    assert "‼ Alpha, better" in punch("list").out
