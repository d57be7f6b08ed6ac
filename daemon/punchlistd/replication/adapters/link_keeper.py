"""Keeps a connection to a space open, trying one server after another, and reports its state."""

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
"""Interval between checks of the connection, in seconds."""

MIN_PAUSE_S = 0.25
MAX_PAUSE_S = 5.0
"""First and longest pause between attempts to connect, in seconds. The pause doubles after each attempt."""

HURRY_PAUSE_S = 0.25
"""Pause before an attempt after `hurry`, in seconds. A client that repeats its call must not flood the server."""


class Served(Protocol):
    """A connection to a server. It is never used again once `ended` is set."""

    url: str
    ended: asyncio.Event

    @property
    def version(self) -> str: ...


C = TypeVar("C", bound=Served)


class LinkKeeper(ABC, Generic[C]):
    """Base of all adapters: the reconnection loop.

    Args:
        space: The space.
        member: ID of this member.
    """

    refused: type[Refusal]

    def __init__(self, space: Space, member: str) -> None:
        self._space = space
        self._member = member
        self._link = Link(since=_now())
        self._connection: C | None = None
        self._round_trip_s = 0.01
        self._listener: Listener | None = None
        self._hurry = asyncio.Event()

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
        attempt, pause = 0, MIN_PAUSE_S
        while True:
            url = self._space.urls[attempt % len(self._space.urls)]
            attempt += 1
            began = time.monotonic()
            try:
                why = await self._serve(url)
            except Refusal as refused:
                why = refused
            except SharedLogError:
                why = self.refused("unreachable", where=url, cause="the connection was lost")
            self._set_link("refused" if why.final else "down", why)
            if time.monotonic() - began > MAX_PAUSE_S:
                pause = MIN_PAUSE_S
            if attempt % len(self._space.urls) == 0 or why.final:
                self._hurry.clear()
                await asyncio.sleep(HURRY_PAUSE_S)
                with anyio.move_on_after(pause - HURRY_PAUSE_S):
                    await self._hurry.wait()
                pause = min(2 * pause, MAX_PAUSE_S)

    def hurry(self) -> None:
        """Reconnect soon, regardless of the current pause, because a call failed while the space was unreachable."""
        self._hurry.set()

    @abstractmethod
    async def _serve(self, url: str) -> Refusal:
        """Use one server until it fails. Return the reason for the failure."""

    def _set_link(
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

    def _get_connection(self) -> C:
        """Return the connection, or request a new one.

        Raises:
            Unreachable: There is no connection.
        """
        if self._connection is None or self._connection.ended.is_set():
            self.hurry()
            raise Unreachable(self._link.reason or f"The space {self._space.name} is not connected yet.")
        return self._connection

    def _get_posting_connection(self) -> C:
        """Return the connection if this member may post.

        Raises:
            Unreachable: There is no connection.
            Forbidden: This member may only read.
        """
        connection = self._get_connection()
        if not self._link.may_post:
            raise Forbidden(
                f"These creds are read-only for the space {self._space.name}. Ask its keeper for write access."
            )
        return connection

    def _record_round_trip(self, sent_at: float) -> None:
        """Update the moving average after the response to a post. `sent_at` is the monotonic time when it was sent."""
        self._round_trip_s += (time.monotonic() - sent_at - self._round_trip_s) / 4


def _now() -> int:
    return round(time.time() * 1000)
