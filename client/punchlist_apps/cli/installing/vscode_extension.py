"""Installs and removes the VS Code extension with the editor's own command, because the editor keeps a registry."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from punchlist_apps.cli.installing.shipped import find_shipped

NAME = "vscode-extension"
ID = "punchlist.punchlist"
PACKAGE = "editors/vscode/punchlist.vsix"
PROGRAMS = ("code", "code-insiders", "codium", "code-oss", "cursor", "windsurf", "code-server")
"""The commands of VS Code and of editors based on it."""

_TIMEOUT_S = 120.0


class ExtensionError(Exception):
    """An editor's command failed. The message contains the command's output."""


class CodeEditor(NamedTuple):
    """An installed editor.

    Attributes:
        name: The name of the editor's command.
        path: The path of the command.
    """

    name: str
    path: str

    def build_command(self, package: Path | None) -> list[str]:
        """Return the command line that installs the extension's package, or without one removes the extension."""
        if package is None:
            return [self.path, "--uninstall-extension", ID]
        return [self.path, "--install-extension", str(package), "--force"]

    def has_extension(self) -> bool:
        return ID in self._run([self.path, "--list-extensions"]).lower().split()

    def change(self, package: Path | None) -> None:
        """Install the extension's package, replacing any older version. Without a package, remove the extension."""
        self._run(self.build_command(package))

    def _run(self, words: list[str]) -> str:
        try:
            process = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ExtensionError(f"{self.name} did not end within {_TIMEOUT_S:.0f} s") from error
        except OSError as error:
            raise ExtensionError(f"{self.name} can't be started: {error.strerror}") from error
        if process.returncode != 0:
            output = (process.stderr or process.stdout).decode(errors="replace").strip().splitlines()
            raise ExtensionError(f"{self.name} failed: {output[-1] if output else f'exit code {process.returncode}'}")
        return process.stdout.decode(errors="replace")


def find_package() -> Path:
    return find_shipped(PACKAGE)


def find_editors() -> list[CodeEditor]:
    """Return the installed editors, VS Code first. Commands that refer to the same file count as one."""
    by_file: dict[str, CodeEditor] = {}
    for name in PROGRAMS:
        if path := shutil.which(name):
            by_file.setdefault(os.path.realpath(path), CodeEditor(name, path))
    return list(by_file.values())
