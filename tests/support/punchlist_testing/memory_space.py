"""An in-memory space with the `SharedLog` contract and the faults of real ones.

Faults occur at random, with the probabilities in `Faults`. They never break the port's contract: acknowledged posts are
kept, and the barrier returns a true result. A conflict may be false, which the port allows.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from punchlistd.clock import now_ms
from punchlistd.replication.port import (
    Beat,
    Conflict,
    Forbidden,
    Link,
    Listener,
    OutcomeUnknown,
    Posted,
    TooLarge,
    Unreachable,
)


class Faults(NamedTuple):
    """Probability of each fault, for each call or push.

    Attributes:
        post_late: A post is committed later, after an unknown outcome.
        conflict_invented: A conflict is reported for a post that could be committed.
        conflict_kept: A conflict is reported for such a post, which is committed later anyway.
        reader_old: A read returns a prefix of the posts.
        delays: Possible delays of a call or push, in seconds.
        late_s: Upper limit of the delay of a late post, in seconds.
    """

    ack_lost: float = 0.0
    post_lost: float = 0.0
    post_late: float = 0.0
    conflict_invented: float = 0.0
    conflict_kept: float = 0.0
    reader_old: float = 0.0
    barrier_lost: float = 0.0
    push_lost: float = 0.0
    delays: tuple[float, ...] = (0.0,)
    late_s: float = 1.0


SOUND = Faults()


class MemorySpace:
    """The posts of all lists, and the members."""

    def __init__(self, random: Random | None = None, faults: Faults = SOUND, max_bytes: int = 1 << 20) -> None:
        self.random = random or Random("sound")
        self.faults = faults
        self.max_bytes = max_bytes
        self.posts: dict[str, list[Posted]] = {}
        self.members: dict[str, MemorySharedLog] = {}
        self.machines: list[Any] = []
        self.position = 0
        self.stopped = False
        self._late: set[asyncio.TimerHandle] = set()

    def member(self, name: str, *, may_post: bool = True) -> "MemorySharedLog":
        log = self.members[name] = MemorySharedLog(self, name, may_post=may_post)
        return log

    def chance(self, likely: float) -> bool:
        """Return whether a fault of this probability occurs."""
        return likely > 0 and self.random.random() < likely

    def commit(self, list: str, expected: int, nonce: str, body: bytes) -> int | None:
        """Append a post and return its position, or None on a conflict.

        The expected position is checked before the nonce, so a repeated post conflicts.
        """
        posts = self.posts.setdefault(list, [])
        if (posts[-1].position if posts else 0) != expected:
            return None
        self.position += 1
        posts.append(post := Posted(list, self.position, expected, nonce, body))
        for member in self.members.values():
            member.push(post)
        return post.position

    def commit_later(self, delay_s: float, list: str, expected: int, nonce: str, body: bytes) -> None:
        asyncio.get_running_loop().call_later(delay_s, self.commit, list, expected, nonce, body)


class MemorySharedLog:
    """A `SharedLog` of a `MemorySpace`."""

    def __init__(self, space: MemorySpace, member: str, *, may_post: bool) -> None:
        self.member = member
        self.link = Link()
        self.round_trip_s = 0.001
        self.delays: tuple[float, ...] = ()
        """Possible delays in each direction, in seconds; empty for the delays of the space's faults."""
        self._space = space
        self.may_erase = True
        self._may_post = may_post
        self._listener: Listener | None = None
        self._cut = False
        self._changed = asyncio.Event()

    async def run(self, listener: Listener) -> None:
        """Report changes of the link to the listener until cancelled."""
        self._listener = listener
        try:
            while True:
                self._changed.clear()
                self._update_link()
                await self._changed.wait()
        finally:
            self._listener = None

    def cut(self, *, noticed: bool = True) -> None:
        """Disconnect this member. Without `noticed`, the link still appears to be up."""
        self._cut = True
        if noticed:
            self._changed.set()

    def heal(self) -> None:
        self._cut = False
        self._changed.set()

    def _update_link(self) -> None:
        state = "down" if self._cut else "up"
        if self.link.state != state and self._listener is not None:
            kind, reason = ("unreachable", "The space can't be reached.") if self._cut else ("", "")
            self.link = Link(state, kind, reason, now_ms(), "memory", "1", 1.0, self._may_post)
            self._listener.on_link_change(self.link)

    def push(self, post: Posted) -> None:
        """Deliver a post to the listener after a delay, or never."""
        if not self._space.chance(self._space.faults.push_lost):
            asyncio.get_running_loop().call_later(self._delay_s(), self._deliver, post)

    def _delay_s(self) -> float:
        return self._space.random.choice(self.delays or self._space.faults.delays)

    def _deliver(self, post: Posted) -> None:
        if self._listener is not None and not self._cut:
            self._listener.on_post(post)

    async def _reach(self) -> None:
        await asyncio.sleep(self._delay_s())
        if self._cut or self._space.stopped:
            raise Unreachable("The space can't be reached.")

    def _readable(self, list: str) -> list[Posted]:
        posts = self._space.posts.get(list, [])
        return posts[: self._space.random.randrange(len(posts) + 1)] if self._is_old() and posts else posts

    def _is_old(self) -> bool:
        return self._space.chance(self._space.faults.reader_old)

    def hurry(self) -> None:
        """Do nothing: there is no reconnect to speed up."""

    async def lists(self) -> list[str]:
        await self._reach()
        return sorted(self._space.posts)

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        await self._reach()
        if not self._may_post:
            raise Forbidden("This member may only read.")
        if len(body) > self._space.max_bytes:
            raise TooLarge(len(body), self._space.max_bytes)
        faults, chance = self._space.faults, self._space.chance
        if chance(faults.conflict_invented):
            raise Conflict("A deposed leader reports a conflict.")
        if chance(faults.conflict_kept):
            self._space.commit_later(self._space.random.random() * faults.late_s, list, expected, nonce, body)
            raise Conflict("A deposed leader reports a conflict for a post that its successor accepts.")
        if chance(faults.post_lost):
            raise OutcomeUnknown("No answer came.")
        if chance(faults.post_late):
            delay_s = self._space.random.random() * faults.late_s
            self._space.commit_later(delay_s, list, expected, nonce, body)
            raise OutcomeUnknown("No answer came.")
        position = self._space.commit(list, expected, nonce, body)
        if chance(faults.ack_lost):
            raise OutcomeUnknown("No answer came.")
        await asyncio.sleep(self._delay_s())
        if self._cut:
            raise OutcomeUnknown("The connection broke.")
        if position is None:
            raise Conflict("Another post came first.")
        return position

    async def read(self, list: str, after: int, limit: int | None = None) -> list[Posted]:
        await self._reach()
        return [post for post in self._readable(list) if post.position > after][:limit]

    async def last(self, list: str) -> int:
        await self._reach()
        posts = self._readable(list)
        return posts[-1].position if posts else 0

    async def is_current(self, list: str, position: int) -> bool:
        await self._reach()
        if not self._may_post:
            raise Forbidden("This member may only read.")
        if self._space.chance(self._space.faults.barrier_lost):
            raise Unreachable("No answer came.")
        posts = self._space.posts.get(list, [])
        return (posts[-1].position if posts else 0) == position

    async def beat(self, beat: Beat) -> None:
        await self._reach()
        for member in self._space.members.values():
            if member is not self and member._listener is not None and not member._cut:
                member._listener.on_beat(beat)

    async def request_turn(self, list: str) -> None:
        await self._reach()
        for member in self._space.members.values():
            asyncio.get_running_loop().call_later(
                member._delay_s(), member._on_turn_request, list, self.member, self.round_trip_s
            )

    def _on_turn_request(self, list: str, member: str, round_trip_s: float) -> None:
        if self._listener is not None and not self._cut:
            self._listener.on_turn_request(list, member, round_trip_s)

    async def erase(self, list: str, before: int) -> None:
        await self._reach()
        if not self.may_erase:
            raise Forbidden("This member may not erase.")
        self._space.posts[list] = [post for post in self._space.posts.get(list, []) if post.position >= before]

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        await self._reach()
        if not self.may_erase:
            raise Forbidden("This member may not erase.")
        self._space.posts[list] = [post for post in self._space.posts.get(list, []) if post not in posts]
