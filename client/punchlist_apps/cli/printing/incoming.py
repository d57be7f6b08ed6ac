"""Standard input during a live view: either keys that scroll the view, or a pipe whose lines are printed above it."""

import os
import sys
import termios
import threading
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager

from punchlist_apps.cli.printing.screen import Screen

_PAGE = 10
_ALL = 1 << 30
_STEPS = {
    **{"j": 1, "\x1b[B": 1, "k": -1, "\x1b[A": -1, "g": -_ALL, "G": _ALL},
    **{" ": _PAGE, "\x1b[6~": _PAGE, "\x1b[5~": -_PAGE},
}
"""Bytes that a terminal sends for a key → number of lines to scroll."""


@contextmanager
def handle_input(screen: Screen, leave: Callable[[], None], *, above: bool) -> Generator[None]:
    """Handle standard input in a thread while the block runs.

    Args:
        screen: The live view.
        leave: Ends the view. Called when q is pressed or the pipe closes.
        above: Whether to print the lines of a pipe above the view, unchanged, instead of handling keys.
    """
    if above and not sys.stdin.isatty():
        _start_thread(_print_piped_lines, screen, leave)
        yield
    elif above or not sys.stdin.isatty():
        yield
    else:
        attributes = termios.tcgetattr(0)
        tty.setcbreak(0)
        _start_thread(_handle_keys, screen, leave)
        try:
            yield
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, attributes)


def _start_thread(
    work: Callable[[Screen, Callable[[], None]], None], screen: Screen, leave: Callable[[], None]
) -> None:
    threading.Thread(target=work, args=(screen, leave), daemon=True).start()


def _handle_keys(screen: Screen, leave: Callable[[], None]) -> None:
    while keys := os.read(0, 64).decode("ascii", "replace"):
        for key in (keys,) if keys.startswith("\x1b") else keys:
            if key == "q":
                leave()
                return
            if key in _STEPS:
                screen.scroll(_STEPS[key])


def _print_piped_lines(screen: Screen, leave: Callable[[], None]) -> None:
    with open(0, encoding="utf-8", errors="replace", closefd=False) as lines:
        for line in lines:
            screen.write_above(line if line.endswith("\n") else f"{line}\n")
    leave()
