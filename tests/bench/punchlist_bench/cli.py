"""The benchmark's command line and its page."""

import argparse
import datetime
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

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
PAGE = ROOT / "docs/performance.md"
EPILOG = """\
Servers are started in a directory of their own below build/bench and stopped at the end. Redis is an anchor where it
is installed (apt-get install redis-server). A full run of all sections writes docs/performance.md.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        "run.py", description="Measures punchlist beside its anchors, in turn, in one run.", epilog=EPILOG
    )
    made.add_argument("--quick", action="store_true", help="fewer and shorter samples, a smaller log; under 2 minutes")
    made.add_argument(
        "--only", action="append", choices=SECTIONS, metavar="SECTION", help=f"one of {', '.join(SECTIONS)}; repeatable"
    )
    made.add_argument("--page", type=Path, metavar="FILE", help=f"write the page there (full run: {PAGE.name})")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 0 when everything was measured, met or not."""
    options = parser().parse_args(argv)
    raise_descriptors()
    signal.signal(signal.SIGTERM, _leave)
    chosen = [name for name in SECTIONS if not options.only or name in options.only]
    begin = time.monotonic()
    measured: dict[str, list[Row]] = {}
    try:
        with running(quick=options.quick) as bench:
            measured_on = machine.describe(bench.work)
            print(measured_on, flush=True)
            for name in chosen:
                measured[name] = SECTIONS[name](bench)
                table.progress("")
                print(f"\n{name}\n{table.terminal(measured[name], colours=sys.stdout.isatty())}", end="", flush=True)
            loudness = statistics.median(bench.loudness or [0.0])
    except RuntimeError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    closing = _closing(measured, time.monotonic() - begin, loudness)
    print(f"\n{closing}")
    page = options.page or (PAGE if not options.quick and not options.only else None)
    if page is not None:
        page.parent.mkdir(exist_ok=True)
        page.write_text(_page(measured, measured_on, bench, closing))
    return 0


def _leave(_number: int, _frame: object) -> None:
    """By an exception, so that the servers are stopped on the way out."""
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
        f"""# Performance

Measured by `make bench{"-quick" if bench.quick else ""}` on {today}: {measured_on}.

Each figure stands beside its anchor, sampled in turn in the same run; figures are medians of {bench.rounds} rounds or
more, ratios the medians of the rounds' ratios. Load comes from C programs in `tests/bench/punchlist_bench/`, everything
durable lies on the named file system. {closing}
"""
    ]
    parts += [
        f"## {name.capitalize()}\n\n{NOTES.get(name, '')}{table.markdown(rows)}" for name, rows in measured.items()
    ]
    return "\n".join(parts)


def raise_descriptors() -> None:
    """Thousands of connections need as many descriptors, here and in the children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16_384 if hard == resource.RLIM_INFINITY else min(16_384, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
