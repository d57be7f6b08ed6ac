"""The lanes of one space: they share its log, its signs of life, and one look at whether a push was lost."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from punchlistd.engine.claims.leases import Leases
from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.lanes.lane import Lane
from punchlistd.replication.lanes.members import BEAT_S, PRESENT_S, Members
from punchlistd.replication.lanes.replica import Parts
from punchlistd.replication.port import Beat, Link, Posted, SharedLog, SharedLogError
from punchlistd.replication.posts.posts import poster_of

logger = logging.getLogger(__name__)

COMPARE_S = 4.0
"""How often the positions of lists are compared with the space's, in seconds."""

CLOSE_S = 2.0
"""How long what is on its way is waited for when the daemon stops, in seconds."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Lanes:
    """What is shared in one space.

    Args:
        space: its name.
        log: its log.
        parts: the engine.
        leases: tells which lists have claims.
    """

    def __init__(self, space: str, log: SharedLog, parts: Parts, leases: Leases) -> None:
        self.space = space
        self.log = log
        self.lanes: dict[str, Lane] = {}
        self.members = Members(log.member)
        self.link_known = anyio.Event()
        """Set once the link is up, or it is known why it is not."""
        self._changed = anyio.Event()
        self._parts = parts
        self._leases = leases
        self._group: anyio.abc.TaskGroup | None = None
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._present_at = 0.0  # when the lists that are followed are to be named again, by the monotonic clock

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            for lane in self.lanes.values():
                group.start_soon(self._run, lane)
            group.start_soon(self._beat)
            group.start_soon(self._compare)
            await self.log.run(self)

    async def _run(self, lane: Lane) -> None:
        with anyio.CancelScope() as scope:
            self._scopes[lane.conversation] = scope
            await lane.run()

    def add(self, conversation: str, base: Place) -> Lane:
        lane = self.lanes[conversation] = Lane(conversation, self.space, base, self.log, self._parts, self.members)
        self._parts.conversations.lanes[conversation] = lane
        self._present_at = 0.0
        if self._group is not None:
            self._group.start_soon(self._run, lane)
        return lane

    async def remove(self, conversation: str) -> None:
        lane = self.lanes.pop(conversation)
        await lane.close(CLOSE_S)
        if (scope := self._scopes.pop(conversation, None)) is not None:
            scope.cancel()

    async def is_up(self, patience_s: float) -> bool:
        self.log.hurry()
        with anyio.move_on_after(patience_s):
            while self.log.link.state != "up":
                await self._changed.wait()
        return self.log.link.state == "up"

    async def close(self) -> None:
        async with anyio.create_task_group() as group:
            for lane in self.lanes.values():
                group.start_soon(lane.close, CLOSE_S)

    # what is heard of the space

    def posted(self, post: Posted) -> None:
        if (lane := self.lanes.get(post.list)) is not None:
            self.members.saw(poster_of(post.nonce), (post.list,))
            lane.posted(post)

    def link_changed(self, link: Link) -> None:
        logger.info("space %s: %s %s", self.space, link.state, link.reason)
        self._changed.set()
        self._changed = anyio.Event()
        if link.state != "connecting":
            self.link_known.set()
        if link.state == "up":
            self.members.heard_of()
            self._present_at = 0.0
        for lane in self.lanes.values():
            lane.link_changed(link)

    def beat(self, beat: Beat) -> None:
        self.members.beat(beat.member, list(beat.lists))
        self.members.saw(beat.member, (name for name in (*beat.lists, *beat.follows) if name in self.lanes))
        if beat.member != self.log.member:
            self.members.stuck(beat.member, {name: beat.stuck[name] for name in beat.stuck if name in self.lanes})

    def wanted(self, list: str, member: str, round_trip_s: float) -> None:
        if (lane := self.lanes.get(list)) is not None:
            lane.wanted(member, round_trip_s)

    # what is done now and then

    async def _beat(self) -> None:
        """Give a sign of life where claims are kept here, and can be: not in a list that is followed no more.

        It tells of lists that are stuck, too: whoever puts posts back asks for the longest replica. Now and then it
        names all lists that are followed, so that others know where a list is.
        """
        while True:
            followed = tuple(name for name, lane in self.lanes.items() if not lane.replica.refused)
            kept = tuple(name for name in followed if self._leases.keeps(name))
            stuck = {name: lane.replica.version for name, lane in self.lanes.items() if lane.replica.stuck}
            due = time.monotonic() >= self._present_at
            if (kept or stuck or (due and followed)) and self.log.link.state == "up" and self.log.link.may_post:
                if due:
                    self._present_at = time.monotonic() + PRESENT_S
                try:
                    await self.log.beat(Beat(self.log.member, kept, stuck, followed if due else ()))
                except SharedLogError as error:
                    logger.info("space %s: %s", self.space, error)
            await asyncio.sleep(BEAT_S)

    async def _compare(self) -> None:
        while True:
            await asyncio.sleep(COMPARE_S)
            for lane in list(self.lanes.values()):
                if self.log.link.state != "up" or lane.replica.position is None:
                    continue
                try:
                    last = await self.log.last(lane.conversation)
                except SharedLogError as error:
                    logger.info("space %s: %s", self.space, error)
                    break
                if lane.replica.is_behind(last):
                    lane.compare()
