"""Compares punchlist with other task lists, or writes the pages from the last comparison's results."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from punchlist_bench import table
from punchlist_bench.harness import ROOT
from punchlist_compare import commands, flushes, picture, report, results, servers
from punchlist_compare.comparison import Comparison
from punchlist_compare.install import install
from punchlist_compare.peers import PEERS
from punchlist_compare.results import Results

OURS = PEERS[0].name
SIZES = (50, 1_000, 10_000)
ROUNDS = 10
WORK = ROOT / "build/compare"
RESULTS = WORK / "results.json"
NARROWED = WORK / "narrowed.json"
"""Results of a run of some peers or sizes, which the pages don't show."""

PICTURE = ROOT / "docs/pictures/compare.svg"
PAGES = {"docs/performance.md": False, "README.md": True}
"""Page with the table → whether it shows only the most important rows."""

MEASUREMENTS = (
    commands.measure,
    servers.time_starts,
    servers.measure_sessions,
    servers.time_calls,
    flushes.measure,
)
EPILOG = """\
examples:
  make compare                                     measure everything (about 15 minutes), write the pages
  make compare PEERS="punchlist taskwarrior" SIZES=50   only these; prints the table, writes no page
  make compare REPORT=1                            write the pages from the last results, build/compare/results.json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Compare or report; return 0 even if some cells are empty."""
    options = _parse(argv)
    signal.signal(signal.SIGTERM, _exit)
    if options.report:
        if not RESULTS.exists():
            print(f"there are no results in {RESULTS.relative_to(ROOT)}; measure first: make compare", file=sys.stderr)
            return 1
        write_pages(results.load(RESULTS))
        return 0
    peers = [peer for peer in PEERS if not options.peers or peer.name in options.peers]
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="work-", dir=WORK) as work:
        comparison = Comparison(peers, options.sizes or SIZES, options.rounds, Path(work))
        comparison.install(install)
        found = compare(comparison)
    print(report.draw_table(found))
    if options.peers or options.sizes:
        results.save(found, NARROWED)
    else:
        results.save(found, RESULTS)
        write_pages(found)
    return 0


def compare(comparison: Comparison) -> Results:
    """Take all measurements, and give each cell a figure or a reason."""
    for measure in MEASUREMENTS:
        measure(comparison)
    comparison.explain_empty_cells()
    return comparison.results


def write_pages(found: Results) -> None:
    """Write the table into the pages, and draw the picture."""
    for page, short in PAGES.items():
        table.write(ROOT / page, "compare", report.describe_run(found) + "\n" + report.draw_table(found, short=short))
    PICTURE.write_text(picture.draw(found, OURS), "utf-8")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "punchlist_compare", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [peer.name for peer in PEERS]
    parser.add_argument("--peers", nargs="*", metavar="NAME", choices=names, default=[], help=f"of {', '.join(names)}")
    parser.add_argument("--sizes", nargs="*", metavar="N", type=int, default=[], help=f"numbers of tasks {SIZES}")
    parser.add_argument("--rounds", metavar="N", type=int, default=ROUNDS, help=f"samples of each figure ({ROUNDS})")
    parser.add_argument("--report", action="store_true", help="write the pages from the last results")
    return parser.parse_args(argv)


def _exit(_number: int, _frame: object) -> NoReturn:
    # An exception lets the context managers end the peers' processes.
    raise SystemExit(143)


if __name__ == "__main__":
    sys.exit(main())
