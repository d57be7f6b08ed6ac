"""A part of the terminal that is drawn again in place, below what was printed before."""

import os
import signal
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

from punchlist.cli.look import Look, terminal_width, write
from punchlist.cli.render import cut

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_FALLBACK_HEIGHT = 24


Handler = Callable[[int, FrameType | None], Any] | int | None
"""What `signal.signal` takes and gives back."""


def frame(lines: Sequence[str], drawn: int) -> str:
    """What to send to replace `drawn` lines above the cursor by `lines`."""
    up = f"\x1b[{drawn}A" if drawn else ""
    return f"{up}\r" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J"


def crop(lines: Sequence[str], height: int, look: Look) -> list[str]:
    """At most `height` lines; the last one tells how many are missing."""
    if len(lines) <= height:
        return list(lines)
    kept = max(height - 1, 0)
    more = cut(f"  {look.glyphs['cut']} {len(lines) - kept} more lines", look.width, look.glyphs["cut"])
    return [*lines[:kept], look.paint("dim", more)]


class Screen:
    """Draws what `content` returns; again whenever the window changes its size. Use it in a `with`, in the main thread.

    Args:
        look: Its width follows the window.
        content: The lines to show, each no wider than the look's width, given how many there is room for.
    """

    def __init__(self, look: Look, content: Callable[[int], Sequence[str]]) -> None:
        self._look = look
        self._content = content
        self._drawn = 0
        self._busy = False
        self._resized = False
        self._handlers: dict[int, Handler] = {}

    def draw(self) -> None:
        """Show the content as it is now."""
        self._busy = True
        room = _height() - 1
        lines = crop(self._content(room), room, self._look)
        write(frame(lines, self._drawn))
        self._drawn = len(lines)
        self._busy = False
        if self._resized:
            self._redraw_all()

    def _redraw_all(self) -> None:
        # Lines that were wrapped by a narrower window can't be counted any more: begin at the top.
        self._resized = False
        self._look.width = terminal_width({}, 1)
        self._drawn = 0
        write("\x1b[H\x1b[2J")
        self.draw()

    def _on_resize(self, signum: int, stack: FrameType | None) -> None:
        self._resized = True
        if not self._busy:
            self._redraw_all()

    def _on_end(self, signum: int, stack: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    def __enter__(self) -> Self:
        handlers = {signal.SIGWINCH: self._on_resize, signal.SIGTERM: self._on_end, signal.SIGHUP: self._on_end}
        self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        write(_HIDE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        try:
            write(_SHOW)
        except OSError:
            return  # the terminal is gone


def _height() -> int:
    try:
        return os.get_terminal_size(1).lines or _FALLBACK_HEIGHT
    except OSError:
        return _FALLBACK_HEIGHT
