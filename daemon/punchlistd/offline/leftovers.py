"""Copies of the log that a killed program left: nobody would ever remove them, and erased text would stay in them.

Whoever works on a copy in a directory of its own holds that directory locked (`flock`). The lock goes with its holder,
so a directory that is not locked belongs to nobody any more.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable

_DIRECTORY = re.compile(r"(verify|read-only)-[a-z0-9_]{8}")
"""What `punch daemon verify` makes in the data directory, and a daemon that only reads beside its socket."""

_UNFINISHED = re.compile(r".+\.[0-9a-f]{8}\.new(-wal|-journal|-shm)?")
"""A backup, or a log written anew, before it has its name."""


@contextlib.contextmanager
def held(directory: str) -> Generator[None]:
    """Hold a directory locked: what is in it is in use."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def remove(data_dir: str, runtime_dir: str) -> list[str]:
    """Remove what killed programs left. The caller holds the lock of the data directory.

    Returns:
        What was removed, and nothing that could not be.
    """
    removed: list[str] = []
    for place in (data_dir, runtime_dir):
        for path in _matching(place, _DIRECTORY.fullmatch):
            with contextlib.suppress(OSError), held(path):
                shutil.rmtree(path)
                removed.append(path)
    for place in (data_dir, os.path.join(data_dir, "backups")):
        for path in _matching(place, _UNFINISHED.fullmatch):
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed.append(path)
    return removed


def _matching(place: str, is_ours: Callable[[str], object]) -> Iterable[str]:
    try:
        return [os.path.join(place, name) for name in os.listdir(place) if is_ours(name)]
    except OSError:
        return []
