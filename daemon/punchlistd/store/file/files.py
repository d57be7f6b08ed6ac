"""What surrounds the database on disk: names beside it, publishing a file, inodes that must not change, the reserve."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Sequence

from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import name_new
from punchlistd.store.port import StorageFailed


def beside(path: str, suffix: str) -> str:
    """The name of a file that belongs to a log: `log.db` → `log.mark`."""
    return os.path.splitext(path)[0] + suffix


def write_ahead(path: str) -> str:
    return path + "-wal"


def size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def sync_directory(path: str) -> None:
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os_calls.flush(directory)
    finally:
        os.close(directory)


def publish(finished: str, path: str) -> None:
    """Give a finished file its name, durably and never over another one.

    Raises:
        FileExistsError: The name is taken; nothing happened.
    """
    with open(finished, "rb") as file:
        os_calls.flush(file.fileno())
    name_new(finished, path)
    sync_directory(path)


def discard(path: str) -> None:
    """Remove an unfinished database and what SQLite keeps beside it."""
    for name in (path, write_ahead(path), path + "-journal", path + "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says where there is no room: no space, none left for this user, or a file that may not grow."""


def probe_end(path: str) -> None:
    """Write zeros at the end of a file, for want of which nothing is read differently.

    Raises:
        OSError: There is no room.
    """
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(file, bytes(1 << 12), os.lseek(file, 0, os.SEEK_END))
        os_calls.flush_data(file)
    finally:
        os.close(file)


def probe(path: str) -> None:
    """Write where a file would grow, in another one beside it, which is gone at once: some may not be opened twice.

    Raises:
        OSError: There is no room.
    """
    with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as file:
        os.pwrite(file.fileno(), bytes(1 << 16), size_of(path))
        os_calls.flush(file.fileno())


KEPT_AHEAD = 64 << 20
"""SQLite cuts the file to write ahead to this length by itself once it is longer."""


_HEADER = 32
_FRAME_HEADER = 24
_FRAME = _FRAME_HEADER + 4096
_NO_COMMIT = bytes(4)
"""In the place of the number of pages, which the last frame of a commit alone tells."""


class LastCommit:
    """Where the last commit ends in the file written ahead, to be found there again before the next one.

    The head of its last frame holds the page's number, the mark of a commit, the salts of the file and a checksum over
    all frames so far (https://sqlite.org/fileformat2.html#the_write_ahead_log). An older state of the file, or zeros,
    have it not there. Frames are followed from a beginning that was seen: behind those that a killed process left, and
    behind a commit that failed, nobody can tell from outside which of them count.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self.end: int = 0
        self.head = b""
        """The head of the last frame, which ends at `end`; empty while it is not known."""
        self._salts = self._header = b""
        self._may_begin = True
        self.lose()

    def begin(self) -> None:
        """From now on the file may be written from its beginning again."""
        self._may_begin = True

    def lose(self) -> None:
        """A commit failed: follow nothing until the file begins again."""
        self.head = self._salts = b""
        with contextlib.suppress(OSError):  # another one is being told already
            self._header = os.pread(self._file, _HEADER, 0)
        self._may_begin = True

    def follow(self) -> None:
        """Something was committed: go on to its end."""
        if self._may_begin and (header := os.pread(self._file, _HEADER, 0)) != self._header:
            has_begun = any(header)
            self._header, self.end, self.head = header, _HEADER, b""
            self._salts = header[16:24] if has_begun else b""
            self._may_begin = not has_begun
        at = self.end
        while self._salts:
            frames = os.pread(self._file, 4 * _FRAME + _FRAME_HEADER, at)  # mostly all of a commit
            for start in (0, _FRAME, 2 * _FRAME, 3 * _FRAME, 4 * _FRAME):
                head = frames[start : start + _FRAME_HEADER]
                if head[8:16] != self._salts:
                    return
                at += _FRAME
                if head[4:8] != _NO_COMMIT:
                    self.end, self.head = at, head


class OpenName:
    """The name that a file has now, as the kernel tells it of an open one, and that it never gets shorter.

    The length is where a seek ends: that asks for no times, which `stat` does.

    Raises:
        OSError: The file is not there, or the kernel does not tell.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = os.open(os_calls.OPEN_FILES, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            os.close(self._files)
            raise
        self._link = str(self._file)
        self._name = os.readlink(self._link, dir_fd=self._files)
        self.length = 0
        """How long it is at least; 0 where we may have cut it ourselves."""
        self.last_commit = LastCommit(self._file)

    def check(self) -> None:
        """Look whether the file still has the name that it had, all its bytes, and the last commit in its place.

        Raises:
            StorageFailed: It was removed or moved, another one took its name, or it was cut or overwritten.
        """
        if os.readlink(self._link, dir_fd=self._files) != self._name:
            raise StorageFailed(f"{self._path} was removed or replaced while in use")
        if self.last_commit.head:
            if os.pread(self._file, _FRAME_HEADER, self.last_commit.end - _FRAME) != self.last_commit.head:
                raise StorageFailed(f"{self._path} was overwritten while in use")
            return  # so it was not cut
        length = os.lseek(self._file, 0, os.SEEK_END)
        if length < self.length:
            raise StorageFailed(f"{self._path} was cut while in use")
        self.length = length if length < KEPT_AHEAD else KEPT_AHEAD

    def close(self) -> None:
        os.close(self._file)
        os.close(self._files)


class Inodes:
    """The files that must stay what they were: a commit into a removed file succeeds and is lost.

    The one that each commit flushes is told by the name that it has now, not by its inode: since Linux 6.13 a file
    whose times were read gets a finer one with its next write (multigrain timestamps), and that is its inode to flush
    as well (https://docs.kernel.org/filesystems/multigrain-ts.html).

    The first path is the database, which nothing but our own checkpoints writes: its size and the time of its last
    change tell of anybody else who writes into it. `settle` says that we have.
    """

    def __init__(self, paths: Sequence[str], flushed: str | None = None) -> None:
        self._own = tuple(paths)
        self._flushed: OpenName | None = None
        self.last_commit: LastCommit | None = None
        if flushed is not None:
            try:
                self._flushed = OpenName(flushed)
                self.last_commit = self._flushed.last_commit
            except OSError:  # this system does not tell
                self._own = (*paths, flushed)
        self._known: dict[str, tuple[int, int]] = {}
        self._database = paths[0]
        self._content: tuple[int, int] = (0, 0)
        self.watch(())
        self.settle()

    def watch(self, others: Sequence[str]) -> None:
        """Watch these beside our own files, from now on and as they are now."""
        kept = {path: self._known[path] for path in self._own if path in self._known}
        for path in (*self._own, *others):
            if path not in kept:
                found = os.stat(path, follow_symlinks=False)
                kept[path] = found.st_dev, found.st_ino
        self._known = kept

    def settle(self) -> None:
        """Take the database and what is written ahead as they are now."""
        found = os.stat(self._database, follow_symlinks=False)
        self._content = found.st_size, found.st_mtime_ns
        if self._flushed is not None:
            self._flushed.length = 0
            self._flushed.last_commit.begin()

    def check(self) -> None:
        """Compare names with what they stood for, and the database with what we left there.

        Raises:
            StorageFailed: One of them was removed, replaced, overwritten or cut.
        """
        for path, known in self._known.items():
            try:
                found = os.stat(path, follow_symlinks=False)
            except FileNotFoundError:
                raise StorageFailed(f"{path} was removed while in use") from None
            if (found.st_dev, found.st_ino) != known:
                raise StorageFailed(f"{path} was replaced while in use")
            if path == self._database and (found.st_size, found.st_mtime_ns) != self._content:
                raise StorageFailed(f"{path} was overwritten while in use")
        if self._flushed is not None:
            self._flushed.check()

    def close(self) -> None:
        if self._flushed is not None:
            self._flushed.close()
            self._flushed = None


def _allocated(path: str) -> int:
    try:
        found = os.lstat(path)
        return found.st_blocks * 512 if stat.S_ISREG(found.st_mode) else 0
    except FileNotFoundError:
        return 0


def _is_plenty(path: str, size: int) -> bool:
    free = os.statvfs(os.path.dirname(path) or ".")
    return free.f_bavail * free.f_frsize >= 2 * size


def fill(path: str, size: int) -> None:
    """Lengthen a file with zeros, durably, if it is shorter and there is plenty of room; otherwise leave it.

    Commits that overwrite the zeros later flush data only: neither the file's length nor its map of blocks changes.
    Do not use it on the database: closing any descriptor of a file drops this process's POSIX locks on it. SQLite takes
    none on the write-ahead log.

    Raises:
        OSError: The disk failed.
    """
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        end = os.lseek(file, 0, os.SEEK_END)
        if end >= size or not _is_plenty(path, size):
            return
        try:
            while end < size:
                end += os.pwrite(file, bytes(min(size - end, 1 << 20)), end)
        except OSError as error:
            if error.errno not in FULL:
                raise
        os_calls.flush_data(file)
    finally:
        os.close(file)


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
        if not _is_plenty(self._path, self._size):
            return
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os_calls.allocate(file, self._size)
            finally:
                os.close(file)
            self.held = True
        except OSError:
            self.release()

    def release(self) -> None:
        self.held = False
        with contextlib.suppress(OSError):
            os.unlink(self._path)
