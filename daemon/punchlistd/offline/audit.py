"""Log files without a daemon: checking one as a whole, and putting a backup in the place of a lost log."""

import argparse
import os
import sys
import time
from contextlib import closing

import msgspec

from punchlistd.net.listener import PlaceUnusable, open_private_directory
from punchlistd.offline.repair import Repaired, repair
from punchlistd.process.lock import AlreadyRunning, DataLock
from punchlistd.settings import resolve
from punchlistd.store.port import LogUnusable
from punchlistd.store.recovery.backup import LOG_NAME, BackupFailed, restore
from punchlistd.store.recovery.verify import Report, verify_file

UNSOUND = 1
"""Exit code: something is damaged, or a backup was not put in place; what is printed says what and why."""

FAILURES: dict[type[Exception], tuple[str, int]] = {
    BackupFailed: ("backup", UNSOUND),
    AlreadyRunning: ("in_use", 75),
    PlaceUnusable: ("configuration", 78),
    LogUnusable: ("unusable", 78),
    OSError: ("file", 74),
}
"""What may be in the way → its name and the exit code."""

_LEAVES_S = 10.0
"""How long a daemon that was just stopped may keep its lock, in seconds."""

_PROGRESS_S = 0.2
"""How often progress is printed, in seconds."""


class _Failure(msgspec.Struct):
    """Printed instead of a report."""

    error: str
    message: str


def run(options: argparse.Namespace) -> int:
    """Do what `--verify`, `--repair` or `--restore` asks for, print a report as one line of JSON, return the code."""
    os.umask(0o077)
    try:
        if options.verify is not None:
            report = audit(os.path.abspath(options.verify), _Progress())
        elif options.repair:
            report = repair_file(resolve(os.environ, options.socket, options.data_dir).log_path, _Progress())
        else:
            data_dir = resolve(os.environ, options.socket, options.data_dir).data_dir
            report = put_in_place(os.path.abspath(options.restore), data_dir, options.aside)
    except tuple(FAILURES) as error:
        name, code = next(row for kind, row in FAILURES.items() if isinstance(error, kind))
        _print(_Failure(name, _explained(error, os.path.basename(options.verify or options.restore or LOG_NAME))))
        return code
    _print(report)
    return UNSOUND if report.problems else 0


def _explained(error: Exception, name: str) -> str:
    """A failure in words. The advice for an unusable log is for a daemon's own, not for any file that is named."""
    if not isinstance(error, LogUnusable) or name == LOG_NAME:
        return str(error)
    wrong, _, _ = str(error).partition("; ")
    return f"{wrong}; name another file: a log or a backup of punchlist"


def _print(value: msgspec.Struct) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


class _Progress:
    """Tells people at a terminal how far it is, on standard error."""

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty()
        self._next = time.monotonic() + 5 * _PROGRESS_S

    def note(self, seq: int) -> None:
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PROGRESS_S
            sys.stderr.write(f"\rchecking event {seq:,}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._wanted:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def audit(path: str, progress: _Progress) -> Report:
    """Everything that is wrong with a log or a backup, which is only read.

    Raises:
        AlreadyRunning: A daemon has it open.
        LogUnusable: It is no log of ours, or can't be read at all.
    """
    lock = os.path.join(os.path.dirname(path), "lock")
    held = DataLock(lock) if os.path.basename(path) == LOG_NAME and os.path.exists(lock) else None
    try:
        return _checked(path, progress)
    finally:
        if held is not None:
            held.close()


def _checked(path: str, progress: _Progress) -> Report:
    try:
        return verify_file(path, progress.note)
    finally:
        progress.clear()


def repair_file(path: str, progress: _Progress) -> Repaired:
    """Repair the log of a data directory that no daemon has open. See `punchlistd.offline.repair`.

    Raises:
        AlreadyRunning: A daemon has it open; nothing was touched.
        LogUnusable: It is no log of ours, or nothing of it can be read.
        BackupFailed: There is no room or permission for the copies.
        PlaceUnusable: The directory can't be used.
    """
    os.close(open_private_directory(os.path.dirname(path)))
    try:
        lock = DataLock(os.path.join(os.path.dirname(path), "lock"))
    except AlreadyRunning as error:
        who = str(error).partition(" Use that one")[0]
        raise AlreadyRunning(f"{who} End it and repeat: punch daemon stop; punch daemon verify --repair") from None
    with closing(lock):
        return repair(path, lambda each: _checked(each, progress))


def put_in_place(backup: str, data_dir: str, aside: str | None = None) -> Report:
    """Make a backup the log of a data directory that has no daemon.

    Args:
        backup: The backup.
        data_dir: The data directory.
        aside: A directory to be made for the log that is there; None: there must be none.

    Raises:
        AlreadyRunning: A daemon runs there.
        BackupFailed: The backup is not sound, or there is a log already.
        LogUnusable: It is no backup at all.
        PlaceUnusable: The directory can't be used.
    """
    os.close(open_private_directory(data_dir))
    patience_s = 0.0 if aside is None else _LEAVES_S
    with closing(DataLock(os.path.join(data_dir, "lock"), patience_s)):
        try:
            return restore(backup, data_dir, aside)
        except BackupFailed as error:
            if isinstance(error.__cause__, LogUnusable):
                raise error.__cause__ from None
            raise
