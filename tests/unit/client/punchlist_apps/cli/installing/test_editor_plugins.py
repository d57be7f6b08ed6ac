"""`punch setup` for editor plugins: all files or none, and no other files."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.installing import shipped
from punchlist_testing import emacs
from punchlist_testing.nvim import PLUGIN, Editor
from punchlist_testing.optional import needs

PLACE = "share/nvim/site/pack/punchlist/start/punchlist"


def read_files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def test_a_plugin_is_installed_and_removed_completely(run: Any, home: Path) -> None:
    (home / "share").mkdir()
    before = sorted(str(path) for path in home.rglob("*"))
    outcome = run("setup", "neovim", "--print")
    assert f"+ {home}/{PLACE}/lua/punchlist/init.lua" in outcome.lines
    assert sorted(str(path) for path in home.rglob("*")) == before
    done = run("setup", "neovim")
    assert (done.code, done.lines[-1].strip()) == (0, "to remove it: punch setup neovim --remove")
    files = read_files(home / PLACE)
    for path in PLUGIN.rglob("*.*"):
        assert files[str(path.relative_to(PLUGIN))] == path.read_bytes()
    assert b":Punch\tpunchlist.txt\t/*:Punch*\n" in files["doc/tags"]
    assert run("setup", "neovim").lines == ["Neovim: nothing to change"]
    assert run("setup", "neovim", "--remove").lines[-1] == "Neovim: removed"
    assert sorted(str(path) for path in home.rglob("*")) == before
    assert run("setup", "neovim", "--remove").lines == ["Neovim: nothing to remove"]


def test_an_edited_file_prevents_all_changes(run: Any, home: Path) -> None:
    assert run("setup", "neovim").code == 0
    changed = home / PLACE / "lua/punchlist/text.lua"
    changed.write_text("-- mine\n")
    before = read_files(home)
    for option in ((), ("--remove",)):
        outcome = run("setup", "neovim", *option)
        assert outcome.code == 1
        assert f"{changed} has changed since punch setup wrote it" in outcome.err
        assert read_files(home) == before


def test_an_upgrade_removes_obsolete_files(run: Any, home: Path) -> None:
    assert run("setup", "neovim").code == 0
    manifest = home / PLACE / ".installed"
    old = home / PLACE / "lua/punchlist/old.lua"
    shutil.copy(home / PLACE / "plugin/punchlist.lua", old)
    (line,) = [entry for entry in manifest.read_text().splitlines() if entry.endswith("  plugin/punchlist.lua")]
    manifest.write_text(manifest.read_text() + line.replace("plugin/punchlist.lua", "lua/punchlist/old.lua") + "\n")
    assert f"+ {old}" in run("setup", "neovim").lines
    assert not old.exists()


def test_a_manifest_cannot_name_outside_files(run: Any, home: Path) -> None:
    assert run("setup", "neovim").code == 0
    mine = home / "mine"
    mine.write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with (home / PLACE / ".installed").open("a") as manifest:
        manifest.write(f"{empty}  {mine}\n{empty}  ../../../../../../../../mine\n")
    assert run("setup", "neovim", "--remove").code == 0
    assert mine.exists()


def test_an_unwritable_file_prevents_all_changes(run: Any, home: Path) -> None:
    (home / PLACE).mkdir(parents=True)
    (home / PLACE / "lua").write_text("")
    before = read_files(home)
    outcome = run("setup", "neovim")
    assert (outcome.code, outcome.err.startswith("error: ")) == (1, True)
    assert read_files(home) == before


@pytest.mark.parametrize("option", [("--scope", "project"), ("--allow",), ("--tasks",), ("-c", "website")])
def test_options_of_other_hosts_are_rejected_for_editors(run: Any, option: tuple[str, ...]) -> None:
    outcome = run("setup", "neovim", *option)
    assert "leave the other options out" in outcome.err
    assert outcome.code == 2


def test_a_missing_plugin_is_reported(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path)
    outcome = run("setup", "neovim")
    assert outcome.code == 78
    assert "editors/nvim is not part of this installation" in outcome.err


@needs("nvim")
def test_neovim_finds_the_installed_plugin_and_its_manual(run: Any, home: Path, tmp_path: Path) -> None:
    assert run("setup", "neovim").code == 0
    with Editor(os.devnull, tmp_path, plugin=home / PLACE) as nvim:
        assert nvim.lua("return vim.fn.exists(':Punch')") == 2
        nvim.command("help punchlist-text")
        assert nvim.lua("return vim.fn.expand('%:p')") == str(home / PLACE / "doc/punchlist.txt")


def test_the_emacs_plugin_is_a_package(run: Any, home: Path) -> None:
    (home / ".emacs.d").mkdir()
    before = sorted(str(path) for path in home.rglob("*"))
    assert (
        run("setup", "emacs").lines[-2].startswith("Emacs is set up; start emacs in a project and type M-x punchlist")
    )
    files = read_files(home / ".emacs.d/elpa/punchlist-1.0.0")
    assert {name for name in files if not name.startswith(".")} == {
        path.name for path in emacs.PLUGIN.glob("*.el") if path.name != "punchlist-tests.el"
    }
    assert run("setup", "emacs").lines == ["Emacs: nothing to change"]
    assert run("setup", "emacs", "--remove").lines[-1] == "Emacs: removed"
    assert sorted(str(path) for path in home.rglob("*")) == before


def test_emacs_uses_an_existing_xdg_directory(run: Any, home: Path) -> None:
    (home / ".config/emacs").mkdir(parents=True, exist_ok=True)
    assert run("setup", "emacs").code == 0
    assert (home / ".config/emacs/elpa/punchlist-1.0.0/punchlist.el").exists() and not (home / ".emacs.d").exists()


@needs("emacs")
def test_emacs_finds_the_installed_plugin(run: Any, home: Path, tmp_path: Path) -> None:
    (home / ".emacs.d").mkdir()
    assert run("setup", "emacs").code == 0
    load = ("--eval", "(progn (require 'package) (package-initialize))")
    with emacs.Editor(str(tmp_path / "no.sock"), tmp_path, load=load, home=home) as editor:
        assert editor.eval("(and (commandp 'punchlist) (autoloadp (symbol-function 'punchlist)))") is True
        editor.eval("(progn (punchlist) nil)")
        assert "no daemon listens on" in editor.eval("punchlist--reason")
