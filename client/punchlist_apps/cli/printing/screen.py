"""A region of the terminal that is redrawn in place, below earlier output."""

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
"""A signal handler, in the form that `signal.signal` accepts and returns."""


def build_frame(lines: Sequence[str], drawn: int) -> str:
    """Return the text that replaces `drawn` lines above the cursor with `lines`."""
    up = f"\x1b[{drawn}A" if drawn else ""
    return f"{up}\r" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J"


def build_spinner_update(lines: Sequence[str], spinner: str) -> str:
    """Return the text that redraws the spinner in the lines above the cursor; empty if no line has a spinner."""
    updates: list[str] = []
    for up, line in zip(range(len(lines), 0, -1), lines, strict=True):
        if SPIN in line:
            updates.append(f"\x1b[{up}A\r{line.replace(SPIN, spinner)}\x1b[K\x1b[{up}B\r")
    return "".join(updates)


def crop(lines: Sequence[str], height: int, style: Style) -> list[str]:
    """Return at most `height` lines. If some are cut, the last line contains their number."""
    if len(lines) <= height:
        return list(lines)
    kept = max(height - 1, 0)
    more = truncate(f"  {style.glyphs['cut']} {len(lines) - kept} more lines", style.width, style.glyphs["cut"])
    return [*lines[:kept], style.paint("dim", more)]


class Screen:
    """Draws the lines of `content`, and redraws them after each resize.

    Use it in a `with` statement in the main thread.

    Other threads may scroll the region and write above it. If a line has a spinner, a thread animates it.

    Args:
        style: The style, whose width follows the window.
        content: Returns the lines to draw for a number of rows, each no wider than the style. The first line is a
            heading and isn't scrolled.
        max_lines: Maximum number of lines, for a view below other output; by default the height of the window.
    """

    def __init__(self, style: Style, content: Callable[[int], Sequence[str]], max_lines: int | None = None) -> None:
        self._style = style
        self._content = content
        self._max_lines = max_lines
        self._drawn: list[str] = []
        self._offset = 0
        self._lock = threading.RLock()
        self._has_spinner = threading.Event()
        self._is_closed = False
        self._busy = False
        self._resized = False
        self._spinner: threading.Thread | None = None
        self._handlers: dict[int, Handler] = {}

    def draw(self) -> None:
        with self._lock:
            self._busy = True
            room = min(_read_window_height() - 1, self._max_lines or _read_window_height())
            lines = list(self._content(room))
            self._offset = max(0, min(self._offset, len(lines) - room))
            lines = crop([*lines[:1], *lines[1 + self._offset :]], room, self._style)
            write(build_frame([line.replace(SPIN, _choose_spinner_frame()) for line in lines], len(self._drawn)))
            self._drawn = lines
            self._set_spinning()
            self._busy = False
            if self._resized:
                self._redraw_all()

    def scroll(self, by: int) -> None:
        """Scroll down by a number of lines; up if it is negative."""
        with self._lock:
            self._offset += by
            self.draw()

    def write_above(self, text: str) -> None:
        """Print whole lines above the region."""
        with self._lock:
            up = f"\x1b[{len(self._drawn)}A" if self._drawn else ""
            write(f"{up}\r\x1b[J{text}")
            self._drawn = []
            self.draw()

    def _set_spinning(self) -> None:
        if not any(SPIN in line for line in self._drawn):
            self._has_spinner.clear()
        elif not self._has_spinner.is_set():
            self._has_spinner.set()
            if self._spinner is None:
                self._spinner = threading.Thread(target=self._spin, name="punchlist-spinner", daemon=True)
                self._spinner.start()

    def _spin(self) -> None:
        with suppress(OSError):  # the terminal is gone
            while self._has_spinner.wait():
                time.sleep(FRAME_S)
                with self._lock:
                    if self._is_closed:
                        return
                    self._busy = True
                    write(build_spinner_update(self._drawn, _choose_spinner_frame()))
                    self._busy = False
                    if self._resized:
                        self._redraw_all()

    def _redraw_all(self) -> None:
        self._resized = False
        self._style.width = detect_width({}, 1)
        if self._max_lines is not None:
            self.write_above("")
            return
        # Clear the window: if it became narrower, the terminal has wrapped the lines, and their rows can't be counted.
        self._drawn = []
        write("\x1b[H\x1b[2J")
        self.draw()

    def _on_resize(self, signum: int, stack: FrameType | None) -> None:
        self._resized = True
        if not self._busy:
            self._redraw_all()

    def _on_end(self, signum: int, stack: FrameType | None) -> None:
        # Don't rely on __exit__: the exception may be raised before the `with` block begins, or where it is swallowed.
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
            self._is_closed = True
        # Show the cursor before restoring the handlers: from then on, a signal may end the process immediately.
        _show_cursor()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _choose_spinner_frame() -> str:
    return FRAMES[int(time.monotonic() / FRAME_S) % len(FRAMES)]


def _show_cursor() -> None:
    with suppress(OSError):  # the terminal is gone
        write(_SHOW)


def _read_window_height() -> int:
    try:
        return os.get_terminal_size(1).lines or _FALLBACK_HEIGHT
    except OSError:
        return _FALLBACK_HEIGHT
