"""Server-sent events: one stream for a page, with a position for each view that it shows.

An event's id is `EPOCH.BOARD.ROWS`, the positions behind which the stream goes on (`-` for a view that was not asked
for); of a stream of events `EPOCH.SEQ`. A stream is a connection to the daemon, read no faster than its client
takes it.
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

MOST = 64
"""How many streams one server has open at a time."""

QUIET_S = 15.0
"""A stream on which nothing happens says so after this long, in seconds."""

_PAGE = 100
_LARGE = 4 << 10
"""Of what is larger, in bytes, one stream holds one piece and not the next one beside it."""
_ID = re.compile(r"([0-9a-f]{1,64})\.([0-9]{1,16}|-)(?:\.([0-9]{1,16}|-))?")
_NUMBER = re.compile(r"[0-9]{1,16}")
_TRUTH = {"1": True, "true": True, "0": False, "false": False}


class Wish(NamedTuple):
    """What a stream shows. `after` are the positions behind which it begins, by view, in the log of `epoch`.

    `presence`: also who follows the list of `rows`.
    """

    board: bool
    rows: str | None
    events: bool
    conversation: str | None
    once: bool
    epoch: str | None
    after: dict[str, int]
    presence: bool = False


class Streams:
    """The open streams.

    Args:
        access: Whom requests speak for.
        ending: Set when the server ends: the streams end with it.
        quiet_s: See `QUIET_S`.
    """

    def __init__(self, access: Access, ending: anyio.Event, *, quiet_s: float = QUIET_S) -> None:
        self._access = access
        self.ending = ending
        self.quiet_s = quiet_s
        self._open: dict[Stream, bytes] = {}
        """The open streams and their tokens, oldest first."""

    async def feed(self, request: Request) -> "Stream":
        """A stream of the board, of one list's rows and who follows it, or of both."""
        query = _query(request, {"board", "rows", "presence", "once", "after"})
        epoch, positions = _position(request, query)
        board, rows, presence = _truth(query, "board"), query.get("rows"), _truth(query, "presence")
        if not board and rows is None:
            raise Refused("invalid_params", "Ask for board=1, rows=LIST or both.", field="board")
        if presence and rows is None:
            raise Refused("invalid_params", "presence=1 is about the list of rows=LIST.", field="presence")
        after = {view: at for view, at in zip(("board", "rows"), positions, strict=False) if at is not None}
        once = _truth(query, "once")
        return await self._stream(request, Wish(board, rows, False, None, once, epoch, after, presence))

    async def events(self, request: Request) -> "Stream":
        query = _query(request, {"conversation", "after"})
        name = request.path_params.get("conversation") or query.get("conversation")
        epoch, positions = _position(request, query)
        after = {"events": positions[0]} if positions and positions[0] is not None else {}
        return await self._stream(request, Wish(False, None, True, name, False, epoch, after))

    async def _stream(self, request: Request, wish: Wish) -> "Stream":
        scope = self._access.scope(request)
        if wish.board or wish.events:
            confine(scope, wish.conversation if wish.events else None)
        if wish.rows is not None:
            confine(scope, wish.rows)
        return Stream(self, await self._access.client(scope), wish)

    def enter(self, stream: "Stream", token: bytes) -> None:
        """Give a stream a place; if all are taken, end the newest stream of the token with the most.

        Raises:
            Refused: That is this stream.
        """
        self._open[stream] = token
        if len(self._open) > MOST:
            displaced = pick_to_evict((each, holder, -at) for at, (each, holder) in enumerate(self._open.items()))
            self.leave(displaced)
            if displaced is stream:
                said = f"{MOST} streams are open, and no other token has more than yours; close one of yours."
                raise Refused("too_many_streams", said)
            displaced.displaced.set()

    def leave(self, stream: "Stream") -> None:
        self._open.pop(stream, None)


class Stream:
    """One stream, as an ASGI response.

    Args:
        streams: Whose it is.
        client: The connection of its scope.
        wish: What it shows.

    Attributes:
        displaced: Set when a stream of another token has the place.
    """

    def __init__(self, streams: Streams, client: AsyncClient, wish: Wish) -> None:
        self._streams = streams
        self._client = client
        self._wish = wish
        self._positions: dict[str, int] = {}
        self._begun = False
        self.displaced = anyio.Event()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": b""})
            return
        error: PunchlistError | None = None
        set_last_bytes(scope, _end_of("unauthorized", ENDED))
        self._streams.enter(self, get_bearer_token(scope["headers"]))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                group.start_soon(_until_set, self._streams.ending, group.cancel_scope)
                group.start_soon(_until_set, self.displaced, group.cancel_scope)
                try:
                    await self._deliver(send)
                except PunchlistError as failed:
                    error = failed
                group.cancel_scope.cancel()
        finally:
            self._streams.leave(self)
        is_displaced = self.displaced.is_set()
        if not self._begun:
            raise error or Refused(*(_DISPLACED if is_displaced else _STOPPED))
        last = _end_of(*_DISPLACED) if is_displaced else b"" if error else b"event: bye\ndata: {}\n\n"
        await send({"type": "http.response.body", "body": last})

    async def _deliver(self, send: Send) -> None:
        with closing(await Link.open(Profile(self._client.options))) as link:
            self._epoch = link.hello.epoch
            for view in self._views():
                reply = await link.exchange(Call.of("event.subscribe", view))
                if (error := error_of(reply)) is not None:
                    raise error
                self._positions[view.view] = result_of(reply, SubscribeResult).seq
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            self._begun = True
            await _write(send, b"retry: 1000\n\n")
            async for chunk in self._present():
                await _write(send, chunk)
            rows_due = self._wish.rows is not None
            while rows_due or not self._wish.once:
                notice = None
                with anyio.move_on_after(self._streams.quiet_s):
                    notice = await link.receive()
                if notice is None:
                    await _write(send, b":\n\n")
                    continue
                over = notice.method == "end"
                rows_due = rows_due and (notice.method != "rows" or _placed(notice).more)
                chunk = self._event(notice)
                del notice  # a client that does not read keeps one copy waiting, not two
                is_large = len(chunk) > _LARGE
                await _write(send, chunk)
                del chunk
                if is_large:
                    await _write(send, b"")  # waits until its client has taken it: only then ask for more
                if over:
                    return

    def _views(self) -> list[EventSubscribe]:
        wish, after = self._wish, self._wish.after
        views: list[EventSubscribe] = []
        if wish.board:
            views.append(EventSubscribe(view="board", after=after.get("board"), epoch=wish.epoch))
        if wish.rows is not None:
            views.append(EventSubscribe(view="rows", conversation=wish.rows, after=after.get("rows"), epoch=wish.epoch))
        if wish.presence:
            views.append(EventSubscribe(view="presence", conversation=wish.rows))
        if wish.events:
            views.append(EventSubscribe(conversation=wish.conversation, after=after.get("events"), epoch=wish.epoch))
        return views

    async def _present(self) -> AsyncGenerator[bytes]:
        """The lists that there are, in pages, unless the stream goes on from a position."""
        if not self._wish.board or ("board" in self._wish.after and not self._wish.once):
            return
        cursor: str | None = None
        while True:
            params = ConversationList(limit=_PAGE, cursor=cursor)
            page = await self._client.forward(Call.of("conversation.list", params))
            cursor = msgspec.json.decode(page, type=_Page).next_cursor
            yield b"%bevent: cards\ndata: %b\n\n" % (self._id() if cursor is None else b"", page)
            if cursor is None:
                return

    def _event(self, notice: Notice) -> bytes:
        data = bytes(notice.params)
        if notice.method == "end":
            return b"event: end\ndata: %b\n\n" % data
        if notice.method == "events":
            self._positions["events"] = msgspec.json.decode(data, type=_Events).events[-1].seq
            return b"%bevent: change\ndata: %b\n\n" % (self._id(), data)
        if notice.method == "presence":  # not in the log, so no position goes on behind it
            return b"event: presence\ndata: %b\n\n" % data
        self._positions[notice.method] = _placed(notice).seq
        return b"%bevent: %b\ndata: %b\n\n" % (self._id(), notice.method.encode(), data)

    def _id(self) -> bytes:
        if self._wish.events:
            return f"id: {self._epoch}.{self._positions['events']}\n".encode()
        board, rows = (self._positions.get(view, "-") for view in ("board", "rows"))
        return f"id: {self._epoch}.{board}.{rows}\n".encode()


class _Page(msgspec.Struct):
    next_cursor: str | None = None


class _Placed(msgspec.Struct):
    seq: int
    more: bool = False


class _Events(msgspec.Struct):
    events: list[_Placed]


_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

_STOPPED = ("cancelled", "The server ends.")
_DISPLACED = (
    "too_many_streams",
    "A stream of another token needed a place, and no token had more than this one; open fewer streams.",
)


def _end_of(kind: str, message: str) -> bytes:
    return b"event: end\ndata: %b\n\n" % msgspec.json.encode({"error": {"kind": kind, "message": message}})


def _placed(notice: Notice) -> _Placed:
    return msgspec.json.decode(notice.params, type=_Placed)


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _until_gone(receive: Callable[[], Awaitable[Any]], scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _until_set(ending: anyio.Event, scope: anyio.CancelScope) -> None:
    await ending.wait()
    scope.cancel()


def _query(request: Request, known: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known or name in found:
            said = f"The query takes {', '.join(sorted(known))}, each once."
            raise Refused("invalid_params", said, field=name)
        found[name] = value
    return found


def _truth(query: dict[str, str], name: str) -> bool:
    value = query.get(name, "0")
    if value not in _TRUTH:
        raise Refused("invalid_params", f"{name} is 1 or 0.", field=name)
    return _TRUTH[value]


def _position(request: Request, query: dict[str, str]) -> tuple[str | None, list[int | None]]:
    """The epoch and the positions that a client goes on from: the header of EventSource, or `after`."""
    text = request.headers.get("last-event-id") or query.get("after")
    if text is None:
        return None, []
    if _NUMBER.fullmatch(text):
        return None, [int(text), int(text)]
    found = _ID.fullmatch(text)
    if found is None:
        raise Refused("invalid_params", "Last-Event-ID is the id of an event of this stream.", field="after")
    epoch, *positions = found.groups()
    return epoch, [None if each in (None, "-") else int(each) for each in positions]
