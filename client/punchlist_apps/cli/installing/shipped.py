"""Finds files shipped with the packages: units, completion scripts, plugins.

In a checkout, they are in its top directory.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

from punchlist_apps.cli.printing.failure import NotShipped

CHECKOUT = Path(__file__).resolve().parents[4]
INSTALLED = Path(__file__).resolve().parents[2] / "shipped"

_MADE_BY = {"completions": "make setup", "editors/vscode": "make vscode"}
"""Folder that isn't in git → the command that builds it in a checkout, with a bundled Node."""


def read_shipped(source: str) -> str:
    return find_shipped(source).read_text("utf-8")


def read_shipped_tree(source: str) -> dict[str, bytes]:
    """Return the content of all files below a shipped directory, by path relative to it."""
    top = find_shipped(source)
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def find_shipped(source: str) -> Path:
    """Return the path of a shipped file or directory.

    Raises:
        NotShipped: The file or directory isn't part of this installation.
    """
    for place in (INSTALLED, CHECKOUT):
        if (path := place / source).exists():
            return path
    command = next((command for folder, command in _MADE_BY.items() if source.startswith(folder)), None)
    if command is None:
        advice = "reinstall punchlist from a wheel"
    elif (CHECKOUT / "Makefile").exists():
        advice = f"build it: {command}"
    else:
        advice = _advise_rebuild(command)
    raise NotShipped(f"{source} is not part of this installation", advice)


def find_program() -> str:
    """Return the path of `punch` for other programs' files; the bare name if it isn't found."""
    sibling = os.path.join(os.path.dirname(sys.executable), "punch")
    return shutil.which("punch") or (sibling if os.path.exists(sibling) else "punch")


def _advise_rebuild(command: str) -> str:
    """Return advice to build a file in the checkout that punchlist was installed from, and to reinstall."""
    from punchlist_apps.common.extras import build_reinstall_command, find_source_directory

    checkout = find_source_directory()
    if checkout is None or not (Path(checkout) / "Makefile").exists():
        return f"in a checkout run {command} (Node is included), then reinstall punchlist from it"
    command = command.replace("make", f"make -C {shlex.quote(checkout)}", 1)
    return f"build it (Node is included) and reinstall punchlist: {command} && {build_reinstall_command()}"
