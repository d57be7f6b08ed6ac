"""Runs a host's own command to add the MCP server to the host's configuration or to remove it.

The host then writes its file itself, so the host's own locking applies.
"""

import shlex
import shutil
import subprocess

from punchlist_apps.hosts.catalog import Host, Place
from punchlist_schemas import rendezvous

_TIMEOUT_S = 60
_COMMENTS = {"json": (b"//", b"/*"), "toml": (b"#",)}
_MAX_MESSAGE = 200


class HostCommand:
    """The command of one host."""

    def __init__(self, host: Host, place: Place) -> None:
        self._host = host
        self._place = place

    def can_change(self, present: bytes | None, *, remove: bool) -> bool:
        """Return whether the command is installed, supports the change, and preserves the file's comments."""
        command = self._host.command
        if command is None or self._place.scope != "user" or (remove and not command.remove):
            return False
        has_comments = any(mark in (present or b"") for mark in _COMMENTS[self._host.form])
        return (command.keeps_comments or not has_comments) and self._find_program() is not None

    def format(self, *, remove: bool) -> str:
        command = self._host.command
        return shlex.join([command.program, *self._host.build_command(self._place, remove=remove)]) if command else ""

    def run(self, *, is_present: bool, remove: bool) -> str:
        """Add or replace the server, or remove it. Return the problem, or an empty string.

        Args:
            is_present: Whether the file contains the server, which is then removed first.
        """
        command = self._host.command
        if command is None:
            return ""
        calls = [list(command.remove)] if is_present and command.remove else []
        calls += [] if remove else [self._host.build_command(self._place)]
        for arguments in calls:
            if problem := self._call(arguments):
                return f"{shlex.join([command.program, *arguments[:2]])}: {problem}"
        return ""

    def _find_program(self) -> str | None:
        command = self._host.command
        return shutil.which(command.program, path=self._place.env.get("PATH")) if command else None

    def _call(self, arguments: list[str]) -> str:
        # Run in the home directory, so that the current project's configuration has no effect.
        home = rendezvous.home(self._place.env)
        try:
            process = subprocess.run(
                [self._find_program() or "", *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                cwd=home,
                env=dict(self._place.env),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"timed out after {_TIMEOUT_S} s"
        except OSError as error:
            return error.strerror or str(error)
        lines = (process.stderr.strip() or process.stdout.strip()).splitlines()
        return (
            ""
            if process.returncode == 0
            else (lines[-1] if lines else f"exit code {process.returncode}")[:_MAX_MESSAGE]
        )
