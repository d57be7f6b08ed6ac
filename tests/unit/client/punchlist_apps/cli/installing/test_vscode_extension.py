"""`punch setup vscode-extension`: editors' own commands install the extension."""

from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.installing import shipped
from punchlist_apps.cli.installing.vscode_extension import ID, PACKAGE
from punchlist_apps.common import extras


@pytest.fixture(autouse=True)
def vsix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The extension's package, which is only handed on here."""
    (package := tmp_path / PACKAGE).parent.mkdir(parents=True)
    package.touch()
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path)
    return package


@pytest.fixture
def path(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in PATH."""
    path = home / "path"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    return path


def program(path: Path, name: str, body: str) -> Path:
    """A command of an editor: it writes down what it is given, then does what the body says."""
    (path / name).write_text(f'#!/bin/sh\nfor word; do echo "$word"; done >> {path}/{name}.asked\n{body}\n')
    (path / name).chmod(0o755)
    return path / f"{name}.asked"


def test_every_editor_that_is_there_installs_the_extension_once_and_removes_it(
    run: Any, path: Path, vsix: Path
) -> None:
    code = program(path, "code", f'[ "$1" = --list-extensions ] && echo Other.one && echo {ID}; exit 0')
    cursor = program(path, "cursor", "exit 0")
    (path / "codium").symlink_to(path / "code")
    shown = run("setup", "vscode-extension", "--print")
    assert (shown.code, shown.lines[0]) == (0, f"+ {path}/code --install-extension {vsix} --force")
    assert not code.exists()
    done = run("setup", "vscode-extension")
    assert (done.code, done.lines[-1].strip()) == (0, "take it back: punch setup vscode-extension --remove")
    assert code.read_text().split() == cursor.read_text().split() == ["--install-extension", str(vsix), "--force"]
    removed = run("setup", "vscode-extension", "--remove")
    assert removed.lines[-1] == "code: removed"
    assert "cursor: nothing to remove" in removed.lines
    assert code.read_text().split()[-2:] == ["--uninstall-extension", ID]
    assert "--uninstall-extension" not in cursor.read_text()


def test_without_an_editor_the_file_to_install_by_hand_is_named(run: Any, path: Path, vsix: Path) -> None:
    refused = run("setup", "vscode-extension")
    assert refused.code == 1
    assert "no VS Code is in PATH (looked for code, " in refused.err
    assert f"choose {vsix}" in refused.err


def test_what_an_editor_says_when_it_fails_is_told_and_what_was_done_before(run: Any, path: Path) -> None:
    program(path, "code", "exit 0")
    program(path, "cursor", "echo 'no space left' >&2; exit 1")
    refused = run("setup", "vscode-extension")
    assert refused.code == 1
    assert "cursor failed: no space left" in refused.err
    assert f"done before: code; run it to see more: {path}/cursor --install-extension" in refused.err
    program(path, "code", "exit 3")
    assert "code failed: exit code 3\n  nothing was changed" in run("setup", "vscode-extension").err
    (path / "code").write_text("#!/nowhere\n")
    assert "code can't be started" in run("setup", "vscode-extension").err


@pytest.mark.parametrize("option", [("--scope", "project"), ("--allow",), ("-c", "website")])
def test_an_option_that_means_nothing_for_the_extension_is_refused(run: Any, option: tuple[str, ...]) -> None:
    refused = run("setup", "vscode-extension", *option)
    assert (refused.code, "leave the other options out" in refused.err) == (2, True)


def test_an_installation_without_the_extension_names_the_command_that_makes_it(
    run: Any, vsix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vsix.unlink()
    monkeypatch.setattr(extras, "find_source_directory", lambda: None)
    refused = run("setup", "vscode-extension")
    assert refused.code == 78
    missing = f"{PACKAGE} is not part of this installation"
    then = "in a checkout run make vscode, which brings its own Node, then install punchlist from it again"
    assert f"{missing}\n  {then}" in refused.err


def test_an_installation_from_a_checkout_names_the_commands_that_add_the_extension(
    run: Any, home: Path, vsix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vsix.unlink()
    (checkout := home / "my clone").mkdir()
    (checkout / "Makefile").touch()
    monkeypatch.setattr(extras, "find_source_directory", lambda: str(checkout))
    monkeypatch.setattr(extras, "build_reinstall_command", lambda: "uv tool install x")
    assert f": make -C '{checkout}' vscode && uv tool install x\n" in run("setup", "vscode-extension").err


def test_an_installation_without_the_extension_removes_it(run: Any, path: Path, vsix: Path) -> None:
    vsix.unlink()
    code = program(path, "code", f'[ "$1" = --list-extensions ] && echo {ID}; exit 0')
    removed = run("setup", "vscode-extension", "--remove")
    assert (removed.code, removed.lines[-1]) == (0, "code: removed")
    assert code.read_text().split()[-2:] == ["--uninstall-extension", ID]
    (path / "code").unlink()
    refused = run("setup", "vscode-extension", "--remove")
    assert (refused.code, "in VS Code run 'Extensions: Uninstall'" in refused.err) == (1, True)
