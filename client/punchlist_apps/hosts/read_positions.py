"""How far each session has looked into a list, kept in small files so that it survives a restart of everything."""

import json
import os
import time
from hashlib import sha256

from punchlist_apps.common import plain_json
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

_KEEP_S = 30 * 86_400
"""A session that has not looked for so long, in seconds, is forgotten."""


class ReadPosition:
    """What a session has seen.

    `seq` is the position in the log of `epoch`; `reminded` are `ID@TIME` of the tasks in progress that it has been
    reminded of, with the time of their start.
    """

    __slots__ = ("epoch", "reminded", "seq")

    def __init__(self, epoch: str = "", seq: int | None = None, reminded: tuple[str, ...] = ()) -> None:
        self.epoch = epoch
        self.seq = seq
        self.reminded = reminded


class ReadPositions:
    """The looks of all sessions."""

    def __init__(self, data_dir: str) -> None:
        self._directory = os.path.join(data_dir, "looked")

    def of(self, session: str, conversation: str) -> ReadPosition:
        """What the session has seen of the list; nothing if that can't be told."""
        try:
            with open(self._path(session, conversation), "rb") as file:
                found = plain_json.read_members(file.read(), {"epoch": "", "seq": None, "reminded": ()})
        except OSError:
            return ReadPosition()
        return ReadPosition(**found)

    def save(self, session: str, conversation: str, looked: ReadPosition) -> None:
        members = {"epoch": looked.epoch, "seq": looked.seq, "reminded": looked.reminded}
        make_directories(self._directory)
        atomic_write(self._path(session, conversation), json.dumps(members).encode())
        self._forget(time.time() - _KEEP_S)

    def _path(self, session: str, conversation: str) -> str:
        name = sha256(f"{conversation}\0{session}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return os.path.join(self._directory, name)

    def _forget(self, before: float) -> None:
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry.path)
