"""Log files without a daemon: checking one as a whole, and putting a backup in the place of a lost log.

What is derived from the log is compared with the log: each conversation's snapshot and summary must be what replaying
its events gives at their version. As a replay depends on nothing but the events, what follows is the same then too.
"""

import argparse
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing

import msgspec

from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.state.snapshot import dump_state, load_state
from punchlistd.engine.lists.history import fact_of
from punchlistd.net.listener import PlaceUnusable, private_directory
from punchlistd.offline.repair import Repaired, repair
from punchlistd.process.lock import AlreadyRunning, DataLock
from punchlistd.settings import resolve
from punchlistd.store.file.lines import checksum, split
from punchlistd.store.port import LogUnusable, Stored
from punchlistd.store.record import is_tombstone
from punchlistd.store.recovery.backup import LOG_NAME, BackupFailed, restore
from punchlistd.store.recovery.verify import Problem, Report, opened, readable_rows, verify_file

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

    def note(self, what: str, seq: int) -> None:
        """At event `seq`."""
        if self._wanted and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PROGRESS_S
            sys.stderr.write(f"\r{what} {seq:,}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line empty."""
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
        report = verify_file(path, lambda seq: progress.note("checking event", seq))
        with opened(path) as connection:
            _Replay(connection, report, lambda seq: progress.note("replaying event", seq)).run()
        return report
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
    os.close(private_directory(os.path.dirname(path)))
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
    os.close(private_directory(data_dir))
    patience_s = 0.0 if aside is None else _LEAVES_S
    with closing(DataLock(os.path.join(data_dir, "lock"), patience_s)):
        try:
            return restore(backup, data_dir, aside)
        except BackupFailed as error:
            if isinstance(error.__cause__, LogUnusable):
                raise error.__cause__ from None
            raise


class _Version(msgspec.Struct):
    version: int


class _Replay:
    """Replays each conversation up to where something was derived from it, and compares."""

    def __init__(self, connection: sqlite3.Connection, report: Report, progress: Callable[[int], None]) -> None:
        self._connection = connection
        self._report = report
        self._progress = progress
        self._broken = {problem.conversation for problem in report.problems}
        self._states: dict[str, State] = {}
        self._due: dict[str, dict[int, list[Callable[[State, Stored], str]]]] = {}

    def run(self) -> None:
        try:
            self._note_due()
        except sqlite3.DatabaseError:
            return  # told as an index that can't be read
        for row in readable_rows(self._connection, lambda _seq, _reason: None):
            self._progress(row[0])
            for stored in split(row) or ():
                if stored.conversation in self._due:
                    self._follow(stored)
        if "" not in self._broken:
            for name, due in self._due.items():
                self._problem(name, 0, f"what is derived from its version {max(due)} has no such event")

    def _note_due(self) -> None:
        for name, version in self._connection.execute(
            "SELECT name, version FROM snapshots JOIN conversations ON id = snapshots.conversation"
        ):
            self._expect(name, version, self._snapshot)
        for name, summary in self._connection.execute(
            "SELECT name, summary FROM conversations WHERE deleted = 0 AND summary <> x''"
        ):
            try:
                self._expect(name, msgspec.json.decode(summary, type=_Version).version, self._summary)
            except msgspec.MsgspecError:
                self._problem(name, 0, "its summary can't be read; it can be made again")

    def _expect(self, name: str, version: int, compare: Callable[[State, Stored], str]) -> None:
        if name not in self._broken:
            self._due.setdefault(name, {}).setdefault(version, []).append(compare)

    def _follow(self, stored: Stored) -> None:
        name = stored.conversation
        state = self._states.get(name) or initial_state(name)
        try:
            fact = fact_of(stored)
        except (msgspec.MsgspecError, ValueError) as error:
            self._problem(name, stored.seq, f"it is no event: {error}")
            del self._due[name]
            return
        if fact.version != state.version + 1 and (state.version or not is_tombstone(stored.wire)):
            del self._due[name]  # events are missing, which was told
            return
        state = self._states[name] = evolve(state, fact.event, fact.seq, fact.version, fact.at)
        due = self._due[name]
        for compare in due.pop(fact.version, ()):
            if reason := compare(state, stored):
                self._problem(name, stored.seq, reason)
        if not due:
            del self._due[name], self._states[name]

    def _snapshot(self, state: State, stored: Stored) -> str:
        """What is wrong with the snapshot of this state, "" for nothing."""
        saved, total, check, seq = self._connection.execute(
            """SELECT state, sum, chain, seq FROM snapshots JOIN conversations ON id = snapshots.conversation
            WHERE name = ?""",
            (state.conversation,),
        ).fetchone()
        if checksum(saved) != total:
            return "its snapshot's checksum does not match; the log decides"
        try:
            saved_state = load_state(state.conversation, saved)
        except msgspec.MsgspecError as error:
            return f"its snapshot can't be read ({error}); the log decides"
        expected = state
        if saved_state.passing is None:  # which earlier versions did not note
            expected = state.copy()
            expected.passing = None
        if saved_state.agents != state.agents and saved_state.agents.keys() <= state.agents.keys():
            expected = expected.copy()  # earlier versions noted the agents of claims in force alone
            expected.agents = saved_state.agents
        if (dump_state(saved_state), check) != (dump_state(expected), stored.check) or seq < stored.seq:
            return "its snapshot is not what its events give"
        return ""

    def _summary(self, state: State, _stored: Stored) -> str:
        """What is wrong with the summary of this state, "" for nothing."""
        counts = state.counts()
        given = msgspec.json.encode(state.conversation_view()), counts.pending + counts.paused, counts.in_progress
        saved = self._connection.execute(
            "SELECT summary, open, in_progress FROM conversations WHERE name = ?", (state.conversation,)
        ).fetchone()
        summary, shown = msgspec.json.decode(saved[0]), msgspec.json.decode(given[0])
        if "running" not in summary:  # which earlier versions did not write
            shown.pop("running", None)
        if (summary, *saved[1:]) != (shown, *given[1:]):
            return "its summary is not what its events give; it can be made again"
        return ""

    def _problem(self, conversation: str, seq: int, reason: str) -> None:
        self._report.problems.append(Problem(conversation, seq, reason))
