"""What surrounds the database on disk: names beside it, publishing a file, inodes that must not change, the reserve."""

import contextlib
import os
import stat
from collections.abc import Sequence

from punchlistd.store.port import StorageFailed


def beside(path: str, suffix: str) -> str:
    """The name of a file that belongs to a log: `log.db` → `log.mark`."""
    return os.path.splitext(path)[0] + suffix


def write_ahead(path: str) -> str:
    """Where SQLite writes ahead of a database."""
    return path + "-wal"


def size_of(path: str) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def sync_directory(path: str) -> None:
    """Make the names in a file's directory durable."""
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def publish(finished: str, path: str) -> None:
    """Give a finished file its name, durably and never over another one.

    Raises:
        FileExistsError: The name is taken; nothing happened.
    """
    with open(finished, "rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(finished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(finished, path)
    else:
        os.unlink(finished)
    sync_directory(path)


def discard(path: str) -> None:
    """Remove an unfinished database and what SQLite keeps beside it."""
    for name in (path, write_ahead(path), path + "-journal", path + "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


class Inodes:
    """The files that must stay what they were: a commit into a removed file succeeds and is lost."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._own = tuple(paths)
        self._known: dict[str, tuple[int, int]] = {}
        self.watch(())

    def watch(self, others: Sequence[str]) -> None:
        """Watch these beside our own files, from now on and as they are now."""
        kept = {path: self._known[path] for path in self._own if path in self._known}
        for path in (*self._own, *others):
            if path not in kept:
                found = os.stat(path, follow_symlinks=False)
                kept[path] = found.st_dev, found.st_ino
        self._known = kept

    def check(self) -> None:
        """Compare names with what they stood for.

        Raises:
            StorageFailed: One of them was removed or replaced.
        """
        for path, known in self._known.items():
            try:
                found = os.stat(path, follow_symlinks=False)
            except FileNotFoundError:
                raise StorageFailed(f"{path} was removed while in use") from None
            if (found.st_dev, found.st_ino) != known:
                raise StorageFailed(f"{path} was replaced while in use")


def _allocated(path: str) -> int:
    try:
        found = os.lstat(path)
        return found.st_blocks * 512 if stat.S_ISREG(found.st_mode) else 0
    except FileNotFoundError:
        return 0


class Reserve:
    """Space set aside, given back when the disk is full so that what is under way can still be finished."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        self.held = size > 0 and _allocated(path) >= size

    def ensure(self) -> None:
        """Set the space aside if it is not and there is plenty; otherwise leave it for later."""
        if self.held or self._size == 0:
            return
        free = os.statvfs(os.path.dirname(self._path) or ".")
        if free.f_bavail * free.f_frsize < 2 * self._size:
            return
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(file, 0, self._size)
            finally:
                os.close(file)
            self.held = True
        except OSError:
            self.release()

    def release(self) -> None:
        """Give the space back."""
        self.held = False
        with contextlib.suppress(OSError):
            os.unlink(self._path)
