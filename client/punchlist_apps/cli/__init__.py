"""The command line `punch`: formatted output on a terminal, plain lines in a pipe, JSON for programs."""

import os
import sys

from punchlist_apps import relay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STDERR = 2


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code; `punchlist_apps.cli.printing.exit_codes` lists the codes."""
    _reserve_standard_numbers()
    words = sys.argv[1:] if argv is None else [*argv]
    try:
        from punchlist_apps.cli.calling import warm_process

        path, names = warm_process.take_path(), list[str]()
        # Before anything else is loaded: every session of every host runs a relay.
        if relay.is_relayed(words):
            code = relay.run(words)
            if code is not None:
                return code
            words.append(relay.OWN)
        from punchlist_apps.cli import dispatch
        from punchlist_apps.cli.parsing.index import REPEATABLE
    except KeyboardInterrupt:
        return 130
    code = dispatch.run(words, lambda name, _waits: names.append(name))
    if path and not REPEATABLE.isdisjoint(names):  # others, such as `punch daemon stop`, would start it for nothing
        warm_process.start(path)
    return code


def _reserve_standard_numbers() -> None:
    """Reopen any standard descriptors that the shell has closed.

    Otherwise a socket could get one of their numbers and receive our output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= _STDERR:  # read-only, so that writing to it still fails
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until exit
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until exit
