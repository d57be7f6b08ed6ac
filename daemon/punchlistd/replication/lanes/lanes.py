"""The lanes of one space. They share its log, its heartbeats, and the check for lost pushes."""

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
"""Interval at which the positions of lists are compared with those in the space, in seconds."""

CLOSE_S = 2.0
"""Maximum time to wait for posts in flight when the daemon stops, in seconds."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Lanes:
    """The lanes of one space.

    Args:
        space: Name of the space.
        log: The space's shared log.
        parts: Parts of the engine.
        leases: Claims held through this daemon.
    """

    def __init__(self, space: str, log: SharedLog, parts: Parts, leases: Leases) -> None:
        self.space = space
        self.log = log
        self.lanes: dict[str, Lane] = {}
        self.members = Members(log.member)
        self.link_known = anyio.Event()
        """Set once the link is up, or has failed for a known reason."""
        self._changed = anyio.Event()
        self._parts = parts
        self._leases = leases
        self._group: anyio.abc.TaskGroup | None = None
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._present_at = 0.0  # monotonic time of the next heartbeat that names the followed lists

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

    # callbacks of the shared log

    def on_post(self, post: Posted) -> None:
        if (lane := self.lanes.get(post.list)) is not None:
            self.members.record_seen(poster_of(post.nonce), (post.list,))
            lane.on_post(post)

    def on_link_change(self, link: Link) -> None:
        logger.info("space %s: %s %s", self.space, link.state, link.reason)
        self._changed.set()
        self._changed = anyio.Event()
        if link.state != "connecting":
            self.link_known.set()
        if link.state == "up":
            self.members.reset_timers()
            self._present_at = 0.0
        for lane in self.lanes.values():
            lane.on_link_change(link)

    def on_beat(self, beat: Beat) -> None:
        self.members.record_beat(beat.member, list(beat.lists))
        self.members.record_seen(beat.member, (name for name in (*beat.lists, *beat.follows) if name in self.lanes))
        if beat.member != self.log.member:
            versions = {name: version for name, version in beat.stuck.items() if name in self.lanes}
            self.members.record_stuck(beat.member, versions)

    def on_turn_request(self, list: str, member: str, round_trip_s: float) -> None:
        if (lane := self.lanes.get(list)) is not None:
            lane.on_turn_request(member, round_trip_s)

    # periodic work

    async def _beat(self) -> None:
        """Send heartbeats for followed lists in which this daemon holds claims.

        Heartbeats also report the versions of stuck lists, because lost posts are restored from the longest replica.
        Every `PRESENT_S`, they name all followed lists, so that other machines can show where a list is.
        """
        while True:
            follows = tuple(name for name, lane in self.lanes.items() if not lane.replica.refused)
            claimed = tuple(name for name in follows if self._leases.keeps(name))
            stuck = {name: lane.replica.version for name, lane in self.lanes.items() if lane.replica.stuck}
            is_due = time.monotonic() >= self._present_at
            if (claimed or stuck or (is_due and follows)) and self.log.link.state == "up" and self.log.link.may_post:
                if is_due:
                    self._present_at = time.monotonic() + PRESENT_S
                try:
                    await self.log.beat(Beat(self.log.member, claimed, stuck, follows if is_due else ()))
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
                if lane.replica.differs_from(last):
                    lane.compare()
