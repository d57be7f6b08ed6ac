"""What the audience of the demo sees: a live list with a caption under it, or plain lines."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from punchlist.cli.render import cut, list_lines
from punchlist.cli.screen import Screen
from punchlist.cli.style import Style, write
from punchlist.sync import Client


class Stage(Protocol):
    """Shows one step after the other."""

    def say(self, text: str, call: str = "") -> None:
        """A caption, and the call that goes with it."""
        ...

    def pause(self, ms: int) -> None:
        """Give the audience time to read."""
        ...

    def figures(self, text: str) -> None:
        """The line of figures."""
        ...


class PlainStage:
    """Lines one below the other, without waiting."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def say(self, text: str, call: str = "") -> None:
        """One line for the caption and its call."""
        write(f"{self._style.glyphs['to']} {text}" + (f"  [{call}]" if call else "") + "\n")

    def pause(self, ms: int) -> None:
        """Nobody reads along."""

    def figures(self, text: str) -> None:
        """Told at the end alone."""


class LiveStage:
    """The list redrawn by push, with the caption and figures below. `follow` and `draw` belong to the main thread.

    Pushes arrive in a thread of their own, which only keeps the newest list; the main thread draws, while it pauses.
    """

    def __init__(self, style: Style, conversation: str) -> None:
        self._style = style
        self._conversation = conversation
        self._tasks: list[dict[str, Any]] = []
        self._counts: dict[str, int] = {}
        self._caption: tuple[str, str] = ("", "")
        self._figures = ""
        self._news = threading.Event()
        self.screen = Screen(style, lambda _room: self._lines())

    def follow(self, client: Client) -> None:
        """Show the list of a client from now on."""
        watch = client.conversation(self._conversation).watch(view="list")

        def read() -> None:
            for tasks in watch:
                self._tasks = msgspec.to_builtins(list(tasks))
                self._counts = msgspec.to_builtins(tasks.counts)
                self._news.set()

        threading.Thread(target=read, name="demo-watch", daemon=True).start()

    def say(self, text: str, call: str = "") -> None:
        """Change the caption."""
        self._caption = (text, call)
        self.screen.draw()

    def figures(self, text: str) -> None:
        """Change the line of figures; it is drawn with the next news."""
        self._figures = text
        self._news.set()

    def pause(self, ms: int) -> None:
        """Draw whatever comes for so many milliseconds."""
        end = time.monotonic() + ms / 1000
        while (left := end - time.monotonic()) > 0:
            if self._news.wait(left):
                self._news.clear()
                self.screen.draw()

    def _lines(self) -> Sequence[str]:
        style = self._style
        text, call = self._caption
        dots = style.glyphs["cut"]
        caption = cut(f"{style.glyphs['to']} {text}", style.width, dots)
        return [
            *list_lines(self._conversation, self._tasks, self._counts, style),
            "",
            style.paint("in_progress", caption),
            style.paint("dim", cut(f"  {call}", style.width, dots)),
            style.paint("owner", cut(f"  {self._figures}", style.width, dots)),
        ]
