"""Repairing a damaged log that no daemon has open: a copy first, then a new file without what is spoiled.

Nothing else is lost. A list that is still whole in a snapshot, if the log has an index, is put back as it was, though
events of its history are gone. The file is replaced only by one that was checked as a whole, under a new epoch.
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
from punchlistd.store.file.files import FULL, beside, discard, size_of, sync_directory, write_ahead
from punchlistd.store.file.high_water_mark import ANY_SUM, HighWaterMark, read_position
from punchlistd.store.file.lines import Row, checksum
from punchlistd.store.port import LogUnusable, Side, Stored
from punchlistd.store.record import seal
from punchlistd.store.recovery.backup import BackupFailed
from punchlistd.store.recovery.cut import ACTOR, Cut, Source, appended, last_position, plan, rows_left
from punchlistd.store.recovery.verify import Problem, Report

_TEXTS = tuple(name for name in AddedTask.__struct_fields__ if name not in ("parent", "blocked_by"))


class Repaired(Report):
    """What the log holds now; `backup` is the copy of the damaged one, "" where nothing was to be repaired.

    `lost` are the events that are gone, `restored` the lists that are whole all the same.
    """

    backup: str = ""
    lost: list[Problem] = []
    restored: list[str] = []


def repair(path: str, check: Callable[[str], Report]) -> Repaired:
    """Repair a log, which nobody may have open.

    Args:
        path: The log.
        check: Looks for everything that is wrong with a log.

    Raises:
        LogUnusable: It is no log of ours, or nothing of it can be read; it was not touched.
        BackupFailed: There is no room for the copies, or what came out is not sound; it was not touched.
    """
    if not schema.identify(path, 1 + len(schema.UPGRADES)):
        raise LogUnusable(f"{path} is not there; nothing is to be repaired")
    with contextlib.suppress(LogUnusable):
        found = check(path)
        if not found.problems:
            return Repaired(**msgspec.structs.asdict(found))
    unfinished = f"{path}.{secrets.token_hex(4)}.new"
    with ExitStack() as stack:
        stack.callback(discard, unfinished)
        try:
            backup = _copied(path)
            source = stack.enter_context(_opened(backup, path))
            cut, restored = _write(source, unfinished)
            report = check(unfinished)
            if report.problems:
                first = report.problems[0]
                place = f"{first.conversation or 'the log'} at {first.seq}"
                raise BackupFailed(f"{path} can't be repaired: {place}: {first.reason}; see {backup}", "damaged", first)
            if not report.events:
                message = f"nothing of {path} can be read; put a backup in its place: punch daemon restore"
                raise LogUnusable(f"{message} (the damaged log is also in {backup})")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(write_ahead(path))  # the copy has it: the new file must not meet it
            os.replace(unfinished, path)
            sync_directory(path)
            with closing(HighWaterMark(beside(path, ".mark"))) as high_water_mark:
                high_water_mark.read()
                high_water_mark.write(report.epoch, report.head, ANY_SUM)
        except sqlite3.DatabaseError as error:
            full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
            if full:
                raise _full(path) from error
            raise LogUnusable(
                f"{path} can't be read ({error}); put a backup in its place: punch daemon restore"
            ) from error
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise _full(path) from error
    report.path = path
    return Repaired(**msgspec.structs.asdict(report), backup=backup, lost=cut.lost, restored=restored)


def _full(path: str) -> BackupFailed:
    return BackupFailed(f"no space left for copies of {path}; free twice its size and repeat: it is as it was", "full")


def _copied(path: str) -> str:
    folder = os.path.join(os.path.dirname(path), "backups")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = os.path.join(folder, time.strftime("damaged-%Y%m%d-%H%M%S-") + secrets.token_hex(2) + ".db")
    made: list[str] = []
    try:
        for end in ("", "-wal") if size_of(write_ahead(path)) else ("",):
            made.append(name + end)
            os.close(os.open(name + end, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
            shutil.copyfile(path + end, name + end)
            with open(name + end, "rb") as file:
                os_calls.flush(file.fileno())
            if not filecmp.cmp(path + end, name + end, shallow=False):
                raise BackupFailed(f"{name}{end} is not what {path}{end} is; is a daemon at work?", "damaged")
        sync_directory(name)
    except BaseException:
        for each in made:
            discard(each)
        raise
    return name


@contextlib.contextmanager
def _opened(backup: str, path: str) -> Generator[Source]:
    """A working copy of the damaged log: SQLite may change it, and zeros stand where it was cut short."""
    work = f"{path}.{secrets.token_hex(4)}.new"
    try:
        shutil.copyfile(backup, work)
        os.chmod(work, 0o600)
        if os.path.exists(write_ahead(backup)):
            shutil.copyfile(write_ahead(backup), write_ahead(work))
        with open(work, "rb") as file:
            header = file.read(100)
        page = int.from_bytes(header[16:18], "big")
        length = int.from_bytes(header[28:32], "big") * (1 << 16 if page == 1 else page)
        if size_of(work) < length < max(size_of(work), 1 << 20) << 10:
            os.truncate(work, length)
        with closing(schema.connect(work, "rw")) as connection:
            noted = read_position(beside(path, ".mark"))
            epoch = _first(connection, "SELECT value FROM meta WHERE name = 'epoch'")
            seq = noted.seq if noted and noted.epoch == epoch else 0
            with _index(connection, path, epoch) as index:
                yield Source(connection, last_position(connection, index, seq), index)
    finally:
        discard(work)


@contextlib.contextmanager
def _index(connection: sqlite3.Connection, path: str, epoch: str | None) -> Generator[sqlite3.Connection]:
    """A copy of the log's index, or an empty database; up to version 1 the log holds it."""
    if _first(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'snapshots'"):
        yield connection
        return
    work = f"{path}.{secrets.token_hex(4)}.new"
    kept = beside(path, ".index")
    try:
        for source, target in ((kept, work), (write_ahead(kept), write_ahead(work))):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(source, target)
        with closing(schema.connect(work, "rwc")) as index:
            if epoch is not None and _first(index, "SELECT epoch FROM meta") == epoch:
                yield index
                return
        with closing(schema.connect(":memory:", "memory")) as empty:
            yield empty
    finally:
        discard(work)


def _first(connection: sqlite3.Connection, query: str, *values: object) -> Any:
    """The first column of the first row, None where there is none or it can't be read."""
    try:
        row = connection.execute(query, values).fetchone()
    except sqlite3.DatabaseError:
        return None
    return row[0] if row else None


def _write(source: Source, path: str) -> tuple[Cut, list[str]]:
    """Write what can be kept into a new file. What was cut, and the lists that were put back as they were."""
    cut = plan(source, _owners(source.index))
    with contextlib.suppress(sqlite3.DatabaseError):
        for name, version in source.index.execute(
            "SELECT name, version FROM snapshots JOIN conversations ON id = snapshots.conversation"
        ):
            if cut.versions.get(name, 0) < version:
                cut.bridged[name] = version  # its last events are lost
    lists = {name: _Twice(source.index, name, version) for name, version in cut.bridged.items()}
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_WRONLY, 0o600))
    restored: list[str] = []
    with closing(schema.connect(path, "rw")) as target:
        target.execute("PRAGMA synchronous = OFF")  # it is flushed once, at the end
        schema.build(target)
        target.execute("BEGIN")
        head = 0

        def put(row: Row) -> None:
            nonlocal head
            target.execute("INSERT INTO log VALUES(?, ?, ?, ?)", row)
            head = row[0]

        for row, lines in rows_left(source, cut):
            put(row)
            for stored in lines:
                if (each := lists.get(stored.conversation)) is not None:
                    each.follow(stored)
        for name, each in lists.items():
            if lines := each.put_back(head):
                put(appended(lines, head))
            if each.true is not None:
                restored.append(name)
        target.execute("COMMIT")
    with open(path, "rb") as file:
        os_calls.flush(file.fileno())
    return cut, restored


def _owners(index: sqlite3.Connection) -> dict[str, str]:
    """The users of conversations, as far as the index tells."""
    owners: dict[str, str] = {}
    with contextlib.suppress(sqlite3.DatabaseError):
        for name, user in index.execute("SELECT name, user FROM conversations"):
            owners[str(name)] = str(user)
    return owners


class _Twice:
    """A list with a hole in its history: what is left of the events gives one state, its snapshot another (`true`)."""

    def __init__(self, connection: sqlite3.Connection, name: str, bridged: int) -> None:
        self.left = initial_state(name)
        self.true: State | None = None
        self._check = ""
        query = """SELECT snapshots.{} FROM snapshots JOIN conversations ON id = snapshots.conversation
            WHERE name = ? AND snapshots.version >= ?"""
        saved = _first(connection, query.format("state"), name, bridged)
        if isinstance(saved, bytes) and checksum(saved) == _first(connection, query.format("sum"), name, bridged):
            with contextlib.suppress(msgspec.MsgspecError):
                self.true = load_state(name, saved)

    def follow(self, stored: Stored) -> None:
        fact = fact_of(stored)
        self._check = stored.check
        evolve(self.left, fact.event, fact.seq, fact.version, fact.at)
        if self.true is not None and fact.version > self.true.version:
            evolve(self.true, fact.event, fact.seq, fact.version, fact.at)

    def put_back(self, head: int) -> list[bytes]:
        """The lines, behind a position, after which the list is what it was; none where it is that already."""
        true, left = self.true, self.left
        if true is None or not true.exists or _shown(true) == _shown(left):
            return []
        events: list[AnyEvent] = [] if left.exists else [ConversationOpened(user=true.user)]
        events.append(ConversationConfigured(title=true.title, settings=true.settings))
        events += [
            ConversationConfigured(attached=session) for session in true.sessions if session not in left.sessions
        ]
        events.append(ListCleared())
        tasks = true.ordered()
        for task in tasks:
            values: dict[str, Any] = {name: getattr(task, name) for name in _TEXTS}
            events.append(TaskAdded(AddedTask(**values), rank=true.ranks.get(task.id, "")))
        events += [TaskEdited(task.id, parent=task.parent) for task in tasks if task.parent is not None]
        events += [DependencyAdded(task.id, blocker) for task in tasks for blocker in task.blocked_by]
        lines: list[bytes] = []
        for number, event in enumerate(events, 1):
            wire = msgspec.json.encode(
                {
                    "seq": head + number,
                    "conversation": true.conversation,
                    "version": left.version + number,
                    "at": true.updated_at,
                    "actor": ACTOR,
                    "event": event,
                }
            )
            line, self._check = seal(self._check, wire, Side(left=len(events) - number))
            lines.append(line)
        return lines


def _shown(state: State) -> tuple[Any, ...]:
    tasks = [
        msgspec.structs.replace(task, version=0, updated_at=0, lease_expires_at=None, fence=None)
        for task in state.ordered()
    ]
    return state.exists, state.title, state.user, state.settings, state.sessions, tasks
