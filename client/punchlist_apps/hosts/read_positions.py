"""Read position of each session in each list, stored in small files that survive restarts.

A session's hooks and its `punch agent watch` share the position. A lock ensures that each change is printed once.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256

import msgspec

from punchlist_apps.common import plain_json
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

LOCK_S = 2.0
"""Upper limit for the wait for another hook's lock, in seconds. A suspended hook must not block the others."""

_RETRY_S = 0.02
_KEEP_S = 30 * 86_400
"""Time after which a session's position is deleted, in seconds."""


class ReadPosition(msgspec.Struct, frozen=True):
    """The read position of a session.

    Attributes:
        epoch: The epoch of `seq`.
        seq: Position in the log.
        reminded: `ID@TIME` for each task in progress that the session was reminded of. TIME is the time at which the
            task was started.
        told: Positions after `seq` of the changes that `punch agent watch` has printed.
        started: The newest start of the session for which open tasks were printed, and its time in seconds since 1970.
    """

    epoch: str = ""
    seq: int | None = None
    reminded: tuple[str, ...] = ()
    told: tuple[int, ...] = ()
    started: tuple[str, float] = ("", 0.0)

    def advance(self, epoch: str, seq: int | None) -> "ReadPosition":
        """Return the position after all changes up to `seq` were printed."""
        told = tuple(one for one in self.told if seq is not None and one > seq) if epoch == self.epoch else ()
        return msgspec.structs.replace(self, epoch=epoch, seq=seq, told=told)


class LockedPosition:
    """The read position of a session in a list while it is locked."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            with open(path, "rb") as file:
                self.value = plain_json.read(file.read(), ReadPosition)
        except OSError:
            self.value = ReadPosition()

    def save(self, value: ReadPosition) -> None:
        # Without the lock, another hook may have saved a later position, which must not move back.
        if value != self.value and LockedPosition(self._path).value == self.value:
            atomic_write(self._path, msgspec.json.encode(value))
            self.value = value


class ReadPositions:
    """The read positions of all sessions, by the session's key."""

    def __init__(self, data_dir: str) -> None:
        self._directory = os.path.join(data_dir, "looked")

    @contextmanager
    def lock(self, session: str, conversation: str, timeout_s: float = LOCK_S) -> Generator[LockedPosition]:
        """Lock a session's position in a list. Continue without the lock if it isn't free in time."""
        make_directories(self._directory)
        self._delete_old(time.time() - _KEEP_S)
        name = sha256(f"{conversation}\0{session}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        path = os.path.join(self._directory, name)
        # A lock on the position's own file would be lost at the first save, which replaces that file.
        file = _lock(f"{path}.lock", time.monotonic() + timeout_s)
        try:
            yield LockedPosition(path)
        finally:
            os.close(file)

    def _delete_old(self, before: float) -> None:
        with os.scandir(self._directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)


def _lock(path: str, deadline: float) -> int:
    """Return the open file at `path`, locked unless the deadline has passed."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return file
            os.close(file)
            time.sleep(_RETRY_S)
            continue
        if os.fstat(file).st_nlink:
            os.utime(file)  # so that it isn't deleted as old
            return file
        os.close(file)  # Another process deleted it between open and flock.
