"""The log in SQLite: one file, one connection, one thread, at most one hop for each operation.

The only connection writes, reads and checkpoints, and locks everybody else out. Its thread runs one plain function
after the other to its end, whoever may have stopped waiting for it. A commit is made in the caller's thread as long as
the disk is quick and the database thread has nothing to do: a flush of a quarter of a millisecond costs less than
waking a thread and contending with it for the interpreter.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Self, TypeVar, TypeVarTuple, cast

import aiosqlite
import anyio
import anyio.to_thread

from punchlist_schemas.system import os_calls
from punchlistd.store.file import erase, reading
from punchlistd.store.file.operations import Operations
from punchlistd.store.port import (
    Loaded,
    Sealed,
    Snapshot,
    StorageFailed,
    Stored,
    Survey,
)
from punchlistd.store.recovery.backup import Copy, finish
from punchlistd.store.recovery.opening import open_log
from punchlistd.store.recovery.verify import Report

logger = logging.getLogger(__name__)

SLOW_S = 0.003
"""A commit that took longer than this, in seconds, is no longer made in the caller's thread."""

COMMITS_IN_THREAD = 64
"""How many quick commits the database thread has to make before the caller's thread makes them again."""

MOST_AT_ONCE = 1_000
"""More events than these the database thread commits, however quick the disk is."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class DatabaseThread(aiosqlite.Connection):
    """aiosqlite's thread around a connection, for whole operations instead of single statements."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        self._thread.daemon = True  # a log that nobody closed is no reason to stay: it is safe at every instant

        self.handed_over = 0
        self.ended = 0
        """Operations that have come to their end, also those that nobody waits for any more."""

    def join(self) -> None:
        """Wait until a thread that failed to connect has ended: its last answer must not reach a closed loop."""
        self._thread.join()

    async def run(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an operation in the thread. It runs to its end, also if the caller is cancelled."""

        def counted() -> T:
            try:
                return operation(*args)
            finally:
                self.ended += 1

        self.handed_over += 1
        return cast(T, await self._execute(counted))  # pyright: ignore[reportUnknownMemberType]


class SqliteLog:
    """An `EventLog` in a SQLite file. Make one with `open`."""

    def __init__(self, thread: DatabaseThread, operations: Operations, slow_s: float) -> None:
        self._thread = thread
        self._operations = operations
        self.spoiled = operations.damage.spoiled
        self._slow_s = slow_s
        self._in_thread = 0 if slow_s > 0 else 1
        self._closed = False

    @classmethod
    async def open(  # noqa: PLR0913 - all but the path are for tests, and for the one daemon
        cls,
        path: str,
        *,
        watch: Sequence[str] = (),
        twin: str | None = None,
        reserve_bytes: int = 0,
        slow_s: float = SLOW_S,
        allow_network: bool = False,
        file_system: Callable[[str], str] = os_calls.file_system,
    ) -> Self:
        """Open the log at a path, or make a new one where nothing is. The directory must be there.

        Args:
            path: The database; `.index`, `.mark` and `.reserve` are kept beside it under the same name.
            watch: Further files whose removal or replacement ends everything.
            twin: Where a twin of the mark is kept, outside the directory (see `mark`).
            reserve_bytes: Space to set aside where there is plenty; 0 for none.
            slow_s: A commit of more seconds sends the next ones to the thread; 0: all of them go there.
            allow_network: Whether to accept a network file system.
            file_system: Tells the type of the file system of a path.

        Raises:
            LogUnusable: There is something there that can't be used, and it was not touched.
        """
        opened: list[Operations] = []

        def connector() -> sqlite3.Connection:
            operations = open_log(
                path,
                watch=watch,
                twin=twin,
                reserve_bytes=reserve_bytes,
                allow_network=allow_network,
                file_system=file_system,
            )
            opened.append(operations)
            return operations.connection

        thread = DatabaseThread(connector)
        try:
            await thread
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join)
            raise
        return cls(thread, opened[0], slow_s)

    @property
    def path(self) -> str:
        return self._operations.path

    @property
    def epoch(self) -> str:
        return self._operations.epoch

    @property
    def head(self) -> int:
        return self._operations.head

    @property
    def regressed(self) -> tuple[int, int] | None:
        return self._operations.regressed

    @property
    def unindexed(self) -> int:
        return self._operations.head - self._operations.indexed

    def unindexed_conversations(self) -> Collection[str]:
        return self._operations.unindexed.rows.keys()

    async def append(self, entries: Sequence[Sealed]) -> None:
        await self._run(self._operations.append_and_checkpoint, entries)
        self._note_pace()

    @property
    def quick(self) -> bool:
        return not (
            self._in_thread
            or self._thread.handed_over != self._thread.ended
            or self._closed
            or self._operations.checkpoint_due
        )

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        if not self.quick or len(entries) > MOST_AT_ONCE:
            return False
        self._operations.guarded(self._operations.append, entries)
        self._note_pace()
        return True

    def _note_pace(self) -> None:
        slow = self._operations.append_s > self._slow_s
        self._in_thread = COMMITS_IN_THREAD if slow else max(0, self._in_thread - 1)

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        if conversation is None:
            return await self._read(reading.read, after, limit, max_bytes)
        return await self._read(reading.read_of, conversation, after, limit, max_bytes)

    async def load(self, conversation: str) -> Loaded:
        return await self._read(reading.load, conversation)

    async def keys(self, conversation: str) -> list[int]:
        return await self._read(reading.keys, conversation)

    async def find_key(self, conversation: str, key: str) -> list[Stored]:
        return await self._read(reading.find_key, conversation, key)

    async def resolve(self, session: str) -> list[str]:
        return await self._ask(lambda log: log.index.resolve(session))

    async def owner(self, conversation: str) -> str | None:
        return await self._ask(lambda log: log.index.owner(conversation))

    async def names(self, user: str) -> list[str]:
        return await self._ask(lambda log: log.index.names(user))

    async def totals(self) -> tuple[int, int]:
        return await self._ask(lambda log: log.index.totals())

    async def survey(self) -> Survey:
        return await self._ask(lambda log: log.index.survey())

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        await self._ask(lambda log: log.maintain(snapshots))

    async def rebuild(self) -> None:
        await self._run(setattr, self._operations, "index_lost", "")

    async def erase(self, conversation: str) -> None:
        await self._ask(lambda log: erase.erase(log, conversation))

    async def forget(self, conversation: str) -> None:
        await self._ask(lambda log: erase.forget(log, conversation))

    async def unerased(self) -> list[str]:
        return await self._ask(lambda log: sorted({*log.index.unerased(), *log.unindexed.tombstones}))

    @property
    def just_deleted(self) -> list[str]:
        """Those of them whose deletion is not indexed yet; `survey` finds the others."""
        return list(self._operations.unindexed.tombstones)

    async def backup(self, path: str, *, check: bool = True) -> Report:
        """Write a verified copy to a new path while commits go on, and return what it holds.

        Without the check the copy may hold damage, and the report says less.

        Raises:
            BackupFailed: There is no sound copy, or nowhere to put it; nothing was left behind.
        """
        copy = Copy(self._operations, path)
        done = False
        try:
            while await self._run(copy.step):
                pass
            done = True
        finally:
            with anyio.CancelScope(shield=True):
                await self._thread.run(partial(copy.close, whole=done))
        return await anyio.to_thread.run_sync(partial(finish, copy.unfinished, path, check=check))

    async def sizes(self) -> tuple[int, int]:
        return await self._run(self._operations.sizes)

    async def close(self) -> None:
        """Finish pending operations, checkpoint the log into one file and end the thread."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            try:
                await self._thread.run(self._operations.finish)
            finally:
                await self._thread.close()

    async def list(
        self,
        *,
        query: str = "",
        user: str | None = None,
        active: bool | None = None,
        kind: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[list[bytes], str | None]:
        return await self._ask(lambda log: log.index.page(query, user, active, kind, limit, cursor))

    async def _run(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        if self._closed:
            raise StorageFailed("the log is closed")
        return await self._thread.run(self._operations.guarded, operation, *args)

    async def _read(self, operation: Callable[[Operations, *Ts], T], *args: *Ts) -> T:
        return await self._run(reading.through_index, self._operations, operation, *args)

    async def _ask(self, operation: Callable[[Operations], T]) -> T:
        return await self._run(reading.ask_index, self._operations, operation)
