"""A secret that a client has to show or that signs what it shows, in a file that nobody else can read."""

import contextlib
import hmac
import secrets
from pathlib import Path

from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

_OTHERS = 0o077


class SecretFile:
    """A secret in a file of mode 0600, which is made if it is missing.

    A changed file counts at once. One that others could read counts as empty: nothing matches it.

    Args:
        path: Where it is.

    Attributes:
        path: The same.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._value = b""
        if not self.path.exists():
            with contextlib.suppress(FileExistsError):  # another process has just made it
                self._write(replace=False)

    @property
    def value(self) -> bytes:
        """The secret, b"" where there is none to be trusted."""
        try:
            status = self.path.stat()
            stamp = (status.st_ctime_ns, status.st_ino)  # not mtime: chmod and chown leave that as it is
            if stamp != self._stamp:
                is_private = not status.st_mode & _OTHERS
                self._value = self.path.read_bytes().strip() if is_private else b""
                self._stamp = stamp
        except OSError:
            return b""
        return self._value

    def matches(self, given: bytes) -> bool:
        """Whether this is the secret, in constant time."""
        value = self.value
        return bool(value) and hmac.compare_digest(given, value)

    def rotate(self) -> None:
        """Put a fresh secret in its place: what the old one signed counts no more."""
        self._write(replace=True)

    def _write(self, *, replace: bool) -> None:
        make_directories(str(self.path.parent))
        atomic_write(str(self.path), secrets.token_urlsafe(32).encode() + b"\n", replace=replace)
