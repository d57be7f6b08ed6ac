from pathlib import Path

import pytest

from punchlist_apps.ui.board import Board
from punchlist_apps.ui.changes import CHANGES
from punchlist_apps.ui.keymap import BadKeys, load_keymap
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.list_screen import ListScreen
from punchlist_apps.ui.now import Now

SCREENS: dict[str, type[LineScreen]] = {"now": Now, "board": Board, "list": ListScreen}


@pytest.mark.parametrize("name", load_keymap().keys)
def test_every_key_has_action_on_its_screens(name: str) -> None:
    for screen in load_keymap().keys[name].screens:
        assert name in CHANGES or hasattr(SCREENS[screen], f"do_{name}")


@pytest.mark.parametrize("screen", SCREENS)
def test_every_hint_names_a_key_of_its_screen(screen: str) -> None:
    assert [name for name in SCREENS[screen].hints if screen not in load_keymap().keys[name].screens] == []


def test_own_file_overrides_keys(tmp_path: Path) -> None:
    (own := tmp_path / "keys.toml").write_text('down = ["Y", "down"]\nredo = "N"\n')
    keys = load_keymap(own)
    assert [keys.find_action("list", key) for key in ("Y", "N", "j", "k")] == ["down", "redo", None, "up"]
    assert keys.hint("copy") == "", "the user's own key takes precedence over a default"
    assert (keys.hint("down"), keys.hint("back"), keys.hint("palette")) == ("Y", "Esc", ":")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('strat = "S"', "unknown action 'strat'; did you mean start?"),
        ('start = "d"', "the key 'd' can't be both start and done"),
        ("start = 3", "start must be a key or a list of keys"),
        ("start", "keys.toml: "),
        (None, "No such file"),
    ],
)
def test_invalid_key_file_is_rejected(tmp_path: Path, text: str | None, said: str) -> None:
    own = tmp_path / "keys.toml"
    if text is not None:
        own.write_text(text)
    with pytest.raises(BadKeys, match=said):
        load_keymap(own)
