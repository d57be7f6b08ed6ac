"""Runs git for commands."""

from typing import TYPE_CHECKING

from punchlist_apps.cli.printing.failure import StateError

if TYPE_CHECKING:
    import subprocess

_READ_S = 10


def run_git(folder: str, *words: str, timeout_s: float = _READ_S) -> "subprocess.CompletedProcess[bytes]":
    """Run git in a directory, without input.

    Raises:
        StateError: git is missing, or takes longer than the timeout.
    """
    import subprocess

    try:
        return subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StateError(f"git can't be run: {error}") from error
