"""This machine's copy of one shared list: which post it ends with, what is missing, and what arrives.

Posts are given to the writer in their order, each behind the one that it follows. One that was pushed too early is
held; what was lost on the way is read. A post that does not follow stops the list: it is shown, and takes no changes.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Shared
from punchlistd.clock import now_ms
from punchlistd.engine.calls import Arrival, Step
from punchlistd.engine.claims import Claims
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation, Place
from punchlistd.engine.writing.inbox import Inbox
from punchlistd.engine.writing.transaction import Transactor
from punchlistd.replication.port import Forbidden, Link, Posted, SharedLog, Unreachable
from punchlistd.replication.posts import refusals
from punchlistd.replication.posts.posts import Post, Unreadable, begins_anew, has_check, newest_of, unseal
from punchlistd.store.port import EventLog

logger = logging.getLogger(__name__)


CERTAIN_S = 10.0
"""How long servers must show a reader the same loss until he believes it, in seconds: an election takes six."""


BEHIND_S = 0.25
"""How long a list is behind until that is told, in seconds: changes of others come in within milliseconds."""


AHEAD = 2
"""Posts that a list that can't be followed reads: the one that it ends with, and the next one."""

NOWHERE = -1
"""A position that no list ends with: after a repair, another post may have the position of the one that was removed."""


class Parts(NamedTuple):
    """What of the engine lanes work with. `show` shows a list once more to those who follow it."""

    log: EventLog
    inbox: Inbox
    conversations: Conversations
    transactor: Transactor
    claims: Claims
    show: Callable[[str], None]


class Replica:
    """One list, as far as it is known here.

    Args:
        conversation: the list.
        space: where it is shared.
        base: its place before the first post that the local log tells of.
        log: the shared log.
        parts: the engine.
        followed: called with each post that is given to the writer.
        settled: called with the steps of one when the writer is done with it, why it refused them, and whether they
            are in the shared log.
        returned: called when the shared log is reached again.
    """

    def __init__(  # noqa: PLR0913 - a list, and who hears of what arrives
        self,
        conversation: str,
        space: str,
        base: Place,
        log: SharedLog,
        parts: Parts,
        *,
        followed: Callable[[Post], None],
        settled: Callable[[Sequence[Step], Rejection | None, bool], None],
        returned: Callable[[], None],
    ) -> None:
        self.conversation = conversation
        self.space = space
        self.base = base
        self.refused: Rejection | None = None
        """Why the list takes no changes from here until somebody acts."""
        self.stuck = False
        """Whether that is because of what the shared log holds or lacks: it is looked at again once it changes."""
        self.away_since: float | None = time.monotonic()
        """Since when the shared log was not reached, by the monotonic clock."""
        self.place: Place | None = None
        """Up to where posts were given to the writer; None: the list itself has to be asked."""
        self.partial = False
        """Whether the last post was a part of a history that is still being shared."""
        self.arriving = 0
        """How many posts the writer has not finished with."""
        self.posting = False
        """Whether this daemon's own post is on its way: what is pushed meanwhile is held."""
        self.stale = True
        """Whether something may be missing that nobody will push."""
        self.shared: Shared | None = Shared(space, "offline", now_ms())
        """What is said of the list while its newest changes may be missing."""
        self._checks: asyncio.TimerHandle | None = None
        self._log = log
        self._parts = parts
        self._followed = followed
        self._settled = settled
        self._returned = returned
        self._version = 0
        self._moved = Place()  # where the post that this replica ends with stands again
        self._seen = 0  # with what position the shared log ended when this replica got stuck
        self._missing_since: float | None = None
        self._reported = ""  # why the list can't be followed, as the daemon's own log has it already
        self._held: dict[int, Posted] = {}  # pushed before the one that they follow, by its position

    @property
    def position(self) -> int | None:
        """The position of the last post that was given to the writer, None while that is not known."""
        return None if self.place is None or self.posting else self.place.position

    @property
    def state(self) -> str:
        if self.refused is not None:
            return self.refused.kind
        if self.away_since is not None or self._log.link.state != "up":
            return "offline"
        return "behind" if self.stale or self._held or self.partial else "current"

    def check_state(self) -> None:
        """Tell those who follow the list how it stands, if that has changed.

        What a list lacks for a moment only is not told.
        """
        if self.state == "behind":
            if self._checks is None:
                self._checks = asyncio.get_running_loop().call_later(BEHIND_S, self._show_state)
            return
        if self._checks is not None:
            self._checks.cancel()
        self._show_state()

    def close(self) -> None:
        if self._checks is not None:
            self._checks.cancel()

    def _show_state(self) -> None:
        state, self._checks = self.state, None
        if state == ("current" if self.shared is None else self.shared.state):
            return
        away = self.away_since
        since = 0 if away is None else now_ms() - int((time.monotonic() - away) * 1000)
        self.shared = None if state == "current" else Shared(self.space, state, since)
        self._parts.show(self.conversation)

    @property
    def version(self) -> int:
        """The version behind the posts that were given to the writer, 0 while that is not known."""
        return 0 if self.place is None else self._version

    def begin_anew(self) -> None:
        self.refused, self.stuck, self.place, self.stale = None, False, None, True

    def placed(self, place: Place) -> Place:
        """Where a place of the list is now: it moves if posts are lost and put back."""
        return self._moved if self._moved.check == place.check else place

    def is_behind(self, last: int) -> bool:
        return last != (self._seen if self.stuck else self.position)

    def link_changed(self, link: Link) -> None:
        if link.state == "up":
            self.stale = True
        elif self.away_since is None:
            self.away_since = time.monotonic()

    def reach_no_more(self) -> None:
        self.away_since = time.monotonic() if self.away_since is None else self.away_since
        self.stale = True

    def posted(self, posted: Posted) -> None:
        if self.stuck and self.place is not None and has_check(posted.body, self.place.check):
            self.stale = True  # what was lost is back
        if self.refused is not None or self.place is None or posted.position <= self.place.position:
            return
        self._held[posted.before] = posted
        if not self.posting:
            self.take_held()
            if self._held:
                self.stale = True  # something between is missing

    def behind(self, position: int) -> Posted | None:
        return self._held.get(position)

    async def loaded(self) -> LoadedConversation | None:
        """The list, if it is as far as the posts that were given to the writer."""
        loaded = await self._parts.conversations.durable(self.conversation)
        if loaded.keys is None:
            loaded.keys = set(await self._parts.log.keys(self.conversation))
            loaded = await self._parts.conversations.durable(self.conversation)
        if self.arriving or loaded.place != self.place or loaded.keys is None:
            self.place, self.stale = (self.place, self.stale) if self.arriving else (None, True)
            return None
        return loaded

    async def catch_up(self) -> None:
        """Read what is missing.

        Raises:
            Unreachable: The shared log can't be asked, or answers with an old state.
        """
        place = await self._reached()
        if place is None:
            return
        version = self._version
        # Of a list that can't be followed the next post is enough: it stands there, or another one does.
        most = AHEAD if self.stuck else None
        found = await self._log.read(self.conversation, max(0, place.position - 1), most)
        if place.position and not _goes_on(found, place, version):
            found = await self._find_again(place)
        elif self.stuck:
            self.refused, self.stuck = None, False
        if self.refused is None and version != (there := _version_at(found, place, version)):
            self._stop(refusals.counted_otherwise(self.conversation, self.space, version, there))
        if self.away_since is not None:
            self._returned()  # nothing was heard of the others meanwhile, and proves nothing
        self.stale = self.place is None  # somebody began anew meanwhile
        self.away_since, self._missing_since = None, None
        for posted in found:
            if self.refused is None and self.place is not None and posted.position > self.place.position:
                self._arrive(posted)
        self.take_held()
        self._held.clear()
        self.stale = self.stale or (most is not None and not self.stuck)  # there is more

    async def _find_again(self, place: Place) -> list[Posted]:
        """The posts of a list whose last one is not where it was: put back elsewhere, lost, or replaced by others.

        A check names a post and all before it, so it is the same one wherever it stands now.

        Raises:
            Unreachable: What answers may be of the past.
        """
        found = await self._log.read(self.conversation, 0)
        if self.place != place:  # it was only told late of what came meanwhile
            return found
        for posted in found:
            if has_check(posted.body, place.check):
                await self._move(Place(posted.position, place.check))
                return found
        last = found[-1] if found else None
        self._seen = 0 if last is None else last.position
        if not await self._is_certain(self._seen):
            raise Unreachable(f"{self.space} answers with an old state of {self.conversation}.")
        self.stuck = True
        ends_at = 0 if last is None else newest_of(last.body)
        own = await self._parts.log.read(0, 1, conversation=self.conversation)
        is_begun_anew = bool(found and own) and begins_anew(found[0].body, own[0].version)
        if ends_at < self._version and (last is None or ends_at) and not is_begun_anew:
            is_deleted = not (await self._parts.conversations.durable(self.conversation)).state.exists
            self.refused = refusals.lost(self.conversation, self.space, ends_at, deleted=is_deleted)
        else:
            self.refused = refusals.other_history(self.conversation, self.space)
        logger.error("%s: %s", self.conversation, self.refused.message)
        return []

    async def _move(self, place: Place) -> None:
        if place != (before := self.place):
            loaded = await self._parts.conversations.durable(self.conversation)
            if self.place != before:
                return
            loaded.place = self.place = self._moved = place
            logger.info("%s: goes on behind position %d of %s", self.conversation, place.position, self.space)
        self.refused, self.stuck = None, False

    async def _is_certain(self, last: int) -> bool:
        """Whether the shared log ends there: who may not post can ask no quorum, and waits until no answer differs."""
        try:
            return await self._log.is_current(self.conversation, last)
        except Forbidden:
            now = time.monotonic()
            self._missing_since = self._missing_since or now
            return now - self._missing_since > CERTAIN_S

    async def _reached(self) -> Place | None:
        if self.place is None:
            loaded = await self._parts.conversations.durable(self.conversation)
            if loaded.damage is not None:
                self.refused = loaded.damage
                return None
            self.place, self._version = loaded.place, loaded.state.version
        return self.place

    def take_held(self) -> None:
        while self.place is not None and self.refused is None:
            posted = self._held.pop(self.place.position, None)
            if posted is None:
                break
            self._arrive(posted)
        place = self.place
        self._held = {} if place is None else {b: each for b, each in self._held.items() if b >= place.position}

    def _arrive(self, posted: Posted) -> None:
        assert self.place is not None, "it was read behind a place"
        try:
            received = unseal(posted, self.place, self._version)
        except Unreadable as error:
            self._stop(refusals.unreadable(self.conversation, self.space, error))
            return
        self.follow(received, received.steps)

    def _stop(self, why: Rejection) -> None:
        """Follow no more posts before the next one is another."""
        self.refused, self.stuck, self._seen = why, True, NOWHERE
        if self._reported != why.message:
            self._reported = why.message
            logger.error("%s: %s", self.conversation, why.message)

    def follow(self, received: Post, steps: Sequence[Step]) -> None:
        self.place, self._version, self.partial = received.place, received.newest, received.more
        self._followed(received)
        self.submit(received.version, received.behind, received.place, steps)

    def submit(self, first: int, behind: Place, place: Place, steps: Sequence[Step]) -> None:
        """Give steps to the writer; they are no post if the place stays."""
        self.arriving += 1
        arrived = partial(self._arrived, steps, posted=place != behind)
        self._parts.inbox.submit(Arrival(self.conversation, first, behind, place, list(steps), arrived))

    def _arrived(self, steps: Sequence[Step], refusal: Rejection | None, *, posted: bool) -> None:
        self.arriving -= 1
        if refusal is not None:
            self.place, self.stale = None, True
        self._settled(steps, refusal, posted)


def _version_at(found: list[Posted], place: Place, version: int) -> int:
    """Return the version that the space has at a place; the replica's own one if its last post is erased there.

    A check does not cover what was before the first post, so a replica may have the same posts and other versions.
    """
    if not place.position:
        return 0
    return next((newest_of(posted.body) for posted in found if has_check(posted.body, place.check)), version)


def _goes_on(found: list[Posted], place: Place, version: int) -> bool:
    """Whether what was read begins with the post that a replica ends with, or with one that erases it."""
    if not found:
        return False
    first = found[0]
    if first.position == place.position:
        return has_check(first.body, place.check)
    return begins_anew(first.body, version)
