"""Commands for log files without a running daemon: `--verify`, `--repair` and `--restore`."""

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
"""Exit code for a damaged log or a failed restore. The printed report contains the details."""

FAILURES: dict[type[Exception], tuple[str, int]] = {
    BackupFailed: ("backup", UNSOUND),
    AlreadyRunning: ("in_use", 75),
    PlaceUnusable: ("configuration", 78),
    LogUnusable: ("unusable", 78),
    OSError: ("file", 74),
}
"""Expected exception → its name in the output and the exit code."""

_LOCK_PATIENCE_S = 10.0
"""Maximum time to wait for a daemon that was just stopped to release its lock, in seconds."""

_PROGRESS_INTERVAL_S = 0.2
"""Minimum interval between progress updates, in seconds."""


class _Failure(msgspec.Struct):
    """Output printed instead of a report if the command fails."""

    error: str
    message: str


def run(options: argparse.Namespace) -> int:
    """Run `--verify`, `--repair` or `--restore`, print a report as one line of JSON, and return the exit code."""
    os.umask(0o077)
    try:
        if options.verify is not None:
            report = audit(os.path.abspath(options.verify), _Progress())
        elif options.repair:
            report = repair_file(resolve(os.environ, options.socket, options.data_dir).log_path, _Progress())
        else:
            data_dir = resolve(os.environ, options.socket, options.data_dir).data_dir
            report = restore_backup(os.path.abspath(options.restore), data_dir, options.aside)
    except tuple(FAILURES) as error:
        name, code = next(row for kind, row in FAILURES.items() if isinstance(error, kind))
        _print(_Failure(name, _describe(error, os.path.basename(options.verify or options.restore or LOG_NAME))))
        return code
    _print(report)
    return UNSOUND if report.problems else 0


def _describe(error: Exception, name: str) -> str:
    # The advice in LogUnusable is for the daemon's own log. Replace it if the user named another file.
    if not isinstance(error, LogUnusable) or name == LOG_NAME:
        return str(error)
    problem, _, _ = str(error).partition("; ")
    return f"{problem}; name another file: a log or a backup of punchlist"


def _print(value: msgspec.Struct) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


class _Progress:
    """Progress display on standard error, shown if that is a terminal."""

    def __init__(self) -> None:
        self._enabled = sys.stderr.isatty()
        self._next = time.monotonic() + 5 * _PROGRESS_INTERVAL_S

    def show(self, seq: int) -> None:
        if self._enabled and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PROGRESS_INTERVAL_S
            sys.stderr.write(f"\rchecking event {seq:,}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._enabled:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def audit(path: str, progress: _Progress) -> Report:
    """Verify a log or a backup. The file is only read.

    Raises:
        AlreadyRunning: A daemon has the file open.
        LogUnusable: The file is not a punchlist log, or can't be read at all.
    """
    lock_path = os.path.join(os.path.dirname(path), "lock")
    lock = DataLock(lock_path) if os.path.basename(path) == LOG_NAME and os.path.exists(lock_path) else None
    try:
        return _verify(path, progress)
    finally:
        if lock is not None:
            lock.close()


def _verify(path: str, progress: _Progress) -> Report:
    try:
        return verify_file(path, progress.show)
    finally:
        progress.clear()


def repair_file(path: str, progress: _Progress) -> Repaired:
    """Repair the log of a data directory that no daemon uses. See `punchlistd.offline.repair`.

    Raises:
        AlreadyRunning: A daemon has the log open; nothing was changed.
        LogUnusable: The file is not a punchlist log, or no part of it can be read.
        BackupFailed: The copies could not be written, or the repaired log is damaged.
        PlaceUnusable: The directory can't be used.
    """
    os.close(open_private_directory(os.path.dirname(path)))
    try:
        lock = DataLock(os.path.join(os.path.dirname(path), "lock"))
    except AlreadyRunning as error:
        holder = str(error).partition(" Use that one")[0]
        raise AlreadyRunning(f"{holder} Stop it and repeat: punch daemon stop; punch daemon verify --repair") from None
    with closing(lock):
        return repair(path, lambda file: _verify(file, progress))


def restore_backup(backup: str, data_dir: str, aside: str | None = None) -> Report:
    """Install a backup as the log of a data directory that no daemon uses.

    Args:
        backup: The backup.
        data_dir: The data directory.
        aside: Directory to create for the existing log. If None, no log may exist.

    Raises:
        AlreadyRunning: A daemon uses the data directory.
        BackupFailed: The backup is damaged, or a log exists and `aside` is None.
        LogUnusable: The file is not a punchlist log.
        PlaceUnusable: The directory can't be used.
    """
    os.close(open_private_directory(data_dir))
    patience_s = 0.0 if aside is None else _LOCK_PATIENCE_S
    with closing(DataLock(os.path.join(data_dir, "lock"), patience_s)):
        try:
            return restore(backup, data_dir, aside)
        except BackupFailed as error:
            if isinstance(error.__cause__, LogUnusable):
                raise error.__cause__ from None
            raise
