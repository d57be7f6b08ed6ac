"""Repair of a damaged log that no daemon has open: back it up, then write a new file without the damaged events.

All intact events are kept. If a snapshot in the index contains a list's intact state, the list is restored to that
state, although part of its history is lost. The log is replaced only with a fully verified file, which has a new epoch.
"""

import contextlib
import filecmp
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from typing import Any

import msgspec

from punchlist_schemas.events import (
    AddedTask,
    AnyEvent,
    ConversationConfigured,
    ConversationOpened,
    DependencyAdded,
    ListCleared,
    TaskAdded,
    TaskEdited,
)
from punchlist_schemas.system import os_calls
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.state.snapshot import load_state
from punchlistd.engine.lists.history import fact_of
from punchlistd.store.file import schema
from punchlistd.store.file.files import FULL, discard, sibling, size_of, sync_directory, wal_path
from punchlistd.store.file.high_water_mark import ANY_SUM, HighWaterMark, read_position
from punchlistd.store.file.lines import Row, checksum
from punchlistd.store.port import LogUnusable, Side, Stored
from punchlistd.store.record import seal
from punchlistd.store.recovery.backup import BackupFailed
from punchlistd.store.recovery.cut import (
    ACTOR,
    RepairPlan,
    Source,
    build_row,
    last_position,
    plan_repair,
    remaining_rows,
)
from punchlistd.store.recovery.verify import Problem, Report

_TEXTS = tuple(name for name in AddedTask.__struct_fields__ if name not in ("parent", "blocked_by"))


class Repaired(Report):
    """The contents of the repaired log.

    Attributes:
        backup: Path of a copy of the damaged log; "" if no repair was needed.
        lost: The lost events.
        restored: Lists restored from a snapshot.
    """

    backup: str = ""
    lost: list[Problem] = []
    restored: list[str] = []


def repair(path: str, check: Callable[[str], Report]) -> Repaired:
    """Repair a log that no process has open.

    Args:
        path: The log.
        check: Verifies a log file.

    Raises:
        LogUnusable: The file is not a punchlist log, or no part of it can be read; it was not changed.
        BackupFailed: The disk is full, or the repaired log is damaged; the log was not changed.
    """
    if not schema.identify(path, 1 + len(schema.UPGRADES)):
        raise LogUnusable(f"{path} does not exist; nothing to repair")
    with contextlib.suppress(LogUnusable):
        report = check(path)
        if not report.problems:
            return Repaired(**msgspec.structs.asdict(report))
    unfinished = f"{path}.{secrets.token_hex(4)}.new"
    with ExitStack() as stack:
        stack.callback(discard, unfinished)
        try:
            backup = _back_up(path)
            source = stack.enter_context(_open_working_copy(backup, path))
            plan, restored = _write_repaired(source, unfinished)
            report = check(unfinished)
            if report.problems:
                first = report.problems[0]
                place = f"{first.conversation or 'the log'} at {first.seq}"
                raise BackupFailed(f"{path} can't be repaired: {place}: {first.reason}; see {backup}", "damaged", first)
            if not report.events:
                message = f"nothing in {path} is readable; restore a backup: punch daemon restore"
                raise LogUnusable(f"{message} (the damaged log is also in {backup})")
            with contextlib.suppress(FileNotFoundError):
                # The backup contains this file, and SQLite must not apply it to the new log.
                os.unlink(wal_path(path))
            os.replace(unfinished, path)
            sync_directory(path)
            with closing(HighWaterMark(sibling(path, ".mark"))) as high_water_mark:
                high_water_mark.read()
                high_water_mark.write(report.epoch, report.head, ANY_SUM)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
                raise _full_error(path) from error
            raise LogUnusable(f"{path} can't be read ({error}); restore a backup: punch daemon restore") from error
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise _full_error(path) from error
    report.path = path
    return Repaired(**msgspec.structs.asdict(report), backup=backup, lost=plan.lost, restored=restored)


def _full_error(path: str) -> BackupFailed:
    return BackupFailed(
        f"no space left for copies of {path}; free twice its size and repeat; the log is unchanged", "full"
    )


def _back_up(path: str) -> str:
    folder = os.path.join(os.path.dirname(path), "backups")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = os.path.join(folder, time.strftime("damaged-%Y%m%d-%H%M%S-") + secrets.token_hex(2) + ".db")
    created: list[str] = []
    try:
        for suffix in ("", "-wal") if size_of(wal_path(path)) else ("",):
            created.append(name + suffix)
            os.close(os.open(name + suffix, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
            shutil.copyfile(path + suffix, name + suffix)
            with open(name + suffix, "rb") as file:
                os_calls.flush(file.fileno())
            if not filecmp.cmp(path + suffix, name + suffix, shallow=False):
                raise BackupFailed(f"{name}{suffix} differs from {path}{suffix}; is a daemon running?", "damaged")
        sync_directory(name)
    except BaseException:
        for file_name in created:
            discard(file_name)
        raise
    return name


@contextlib.contextmanager
def _open_working_copy(backup: str, path: str) -> Generator[Source]:
    """Open a temporary copy of the damaged log that SQLite may change. A truncated file is extended with zeros."""
    work = f"{path}.{secrets.token_hex(4)}.new"
    try:
        shutil.copyfile(backup, work)
        os.chmod(work, 0o600)
        if os.path.exists(wal_path(backup)):
            shutil.copyfile(wal_path(backup), wal_path(work))
        with open(work, "rb") as file:
            header = file.read(100)
        page = int.from_bytes(header[16:18], "big")
        length = int.from_bytes(header[28:32], "big") * (1 << 16 if page == 1 else page)
        if size_of(work) < length < max(size_of(work), 1 << 20) << 10:
            os.truncate(work, length)
        with closing(schema.connect(work, "rw")) as connection:
            mark = read_position(sibling(path, ".mark"))
            epoch = _read_value(connection, "SELECT value FROM meta WHERE name = 'epoch'")
            seq = mark.seq if mark and mark.epoch == epoch else 0
            with _open_index(connection, path, epoch) as index:
                yield Source(connection, last_position(connection, index, seq), index)
    finally:
        discard(work)


@contextlib.contextmanager
def _open_index(connection: sqlite3.Connection, path: str, epoch: str | None) -> Generator[sqlite3.Connection]:
    """Open a temporary copy of the log's index, or an empty database. In version 1, the log contains the index."""
    if _read_value(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'snapshots'"):
        yield connection
        return
    work = f"{path}.{secrets.token_hex(4)}.new"
    index_path = sibling(path, ".index")
    try:
        for source, target in ((index_path, work), (wal_path(index_path), wal_path(work))):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(source, target)
        with closing(schema.connect(work, "rwc")) as index:
            if epoch is not None and _read_value(index, "SELECT epoch FROM meta") == epoch:
                yield index
                return
        with closing(schema.connect(":memory:", "memory")) as empty:
            yield empty
    finally:
        discard(work)


def _read_value(connection: sqlite3.Connection, query: str, *values: object) -> Any:
    """Return the first column of the first row, or None if there is no row or the row can't be read."""
    try:
        row = connection.execute(query, values).fetchone()
    except sqlite3.DatabaseError:
        return None
    return row[0] if row else None


def _write_repaired(source: Source, path: str) -> tuple[RepairPlan, list[str]]:
    """Write the repaired log to a new file. Return the repair plan and the lists restored from snapshots."""
    plan = plan_repair(source, _read_owners(source.index))
    with contextlib.suppress(sqlite3.DatabaseError):
        for name, version in source.index.execute(
            "SELECT name, version FROM snapshots JOIN conversations ON id = snapshots.conversation"
        ):
            if plan.versions.get(name, 0) < version:
                plan.bridged[name] = version  # its last events are lost: the snapshot is newer than the log
    lists = {name: _DamagedList(source.index, name, version) for name, version in plan.bridged.items()}
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
    restored: list[str] = []
    with closing(schema.connect(path, "rw")) as target:
        target.execute("PRAGMA synchronous = OFF")  # the file is flushed once, at the end
        schema.build(target)
        target.execute("BEGIN")
        head = 0

        def insert(row: Row) -> None:
            nonlocal head
            target.execute("INSERT INTO log VALUES(?, ?, ?, ?)", row)
            head = row[0]

        for row, lines in remaining_rows(source, plan):
            insert(row)
            for stored in lines:
                if (damaged_list := lists.get(stored.conversation)) is not None:
                    damaged_list.apply(stored)
        for name, damaged_list in lists.items():
            if lines := damaged_list.build_restoring_lines(head):
                insert(build_row(lines, head))
            if damaged_list.snapshot is not None:
                restored.append(name)
        target.execute("COMMIT")
    with open(path, "rb") as file:
        os_calls.flush(file.fileno())
    return plan, restored


def _read_owners(index: sqlite3.Connection) -> dict[str, str]:
    owners: dict[str, str] = {}
    with contextlib.suppress(sqlite3.DatabaseError):
        for name, user in index.execute("SELECT name, user FROM conversations"):
            owners[str(name)] = str(user)
    return owners


class _DamagedList:
    """A list with lost events.

    Attributes:
        remaining: State that results from the remaining events.
        snapshot: State that results from the list's snapshot and later events; None if no snapshot is usable.
    """

    def __init__(self, connection: sqlite3.Connection, name: str, bridged: int) -> None:
        self.remaining = initial_state(name)
        self.snapshot: State | None = None
        self._check = ""
        query = """SELECT snapshots.{} FROM snapshots JOIN conversations ON id = snapshots.conversation
            WHERE name = ? AND snapshots.version >= ?"""
        saved = _read_value(connection, query.format("state"), name, bridged)
        if isinstance(saved, bytes) and checksum(saved) == _read_value(connection, query.format("sum"), name, bridged):
            with contextlib.suppress(msgspec.MsgspecError):
                self.snapshot = load_state(name, saved)

    def apply(self, stored: Stored) -> None:
        """Apply an event of the repaired log to both states."""
        fact = fact_of(stored)
        self._check = stored.check
        evolve(self.remaining, fact.event, fact.seq, fact.version, fact.at)
        if self.snapshot is not None and fact.version > self.snapshot.version:
            evolve(self.snapshot, fact.event, fact.seq, fact.version, fact.at)

    def build_restoring_lines(self, head: int) -> list[bytes]:
        """Build lines that turn the remaining state into that of the snapshot, to be appended after position `head`."""
        snapshot, remaining = self.snapshot, self.remaining
        if snapshot is None or not snapshot.exists or _visible_state(snapshot) == _visible_state(remaining):
            return []
        events: list[AnyEvent] = [] if remaining.exists else [ConversationOpened(user=snapshot.user)]
        events.append(ConversationConfigured(title=snapshot.title, settings=snapshot.settings))
        events += [
            ConversationConfigured(attached=session)
            for session in snapshot.sessions
            if session not in remaining.sessions
        ]
        events.append(ListCleared())
        tasks = snapshot.ordered()
        for task in tasks:
            values: dict[str, Any] = {name: getattr(task, name) for name in _TEXTS}
            events.append(TaskAdded(AddedTask(**values), rank=snapshot.ranks.get(task.id, "")))
        events += [TaskEdited(task.id, parent=task.parent) for task in tasks if task.parent is not None]
        events += [DependencyAdded(task.id, blocker) for task in tasks for blocker in task.blocked_by]
        lines: list[bytes] = []
        for number, event in enumerate(events, 1):
            wire = msgspec.json.encode(
                {
                    "seq": head + number,
                    "conversation": snapshot.conversation,
                    "version": remaining.version + number,
                    "at": snapshot.updated_at,
                    "actor": ACTOR,
                    "event": event,
                }
            )
            line, self._check = seal(self._check, wire, Side(remaining=len(events) - number))
            lines.append(line)
        return lines


def _visible_state(state: State) -> tuple[Any, ...]:
    tasks = [
        msgspec.structs.replace(task, version=0, updated_at=0, lease_expires_at=None, fence=None)
        for task in state.ordered()
    ]
    return state.exists, state.title, state.user, state.settings, state.sessions, tasks
