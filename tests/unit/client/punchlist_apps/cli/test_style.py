import fcntl
import io
import os
import struct
import sys
import termios
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist_apps.common.terminal.style import (
    ASCII_GLYPHS,
    UNICODE_GLYPHS,
    Style,
    detect_style,
    detect_width,
    get_encoding,
    wants_color,
)
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import spawned, terminal


@pytest.fixture
def tty() -> Generator[int]:
    """A terminal whose window size isn't known yet."""
    master, slave = os.openpty()
    yield slave
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize(
    ("env", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0", "TERM": "xterm"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colors_follow_the_conventions(env: dict[str, str], terminal: bool, expected: bool) -> None:
    assert wants_color(env, terminal) is expected


def test_the_width_comes_from_columns_or_window(tty: int) -> None:
    assert detect_width({}, tty) == 80
    fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 132, 0, 0))
    assert detect_width({}, tty) == 132
    assert detect_width({"COLUMNS": "40"}, tty) == 40
    assert detect_width({"COLUMNS": "wide"}, tty) == 132
    assert detect_width({"COLUMNS": "0"}, tty) == 132


def test_pipes_have_no_width_or_relative_times(tmp_path: Path) -> None:
    with open(tmp_path / "no-terminal", "w") as file:
        assert detect_width({}, file.fileno()) == 80
        style = detect_style({"COLUMNS": "40", "TERM": "xterm"}, file.fileno(), now=5)
    assert (style.width, style.now, style.color, style.terminal, style.moves) == (0, 0, False, False, False)


@pytest.mark.parametrize(("term", "able"), [("xterm", True), ("dumb", False), (None, False)])
def test_only_capable_terminals_are_redrawn_and_colored(tty: int, term: str | None, able: bool) -> None:
    style = detect_style({} if term is None else {"TERM": term}, tty, now=5)
    assert (style.terminal, style.width, style.now) == (True, 80, 5)
    assert (style.moves, style.color) == (able, able)


@pytest.mark.parametrize(
    ("name", "glyphs"), [("utf-8", UNICODE_GLYPHS), ("ascii", ASCII_GLYPHS), ("latin-1", ASCII_GLYPHS)]
)
def test_glyphs_fit_the_encoding(name: str, glyphs: dict[str, str], tty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=name))
    assert get_encoding() == name
    assert detect_style({}, tty).glyphs == glyphs


def test_missing_standard_output_is_encoded_as_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert get_encoding() == "utf-8"


def test_glyph_sets_are_equal_and_unambiguous() -> None:
    assert ASCII_GLYPHS.keys() == UNICODE_GLYPHS.keys()
    assert "".join(ASCII_GLYPHS.values()).isascii()
    states = ("completed", "in_progress", "blocked", "pending", "paused", "failed")
    for glyphs in (ASCII_GLYPHS, UNICODE_GLYPHS):
        assert len({glyphs[state] for state in states}) == len(states)


def test_paint_is_reset_and_only_if_needed() -> None:
    style = Style(color=True)
    assert style.paint("title", "a") == "\x1b[1ma\x1b[0m"
    assert [style.paint("title", ""), style.paint("pending", "a"), style.paint("no such style", "a")] == ["", "a", "a"]
    assert Style().paint("title", "a") == "a"


@pytest.mark.usefixtures("home")
def test_a_terminal_has_colors_and_width(daemon: Running) -> None:
    with spawned("add", "x" * 100) as adding:
        assert adding.wait(20) == 0
    with terminal("list", columns=30) as screen:
        assert screen.finish() == 0
        assert "\x1b[1mdefault" in screen.shown
        assert f"#1\x1b[0m {'x' * 22}…\r\n" in screen.shown
    with terminal("list", env={"NO_COLOR": "1"}) as screen:
        assert screen.finish() == 0
        assert "\x1b" not in screen.shown
