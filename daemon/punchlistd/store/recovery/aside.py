"""Replacement of a log with a backup. If the process is killed halfway, nothing is lost, and the directory isn't
mistaken for one without a log."""

import contextlib
import os
from collections.abc import Generator

from punchlist_schemas.system.atomic import atomic_write
from punchlistd.store.file.files import sync_directory
from punchlistd.store.port import LogUnusable

_OWN = ("log.db", "log.db-wal", "log.db-journal", "log.db-shm", "log.mark", "log.reserve")
_DERIVED = ("log.index", "log.search")
_NOTE = "restoring"
"""File that contains the backup's path. It exists while the data directory contains neither the old nor the new log."""


def reject_unfinished_restore(data_dir: str) -> None:
    """Reject a data directory whose log is being replaced.

    Raises:
        LogUnusable: A restore was interrupted. The message contains the command to repeat it.
    """
    with contextlib.suppress(FileNotFoundError), open(os.path.join(data_dir, _NOTE), "rb") as note:
        backup = os.fsdecode(note.read())
        raise LogUnusable(
            f"{data_dir} is between two logs: restoring {backup} was interrupted. Repeat "
            f"it: punch daemon restore {backup}; the previous log is in a directory aside-… there"
        )


@contextlib.contextmanager
def replacing(data_dir: str, aside: str | None, backup: str) -> Generator[None]:
    """Move the log aside while the `with` body puts another one in place. If the body fails, move everything back.

    Until the block ends, a note marks the data directory as incomplete, for `reject_unfinished_restore`.

    Args:
        data_dir: The data directory.
        aside: Directory to create for the log and its related files; None if there is no log.
        backup: Path of the backup, for the note.

    Raises:
        OSError: The files can't be moved; all of them were moved back.
    """
    note = os.path.join(data_dir, _NOTE)
    was_unfinished = os.path.lexists(note)
    moved: list[tuple[str, str]] = []
    existing = _names(data_dir)
    if aside is not None:
        os.mkdir(aside, 0o700)
    try:
        if aside is not None:
            atomic_write(note, os.fsencode(backup), fsync=True)
        for name in sorted(existing) if aside is not None else ():
            source, target = os.path.join(data_dir, name), os.path.join(aside or "", name)
            os.rename(source, target)
            moved.append((source, target))
            sync_directory(target)
        existing = _names(data_dir)
        yield
    except BaseException:
        for name in _names(data_dir) - existing:
            os.unlink(os.path.join(data_dir, name))
        for source, target in reversed(moved):
            os.rename(target, source)
        if aside is not None:
            os.rmdir(aside)
            # If an earlier restore was killed, the directory is still incomplete.
            if not was_unfinished:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(note)
        raise
    with contextlib.suppress(FileNotFoundError):
        os.unlink(note)
    sync_directory(note)


def _names(data_dir: str) -> set[str]:
    return {name for name in os.listdir(data_dir) if name in _OWN or name.startswith(_DERIVED)}
