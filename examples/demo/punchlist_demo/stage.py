"""Shows the demo: lines one below the other, with pauses on a terminal, and a list that is redrawn in place."""

import textwrap
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import msgspec

from punchlist.cli.render import cut, cut_painted, list_lines
from punchlist.cli.screen import Screen
from punchlist.cli.style import Style, write
from punchlist.cursor import TaskList
from punchlist.text import safe

_COLUMNS = 80
_READ_S = 0.9
"""Time for one heading, call or list to be read, in seconds."""


class Stage:
    """Shows one step after the other.

    Args:
        style: Colours and width.
        is_live: Whether to pause after each step, and to redraw in place.

    Attributes:
        has_failed: Whether a check failed.
    """

    def __init__(self, style: Style, *, is_live: bool = False) -> None:
        self.style = style
        self.has_failed = False
        self._is_live = is_live
        self._actors: list[str] = []
        self._list: tuple[str, TaskList] | None = None
        self._below: Sequence[str] = ()
        style.width = style.width or _COLUMNS
        self._screen = Screen(style, lambda _room: self._drawn())

    def heading(self, text: str) -> None:
        """Show the heading of a scene."""
        self._print(["", *(self.style.paint("title", line) for line in self._wrapped(text))])
        self.pause()

    def action(self, actor: str, text: str) -> None:
        """Show who does what; each actor has a colour."""
        if actor not in self._actors:
            self._actors.append(actor)
        colour = ("in_progress", "owner", "warn")[self._actors.index(actor) % 3]
        text = cut(text, self.style.width - len(actor) - 1, self.style.glyphs["cut"])
        self._print([f"{self.style.paint(colour, actor)} {text}"])

    def reply(self, text: str, *, refused: bool = False) -> None:
        """Show the reply that an agent gets."""
        lines = [part for line in text.splitlines() for part in self._wrapped(safe(line), "  ")]
        self._print(self.style.paint("fail" if refused else "", line) for line in lines)
        self.pause(2 if refused else 1)

    def output(self, text: str, last: int = 0) -> None:
        """Show what a command printed, or its `last` lines."""
        dots = self.style.glyphs["cut"]
        lines = [line for line in text.splitlines() if line.strip()]
        shown = [f"  {dots}", *lines[-last:]] if last and len(lines) > last else lines
        self._print(cut_painted(line, self.style.width, dots) for line in shown)
        self.pause()

    def check(self, text: str, good: bool) -> None:
        """Show whether what the text states was found to be so."""
        self.has_failed |= not good
        mark = self.style.paint("ok", "yes") if good else self.style.paint("fail", " NO")
        first, *rest = self._wrapped(text, " " * 7)
        self._print([f"  {mark}  {first.strip()}", *rest])
        self.pause(0.5)

    def show_list(self, name: str, tasks: TaskList) -> None:
        """Show a list as `punch watch` does."""
        self._list = name, tasks
        self._print(self._list_lines())
        self.pause()

    @contextmanager
    def redrawn(self) -> Generator[None]:
        """Redraw the list in place within this block; without a live terminal show it at the end."""
        if self._is_live:
            with self._screen:
                yield
        else:
            yield
            self._print(self._list_lines())

    def redraw(self, name: str, tasks: TaskList, below: Sequence[str], *, is_event: bool) -> None:
        """Redraw the list with lines below it. Without a live terminal, print the lines of an event alone."""
        self._list = name, tasks
        self._below = below
        if self._is_live:
            self._screen.draw()
        elif is_event:
            self._print(self._fitted(below))
        self.pause(2 if is_event else 0.5)

    def _fitted(self, lines: Sequence[str]) -> list[str]:
        return [cut(line, self.style.width, self.style.glyphs["cut"]) for line in lines]

    def pause(self, times: float = 1) -> None:
        """Leave time to read on a live terminal."""
        if self._is_live:
            time.sleep(_READ_S * times)

    def _drawn(self) -> Sequence[str]:
        return [*self._list_lines(), "", *self._fitted(self._below)]

    def _list_lines(self) -> list[str]:
        if self._list is None:
            return []
        name, tasks = self._list
        return list_lines(
            name, msgspec.to_builtins(list(tasks)), msgspec.to_builtins(tasks.counts), self.style, folded=True
        )

    def _wrapped(self, text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(text, self.style.width, initial_indent=indent, subsequent_indent=indent)

    def _print(self, lines: "Sequence[str] | Generator[str]") -> None:
        write("".join(f"{line}\n" for line in lines))
