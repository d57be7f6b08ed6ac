"""Runs all mirrors: syncs them on events from the daemon and the file system, and checks everything regularly.

Events are only hints that something may have changed; a sync compares the contents. Hints may be lost (the kernel's
queue overflows silently, a connection breaks), so everything is checked every `RECONCILE_S` seconds and after each
burst.
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
from punchlist_apps.files.mirror.sources import Context, Key, Member, Source, load_sources
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_schemas.events import ConversationDeleted
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import PRIVATE

RECONCILE_S = 30.0
"""Seconds between checks of everything."""

_FOLDERS_S = 1.0
"""Seconds between checks for created, deleted or replaced watched folders."""

_MAX_EVENTS = 200
"""Maximum number of simultaneous file system events. More than this count as a burst, in which some may have been
lost."""

_AFTER_BURST_S = 0.3
"""Seconds after a burst, or after a watch starts, until the files are checked again for changes without an event."""

_RETRY_S = 1.0
_DEBOUNCE_MS = 60
_STEP_MS = 10
_POLL_MS = 300


class AlreadyRunning(Exception):
    """Another process is already running the mirrors of this data directory."""


class Runner:
    """Runs all mirrors of a data directory, and checks everything every `reconcile_s` seconds."""

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
        self._limiters: dict[tuple[str, str], anyio.CapacityLimiter] = {}
        self._watch_stop = anyio.Event()
        self._is_polling = False
        self._skips_unreadable = False
        self._inodes: dict[str, int] = {}
        self.active_at = time.monotonic()
        """Monotonic time of the last change to a mirrored list or file."""
        self.ready = anyio.Event()
        """Set after the first check of everything."""

    def acquire(self) -> IO[bytes]:
        """Acquire and return the lock for running the mirrors. The caller must hold it while `run` runs.

        Raises:
            AlreadyRunning: Another process has the lock.
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
        self._load_sources()
        self._report.save()
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_daemon, group)
            group.start_soon(self._follow_disk, group)
            group.start_soon(self._reconcile, group)
            group.start_soon(self._end_watch)

    async def _end_watch(self) -> None:
        """Stop the watch's thread, which can't be cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            self._watch_stop.set()

    def _load_sources(self) -> None:
        sources = load_sources(self._config)
        if sources == self._sources:
            return
        self._sources = sources
        self._watch_stop.set()
        for key in list(self._members):
            if not any(source.key(key[2]) == key and source.covers(key[2]) for source in sources):
                del self._members[key]

    def _schedule(self, group: TaskGroup, source: Source, name: str, *, is_stale: bool) -> None:
        key = source.key(name)
        if key not in self._members:
            self._members[key] = source.open(name, self._context)
        self._members[key].is_stale |= is_stale
        self._dirty[key] = None
        if key not in self._busy:
            self._busy.add(key)
            limiter = self._limiters.setdefault(key[:2], anyio.CapacityLimiter(source.max_parallel))
            group.start_soon(self._work, group, key, limiter)

    async def _work(self, group: TaskGroup, key: Key, limiter: anyio.CapacityLimiter) -> None:
        try:
            while key in self._dirty and (member := self._members.get(key)) is not None:
                del self._dirty[key]
                member.retry_s = None
                try:
                    async with limiter:
                        await member.sync()
                except PunchlistError:
                    member.is_stale = True
                    member.retry_s = _RETRY_S  # The daemon is unreachable or rejects reads.
                if member.retry_s is not None and key not in self._dirty:
                    group.start_soon(self._schedule_later, group, key, member.retry_s)
        finally:
            self._busy.discard(key)

    async def _schedule_later(self, group: TaskGroup, key: Key, seconds: float) -> None:
        await anyio.sleep(seconds)
        for source in self._sources:
            if source.key(key[2]) == key and source.covers(key[2]):
                self._schedule(group, source, key[2], is_stale=False)

    async def _schedule_all(self, group: TaskGroup) -> None:
        for source in self._sources:
            for name in await source.list_all(self._client):
                self._schedule(group, source, name, is_stale=True)

    async def _reconcile(self, group: TaskGroup) -> None:
        next_check = 0.0
        while True:
            if anyio.current_time() >= next_check:
                await self._load_and_schedule(group)
                next_check = anyio.current_time() + (self._reconcile_s if self.ready.is_set() else _RETRY_S)
            if any(_get_inode(path) != inode for path, inode in self._inodes.items()):
                self._watch_stop.set()
            await anyio.sleep(min(_FOLDERS_S, self._reconcile_s))

    async def _load_and_schedule(self, group: TaskGroup) -> None:
        try:
            self._load_sources()
            await self._schedule_all(group)
        except (PunchlistError, ConfigError, OSError) as error:
            self._report_problem(str(error))
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
                pass  # The log or its positions have changed: start again with a check of everything.
            except PunchlistError as error:
                self._report_problem(str(error))
            await anyio.sleep(_RETRY_S)

    async def _on_change(self, group: TaskGroup, source: Source, conversation: str, *, is_deletion: bool) -> None:
        name = source.find_showing(conversation)
        if name is None:
            return
        self.active_at = time.monotonic()
        member = self._members.get(source.key(name))
        if isinstance(member, ListSync):
            if is_deletion:
                # Keep the member without a file, so that a late file event doesn't create the list again.
                await member.erase()
                return
            if member.is_erased:
                del self._members[source.key(name)]  # The list was created again.
        self._schedule(group, source, name, is_stale=True)

    async def _follow_disk(self, group: TaskGroup) -> None:
        while True:
            self._watch_stop = anyio.Event()
            folders = {self._config.directory: True}
            for source in self._sources:
                folder = source.get_folder()
                folders[folder] = source.is_deep or folders.get(folder, False)
            self._inodes = {path: _get_inode(path) for path in folders}
            group.start_soon(self._check_again, group)
            async with anyio.create_task_group() as watches:
                watches.start_soon(self._watch_stop.wait)  # Keeps waiting even if no folder exists yet.
                for is_deep in (True, False):
                    present = [path for path, deep in folders.items() if deep == is_deep and self._inodes[path]]
                    if present:
                        watches.start_soon(self._watch, group, present, is_deep)

    async def _watch(self, group: TaskGroup, folders: list[str], is_recursive: bool) -> None:  # noqa: FBT001
        stop = self._watch_stop
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
            async for events in watch:
                await self._on_file_events(group, events)
        except PermissionError:
            # With this option, watchfiles ignores all errors of a watch, so it is set only after a PermissionError.
            self._skips_unreadable = True
            stop.set()
        except (OSError, RuntimeError) as error:
            # watchfiles raises RuntimeError if it runs out of inotify instances or watches, or a directory vanished.
            if self._is_polling:
                self._report_problem(f"watching: {error}")
                await anyio.sleep(_RETRY_S)
            self._is_polling = True
            self._report.watching = "polling"
            self._report.save()
            stop.set()

    async def _on_file_events(self, group: TaskGroup, events: set[tuple[FileChange, str]]) -> None:
        paths = {path for _, path in events}
        if self._config.path in paths:
            await self._load_and_schedule(group)
        for source in self._sources:
            for name in {name for path in paths if (name := source.find_changed(path, self._members)) is not None}:
                self.active_at = time.monotonic()
                self._schedule(group, source, name, is_stale=False)
        if len(events) > _MAX_EVENTS:
            group.start_soon(self._check_again, group)

    async def _check_again(self, group: TaskGroup) -> None:
        await anyio.sleep(_AFTER_BURST_S)
        for source in self._sources:
            for name in source.list_present(self._members.keys()):
                self._schedule(group, source, name, is_stale=False)

    def _report_problem(self, text: str) -> None:
        self._report.add(Problem("", self._config.path, "trouble", text, 0))


def _get_inode(path: str) -> int:
    """Return the inode number of a folder; 0 if it doesn't exist."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
