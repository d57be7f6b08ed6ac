"""The answer of `daemon.status`: real figures from every part, gathered when asked."""

import asyncio
import os
import platform
import sqlite3
import time

import msgspec

from punchlist_schemas import results as r
from punchlist_schemas.methods import PROTOCOL
from punchlistd import __version__
from punchlistd.clock import now_ms
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.metrics import Metrics
from punchlistd.net.connection import Connection
from punchlistd.net.connection.connections import Connections
from punchlistd.store.port import EventLog

SHOWN = 100
"""At most this many clients and subscriptions are listed."""


class Birth:
    """When the daemon began."""

    def __init__(self) -> None:
        """Now."""
        self.at_ms = now_ms()
        self._monotonic = time.monotonic()

    def age_ms(self) -> int:
        """How long ago, in milliseconds, whatever the wall clock did since."""
        return int((time.monotonic() - self._monotonic) * 1000)


async def report(
    user: str | None, birth: Birth, log: EventLog, conversations: Conversations, connections: Connections[Connection]
) -> r.StatusResult:
    """What the daemon knows about itself now.

    A user is shown the connections of that user alone, and nothing of what all users do together: those figures and
    the errors are empty.
    """
    log_bytes, wal_bytes = await log.sizes()
    live = sorted(connections.live, key=lambda each: each.connected_at)
    loaded = conversations.loaded.values()
    whole = r.StatusResult(
        version=__version__,
        protocol=PROTOCOL,
        pid=os.getpid(),
        epoch=log.epoch,
        started_at=birth.at_ms,
        uptime_ms=birth.age_ms(),
        socket=connections.settings.socket,
        data_dir=connections.settings.data_dir,
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        loop=type(asyncio.get_running_loop()).__module__.partition(".")[0],
        seq=log.head,
        conversations_loaded=len(conversations.loaded),
        clients=tuple(map(_client, live[:SHOWN])),
        subscriptions=tuple(each for one in live for each in _subscriptions(one, connections))[:SHOWN],
        log_bytes=log_bytes,
        wal_bytes=wal_bytes,
        commits=connections.metrics.durations(),
        calls=connections.metrics.calls,
        refused=connections.metrics.refused,
        last_errors=tuple(connections.metrics.errors),
    )
    if user is None:
        return whole
    its = [each for each in live if each.user == user]
    return msgspec.structs.replace(
        whole,
        conversations_loaded=sum(each.state.exists and each.state.user == user for each in loaded),
        clients=tuple(map(_client, its[:SHOWN])),
        subscriptions=tuple(each for one in its for each in _subscriptions(one, connections))[:SHOWN],
        log_bytes=0,
        wal_bytes=0,
        commits=Metrics().durations(),
        calls=0,
        refused=0,
        last_errors=(),
    )


def _client(connection: Connection) -> r.ClientStatus:
    return r.ClientStatus(
        name=connection.client,
        pid=connection.pid,
        subscriptions=len(connection.subscriptions),
        connected_at=connection.connected_at,
    )


def _subscriptions(connection: Connection, connections: Connections[Connection]) -> list[r.SubscriptionStatus]:
    head = connections.subscriptions.head
    return [
        r.SubscriptionStatus(
            subscription=each.id,
            client=connection.client,
            view=each.view,
            lag=0 if each.live else max(0, head - each.position),
            conversation=each.conversation,
        )
        for each in connection.subscriptions.values()
    ]
