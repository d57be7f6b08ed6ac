"""The command line `punch`: prints for people on a terminal, plain lines in a pipe, JSON for programs."""

import os
import sys

from punchlist.cli import fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code, which `punchlist.cli.exits` explains."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        code = fast.run(arguments, os.environ)
        if code is not None:
            return code
        from punchlist.cli import full  # noqa: PLC0415 - the heavy half, only when the fast path passed
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:
        sys.stderr.write(f"error: file: standard output: {error.strerror}\n")
        return 1
    return full.run(arguments)
