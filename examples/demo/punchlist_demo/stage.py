"""Shows the demo: lines one below the other, with time to read on a terminal, and a list that is redrawn in place."""

import textwrap
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import msgspec

from punchlist.cli.render import cut_painted, list_lines
from punchlist.cli.screen import Screen
from punchlist.cli.style import Style, write
from punchlist.cursor import TaskList
from punchlist.text import safe

_COLUMNS = 80
_LINE_S = 0.15
"""Time to read a line, in seconds."""

_REFUSAL_S = 1.5
_BELOW = 6
"""How many lines are kept below a list that is redrawn."""

_COLOURS = ("in_progress", "owner", "warn")


class Stage:
    """Shows one step after the other.

    Args:
        style: Colours and width.
        is_live: Whether to leave time to read, and to redraw in place.

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
        self._below: list[str] = []
        style.width = style.width or _COLUMNS
        self._screen = Screen(style, lambda _room: [*self._list_lines(), "", *self._below])

    def heading(self, text: str) -> None:
        """Show the heading of a scene."""
        self._print(["", self.style.paint("title", text)])

    def action(self, actor: str, text: str) -> None:
        """Show a step of an actor."""
        self._print([self.actor(actor) + " " + text])

    def actor(self, name: str) -> str:
        """Return a name in its colour."""
        if name not in self._actors:
            self._actors.append(name)
        return self.style.paint(_COLOURS[self._actors.index(name) % len(_COLOURS)], name)

    def reply(self, text: str, *, refused: bool = False) -> None:
        """Show the reply that an agent gets."""
        lines = [part for line in text.splitlines() for part in self._wrapped(safe(line))]
        self._print([self.style.paint("fail" if refused else "", line) for line in lines])
        self._pause(_REFUSAL_S * refused)

    def output(self, text: str, last: int = 0) -> None:
        """Show what a command printed, or its `last` lines."""
        lines = [line for line in text.splitlines() if line.strip()]
        is_cut = 0 < last < len(lines)
        self._print([f"  {self.style.glyphs['cut']}", *lines[-last:]] if is_cut else lines)

    def check(self, text: str, good: bool) -> None:
        """Show whether a statement was found to be true."""
        self.has_failed |= not good
        mark = self.style.paint("ok", "yes") if good else self.style.paint("fail", " NO")
        self._print([f"  {mark}  {text}"])

    def show_list(self, name: str, tasks: TaskList) -> None:
        """Show a list as `punch watch` does; in a `redrawn` block in the place of the one before."""
        self._list = name, tasks
        if not self._is_redrawn:
            self._print(self._list_lines())
        elif self._is_live:
            self._screen.draw()

    def below(self, line: str) -> None:
        """Show a line below the list of a `redrawn` block."""
        if not self._is_live:
            self._print([line])
            return
        self._below = [*self._below, cut_painted(line, self.style.width, self.style.glyphs["cut"])][-_BELOW:]
        self._screen.draw()
        self._pause(2 * _LINE_S)

    @contextmanager
    def redrawn(self) -> Generator[None]:
        """Redraw the list in place within this block; without a live terminal show it at the end."""
        self._is_redrawn = True
        if self._is_live:
            with self._screen:
                yield
        else:
            yield
            self._print(self._list_lines())
        self._is_redrawn = False

    def _list_lines(self) -> list[str]:
        if self._list is None:
            return []
        name, tasks = self._list
        counts: dict[str, int] = msgspec.to_builtins(tasks.counts)
        return list_lines(name, msgspec.to_builtins(list(tasks)), counts, self.style, folded=True)

    def _wrapped(self, text: str) -> list[str]:
        return [f"  {line}" for line in textwrap.wrap(text, self.style.width - 2, break_on_hyphens=False)]

    def _print(self, lines: Sequence[str]) -> None:
        dots = self.style.glyphs["cut"]
        write("".join(f"{cut_painted(line, self.style.width, dots)}\n" for line in lines))
        self._pause(_LINE_S * len(lines))

    def _pause(self, seconds: float) -> None:
        if self._is_live:
            time.sleep(seconds)
