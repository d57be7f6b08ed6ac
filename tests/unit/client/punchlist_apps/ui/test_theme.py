import os
import pty
import threading
import tty
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.ui.groups import HEADING, Arrangement
from punchlist_apps.ui.memory import Memory, find_path
from punchlist_apps.ui.theme import THEMES, find_theme


def find_luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def find_contrast(one: str, other: str) -> float:
    dark, light = sorted((find_luminance(one), find_luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_colors_are_readable(name: str) -> None:
    theme = THEMES[name]
    texts = ["primary", "secondary", "accent", "warning", "error", "success", "foreground"]
    colors = {text: str(getattr(theme, text)) for text in texts} | {
        name: color for name, color in theme.variables.items() if name not in ("cursor-line", "edge")
    }
    for ground in (theme.background, theme.panel, theme.variables["cursor-line"]):
        contrasts = {text: find_contrast(str(ground), value) for text, value in colors.items()}
        assert [(text, value) for text, value in contrasts.items() if value < 4.5] == []


@pytest.fixture
def ends() -> Generator[tuple[int, int]]:
    """Both ends of a terminal: what the user's terminal reads, and what the program reads."""
    outer, inner = pty.openpty()
    tty.setraw(inner)
    yield outer, inner
    os.close(outer)
    os.close(inner)


@pytest.mark.parametrize(
    ("answer", "environment", "theme"),
    [
        (b"\x1b]11;rgb:ffff/ffff/eeee\x1b\\\x1b[?62c", {"COLORFGBG": "15;0"}, "light"),
        (b"\x1b]11;rgb:12/15/17\x07\x1b[?1;2c", {"COLORFGBG": "0;15"}, "dark"),
        (b"\x1b[?62c", {"COLORFGBG": "0;15"}, "light"),
        (b"", {"COLORFGBG": "15;default;0"}, "dark"),
        (b"garbage \xff", {}, "dark"),
    ],
)
def test_theme_follows_terminal(ends: tuple[int, int], answer: bytes, environment: dict[str, str], theme: str) -> None:
    outer, inner = ends

    def respond() -> None:
        asked = b""
        while not asked.endswith(b"\x1b[c"):
            asked += os.read(outer, 64)
        os.write(outer, answer)

    terminal = threading.Thread(target=respond)
    terminal.start()
    assert find_theme(environment, inner) == theme
    terminal.join(10)


def test_theme_needs_no_terminal(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert find_theme({"COLORFGBG": "0;15"}, file.fileno()) == "light"


def test_memory_survives_program(tmp_path: Path) -> None:
    path = find_path({"XDG_STATE_HOME": str(tmp_path)})
    memory = Memory(path)
    memory.theme = "light"
    memory.arrangement = Arrangement("owner", "due", frozenset({f'{HEADING}owner:"ann"\n'}))
    memory.save()
    again = Memory(path)
    assert (again.theme, again.arrangement) == ("light", memory.arrangement)


@pytest.mark.parametrize("text", ["theme = 3", "[[", 'group = "x"\nsort = "y"', "\xff"])
def test_damaged_memory_is_ignored(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "ui.toml"
    path.write_text(text, "latin-1")
    assert Memory(path).arrangement == Arrangement()


def test_relative_state_home_is_ignored(tmp_path: Path) -> None:
    assert find_path({"XDG_STATE_HOME": "state", "HOME": str(tmp_path)}) == tmp_path / ".local/state/punchlist/ui.toml"


def test_any_label_can_be_folded(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "ui.toml")
    memory.theme = "light"
    folded = frozenset(f"{HEADING}label:{name}" for name in ("🐛", "é", '"', "\\", "\x7f", "\x1b"))
    memory.arrangement = Arrangement(folded=folded)
    memory.save()
    assert Memory(tmp_path / "ui.toml").arrangement.folded == folded
    assert Memory(tmp_path / "ui.toml").theme == "light"
