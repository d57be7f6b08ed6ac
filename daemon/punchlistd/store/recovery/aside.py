"""Setting a log aside for another one, so that a kill in the middle is neither a loss nor mistaken for an empty log."""

import contextlib
import os
from collections.abc import Generator

from punchlist_schemas.system.atomic import atomic_write
from punchlistd.store.file.files import sync_directory
from punchlistd.store.port import LogUnusable

_OWN = ("log.db", "log.db-wal", "log.db-journal", "log.db-shm", "log.mark", "log.reserve")
_DERIVED = ("log.index", "log.search")
_NOTE = "restoring"
"""A file with the name of the backup, as long as the data directory holds neither the log of before nor the next."""


def check_whole(data_dir: str) -> None:
    """See that no log is just being replaced.

    Raises:
        LogUnusable: Somebody was killed while they did that; the message says how to go on.
    """
    with contextlib.suppress(FileNotFoundError), open(os.path.join(data_dir, _NOTE), "rb") as note:
        backup = os.fsdecode(note.read())
        raise LogUnusable(
            f"{data_dir} is between two logs: putting {backup} in place was cut off. "
            f"Repeat it: punch daemon restore {backup}; the log from before is in a directory aside-… there"
        )


@contextlib.contextmanager
def replacing(data_dir: str, aside: str | None, backup: str) -> Generator[None]:
    """Hold that a data directory is between two logs while the body puts the next one in place.

    Args:
        data_dir: The data directory.
        aside: A directory to be made, for the log and all that belongs to it; None: there is no log.
        backup: What is put in place, for the note.

    Raises:
        OSError: That can't be done; then, as after any failure of the body, everything is where it was.
    """
    note = os.path.join(data_dir, _NOTE)
    was_cut_off = os.path.lexists(note)
    moved: list[tuple[str, str]] = []
    here_before = _names(data_dir)
    if aside is not None:
        os.mkdir(aside, 0o700)
    try:
        if aside is not None:
            atomic_write(note, os.fsencode(backup), fsync=True)
        for name in sorted(here_before) if aside is not None else ():
            pair = os.path.join(data_dir, name), os.path.join(aside or "", name)
            os.rename(*pair)
            moved.append(pair)
            sync_directory(pair[1])
        here_before = _names(data_dir)
        yield
    except BaseException:
        for name in _names(data_dir) - here_before:
            os.unlink(os.path.join(data_dir, name))
        for here, there in reversed(moved):
            os.rename(there, here)
        if aside is not None:
            os.rmdir(aside)
            if not was_cut_off:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(note)
        raise
    with contextlib.suppress(FileNotFoundError):
        os.unlink(note)
    sync_directory(note)


def _names(data_dir: str) -> set[str]:
    return {name for name in os.listdir(data_dir) if name in _OWN or name.startswith(_DERIVED)}
