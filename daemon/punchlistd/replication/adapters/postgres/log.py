"""The shared log in PostgreSQL: a schema for each space, a row for each post.

Notifications carry no posts, since whoever is connected to a database may send any: they say that there is one, and it
is read from the table, which only members may write to.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import anyio
import msgspec

from punchlist_schemas.things import ID_PATTERN
from punchlistd.replication.adapters.link_keeper import WATCH_S, LinkKeeper
from punchlistd.replication.adapters.postgres.check import Found, find
from punchlistd.replication.adapters.postgres.link import REQUEST_S, Connection, NotStored, connect
from punchlistd.replication.adapters.postgres.refusals import Refused
from punchlistd.replication.port import (
    Beat,
    Conflict,
    Garbled,
    MemberId,
    Posted,
    RoundTrip,
    SharedLogError,
    TooLarge,
    Unreachable,
)
from punchlistd.replication.posts.foreign import MAX_NONCE, MAX_POSITION, convert, decode
from punchlistd.replication.spaces import Space

logger = logging.getLogger(__name__)

TABLE_EVERY = 5
"""At each so many tries of the way the table is looked at too."""

MAX_POST = 8 << 20
"""Bytes that a post may have."""

PIECE = 512
"""Posts that are read at a time."""

NAMES = 16
"""A sign of life names so many lists at once: a notification has less than 8,000 bytes."""

_POST = """
WITH placed AS (
    INSERT INTO {table} (list, n, nonce, body)
    SELECT $1, $2::bigint + 1, $3, $4 WHERE $2 = (SELECT coalesce(max(n), 0) FROM {table} WHERE list = $1 AND n > 0)
    ON CONFLICT DO NOTHING RETURNING n)
SELECT n, pg_notify($5, $6) FROM placed
"""
_READ = """
SELECT n, left(nonce, {max_nonce}) AS nonce, CASE WHEN size <= {max_post} THEN body END AS body, size FROM (
    SELECT *, coalesce(sum(size) OVER (ORDER BY n) - size, 0) AS sooner FROM (
        SELECT n, nonce, body, octet_length(body) AS size FROM {table} WHERE list = $1 AND n > $2 ORDER BY n LIMIT $3
    ) AS piece) AS measured
WHERE sooner < 1048576 ORDER BY n
"""
"""Members may insert any row: of one that is too large to be a post the body is left where it is."""

_LAST = "SELECT coalesce(max(n), 0) AS last FROM {table} WHERE list = $1 AND n > 0"
_LISTS = "SELECT DISTINCT list FROM {table} WHERE n > 0"
_ERASE = "DELETE FROM {table} WHERE list = $1 AND n < $2"
_REMOVE = """
DELETE FROM {table} AS post USING unnest($2::bigint[], $3::text[]) AS gone (n, nonce)
WHERE post.list = $1 AND post.n = gone.n AND coalesce(left(post.nonce, {max_nonce}), '') = gone.nonce
"""
"""A place that was removed is used again, by a post of another nonce."""

_BARRIER = "pg_logical_emit_message(true, 'punchlist', '')"
"""A record that only stands in the server's log: it is written like a post, to the disk and to the standby, so whoever
acknowledges it was the primary until then, and everything that was seen before is where a post has to be."""

_CURRENT = _LAST.replace(" FROM", f", {_BARRIER} FROM")
_ROOM = """
INSERT INTO {table} SELECT '', 0, '', decode(repeat('00', $1), 'hex') FROM generate_series(1, 2)
"""
"""The second row has the place of the first, which undoes both; a server without room gets as far as the first."""

_Posts = list[Posted]
_ListName = Annotated[str, msgspec.Meta(max_length=128, pattern=f"{ID_PATTERN}|^(?![\\s\\S])")]


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a notification says: the member `by` made post `n` of a list, or wants the turn there, or lives."""

    what: Literal["post", "want", "beat", "echo"]
    by: MemberId
    list: _ListName = ""
    n: Annotated[int, msgspec.Meta(ge=0, le=MAX_POSITION)] = 0
    round_trip_s: RoundTrip = 0.0
    beat: Beat | None = None


class _Row(msgspec.Struct, frozen=True):
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_POSITION)]
    nonce: str | None
    body: bytes | None
    size: int | None


def read_row(list: str, row: Mapping[str, Any]) -> Posted:
    """Read a row of the table. A member may insert any.

    Raises:
        Garbled: It has no position.
    """
    found = convert(row, _Row)
    fault = ""
    if found.nonce is None or found.size is None:
        fault = "its row has no nonce or no body"
    elif found.body is None:
        fault = f"it has {found.size} bytes, and a post has at most {MAX_POST}"
    return Posted(list, found.n, found.n - 1, found.nonce or "", found.body or b"", fault=fault)


class _Last(msgspec.Struct, frozen=True):
    last: int


class _Listed(msgspec.Struct, frozen=True):
    list: str


_encode = msgspec.json.Encoder().encode


class PostgresLog(LinkKeeper[Connection]):
    """A space's shared log.

    Args:
        space: Where it is.
        member: Who this is.
    """

    refused = Refused

    def __init__(self, space: Space, member: str) -> None:
        super().__init__(space, member)
        self._channel = f"punch-{space.name}"
        self._table = f'"{self._channel}".post'
        self._echoes = 0
        self._echoed = asyncio.Event()
        self._told: dict[str, int] = {}  # the last post that the listener was told of, by list
        self._noticed: dict[str, tuple[int, int]] = {}  # the first and the last post of which there was a mere notice
        self._news = asyncio.Event()
        self._posting: set[str] = set()
        self._not_stored = ("", 0)  # why the server did not store a post, and how large that was

    async def _serve(self, url: str) -> Refused:
        connection = await connect(self._space, url, f"punchlistd {self._member}")
        try:
            found = await find(connection, self._space.name)
            await self._settle(connection, found)
            self._connection = connection
            self._set_link("up", None, connection, found.may_post)
            logger.info("space %s: up at %s, PostgreSQL %s", self._space.name, url, connection.version)
            fetching = asyncio.ensure_future(self._fetch(connection))
            try:
                return await self._watch(connection, found)
            finally:
                fetching.cancel()
                await asyncio.gather(fetching, return_exceptions=True)
        finally:
            self._connection = None
            connection.end("it was closed")

    async def _settle(self, connection: Connection, found: Found) -> None:
        """Subscribe to the space, and check that it delivers notifications and stores posts.

        Raises:
            Refused: Nothing is heard, or nothing is stored.
        """
        self._told, self._noticed = {}, {}
        await connection.listen(self._channel, self._hear)
        try:
            if not await self._echo(connection):
                raise Refused("no_push", where=connection.url)
            asked = time.monotonic()
            await connection.ask(f"SELECT {_BARRIER}")
            self._round_trip_s = time.monotonic() - asked
            if found.may_post and self._not_stored[0]:
                await self._store_again(connection)
        except (NotStored, Unreachable) as error:
            cause = str(error).rstrip(".") if isinstance(error, NotStored) else "it did not confirm a change in time"
            raise Refused("no_quorum", where=connection.url, cause=cause) from error
        self._not_stored = ("", 0)

    async def _store_again(self, connection: Connection) -> None:
        try:
            await connection.ask(self._on_table(_ROOM), self._not_stored[1])
        except NotStored:
            raise
        except Unreachable:
            if connection.ended.is_set():
                raise

    async def _watch(self, connection: Connection, found: Found) -> Refused:
        for turn in itertools.count(1):
            with anyio.move_on_after(WATCH_S):
                await connection.ended.wait()
            if connection.ended.is_set():
                break
            try:
                if not await self._echo(connection):
                    return Refused("no_push", where=connection.url)
                if turn % TABLE_EVERY == 0 and (await find(connection, self._space.name))[:2] != found[:2]:
                    return Refused("replaced", where=connection.url)
            except Unreachable:
                break
            except Refused as refused:
                return refused
            if self._not_stored[0]:
                return Refused("no_quorum", where=connection.url, cause=self._not_stored[0])
        return Refused("unreachable", where=connection.url, cause=connection.why)

    async def _echo(self, connection: Connection) -> bool:
        self._echoes += 1
        self._echoed = asyncio.Event()
        await self._notify(connection, Notice("echo", self._member, n=self._echoes))
        with anyio.move_on_after(REQUEST_S):
            await self._echoed.wait()
        return self._echoed.is_set()

    async def _notify(self, connection: Connection, notice: Notice) -> None:
        await connection.ask("SELECT pg_notify($1, $2)", self._channel, _encode(notice).decode())

    def _hear(self, text: str) -> None:
        """Rubbish of others is noted and left: the library calls this where an exception would end the daemon."""
        try:
            self._take(decode(text, Notice))
        except Garbled as error:
            logger.warning("space %s: %r is no notice of punchlist: %s", self._space.name, text[:80], error)

    def _take(self, notice: Notice) -> None:
        assert self._listener is not None
        if notice.what == "post":
            if notice.by != self._member or notice.list not in self._posting:  # whoever posts is about to be told
                first, last = self._noticed.get(notice.list, (notice.n, notice.n))
                self._noticed[notice.list] = min(notice.n, first), max(notice.n, last)
                self._news.set()
        elif notice.what == "beat":
            if notice.beat is not None:
                self._listener.on_beat(notice.beat)
        elif notice.what == "want":
            self._listener.on_turn_request(notice.list, notice.by, notice.round_trip_s)
        elif notice.by == self._member and notice.n == self._echoes:
            self._echoed.set()

    async def _fetch(self, connection: Connection) -> None:
        assert self._listener is not None
        while True:
            await self._news.wait()
            self._news.clear()
            noticed, self._noticed = self._noticed, {}
            for list, (first, last) in noticed.items():
                told = self._told.get(list, first - 1)
                if last <= told:
                    continue  # it was read with the one before it, ahead of its own notice
                try:
                    found = await self._piece(connection, list, told)
                except SharedLogError as error:
                    logger.info("space %s: %s", self._space.name, error)
                    continue  # whoever follows the list compares how far it goes
                for post in found:
                    self._listener.on_post(post)
                    self._told[list] = post.position

    def _on_table(self, statement: str) -> str:
        return statement.format(table=self._table, max_post=MAX_POST, max_nonce=MAX_NONCE)

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        connection = self._get_posting_connection()
        if len(body) > MAX_POST:
            raise TooLarge(len(body), MAX_POST)
        notice = _encode(Notice("post", self._member, list, expected + 1)).decode()
        asked = time.monotonic()
        self._posting.add(list)
        try:
            rows = await connection.ask(
                self._on_table(_POST), list, expected, nonce, body, self._channel, notice, writes=True
            )
        except NotStored as error:
            self._not_stored = (str(error).rstrip("."), len(body))
            raise
        finally:
            self._posting.discard(list)
        self._record_round_trip(asked)
        if not rows:
            raise Conflict("Another post stands there.")
        if self._told.get(list, expected) == expected:
            self._told[list] = expected + 1
        return expected + 1

    async def is_current(self, list: str, position: int) -> bool:
        """Whether this is the position of the last post: a barrier behind it was stored."""
        return await self._last(_CURRENT, list) == position

    async def last(self, list: str) -> int:
        last = await self._last(_LAST, list)
        if self._told.get(list, 0) > last:
            self._told[list] = last  # posts were removed, and others will have their places
        return last

    async def _last(self, statement: str, list: str) -> int:
        (row,) = await self._get_connection().ask(self._on_table(statement), list)
        return convert(row, _Last).last

    async def read(self, list: str, after: int, limit: int | None = None) -> _Posts:
        """All posts behind a position, in pieces, and a barrier behind them: what is read here is never lost again."""
        connection = self._get_connection()
        found: _Posts = []
        while piece := await self._piece(connection, list, after, limit or PIECE):
            found += piece
            after = piece[-1].position
            if limit is not None and len(found) >= limit:
                break
        await connection.ask(f"SELECT {_BARRIER}")
        return found

    async def _piece(self, connection: Connection, list: str, after: int, limit: int = PIECE) -> _Posts:
        rows = await connection.ask(self._on_table(_READ), list, after, limit)
        return [read_row(list, row) for row in rows]

    async def lists(self) -> list[str]:
        rows = await self._get_connection().ask(self._on_table(_LISTS))
        return sorted(convert(row, _Listed).list for row in rows)

    async def erase(self, list: str, before: int) -> None:
        """Delete the rows of the posts before a position; their bytes stay until a VACUUM."""
        await self._get_connection().ask(self._on_table(_ERASE), list, before)

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        places, nonces = [post.position for post in posts], [post.nonce for post in posts]
        await self._get_connection().ask(self._on_table(_REMOVE), list, places, nonces)

    async def beat(self, beat: Beat) -> None:
        connection = self._get_connection()
        names, stuck, follows = iter(beat.lists), iter(beat.stuck.items()), iter(beat.follows)
        while True:
            part = Beat(
                beat.member,
                tuple(itertools.islice(names, NAMES)),
                dict(itertools.islice(stuck, NAMES)),
                tuple(itertools.islice(follows, NAMES)),
            )
            await self._notify(connection, Notice("beat", self._member, beat=part))
            if max(map(len, (part.lists, part.stuck, part.follows))) < NAMES:
                return

    async def request_turn(self, list: str) -> None:
        await self._notify(self._get_connection(), Notice("want", self._member, list, round_trip_s=self._round_trip_s))
