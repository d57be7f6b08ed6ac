"""How to write for whoever reads: a terminal of some width with or without colours, or a pipe.

Light enough for a shell prompt.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
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
"""How long each of them is shown, in seconds."""

SPIN = "\x01"
"""Stands for the spinner in lines that are drawn in place. Texts of others never contain it."""

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
    """What the reader can show.

    `width` is in columns, 0 for no limit; `now` is the time in milliseconds for "since" notes, 0 to leave them out;
    `moves` tells whether the cursor can be moved to draw over what is there.
    """

    __slots__ = ("colour", "glyphs", "moves", "now", "terminal", "width")

    def __init__(
        self, *, colour: bool = False, width: int = 0, ascii_only: bool = False, terminal: bool = False, now: int = 0
    ) -> None:
        self.colour = colour
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
        """`text` in the colour of a style, or plain where colours are not wanted."""
        code = _STYLES.get(style, "") if self.colour else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def wants_colour(env: "Mapping[str, str]", terminal: bool) -> bool:
    """NO_COLOR (no-color.org) forbids colours, FORCE_COLOR asks for them, a dumb terminal or a pipe gets none."""
    if env.get("NO_COLOR"):
        return False
    forced = env.get("FORCE_COLOR", "")
    if forced:
        return forced != "0"
    return terminal and env.get("TERM", "") not in ("", "dumb")


def terminal_width(env: "Mapping[str, str]", fd: int) -> int:
    """Columns of the terminal at a descriptor: COLUMNS, else what the kernel says, else 80."""
    told = env.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(fd).columns or 80
    except OSError:
        return 80


def style_of(env: "Mapping[str, str]", fd: int = 1, *, now: int = 0) -> Style:
    """The style for a descriptor. `now` counts only on a terminal, so that piped output is stable."""
    terminal = os.isatty(fd)
    style = Style(
        colour=wants_colour(env, terminal),
        width=terminal_width(env, fd) if terminal else 0,
        ascii_only=not _shows_unicode(),
        terminal=terminal,
        now=now if terminal else 0,
    )
    style.moves = terminal and env.get("TERM", "") not in ("", "dumb")
    return style


def write(text: str) -> int:
    """Write to standard output; what its encoding can't hold becomes an escape. Returns exit code 0.

    Raises:
        BrokenPipeError: The reader has left, which ends the command quietly.
        OSError: It can't be written, for want of room or because it is closed.
    """
    data = text.encode(encoding(), "backslashreplace")
    while data:
        try:
            data = data[os.write(1, data) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None
    return 0


def encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _shows_unicode() -> bool:
    try:
        "✓●▸☐‖✗←→·…‼↓".encode(encoding())
    except (UnicodeEncodeError, LookupError):
        return False
    return True
