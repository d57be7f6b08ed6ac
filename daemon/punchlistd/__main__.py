"""The executable: parse, set up logging, run the app, return an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence

from punchlistd import __version__

EXAMPLES = """\
examples:
  punchlistd                                  serve the usual socket and data directory until stopped
  punchlistd --data-dir /tmp/try --socket /tmp/try/s   a daemon of its own, to play with
  punchlistd --idle-exit 900                  stop after 15 minutes without a connection
  punchlistd --verify backup.db               check a log or a backup that nobody has open; a report as JSON

exit codes: 0 stopped as asked, 1 --verify or --restore found something wrong, or --repair can't repair it,
  2 usage, 70 a fault of ours,
  74 a write failed below us, or the lock, the socket or the log was taken away, 75 another daemon runs,
  78 something must be put right first, as the message says
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        "punchlistd",
        description="Keeps the task lists of AI agents and pushes every change to whoever watches.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--socket", metavar="PATH", help="where to listen (default: see `punch daemon status`)")
    made.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where the log lives (default: PUNCHLIST_DATA_DIR, else punchlist in XDG_DATA_HOME or ~/.local/share)",
    )
    made.add_argument("--ready-fd", metavar="N", type=int, help="write a line to this descriptor once serving")
    made.add_argument("--idle-exit", metavar="S", type=float, help="stop after S seconds without any connection")
    made.add_argument(
        "--grace", metavar="S", type=float, default=10.0, help="how long a claim outlives its connection (default: 10)"
    )
    made.add_argument(
        "--read-only", action="store_true", help="serve a copy of the log, refuse changes, and write nothing there"
    )
    made.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    made.add_argument("--log-format", choices=("human", "json"), default="human")
    offline = made.add_mutually_exclusive_group()
    offline.add_argument("--verify", metavar="FILE", help="serve nothing: check a log, print a report")
    offline.add_argument("--repair", action="store_true", help="serve nothing: repair the log of the data directory")
    offline.add_argument("--restore", metavar="FILE", help="serve nothing: make a backup the log of the data directory")
    made.add_argument("--aside", metavar="DIR", help="with --restore: the directory to make for the log that is there")
    made.add_argument("--version", action="version", version=f"punchlistd {__version__}")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon; the exit code says how it ended."""
    options = parser().parse_args(argv)
    # After the arguments: `--help` and a wrong option need none of this.
    if options.verify is not None or options.restore is not None or options.repair:
        from punchlistd.offline import audit  # noqa: PLC0415

        return audit.run(options)
    from punchlistd.app import run  # noqa: PLC0415
    from punchlistd.process import logs  # noqa: PLC0415

    logs.set_up(options.log_level, options.log_format, os.environ)
    return run.run(options)


if __name__ == "__main__":
    sys.exit(main())
