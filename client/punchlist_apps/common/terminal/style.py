"""Output style: width, colors and glyphs of the terminal, or plain text for a pipe.

Imports little, so that a shell prompt can use it.
"""

import os
import sys
from collections.abc import Mapping

UNICODE_GLYPHS = {
    "completed": "✓",
    "in_progress": "●",
    "blocked": "▸",
    "pending": "☐",
    "paused": "‖",
    "failed": "✗",
    "arrow": "←",
    "to": "→",
    "dot": "·",
    "cut": "…",
    "urgent": "‼",
    "high": "!",
    "low": "↓",
}
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Glyphs of the spinner, in order."""

FRAME_S = 0.1
"""Time per frame of the spinner, in seconds."""

SPIN = "\x01"
"""Placeholder for the spinner in lines that are redrawn. Sanitized text never contains it."""

ASCII_GLYPHS = {
    "completed": "[x]",
    "in_progress": "[>]",
    "blocked": "[-]",
    "pending": "[ ]",
    "paused": "[=]",
    "failed": "[!]",
    "arrow": "<-",
    "to": "->",
    "dot": "-",
    "cut": "...",
    "urgent": "!!",
    "high": "!",
    "low": "v",
}
_STYLES = {
    "title": "1",
    "dim": "2",
    "completed": "2;32",
    "in_progress": "1;36",
    "blocked": "33",
    "pending": "",
    "paused": "2;33",
    "failed": "31",
    "urgent": "1;31",
    "high": "33",
    "low": "2",
    "note": "2",
    "owner": "35",
    "ok": "32",
    "warn": "33",
    "fail": "1;31",
}


class Style:
    """Capabilities of the output.

    Attributes:
        color: Whether to write color codes.
        width: Columns of a line; 0 for no limit.
        terminal: Whether the output is a terminal.
        now: Current time in milliseconds, for elapsed times; 0 to omit elapsed times.
        moves: Whether the cursor can be moved to redraw lines.
    """

    __slots__ = ("color", "glyphs", "moves", "now", "terminal", "width")

    def __init__(
        self, *, color: bool = False, width: int = 0, ascii_only: bool = False, terminal: bool = False, now: int = 0
    ) -> None:
        self.color = color
        self.width = width
        self.glyphs = ASCII_GLYPHS if ascii_only else UNICODE_GLYPHS
        self.terminal = terminal
        self.now = now
        self.moves = False

    def spin(self) -> None:
        """Mark tasks in progress with `SPIN` if the terminal can show a spinner."""
        if self.moves and self.glyphs is UNICODE_GLYPHS:
            self.glyphs = {**UNICODE_GLYPHS, "in_progress": SPIN}

    def paint(self, style: str, text: str) -> str:
        """Return the text in the color of a style, or unchanged without colors."""
        code = _STYLES.get(style, "") if self.color else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def wants_color(env: Mapping[str, str], terminal: bool) -> bool:
    """Return whether to use colors: NO_COLOR (no-color.org), then FORCE_COLOR, then a terminal that isn't dumb."""
    if env.get("NO_COLOR"):
        return False
    forced = env.get("FORCE_COLOR", "")
    if forced:
        return forced != "0"
    return terminal and env.get("TERM", "") not in ("", "dumb")


def detect_width(env: Mapping[str, str], fd: int) -> int:
    """Return the columns of a terminal: COLUMNS, else the kernel's value, else 80."""
    columns = env.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(fd).columns or 80
    except OSError:
        return 80


def detect_style(env: Mapping[str, str], fd: int = 1, *, now: int = 0) -> Style:
    """Return the style for a descriptor. `now` is used only on a terminal, so that piped output is stable."""
    terminal = os.isatty(fd)
    style = Style(
        color=wants_color(env, terminal),
        width=detect_width(env, fd) if terminal else 0,
        ascii_only=not _can_show_unicode(),
        terminal=terminal,
        now=now if terminal else 0,
    )
    style.moves = terminal and env.get("TERM", "") not in ("", "dumb")
    return style


def write(text: str) -> int:
    """Write to standard output and return exit code 0. Characters outside its encoding are escaped.

    Raises:
        BrokenPipeError: The reader has closed the pipe. The command exits without a message.
        OSError: The disk is full or the descriptor is closed.
    """
    data = text.encode(get_encoding(), "backslashreplace")
    while data:
        try:
            data = data[os.write(1, data) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None
    return 0


def get_encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _can_show_unicode() -> bool:
    try:
        "✓●▸☐‖✗←→·…‼↓".encode(get_encoding())
    except (UnicodeEncodeError, LookupError):
        return False
    return True
