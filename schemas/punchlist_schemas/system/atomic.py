"""Atomic file replacement: readers see either the old bytes or the new bytes, and a failure leaves the old bytes.

Imports little, because hooks and shell prompts load this module.
"""

import errno
import os
import stat

from punchlist_schemas.system import os_calls

PRIVATE = 0o600


def atomic_write(
    path: str, data: bytes, *, mode: int | None = PRIVATE, fsync: bool = False, replace: bool = True
) -> os.stat_result:
    """Create or replace a file with `data`, and return its status. A link is replaced, not followed.

    Args:
        path: The file. Its directory must exist.
        data: All of its bytes.
        mode: Its permissions, regardless of the umask. None: those of the existing file, else those the umask allows.
        fsync: Whether to fsync the file before the rename, and its directory after it.
        replace: Whether to replace an existing file.

    Raises:
        FileExistsError: The file exists, and `replace` is False.
        OSError: The file can't be written. The error's `filename` is `path`. An existing file is unchanged.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}-{os.urandom(3).hex()}")
    try:
        if mode is None:
            mode = _read_mode(path)
        written = write_new(temporary, data, mode, fsync=fsync)
        try:
            if replace:
                os.replace(temporary, path)
            else:
                rename_new(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        if fsync:
            _flush_directory(directory or ".")
    except OSError as error:
        error.filename, error.filename2 = path, None  # a full disk's error has no filename
        raise
    return written


def write_new(
    name: str, data: bytes, mode: int | None, *, folder: int | None = None, fsync: bool = True
) -> os.stat_result:
    """Create a file with `data`, and return its status. If writing fails, the file is removed.

    Readers may see an incomplete file, so no other program may know its name yet.

    Args:
        name: Path of the file, relative to `folder` if given.
        data: All of its bytes.
        mode: Its permissions, regardless of the umask. None: those the umask allows.
        folder: Descriptor of an open directory.
        fsync: Whether to flush the bytes to disk.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o666 if mode is None else 0, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if fsync:
                os_calls.flush(file.fileno())
            return os.fstat(file.fileno())
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def rename_new(temporary: str, path: str) -> None:
    """Rename a file without replacing another one.

    Raises:
        FileExistsError: The name is already in use; nothing was changed.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(temporary, path)
    else:
        os.unlink(temporary)


def _flush_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os_calls.flush(directory)
    finally:
        os.close(directory)


def _read_mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None
