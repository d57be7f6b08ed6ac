"""Work that follows behind the log: indexing it, saving summaries and snapshots, letting idle conversations go.

All of it can be made again from the log. It runs between commits, on the same connection, when the log has grown enough
or has been quiet for a moment.
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
"""With more events than these since it was planned, it is put off: each run holds up the commits."""


EVENTS_EACH = 4
"""So many events a conversation are waited for; with so many times as many as are enough, none are."""


class Totals:
    """Unfinished tasks and those in progress, over all conversations of the log that belong to no user.

    It is what this machine's person sees in a prompt: the lists of users whom a program serves are not theirs.

    They are known only once the log has been indexed after the start; until then nothing is reported.

    Args:
        changed: called with (unfinished, in progress) whenever they become known or change.
    """

    def __init__(self, changed: Callable[[int, int], None]) -> None:
        self.known = False
        self._changed = changed
        self._unfinished = 0
        self._in_progress = 0

    def start(self, stored: tuple[int, int], conversations: Iterable[LoadedConversation]) -> None:
        """The store's totals (open, in progress), in which the conversations loaded now are counted as they are."""
        self.known = True
        self._unfinished, self._in_progress = sum(stored), stored[1]
        for loaded in conversations:
            loaded.counted = counted(loaded)
        self._changed(self._unfinished, self._in_progress)

    def follow(self, touched: Iterable[LoadedConversation]) -> None:
        """Conversations changed."""
        before = self._unfinished, self._in_progress
        for loaded in touched:
            now = counted(loaded)
            if now != loaded.counted:
                self._unfinished += now[0] - loaded.counted[0]
                self._in_progress += now[1] - loaded.counted[1]
                loaded.counted = now
        if self.known and before != (self._unfinished, self._in_progress):
            self._changed(self._unfinished, self._in_progress)


def counted(loaded: LoadedConversation) -> tuple[int, int]:
    """Count a conversation's unfinished tasks and those in progress; (0, 0) if it belongs to a user."""
    return (0, 0) if loaded.state.user else (loaded.state.remaining, len(loaded.state.running))


class Maintenance:
    """Indexes the log and saves snapshots when due; the writer calls it between commits.

    Args:
        log: what is kept up.
        conversations: whose summaries and snapshots are saved.
        totals: started once everything is indexed.
        metrics: told of a full disk.
        settings: how much and how long indexing may wait.
        wake: wakes the writer, which calls `run` between two commits.
        forget: takes a list out of what else was made of its words.
    """

    def __init__(  # noqa: PLR0913 - what it keeps up, and what it tells
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
        self._asked = False
        self._held = False
        self._recovered = False
        self._recovering = anyio.Lock()
        self._surveyed = False
        self._unerased = False
        self._planned = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def due(self) -> bool:
        """Whether `run` has something to do now. Until all is recovered it would hold up the writer for that.

        A pass costs as much for a conversation as half a change of it does: where changes are spread over thousands of
        them, it waits until there are some of each, but not for ever.
        """
        if self._asked or not self._recovered:
            return self._asked and self._recovered
        events, enough = self._log.unindexed, self._settings.index_events
        if self._held or events < enough:
            return False
        return events >= EVENTS_EACH * min(enough, len(self._log.unindexed_conversations()))

    def follow(self, touched: Iterable[LoadedConversation]) -> None:
        """Take note that conversations changed and the log has grown."""
        self._totals.follow(touched)
        if self._timer is None:
            self.plan()

    def plan(self) -> None:
        """Index the log after a moment, unless more comes first."""
        if self._timer is None:
            self._planned = self._log.head
            self._timer = asyncio.get_running_loop().call_later(self._settings.index_delay_s, self._time)

    def _time(self) -> None:
        self._timer = None
        self._held = False
        if self._log.head - self._planned > BUSY_EVENTS:
            self.plan()
        else:
            self._ask()

    def _ask(self) -> None:
        self._asked = True
        self._wake()

    async def recover(self) -> None:
        """Load what a killed daemon left unindexed and, beside the first calls, look at all conversations.

        Then the index is kept up, and the totals are known.
        """
        async with self._recovering:
            if self._recovered:
                return
            await self._conversations.recover()
            try:
                await self._conversations.rebuilt(self._survey)
            except (StorageFull, Damaged) as error:
                self._metrics.error(f"the index can't be built again: {error}")
            self._recovered = True
            self._ask()

    async def _survey(self) -> None:
        found = await self._log.survey()
        self._surveyed = True
        self._unerased = bool(found.unerased)
        for name in found.timed:
            await self._conversations.load(name)  # its time begins

    async def erase(self, name: str) -> None:
        """Erase a deleted conversation from the disk; if the disk is too full, as soon as it is not."""
        await self._forget(name)
        try:
            await self._conversations.rebuilt(lambda: self._log.erase(name))
        except StorageFull:
            self._metrics.error(f"storage_full: {name} is deleted but not yet erased")
            self._unerased = True
            self.plan()
        except Damaged as damaged:  # it is tried again with the next start
            self._metrics.error(f"{name} is deleted but not yet erased: {damaged}")

    async def refresh(self) -> None:
        """Bring the store's list of conversations up to date with everything acknowledged."""
        await self.recover()
        if self._conversations.changed() or self._log.unindexed:
            done = asyncio.get_running_loop().create_future()
            self._waiting.append(done)
            self._ask()
            await done

    async def run(self, everything: bool = False) -> None:
        """Index, save what changed (as full snapshots if `everything`), and let idle conversations go."""
        self._asked = False

        async def save() -> None:
            await self._conversations.save(everything)
            if not self._surveyed:
                await self._survey()
            if not self._totals.known:
                self._totals.start(await self._log.totals(), self._conversations.loaded.values())
            await self._erase_rest()

        try:
            await self._conversations.rebuilt(save)
        except (StorageFull, Damaged) as error:
            full = isinstance(error, StorageFull)
            self._metrics.error("storage_full while indexing" if full else f"nothing is indexed: {error}")
            self._held = True
            self.plan()
        else:
            self._conversations.let_go(self._settings.loaded_s)
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            if not done.done():
                done.set_result(None)

    async def _erase_rest(self) -> None:
        """What was deleted when the disk was full, or by a daemon that did not come to it."""
        if self._unerased:
            self._unerased = False
            for name in await self._log.unerased():
                await self.erase(name)
