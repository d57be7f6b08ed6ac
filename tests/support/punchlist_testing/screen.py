"""A program on an emulated terminal: its screen as text, and as an SVG image."""

import io
import re
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from punchlist.connection.readable import is_readable
from punchlist_testing.terminal import PATIENCE_S, Terminal

_CONTROLLED = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Program that makes standard input the controlling terminal of another program, as Emacs requires."""

_NAMED = {"brown": "yellow", "brightbrown": "bright_yellow"}


class Screen(Terminal):
    """A terminal with an emulated screen.

    Attributes:
        cells: The `pyte.Screen`.
    """

    def __init__(self, words: list[str], env: Mapping[str, str], *, columns: int, rows: int) -> None:
        words = [sys.executable, "-c", _CONTROLLED, *words]
        super().__init__(words, {"TERM": "xterm-256color", **env}, columns=columns, rows=rows)
        pyte = import_module("pyte")
        self.cells: Any = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.cells)

    def until(self, holds: Callable[[list[str]], bool]) -> float:
        """Wait until the screen's lines satisfy `holds`, and return the time at that moment, in seconds since 1970."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(self.cells.display):
            readable = is_readable(self._master, deadline - time.monotonic())
            assert readable and self._read(), "\n".join(self.cells.display)
            self._stream.feed(self.shown)
            self.shown = ""
        return time.time()

    def shows(self, text: str) -> float:
        """Wait until text is on the screen, and return the time at that moment, in seconds since 1970."""
        return self.until(lambda lines: any(text in line for line in lines))

    def draw(self, path: Path, title: str) -> None:
        """Write the screen as an SVG image."""
        console = Console(width=self.cells.columns, record=True, file=io.StringIO(), force_terminal=True)
        for number in range(self.cells.lines):
            line = Text()
            for column in range(self.cells.columns):
                cell = self.cells.buffer[number][column]
                line.append(cell.data, _style(cell))
            console.print(line, no_wrap=True, overflow="crop")
        svg = console.export_svg(title=title, theme=DEFAULT_TERMINAL_THEME, unique_id=re.sub(r"\W", "", path.stem))
        svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg).replace("Fira Code", "DejaVu Sans Mono")
        path.write_text("\n".join(line.rstrip() for line in svg.strip().splitlines()) + "\n", "utf-8")


def _style(cell: Any) -> Style:
    return Style(
        color=_colour(cell.fg),
        bgcolor=_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


def _colour(name: str) -> Color | None:
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return Color.parse(f"#{name}")
    return Color.parse(_NAMED.get(name, name.replace("bright", "bright_")))
