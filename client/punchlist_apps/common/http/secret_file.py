"""A secret in a private file: a bearer token, or the key that signs tokens."""

import contextlib
import hmac
import secrets
import sys
from pathlib import Path

from punchlist.base.text import safe
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

_OTHERS = 0o077


class Reporter:
    """Reports to standard error why a secret can't be used, once per reason.

    Clients get the same error as for a wrong token, so the server's owner wouldn't notice otherwise.
    """

    def __init__(self) -> None:
        self._problem = ""

    def report(self, problem: str) -> None:
        """Write the problem unless it is the same as the last one. An empty problem resets the reporter."""
        if problem not in ("", self._problem):
            print(safe(f"punch: all clients are rejected: {problem}"), file=sys.stderr, flush=True)
        self._problem = problem


class SecretFile:
    """A secret in a file of mode 0600, which is created if it is missing.

    Changes to the file take effect immediately. If other users can read the file, nothing matches the secret.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._reporter = Reporter()
        self._stamp: tuple[int, int] | None = None
        self._value = b""
        self._problem = ""
        if not self.path.exists():
            with contextlib.suppress(FileExistsError):  # Another process has just created it.
                self._write(replace=False)

    @property
    def value(self) -> bytes:
        """The secret, or b"" if it can't be trusted."""
        return self._value if self.check() else b""

    @property
    def problem(self) -> str:
        """Why the secret can't be trusted and what to do; empty if it can."""
        try:
            status = self.path.stat()
            stamp = (status.st_ctime_ns, status.st_ino)  # chmod and chown don't change mtime
            if stamp != self._stamp:
                self._value, self._problem = self._read(is_private=not status.st_mode & _OTHERS)
                self._stamp = stamp
        except FileNotFoundError:
            return f"{self.path} is missing; restart the server to make a new one"
        except OSError as error:
            return f"{self.path} can't be read ({error.strerror}); remove it and restart the server to make a new one"
        return self._problem

    def check(self) -> bool:
        problem = self.problem
        self._reporter.report(problem)
        return not problem

    def matches(self, candidate: bytes) -> bool:
        """Compare with the secret in constant time."""
        value = self.value
        return bool(value) and hmac.compare_digest(candidate, value)

    def rotate(self) -> None:
        """Replace the secret, which invalidates everything signed with it."""
        self._write(replace=True)

    def _read(self, *, is_private: bool) -> tuple[bytes, str]:
        if not is_private:
            return b"", f"other users may read or write {self.path}; chmod 600 {self.path}"
        if value := self.path.read_bytes().strip():
            return value, ""
        return b"", f"{self.path} is empty; remove it and restart the server to make a new one"

    def _write(self, *, replace: bool) -> None:
        make_directories(str(self.path.parent))
        atomic_write(str(self.path), secrets.token_urlsafe(32).encode() + b"\n", replace=replace)
