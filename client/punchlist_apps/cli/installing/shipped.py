"""Files that go with the packages: units, completion scripts, plugins. In a checkout they stand at its top."""

import shlex
from pathlib import Path

from punchlist_apps.cli.printing.failure import NotShipped

CHECKOUT = Path(__file__).resolve().parents[4]
INSTALLED = Path(__file__).resolve().parents[2] / "shipped"

_MADE_BY = {"completions": "make setup", "editors/vscode": "make vscode"}
"""Folder that git doesn't hold → the command that makes it in a checkout, which needs no Node of the user's."""


def shipped(source: str) -> str:
    """The text of a file as it was shipped."""
    return shipped_path(source).read_text("utf-8")


def shipped_tree(source: str) -> dict[str, bytes]:
    """All files below a directory as it was shipped, by their paths in it."""
    top = shipped_path(source)
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def shipped_path(source: str) -> Path:
    """Where a file or a directory is as it was shipped."""
    for place in (INSTALLED, CHECKOUT):
        if (path := place / source).exists():
            return path
    command = next((command for folder, command in _MADE_BY.items() if source.startswith(folder)), None)
    if command is None:
        advice = "install punchlist again, as a wheel"
    elif (CHECKOUT / "Makefile").exists():
        advice = f"make it: {command}"
    else:
        advice = _advise_rebuild(command)
    raise NotShipped(f"{source} is not part of this installation", advice)


def _advise_rebuild(command: str) -> str:
    """Return the advice to make a file in the checkout that punchlist was installed from, and to install it again."""
    from punchlist_apps.common.extras import build_reinstall_command, find_source_directory

    checkout = find_source_directory()
    if checkout is None or not (Path(checkout) / "Makefile").exists():
        return f"in a checkout run {command}, which brings its own Node, then install punchlist from it again"
    made = command.replace("make", f"make -C {shlex.quote(checkout)}", 1)
    return f"make it, which brings its own Node, and install punchlist again: {made} && {build_reinstall_command()}"
