"""Renames that never overwrite a file: they swap two names, or fail if the new name exists."""

import errno
import os

from punchlist_schemas.system import os_calls

NO_REPLACE = "no_replace"
EXCHANGE = "exchange"


def rename_if(folder: int, old: str, new: str, condition: str) -> int:
    """Rename within an open folder with `EXCHANGE` or `NO_REPLACE`. Return 0 or an errno.

    ENOSYS, EINVAL and ENOTSUP mean that the system or the file system doesn't support the call.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    name, flags = os_calls.RENAME
    function = getattr(libc, name, None)
    if function is None:
        return errno.ENOSYS
    code: int = function(folder, os.fsencode(old), folder, os.fsencode(new), ctypes.c_uint(flags[condition]))
    return 0 if code == 0 else ctypes.get_errno()
