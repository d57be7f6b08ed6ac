"""A host's own command, run to add our server to its configuration or to take it out.

The file is then written by the program that owns it, with whatever care it takes when several of it run at once.
"""

import shlex
import shutil
import subprocess

from punchlist_apps.hosts.catalog import Host, Place
from punchlist_schemas import rendezvous

_TIMEOUT_S = 60
_COMMENTS = {"json": (b"//", b"/*"), "toml": (b"#",)}
_MAX_TOLD = 200


class OwnCommand:
    """The command of one host."""

    def __init__(self, host: Host, place: Place) -> None:
        self._host = host
        self._place = place

    def can_change(self, present: bytes | None, *, remove: bool) -> bool:
        """Whether the command is there, can do it, and leaves what others wrote in the file where it is."""
        own = self._host.own
        if own is None or self._place.scope != "user" or (remove and not own.remove):
            return False
        has_comments = any(mark in (present or b"") for mark in _COMMENTS[self._host.form])
        return (own.keeps_comments or not has_comments) and self._program() is not None

    def shown(self, *, remove: bool) -> str:
        own = self._host.own
        return shlex.join([own.program, *self._host.own_words(self._place, remove=remove)]) if own else ""

    def run(self, *, is_there: bool, remove: bool) -> str:
        """Add our server, instead of one that `is_there`, or remove it; returns what went wrong, or nothing."""
        own = self._host.own
        if own is None:
            return ""
        calls = [list(own.remove)] if is_there and own.remove else []
        calls += [] if remove else [self._host.own_words(self._place)]
        for arguments in calls:
            if trouble := self._call(arguments):
                return f"{shlex.join([own.program, *arguments[:2]])}: {trouble}"
        return ""

    def _program(self) -> str | None:
        return shutil.which(self._host.own.program, path=self._place.env.get("PATH")) if self._host.own else None

    def _call(self, arguments: list[str]) -> str:
        # In the home directory, so that nothing of a project that we stand in has a say.
        home = rendezvous.home(self._place.env)
        try:
            done = subprocess.run(
                [self._program() or "", *arguments],
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
            return f"no end within {_TIMEOUT_S} s"
        except OSError as error:
            return error.strerror or str(error)
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return "" if done.returncode == 0 else (said[-1] if said else f"exit code {done.returncode}")[:_MAX_TOLD]
