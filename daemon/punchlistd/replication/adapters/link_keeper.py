"""Keeps the way to a space open: one server after the other, as long as each serves, and tells how the way stands."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

import anyio
import msgspec

from punchlistd.replication.adapters.link_refusals import Refusal
from punchlistd.replication.port import Forbidden, Link, LinkState, Listener, SharedLogError, Unreachable
from punchlistd.replication.spaces import Space

logger = logging.getLogger(__name__)

WATCH_S = 2.0
"""How often the way to the server is tried, in seconds."""

AGAIN_S = 0.25
AGAIN_AT_MOST_S = 5.0
"""The first pause between two attempts to connect, which doubles, and the longest one, in seconds."""

HURRIED_S = 0.25
"""The pause before an attempt for which somebody waits: a program that repeats its call must not flood a server."""


class Served(Protocol):
    """A connection to a server; it never comes back once `ended` is set."""

    url: str
    ended: asyncio.Event

    @property
    def version(self) -> str: ...


C = TypeVar("C", bound=Served)


class LinkKeeper(ABC, Generic[C]):
    """What every adapter of the port does about the way to its servers.

    Args:
        space: Where it is.
        member: Who this is.
    """

    refused: type[Refusal]

    def __init__(self, space: Space, member: str) -> None:
        self._space = space
        self._member = member
        self._link = Link(since=_now())
        self._connection: C | None = None
        self._round_trip_s = 0.01
        self._listener: Listener | None = None
        self._hurried = asyncio.Event()

    @property
    def member(self) -> str:
        return self._member

    @property
    def link(self) -> Link:
        return msgspec.structs.replace(self._link, round_trip_ms=round(self._round_trip_s * 1000, 1))

    @property
    def round_trip_s(self) -> float:
        return self._round_trip_s

    async def run(self, listener: Listener) -> None:
        self._listener = listener
        attempt, pause = 0, AGAIN_S
        while True:
            url = self._space.urls[attempt % len(self._space.urls)]
            attempt += 1
            began = time.monotonic()
            try:
                why = await self._serve(url)
            except Refusal as refused:
                why = refused
            except SharedLogError:
                why = self.refused("unreachable", where=url, cause="the connection was cut")
            self._show("refused" if why.final else "down", why)
            if time.monotonic() - began > AGAIN_AT_MOST_S:
                pause = AGAIN_S
            if attempt % len(self._space.urls) == 0 or why.final:
                self._hurried.clear()
                await asyncio.sleep(HURRIED_S)
                with anyio.move_on_after(pause - HURRIED_S):
                    await self._hurried.wait()
                pause = min(2 * pause, AGAIN_AT_MOST_S)

    def hurry(self) -> None:
        """Try the way again soon, however long the pause was to be: somebody was refused because it is away."""
        self._hurried.set()

    @abstractmethod
    async def _serve(self, url: str) -> Refusal:
        """Use one server as long as that goes; why it does not go any more."""

    def _show(
        self, state: LinkState, why: Refusal | None, connection: Served | None = None, may_post: bool = True
    ) -> None:
        link = Link(
            state,
            "" if why is None else why.kind,
            "" if why is None else str(why),
            self._link.since if state == self._link.state else _now(),
            self._link.server if connection is None else connection.url,
            self._link.server_version if connection is None else connection.version,
            may_post=may_post if connection is not None else self._link.may_post,
        )
        if (link.state, link.kind, link.reason) == (self._link.state, self._link.kind, self._link.reason):
            return
        self._link = link
        if why is not None:
            logger.warning("space %s: %s: %s", self._space.name, why.kind, why)
        if self._listener is not None:
            self._listener.on_link_change(self.link)

    def _up(self) -> C:
        """The connection; whoever is refused because there is none makes the way be tried again.

        Raises:
            Unreachable: There is none.
        """
        if self._connection is None or self._connection.ended.is_set():
            self.hurry()
            raise Unreachable(self._link.reason or f"The space {self._space.name} is not connected yet.")
        return self._connection

    def _up_to_post(self) -> C:
        """The same for who wants to post.

        Raises:
            Unreachable, Forbidden: There is none, or it is one for readers.
        """
        connection = self._up()
        if not self._link.may_post:
            raise Forbidden(f"These creds may read the space {self._space.name}, not change it: ask its keeper.")
        return connection

    def _took(self, asked: float) -> None:
        """A post that was sent then is answered: that is about how long the next one takes."""
        self._round_trip_s += (time.monotonic() - asked - self._round_trip_s) / 4


def _now() -> int:
    return round(time.time() * 1000)
