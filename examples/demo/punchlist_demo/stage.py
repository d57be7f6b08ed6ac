"""Shows the demo: lines with time to read them on a terminal, and a list that is redrawn in place."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from textwrap import TextWrapper

import msgspec

from punchlist.base.text import safe
from punchlist.calls.cursor import TaskList
from punchlist_apps.cli.printing.screen import Screen, crop
from punchlist_apps.common.terminal.render import format_list, truncate_painted
from punchlist_apps.common.terminal.style import Style, write

_COLUMNS = 80
_LINE_S, _REFUSAL_S, _LIST_S = 0.15, 1.5, 0.2
"""Pauses after a line, after a rejected call and after a redrawn list, in seconds."""

_MAX_LIVE_ROWS, _ROWS_ABOVE = 16, 3
"""Maximum number of redrawn rows, and how many of them are reserved for the lines above the list."""

_COLOURS = ("in_progress", "owner", "warn")


class Stage:
    """Shows the steps of the demo.

    Args:
        style: Colors and width.
        is_live: Whether to pause after lines, and to redraw the list in place.

    Attributes:
        has_failed: Whether a check failed.
    """

    def __init__(self, style: Style, *, is_live: bool = False) -> None:
        self.style = style
        self.has_failed = False
        self._is_live = is_live
        self._is_redrawn = False
        self._actors: list[str] = []
        self._list: tuple[str, TaskList] | None = None
        style.width = style.width or _COLUMNS
        self._screen = Screen(
            style, lambda rows: crop(self._list_lines(), max(1, rows - _ROWS_ABOVE), style), _MAX_LIVE_ROWS
        )

    def heading(self, text: str) -> None:
        self._print(["", self.style.paint("title", text)])

    def action(self, actor: str, text: str) -> None:
        self._print([self.actor(actor) + " " + text])

    def actor(self, name: str) -> str:
        """Return a name in its color."""
        if name not in self._actors:
            self._actors.append(name)
        return self.style.paint(_COLOURS[self._actors.index(name) % len(_COLOURS)], name)

    def reply(self, text: str, *, refused: bool = False) -> None:
        wrapper = TextWrapper(self.style.width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        lines = [part for line in text.splitlines() for part in wrapper.wrap(safe(line))]
        self._print([self.style.paint("fail" if refused else "", line) for line in lines])
        self._pause(_REFUSAL_S * refused)

    def output(self, text: str, last: int = 0) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        is_cut = 0 < last < len(lines)
        self._print([f"  {self.style.glyphs['cut']}", *lines[-last:]] if is_cut else lines)

    def check(self, text: str, good: bool) -> None:
        """Show whether a statement is true."""
        self.has_failed |= not good
        mark = self.style.paint("ok", "yes") if good else self.style.paint("fail", " NO")
        self._print([f"  {mark}  {text}"])

    def show_list(self, name: str, tasks: TaskList) -> None:
        """Show a list as `punch watch` does. In a `redrawn` block, it replaces the list shown before."""
        self._list = name, tasks
        if not self._is_redrawn:
            self._print(self._list_lines())
        elif self._is_live:
            self._screen.draw()
            self._pause(_LIST_S)

    @contextmanager
    def redrawn(self) -> Generator[None]:
        """Redraw the list in place below the lines of this block. Without a live terminal, show it once at the end."""
        self._is_redrawn = True
        try:
            with self._screen if self._is_live else nullcontext():
                yield
        finally:
            self._is_redrawn = False
        if not self._is_live:
            self._print(self._list_lines())

    def _list_lines(self) -> list[str]:
        if self._list is None:
            return []
        name, tasks = self._list
        counts: dict[str, int] = msgspec.to_builtins(tasks.counts)
        return format_list(name, msgspec.to_builtins(list(tasks)), counts, self.style, folded=True)

    def _print(self, lines: Sequence[str]) -> None:
        cut = (truncate_painted(line, self.style.width, self.style.glyphs["cut"]) for line in lines)
        print_text = self._screen.write_above if self._is_redrawn and self._is_live else write
        print_text("".join(f"{line}\n" for line in cut))
        self._pause(_LINE_S * len(lines))

    def _pause(self, seconds: float) -> None:
        if self._is_live:
            time.sleep(seconds)
