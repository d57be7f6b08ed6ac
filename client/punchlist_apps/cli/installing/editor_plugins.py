"""The plugins of editors: installed for this user where the editor finds them by itself, and removed.

A manifest among the files says what we wrote, so that an upgrade or a removal touches nothing that a person changed.
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
"""The name of the file that has a line for each of ours: its SHA-256, two spaces, its path."""


class EditorPlugin(NamedTuple):
    """A plugin of ours.

    Attributes:
        name: What `punch setup` calls the editor.
        title: What people call it.
        source: Where the files are in a checkout.
        place: Where they go, below the user's data directory, or below their Emacs directory.
        next_step: What is left for the person to do.
    """

    name: str
    title: str
    source: str
    place: str
    next_step: str

    def directory(self, env: Mapping[str, str]) -> str:
        """Where the files go: below XDG_DATA_HOME, or ~/.local/share; for Emacs where it keeps its packages."""
        xdg = env.get("XDG_DATA_HOME") or ""
        home = rendezvous.home(env)
        if self.name == "emacs":
            return os.path.join(_emacs_directory(home, env), self.place)
        return os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".local/share"), self.place)

    def plan(self, directory: str, *, remove: bool = False) -> list[Replacement]:
        """What each file has to become.

        Raises:
            SetupError: A file is there that is not as we wrote it, or it can't be read.
            NotShipped: The plugin is not part of this installation.
        """
        try:
            manifest = read(os.path.join(directory, MANIFEST))
            wanted = {} if remove else self._files()
            ours = _read_manifest(manifest)
            plan: list[Replacement] = []
            for name in sorted({*ours, *wanted}):
                path = os.path.join(directory, name)
                before = read(path)
                if before is not None and before != wanted.get(name) and _digest(before) != ours.get(name):
                    raise SetupError(f"{path} is not as punch setup wrote it")
                plan.append(Replacement(path, before, wanted.get(name)))
        except FileError as error:
            raise SetupError(str(error)) from error
        after = "".join(f"{_digest(data)}  {name}\n" for name, data in sorted(wanted.items())).encode()
        if manifest is not None or wanted:
            plan.append(Replacement(os.path.join(directory, MANIFEST), manifest, after or None))
        return plan

    def install(self, directory: str, plan: list[Replacement]) -> None:
        """Do what was planned, all of it or nothing, and remove the directories that are empty then.

        Raises:
            SetupError: A file can't be written, or somebody else wrote to it meanwhile; every file is as it was.
        """
        try:
            replace_all([one for one in plan if one.before != one.after])
        except Raced as error:
            raise SetupError(f"{error}: another program writes to it") from error
        except (FileError, OSError) as error:
            raise SetupError(str(error)) from error
        folders = {os.path.dirname(one.path) for one in plan if one.after is None}
        top, below = directory.removesuffix(f"/{self.place}"), set(folders)
        while folders:
            folders = {os.path.dirname(one) for one in folders if len(one) > len(top)}
            below |= folders - {top}
        for folder in sorted(below, key=len, reverse=True):
            remove_empty((folder,))

    def _files(self) -> dict[str, bytes]:
        """The files of the plugin but its tests, with the index of its manual, which Neovim makes only when asked."""
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
        "start nvim in a project and type :Punch; :checkhealth punchlist looks whether all is well",
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
    """Emacs takes ~/.emacs.d if that is there, or else the XDG directory if that is."""
    old = os.path.join(home, ".emacs.d")
    xdg = env.get("XDG_CONFIG_HOME") or ""
    new = os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".config"), "emacs")
    return new if os.path.isdir(new) and not os.path.isdir(old) else old


def _read_manifest(data: bytes | None) -> dict[str, str]:
    """Name to SHA-256. A line that names a place outside the plugin's directory is none of ours."""
    lines = (line.partition("  ") for line in (data or b"").decode(errors="replace").splitlines())
    return {name: digest for digest, _, name in lines if name and ".." not in name.split("/") and name[0] != "/"}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
