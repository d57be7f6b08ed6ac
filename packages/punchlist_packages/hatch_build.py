"""Build hook for hatchling: adds the version, and the files of a wheel that aren't in git.

In a wheel and an sdist, `__version__` of the packages contains the commit too. In a checkout it is only the version,
which is also the fallback if there is no tag or no git.
"""

import os
import platform
import re
import shutil
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
"""Completion script → the path, below `share`, where its shell looks for it."""

PROGRAM = "client/punch.c"
MACHINE = "PUNCHLIST_MACHINE"
"""Environment variable with the architecture to compile for; by default this machine's. `any` compiles nothing."""

_TAG = "py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
"""Tag of a wheel whose only compiled file is a static program, which runs on any Linux."""

_PLAIN_PROGRAM = "#!python\nimport sys\nfrom punchlist_apps.cli import main\nsys.exit(main())\n"

_LINE = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_DESCRIBED = re.compile(
    r"(?:v(?P<tag>\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?)-(?P<behind>\d+)-g)?(?P<commit>[0-9a-f]{8,40})(?P<changed>\.changed)?"
)


def stamped(root: Path = ROOT) -> str:
    """Return the version and commit of a tree, such as `0.2.0+g58f14210`.

    Three commits after the tag v0.2.0, the result is `0.2.0.post3+g…`. The suffix `.changed` means that files differ
    from the commit. Without a tag, the version number is taken from the source files. In an unpacked sdist, the result
    is exactly the version in those files.
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
    """Return the public part of the stamped version, the only part that a package index accepts."""
    return stamped().partition("+")[0]


def _describe(root: Path) -> str:
    # An unpacked sdist may be inside another repository, whose commit would be the wrong one.
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
        """Add the files, except to an editable installation, which uses those of the checkout."""
        # pip builds a checkout before it checks the required Python version.
        if sys.version_info < (3, 11):  # noqa: UP036
            sys.exit(f"punchlist requires Python 3.11 or newer, and this is {platform.python_version()}")
        root = Path(self.root)
        # Removed with this object, even after an error.
        self._folder = tempfile.TemporaryDirectory(prefix="punchlist-build-")
        folder = Path(self._folder.name)
        if self.target_name == "wheel":
            program, machine = folder / "punch", os.environ.get(MACHINE, platform.machine())
            if not compile_program(program, machine):
                program.write_text(_PLAIN_PROGRAM, "utf-8")
                program.chmod(0o755)
            elif version != "editable":
                build_data |= {"pure_python": False, "tag": _TAG.format(machine=machine)}
            build_data["shared_scripts"][str(program)] = "punch"
        if version == "editable":
            return
        stated = stamped(root)
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


def compile_program(target: Path, machine: str) -> bool:
    """Compile the program `punch` for Linux on an architecture. Return whether there is a compiler that can do it."""
    compiler = shutil.which("cc" if machine == platform.machine() else f"{machine}-linux-gnu-gcc")
    if sys.platform != "linux" or compiler is None:
        return False
    command = [compiler, "-O2", "-s", "-static", "-o", str(target), str(ROOT / PROGRAM)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def is_current(package: Path) -> bool:
    """Return whether VS Code's package exists and is newer than its sources."""
    sources = [*package.parent.glob("*.json"), *package.parent.glob("src/*")]
    return package.is_file() and all(source.stat().st_mtime <= package.stat().st_mtime for source in sources)


def _write_completions(root: Path, folder: Path) -> None:
    # Run this in a separate process, because the Python that runs the build may have another punchlist installed. It
    # gets this process's complete sys.path, because an isolated build finds the packages of [build-system] there.
    # Without -S, pip's sitecustomize would remove the entries that an editable punchlist has added.
    path = [str(root / "client"), str(root / "schemas"), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-S", str(root / "completions/generate.py"), str(folder)]
    subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    # Versions of VS Code packages must consist of exactly three numbers.
    print(".".join(re.findall(r"\d+", version())[:3]))
