"""A secret that a client has to show or that signs what it shows, in a file that nobody else can read."""

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
    """Reports to standard error why a file lets no client in, once until the reason changes.

    Clients get the same error as with a wrong token, so only this tells the owner of the server.
    """

    def __init__(self) -> None:
        self._problem = ""

    def report(self, problem: str) -> None:
        """Write the problem, unless it is the last one; an empty one ends it."""
        if problem not in ("", self._problem):
            print(safe(f"punch: no client is let in: {problem}"), file=sys.stderr, flush=True)
        self._problem = problem


class SecretFile:
    """A secret in a file of mode 0600, which is made if it is missing.

    A changed file counts at once. One that others could read counts as empty: nothing matches it.

    Attributes:
        path: The same.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._reporter = Reporter()
        self._stamp: tuple[int, int] | None = None
        self._value = b""
        self._problem = ""
        if not self.path.exists():
            with contextlib.suppress(FileExistsError):  # another process has just made it
                self._write(replace=False)

    @property
    def value(self) -> bytes:
        """The secret, b"" where there is none to be trusted."""
        return self._value if self.check() else b""

    @property
    def problem(self) -> str:
        """Why there is no secret to be trusted, and what to do; empty if there is one."""
        try:
            status = self.path.stat()
            stamp = (status.st_ctime_ns, status.st_ino)  # not mtime: chmod and chown leave that as it is
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

    def matches(self, given: bytes) -> bool:
        """Whether this is the secret, in constant time."""
        value = self.value
        return bool(value) and hmac.compare_digest(given, value)

    def rotate(self) -> None:
        """Put a fresh secret in its place: what the old one signed counts no more."""
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
