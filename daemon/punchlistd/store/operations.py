"""What is done with an open log, as plain functions of the one thread and the one connection that touch it.

Appending and reading are here; `index` follows behind, `erase` destroys. After a write of unknown outcome everything
refuses, because what a failed flush left behind can't be told from inside (it may come back after a restart).
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar, TypeVarTuple

from punchlistd.store.files import Inodes, Reserve, beside, size_of, write_ahead
from punchlistd.store.lines import ROW, Row, checksum, join, of_conversation, salvage, split
from punchlistd.store.mark import ANY_SUM, Mark
from punchlistd.store.port import Damaged, Loaded, LogUnusable, Sealed, StorageFailed, StorageFull, Stored, side_of
from punchlistd.store.record import key_hash, take_groups, verify_tail
from punchlistd.store.tail import Tail

CHECKPOINT_PAGES = 1000
"""Pages written ahead after which they are moved into the database, as SQLite would by itself."""

_PAGE = 4096

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Operations:
    """An open log. Attributes may be read from any thread, everything else belongs to the database thread."""

    def __init__(self, connection: sqlite3.Connection, path: str, reserve_bytes: int) -> None:
        self.connection = connection
        self.path = path
        self.failed = ""
        self.damage: dict[int, Damaged] = {}
        self.tail = Tail()
        self.epoch: str = self.meta("epoch")
        self.indexed: int = self.meta("indexed")
        self.head: int = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0]
        self.scan()
        self.mark = Mark(beside(path, ".mark"))
        self.regressed = self._compare_with_mark()
        self.inodes = Inodes((path, write_ahead(path)))
        self.reserve = Reserve(beside(path, ".reserve"), reserve_bytes)
        self.reserve.ensure()
        self._pages = 0

    # Beginning and end

    def meta(self, name: str) -> Any:
        """A value that belongs to the log as a whole."""
        row = self.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise LogUnusable(f"{self.path} does not say its {name}; run punch verify, or put a backup in its place")
        return row[0]

    def scan(self) -> None:
        """Index in memory what the index does not hold."""
        self.tail = Tail()
        for row in self.rows(self.indexed):
            lines = split(row)
            if lines is None:
                rest = salvage(row, self._check_before)
                for name in rest.names:
                    self.tail.note(name, row[0])
                lines = rest.good
            self.tail.add_stored(lines, row[0])

    def _compare_with_mark(self) -> tuple[int, int] | None:
        """Look whether something that was committed once is gone; then the log goes on under a new epoch."""
        noted = self.mark.read()
        regressed = None
        if noted and noted.epoch == self.epoch:
            row = self.connection.execute("SELECT sum FROM log WHERE seq = ?", (noted.seq,)).fetchone()
            if noted.seq and (row is None or noted.sum not in (row[0], ANY_SUM)):
                regressed = noted.seq, self.head
        elif noted and self.head == 0:
            regressed = (noted.seq, 0) if noted.seq else None
        if regressed:
            self.epoch = secrets.token_hex(8)
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (self.epoch,))
        self.note_position()
        return regressed

    def note_position(self) -> None:
        """Set the mark to where the log is."""
        row = self.connection.execute("SELECT sum FROM log WHERE seq = ?", (self.head,)).fetchone()
        self.mark.write(self.epoch, self.head, row[0] if row else ANY_SUM)

    def finish(self) -> None:
        """Leave the log in one file and let go of what is beside it. The connection is closed by its owner."""
        try:
            if not self.failed:
                with suppress(StorageFull):
                    self.checkpoint()
        finally:
            self.mark.close()

    # Guards

    @contextmanager
    def writing(self) -> Generator[None]:
        """Turn what may go wrong while writing into the errors of the port, and fail for good where it must."""
        try:
            self.inodes.check()
            yield
        except StorageFailed as error:
            self.fail(str(error))
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
                self.fail(str(error), error)
            self.roll_back()
            self.reserve.release()
            raise StorageFull(f"no space left for {self.path}") from error
        except (OSError, MemoryError) as error:
            self.fail(str(error) or "out of memory", error)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """A transaction under the guards of writing."""
        with self.writing():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.roll_back()
                raise
            self.connection.execute("COMMIT")

    @contextmanager
    def reading(self, conversation: str, seq: int) -> Generator[None]:
        """Turn what SQLite can't read into damage with its place."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise Damaged(conversation, seq, f"it can't be read: {error}") from error

    def roll_back(self) -> None:
        """End a transaction that is still open."""
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def fail(self, reason: str, cause: BaseException | None = None) -> None:
        """Refuse everything from here on."""
        self.failed = f"{self.path}: {reason}"
        raise StorageFailed(self.failed) from cause

    def guarded(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an operation unless the log has failed."""
        if self.failed:
            raise StorageFailed(self.failed)
        return operation(*args)

    # Writing

    def append(self, entries: Sequence[Sealed]) -> None:
        """Commit lines as one row, and note how far the log has come."""
        if not entries:
            return
        first, last = self.head + 1, self.head + len(entries)
        body = join([entry.line for entry in entries])
        total = checksum(body)
        with self.writing():
            self.connection.execute("INSERT INTO log VALUES(?, ?, ?, ?)", (last, first, total, body))
            self.tail.add(entries, first, last)
            self.head = last
            self.mark.write(self.epoch, last, total)
        self.wrote(2 + len(body) // _PAGE)

    def wrote(self, pages: int) -> None:
        """Count pages written ahead and move them into the database now and then; without space that can wait."""
        self._pages += pages
        if self._pages >= CHECKPOINT_PAGES:
            with suppress(StorageFull):
                self.checkpoint("PASSIVE")

    def checkpoint(self, mode: str = "TRUNCATE") -> None:
        """Move what was written ahead into the database, and see to the reserve."""
        with self.writing():
            self.connection.execute(f"PRAGMA wal_checkpoint({mode})").close()
            self._pages = 0
        self.reserve.ensure()

    def watch(self, paths: Sequence[str]) -> None:
        """Refuse to commit once one of these files is not what it is now."""
        self.inodes.watch(paths)

    def sizes(self) -> tuple[int, int]:
        """Bytes of the log and of what was written ahead."""
        return os.stat(self.path).st_size, size_of(write_ahead(self.path))

    # Reading

    def rows(self, after: int) -> Generator[Row]:
        """Rows that end after a position."""
        yield from self._select(f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq", (after,))

    def rows_of(self, conversation: str, after: int) -> Generator[Row]:
        """Rows with lines of a conversation that end after a position."""
        yield from self._select(
            f"""SELECT {ROW} FROM conversations JOIN parts ON parts.conversation = conversations.id
            JOIN log ON log.seq = parts.seq WHERE name = ? AND parts.seq > ? ORDER BY parts.seq""",
            (conversation, after),
        )
        for seq in self.tail.rows.get(conversation, ()):
            if seq > after:
                yield from self._select(f"SELECT {ROW} FROM log WHERE seq = ?", (seq,))

    def _select(self, query: str, parameters: tuple[object, ...]) -> Generator[Row]:
        cursor = self.connection.execute(query, parameters)
        try:
            yield from cursor
        finally:
            cursor.close()  # a statement left open would hold back every checkpoint

    def lines(self, row: Row, conversation: str | None) -> list[Stored]:
        """The lines of a row that can be trusted.

        Raises:
            Damaged: One that can't be trusted is, or may be, of the conversation asked for.
        """
        found = split(row)
        if found is None:
            rest = salvage(row, self._check_before)
            found = rest.good
            members = self._members(row[0])
            for seq, name in rest.bad:
                error = Damaged(name if name in members else "", seq, "its checksum does not match")
                self.damage[seq] = error
                if conversation is not None and error.conversation in ("", conversation):
                    raise Damaged(conversation, seq, error.reason)
        return found if conversation is None else of_conversation(found, conversation)

    def read(self, after: int, limit: int, conversation: str | None, max_bytes: int) -> list[Stored]:
        """Events after a position, whole groups of them."""
        taken: list[Stored] = []
        size = 0
        found = self.rows(after) if conversation is None else self.rows_of(conversation, after)
        with self.reading(conversation or "", after + 1), closing(found) as rows:
            for row in rows:
                lines = self.lines(row, conversation)
                if after >= row[1]:
                    lines = [stored for stored in lines if stored.seq > after]
                bytes_in_row = len(row[3]) if conversation is None else sum(len(stored.line) for stored in lines)
                if len(taken) + len(lines) < limit and size + bytes_in_row < max_bytes:
                    taken += lines
                    size += bytes_in_row
                elif lines:
                    taken += take_groups(lines, limit - len(taken), max_bytes - size)
                    size = sum(len(stored.line) for stored in taken)
                    if len(taken) >= limit or size >= max_bytes:
                        break
        return taken

    def load(self, conversation: str) -> Loaded:
        """The newest snapshot that fits the log, and everything after it."""
        with self.reading(conversation, 1):
            saved = self.connection.execute(
                """SELECT state, version, seq, chain, sum FROM snapshots
                JOIN conversations ON id = snapshots.conversation WHERE name = ?""",
                (conversation,),
            ).fetchone()
        if saved and checksum(saved[0]) == saved[4]:
            with suppress(Damaged):  # a snapshot is only a short cut: the log decides
                return self._loaded(conversation, *saved[:4])
        return self._loaded(conversation, None, 0, 0, "")

    def _loaded(self, conversation: str, state: bytes | None, version: int, seq: int, check: str) -> Loaded:
        tail: list[Stored] = []
        with self.reading(conversation, seq + 1), closing(self.rows_of(conversation, seq)) as rows:
            for row in rows:
                tail += self.lines(row, conversation)
        if tail and tail[0].seq <= seq:
            tail = [stored for stored in tail if stored.seq > seq]
        verify_tail(conversation, version, check, tail)
        return Loaded(state, version, seq, check, tail)

    def keys(self, conversation: str) -> list[int]:
        """Hashes of all keys of a conversation."""
        with self.reading(conversation, 1):
            indexed = self.connection.execute(
                "SELECT hash FROM keys JOIN conversations ON id = keys.conversation WHERE name = ?", (conversation,)
            ).fetchall()
        return [row[0] for row in indexed] + [key_hash(key) for key in self.tail.keys.get(conversation, ())]

    def find_key(self, conversation: str, key: str) -> list[Stored]:
        """The newest group of events that used a key."""
        with self.reading(conversation, 1):
            candidates = self.connection.execute(
                """SELECT seq FROM keys JOIN conversations ON id = keys.conversation WHERE name = ? AND hash = ?
                ORDER BY seq DESC""",
                (conversation, key_hash(key)),
            ).fetchall()
            recent = self.tail.keys.get(conversation, {}).get(key)
            for seq in ([recent] if recent else []) + [row[0] for row in candidates]:
                group = self._group_at(conversation, seq)
                if group and side_of(group[0]).key == key:
                    return group
        return []

    def _group_at(self, conversation: str, seq: int) -> list[Stored]:
        row = self.connection.execute(f"SELECT {ROW} FROM log WHERE seq >= ? ORDER BY seq LIMIT 1", (seq,)).fetchone()
        lines = [stored for stored in self.lines(row, conversation) if stored.seq >= seq] if row else []
        return take_groups(lines, 1, 1)

    # Damaged rows

    def _members(self, row: int) -> set[str]:
        indexed = self.connection.execute(
            "SELECT name FROM parts JOIN conversations ON id = parts.conversation WHERE parts.seq = ?", (row,)
        )
        return {name for (name,) in indexed} | {name for name, rows in self.tail.rows.items() if row in rows}

    def _check_before(self, conversation: str, seq: int) -> str:
        """Check of a conversation's last event before a row, as it stands there."""
        indexed = self.connection.execute(
            """SELECT coalesce(max(parts.seq), 0) FROM parts JOIN conversations ON id = parts.conversation
            WHERE name = ? AND parts.seq < ?""",
            (conversation, seq),
        ).fetchone()[0]
        row_seq = max([indexed, *(row for row in self.tail.rows.get(conversation, ()) if row < seq)])
        row = self.connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (row_seq,)).fetchone()
        if row is None:
            return ""
        marker = b',"conversation":"%s","' % conversation.encode()
        lines = [line for line in row[3].split(b"\n") if marker in line[:200]]
        return lines[-1].rpartition(b"\t")[2].decode("ascii", "replace") if lines else ""
