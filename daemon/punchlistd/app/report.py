"""Implementation of `daemon.status`."""

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

MAX_LISTED = 100
"""Maximum number of clients, and of subscriptions, in a status result."""


class StartTime:
    """The daemon's start time, on the wall clock and on the monotonic clock."""

    def __init__(self) -> None:
        self.at_ms = now_ms()
        self._monotonic = time.monotonic()

    def uptime_ms(self) -> int:
        """Return the time since the start in milliseconds, unaffected by changes to the wall clock."""
        return int((time.monotonic() - self._monotonic) * 1000)


async def build_status(
    user: str | None,
    start_time: StartTime,
    log: EventLog,
    conversations: Conversations,
    connections: Connections[Connection],
) -> r.StatusResult:
    """Build the result of `daemon.status`.

    For a connection bound to a user, it contains only that user's connections. Errors and figures about all users are
    left empty.
    """
    log_bytes, wal_bytes = await log.sizes()
    live = sorted(connections.live, key=lambda connection: connection.connected_at)
    loaded = conversations.loaded.values()
    status = r.StatusResult(
        version=__version__,
        protocol=PROTOCOL,
        pid=os.getpid(),
        epoch=log.epoch,
        started_at=start_time.at_ms,
        uptime_ms=start_time.uptime_ms(),
        socket=connections.settings.socket,
        data_dir=connections.settings.data_dir,
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        loop=type(asyncio.get_running_loop()).__module__.partition(".")[0],
        seq=log.head,
        conversations_loaded=len(conversations.loaded),
        clients=tuple(map(_client_status, live[:MAX_LISTED])),
        subscriptions=_list_subscriptions(live, connections)[:MAX_LISTED],
        log_bytes=log_bytes,
        wal_bytes=wal_bytes,
        commits=connections.metrics.durations(),
        calls=connections.metrics.calls,
        refused=connections.metrics.refused,
        last_errors=tuple(connections.metrics.errors),
    )
    if user is None:
        return status
    own = [connection for connection in live if connection.user == user]
    return msgspec.structs.replace(
        status,
        conversations_loaded=sum(entry.state.exists and entry.state.user == user for entry in loaded),
        clients=tuple(map(_client_status, own[:MAX_LISTED])),
        subscriptions=_list_subscriptions(own, connections)[:MAX_LISTED],
        log_bytes=0,
        wal_bytes=0,
        commits=Metrics().durations(),
        calls=0,
        refused=0,
        last_errors=(),
    )


def _client_status(connection: Connection) -> r.ClientStatus:
    return r.ClientStatus(
        name=connection.client,
        pid=connection.pid,
        subscriptions=len(connection.subscriptions),
        connected_at=connection.connected_at,
    )


def _list_subscriptions(
    live: list[Connection], connections: Connections[Connection]
) -> tuple[r.SubscriptionStatus, ...]:
    head = connections.subscriptions.head
    return tuple(
        r.SubscriptionStatus(
            subscription=subscription.id,
            client=connection.client,
            view=subscription.view,
            lag=0 if subscription.live else max(0, head - subscription.position),
            conversation=subscription.conversation,
        )
        for connection in live
        for subscription in connection.subscriptions.values()
    )
