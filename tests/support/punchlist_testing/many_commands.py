"""Runs many command lines in sequence on its terminal, each in a forked child with a timeout.

Its arguments are a JSON file with the command lines, and their working directory. A line with its number precedes the
output of each command line.
"""

import json
import os
import signal
import sys
from types import FrameType

from punchlist_apps.cli import dispatch, main
from punchlist_apps.cli.parsing.index import COMMANDS

SECONDS = 1.0
"""Time until a command is interrupted, in seconds. Some commands run until then, because they follow or serve."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def run(lines: list[tuple[dict[str, str], list[str]]]) -> None:
    """Run each command line, with additional environment variables."""
    _ = dispatch, [entry.usage for entry in COMMANDS.values()]  # load the modules before forking
    for number, (env, words) in enumerate(lines):
        sys.stdout.write(f"\r\n=={number}==\r\n")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.environ.update(env)
            signal.signal(signal.SIGALRM, _interrupt)
            signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
            code = 1
            try:
                code = main(words)
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.waitpid(child, 0)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = json.load(file)
    os.chdir(sys.argv[2])
    run(lines)
