"""Renames a file without losing another: the two change places, or the new name must be free."""

import errno
import os

from punchlist_schemas.system import os_calls

NO_REPLACE = "no_replace"
EXCHANGE = "exchange"


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
