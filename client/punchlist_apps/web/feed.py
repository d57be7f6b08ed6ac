"""Server-sent events: streams of the board, of one list's rows, of what happened, or of the log's events.

An event's id contains the positions from which a client can resume. The id is `EPOCH.BOARD.ROWS`, with `-` for a view
that isn't in the stream, `EPOCH.BOARD.ROWS.EVENTS` in a stream of what happened, or `EPOCH.SEQ` in a stream of events.
Each stream has its own connection to the daemon and reads from it no faster than its client reads from the stream.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from typing import Any, NamedTuple

import anyio
import msgspec
from starlette.requests import Request

from punchlist.clients.aio import AsyncClient
from punchlist.connection.core import Profile, error_of, result_of
from punchlist.connection.core import Request as Call
from punchlist.connection.link import Link
from punchlist.errors import PunchlistError
from punchlist_apps.common.http.guard import Receive, Send, get_bearer_token
from punchlist_apps.common.http.guard import Scope as AsgiScope
from punchlist_apps.common.http.problem import Refused
from punchlist_apps.common.http.revocation import ENDED, set_last_bytes
from punchlist_apps.common.http.shares import pick_to_evict
from punchlist_apps.web.access import Access, confine
from punchlist_schemas.jsonrpc import Notice
from punchlist_schemas.params import ConversationList, EventSubscribe
from punchlist_schemas.results import SubscribeResult

MAX_STREAMS = 64
"""Maximum number of open streams per server."""

KEEPALIVE_S = 15.0
"""Seconds until an idle stream sends a comment."""

_PAGE_SIZE = 100
_LARGE_BYTES = 4 << 10
"""Minimum size of a chunk, in bytes, for which a stream waits until the client has received it before reading on."""
_ID = re.compile(r"([0-9a-f]{1,64})\.([0-9]{1,16}|-)(?:\.([0-9]{1,16}|-))?(?:\.([0-9]{1,16}|-))?")
_VIEWS = ("board", "rows", "events")
"""Views of a feed, in the order of their positions in an id."""
_NUMBER = re.compile(r"[0-9]{1,16}")
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


class StreamParams(NamedTuple):
    """Parameters of a stream.

    Attributes:
        rows: List whose rows the stream sends, if any.
        events: Whether the stream sends events, and nothing else unless `happened` is set.
        conversation: List whose events the stream sends; None for the events of all lists.
        once: Whether the stream ends after the current state.
        epoch: Epoch of the log to which `after` refers.
        after: Position to resume from, for each view.
        presence: Whether the stream also sends the followers of the list `rows`.
        happened: Whether the events are part of a feed, and contain the titles of their tasks and lists.
    """

    board: bool
    rows: str | None
    events: bool
    conversation: str | None
    once: bool
    epoch: str | None
    after: dict[str, int]
    presence: bool = False
    happened: bool = False


class Streams:
    """The open streams.

    Args:
        access: Determines what a request is allowed to do.
        ending: Set at shutdown, which ends the streams.
        keepalive_s: See `KEEPALIVE_S`.
    """

    def __init__(self, access: Access, ending: anyio.Event, *, keepalive_s: float = KEEPALIVE_S) -> None:
        self._access = access
        self.ending = ending
        self.keepalive_s = keepalive_s
        self._open: dict[Stream, bytes] = {}
        """Open streams → their tokens, oldest first."""

    async def open_feed(self, request: Request) -> "Stream":
        """Return a stream of the board, of one list's rows and followers, and of the events of all lists.

        With a token for one list, the events are those of this list.
        """
        query = _parse_query(request, {"board", "rows", "presence", "happened", "once", "after"})
        epoch, positions = _parse_position(request, query)
        board, rows, presence = _parse_flag(query, "board"), query.get("rows"), _parse_flag(query, "presence")
        happened = _parse_flag(query, "happened")
        if not board and rows is None and not happened:
            raise Refused("invalid_params", "Set at least one of board=1, rows=LIST and happened=1.", field="board")
        if presence and rows is None:
            raise Refused("invalid_params", "presence=1 requires rows=LIST.", field="presence")
        after = {view: seq for view, seq in zip(_VIEWS, positions, strict=False) if seq is not None}
        once = _parse_flag(query, "once")
        name = self._access.require_scope(request).list if happened else None
        return await self._open_stream(
            request, StreamParams(board, rows, happened, name, once, epoch, after, presence, happened)
        )

    async def open_events(self, request: Request) -> "Stream":
        query = _parse_query(request, {"conversation", "after"})
        name = request.path_params.get("conversation") or query.get("conversation")
        epoch, positions = _parse_position(request, query)
        after = {"events": positions[0]} if positions and positions[0] is not None else {}
        return await self._open_stream(request, StreamParams(False, None, True, name, False, epoch, after))

    async def _open_stream(self, request: Request, params: StreamParams) -> "Stream":
        scope = self._access.require_scope(request)
        if params.board:
            confine(scope, None)
        if params.events:
            confine(scope, params.conversation)
        if params.rows is not None:
            confine(scope, params.rows)
        return Stream(self, await self._access.get_client(scope), params)

    def add(self, stream: "Stream", token: bytes) -> None:
        """Register a stream. If more than `MAX_STREAMS` are open, end the newest stream of the token that has the most
        streams.

        Raises:
            Refused: The stream that would be ended is the new one.
        """
        self._open[stream] = token
        if len(self._open) > MAX_STREAMS:
            displaced = pick_to_evict((entry, owner, -at) for at, (entry, owner) in enumerate(self._open.items()))
            self.remove(displaced)
            if displaced is stream:
                detail = f"{MAX_STREAMS} streams are open, and no other token has more than yours; close one of yours."
                raise Refused("too_many_streams", detail)
            displaced.displaced.set()

    def remove(self, stream: "Stream") -> None:
        self._open.pop(stream, None)


class Stream:
    """One stream, as an ASGI response.

    Args:
        streams: Registry of open streams.
        client: Connection of the token's scope.
        params: Parameters of the stream.

    Attributes:
        displaced: Set when this stream is ended to make room for a stream of another token.
    """

    def __init__(self, streams: Streams, client: AsyncClient, params: StreamParams) -> None:
        self._streams = streams
        self._client = client
        self._params = params
        self._positions: dict[str, int] = {}
        self._has_started = False
        self.displaced = anyio.Event()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": b""})
            return
        error: PunchlistError | None = None
        set_last_bytes(scope, _format_end("unauthorized", ENDED))
        self._streams.add(self, get_bearer_token(scope["headers"]))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_on_disconnect, receive, group.cancel_scope)
                group.start_soon(_cancel_on_event, self._streams.ending, group.cancel_scope)
                group.start_soon(_cancel_on_event, self.displaced, group.cancel_scope)
                try:
                    await self._deliver(send)
                except PunchlistError as failed:
                    error = failed
                group.cancel_scope.cancel()
        finally:
            self._streams.remove(self)
        is_displaced = self.displaced.is_set()
        if not self._has_started:
            raise error or Refused(*(_DISPLACED if is_displaced else _SHUTDOWN))
        last = _format_end(*_DISPLACED) if is_displaced else b"" if error else b"event: bye\ndata: {}\n\n"
        await send({"type": "http.response.body", "body": last})

    async def _deliver(self, send: Send) -> None:
        with closing(await Link.open(Profile(self._client.options))) as link:
            self._epoch = link.hello.epoch
            for view in self._build_subscriptions():
                reply = await link.exchange(Call.of("event.subscribe", view))
                if (error := error_of(reply)) is not None:
                    raise error
                self._positions[view.view] = result_of(reply, SubscribeResult).seq
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            self._has_started = True
            await _write(send, b"retry: 1000\n\n")
            async for chunk in self._read_cards():
                await _write(send, chunk)
            rows_due = self._params.rows is not None
            while rows_due or not self._params.once:
                notice = None
                with anyio.move_on_after(self._streams.keepalive_s):
                    notice = await link.receive()
                if notice is None:
                    await _write(send, b":\n\n")
                    continue
                is_end = notice.method == "end"
                rows_due = rows_due and (notice.method != "rows" or _decode_position(notice).more)
                chunk = self._format_event(notice)
                # While the client isn't reading, keep one copy in memory instead of two.
                del notice
                is_large = len(chunk) > _LARGE_BYTES
                await _write(send, chunk)
                del chunk
                if is_large:
                    # Blocks until the client has received the chunk.
                    await _write(send, b"")
                if is_end:
                    return

    def _build_subscriptions(self) -> list[EventSubscribe]:
        params, after = self._params, self._params.after
        views: list[EventSubscribe] = []
        if params.board:
            views.append(EventSubscribe(view="board", after=after.get("board"), epoch=params.epoch))
        if params.rows is not None:
            views.append(
                EventSubscribe(view="rows", conversation=params.rows, after=after.get("rows"), epoch=params.epoch)
            )
        if params.presence:
            views.append(EventSubscribe(view="presence", conversation=params.rows))
        if params.events:
            views.append(
                EventSubscribe(
                    conversation=params.conversation,
                    after=after.get("events"),
                    epoch=params.epoch,
                    about=params.happened,
                )
            )
        return views

    async def _read_cards(self) -> AsyncGenerator[bytes]:
        """Yield pages of existing lists, unless the stream has no board or the board resumes from a position."""
        if not self._params.board or ("board" in self._params.after and not self._params.once):
            return
        cursor: str | None = None
        while True:
            params = ConversationList(limit=_PAGE_SIZE, cursor=cursor)
            page = await self._client.forward(Call.of("conversation.list", params))
            cursor = msgspec.json.decode(page, type=_Page).next_cursor
            yield b"%bevent: cards\ndata: %b\n\n" % (self._format_id() if cursor is None else b"", page)
            if cursor is None:
                return

    def _format_event(self, notice: Notice) -> bytes:
        data = bytes(notice.params)
        if notice.method == "end":
            return b"event: end\ndata: %b\n\n" % data
        if notice.method == "events":
            self._positions["events"] = msgspec.json.decode(data, type=_Events).events[-1].seq
            return b"%bevent: change\ndata: %b\n\n" % (self._format_id(), data)
        if notice.method == "presence":  # Presence isn't in the log, so it has no position.
            return b"event: presence\ndata: %b\n\n" % data
        self._positions[notice.method] = _decode_position(notice).seq
        return b"%bevent: %b\ndata: %b\n\n" % (self._format_id(), notice.method.encode(), data)

    def _format_id(self) -> bytes:
        is_log = self._params.events and not self._params.happened
        views = ("events",) if is_log else _VIEWS if self._params.happened else _VIEWS[:2]
        positions = (str(self._positions.get(view, "-")) for view in views)
        return f"id: {'.'.join((self._epoch, *positions))}\n".encode()


class _Page(msgspec.Struct):
    next_cursor: str | None = None


class _Position(msgspec.Struct):
    seq: int
    more: bool = False


class _Events(msgspec.Struct):
    events: list[_Position]


_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

_SHUTDOWN = ("cancelled", "The server is shutting down.")
_DISPLACED = (
    "too_many_streams",
    "Closed to make room for another token's stream: no token had more streams open than this one. Open fewer.",
)


def _format_end(kind: str, message: str) -> bytes:
    return b"event: end\ndata: %b\n\n" % msgspec.json.encode({"error": {"kind": kind, "message": message}})


def _decode_position(notice: Notice) -> _Position:
    return msgspec.json.decode(notice.params, type=_Position)


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _cancel_on_disconnect(receive: Callable[[], Awaitable[Any]], scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _cancel_on_event(ending: anyio.Event, scope: anyio.CancelScope) -> None:
    await ending.wait()
    scope.cancel()


def _parse_query(request: Request, names: set[str]) -> dict[str, str]:
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in names or name in query:
            detail = f"The query takes {', '.join(sorted(names))}, each once."
            raise Refused("invalid_params", detail, field=name)
        query[name] = value
    return query


def _parse_flag(query: dict[str, str], name: str) -> bool:
    value = query.get(name, "0")
    if value not in _BOOLEANS:
        raise Refused("invalid_params", f"{name} must be 1 or 0.", field=name)
    return _BOOLEANS[value]


def _parse_position(request: Request, query: dict[str, str]) -> tuple[str | None, list[int | None]]:
    """Return the epoch and positions to resume from, taken from EventSource's Last-Event-ID or from `after`."""
    text = request.headers.get("last-event-id") or query.get("after")
    if text is None:
        return None, []
    if _NUMBER.fullmatch(text):
        return None, [int(text)] * 3
    match = _ID.fullmatch(text)
    if match is None:
        raise Refused("invalid_params", "Last-Event-ID must be the id of an event of this stream.", field="after")
    epoch, *positions = match.groups()
    return epoch, [None if position in (None, "-") else int(position) for position in positions]
