"""The page's files, and its pure modules compared with their Python counterparts."""

import gzip
import json
import os
import re
import subprocess
import time
import unicodedata
from pathlib import Path
from random import Random
from typing import Any

import pytest

from punchlist.base.dates import is_late
from punchlist.base.text import safe, safe_block
from punchlist.base.tree import as_tree
from punchlist_apps.common.terminal.render import format_shared_note, format_short_duration, get_display_state
from punchlist_apps.web.files import PAGE
from punchlist_packages import words
from punchlist_testing.optional import NODE
from punchlist_testing.unmeasured import untraced
from punchlist_testing.web import Web

ROWS = Path(__file__).parents[4] / "golden" / "rows.jsonl"
SOURCES = {path.name: path.read_text("utf-8") for path in (*PAGE.glob("*.js"), *PAGE.glob("*.css"))}
GENERATED = {"words.js", "characters.js"}
LOADED = (PAGE / "index.html", PAGE / "icon.svg", PAGE / "built/app.js", PAGE / "built/page.css")
"""The files that a browser loads."""

MAX_SENT_BYTES, MAX_UNPACKED_BYTES = 45_000, 120_000
"""Upper limits for the size of these files, compressed and uncompressed."""


def test_each_key_is_unique_and_has_a_command() -> None:
    commands = SOURCES["commands.js"].partition("export const COMMANDS = {")[2].partition("\n};")[0]
    known = set(re.findall(r"^  (\w+): \{", commands, re.MULTILINE))
    for screen in ("board", "list"):
        pressed = [
            name for group in words.key_groups() for key in group["keys"] if screen in key["in"] for name in key["keys"]
        ]
        assert len(pressed) == len(set(pressed))
    assert {key["name"] for group in words.key_groups() for key in group["keys"]} <= known


async def test_page_is_served_with_all_files(web: Web) -> None:
    index = await web.ask("GET", "/", Authorization=None)
    assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "trusted-types 'none'" in index.headers["content-security-policy"]
    for path in LOADED:
        answer = await web.ask("GET", f"/{path.name}", Authorization=None)
        assert answer.body == path.read_bytes()
        packed = await web.ask("GET", f"/{path.name}", Authorization=None, Accept_Encoding="br, gzip")
        assert (gzip.decompress(packed.body), packed.headers["content-encoding"]) == (answer.body, "gzip")
        again = {"Accept_Encoding": "gzip", "If_None_Match": packed.headers["etag"]}
        assert (await web.ask("GET", f"/{path.name}", Authorization=None, **again)).status == 304
        assert packed.headers["etag"] != answer.headers["etag"]


def test_page_is_small() -> None:
    contents = [path.read_bytes() for path in LOADED]
    unpacked, sent = (sum(map(len, files)) for files in (contents, map(gzip.compress, contents)))
    assert (sent <= MAX_SENT_BYTES, unpacked <= MAX_UNPACKED_BYTES) == (True, True), (sent, unpacked)


def test_page_loads_nothing_external_and_writes_no_html() -> None:
    for path in (*LOADED, *(PAGE / "built").glob("*.js")):
        text = path.read_text("utf-8").replace("http://www.w3.org/", "")
        assert not re.search(r"https?://[a-z]|\bsrc=[\"']//|@import|url\(|\bimport *[({\"*]", text), path.name
    for name, text in SOURCES.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text), name


def run_in_node(*calls: dict[str, Any]) -> list[Any]:
    """Call functions of the page's modules; return their results."""
    lines = "\n".join(json.dumps(call) for call in calls)
    program = [NODE, Path(__file__).with_name("page.mjs")]
    done = subprocess.run(program, input=lines, text=True, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_page_builds_the_golden_lists() -> None:
    lines = [json.loads(line) for line in ROWS.read_text().splitlines()]
    calls = [call for line in lines for call in ((line, {"is_order_cached": 0}) if "list" in line else (line,))]
    lists = 0
    for call, answer in zip(calls, run_in_node(*calls), strict=True):
        if "list" in call:
            assert answer == call["list"]
            lists += 1
        elif "is_order_cached" in call:
            assert answer is True, "the cached order equals a new computation"
    assert lists > 30


def test_parents_of_open_tasks_are_not_ready() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "1", "status": "pending"},
        {"id": "2", "status": "pending", "parent": "1"},
        {"id": "3", "status": "pending", "metadata": {"heading": 0}},
        {"id": "4", "status": "pending"},
        {"id": "5", "status": "completed", "parent": "4"},
        {"id": "6", "status": "pending", "parent": "4", "open_blockers": ["4"]},
    ]
    push: dict[str, Any] = {
        "reset": True,
        "rows": [{"rank": row["id"], **row} for row in rows],
        "version": 1,
        "seq": 1,
        "counts": {},
    }
    assert run_in_node({"push": push}, {"holds": 0})[-1] == ["1", "3"]


def test_page_and_command_line_order_lists_alike() -> None:
    random = Random(seed := int.from_bytes(os.urandom(4)))
    print("seed", seed)
    lists: list[list[dict[str, Any]]] = []
    for _ in range(40):
        ids = [str(number) for number in range(1, random.randrange(2, 14))]
        lists.append([{"id": id, "parent": random.choice([None, None, *ids, "99"]), "status": "pending"} for id in ids])
    answers = run_in_node(*({"tree": tasks} for tasks in lists))
    for tasks, answer in zip(lists, answers, strict=True):
        assert answer == [[task["id"], depth] for depth, task in as_tree(tasks)], tasks


def test_page_and_command_line_words_match() -> None:
    tasks = [
        {"status": status, "open_blockers": blockers}
        for status in ("pending", "paused", "failed")
        for blockers in ([], ["1"])
    ]
    times = [0, 999, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, -5]
    assert run_in_node({"states": tasks}, {"since": times}) == [
        [get_display_state(task) for task in tasks],
        [format_short_duration(time) for time in times],
    ]


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"]
)
def test_page_and_command_line_handle_days_alike(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    dues: list[dict[str, Any]] = [{"due": 1_798_156_799_999, "due_day": "2026-12-24"}, {"due": 1_798_135_200_000}, {}]
    tasks = [{"status": "pending", **due} for due in dues]
    hours = [1_798_070_400_000 + hour * 3_600_000 for hour in range(-15, 40, 5)]
    days, *late = run_in_node({"days": tasks[:1]}, *({"late": {"tasks": tasks, "at": at}} for at in hours))
    expected = [[is_late(due.get("due"), due.get("due_day"), at) for due in dues] for at in hours]
    monkeypatch.undo()
    time.tzset()
    assert late == expected
    assert days in (["Dec 24"], ["Dec 24, 2026"])


def test_absent_owner_is_shown_as_absent() -> None:
    left: dict[str, Any] = {"owner": "bot/1", "left_at": 1_000_000_000, "lease_expires_at": 2}
    silent: dict[str, Any] = {"owner": "bot/1", "machine": "mb", "silent_at": 1}
    ((there, gone, unheard),) = run_in_node({"owners": [{"owner": "bot/1", "machine": "mb"}, left, silent]})
    assert there == "@bot/1 on mb"
    assert gone.startswith("@bot/1, left at Jan 1") and ", free at " in gone
    assert unheard.startswith("@bot/1 on mb, not heard of since ")


def test_page_and_command_line_describe_shared_lists_alike() -> None:
    states = ("behind", "offline", "diverged", "\x1b[31m")
    notes = [{"space": "team", "state": state} for state in states]
    push: dict[str, Any] = {"rows": [], "version": 1, "seq": 1, "counts": {}, "shared": notes[1]}
    assert run_in_node(
        {"notes": notes}, {"push": push}, {"shared": 0}, {"push": {**push, "shared": None}}, {"shared": 0}
    ) == [
        [format_shared_note(note) for note in notes],
        True,
        notes[1],
        True,
        None,
    ]


def test_page_and_command_line_escape_alike() -> None:
    assigned = [chr(code) for code in range(0x11_0000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    odd = [char for char in assigned if not char.isalnum()]  # letters and digits are harmless in both
    texts = ["".join(odd[at : at + 400]) for at in range(0, len(odd), 400) if odd[at] < "\ue000" or odd[at] > "\uf8ff"]
    texts += ["e" + "\u0301" * 9 + "x", "a\tb\nc\r\x1b[31m", "<script>alert(1)</script>", "\u202etxt.exe"]
    (answers,) = run_in_node({"safe": texts})
    with untraced():
        shown = [[safe(text), safe_block(text)] for text in texts]
    for text, answer, own in zip(texts, answers, shown, strict=True):
        assert answer == own, text


def test_graph_runs_left_to_right_without_overlap() -> None:
    random = Random(seed := int.from_bytes(os.urandom(4)))
    print("seed", seed)
    ids = [str(number) for number in range(200)]
    edges = [(ids[a], ids[b]) for b in range(1, 200) for a in random.sample(range(b), min(b, random.randrange(3)))]
    (layout,) = run_in_node({"layered": {"ids": ids, "edges": edges}})
    place = dict(layout["place"])
    assert len({tuple(at) for at in place.values()}) == len(place)
    for route in layout["routes"]:
        columns = [place[node][0] for node in route]
        assert columns == list(range(columns[0], columns[0] + len(route)))
