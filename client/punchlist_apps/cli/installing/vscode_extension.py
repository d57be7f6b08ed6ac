"""The extension of VS Code: installed and removed by the editor's own command, which keeps a register of its own."""

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
"""The commands of VS Code and of the editors made of it."""

_TIMEOUT_S = 120.0


class ExtensionError(Exception):
    """An editor's command failed; the message has what it said."""


class CodeEditor(NamedTuple):
    """An editor that is installed here.

    Attributes:
        name: What its command is called.
        path: Where the command is.
    """

    name: str
    path: str

    def build_command(self, package: Path | None) -> list[str]:
        """Return the command line that installs a package of the extension, or removes the extension if it is None."""
        if package is None:
            return [self.path, "--uninstall-extension", ID]
        return [self.path, "--install-extension", str(package), "--force"]

    def has_extension(self) -> bool:
        return ID in self._run([self.path, "--list-extensions"]).lower().split()

    def change(self, package: Path | None) -> None:
        """Install a package of the extension over any older one, or remove the extension if it is None."""
        self._run(self.build_command(package))

    def _run(self, words: list[str]) -> str:
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise ExtensionError(f"{self.name} did not end within {_TIMEOUT_S:.0f} s") from error
        except OSError as error:
            raise ExtensionError(f"{self.name} can't be started: {error.strerror}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            raise ExtensionError(f"{self.name} failed: {said[-1] if said else f'exit code {done.returncode}'}")
        return done.stdout.decode(errors="replace")


def find_package() -> Path:
    """The extension as a file that every VS Code can install."""
    return find_shipped(PACKAGE)


def find_editors() -> list[CodeEditor]:
    """The editors that are installed here, VS Code itself first; those whose commands are the same file are one."""
    found: dict[str, CodeEditor] = {}
    for name in PROGRAMS:
        if path := shutil.which(name):
            found.setdefault(os.path.realpath(path), CodeEditor(name, path))
    return list(found.values())
