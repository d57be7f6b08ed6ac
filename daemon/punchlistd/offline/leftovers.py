"""Removal of log copies that killed programs left behind. They would otherwise keep text that was erased from the log.

A program that works on a copy in its own directory locks that directory (`flock`). The lock ends with the process, so
an unlocked directory is no longer in use.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable

_DIRECTORY = re.compile(r"(verify|read-only)-[a-z0-9_]{8}")
"""Directories created by `punch daemon verify` in the data directory, and by a read-only daemon next to its socket."""

_UNFINISHED = re.compile(r".+\.[0-9a-f]{8}\.new(-wal|-journal|-shm)?")
"""Unfinished backups and repaired logs, under their temporary names."""


@contextlib.contextmanager
def hold_directory(directory: str) -> Generator[None]:
    """Lock a directory while it is in use.

    Raises:
        OSError: The directory is already locked, or can't be opened.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def remove_leftovers(data_dir: str, runtime_dir: str) -> list[str]:
    """Remove the files of killed programs. The caller must hold the lock of the data directory.

    Returns:
        The removed paths. Paths that could not be removed are skipped.
    """
    removed: list[str] = []
    for place in (data_dir, runtime_dir):
        for path in _find_paths(place, _DIRECTORY.fullmatch):
            with contextlib.suppress(OSError), hold_directory(path):
                shutil.rmtree(path)
                removed.append(path)
    for place in (data_dir, os.path.join(data_dir, "backups")):
        for path in _find_paths(place, _UNFINISHED.fullmatch):
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed.append(path)
    return removed


def _find_paths(place: str, is_ours: Callable[[str], object]) -> Iterable[str]:
    try:
        return [os.path.join(place, name) for name in os.listdir(place) if is_ours(name)]
    except OSError:
        return []
