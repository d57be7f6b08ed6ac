"""File handling for the database: related file names, atomic publishing, detection of replaced files, disk reserve."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Sequence

from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import rename_new
from punchlistd.store.port import StorageFailed


def sibling(path: str, suffix: str) -> str:
    """Return the name of a file that belongs to a log: `log.db` → `log.mark`."""
    return os.path.splitext(path)[0] + suffix


def wal_path(path: str) -> str:
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


def publish(unfinished: str, path: str) -> None:
    """Rename a complete file to its final name, durably, without replacing another file.

    Raises:
        FileExistsError: The name is taken; nothing was changed.
    """
    with open(unfinished, "rb") as file:
        os_calls.flush(file.fileno())
    rename_new(unfinished, path)
    sync_directory(path)


def discard(path: str) -> None:
    """Remove a database and the files that SQLite keeps next to it."""
    for name in (path, wal_path(path), path + "-journal", path + "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors for a full disk, an exhausted quota, and a file size limit."""


def probe_append(path: str) -> None:
    """Append zeros to a file. Use it only on files whose readers ignore trailing zeros.

    Raises:
        OSError: The file can't grow.
    """
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(file, bytes(1 << 12), os.lseek(file, 0, os.SEEK_END))
        os_calls.flush_data(file)
    finally:
        os.close(file)


def probe_space(path: str) -> None:
    """Check whether a file could grow, by writing to a temporary file in its directory at the same offset.

    The file itself isn't opened: closing a second descriptor of the database would drop SQLite's locks.

    Raises:
        OSError: The file could not grow.
    """
    with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as file:
        os.pwrite(file.fileno(), bytes(1 << 16), size_of(path))
        os_calls.flush(file.fileno())


MAX_WAL_BYTES = 64 << 20
"""Length in bytes to which SQLite truncates a longer write-ahead log."""


_HEADER = 32
_FRAME_HEADER = 24
_FRAME = _FRAME_HEADER + 4096
_NO_COMMIT = bytes(4)
"""Value of the database size field in a frame that does not end a commit."""


class LastCommit:
    """The end of the last commit in the write-ahead log. Used to detect an overwritten file before the next commit.

    The header of a commit's last frame contains the page number, the commit marker, the file's salts and a checksum of
    all frames so far (https://sqlite.org/fileformat2.html#the_write_ahead_log). An older version of the file, or zeros,
    can't contain that header at that offset. Frames are only tracked once SQLite has been seen to restart the file. If
    a killed process or a failed commit left frames in it, there is no way to tell from outside which ones are valid.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self.end: int = 0
        self.head = b""
        """Header of the frame that ends at `end`; empty if unknown."""
        self._salts = self._header = b""
        self._may_restart = True
        self.lose()

    def expect_restart(self) -> None:
        """Expect SQLite to write the file from its beginning again."""
        self._may_restart = True

    def lose(self) -> None:
        """Stop checking after a failed commit, until SQLite restarts the file."""
        self.head = self._salts = b""
        with contextlib.suppress(OSError):  # the failed commit is already being reported
            self._header = os.pread(self._file, _HEADER, 0)
        self._may_restart = True

    def follow(self) -> None:
        """Advance to the end of the newest commit. Call after each commit."""
        if self._may_restart and (header := os.pread(self._file, _HEADER, 0)) != self._header:
            is_written = any(header)
            self._header, self.end, self.head = header, _HEADER, b""
            self._salts = header[16:24] if is_written else b""
            self._may_restart = not is_written
        end = self.end
        while self._salts:
            frames = os.pread(self._file, 4 * _FRAME + _FRAME_HEADER, end)  # covers most commits in one read
            for start in (0, _FRAME, 2 * _FRAME, 3 * _FRAME, 4 * _FRAME):
                head = frames[start : start + _FRAME_HEADER]
                if head[8:16] != self._salts:
                    return
                end += _FRAME
                if head[4:8] != _NO_COMMIT:
                    self.end, self.head = end, head


class OpenName:
    """Detects that an open file was renamed, removed, truncated or overwritten.

    The kernel reports the current name of an open descriptor. The length is read by seeking: `stat` would also read the
    file's times, which makes the next flush slower (see `Inodes`).

    Raises:
        OSError: The file does not exist, or the kernel does not report the names of open files.
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
        """Lower bound for the file's length in bytes; 0 after a checkpoint, which may truncate it."""
        self.last_commit = LastCommit(self._file)

    def check(self) -> None:
        """Check the file's name, its length, and the end of the last commit.

        Raises:
            StorageFailed: The file was removed, moved, replaced, truncated or overwritten.
        """
        if os.readlink(self._link, dir_fd=self._files) != self._name:
            raise StorageFailed(f"{self._path} was removed or replaced while in use")
        if self.last_commit.head:
            if os.pread(self._file, _FRAME_HEADER, self.last_commit.end - _FRAME) != self.last_commit.head:
                raise StorageFailed(f"{self._path} was overwritten while in use")
            return  # the frame was read, so the file was not truncated before it
        length = os.lseek(self._file, 0, os.SEEK_END)
        if length < self.length:
            raise StorageFailed(f"{self._path} was truncated while in use")
        self.length = length if length < MAX_WAL_BYTES else MAX_WAL_BYTES

    def close(self) -> None:
        os.close(self._file)
        os.close(self._files)


class Inodes:
    """Detects watched files that other programs replaced or changed. A commit to a removed file succeeds and is lost.

    The file flushed by each commit is identified by its current name, because reading its inode's times has a cost.
    Since Linux 6.13, the next write then stores a finer timestamp, so that the inode has to be flushed as well
    (multigrain timestamps, https://docs.kernel.org/filesystems/multigrain-ts.html).

    The first path is the database, to which only this process's checkpoints write. A changed size or modification time
    therefore means that another program wrote to it. `settle` accepts the current values after a checkpoint.
    """

    def __init__(self, paths: Sequence[str], flushed: str | None = None) -> None:
        self._own = tuple(paths)
        self._flushed: OpenName | None = None
        self.last_commit: LastCommit | None = None
        if flushed is not None:
            try:
                self._flushed = OpenName(flushed)
                self.last_commit = self._flushed.last_commit
            except OSError:  # the kernel does not report the names of open files
                self._own = (*paths, flushed)
        self._inodes: dict[str, tuple[int, int]] = {}
        self._database = paths[0]
        self._content: tuple[int, int] = (0, 0)
        self.watch(())
        self.settle()

    def watch(self, others: Sequence[str]) -> None:
        """Watch `others`, in their current state, instead of the files from the previous call. The log's own files stay
        watched."""
        inodes = {path: self._inodes[path] for path in self._own if path in self._inodes}
        for path in (*self._own, *others):
            if path not in inodes:
                status = os.stat(path, follow_symlinks=False)
                inodes[path] = status.st_dev, status.st_ino
        self._inodes = inodes

    def settle(self) -> None:
        """Accept the current state of the database and the write-ahead log."""
        status = os.stat(self._database, follow_symlinks=False)
        self._content = status.st_size, status.st_mtime_ns
        if self._flushed is not None:
            self._flushed.length = 0
            self._flushed.last_commit.expect_restart()

    def check(self) -> None:
        """Compare the watched files with their recorded state.

        Raises:
            StorageFailed: One of them was removed, replaced, overwritten or truncated.
        """
        for path, inode in self._inodes.items():
            try:
                status = os.stat(path, follow_symlinks=False)
            except FileNotFoundError:
                raise StorageFailed(f"{path} was removed while in use") from None
            if (status.st_dev, status.st_ino) != inode:
                raise StorageFailed(f"{path} was replaced while in use")
            if path == self._database and (status.st_size, status.st_mtime_ns) != self._content:
                raise StorageFailed(f"{path} was overwritten while in use")
        if self._flushed is not None:
            self._flushed.check()

    def close(self) -> None:
        if self._flushed is not None:
            self._flushed.close()
            self._flushed = None


def _allocated(path: str) -> int:
    try:
        status = os.lstat(path)
        return status.st_blocks * 512 if stat.S_ISREG(status.st_mode) else 0
    except FileNotFoundError:
        return 0


def _has_ample_space(path: str, size: int) -> bool:
    free = os.statvfs(os.path.dirname(path) or ".")
    return free.f_bavail * free.f_frsize >= 2 * size


def preallocate(path: str, size: int) -> None:
    """Extend a file with zeros to `size` bytes, durably. Does nothing if it is longer or disk space is scarce.

    Later commits that overwrite the zeros only flush data, because neither the file's length nor its block map changes.
    Don't use this on the database: closing any descriptor of a file drops this process's POSIX locks on it. SQLite
    takes no locks on the write-ahead log.

    Raises:
        OSError: The disk failed.
    """
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        end = os.lseek(file, 0, os.SEEK_END)
        if end >= size or not _has_ample_space(path, size):
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
    """Disk space reserved in a file. It is released when the disk is full, so that pending work can finish."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        self.held = size > 0 and _allocated(path) >= size

    def ensure(self) -> None:
        """Reserve the space if it isn't reserved yet and the disk has plenty of space."""
        if self.held or self._size == 0:
            return
        if not _has_ample_space(self._path, self._size):
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
