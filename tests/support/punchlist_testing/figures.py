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
    "loaded_kb": Figure("files that a browser loads, uncompressed (compressed: a third)", "≤ 120 KB", "{:.0f} KB"),
    "nodes": Figure("nodes of the page at 10,000 tasks", "≤ 1,000", "{:.0f}"),
    "history_nodes": Figure("nodes of the history of 2,000 changes, with the time machine", "≤ 1,000", "{:.0f}"),
    "timeline_nodes": Figure("nodes of the timeline of 5,000 spans of work", "≤ 1,200", "{:.0f}"),
    "frames_ratio": Figure("frames at 100 changes per second in a list of 10,000, relative to idle", "≥ 0.9"),
    "frames_idle": Figure("idle frames per second", "", "{:.0f}"),
    "changes_a_second": Figure("changes per second during this measurement", "", "{:.0f}"),
    "script_share": Figure("script, share of the page's main thread", "≤ 20 %", "{:.0%}"),
    "layouts_a_push": Figure("layouts per push", "", "{:.1f}"),
    "write_to_page_ms": Figure("time from a change to the page (median)", "≤ 25 ms", "{:.0f} ms"),
    "open_ratio": Figure("time to open a list of 10,000 tasks, relative to 12", "≤ 2"),
    "web_to_daemon_one": Figure("processor time of `punch web`, relative to the daemon's, one stream", "≤ 0.7"),
    "web_to_daemon_fifty": Figure("the same with 50 streams", "≤ 3"),
    "stuck_stream_kib": Figure("memory of an unread stream of a list of 10,000 tasks", "≤ 64 KiB", "{:.0f} KiB"),
    "call_ratio": Figure("time of a call over HTTP, relative to a bare socket (median)", ""),
    "call_http_ms": Figure("time of a call over HTTP (median)", "", "{:.1f} ms"),
    "ui_paint_ratio": Figure("`punch ui`: first paint of 10,000 tasks, relative to 12", "≤ 1.3"),
    "ui_work_ratio": Figure(
        "`punch ui`: processor time at 100 changes per second, relative to a plain textual table", "≤ 0.25"
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
