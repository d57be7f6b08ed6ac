"""A part of the terminal that is drawn again in place, below what was printed before."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

from punchlist_apps.common.terminal.render import truncate
from punchlist_apps.common.terminal.style import FRAME_S, FRAMES, SPIN, Style, detect_width, write

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_FALLBACK_HEIGHT = 24


Handler = Callable[[int, FrameType | None], Any] | int | None
"""What `signal.signal` takes and gives back."""


def frame(lines: Sequence[str], drawn: int) -> str:
    """What to send to replace `drawn` lines above the cursor by `lines`."""
    up = f"\x1b[{drawn}A" if drawn else ""
    return f"{up}\r" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J"


def turn(lines: Sequence[str], spinner: str) -> str:
    """Return the text that redraws the spinner in the lines above the cursor; empty if none has one."""
    turned: list[str] = []
    for up, line in zip(range(len(lines), 0, -1), lines, strict=True):
        if SPIN in line:
            turned.append(f"\x1b[{up}A\r{line.replace(SPIN, spinner)}\x1b[K\x1b[{up}B\r")
    return "".join(turned)


def crop(lines: Sequence[str], height: int, style: Style) -> list[str]:
    """At most `height` lines; the last one tells how many are missing."""
    if len(lines) <= height:
        return list(lines)
    kept = max(height - 1, 0)
    more = truncate(f"  {style.glyphs['cut']} {len(lines) - kept} more lines", style.width, style.glyphs["cut"])
    return [*lines[:kept], style.paint("dim", more)]


class Screen:
    """Draws what `content` returns; again whenever the window changes its size. Use it in a `with`, in the main thread.

    Other threads may scroll it and write above it. A spinner turns while one is shown.

    Args:
        style: Its width follows the window.
        content: The lines to show, each no wider than its width, given how many there is room for. The first is a
            heading, which stays when the others are scrolled.
        most: Draw at most so many lines, below what others print; by default as many as the window has.
    """

    def __init__(self, style: Style, content: Callable[[int], Sequence[str]], most: int | None = None) -> None:
        self._style = style
        self._content = content
        self._most = most
        self._drawn: list[str] = []
        self._offset = 0
        self._lock = threading.RLock()
        self._spins = threading.Event()
        self._is_over = False
        self._busy = False
        self._resized = False
        self._spinner: threading.Thread | None = None
        self._handlers: dict[int, Handler] = {}

    def draw(self) -> None:
        with self._lock:
            self._busy = True
            room = min(_height() - 1, self._most or _height())
            lines = list(self._content(room))
            self._offset = max(0, min(self._offset, len(lines) - room))
            lines = crop([*lines[:1], *lines[1 + self._offset :]], room, self._style)
            write(frame([line.replace(SPIN, _spinner()) for line in lines], len(self._drawn)))
            self._drawn = lines
            self._set_spinning()
            self._busy = False
            if self._resized:
                self._redraw_all()

    def scroll(self, by: int) -> None:
        """Show what is so many lines further down, or up."""
        with self._lock:
            self._offset += by
            self.draw()

    def above(self, text: str) -> None:
        """Write whole lines above what is drawn."""
        with self._lock:
            up = f"\x1b[{len(self._drawn)}A" if self._drawn else ""
            write(f"{up}\r\x1b[J{text}")
            self._drawn = []
            self.draw()

    def _set_spinning(self) -> None:
        if not any(SPIN in line for line in self._drawn):
            self._spins.clear()
        elif not self._spins.is_set():
            self._spins.set()
            if self._spinner is None:
                self._spinner = threading.Thread(target=self._spin, name="punchlist-spinner", daemon=True)
                self._spinner.start()

    def _spin(self) -> None:
        with suppress(OSError):  # the terminal is gone
            while self._spins.wait():
                time.sleep(FRAME_S)
                with self._lock:
                    if self._is_over:
                        return
                    self._busy = True
                    write(turn(self._drawn, _spinner()))
                    self._busy = False
                    if self._resized:
                        self._redraw_all()

    def _redraw_all(self) -> None:
        self._resized = False
        self._style.width = detect_width({}, 1)
        if self._most is not None:
            self.above("")
            return
        # Lines that were wrapped by a narrower window can't be counted any more: begin at the top.
        self._drawn = []
        write("\x1b[H\x1b[2J")
        self.draw()

    def _on_resize(self, signum: int, stack: FrameType | None) -> None:
        self._resized = True
        if not self._busy:
            self._redraw_all()

    def _on_end(self, signum: int, stack: FrameType | None) -> None:
        # Here and not in __exit__ alone: what is raised may come before the block has begun, or where it is swallowed.
        _show_cursor()
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + signum)

    def __enter__(self) -> Self:
        ends = [signal.SIGTERM, signal.SIGHUP]
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            ends.append(signal.SIGINT)
        handlers = {signal.SIGWINCH: self._on_resize, **dict.fromkeys(ends, self._on_end)}
        for number, handler in handlers.items():
            self._handlers[number] = signal.signal(number, handler)
        write(_HIDE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
        _show_cursor()  # first: by the handlers from before, a signal may end the process at once
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _spinner() -> str:
    return FRAMES[int(time.monotonic() / FRAME_S) % len(FRAMES)]


def _show_cursor() -> None:
    with suppress(OSError):  # the terminal is gone
        write(_SHOW)


def _height() -> int:
    try:
        return os.get_terminal_size(1).lines or _FALLBACK_HEIGHT
    except OSError:
        return _FALLBACK_HEIGHT
