"""`punch setup vscode-extension`: the editors' own commands install the extension."""

from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.installing import shipped
from punchlist_apps.cli.installing.vscode_extension import ID, PACKAGE
from punchlist_apps.common import extras


@pytest.fixture(autouse=True)
def vsix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The extension's package; its content doesn't matter."""
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


def write_program(path: Path, name: str, body: str) -> Path:
    """Write an editor command that records its arguments, then runs the body. Return the file with the arguments."""
    (path / name).write_text(f'#!/bin/sh\nfor word; do echo "$word"; done >> {path}/{name}.calls\n{body}\n')
    (path / name).chmod(0o755)
    return path / f"{name}.calls"


def test_all_editors_install_and_remove_the_extension(run: Any, path: Path, vsix: Path) -> None:
    code = write_program(path, "code", f'[ "$1" = --list-extensions ] && echo Other.one && echo {ID}; exit 0')
    cursor = write_program(path, "cursor", "exit 0")
    (path / "codium").symlink_to(path / "code")
    outcome = run("setup", "vscode-extension", "--print")
    assert (outcome.code, outcome.lines[0]) == (0, f"+ {path}/code --install-extension {vsix} --force")
    assert not code.exists()
    done = run("setup", "vscode-extension")
    assert (done.code, done.lines[-1].strip()) == (0, "to remove it: punch setup vscode-extension --remove")
    assert code.read_text().split() == cursor.read_text().split() == ["--install-extension", str(vsix), "--force"]
    removed = run("setup", "vscode-extension", "--remove")
    assert removed.lines[-1] == "code: removed"
    assert "cursor: nothing to remove" in removed.lines
    assert code.read_text().split()[-2:] == ["--uninstall-extension", ID]
    assert "--uninstall-extension" not in cursor.read_text()


def test_without_an_editor_the_package_is_named(run: Any, path: Path, vsix: Path) -> None:
    outcome = run("setup", "vscode-extension")
    assert outcome.code == 1
    assert "VS Code not found in PATH (looked for code, " in outcome.err
    assert f"choose {vsix}" in outcome.err


def test_an_editors_failure_is_reported(run: Any, path: Path) -> None:
    write_program(path, "code", "exit 0")
    write_program(path, "cursor", "echo 'no space left' >&2; exit 1")
    outcome = run("setup", "vscode-extension")
    assert outcome.code == 1
    assert "cursor failed: no space left" in outcome.err
    assert f"already changed: code; to see more, run: {path}/cursor --install-extension" in outcome.err
    write_program(path, "code", "exit 3")
    assert "code failed: exit code 3\n  nothing was changed" in run("setup", "vscode-extension").err
    (path / "code").write_text("#!/nowhere\n")
    assert "code can't be started" in run("setup", "vscode-extension").err


@pytest.mark.parametrize("option", [("--scope", "project"), ("--allow",), ("-c", "website")])
def test_options_of_other_hosts_are_rejected_for_vscode(run: Any, option: tuple[str, ...]) -> None:
    outcome = run("setup", "vscode-extension", *option)
    assert (outcome.code, "leave the other options out" in outcome.err) == (2, True)


def test_a_missing_extension_names_the_build_command(run: Any, vsix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vsix.unlink()
    monkeypatch.setattr(extras, "find_source_directory", lambda: None)
    outcome = run("setup", "vscode-extension")
    assert outcome.code == 78
    missing = f"{PACKAGE} is not part of this installation"
    advice = "in a checkout run make vscode (Node is included), then reinstall punchlist from it"
    assert f"{missing}\n  {advice}" in outcome.err


def test_an_installation_from_a_checkout_names_both_commands(
    run: Any, home: Path, vsix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vsix.unlink()
    (checkout := home / "my clone").mkdir()
    (checkout / "Makefile").touch()
    monkeypatch.setattr(extras, "find_source_directory", lambda: str(checkout))
    monkeypatch.setattr(extras, "build_reinstall_command", lambda: "uv tool install x")
    assert f": make -C '{checkout}' vscode && uv tool install x\n" in run("setup", "vscode-extension").err


def test_removal_works_without_the_package(run: Any, path: Path, vsix: Path) -> None:
    vsix.unlink()
    code = write_program(path, "code", f'[ "$1" = --list-extensions ] && echo {ID}; exit 0')
    removed = run("setup", "vscode-extension", "--remove")
    assert (removed.code, removed.lines[-1]) == (0, "code: removed")
    assert code.read_text().split()[-2:] == ["--uninstall-extension", ID]
    (path / "code").unlink()
    outcome = run("setup", "vscode-extension", "--remove")
    assert (outcome.code, "in VS Code, run 'Extensions: Uninstall'" in outcome.err) == (1, True)
