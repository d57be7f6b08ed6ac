"""Reading a log that can't be written, say on a disk that has turned read-only, from a copy.

SQLite has to write before it can read what a killed daemon left, so what is served is a copy, beside the socket.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator

from punchlistd.offline.leftovers import held
from punchlistd.process.lock import AlreadyRunning
from punchlistd.settings import Settings
from punchlistd.store.file.files import beside, write_ahead
from punchlistd.store.port import LogUnusable


@contextlib.contextmanager
def copied(settings: Settings) -> Generator[str]:
    """A copy of the data directory's log, in a directory of its own that is gone afterwards. Nothing there is touched.

    Raises:
        AlreadyRunning: A daemon writes there.
        LogUnusable: There is no log.
        OSError: It can't be read, or there is no room for the copy.
    """
    log, place = settings.log_path, os.path.dirname(settings.socket)
    os.makedirs(place, mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="read-only-", dir=place) as directory, held(directory):
        with _unwritten(settings.lock_path):
            if not os.path.exists(log):
                raise LogUnusable(f"{log} is not there; name the data directory of a log")
            index = beside(log, ".index")
            for path in (log, write_ahead(log), beside(log, ".mark"), index, write_ahead(index)):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(path, os.path.join(directory, os.path.basename(path)))
        yield directory


@contextlib.contextmanager
def _unwritten(lock: str) -> Generator[None]:
    """Keep daemons away while the files are copied, as far as there ever was one."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise AlreadyRunning(f"a daemon serves {os.path.dirname(lock)}; use that one, or end it first") from None
    finally:
        os.close(descriptor)
