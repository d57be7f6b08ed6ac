"""Keeps all mirrors up to date by the events of the daemon and of the disk, and by checking everything regularly.

Events of either side are hints that something may have changed; what counts is what is found then. Hints may be lost
(the kernel's queue overflows without a word, a connection breaks), so everything is looked at every `RECONCILE_S`
seconds and after each burst.
"""

import fcntl
import os
import time
from typing import IO

import anyio
from anyio.abc import TaskGroup
from watchfiles import Change as FileChange
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError, RequestRefused
from punchlist.taskfiles.config import Config, ConfigError
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.mirror.sources import Context, Key, Member, Source, sources_of
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_schemas.events import ConversationDeleted
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import PRIVATE

RECONCILE_S = 30.0
"""Seconds between two checks of everything."""

_FOLDERS_S = 1.0
"""Seconds between two checks whether a watched folder came, went, or was replaced by another one."""

_BURST = 200
"""So many events of the disk at once count as a burst, after which some may be missing."""

_AFTER_BURST_S = 0.3
"""Seconds after which files are looked at again that changed while nobody saw it: in a burst, before a watch began."""

_RETRY_S = 1.0
_DEBOUNCE_MS = 60
_STEP_MS = 10
_POLL_MS = 300


class AlreadyRunning(Exception):
    """Another process keeps the mirrors of this data directory up to date."""


class Runner:
    """Runs all mirrors of a data directory. Everything is checked each `reconcile_s` seconds."""

    def __init__(self, client: AsyncClient, data_dir: str, report: Report, *, reconcile_s: float = RECONCILE_S) -> None:
        self._client = client
        self._config = Config(data_dir)
        self._report = report
        self._reconcile_s = reconcile_s
        self._sources: list[Source] = []
        self._members: dict[Key, Member] = {}
        self._context = Context(client, data_dir, report, self._members)
        self._dirty: dict[Key, None] = {}
        self._busy: set[Key] = set()
        self._turns: dict[tuple[str, str], anyio.CapacityLimiter] = {}
        self._watched = anyio.Event()
        self._is_polling = False
        self._skips_unreadable = False
        self._inodes: dict[str, int] = {}
        self.active_at = time.monotonic()
        """When something mirrored last changed, here or on the disk."""
        self.ready = anyio.Event()
        """Set once the first look at everything is over."""

    def acquire(self) -> IO[bytes]:
        """The lock that allows one process to run the mirrors, for a `with` around `run`.

        Raises:
            AlreadyRunning: Another process has it.
        """
        make_directories(self._config.directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = open(os.open(os.path.join(self._config.directory, "lock"), flags, PRIVATE), "ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise AlreadyRunning("another `punch mirror run` is running already") from error
        return lock

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            ConfigError: The configuration can't be read.
        """
        self._load()
        self._report.save()
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_daemon, group)
            group.start_soon(self._follow_disk, group)
            group.start_soon(self._reconcile, group)
            group.start_soon(self._end_watch)

    async def _end_watch(self) -> None:
        """Stop the thread that watches: it can't be cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            self._watched.set()

    def _load(self) -> None:
        sources = sources_of(self._config)
        if sources == self._sources:
            return
        self._sources = sources
        self._watched.set()
        for key in list(self._members):
            if not any(source.key(key[2]) == key and source.holds(key[2]) for source in sources):
                del self._members[key]

    # what may have changed

    def _schedule(self, group: TaskGroup, source: Source, name: str, *, is_stale: bool) -> None:
        key = source.key(name)
        if key not in self._members:
            self._members[key] = source.open(name, self._context)
        self._members[key].is_stale |= is_stale
        self._dirty[key] = None
        if key not in self._busy:
            self._busy.add(key)
            turns = self._turns.setdefault(key[:2], anyio.CapacityLimiter(source.at_once))
            group.start_soon(self._work, group, key, turns)

    async def _work(self, group: TaskGroup, key: Key, turns: anyio.CapacityLimiter) -> None:
        try:
            while key in self._dirty and (member := self._members.get(key)) is not None:
                del self._dirty[key]
                member.retry_s = None
                try:
                    async with turns:
                        await member.sync()
                except PunchlistError:
                    member.is_stale = True
                    member.retry_s = _RETRY_S  # the daemon is away, or refuses reads: try again
                if member.retry_s is not None and key not in self._dirty:
                    group.start_soon(self._later, group, key, member.retry_s)
        finally:
            self._busy.discard(key)

    async def _later(self, group: TaskGroup, key: Key, seconds: float) -> None:
        await anyio.sleep(seconds)
        for source in self._sources:
            if source.key(key[2]) == key and source.holds(key[2]):
                self._schedule(group, source, key[2], is_stale=False)

    async def _schedule_all(self, group: TaskGroup) -> None:
        for source in self._sources:
            for name in await source.all(self._client):
                self._schedule(group, source, name, is_stale=True)

    # who says so

    async def _reconcile(self, group: TaskGroup) -> None:
        next_check = 0.0
        while True:
            if anyio.current_time() >= next_check:
                await self._load_and_schedule(group)
                next_check = anyio.current_time() + (self._reconcile_s if self.ready.is_set() else _RETRY_S)
            if any(_inode_of(path) != inode for path, inode in self._inodes.items()):
                self._watched.set()
            await anyio.sleep(min(_FOLDERS_S, self._reconcile_s))

    async def _load_and_schedule(self, group: TaskGroup) -> None:
        try:
            self._load()
            await self._schedule_all(group)
        except (PunchlistError, ConfigError, OSError) as error:
            self._report_trouble(str(error))
        else:
            self._report.clear(self._config.path, "trouble")
            self.ready.set()

    async def _follow_daemon(self, group: TaskGroup) -> None:
        while True:
            try:
                async with self._client.watch() as changes:
                    await self._schedule_all(group)
                    async for change in changes:
                        is_deletion = isinstance(change.event, ConversationDeleted)
                        for source in self._sources:
                            await self._on_change(group, source, change.conversation, is_deletion=is_deletion)
            except RequestRefused:
                pass  # another log, or a position that is gone: begin again with a look at everything
            except PunchlistError as error:
                self._report_trouble(str(error))
            await anyio.sleep(_RETRY_S)

    async def _on_change(self, group: TaskGroup, source: Source, conversation: str, *, is_deletion: bool) -> None:
        name = source.showing(conversation)
        if name is None:
            return
        self.active_at = time.monotonic()
        member = self._members.get(source.key(name))
        if isinstance(member, ListSync):
            if is_deletion:
                # The mirror stays, idle: a late event of the disk must not bring the file back.
                await member.erase()
                return
            if member.is_erased:
                del self._members[source.key(name)]  # the list has begun anew
        self._schedule(group, source, name, is_stale=True)

    async def _follow_disk(self, group: TaskGroup) -> None:
        while True:
            self._watched = anyio.Event()
            folders = {self._config.directory: True}
            for source in self._sources:
                folder = source.folder()
                folders[folder] = source.is_deep or folders.get(folder, False)
            self._inodes = {path: _inode_of(path) for path in folders}
            group.start_soon(self._check_again, group)
            async with anyio.create_task_group() as watches:
                watches.start_soon(self._watched.wait)  # also where no folder is there yet
                for is_deep in (True, False):
                    present = [path for path, deep in folders.items() if deep == is_deep and self._inodes[path]]
                    if present:
                        watches.start_soon(self._watch, group, present, is_deep)

    async def _watch(self, group: TaskGroup, folders: list[str], is_recursive: bool) -> None:  # noqa: FBT001
        stop = self._watched
        try:
            watch = awatch(
                *folders,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=stop,
                recursive=is_recursive,
                force_polling=self._is_polling or None,
                poll_delay_ms=_POLL_MS,
                ignore_permission_denied=self._skips_unreadable,
            )
            async for found in watch:
                await self._on_files(group, found)
        except PermissionError:
            # Then watchfiles ignores every error of a watch, so only where a folder can't be read.
            self._skips_unreadable = True
            stop.set()
        except (OSError, RuntimeError) as error:
            # watchfiles' own error is a RuntimeError: no instances, no watches, or a directory that vanished.
            if self._is_polling:
                self._report_trouble(f"watching: {error}")
                await anyio.sleep(_RETRY_S)
            self._is_polling = True
            self._report.watching = "polling"
            self._report.save()
            stop.set()

    async def _on_files(self, group: TaskGroup, found: set[tuple[FileChange, str]]) -> None:
        paths = {path for _, path in found}
        if self._config.path in paths:
            await self._load_and_schedule(group)
        for source in self._sources:
            for name in {name for path in paths if (name := source.changed(path, self._members)) is not None}:
                self.active_at = time.monotonic()
                self._schedule(group, source, name, is_stale=False)
        if len(found) > _BURST:
            group.start_soon(self._check_again, group)

    async def _check_again(self, group: TaskGroup) -> None:
        await anyio.sleep(_AFTER_BURST_S)
        for source in self._sources:
            for name in source.present(self._members.keys()):
                self._schedule(group, source, name, is_stale=False)

    def _report_trouble(self, text: str) -> None:
        self._report.add(Problem("", self._config.path, "trouble", text, 0))


def _inode_of(path: str) -> int:
    """Return the number that tells a folder from another one put in its place; 0 if there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
