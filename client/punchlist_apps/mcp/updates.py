"""Notifies clients of changed resources, in both eras of the protocol, from the daemon's pushes.

A notification means only that the resource should be read again. Changes are debounced. After the connection to the
daemon is lost, all subscribed resources are announced, because changes may have been missed.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ServerEvent
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from punchlist.clients.aio import AsyncClient
from punchlist.connection.options import Options
from punchlist.errors import PunchlistError
from punchlist_apps.mcp.event_source import Tail
from punchlist_apps.mcp.uris import parse_uri
from punchlist_schemas.events import ConversationConfigured

PAUSE_S = 0.05
"""Time for which changes are collected before they are announced, in seconds."""

RETRY_S = 1.0
"""Time between attempts to connect to the daemon, in seconds."""

_SEND_S = 5.0
"""Upper limit for sending a notification to a session, in seconds."""


class Feed:
    """The changed resources of one user, or of all users. Servers can share it.

    It follows the daemon while there are subscribers.

    Attributes:
        bus: Publishes the addresses of changed resources that have subscribers.
    """

    def __init__(self, client: AsyncClient) -> None:
        self.bus = InMemorySubscriptionBus()
        self._client = client
        self._subscribed: Counter[str] = Counter()
        self._demand = anyio.Event()
        self._changed: set[str] = set()
        self._announced: set[str] = set()
        self._all_changed = False
        self._wake = anyio.Event()
        self._following = anyio.Event()
        self._attached: dict[str, str] = {}
        """Name in a subscribed address, such as a session's id -> the conversation that the name refers to."""
        self._tails: list[Tail] = []

    async def subscribe(self, *uris: str) -> None:
        """Publish changes of these resources. All changes after the return are published.

        Without a daemon, the wait for it ends after `RETRY_S`. Changes missed until then are published after the
        connection is made.
        """
        if not uris:
            return
        self._subscribed.update(uris)
        self._demand.set()
        with anyio.move_on_after(RETRY_S):
            await self._following.wait()
            for uri in uris:
                await self._resolve(uri)

    def announce(self, *uris: str) -> None:
        """Publish these resources, because their subscribers may have missed changes."""
        self._announced.update(uris)
        self._wake.set()

    def unsubscribe(self, *uris: str) -> None:
        self._subscribed.subtract(uris)
        self._subscribed += Counter()  # removes entries with a count of zero

    @contextmanager
    def open_tail(self) -> Generator[Tail]:
        """Yield a tail that gets all changes."""
        tail = Tail()
        self._tails.append(tail)
        self._demand.set()
        try:
            yield tail
        finally:
            self._tails.remove(tail)

    async def _resolve(self, uri: str) -> None:
        """Record the conversation that an address refers to.

        The name in the address may be that of an attached session.
        """
        address = parse_uri(uri)
        if address is None:
            return
        try:
            info = await self._client.conversation(address.conversation).info()
        except PunchlistError:
            return  # The list doesn't exist yet. Its first event will contain its name.
        if info.conversation != address.conversation:
            self._attached[address.conversation] = info.conversation

    async def run(self) -> None:
        """Follow the daemon and publish changes, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._publish)
            while True:
                await self._demand.wait()
                try:
                    await self._follow()
                except PunchlistError:
                    self._following = anyio.Event()
                    await anyio.sleep(RETRY_S)
                self._all_changed = True
                self._wake.set()

    async def _follow(self) -> None:
        async with self._client.watch() as changes:
            self._following.set()
            for tail in self._tails:
                tail.fall_behind()  # changes before the subscription were missed
            async for change in changes:
                if not self._subscribed and not self._tails:
                    self._following, self._demand = anyio.Event(), anyio.Event()
                    return
                for tail in self._tails:
                    tail.push(change)
                self._changed.add(change.conversation)
                if isinstance(change.event, ConversationConfigured):
                    self._changed.update(self._update_attachments(change.conversation, change.event))
                self._wake.set()

    def _update_attachments(self, conversation: str, event: ConversationConfigured) -> list[str]:
        """Record attached and detached sessions. Return the sessions whose ids now refer to another list."""
        moved: list[str] = []
        if isinstance(event.detached, str) and self._attached.get(event.detached) == conversation:
            moved.append(event.detached)
            del self._attached[event.detached]
        subscribed = {address.conversation for uri in self._subscribed if (address := parse_uri(uri)) is not None}
        if isinstance(event.attached, str) and event.attached in subscribed:
            moved.append(event.attached)
            self._attached[event.attached] = conversation
        return moved

    async def _publish(self) -> None:
        while True:
            await self._wake.wait()
            await anyio.sleep(PAUSE_S)
            self._wake = anyio.Event()
            changed, self._changed = self._changed, set()
            announced, self._announced = self._announced, set()
            everything, self._all_changed = self._all_changed, False
            for uri in list(self._subscribed):
                if everything:
                    await self._resolve(uri)
                address = parse_uri(uri)
                if address is None:
                    continue
                if everything or uri in announced or self._list_ids(address.conversation) & changed:
                    await self.bus.publish(ResourceUpdated(uri))

    def _list_ids(self, conversation: str) -> set[str]:
        return {conversation, self._attached.get(conversation, conversation)}


class Feeds:
    """The feeds that the servers of one process share."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._feeds: dict[tuple[tuple[str, object], ...], Feed] = {}
        """By the options of the connection."""

    def get(self, options: Options) -> Feed:
        """Return the feed for servers with these options."""
        key = tuple(sorted(options.items()))
        if (feed := self._feeds.get(key)) is None:
            client = AsyncClient(**options)
            feed = self._feeds[key] = Feed(client)
            self._group.start_soon(_run_and_close, feed, client)
        return feed


@asynccontextmanager
async def open_feeds() -> AsyncGenerator[Feeds]:
    """Yield feeds for the servers of this process, which must end before the context does."""
    async with anyio.create_task_group() as group:
        yield Feeds(group)
        group.cancel_scope.cancel()


async def _run_and_close(feed: Feed, client: AsyncClient) -> None:
    try:
        await feed.run()
    finally:
        await client.aclose()


class Updates:
    """The subscriptions of one server's clients. Clients of the handshake era are notified by `run`.

    Args:
        is_resumed: Whether an earlier process served the session, so that subscribers may have missed changes.
    """

    def __init__(self, feed: Feed, *, is_resumed: bool = False) -> None:
        self._feed = feed
        self._is_resumed = is_resumed
        self._listen = ListenHandler(feed.bus)
        self._sessions: dict[str, dict[ServerSession, None]] = {}
        self._changed: set[str] = set()
        self._wake = anyio.Event()

    async def subscribe(self, session: ServerSession, uri: str) -> None:
        sessions = self._sessions.setdefault(uri, {})
        if session not in sessions:
            sessions[session] = None
            await self._subscribe(uri)

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        sessions = self._sessions.get(uri, {})
        if session in sessions:
            del sessions[session]
            self._feed.unsubscribe(uri)
        if not sessions:
            self._sessions.pop(uri, None)

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        uris = params.notifications.resource_subscriptions or ()
        try:
            await self._subscribe(*uris)
            return await self._listen(context, params)
        finally:
            self._feed.unsubscribe(*uris)

    async def _subscribe(self, *uris: str) -> None:
        await self._feed.subscribe(*uris)
        if self._is_resumed:
            self._feed.announce(*uris)

    async def run(self) -> None:
        """Notify clients of the handshake era, until cancelled. Then end their subscriptions."""
        end = self._feed.bus.subscribe(self._add)
        try:
            while True:
                await self._wake.wait()
                self._wake, changed, self._changed = anyio.Event(), self._changed, set()
                for uri in changed:
                    for session in list(self._sessions.get(uri, ())):
                        await self._notify(session, uri)
        finally:
            end()
            self._feed.unsubscribe(*[uri for uri, sessions in self._sessions.items() for _ in sessions])

    def _add(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated) and event.uri in self._sessions:
            self._changed.add(event.uri)
            self._wake.set()

    async def _notify(self, session: ServerSession, uri: str) -> None:
        try:
            with anyio.fail_after(_SEND_S):
                await session.send_resource_updated(uri)
        except Exception:  # The failure of one session must not prevent the other sessions from being notified.
            self.unsubscribe(session, uri)
