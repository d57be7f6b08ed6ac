"""The log in SQLite: one file, one connection, one thread, at most one thread switch per operation.

The only connection writes, reads and checkpoints, and holds an exclusive lock on the file. Its thread runs plain
functions to completion, one at a time, even if the caller was cancelled. While the disk is fast and the database thread
is idle, commits run in the caller's thread: a flush takes a quarter of a millisecond, which is less than the cost of
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
from punchlistd.store.recovery.backup import Copy, publish_copy
from punchlistd.store.recovery.opening import open_log
from punchlistd.store.recovery.verify import Report

logger = logging.getLogger(__name__)

SLOW_S = 0.003
"""Duration in seconds above which a commit counts as slow, so that the next commits run in the database thread."""

COMMITS_IN_THREAD = 64
"""Number of commits that run in the database thread after a slow one, before the caller's thread is used again."""

MAX_INLINE_EVENTS = 1_000
"""Maximum number of events committed in the caller's thread."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class DatabaseThread(aiosqlite.Connection):
    """aiosqlite's thread for a connection. Runs whole operations instead of single statements."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        # A log that was not closed must not keep the process alive. Stopping at any moment is safe for its data.
        self._thread.daemon = True
        self.submitted = 0
        self.completed = 0
        """Number of finished operations, including those whose caller was cancelled."""

    def join(self) -> None:
        """Wait until a thread that failed to connect ends. Its last result must not reach a closed event loop."""
        self._thread.join()

    async def run(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run an operation in the thread. It completes even if the caller is cancelled."""

        def run_and_count() -> T:
            try:
                return operation(*args)
            finally:
                self.completed += 1

        self.submitted += 1
        return cast(T, await self._execute(run_and_count))  # pyright: ignore[reportUnknownMemberType]


class SqliteLog:
    """An `EventLog` in a SQLite file. Create one with `open`."""

    def __init__(self, thread: DatabaseThread, operations: Operations, slow_s: float) -> None:
        self._thread = thread
        self._operations = operations
        self.damaged = operations.damage.damaged
        self._slow_s = slow_s
        self._remaining_thread_commits = 0 if slow_s > 0 else 1
        self._closed = False

    @classmethod
    async def open(  # noqa: PLR0913 - only tests and the daemon pass more than the path
        cls,
        path: str,
        *,
        watch: Sequence[str] = (),
        twin: str | None = None,
        reserve_bytes: int = 0,
        slow_s: float = SLOW_S,
        allow_network: bool = False,
        file_system: Callable[[str], str] = os_calls.find_file_system,
    ) -> Self:
        """Open the log at a path, or create it if the file is missing. The directory must exist.

        Args:
            path: The database. Files with the suffixes `.index`, `.mark` and `.reserve` are kept next to it.
            watch: Other files whose removal or replacement makes the log fail.
            twin: Path of the high-water mark's twin, outside the data directory (see `high_water_mark`).
            reserve_bytes: Disk space to reserve if plenty is free, in bytes; 0 for none.
            slow_s: Duration in seconds above which a commit counts as slow; 0 runs all commits in the database thread.
            allow_network: Whether to accept a network file system.
            file_system: Returns the type of the file system of a path.

        Raises:
            LogUnusable: The existing file can't be used; it was not changed.
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
        self._record_pace()

    @property
    def quick(self) -> bool:
        return not (
            self._remaining_thread_commits
            or self._thread.submitted != self._thread.completed
            or self._closed
            or self._operations.checkpoint_due
        )

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        if not self.quick or len(entries) > MAX_INLINE_EVENTS:
            return False
        self._operations.run_guarded(self._operations.append, entries)
        self._record_pace()
        return True

    def _record_pace(self) -> None:
        slow = self._operations.append_s > self._slow_s
        self._remaining_thread_commits = COMMITS_IN_THREAD if slow else max(0, self._remaining_thread_commits - 1)

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        if conversation is None:
            return await self._read(reading.read, after, limit, max_bytes)
        return await self._read(reading.read_conversation, conversation, after, limit, max_bytes)

    async def load(self, conversation: str) -> Loaded:
        return await self._read(reading.load, conversation)

    async def keys(self, conversation: str) -> list[int]:
        return await self._read(reading.keys, conversation)

    async def find_key(self, conversation: str, key: str) -> list[Stored]:
        return await self._read(reading.find_key, conversation, key)

    async def resolve(self, session: str) -> list[str]:
        return await self._query(lambda log: log.index.resolve(session))

    async def owner(self, conversation: str) -> str | None:
        return await self._query(lambda log: log.index.owner(conversation))

    async def names(self, user: str) -> list[str]:
        return await self._query(lambda log: log.index.names(user))

    async def totals(self) -> tuple[int, int]:
        return await self._query(lambda log: log.index.totals())

    async def survey(self) -> Survey:
        return await self._query(lambda log: log.index.survey())

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        await self._query(lambda log: log.maintain(snapshots))

    async def rebuild(self) -> None:
        await self._run(setattr, self._operations, "index_lost", "")

    async def erase(self, conversation: str) -> None:
        await self._query(lambda log: erase.erase(log, conversation))

    async def forget(self, conversation: str) -> None:
        await self._query(lambda log: erase.forget(log, conversation))

    async def unerased(self) -> list[str]:
        return await self._query(lambda log: sorted({*log.index.unerased(), *log.unindexed.tombstones}))

    @property
    def just_deleted(self) -> list[str]:
        """Deleted conversations whose tombstones are not indexed yet. `survey` finds the others."""
        return list(self._operations.unindexed.tombstones)

    async def backup(self, path: str, *, check: bool = True) -> Report:
        """Write a copy to a new path while commits continue, verify it, and return a report of its contents.

        Without `check`, the copy may be damaged and the report contains fewer counts.

        Raises:
            BackupFailed: The copy could not be written or is damaged; it was removed.
        """
        copy = Copy(self._operations, path)
        completed = False
        try:
            while await self._run(copy.step):
                pass
            completed = True
        finally:
            with anyio.CancelScope(shield=True):
                await self._thread.run(partial(copy.close, keep=completed))
        return await anyio.to_thread.run_sync(partial(publish_copy, copy.unfinished, path, check=check))

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
        return await self._query(lambda log: log.index.page(query, user, active, kind, limit, cursor))

    async def _run(self, operation: Callable[[*Ts], T], *args: *Ts) -> T:
        if self._closed:
            raise StorageFailed("the log is closed")
        return await self._thread.run(self._operations.run_guarded, operation, *args)

    async def _read(self, operation: Callable[[Operations, *Ts], T], *args: *Ts) -> T:
        return await self._run(reading.with_rebuild, self._operations, operation, *args)

    async def _query(self, operation: Callable[[Operations], T]) -> T:
        return await self._run(reading.query_index, self._operations, operation)
