"""Notifies clients of changed resources, in both eras of the protocol, from the daemon's pushes.

A notification means only that the resource should be read again. Changes are debounced. After the connection to the
daemon is lost, all subscribed resources are announced, because changes may have been missed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.mcp.uris import parse_uri
from punchlist_schemas.events import ConversationConfigured

PAUSE_S = 0.05
"""Time for which changes are collected before they are announced, in seconds."""

RETRY_S = 1.0
"""Time between attempts to connect to the daemon, in seconds."""


class Updates:
    """The subscriptions to resources, and the task that notifies the subscribers."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._listeners: Counter[str] = Counter()
        self._sessions: dict[str, dict[ServerSession, None]] = {}
        self._changed: set[str] = set()
        self._all_changed = False
        self._wake = anyio.Event()
        self._following = anyio.Event()
        self._attached: dict[str, str] = {}
        """Name in a subscribed address, such as a session's id -> the conversation that the name refers to."""

    async def subscribe(self, session: ServerSession, uri: str) -> None:
        self._sessions.setdefault(uri, {})[session] = None
        await self._wait_until_following(uri)

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        sessions = self._sessions.get(uri, {})
        sessions.pop(session, None)
        if not sessions:
            self._sessions.pop(uri, None)

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        uris = list(params.notifications.resource_subscriptions or ())
        self._listeners.update(uris)
        try:
            await self._wait_until_following(*uris)
            return await self._listen(context, params)
        finally:
            self._listeners.subtract(uris)
            self._listeners += Counter()  # removes entries with a count of zero

    async def _wait_until_following(self, *uris: str) -> None:
        """Wait until this server follows the daemon's changes, so that the subscriber misses none after the response.

        Without a daemon, the wait ends after `RETRY_S`. Changes missed until then are announced after the connection is
        made.
        """
        with anyio.move_on_after(RETRY_S):
            await self._following.wait()
            for uri in uris:
                await self._resolve(uri)

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
        """Follow the daemon and announce changes, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._announce)
            while True:
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
            async for change in changes:
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
        subscribed = {address.conversation for uri in self._list_uris() if (address := parse_uri(uri)) is not None}
        if isinstance(event.attached, str) and event.attached in subscribed:
            moved.append(event.attached)
            self._attached[event.attached] = conversation
        return moved

    async def _announce(self) -> None:
        while True:
            await self._wake.wait()
            await anyio.sleep(PAUSE_S)
            self._wake = anyio.Event()
            changed, self._changed = self._changed, set()
            everything, self._all_changed = self._all_changed, False
            for uri in self._list_uris():
                if everything:
                    await self._resolve(uri)
                address = parse_uri(uri)
                if address is not None and (everything or self._list_ids(address.conversation) & changed):
                    await self._publish(uri)

    def _list_ids(self, conversation: str) -> set[str]:
        return {conversation, self._attached.get(conversation, conversation)}

    def _list_uris(self) -> Iterable[str]:
        return [*{*self._listeners, *self._sessions}]

    async def _publish(self, uri: str) -> None:
        if uri in self._listeners:
            await self._bus.publish(ResourceUpdated(uri))
        for session in list(self._sessions.get(uri, ())):
            try:
                with anyio.fail_after(PAUSE_S * 100):
                    await session.send_resource_updated(uri)
            except Exception:  # The failure of one session must not prevent the other sessions from being notified.
                self.unsubscribe(session, uri)
