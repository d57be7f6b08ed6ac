"""Figures of the web page and `punch ui` with their targets, stored by the tests of `make bench ONLY=faces`."""

import json
import os
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "build/faces/figures.jsonl"


class Figure(NamedTuple):
    """A row of the table: description, target (empty: none), and format of the value."""

    what: str
    target: str
    form: str = "{:.2f}"


FIGURES = {
    "loaded_kb": Figure("all that a browser loads, unpacked (as sent: a third of it)", "≤ 120 KB", "{:.0f} KB"),
    "nodes": Figure("nodes of the page at 10,000 tasks", "≤ 1,000", "{:.0f}"),
    "frames_ratio": Figure("frames while 100 changes a second are shown in a list of 10,000, in idle ones", "≥ 0.9"),
    "frames_idle": Figure("idle frames a second", "", "{:.0f}"),
    "changes_a_second": Figure("changes a second that came to that", "", "{:.0f}"),
    "script_share": Figure("script, of the time of the page's thread", "≤ 20 %", "{:.0%}"),
    "layouts_a_push": Figure("layouts for a push", "", "{:.1f}"),
    "write_to_page_ms": Figure("a change is on the page after (median)", "≤ 25 ms", "{:.0f} ms"),
    "open_ratio": Figure("opening a list of 10,000 tasks, in one of 12", "≤ 2"),
    "web_to_daemon_one": Figure("processor time of `punch web` in the daemon's, one stream", "≤ 0.7"),
    "web_to_daemon_fifty": Figure("the same with 50 streams", "≤ 3"),
    "stuck_stream_kib": Figure("a stream that nobody reads, of a list of 10,000 tasks", "≤ 64 KiB", "{:.0f} KiB"),
    "call_ratio": Figure("a call over HTTP, in one by a bare socket (median)", ""),
    "call_http_ms": Figure("a call over HTTP (median)", "", "{:.1f} ms"),
    "ui_paint_ratio": Figure("`punch ui`: first paint of 10,000 tasks, in that of 12", "≤ 1.3"),
    "ui_work_ratio": Figure(
        "`punch ui`: processor time at 100 changes a second, in that of a table of textual's own", "≤ 0.25"
    ),
}
"""Name -> figure, in the order of the table."""


def keep(**figures: float) -> None:
    """Store and print figures of one run."""
    unknown = set(figures) - set(FIGURES)
    assert not unknown, f"figures without a line in FIGURES: {unknown}"
    print(", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    path = Path(os.environ.get("FIGURES", KEPT))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(figures) + "\n")


def table(runs: list[dict[str, float]]) -> str:
    lines = ["| | target | each run |", "|---|---|---|"]
    for name, (what, target, form) in FIGURES.items():
        if values := [form.format(run[name]) for run in runs if name in run]:
            lines.append(f"| {what} | {target} | {', '.join(values)} |")
    return "\n".join([*lines, ""])
