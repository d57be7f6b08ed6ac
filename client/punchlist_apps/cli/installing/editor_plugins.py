"""Installs and removes editor plugins for this user, in directories where the editors find them automatically.

A manifest lists the installed files, so that an upgrade or removal doesn't change files that the user has edited.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from punchlist_apps.cli.installing.shipped import read_shipped_tree
from punchlist_apps.hosts.configure import SetupError
from punchlist_apps.hosts.files import FileError, Raced, Replacement, read, remove_empty, replace_all
from punchlist_schemas import rendezvous

MANIFEST = ".installed"
"""Name of the manifest. Each line has the SHA-256 of an installed file, two spaces, and the file's path."""


class EditorPlugin(NamedTuple):
    """A plugin for an editor.

    Attributes:
        name: The editor's name for `punch setup`.
        title: The editor's display name.
        source: The folder that contains the files in a checkout.
        place: The folder to install, relative to the user's data directory, or to their Emacs directory.
        next_step: Advice to print after the installation.
    """

    name: str
    title: str
    source: str
    place: str
    next_step: str

    def directory(self, env: Mapping[str, str]) -> str:
        """Return the directory to install to, which is below XDG_DATA_HOME, ~/.local/share or the Emacs directory."""
        xdg = env.get("XDG_DATA_HOME") or ""
        home = rendezvous.home(env)
        if self.name == "emacs":
            return os.path.join(_emacs_directory(home, env), self.place)
        return os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".local/share"), self.place)

    def plan(self, directory: str, *, remove: bool = False) -> list[Replacement]:
        """Return the replacement for each file.

        Raises:
            SetupError: A file has been edited since it was installed, or can't be read.
            NotShipped: The plugin is not part of this installation.
        """
        try:
            manifest = read(os.path.join(directory, MANIFEST))
            files = {} if remove else self._read_files()
            installed = _read_manifest(manifest)
            plan: list[Replacement] = []
            for name in sorted({*installed, *files}):
                path = os.path.join(directory, name)
                before = read(path)
                if before is not None and before != files.get(name) and _digest(before) != installed.get(name):
                    raise SetupError(f"{path} has changed since punch setup wrote it")
                plan.append(Replacement(path, before, files.get(name)))
        except FileError as error:
            raise SetupError(str(error)) from error
        after = "".join(f"{_digest(data)}  {name}\n" for name, data in sorted(files.items())).encode()
        if manifest is not None or files:
            plan.append(Replacement(os.path.join(directory, MANIFEST), manifest, after or None))
        return plan

    def install(self, directory: str, plan: list[Replacement]) -> None:
        """Apply a plan completely or not at all, and remove the directories that are empty afterwards.

        Raises:
            SetupError: A file can't be written, or another program wrote to it. No file was changed.
        """
        try:
            replace_all([file for file in plan if file.before != file.after])
        except Raced as error:
            raise SetupError(f"{error}: another program writes to it") from error
        except (FileError, OSError) as error:
            raise SetupError(str(error)) from error
        folders = {os.path.dirname(file.path) for file in plan if file.after is None}
        top, below = directory.removesuffix(f"/{self.place}"), set(folders)
        while folders:
            folders = {os.path.dirname(folder) for folder in folders if len(folder) > len(top)}
            below |= folders - {top}
        for folder in sorted(below, key=len, reverse=True):
            remove_empty((folder,))

    def _read_files(self) -> dict[str, bytes]:
        """Return the plugin's files, except its tests. For Neovim, include the index of its manual."""
        tree = {name: data for name, data in read_shipped_tree(self.source).items() if not name.endswith("-tests.el")}
        if not any(name.startswith("doc/") for name in tree):
            return tree
        tags = sorted(
            (tag, os.path.basename(name))
            for name, data in tree.items()
            if name.startswith("doc/")
            for tag in re.findall(r"(?:^|\s)\*([^*\s|]+)\*(?=\s|$)", data.decode())
        )
        return {**tree, "doc/tags": "".join(f"{tag}\t{name}\t/*{tag}*\n" for tag, name in tags).encode()}


EDITORS = {
    "neovim": EditorPlugin(
        "neovim",
        "Neovim",
        "editors/nvim",
        "nvim/site/pack/punchlist/start/punchlist",
        "start nvim in a project and type :Punch; :checkhealth punchlist checks the installation",
    ),
    "emacs": EditorPlugin(
        "emacs",
        "Emacs",
        "editors/emacs",
        "elpa/punchlist-1.0.0",
        "start emacs in a project and type M-x punchlist; ? shows the keys",
    ),
}


def _emacs_directory(home: str, env: Mapping[str, str]) -> str:
    """Return ~/.emacs.d, or the XDG directory if only that exists, as Emacs does."""
    old = os.path.join(home, ".emacs.d")
    xdg = env.get("XDG_CONFIG_HOME") or ""
    new = os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".config"), "emacs")
    return new if os.path.isdir(new) and not os.path.isdir(old) else old


def _read_manifest(data: bytes | None) -> dict[str, str]:
    """Return each file's name → its SHA-256. Lines that name a path outside the plugin's directory are ignored."""
    lines = (line.partition("  ") for line in (data or b"").decode(errors="replace").splitlines())
    return {name: digest for digest, _, name in lines if name and ".." not in name.split("/") and name[0] != "/"}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
