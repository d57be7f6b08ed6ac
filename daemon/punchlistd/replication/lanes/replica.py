"""This machine's copy of one shared list: receives posts and keeps their order.

Posts go to the writer in order. A post that was pushed too early is held until the missing posts arrive or are read. A
post that does not follow the last one makes the list read-only.
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
"""How long a loss must persist before a read-only member accepts it, in seconds. Must exceed the duration of a leader
election (about 6 s)."""


BEHIND_S = 0.25
"""Lag in seconds before a list is reported as behind. Changes normally arrive within milliseconds."""


PROBE_POSTS = 2
"""Number of posts that a stuck list reads: its last post and the next one."""

NOWHERE = -1
"""Sentinel that equals no post's position.

Don't use a real position: after a repair, another post may have the position of the removed one.
"""


class Parts(NamedTuple):
    """The parts of the engine that lanes use. `show` pushes a list to its subscribers again."""

    log: EventLog
    inbox: Inbox
    conversations: Conversations
    transactor: Transactor
    claims: Claims
    show: Callable[[str], None]


class Replica:
    """The local copy of one list.

    Args:
        conversation: ID of the list.
        space: Space in which the list is shared.
        base: The list's place before the first post that is recorded in the local log.
        log: The shared log.
        parts: Parts of the engine.
        on_follow: Called with each post that is passed to the writer.
        on_settle: Called when the writer has finished some steps. Receives the steps, the rejection if they were
            rejected, and whether they are in the shared log.
        on_reconnect: Called when the shared log is reachable again.
    """

    def __init__(  # noqa: PLR0913 - a list and its callbacks
        self,
        conversation: str,
        space: str,
        base: Place,
        log: SharedLog,
        parts: Parts,
        *,
        on_follow: Callable[[Post], None],
        on_settle: Callable[[Sequence[Step], Rejection | None, bool], None],
        on_reconnect: Callable[[], None],
    ) -> None:
        self.conversation = conversation
        self.space = space
        self.base = base
        self.refused: Rejection | None = None
        """Why the list accepts no changes until a person intervenes."""
        self.stuck = False
        """Whether `refused` is due to the content of the shared log. The log is read again once it changes."""
        self.away_since: float | None = time.monotonic()
        """Monotonic time since which the shared log has been unreachable; None while it is reachable."""
        self.place: Place | None = None
        """Place of the last post passed to the writer; None if it has to be read from the loaded list."""
        self.partial = False
        """Whether the last post is part of a history that is still being shared."""
        self.arriving = 0
        """Number of posts that the writer has not finished."""
        self.posting = False
        """Whether one of this member's posts is being decided or in flight. Posts pushed in the meantime are held."""
        self.stale = True
        """Whether some posts may be missing that won't be pushed again."""
        self.shared: Shared | None = Shared(space, "offline", now_ms())
        """State shown with the list while the newest changes may be missing."""
        self._checks: asyncio.TimerHandle | None = None
        self._log = log
        self._parts = parts
        self._on_follow = on_follow
        self._on_settle = on_settle
        self._on_reconnect = on_reconnect
        self._version = 0
        self._moved_to = Place()  # new place of the last post, if it was lost and restored
        self._stuck_at = 0  # last position of the shared log when this replica got stuck
        self._missing_since: float | None = None
        self._reported = ""  # the last logged reason for being stuck
        self._held: dict[int, Posted] = {}  # early posts, by the position of their previous post

    @property
    def position(self) -> int | None:
        """Position of the last post passed to the writer; None if unknown or if one of this member's posts is in
        flight."""
        return None if self.place is None or self.posting else self.place.position

    @property
    def state(self) -> str:
        if self.refused is not None:
            return self.refused.kind
        if self.away_since is not None or self._log.link.state != "up":
            return "offline"
        return "behind" if self.stale or self._held or self.partial else "current"

    def check_state(self) -> None:
        """Push the list's state to its subscribers if it has changed. A lag is only reported after `BEHIND_S`."""
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
        """Version after the last post passed to the writer; 0 while unknown."""
        return 0 if self.place is None else self._version

    def reset(self) -> None:
        self.refused, self.stuck, self.place, self.stale = None, False, None, True

    def placed(self, place: Place) -> Place:
        """Return the current place of a post, which changes if posts are lost and restored."""
        return self._moved_to if self._moved_to.check == place.check else place

    def differs_from(self, last: int) -> bool:
        return last != (self._stuck_at if self.stuck else self.position)

    def on_link_change(self, link: Link) -> None:
        if link.state == "up":
            self.stale = True
        elif self.away_since is None:
            self.away_since = time.monotonic()

    def mark_unreachable(self) -> None:
        self.away_since = time.monotonic() if self.away_since is None else self.away_since
        self.stale = True

    def receive(self, posted: Posted) -> None:
        if self.stuck and self.place is not None and has_check(posted.body, self.place.check):
            self.stale = True  # the lost post was restored
        if self.refused is not None or self.place is None or posted.position <= self.place.position:
            return
        self._held[posted.before] = posted
        if not self.posting:
            self.follow_held()
            if self._held:
                self.stale = True  # an earlier post is missing

    def find_held(self, position: int) -> Posted | None:
        return self._held.get(position)

    async def loaded(self) -> LoadedConversation | None:
        """Return the list, or None if the writer has not reached the last post passed to it."""
        loaded = await self._parts.conversations.durable(self.conversation)
        if loaded.keys is None:
            loaded.keys = set(await self._parts.log.keys(self.conversation))
            loaded = await self._parts.conversations.durable(self.conversation)
        if self.arriving or loaded.place != self.place or loaded.keys is None:
            self.place, self.stale = (self.place, self.stale) if self.arriving else (None, True)
            return None
        return loaded

    async def catch_up(self) -> None:
        """Read missing posts from the shared log.

        Raises:
            Unreachable: The shared log is unreachable or returned an old state.
        """
        place = await self._load_place()
        if place is None:
            return
        version = self._version
        # A stuck list only needs its next post, to find out whether the bad post is still there.
        limit = PROBE_POSTS if self.stuck else None
        posts = await self._log.read(self.conversation, max(0, place.position - 1), limit)
        if place.position and not _continues(posts, place, version):
            posts = await self._relocate(place)
        elif self.stuck:
            self.refused, self.stuck = None, False
        if self.refused is None and version != (space_version := _version_at(posts, place, version)):
            self._get_stuck(refusals.counted_otherwise(self.conversation, self.space, version, space_version))
        if self.away_since is not None:
            self._on_reconnect()
        self.stale = self.place is None  # `reset` was called during a read
        self.away_since, self._missing_since = None, None
        for posted in posts:
            if self.refused is None and self.place is not None and posted.position > self.place.position:
                self._unseal_and_follow(posted)
        self.follow_held()
        self._held.clear()
        self.stale = self.stale or (limit is not None and not self.stuck)  # there may be more posts after these

    async def _relocate(self, place: Place) -> list[Posted]:
        """Read all posts to find the last known one, which is no longer at its position.

        It may have been restored at another position, lost, or replaced. A check covers a post and all earlier posts,
        so it identifies the post at any position. Return no posts if the list gets stuck.

        Raises:
            Unreachable: The space may have returned an old state.
        """
        posts = await self._log.read(self.conversation, 0)
        if self.place != place:  # posts were pushed during the read
            return posts
        for posted in posts:
            if has_check(posted.body, place.check):
                await self._move_to(Place(posted.position, place.check))
                return posts
        last = posts[-1] if posts else None
        self._stuck_at = 0 if last is None else last.position
        if not await self._confirm_end(self._stuck_at):
            raise Unreachable(f"{self.space} answers with an old state of {self.conversation}.")
        self.stuck = True
        ends_at = 0 if last is None else newest_of(last.body)
        own = await self._parts.log.read(0, 1, conversation=self.conversation)
        is_restarted = bool(posts and own) and begins_anew(posts[0].body, own[0].version)
        if ends_at < self._version and (last is None or ends_at) and not is_restarted:
            is_deleted = not (await self._parts.conversations.durable(self.conversation)).state.exists
            self.refused = refusals.lost(self.conversation, self.space, ends_at, deleted=is_deleted)
        else:
            self.refused = refusals.other_history(self.conversation, self.space)
        logger.error("%s: %s", self.conversation, self.refused.message)
        return []

    async def _move_to(self, place: Place) -> None:
        if place != (before := self.place):
            loaded = await self._parts.conversations.durable(self.conversation)
            if self.place != before:
                return
            loaded.place = self.place = self._moved_to = place
            logger.info("%s: continues after position %d of %s", self.conversation, place.position, self.space)
        self.refused, self.stuck = None, False

    async def _confirm_end(self, last: int) -> bool:
        """Return True if the shared log certainly ends at `last`.

        A member that may not post can't query a quorum, so it waits until the loss has persisted for `CERTAIN_S`.
        """
        try:
            return await self._log.is_current(self.conversation, last)
        except Forbidden:
            now = time.monotonic()
            self._missing_since = self._missing_since or now
            return now - self._missing_since > CERTAIN_S

    async def _load_place(self) -> Place | None:
        if self.place is None:
            loaded = await self._parts.conversations.durable(self.conversation)
            if loaded.damage is not None:
                self.refused = loaded.damage
                return None
            self.place, self._version = loaded.place, loaded.state.version
        return self.place

    def follow_held(self) -> None:
        while self.place is not None and self.refused is None:
            posted = self._held.pop(self.place.position, None)
            if posted is None:
                break
            self._unseal_and_follow(posted)
        place = self.place
        self._held = (
            {} if place is None else {before: post for before, post in self._held.items() if before >= place.position}
        )

    def _unseal_and_follow(self, posted: Posted) -> None:
        assert self.place is not None, "posts are followed from a place"
        try:
            received = unseal(posted, self.place, self._version)
        except Unreadable as error:
            self._get_stuck(refusals.unreadable(self.conversation, self.space, error))
            return
        self.follow(received, received.steps)

    def _get_stuck(self, why: Rejection) -> None:
        """Stop applying posts until the shared log changes."""
        self.refused, self.stuck, self._stuck_at = why, True, NOWHERE
        if self._reported != why.message:
            self._reported = why.message
            logger.error("%s: %s", self.conversation, why.message)

    def follow(self, received: Post, steps: Sequence[Step]) -> None:
        self.place, self._version, self.partial = received.place, received.newest, received.more
        self._on_follow(received)
        self.submit(received.version, received.previous, received.place, steps)

    def submit(self, first: int, previous: Place, place: Place, steps: Sequence[Step]) -> None:
        """Pass steps to the writer. They are not a post if `place` equals `previous`."""
        self.arriving += 1
        arrived = partial(self._arrived, steps, posted=place != previous)
        self._parts.inbox.submit(Arrival(self.conversation, first, previous, place, list(steps), arrived))

    def _arrived(self, steps: Sequence[Step], refusal: Rejection | None, *, posted: bool) -> None:
        self.arriving -= 1
        if refusal is not None:
            self.place, self.stale = None, True
        self._on_settle(steps, refusal, posted)


def _version_at(posts: list[Posted], place: Place, version: int) -> int:
    """Return the space's version of the list at a place, or `version` if the space has erased the post.

    A check does not cover events before the first post, so replicas with the same posts may have different versions.
    """
    if not place.position:
        return 0
    return next((newest_of(posted.body) for posted in posts if has_check(posted.body, place.check)), version)


def _continues(posts: list[Posted], place: Place, version: int) -> bool:
    """Return True if the posts begin with a replica's last post, or with a tombstone that replaces it."""
    if not posts:
        return False
    first = posts[0]
    if first.position == place.position:
        return has_check(first.body, place.check)
    return begins_anew(first.body, version)
