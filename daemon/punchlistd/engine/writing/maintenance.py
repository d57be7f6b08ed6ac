"""Background work on the log: indexing, saving summaries and snapshots, and unloading idle conversations.

All results can be rebuilt from the log. The work is done between commits, on the same database connection, when the log
has grown enough or has been idle for a moment.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import anyio

from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.metrics import Metrics
from punchlistd.settings import Settings
from punchlistd.store.port import Damaged, EventLog, StorageFull

BUSY_EVENTS = 256
"""A run is postponed if more events than this have arrived since it was planned, because each run delays commits."""

EVENTS_EACH = 4
"""Average number of events per unindexed conversation that a run waits for.

It waits for at most `EVENTS_EACH` times `index_events` events.
"""


class Totals:
    """Counts of unfinished tasks and of tasks in progress in all lists that belong to no user.

    A shell prompt shows them to the person at this machine. Lists with a user are left out, because they belong to the
    users of a program. Nothing is reported until the log has been indexed after the daemon's start.

    Args:
        on_change: Called with (unfinished, in progress) when the totals are first known and when they change.
    """

    def __init__(self, on_change: Callable[[int, int], None]) -> None:
        self.is_started = False
        self._on_change = on_change
        self._unfinished = 0
        self._in_progress = 0

    def start(self, stored: tuple[int, int], conversations: Iterable[LoadedConversation]) -> None:
        """Set the totals from the store's (open, in progress), which must cover the current state of all lists."""
        self.is_started = True
        self._unfinished, self._in_progress = sum(stored), stored[1]
        for loaded in conversations:
            loaded.counted = count_tasks(loaded)
        self._on_change(self._unfinished, self._in_progress)

    def follow(self, touched: Iterable[LoadedConversation]) -> None:
        """Update the totals after changes to these conversations."""
        before = self._unfinished, self._in_progress
        for loaded in touched:
            now = count_tasks(loaded)
            if now != loaded.counted:
                self._unfinished += now[0] - loaded.counted[0]
                self._in_progress += now[1] - loaded.counted[1]
                loaded.counted = now
        if self.is_started and before != (self._unfinished, self._in_progress):
            self._on_change(self._unfinished, self._in_progress)


def count_tasks(loaded: LoadedConversation) -> tuple[int, int]:
    """Count a conversation's unfinished tasks and its tasks in progress; (0, 0) if it belongs to a user."""
    return (0, 0) if loaded.state.user else (loaded.state.remaining, len(loaded.state.running))


class Maintenance:
    """Indexes the log and saves snapshots when due. The writer calls it between commits.

    Args:
        totals: Started once everything is indexed.
        wake: Wakes the writer, which calls `run` between two commits.
        forget: Removes a deleted list's text from other indexes.
    """

    def __init__(  # noqa: PLR0913 - its work and its reports
        self,
        log: EventLog,
        conversations: Conversations,
        totals: Totals,
        *,
        metrics: Metrics,
        settings: Settings,
        wake: Callable[[], None],
        forget: Callable[[str], Awaitable[None]],
    ) -> None:
        self._log = log
        self._conversations = conversations
        self._totals = totals
        self._metrics = metrics
        self._settings = settings
        self._wake = wake
        self._forget = forget
        self._is_requested = False
        self._is_postponed = False
        self._recovered = False
        self._recovering = anyio.Lock()
        self._surveyed = False
        self._has_unerased = False
        self._planned_head = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_due(self) -> bool:
        """Whether `run` should be called now.

        This is False until `recover` has finished. If `run` called `recover`, that would block the writer.

        For each conversation, a run costs half as much as a change. If changes are spread over thousands of
        conversations, the run waits, within a limit, until each conversation has several changes.
        """
        if self._is_requested or not self._recovered:
            return self._is_requested and self._recovered
        events, enough = self._log.unindexed, self._settings.index_events
        if self._is_postponed or events < enough:
            return False
        return events >= EVENTS_EACH * min(enough, len(self._log.unindexed_conversations()))

    def follow(self, touched: Iterable[LoadedConversation]) -> None:
        """Update the totals, and plan to index the new events."""
        self._totals.follow(touched)
        if self._timer is None:
            self.plan()

    def plan(self) -> None:
        """Index the log after `index_delay_s`, or later if the log keeps growing."""
        if self._timer is None:
            self._planned_head = self._log.head
            self._timer = asyncio.get_running_loop().call_later(self._settings.index_delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._is_postponed = False
        if self._log.head - self._planned_head > BUSY_EVENTS:
            self.plan()
        else:
            self._request_run()

    def _request_run(self) -> None:
        self._is_requested = True
        self._wake()

    async def recover(self) -> None:
        """Load the conversations that a killed daemon left unindexed, and survey the stored ones.

        From then on, `run` maintains the index and starts the totals.
        """
        async with self._recovering:
            if self._recovered:
                return
            await self._conversations.recover()
            try:
                await self._conversations.use_index(self._survey)
            except (StorageFull, Damaged) as error:
                self._metrics.error(f"the index can't be rebuilt: {error}")
            self._recovered = True
            self._request_run()

    async def _survey(self) -> None:
        survey = await self._log.survey()
        self._surveyed = True
        self._has_unerased = bool(survey.unerased)
        for name in survey.timed:
            await self._conversations.load(name)  # loading starts its timers

    async def erase(self, name: str) -> None:
        """Erase a deleted conversation from the disk. If the disk is full, later runs try again."""
        await self._forget(name)
        try:
            await self._conversations.use_index(lambda: self._log.erase(name))
        except StorageFull:
            self._metrics.error(f"storage_full: {name} is deleted but not yet erased")
            self._has_unerased = True
            self.plan()
        except Damaged as damaged:  # the daemon tries again when it is next started
            self._metrics.error(f"{name} is deleted but not yet erased: {damaged}")

    async def refresh(self) -> None:
        """Index everything that has been acknowledged."""
        await self.recover()
        if self._conversations.find_unsaved() or self._log.unindexed:
            done = asyncio.get_running_loop().create_future()
            self._waiting.append(done)
            self._request_run()
            await done

    async def run(self, everything: bool = False) -> None:
        """Index the log, save changed conversations (as full snapshots if `everything`), and unload idle ones."""
        self._is_requested = False

        async def save() -> None:
            await self._conversations.save(everything)
            if not self._surveyed:
                await self._survey()
            if not self._totals.is_started:
                self._totals.start(await self._log.totals(), self._conversations.loaded.values())
            await self._erase_rest()

        try:
            await self._conversations.use_index(save)
        except (StorageFull, Damaged) as error:
            is_full = isinstance(error, StorageFull)
            self._metrics.error("storage_full while indexing" if is_full else f"nothing is indexed: {error}")
            self._is_postponed = True
            self.plan()
        else:
            self._conversations.unload_idle(self._settings.loaded_s)
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            if not done.done():
                done.set_result(None)

    async def _erase_rest(self) -> None:
        """Erase conversations that were deleted while the disk was full, or by an earlier daemon."""
        if self._has_unerased:
            self._has_unerased = False
            for name in await self._log.unerased():
                await self.erase(name)
