"""The command line `punch`: prints for people on a terminal, plain lines in a pipe, JSON for programs."""

import os
import sys

from punchlist_apps.cli import fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STDERR = 2


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code, which `punchlist_apps.cli.printing.exit_codes` explains."""
    _reserve_standard_numbers()
    arguments = sys.argv[1:] if argv is None else argv
    try:
        code = fast.run(arguments, os.environ)
        if code is not None:
            return code
        from punchlist_apps.cli import dispatch  # noqa: PLC0415 - the heavy half, only when the fast path passed
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:
        from punchlist_apps.cli.printing import failure  # noqa: PLC0415

        failure.write_json("--json" in arguments)
        return failure.show_exception(error) or 0
    return dispatch.run(arguments)


def _reserve_standard_numbers() -> None:
    """A stream that the shell has closed must not hand its number to the daemon's socket, which then got our output."""
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= _STDERR:  # read-only: writing there still fails
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for as long as we run
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
