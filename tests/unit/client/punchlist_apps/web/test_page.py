"""The page's files, and its pure modules compared with their Python counterparts."""

import gzip
import json
import os
import re
import time
import unicodedata
from itertools import pairwise
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
from punchlist_testing.page_modules import run_in_node
from punchlist_testing.unmeasured import untraced
from punchlist_testing.web import Web

ROWS = Path(__file__).parents[4] / "golden" / "rows.jsonl"
SOURCES = {path.name: path.read_text("utf-8") for path in (*PAGE.glob("*.js"), *PAGE.glob("*.css"))}
GENERATED = {"words.js", "characters.js"}
BUILT = PAGE / "built"


def find_imports(path: Path) -> set[Path]:
    """Return a script with all scripts that it imports, directly or not, other than by `import()`."""
    found, left = set[Path](), [path]
    while left:
        found.add(script := left.pop())
        names = re.findall(r'\b(?:from|import)"\./([\w-]+\.js)"', script.read_text("utf-8"))
        left += {BUILT / name for name in names} - found
    return found


LOADED = (PAGE / "index.html", PAGE / "icon.svg", BUILT / "page.css", *sorted(find_imports(BUILT / "app.js")))
"""The files that a browser loads before it shows the first screen."""

MAX_SENT_BYTES, MAX_UNPACKED_BYTES = 50_000, 120_000
"""Upper limits for the size of these files, compressed and uncompressed."""

MAX_ALL_SENT_BYTES, MAX_ALL_UNPACKED_BYTES = 140_000, 320_000
"""Upper limits for all files of the page, most of which are loaded while the browser is idle."""


def test_each_key_is_unique_and_has_a_command() -> None:
    commands = SOURCES["commands.js"].partition("export const COMMANDS = {")[2].partition("\n};")[0]
    known = set(re.findall(r"^  (\w+): \{", commands, re.MULTILINE))
    for text in SOURCES.values():
        for added in re.findall(r"^addCommands\((.*?)\);$", text, re.MULTILINE | re.DOTALL):
            known |= set(re.findall(r"(\w+): \{ run\b", added))
    known |= set(re.findall(r'^  \["(\w+)", ".*, "[^"]", \w+', SOURCES["needs.js"], re.MULTILINE))
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


@pytest.mark.parametrize(
    ("paths", "max_sent", "max_unpacked"),
    [
        (LOADED, MAX_SENT_BYTES, MAX_UNPACKED_BYTES),
        ((PAGE / "index.html", *BUILT.glob("*.js"), *BUILT.glob("*.css")), MAX_ALL_SENT_BYTES, MAX_ALL_UNPACKED_BYTES),
    ],
)
def test_page_is_small(paths: tuple[Path, ...], max_sent: int, max_unpacked: int) -> None:
    contents = [path.read_bytes() for path in paths]
    unpacked, sent = (sum(map(len, files)) for files in (contents, map(gzip.compress, contents)))
    assert (sent <= max_sent, unpacked <= max_unpacked) == (True, True), (sent, unpacked)


def test_page_loads_nothing_external_and_writes_no_html() -> None:
    for path in {*LOADED, *BUILT.glob("*.js"), *BUILT.glob("*.css")}:
        text = path.read_text("utf-8").replace("http://www.w3.org/", "")
        assert not re.search(r"https?://[a-z]|\bsrc=[\"']//|@import|url\(", text), path.name
        assert set(re.findall(r'\b(?:from|import)\b *\(?"([^"$]*\.js)"', text)) <= {
            f"./{script.name}" for script in BUILT.glob("*.js")
        }
    for name, text in SOURCES.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text), name


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


def find_longest(ids: list[str], edges: list[list[str]], weights: dict[str, int]) -> int:
    """Return the greatest weight of a chain with at least one edge, by trying all chains; 0 without edges."""

    def grow(end: str) -> int:
        return weights[end] + max((grow(to) for start, to in edges if start == end), default=0)

    return max((grow(id) for id in ids if any(start == id for start, _ in edges)), default=0)


def test_critical_path_is_the_longest_chain() -> None:
    random = Random(seed := int.from_bytes(os.urandom(4)))
    print("seed", seed)
    graphs: list[dict[str, Any]] = []
    for _ in range(200):
        ids = [str(number) for number in range(random.randrange(1, 9))]
        pairs = [[a, b] for a in ids for b in ids if int(a) < int(b)]
        edges = random.sample(pairs, random.randrange(len(pairs) + 1))
        graphs.append({"ids": ids, "edges": edges, "weights": {id: random.randrange(1, 9) for id in ids}})
    answers = run_in_node(*({"longest": graph} for graph in graphs))
    for graph, chain in zip(graphs, answers, strict=True):
        assert all([a, b] in graph["edges"] for a, b in pairwise(chain))
        assert sum(graph["weights"][id] for id in chain) == find_longest(**graph), graph


def test_words_of_two_texts_rebuild_both() -> None:
    random = Random(seed := int.from_bytes(os.urandom(4)))
    print("seed", seed)
    pairs = [["", ""], ["a " * 2_000, "b " * 2_000], ["Test the menu", "Test the mobile navigation"]]
    pairs += [[" ".join(random.choices("abcde", k=random.randrange(12))) for _ in range(2)] for _ in range(60)]
    for (before, after), parts in zip(pairs, run_in_node({"words": pairs})[0], strict=True):
        old, new = (" ".join(text for sign, text in parts if sign in signs).split() for signs in ("-=", "+="))
        assert (old, new) == (before.split(), after.split())
    assert run_in_node({"words": pairs[2:3]})[0] == [[["=", "Test the "], ["-", "menu"], ["+", "mobile navigation"]]]


def test_fewest_tasks_count_as_moved() -> None:
    ids = [str(number) for number in range(9)]
    assert run_in_node({"moved": {"before": ids, "after": ["8", *ids[:8]]}})[0] == ["8"]
    assert run_in_node({"moved": {"before": ids, "after": [*ids[1:], "0", "new"]}})[0] == ["0"]
    assert run_in_node({"moved": {"before": ids, "after": ids[3:]}})[0] == []


def test_versions_differ_by_what_people_look_for() -> None:
    def task(id: str, version: int, **members: Any) -> dict[str, Any]:
        return {
            "id": id,
            "version": version,
            "title": f"Task {id}",
            "status": "pending",
            "priority": "normal",
            **members,
        }

    base = [task("1", 1), task("2", 1), task("3", 1), task("4", 1), task("5", 1, status="completed", waits_for="yes")]
    rows = [
        task("2", 9, status="failed"),
        task("3", 9, status="completed", title="Task three"),
        task("4", 9, blocked_by=["3"], status="in_progress"),
        task("5", 9, status="completed"),
        task("6", 9, status="completed", waits_for="yes"),
        task("7", 9, parent="6"),
    ]
    assert run_in_node({"compared": [base, rows]})[0] == [
        ["Failed", "2"],
        ["Asks for a yes", "6"],
        ["Added", "6"],
        ["Added", "7"],
        ["Deleted", "1"],
        ["Reworded", "3"],
        ["Waits changed", "4"],
        ["Done", "3"],
        ["Done", "5"],
        ["Other states", "4"],
    ]
    assert run_in_node({"compared": [rows, rows]})[0] == []


HOUR_MS = 3_600_000


def test_forecast_of_a_constant_speed_is_exact() -> None:
    now = 100 * HOUR_MS
    totals = [{"at": now - 2 * HOUR_MS + at * 360_000, "all": 40, "done": at, "failed": 1} for at in range(21)]
    ready = run_in_node({"forecast": {"totals": totals, "now": now}})[0]
    left = 40 - 20 - 1
    assert ready["at"] == now + left * 360_000
    assert ready["perHour"] == 10
    assert ready["early"] <= ready["at"] <= ready["late"] <= now + 2 * left * 360_000
    growing = [{**each, "all": each["all"] + number // 2} for number, each in enumerate(totals)]
    grown = run_in_node({"forecast": {"totals": growing, "now": now}})[0]
    assert grown["at"] == now + (left + 10) * 2 * 360_000, "the tasks added at the same time are subtracted"


def test_nothing_forecasts_nothing() -> None:
    now = 100 * HOUR_MS

    def predict(*points: tuple[int, int]) -> Any:
        totals = [
            {"at": now - (len(points) - number) * 600_000, "all": all, "done": done, "failed": 0}
            for number, (all, done) in enumerate(points)
        ]
        return run_in_node({"forecast": {"totals": totals, "now": now}})[0]

    assert predict() is None
    assert predict((10, 0), (10, 4)) is None, "too few results"
    assert predict((10, 0), (20, 9)) is None, "the list grows faster than it is done"
    assert predict((10, 0), (10, 10)) is None, "nothing is left"
    assert predict((0, 0), (30, 0), (30, 9)) is not None, "a plan that was imported is no growth"


def test_lanes_have_a_bounded_number_of_blocks() -> None:
    now = 10 * HOUR_MS
    lengths = [-500 if at % 9 == 0 else 5_000 for at in range(5_000)]  # The clock was set back in some.
    spans: list[dict[str, Any]] = [
        {"owner": f"agent-{at % 20}", "from_at": at * 7_000, "to_at": at * 7_000 + length}
        for at, length in enumerate(lengths)
    ]
    spans.append({"owner": "agent-3", "from_at": 9 * HOUR_MS})
    lanes = run_in_node({"lanes": {"spans": spans, "now": now, "wide": 1_100}})[0]
    assert lanes[0][0] == "agent-3", "those at work come first"
    blocks = [block for _, rows in lanes for row in rows for block in row]
    assert len(blocks) <= 240
    assert sum(count for *_, count, _ in blocks) == len(spans)
    for _, rows in lanes:
        for row in rows:
            assert all(x + room <= after[0] for (x, _, room, *_), after in zip(row, row[1:], strict=False))


def test_every_event_is_told_in_words() -> None:
    schema = json.loads((ROWS.parents[2] / "schemas/json/events.schema.json").read_text())
    types = [each.get("properties", {}).get("type", {}).get("enum", []) for each in schema["$defs"].values()]
    names = {name for each in types for name in each if name[0].isupper()} - {
        "ConversationDeleted"
    }  # It erases the events before it.
    assert "StatusChanged" in names
    events = [
        {"type": name, "task": "1", "from": "pending", "to": "in_progress", "owner": "ann", "text": "x", "blocker": "2"}
        for name in sorted(names)
    ]
    for event, said in zip(events, run_in_node({"said": events})[0], strict=True):
        assert said["verb"], event
        assert "new to this page" not in said["verb"], event
        assert not re.search(r"_|undefined|null", f"{said['verb']} {said['more']}"), (event, said)
