"""The part of a build that hatchling runs: the version, and the files of a wheel that git doesn't hold.

A wheel and an sdist state the version with its commit in `__version__` of the packages. A checkout states the version
in its files, which is also the fallback without a tag or git.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[2]
STATED = ("daemon/punchlistd/__init__.py", "client/punchlist/base/__init__.py")
SHIPPED = "punchlist_apps/shipped"
VSIX = "editors/vscode/punchlist.vsix"
COMPLETIONS = {
    "bash/punch": "bash-completion/completions/punch",
    "zsh/_punch": "zsh/site-functions/_punch",
    "fish/punch.fish": "fish/vendor_completions.d/punch.fish",
}
"""Completion script → where its shell looks for it, below `share`."""

_LINE = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_DESCRIBED = re.compile(
    r"(?:v(?P<tag>\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?)-(?P<behind>\d+)-g)?(?P<commit>[0-9a-f]{8,40})(?P<changed>\.changed)?"
)


def stamped(root: Path = ROOT) -> str:
    """Version and commit of a tree: `0.2.0+g58f14210`, `0.2.0.post3+g…` three commits behind the tag v0.2.0.

    `.changed` at its end says that files differ from the commit. Without a tag it begins with what the files state; in
    an unpacked sdist it is what they state.
    """
    found = _LINE.search((root / STATED[0]).read_text("utf-8"))
    if found is None:
        raise ValueError(f"{STATED[0]} states no __version__")
    said = _DESCRIBED.fullmatch(_describe(root))
    if said is None:
        return found[1]
    public = found[1].partition("+")[0]
    if said["tag"]:
        public = said["tag"] + (f".post{said['behind']}" if said["behind"] != "0" else "")
    return f"{public}+g{said['commit']}{said['changed'] or ''}"


def version() -> str:
    """The part of it that an index of packages takes."""
    return stamped().partition("+")[0]


def _describe(root: Path) -> str:
    # An unpacked sdist may lie in somebody else's repository, whose commit would be a wrong one.
    if not (root / ".git").exists():
        return ""
    words = ("describe", "--tags", "--match", "v[0-9]*", "--long", "--always", "--abbrev=8", "--dirty=.changed")
    try:
        return subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


class BuildHook(BuildHookInterface[Any]):
    """Adds the stamped version to a wheel or an sdist, and to a wheel the completion scripts and VS Code's package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files; an editable installation reads the checkout's own."""
        # pip builds a checkout before it reads which Python that requires.
        if sys.version_info < (3, 11):  # noqa: UP036
            sys.exit(f"punchlist requires Python 3.11 or newer, and this is {platform.python_version()}")
        if version == "editable":
            return
        root = Path(self.root)
        stated = stamped(root)
        # Removed with this object, also after an error.
        self._folder = tempfile.TemporaryDirectory(prefix="punchlist-build-")
        folder = Path(self._folder.name)
        included: dict[str, str] = build_data["force_include"]
        for number, path in enumerate(STATED):
            text = _LINE.sub(f'__version__ = "{stated}"', (root / path).read_text("utf-8"))
            (made := folder / str(number)).write_text(text, "utf-8")
            included[str(made)] = path if self.target_name == "sdist" else path.partition("/")[2]
        if self.target_name != "wheel":
            return
        scripts = folder / "completions"
        _write_completions(root, scripts)
        included[str(scripts)] = f"{SHIPPED}/completions"
        build_data["shared_data"] |= {str(scripts / path): f"share/{place}" for path, place in COMPLETIONS.items()}
        if is_current(root / VSIX):
            included[str(root / VSIX)] = f"{SHIPPED}/{VSIX}"


def is_current(package: Path) -> bool:
    """Return whether VS Code's package exists and is newer than its sources."""
    sources = [*package.parent.glob("*.json"), *package.parent.glob("src/*")]
    return package.is_file() and all(source.stat().st_mtime <= package.stat().st_mtime for source in sources)


def _write_completions(root: Path, folder: Path) -> None:
    # In a process of its own: the Python that builds may have another punchlist. It gets the whole path of this one,
    # where an isolated build finds what [build-system] requires. Without -S, pip's sitecustomize would remove from it
    # what an editable punchlist has put there.
    path = [str(root / "client"), str(root / "schemas"), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-S", str(root / "completions/generate.py"), str(folder)]
    subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    # VS Code's packages take three numbers and nothing else.
    print(".".join(re.findall(r"\d+", version())[:3]))
