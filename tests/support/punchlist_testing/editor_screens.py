"""Neovim and Emacs on a terminal, with the plugin and no other configuration."""

from pathlib import Path

from punchlist_testing import emacs, nvim
from punchlist_testing.editor_process import environment
from punchlist_testing.screen import Screen

SIZE = {"columns": 96, "rows": 22}


class Neovim(Screen):
    """Neovim on a terminal."""

    def __init__(self, socket: str, directory: Path) -> None:
        """Start Neovim."""
        colours = ["--cmd", "set termguicolors background=light"]
        words = ["nvim", "--clean", "-n", "--cmd", f"set runtimepath^={nvim.PLUGIN}", *colours]
        super().__init__(words, environment(socket, directory / "home"), **SIZE)
        self.shows("[No Name]")

    def open(self, name: str) -> None:
        """Type the command that opens a list, without the final Return."""
        self.type(f":edit punchlist://{name}")
        self.shows(f":edit punchlist://{name}")


class Emacs(Screen):
    """Emacs on a terminal."""

    def __init__(self, socket: str, directory: Path) -> None:
        """Start Emacs."""
        words = ["emacs", "-nw", "-Q", "-L", str(emacs.PLUGIN), "-l", "punchlist", "--eval", "(menu-bar-mode -1)"]
        super().__init__(words, environment(socket, directory / "home"), **SIZE)
        self.shows("*scratch*")

    def open(self, name: str) -> None:
        """Type the command that opens a list, without the final Return."""
        self.type(f'\x1b:(punchlist--show "{name}")')
        self.shows(f'(punchlist--show "{name}")')
