"""The command line `punch`: prints for people on a terminal, plain lines in a pipe, JSON for programs."""

import os
import sys
from collections.abc import Sequence

_STDERR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, which `punchlist_apps.cli.printing.exit_codes` explains."""
    _reserve_standard_numbers()
    try:
        from punchlist_apps.cli import dispatch
    except KeyboardInterrupt:
        return 130
    return dispatch.run(sys.argv[1:] if argv is None else argv)


def _reserve_standard_numbers() -> None:
    """Occupy the standard descriptors that the shell has closed: a socket that got one would receive our output."""
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= _STDERR:  # read-only: writing there still fails
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until exit
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until exit
