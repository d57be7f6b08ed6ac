"""Files that are replaced whole: a reader sees the old bytes or the new ones, and a failure leaves the old ones.

Light on purpose: hooks and shell prompts come through here.
"""

import errno
import os
import stat

from punchlist_schemas.system import os_calls

PRIVATE = 0o600
NO_REPLACE = "no_replace"
EXCHANGE = "exchange"


def atomic_write(path: str, data: bytes, *, mode: int | None = PRIVATE, fsync: bool = False) -> None:
    """Make a file hold exactly `data`. The directory must exist; a link is replaced, not followed.

    Args:
        path: The file.
        data: All of its bytes.
        mode: Its permissions, whatever the umask is. None: those of the file that is there, or what the umask allows.
        fsync: Whether the bytes must be on the disk before the name shows them.

    Raises:
        OSError: It can't be written, with `path` as the file's name. What stood there is untouched.
    """
    directory, name = os.path.split(path)
    beside = os.path.join(directory, f".{name}.{os.getpid()}-{os.urandom(3).hex()}")
    try:
        if mode is None:
            mode = _mode(path)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else 0)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                if fsync:
                    os_calls.flush(file.fileno())
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        error.filename, error.filename2 = path, None  # a full disk names no file
        raise


def rename(folder: int, old: str, new: str, condition: str) -> int:
    """Rename inside an open folder with `EXCHANGE` or `NO_REPLACE`; 0, or the number of the error.

    ENOSYS, EINVAL and ENOTSUP mean that this system or file system has no such call.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    name, flags = os_calls.RENAME
    function = getattr(libc, name, None)
    if function is None:
        return errno.ENOSYS
    code: int = function(folder, os.fsencode(old), folder, os.fsencode(new), ctypes.c_uint(flags[condition]))
    return 0 if code == 0 else ctypes.get_errno()


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None
