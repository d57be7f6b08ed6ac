"""A listener of a shared log that records its callbacks, for tests to wait for."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

from punchlistd.replication.port import Beat, Link, Posted, SharedLog

PATIENCE_S = 40.0


class Hearing:
    """A listener that records posts, link changes, heartbeats and turn requests.

    Attributes:
        wants: The list and the member of each turn request.
    """

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.posts: list[Posted] = []
        self.beats: list[Beat] = []
        self.wants: list[tuple[str, str]] = []
        self._changed = anyio.Event()

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def on_post(self, post: Posted) -> None:
        self.posts.append(post)
        self._note()

    def on_link_change(self, link: Link) -> None:
        self.links.append(link)
        self._note()

    def on_beat(self, beat: Beat) -> None:
        self.beats.append(beat)
        self._note()

    def on_turn_request(self, list: str, member: str, round_trip_s: float) -> None:
        self.wants.append((list, member))
        self._note()

    async def until(self, holds: Callable[[], object]) -> None:
        with anyio.fail_after(PATIENCE_S):
            while not holds():
                await self._changed.wait()

    async def link(self, state: str, kind: str = "") -> Link:
        """Wait until the link has this state and kind; return it."""
        await self.until(lambda: self.links and (self.links[-1].state, self.links[-1].kind) == (state, kind))
        return self.links[-1]


@asynccontextmanager
async def heard(log: SharedLog) -> AsyncGenerator[Hearing]:
    """Run a log until the end of the block; yield its listener."""
    hearing = Hearing()
    async with anyio.create_task_group() as group:
        group.start_soon(log.run, hearing)
        yield hearing
        group.cancel_scope.cancel()
