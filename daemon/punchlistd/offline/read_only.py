"""Reads a log that isn't writable, for example on a disk that has become read-only.

SQLite has to write before it can read a log left behind by a killed daemon, so the daemon serves a copy next to the
socket.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator

from punchlistd.offline.leftovers import hold_directory
from punchlistd.process.lock import AlreadyRunning
from punchlistd.settings import Settings
from punchlistd.store.file.files import sibling, wal_path
from punchlistd.store.port import LogUnusable


@contextlib.contextmanager
def copy_log(settings: Settings) -> Generator[str]:
    """Copy the data directory's log to a temporary directory, which is removed when the context ends.

    Raises:
        AlreadyRunning: A daemon uses the data directory.
        LogUnusable: There is no log.
        OSError: The log can't be read, or the copy can't be written.
    """
    log, place = settings.log_path, os.path.dirname(settings.socket)
    os.makedirs(place, mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="read-only-", dir=place) as directory, hold_directory(directory):
        with _exclude_daemons(settings.lock_path):
            if not os.path.exists(log):
                raise LogUnusable(f"{log} does not exist; pass the data directory of a log")
            index = sibling(log, ".index")
            for path in (log, wal_path(log), sibling(log, ".mark"), index, wal_path(index)):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(path, os.path.join(directory, os.path.basename(path)))
        yield directory


@contextlib.contextmanager
def _exclude_daemons(lock: str) -> Generator[None]:
    """Prevent daemons from starting while the files are copied. Without a lock file, no daemon has ever run there."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AlreadyRunning(f"a daemon serves {os.path.dirname(lock)}; use that one, or stop it first") from None
    finally:
        os.close(descriptor)
