"""Read position of each session in each list, stored in small files that survive restarts."""

import os
import time
from hashlib import sha256

import msgspec

from punchlist_apps.common import plain_json
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

_KEEP_S = 30 * 86_400
"""Time after which a session's position is deleted, in seconds."""


class ReadPosition(msgspec.Struct, frozen=True):
    """The read position of a session.

    Attributes:
        epoch: The epoch of `seq`.
        seq: Position in the log.
        reminded: `ID@TIME` for each task in progress that the session was reminded of. TIME is the time at which the
            task was started.
    """

    epoch: str = ""
    seq: int | None = None
    reminded: tuple[str, ...] = ()


class ReadPositions:
    """The read positions of all sessions."""

    def __init__(self, data_dir: str) -> None:
        self._directory = os.path.join(data_dir, "looked")

    def load(self, session: str, conversation: str) -> ReadPosition:
        """Return the session's position in the list, or an empty position if it isn't stored."""
        try:
            with open(self._path(session, conversation), "rb") as file:
                return plain_json.read(file.read(), ReadPosition)
        except OSError:
            return ReadPosition()

    def save(self, session: str, conversation: str, position: ReadPosition) -> None:
        make_directories(self._directory)
        atomic_write(self._path(session, conversation), msgspec.json.encode(position))
        self._delete_old(time.time() - _KEEP_S)

    def _path(self, session: str, conversation: str) -> str:
        name = sha256(f"{conversation}\0{session}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return os.path.join(self._directory, name)

    def _delete_old(self, before: float) -> None:
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry.path)
