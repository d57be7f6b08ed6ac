"""The shared log in PostgreSQL, with a schema for each space and a row for each post.

Notifications only report the positions of posts, because any user of the database can send notifications. The posts
themselves are read from the table, to which only members can write.
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
from punchlistd.replication.adapters.postgres.check import Found, find_table
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
"""The table is checked with every Nth check of the connection."""

MAX_POST = 8 << 20
"""Maximum size of a post, in bytes."""

PIECE = 512
"""Maximum number of posts in one read."""

NAMES = 16
"""Maximum number of lists in one heartbeat, because a notification must be shorter than 8,000 bytes."""

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
"""Members can insert any row, so bodies that are too large for a post are not read."""

_LAST = "SELECT coalesce(max(n), 0) AS last FROM {table} WHERE list = $1 AND n > 0"
_LISTS = "SELECT DISTINCT list FROM {table} WHERE n > 0"
_ERASE = "DELETE FROM {table} WHERE list = $1 AND n < $2"
_REMOVE = """
DELETE FROM {table} AS post USING unnest($2::bigint[], $3::text[]) AS gone (n, nonce)
WHERE post.list = $1 AND post.n = gone.n AND coalesce(left(post.nonce, {max_nonce}), '') = gone.nonce
"""
"""Also compares the nonce, because the position of a removed post is reused."""

_BARRIER = "pg_logical_emit_message(true, 'punchlist', '')"
"""Writes a record to the server's write-ahead log only. The record is flushed and replicated like a post. If a server
acknowledges it, that server was still the primary, and all posts read earlier are durable."""

_CURRENT = _LAST.replace(" FROM", f", {_BARRIER} FROM")
_ROOM = """
INSERT INTO {table} SELECT '', 0, '', decode(repeat('00', $1), 'hex') FROM generate_series(1, 2)
"""
"""Tests whether the disk has space for a post of $1 bytes. If not, the first row fails. Otherwise, the second row
fails because it has the same key, and both rows are rolled back."""

_Posts = list[Posted]
_ListName = Annotated[str, msgspec.Meta(max_length=128, pattern=f"{ID_PATTERN}|^(?![\\s\\S])")]


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A notification: member `by` has stored post `n` of a list, requests a turn, or sends a heartbeat or an echo."""

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
    """Convert a row of the table to a post. Members can insert any row.

    Raises:
        Garbled: The row has no position.
    """
    post = convert(row, _Row)
    fault = ""
    if post.nonce is None or post.size is None:
        fault = "its row has no nonce or no body"
    elif post.body is None:
        fault = f"it has {post.size} bytes, and a post has at most {MAX_POST}"
    return Posted(list, post.n, post.n - 1, post.nonce or "", post.body or b"", fault=fault)


class _Last(msgspec.Struct, frozen=True):
    last: int


class _Listed(msgspec.Struct, frozen=True):
    list: str


_encode = msgspec.json.Encoder().encode


class PostgresLog(LinkKeeper[Connection]):
    """The shared log of a space in PostgreSQL."""

    refused = Refused

    def __init__(self, space: Space, member: str) -> None:
        super().__init__(space, member)
        self._channel = f"punch-{space.name}"
        self._table = f'"{self._channel}".post'
        self._echoes = 0
        self._echoed = asyncio.Event()
        self._delivered: dict[str, int] = {}  # list -> position of the last post passed to the listener
        self._announced: dict[str, tuple[int, int]] = {}  # list -> first and last position of posts to read
        self._has_announced = asyncio.Event()
        self._posting: set[str] = set()
        self._not_stored = ("", 0)  # why the server could not store a post, and the post's size in bytes

    async def _serve(self, url: str) -> Refused:
        connection = await connect(self._space, url, f"punchlistd {self._member}")
        try:
            found = await find_table(connection, self._space.name)
            await self._subscribe_and_check(connection, found)
            self._connection = connection
            self._set_link("up", None, connection, found.may_post)
            logger.info("space %s: up at %s, PostgreSQL %s", self._space.name, url, connection.version)
            delivery = asyncio.ensure_future(self._deliver(connection))
            try:
                return await self._watch(connection, found)
            finally:
                delivery.cancel()
                await asyncio.gather(delivery, return_exceptions=True)
        finally:
            self._connection = None
            connection.end("it was closed")

    async def _subscribe_and_check(self, connection: Connection, found: Found) -> None:
        """Subscribe to the space, and check that it delivers notifications and stores posts.

        Raises:
            Refused: The space doesn't.
        """
        self._delivered, self._announced = {}, {}
        await connection.listen(self._channel, self._on_notification)
        try:
            if not await self._echo(connection):
                raise Refused("no_push", where=connection.url)
            sent_at = time.monotonic()
            await connection.query(f"SELECT {_BARRIER}")
            self._round_trip_s = time.monotonic() - sent_at
            if found.may_post and self._not_stored[0]:
                await self._check_disk_space(connection)
        except (NotStored, Unreachable) as error:
            cause = str(error).rstrip(".") if isinstance(error, NotStored) else "it did not confirm a change in time"
            raise Refused("no_quorum", where=connection.url, cause=cause) from error
        self._not_stored = ("", 0)

    async def _check_disk_space(self, connection: Connection) -> None:
        try:
            await connection.query(self._on_table(_ROOM), self._not_stored[1])
        except NotStored:
            raise
        except Unreachable:  # the statement always fails: see `_ROOM`
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
                if turn % TABLE_EVERY == 0 and (await find_table(connection, self._space.name))[:2] != found[:2]:
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
        await connection.query("SELECT pg_notify($1, $2)", self._channel, _encode(notice).decode())

    def _on_notification(self, text: str) -> None:
        try:
            self._handle(decode(text, Notice))
        except Garbled as error:  # any user of the database can send this, and raising here would end the daemon
            logger.warning("space %s: %r is not a notification of punchlist: %s", self._space.name, text[:80], error)

    def _handle(self, notice: Notice) -> None:
        assert self._listener is not None
        if notice.what == "post":
            # A post of this member that is in flight is about to be acknowledged.
            if notice.by != self._member or notice.list not in self._posting:
                first, last = self._announced.get(notice.list, (notice.n, notice.n))
                self._announced[notice.list] = min(notice.n, first), max(notice.n, last)
                self._has_announced.set()
        elif notice.what == "beat":
            if notice.beat is not None:
                self._listener.on_beat(notice.beat)
        elif notice.what == "want":
            self._listener.on_turn_request(notice.list, notice.by, notice.round_trip_s)
        elif notice.by == self._member and notice.n == self._echoes:
            self._echoed.set()

    async def _deliver(self, connection: Connection) -> None:
        """Read announced posts and pass them to the listener."""
        assert self._listener is not None
        while True:
            await self._has_announced.wait()
            self._has_announced.clear()
            announced, self._announced = self._announced, {}
            for list, (first, last) in announced.items():
                delivered = self._delivered.get(list, first - 1)
                if last <= delivered:
                    continue  # these posts were read together with an earlier one, before their own notification
                try:
                    posts = await self._read_piece(connection, list, delivered)
                except SharedLogError as error:
                    # The list's lane will compare positions later and read the missing posts.
                    logger.info("space %s: %s", self._space.name, error)
                    continue
                for post in posts:
                    self._listener.on_post(post)
                    self._delivered[list] = post.position

    def _on_table(self, statement: str) -> str:
        return statement.format(table=self._table, max_post=MAX_POST, max_nonce=MAX_NONCE)

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        connection = self._get_posting_connection()
        if len(body) > MAX_POST:
            raise TooLarge(len(body), MAX_POST)
        notice = _encode(Notice("post", self._member, list, expected + 1)).decode()
        sent_at = time.monotonic()
        self._posting.add(list)
        try:
            rows = await connection.query(
                self._on_table(_POST), list, expected, nonce, body, self._channel, notice, writes=True
            )
        except NotStored as error:
            self._not_stored = (str(error).rstrip("."), len(body))
            raise
        finally:
            self._posting.discard(list)
        self._record_round_trip(sent_at)
        if not rows:
            raise Conflict("Another post has this position.")
        if self._delivered.get(list, expected) == expected:
            self._delivered[list] = expected + 1
        return expected + 1

    async def is_current(self, list: str, position: int) -> bool:
        """Return whether this is the position of the last post, as confirmed by a barrier."""
        return await self._last(_CURRENT, list) == position

    async def last(self, list: str) -> int:
        last = await self._last(_LAST, list)
        if self._delivered.get(list, 0) > last:
            self._delivered[list] = last  # posts were removed, and new posts will reuse their positions
        return last

    async def _last(self, statement: str, list: str) -> int:
        (row,) = await self._get_connection().query(self._on_table(statement), list)
        return convert(row, _Last).last

    async def read(self, list: str, after: int, limit: int | None = None) -> _Posts:
        """Read posts in pieces. A final barrier confirms that they are durable."""
        connection = self._get_connection()
        posts: _Posts = []
        while piece := await self._read_piece(connection, list, after, limit or PIECE):
            posts += piece
            after = piece[-1].position
            if limit is not None and len(posts) >= limit:
                break
        await connection.query(f"SELECT {_BARRIER}")
        return posts

    async def _read_piece(self, connection: Connection, list: str, after: int, limit: int = PIECE) -> _Posts:
        rows = await connection.query(self._on_table(_READ), list, after, limit)
        return [read_row(list, row) for row in rows]

    async def lists(self) -> list[str]:
        rows = await self._get_connection().query(self._on_table(_LISTS))
        return sorted(convert(row, _Listed).list for row in rows)

    async def erase(self, list: str, before: int) -> None:
        """Delete the rows of posts before a position. Their bytes stay on disk until a VACUUM."""
        await self._get_connection().query(self._on_table(_ERASE), list, before)

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        positions, nonces = [post.position for post in posts], [post.nonce for post in posts]
        await self._get_connection().query(self._on_table(_REMOVE), list, positions, nonces)

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
