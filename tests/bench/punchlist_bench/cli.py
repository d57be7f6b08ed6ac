"""The benchmark's command line. Writes the pages with figures."""

import argparse
import datetime
import importlib
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from punchlist_bench import machine, table
from punchlist_bench.harness import ROOT, Bench, running
from punchlist_bench.notes import NOTES
from punchlist_bench.sections import commands, durable, growth, memory, push, reads, replay, stages, start
from punchlist_bench.table import Row

SECTIONS: dict[str, Callable[[Bench], list[Row]]] = {
    "durable": durable.run,
    "stages": stages.run,
    "reads": reads.run,
    "push": push.run,
    "commands": commands.run,
    "start": start.run,
    "replay": replay.run,
    "memory": memory.run,
    "growth": growth.run,
}
FIGURES = {
    "apart": "docs/many-machines.md",
    "chat": "docs/chat.md",
    "editors": "docs/editors.md",
    "evaluate": None,
    "faces": "docs/faces.md",
    "grow": None,
    "vscode": "docs/editors.md",
}
"""Additional sections, which run only if named -> page that a full run writes; None to print only."""

PAGE = ROOT / "docs/performance.md"
EPILOG = """\
Without a section, all but the further ones run. Servers are started in a directory of their own below build/bench and
stopped at the end. Redis is an anchor where it is installed (apt-get install redis-server). A full run of all sections
writes its part of docs/performance.md, and that of a further section its table into its page.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sections; return 0 if everything could be measured, even if targets were missed."""
    parser = argparse.ArgumentParser(
        "run.py", description="Measures punchlist and its anchors, in turn, in one run.", epilog=EPILOG
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples; writes no page")
    names = f"one of {', '.join(SECTIONS)}; or, if named: {', '.join(FIGURES)}"
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=names)
    options = parser.parse_args(argv)
    if unknown := set(options.sections) - {*SECTIONS, *FIGURES}:
        parser.error(f"no section {', '.join(sorted(unknown))}: {names}")
    raise_descriptors()
    signal.signal(signal.SIGTERM, _exit)
    try:
        if not options.sections or {*options.sections} & {*SECTIONS}:
            _measure(options.sections, quick=options.quick)
        for name in options.sections:
            if name in FIGURES:
                _measure_figures(name, quick=options.quick)
    except RuntimeError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _measure(names: Sequence[str], *, quick: bool) -> None:
    begin = time.monotonic()
    measured: dict[str, list[Row]] = {}
    with running(quick=quick) as bench:
        measured_on = machine.describe(bench.work)
        print(measured_on, flush=True)
        for name, section in SECTIONS.items():
            if not names or name in names:
                measured[name] = section(bench)
                print(f"\n## {name}\n\n{table.markdown(measured[name])}", end="", flush=True)
        loudness = statistics.median(bench.loudness or [0.0])
    closing = _closing(measured, time.monotonic() - begin, loudness)
    print(f"\n{closing}")
    if not quick and not names:
        table.write(PAGE, "engine", _page(measured, measured_on, bench, closing))


def _measure_figures(name: str, *, quick: bool) -> None:
    text = importlib.import_module(f"punchlist_bench.figures.{name}").measure(quick=quick)
    print(text)
    page = FIGURES[name]
    if page is not None and not quick:
        table.write(ROOT / page, name, text)


def _exit(_number: int, _frame: object) -> None:
    # Raise, so that the servers are stopped on the way out.
    raise SystemExit(143)


def _closing(measured: dict[str, list[Row]], seconds: float, loudness: float) -> str:
    verdicts = [row.met for rows in measured.values() for row in rows]
    return (
        f"{verdicts.count(True)} targets met, {verdicts.count(False)} missed, in {seconds:.0f} s;"
        f" other programs used {loudness:.2f} processors meanwhile."
    )


def _page(measured: dict[str, list[Row]], measured_on: str, bench: Bench, closing: str) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    parts = [
        f"""Measured by `make bench` on {today}: {measured_on}.

Each figure has an anchor, a reference value; both are sampled alternately in the same run.
Figures are medians of {bench.rounds} rounds or more, and ratios are the medians of the rounds' ratios.
Load comes from C programs in `tests/bench/punchlist_bench/`, and all durable files are on the named file system.
{closing}
"""
    ]
    parts += [
        f"### {name.capitalize()}\n\n{NOTES.get(name, '')}{table.markdown(rows)}" for name, rows in measured.items()
    ]
    return "\n".join(parts)


def raise_descriptors() -> None:
    """Raise the limit of open files for this process and its children, to allow thousands of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 16_384 if hard == resource.RLIM_INFINITY else min(16_384, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
