"""Keeps all mirrors up to date by the events of the daemon and of the disk, and by checking everything regularly.

Events of either side are hints that something may have changed; what counts is what is found then. Hints may be lost
(the kernel's queue overflows without a word, a connection breaks), so everything is looked at every `RECONCILE_S`
seconds and after each burst.
"""

import fcntl
import os
import time
from collections.abc import AsyncIterator
from typing import IO

import anyio
from anyio.abc import TaskGroup
from watchfiles import Change as FileChange
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError, RequestRefused
from punchlist.taskfiles.config import FORMS, Config, ConfigError, Entry
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_apps.files.mirror.watching import DEBOUNCE_MS, RECONCILE_S, STEP_MS, inode_of
from punchlist_schemas.events import ConversationDeleted
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import PRIVATE

_BURST = 200
"""So many events of the disk at once count as a burst, after which some may be missing."""

_AFTER_BURST_S = 0.3
"""Seconds after which files are looked at again that changed while nobody saw it: in a burst, before a watch began."""

_RETRY_S = 1.0
_POLL_MS = 300
_PAGE = 1_000

Key = tuple[str, str, str]
"""Directory, format, conversation."""


class AlreadyRunning(Exception):
    """Another process keeps the mirrors of this data directory up to date."""


class Runner:
    """Runs all mirrors of a data directory.

    Args:
        client: The client.
        data_dir: The data directory.
        report: Where problems are reported.
        reconcile_s: Seconds between two checks of everything.
    """

    def __init__(self, client: AsyncClient, data_dir: str, report: Report, *, reconcile_s: float = RECONCILE_S) -> None:
        self._client = client
        self._config = Config(data_dir)
        self._report = report
        self._reconcile_s = reconcile_s
        self._entries: tuple[Entry, ...] = ()
        self._mirrored: dict[Key, ListSync] = {}
        self._dirty: dict[Key, None] = {}
        self._busy: set[Key] = set()
        self._watched = anyio.Event()
        self._inodes: dict[str, int] = {}
        self.active_at = time.monotonic()
        """When a mirrored list or file last changed."""
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
        entries = self._config.load()
        if entries != self._entries:
            self._entries = entries
            self._watched.set()
            self._mirrored = {
                key: one
                for key, one in self._mirrored.items()
                if any((e.directory, e.format) == key[:2] and e.holds(key[2]) for e in entries)
            }

    # what may have changed

    def _schedule(self, group: TaskGroup, entry: Entry, conversation: str, *, is_stale: bool) -> None:
        key = (entry.directory, entry.format, conversation)
        mirrored = self._mirrored.get(key)
        if mirrored is None:
            mirrored = ListSync(self._client, entry, conversation, self._report, lambda: self._taken(entry))
            self._mirrored[key] = mirrored
        mirrored.is_stale = mirrored.is_stale or is_stale
        self._dirty[key] = None
        if key not in self._busy:
            self._busy.add(key)
            group.start_soon(self._work, group, key)

    def _taken(self, entry: Entry) -> set[str]:
        """The file names (without suffix) that are taken in a directory."""
        return {one.stem for key, one in self._mirrored.items() if key[:2] == (entry.directory, entry.format)}

    async def _work(self, group: TaskGroup, key: Key) -> None:
        try:
            while key in self._dirty and (mirrored := self._mirrored.get(key)) is not None:
                del self._dirty[key]
                try:
                    await mirrored.sync()
                except PunchlistError:
                    mirrored.is_stale = True
                    mirrored.retry_s = _RETRY_S  # the daemon is away, or refuses reads: try again
                if mirrored.retry_s is not None and key not in self._dirty:
                    group.start_soon(self._later, group, key, mirrored.retry_s)
        finally:
            self._busy.discard(key)

    async def _later(self, group: TaskGroup, key: Key, seconds: float) -> None:
        await anyio.sleep(seconds)
        for entry in self._entries:
            if (entry.directory, entry.format) == key[:2] and entry.holds(key[2]):
                self._schedule(group, entry, key[2], is_stale=False)

    async def _schedule_all(self, group: TaskGroup) -> None:
        for entry in self._entries:
            names = entry.conversations
            for name in [one async for one in self._conversations(entry)] if names is None else names:
                self._schedule(group, entry, name, is_stale=True)

    async def _conversations(self, entry: Entry) -> AsyncIterator[str]:
        """All conversations: those of the daemon, and those that only files name."""
        form, known = FORMS[entry.format], set[str]()
        cursor: str | None = None
        while True:
            page = await self._client.conversations(limit=_PAGE, cursor=cursor)
            for one in page.conversations:
                known.update(form.stems(one.conversation))
                yield one.conversation
            cursor = page.next_cursor
            if cursor is None:
                break
        for stem in await anyio.to_thread.run_sync(_stems_on_disk, entry):
            if stem not in known and (found := form.conversation(stem)) is not None:
                yield found

    # who says so

    async def _reconcile(self, group: TaskGroup) -> None:
        while True:
            try:
                self._load()
                await self._schedule_all(group)
            except (PunchlistError, ConfigError, OSError) as error:
                self._report_trouble(str(error))
            else:
                self._report.clear(self._config.path, "trouble")
                self.ready.set()
            if any(inode_of(path) != inode for path, inode in self._inodes.items()):
                self._watched.set()  # a folder was put in another's place: the old one is no longer worth watching
            await anyio.sleep(self._reconcile_s if self.ready.is_set() else _RETRY_S)

    async def _follow_daemon(self, group: TaskGroup) -> None:
        while True:
            try:
                async with self._client.watch() as changes:
                    await self._schedule_all(group)
                    async for change in changes:
                        for entry in self._entries:
                            if not entry.holds(change.conversation):
                                continue
                            self.active_at = time.monotonic()
                            key = (entry.directory, entry.format, change.conversation)
                            if isinstance(change.event, ConversationDeleted) and key in self._mirrored:
                                # The mirror stays, idle: a late event of the disk must not bring the file back.
                                await self._mirrored[key].erase()
                                continue
                            if key in self._mirrored and self._mirrored[key].is_erased:
                                del self._mirrored[key]  # the list has begun anew
                            self._schedule(group, entry, change.conversation, is_stale=True)
            except RequestRefused:
                pass  # another log, or a position that is gone: begin again with a look at everything
            except PunchlistError as error:
                self._report_trouble(str(error))
            await anyio.sleep(_RETRY_S)

    async def _follow_disk(self, group: TaskGroup) -> None:
        polling = False
        while True:
            self._watched = anyio.Event()
            folders = [self._config.directory, *(path for entry in self._entries for path in _watchable(entry))]
            self._inodes = {path: inode_of(path) for path in folders}
            group.start_soon(self._check_again, group)
            try:
                watch = awatch(
                    *dict.fromkeys(folders),
                    watch_filter=None,
                    debounce=DEBOUNCE_MS,
                    step=STEP_MS,
                    stop_event=self._watched,
                    recursive=True,
                    force_polling=polling or None,
                    poll_delay_ms=_POLL_MS,
                )
                async for found in watch:
                    await self._seen(group, found)
            except (OSError, RuntimeError) as error:
                # watchfiles' own error is a RuntimeError: no instances, no watches, or a directory that vanished.
                if polling:
                    self._report_trouble(f"watching: {error}")
                    await anyio.sleep(_RETRY_S)
                polling = True
                self._report.watching = "polling"
                self._report.save()

    async def _seen(self, group: TaskGroup, found: set[tuple[FileChange, str]]) -> None:
        paths = {path for _, path in found}
        if self._config.path in paths:
            try:
                self._load()
                await self._schedule_all(group)
            except (PunchlistError, ConfigError) as error:
                self._report_trouble(str(error))
        for entry in self._entries:
            for conversation in {name for path in paths if (name := self._owner(entry, path)) is not None}:
                self.active_at = time.monotonic()
                self._schedule(group, entry, conversation, is_stale=False)
        if len(found) > _BURST:
            group.start_soon(self._check_again, group)

    async def _check_again(self, group: TaskGroup) -> None:
        await anyio.sleep(_AFTER_BURST_S)
        for entry in self._entries:
            for directory, form, conversation in list(self._mirrored):
                if (directory, form) == (entry.directory, entry.format):
                    self._schedule(group, entry, conversation, is_stale=False)

    def _owner(self, entry: Entry, path: str) -> str | None:
        """The conversation that a changed path belongs to."""
        form = FORMS[entry.format]
        head = os.path.join(entry.directory, *form.folder("")) if form.is_single else entry.directory
        relative = os.path.relpath(path, head)
        stem = relative.removesuffix(".json") if form.is_single else relative.split(os.sep)[0]
        for (directory, name, conversation), mirrored in self._mirrored.items():
            stems = (mirrored.stem,) if mirrored.stem else form.stems(conversation)
            if (directory, name) == (entry.directory, entry.format) and stem in stems:
                return conversation
        found = form.conversation(stem)
        return found if found is not None and entry.holds(found) and path.endswith(".json") else None

    def _report_trouble(self, text: str) -> None:
        self._report.add(Problem("", self._config.path, "trouble", text, 0))


def _stems_on_disk(entry: Entry) -> list[str]:
    """The names of the files or folders of conversations in a directory."""
    form = FORMS[entry.format]
    folder = os.path.join(entry.directory, *form.folder("")) if form.is_single else entry.directory
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    if form.is_single:
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]
    return [name for name in names if os.path.isdir(os.path.join(folder, name))]


def _watchable(entry: Entry) -> list[str]:
    """The folders to watch. Missing ones are made, unless the directory itself is missing."""
    form = FORMS[entry.format]
    if not os.path.isdir(entry.directory):
        return []
    folder = os.path.join(entry.directory, *form.folder("")) if form.is_single else entry.directory
    make_directories(folder)
    return [folder]
