"""The version of a build: the tag's, with the commit behind it. hatchling asks here, as pyproject.toml says.

A wheel and a sdist state it in `__version__` of the packages, so whatever tells a version tells the commit too. A
checkout states what stands in its files, and is the fallback where there is no tag or no git.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[2]
STATED = ("daemon/punchlistd/__init__.py", "client/punchlist/__init__.py")

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


class Stamp(BuildHookInterface[Any]):
    """Puts files into a wheel or a sdist that state the version with its commit."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them; an editable installation reads the checkout's own."""
        if version == "editable":
            return
        root = Path(self.root)
        stated = stamped(root)
        self._folder = Path(tempfile.mkdtemp(prefix="punchlist-build-"))
        for number, path in enumerate(STATED):
            text = _LINE.sub(f'__version__ = "{stated}"', (root / path).read_text("utf-8"))
            (made := self._folder / str(number)).write_text(text, "utf-8")
            target = path if self.target_name == "sdist" else path.partition("/")[2]
            build_data["force_include"][str(made)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove them."""
        if version != "editable":
            shutil.rmtree(self._folder)
