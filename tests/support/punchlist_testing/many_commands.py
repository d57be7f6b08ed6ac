"""Runs many command lines one after the other on the terminal it was given, each in a forked child with little time.

Its arguments are a file that holds them as JSON, and the directory in which they run. Before the output of each stands
its number on a line of its own.
"""

import json
import os
import signal
import sys
from types import FrameType

from punchlist_apps.cli import dispatch, main
from punchlist_apps.cli.parsing.index import COMMANDS

SECONDS = 1.0
"""How long each may take before it is interrupted: some follow or serve until then."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def run(lines: list[tuple[dict[str, str], list[str]]]) -> None:
    """Run each command line, with these further variables."""
    _ = dispatch, [entry.usage for entry in COMMANDS.values()]  # what every child needs is loaded once
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
