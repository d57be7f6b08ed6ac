"""Files that are written whole: a reader sees the old bytes or the new ones, and a failure leaves the old ones.

Light on purpose: hooks and shell prompts come through here.
"""

import errno
import os
import stat

from punchlist_schemas.system import os_calls

PRIVATE = 0o600


def atomic_write(
    path: str, data: bytes, *, mode: int | None = PRIVATE, fsync: bool = False, replace: bool = True
) -> os.stat_result:
    """Create or replace a file that holds exactly `data`, and return its status. A link is replaced, not followed.

    Args:
        path: The file. Its directory must exist.
        data: All of its bytes.
        mode: Its permissions, regardless of the umask. None: those of the present file, else those the umask allows.
        fsync: Whether the bytes must be on the disk before the name shows them, and the name before this returns.
        replace: Whether a present file is replaced.

    Raises:
        FileExistsError: A file is there, and `replace` is False.
        OSError: It can't be written, with `path` as the file's name. A present file is untouched.
    """
    directory, name = os.path.split(path)
    beside = os.path.join(directory, f".{name}.{os.getpid()}-{os.urandom(3).hex()}")
    try:
        if mode is None:
            mode = _mode(path)
        written = write_new(beside, data, mode, fsync=fsync)
        try:
            if replace:
                os.replace(beside, path)
            else:
                name_new(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
        if fsync:
            _flush_directory(directory or ".")
    except OSError as error:
        error.filename, error.filename2 = path, None  # a full disk names no file
        raise
    return written


def write_new(
    name: str, data: bytes, mode: int | None, *, folder: int | None = None, fsync: bool = True
) -> os.stat_result:
    """Create a file that holds exactly `data`, and return its status. A failure removes it.

    A reader may see a part of it, so the name must be one that no other program opens yet.

    Args:
        name: The file, in `folder` if that is given.
        data: All of its bytes.
        mode: Its permissions, regardless of the umask. None: those the umask allows.
        folder: An open directory.
        fsync: Whether the bytes must be on the disk.
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


def name_new(beside: str, path: str) -> None:
    """Give a finished file its name.

    Raises:
        FileExistsError: The name is taken; nothing happened.
    """
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(beside, path)
    else:
        os.unlink(beside)


def _flush_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os_calls.flush(directory)
    finally:
        os.close(directory)


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None
