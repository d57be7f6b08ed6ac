"""Follows the Markdown plans that the configuration names: their files and their lists.

Events of either side are hints; everything is looked at every `RECONCILE_S` seconds as well.
"""

import os
import time
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist.taskfiles.config import Config, ConfigError, Plan
from punchlist.taskfiles.report import Report
from punchlist_apps.files.mirror.plan_file import PlanFile

RECONCILE_S = 30.0
"""Seconds between two looks at everything."""

_LOOK_S = 1.0
_RETRY_S = 1.0
_DEBOUNCE_MS = 60
_STEP_MS = 10


class Plans:
    """Keeps all plans and their lists in step.

    Args:
        client: The client.
        data_dir: The data directory.
        report: Where problems are told.
        reconcile_s: Seconds between two looks at everything.
    """

    def __init__(self, client: AsyncClient, data_dir: str, report: Report, *, reconcile_s: float = RECONCILE_S) -> None:
        self._client = client
        self._config = Config(data_dir)
        self._data_dir = data_dir
        self._report = report
        self._reconcile_s = reconcile_s
        self._ends: dict[Plan, anyio.CancelScope] = {}
        self.active_at = time.monotonic()
        """When a plan or its list last changed."""

    async def run(self) -> None:
        """Run until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                self._read_configuration(group)
                await anyio.sleep(_LOOK_S)

    def _read_configuration(self, group: TaskGroup) -> None:
        try:
            wanted = self._config.plans()
        except ConfigError:
            return  # the other mirrors report it
        for plan in self._ends.keys() - set(wanted):
            self._ends.pop(plan).cancel()
        for plan in wanted:
            if plan not in self._ends:
                self._ends[plan] = anyio.CancelScope()
                group.start_soon(self._follow, plan, self._ends[plan])

    async def _follow(self, plan: Plan, scope: anyio.CancelScope) -> None:
        file = PlanFile(self._client, plan.path, plan.conversation, self._data_dir, self._report)
        changed = anyio.Event()

        def hint() -> None:
            self.active_at = time.monotonic()
            changed.set()

        with scope:
            async with anyio.create_task_group() as group:
                end = anyio.Event()
                group.start_soon(_until_cancelled, end)
                group.start_soon(self._follow_file, plan, hint, end)
                group.start_soon(self._follow_list, plan, hint)
                while True:
                    changed = anyio.Event()
                    try:
                        await file.sync()
                        pause_s = self._reconcile_s
                    except PunchlistError:
                        pause_s = _RETRY_S
                    with anyio.move_on_after(pause_s):
                        await changed.wait()

    async def _follow_file(self, plan: Plan, hint: Callable[[], None], end: anyio.Event) -> None:
        folder = os.path.dirname(plan.path)
        while not end.is_set():
            try:
                watch = awatch(
                    folder,
                    watch_filter=None,
                    debounce=_DEBOUNCE_MS,
                    step=_STEP_MS,
                    stop_event=end,
                    recursive=False,
                    ignore_permission_denied=True,
                )
                async for found in watch:
                    if any(path == plan.path for _, path in found):
                        hint()
            except (OSError, RuntimeError):
                await anyio.sleep(_RETRY_S)  # no watches, or the folder vanished: the look at everything remains

    async def _follow_list(self, plan: Plan, hint: Callable[[], None]) -> None:
        while True:
            try:
                async with self._client.conversation(plan.conversation).watch() as changes:
                    hint()
                    async for _ in changes:
                        hint()
            except PunchlistError:
                pass
            await anyio.sleep(_RETRY_S)


async def _until_cancelled(end: anyio.Event) -> None:
    """The thread that watches must be told of the end; it can't be cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        end.set()
