"""The executable: parses the arguments, sets up logging, runs the app and returns an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence

from punchlistd import __version__
from punchlistd.settings import DEFAULT_GRACE_S

EXAMPLES = """\
examples:
  punchlistd                                  serve the usual socket and data directory until stopped
  punchlistd --data-dir /tmp/try --socket /tmp/try/s   a separate daemon for experiments
  punchlistd --idle-exit 900                  stop after 15 minutes without a connection
  punchlistd --verify backup.db               check a log or backup that is not in use; print JSON

exit codes: 0 stopped on request, 1 --verify or --restore found damage, or --repair can't repair it,
  2 usage error, 70 internal error,
  74 a write failed, or the lock, socket or log was removed, 75 another daemon is running,
  78 configuration error, see the message
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "punchlistd",
        description="Keep the task lists of AI agents and push every change to subscribers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--socket", metavar="PATH", help="where to listen (default: see `punch daemon status`)")
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where the log lives (default: PUNCHLIST_DATA_DIR, else punchlist in XDG_DATA_HOME or ~/.local/share)",
    )
    parser.add_argument("--ready-fd", metavar="N", type=int, help="write a line to this descriptor once serving")
    parser.add_argument("--idle-exit", metavar="S", type=float, help="stop after S seconds without any connection")
    parser.add_argument(
        "--grace",
        metavar="S",
        type=float,
        default=DEFAULT_GRACE_S,
        help=f"how long a claim outlives its connection (default: {DEFAULT_GRACE_S:g})",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="serve a copy of the log, refuse changes, and write nothing there"
    )
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    parser.add_argument("--log-format", choices=("human", "json"), default="human")
    offline = parser.add_mutually_exclusive_group()
    offline.add_argument("--verify", metavar="FILE", help="don't serve: check a log and print a report")
    offline.add_argument("--repair", action="store_true", help="don't serve: repair the log of the data directory")
    offline.add_argument(
        "--restore", metavar="FILE", help="don't serve: replace the log of the data directory with this backup"
    )
    parser.add_argument("--aside", metavar="DIR", help="with --restore: directory to create for the current log")
    parser.add_argument("--version", action="version", version=f"punchlistd {__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon and return its exit code."""
    options = build_parser().parse_args(argv)
    # Import these after parsing the arguments: `--help` and a wrong option don't need them.
    if options.verify is not None or options.restore is not None or options.repair:
        from punchlistd.offline import audit  # noqa: PLC0415

        return audit.run(options)
    from punchlistd.app import run  # noqa: PLC0415
    from punchlistd.process import logs  # noqa: PLC0415

    logs.set_up(options.log_level, options.log_format, os.environ)
    return run.run(options)


if __name__ == "__main__":
    sys.exit(main())
