"""Watches Claude Code's task folders, as long as the configuration names them, and imports what changes.

File events are only hints, as for the other mirrors; every `RECONCILE_S` seconds everything is checked as well.
"""

import os
import time

import anyio
from anyio.abc import TaskGroup
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist.taskfiles.config import Config, ConfigError
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.mirror.inbound import Inbound
from punchlist_apps.files.mirror.watching import DEBOUNCE_MS, RECONCILE_S, STEP_MS, inode_of

_LOOK_S = 1.0
"""Seconds between two looks at the configuration, or for a folder that is not there yet."""


class Inbox:
    """Imports all folders in all directories that the configuration names.

    Args:
        client: The client.
        data_dir: The data directory.
        report: Where problems are reported.
        reconcile_s: Seconds between two checks of everything.
    """

    def __init__(self, client: AsyncClient, data_dir: str, report: Report, *, reconcile_s: float = RECONCILE_S) -> None:
        self._client = client
        self._config = Config(data_dir)
        self._data_dir = data_dir
        self._report = report
        self._reconcile_ms = int(reconcile_s * 1000)
        self._ends: dict[str, anyio.Event] = {}
        self.active_at = time.monotonic()
        """When something last changed in one of the folders."""

    async def run(self) -> None:
        """Run until cancelled."""
        async with anyio.create_task_group() as group:
            try:
                while True:
                    self._read_configuration(group)
                    await anyio.sleep(_LOOK_S)
            finally:
                for end in self._ends.values():
                    end.set()

    def _read_configuration(self, group: TaskGroup) -> None:
        try:
            wanted = self._config.inbound()
        except ConfigError as error:
            self._report_trouble(self._config.path, str(error))
            return
        for directory in self._ends.keys() - set(wanted):
            self._ends.pop(directory).set()
        for directory in wanted:
            if directory not in self._ends:
                self._ends[directory] = anyio.Event()
                group.start_soon(self._follow, directory, self._ends[directory])

    async def _follow(self, directory: str, end: anyio.Event) -> None:
        while not end.is_set():
            inode = inode_of(directory)
            if not inode:
                await anyio.sleep(_LOOK_S)
                continue
            await self._sync(directory, _folders(directory))
            try:
                watch = awatch(
                    directory,
                    watch_filter=None,
                    debounce=DEBOUNCE_MS,
                    step=STEP_MS,
                    stop_event=end,
                    rust_timeout=self._reconcile_ms,
                    yield_on_timeout=True,
                    ignore_permission_denied=True,
                )
                async for found in watch:
                    changed = {path.removeprefix(directory).lstrip(os.sep).split(os.sep)[0] for _, path in found}
                    if changed:
                        self.active_at = time.monotonic()
                    present = _folders(directory)
                    await self._sync(directory, [name for name in present if not changed or name in changed])
                    if inode_of(directory) != inode:
                        break
            except (OSError, RuntimeError) as error:  # no watches, or the directory vanished
                self._report_trouble(directory, f"watching: {error}")
                await anyio.sleep(_LOOK_S)

    async def _sync(self, directory: str, folders: list[str]) -> None:
        for folder in folders:
            try:
                await Inbound(self._client, directory, folder, self._data_dir, self._report).sync()
            except PunchlistError as error:
                self._report_trouble(directory, str(error))  # the next look at everything takes it over
                return
        self._report.clear(directory, "trouble")

    def _report_trouble(self, file: str, text: str) -> None:
        self._report.add(Problem("", file, "trouble", text, int(time.time() * 1000)))


def _folders(directory: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
