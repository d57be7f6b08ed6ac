"""MCP Events (SEP-3415) over the log: `events/list`, `events/poll` and `events/stream`, in both eras of the protocol.

The SDK knows none of it, so the methods are handlers of foreign requests, and the notifications foreign models.
"""

import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, Protocol

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, Field

from punchlist.clients.aio import AsyncClient
from punchlist.errors import Forbidden, InvalidParams, NoConversation, NotFound, PunchlistError
from punchlist.tools.refusals import to_problem
from punchlist_apps.common.http.guard import get_bearer_token
from punchlist_apps.mcp.event_source import HistoryLost, Page, follow, read_page
from punchlist_apps.mcp.event_types import (
    CONVERSATION_KEY,
    EVENT_TYPES,
    INPUT_SCHEMA,
    PAYLOAD_SCHEMA,
    RESUMED_KEY,
    SUBSCRIPTION_KEY,
    Position,
    Selection,
    parse_cursor,
)
from punchlist_apps.mcp.updates import Feed

Context = ServerRequestContext[Any, Any]

EXTENSION = "io.modelcontextprotocol/events"
"""The extension, as the server's capabilities name it."""

UNKNOWN_EVENT = -32011
TOO_MANY = -32013
TERMINATED = -32014

HEARTBEAT_S = 15.0
POLL_MS = 5_000
"""Recommended time between two polls, in milliseconds."""

MAX_EVENTS = 500
MAX_STREAMS = 64
"""Maximum number of open streams of a session, or over HTTP of a token."""

_MAX_PAGES = 10
"""Number of pages of the log after which a poll returns, even if few of their changes were selected."""

_LOST = "Earlier changes are gone: the log was replaced or is damaged. Read the list, then subscribe with cursor null."


class _Params(types.RequestParams):
    model_config = ConfigDict(populate_by_name=True, extra="allow")


class ListParams(_Params):
    """Params of `events/list`, which has one page."""

    cursor: str | None = None


class EventParams(_Params):
    """Params that all requests for events share."""

    name: str
    arguments: dict[str, Any] | None = None
    cursor: str | None = None
    max_age_ms: int | None = Field(None, alias="maxAgeMs", ge=0)


class PollParams(EventParams):
    """Params of `events/poll`."""

    max_events: int | None = Field(None, alias="maxEvents", ge=1)


class _Notification(BaseModel):
    method: str
    params: dict[str, Any]


class Source(NamedTuple):
    """Where a request reads: its user, a client that is limited to this user, and the list's id."""

    user: str | None
    client: AsyncClient
    feed: Feed
    conversation: str


class Lists(Protocol):
    """The users and lists of a server."""

    def find_user(self, context: Context) -> str | None:
        """Return the user of a request; None if it may act for all users."""
        ...

    async def find_list(self, context: Context, user: str | None, name: str | None) -> str:
        """Return the id of the list that a request names, or of its default list."""
        ...

    def open_feed(self, user: str | None) -> AbstractAsyncContextManager[tuple[AsyncClient, Feed]]:
        """Open a client that is limited to a user, and the feed of the user's lists."""
        ...


class Events:
    """The handlers.

    Args:
        delivery: How events can be delivered.
    """

    def __init__(self, lists: Lists, delivery: tuple[str, ...] = ("push", "poll")) -> None:
        self.lists = lists
        self._delivery = delivery
        self._streams: Counter[bytes] = Counter()
        """By token."""

    def install(self, server: Server[Any]) -> None:
        server.extensions[EXTENSION] = {}
        server.add_request_handler("events/list", ListParams, self.list)
        server.add_request_handler("events/poll", PollParams, self.poll)
        server.add_request_handler("events/stream", EventParams, self.stream)
        server.middleware.append(_advertise)

    async def list(self, _context: Context, _params: ListParams) -> dict[str, Any]:
        return {
            "events": [
                {
                    "name": name,
                    "description": event.description,
                    "delivery": self._delivery,
                    "inputSchema": INPUT_SCHEMA,
                    "payloadSchema": PAYLOAD_SCHEMA,
                }
                for name, event in EVENT_TYPES.items()
            ]
        }

    async def poll(self, context: Context, params: PollParams) -> dict[str, Any]:
        selection, after = parse(params)
        limit = min(params.max_events or MAX_EVENTS, MAX_EVENTS)
        oldest = find_oldest(params)
        async with self.open_source(context, selection) as source:
            found = list[dict[str, Any]]()
            pages, truncated = 0, False
            while True:
                try:
                    page = await read_page(source.client, source.conversation, after)
                except PunchlistError as error:
                    raise to_mcp_error(error) from None
                page, is_cut = drop_old(page, oldest)
                truncated |= page.truncated or is_cut
                after, pages = page.position, pages + 1
                for seq, occurrence in selection.list_occurrences(page.changes, after.epoch):
                    if len(found) == limit:
                        return _build_poll(found, found[-1]["eventId"], truncated=truncated, has_more=True)
                    found.append({**occurrence, "cursor": str(Position(after.epoch, seq))})
                if not page.more or pages == _MAX_PAGES:
                    return _build_poll(found, str(after), truncated=truncated, has_more=page.more)

    async def stream(self, context: Context, params: EventParams) -> dict[str, Any]:
        selection, after = parse(params)
        token = find_token(context)
        if self._streams[token] >= MAX_STREAMS:
            raise MCPError(TOO_MANY, f"This client already has {MAX_STREAMS} streams. Cancel one, or use events/poll.")
        self._streams[token] += 1
        try:
            async with self.open_source(context, selection) as source:
                await self._stream(context, params, selection, after, source)
        finally:
            self._streams[token] -= 1
            self._streams += Counter()  # removes entries with a count of zero
        return {"_meta": {}}

    async def _stream(
        self, context: Context, params: EventParams, selection: Selection, after: Position | None, source: Source
    ) -> None:
        meta = {SUBSCRIPTION_KEY: context.request_id, CONVERSATION_KEY: source.conversation}
        sent_at = 0.0

        async def send(kind: str, **members: Any) -> None:
            nonlocal sent_at
            notification: Any = _Notification(method=f"notifications/events/{kind}", params={**members, "_meta": meta})
            await context.session.send_notification(notification, context.request_id)
            sent_at = anyio.current_time()

        def get_idle_s() -> float:
            return max(0.0, sent_at + HEARTBEAT_S - anyio.current_time())

        is_active = bool(dict(context.meta or {}).get(RESUMED_KEY))
        oldest = None if is_active else find_oldest(params)
        try:
            with source.feed.open_tail() as tail:
                async for found in follow(source.client, tail, source.conversation, after, get_idle_s):
                    # In the handshake era a lost connection doesn't cancel its request.
                    if context.request is not None and await context.request.is_disconnected():
                        return
                    page, is_cut = drop_old(found, oldest)
                    if is_active and page.truncated:
                        raise HistoryLost
                    if not is_active:
                        is_new = after is None or (page.truncated and not page.changes)
                        start = page.position if is_new else after
                        await send("active", cursor=str(start), truncated=page.truncated or is_cut)
                        is_active = True
                    for seq, occurrence in selection.list_occurrences(page.changes, page.position.epoch):
                        await send("event", **occurrence, cursor=str(Position(page.position.epoch, seq)))
                    oldest = oldest if page.more else None
                    if anyio.current_time() - sent_at >= HEARTBEAT_S:
                        await send("heartbeat", cursor=str(page.position))
        except HistoryLost:
            await send("terminated", error={"code": TERMINATED, "message": _LOST})
        except PunchlistError as error:
            await send("terminated", error={"code": TERMINATED, "message": to_problem(error).text})

    @asynccontextmanager
    async def open_source(self, context: Context, selection: Selection) -> AsyncGenerator[Source]:
        user = self.lists.find_user(context)
        conversation = await self.lists.find_list(context, user, selection.arguments.conversation)
        async with self.lists.open_feed(user) as (client, feed):
            yield Source(user, client, feed, conversation)


def parse(params: EventParams) -> tuple[Selection, Position | None]:
    """Return what a request selects, and its position.

    Raises:
        MCPError: Unknown event, or invalid arguments or cursor.
    """
    try:
        selection = Selection.parse(params.name, params.arguments)
        return selection, None if params.cursor is None else parse_cursor(params.cursor)
    except KeyError:
        text = f"Unknown event {params.name[:80]!r}; see all events: events/list"
        raise MCPError(UNKNOWN_EVENT, text) from None
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)[:500]) from None


def find_token(context: Context) -> bytes:
    """Return the token of a request over HTTP; empty for other requests."""
    return b"" if context.request is None else get_bearer_token(context.request.scope["headers"])


def to_mcp_error(error: PunchlistError) -> MCPError:
    is_invalid = isinstance(error, InvalidParams | Forbidden | NotFound | NoConversation)
    return MCPError(types.INVALID_PARAMS if is_invalid else types.INTERNAL_ERROR, to_problem(error).text)


def drop_old(page: Page, oldest: int | None) -> tuple[Page, bool]:
    """Return the page without changes before a time, in milliseconds, and whether it had some."""
    if oldest is None:
        return page, False
    changes = [change for change in page.changes if change.at >= oldest]
    return page._replace(changes=changes), len(changes) < len(page.changes)


def find_oldest(params: EventParams) -> int | None:
    return None if params.max_age_ms is None else int(time.time() * 1000) - params.max_age_ms


def _build_poll(events: list[dict[str, Any]], cursor: str, *, truncated: bool, has_more: bool) -> dict[str, Any]:
    next_poll_ms = 0 if has_more else POLL_MS
    return {
        "events": events,
        "cursor": cursor,
        "truncated": truncated,
        "hasMore": has_more,
        "nextPollMs": next_poll_ms,
    }


async def _advertise(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Add the capability under the name that ChatGPT looks for. The SDK would remove it from its own result."""
    result = await call_next(ctx)
    if ctx.method in ("server/discover", "initialize") and isinstance(result, dict):
        result.setdefault("capabilities", {})["events"] = {}
    return result
