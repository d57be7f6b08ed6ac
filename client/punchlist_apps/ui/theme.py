"""The dark and the light theme, and which of them fits the terminal."""

import os
import re
import select
import termios
import time
import tty
from collections.abc import Mapping

from textual.theme import Theme


def _name_hues(colors: str) -> dict[str, str]:
    """Return the hues of agents as variables: indigo, teal, ochre, rose, olive and slate."""
    return {f"agent{number}": color for number, color in enumerate(colors.split())}


THEMES = {
    "dark": Theme(
        "dark",
        primary="#4aa3df",
        secondary="#c792ea",
        accent="#56c8e8",
        warning="#e0a144",
        error="#ef7a87",
        success="#6cc070",
        foreground="#e3e6e8",
        background="#121517",
        surface="#1a1f22",
        panel="#22292e",
        variables={
            "faint": "#9ba3a7",
            "cursor-line": "#16363d",
            "edge": "#4a5257",
            **_name_hues("#98a2ff #4fc3c2 #f0a066 #f39ab5 #b9c95c #a9b8d0"),
        },
    ),
    "light": Theme(
        "light",
        primary="#0b5f8f",
        secondary="#7b2d86",
        accent="#0a5f82",
        warning="#855300",
        error="#aa2b25",
        success="#2b6a30",
        foreground="#1d2022",
        background="#fbfaf6",
        surface="#f5f3ec",
        panel="#ecebe3",
        dark=False,
        variables={
            "faint": "#5c5f59",
            "cursor-line": "#d9e9e4",
            "edge": "#b9b8ae",
            **_name_hues("#4a55c7 #0a6a6b #8f4610 #a1325a #556311 #50607a"),
        },
    ),
}
"""Themes by name. All their colors have a contrast of at least 4.5 on ground, bar and cursor line."""

PATIENCE_S = 1.0
"""Time that the terminal has to report its background, in seconds.

A report over a slow connection that came later would be taken for keys, some of which change tasks."""
_QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
"""Asks for the background (OSC 11), then for the terminal's type (DA1), which every terminal reports."""
_BACKGROUND = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_TYPE = re.compile(rb"\x1b\[\?[0-9;]*c")
_LIGHT = 0.5
_LIGHT_COLORS = (7, 15)
"""Background colors in COLORFGBG that are light."""


def find_theme(env: Mapping[str, str], fd: int) -> str:
    """Return the theme for a terminal: by its own report, else by COLORFGBG, else `dark`."""
    report = _BACKGROUND.search(_ask(fd))
    if report is not None:
        red, green, blue = (int(digits, 16) / (16 ** len(digits) - 1) for digits in report.groups())
        return "light" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > _LIGHT else "dark"
    color = env.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if color.isdecimal() and int(color) in _LIGHT_COLORS else "dark"


def _ask(fd: int) -> bytes:
    """Return what the terminal reports within `PATIENCE_S`; nothing if it isn't a terminal."""
    try:
        before = termios.tcgetattr(fd)
    except (termios.error, OSError):
        return b""
    answer = b""
    try:
        tty.setcbreak(fd, termios.TCSANOW)
        os.write(fd, _QUESTION)
        end = time.monotonic() + PATIENCE_S
        while (rest := end - time.monotonic()) > 0 and _TYPE.search(answer) is None:
            if select.select([fd], [], [], rest)[0]:
                answer += os.read(fd, 1024)
    except OSError:
        return b""
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
    return answer
