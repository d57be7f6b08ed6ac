"""The shared log in NATS JetStream, with a stream for each space and a subject for each list."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import msgspec

from punchlistd.replication.adapters.link_keeper import WATCH_S, LinkKeeper
from punchlistd.replication.adapters.nats.creds import Creds, read_creds
from punchlistd.replication.adapters.nats.link import Answer, Connection, connect
from punchlistd.replication.adapters.nats.refusals import Refused
from punchlistd.replication.adapters.nats.stream import (
    EXPECTED,
    Error,
    Got,
    Info,
    Removed,
    Subjects,
    accepts_posts,
    decode_stored,
    encode_name,
    find_stream,
    parse_list,
    read_post,
    send_request,
)
from punchlistd.replication.port import (
    Beat,
    Conflict,
    Forbidden,
    Garbled,
    MemberId,
    OutcomeUnknown,
    Posted,
    RoundTrip,
    TooLarge,
    Unreachable,
)
from punchlistd.replication.posts.foreign import decode
from punchlistd.replication.spaces import Space

logger = logging.getLogger(__name__)

STREAM_EVERY = 5
"""The stream is checked with every Nth check of the connection."""

UNAVAILABLE_S = 3.0
"""Time for which requests must keep failing before another server is tried, in seconds."""

_WRONG_LAST = frozenset({10071, 10164})
_IN_PROCESS = 10158
_TOO_LARGE = frozenset({10054, 10074})
_NO_MESSAGE = 10037
_GONE = frozenset({10037, 10043, 10057})
NO_REASON = "no reason given"

PIECE = 512
PIECE_BYTES = 1 << 20
"""Upper limits for one read request: number of posts, and approximate size in bytes."""

_T = TypeVar("_T")
_Posts = list[Posted]


class TurnRequest(msgspec.Struct, frozen=True):
    """A member's request for a turn to post. `round_trip_s` is the time that one of its posts takes."""

    member: MemberId
    round_trip_s: RoundTrip


class NatsLog(LinkKeeper[Connection]):
    """The shared log of a space in NATS."""

    refused = Refused

    def __init__(self, space: Space, member: str) -> None:
        super().__init__(space, member)
        self._names = Subjects.of(space.name)
        self._failing_since: float | None = None
        self._has_single_server = False  # whether only one server stores the space

    async def _serve(self, url: str) -> Refused:
        connection = await connect(self._space, url, await self._read_creds(), f"punchlistd {self._member}")
        try:
            found = await find_stream(connection, self._space.name)
            self._has_single_server = found.replicas == 1
            may_post = await self._subscribe_and_check(connection)
            self._connection, self._failing_since = connection, None
            self._set_link("up", None, connection, may_post)
            logger.info("space %s: up at %s, NATS %s", self._space.name, url, connection.version)
            return await self._watch(connection, found.created)
        finally:
            self._connection = None
            await connection.close()

    async def _read_creds(self) -> Creds | None:
        return await anyio.to_thread.run_sync(read_creds, self._space.creds) if self._space.creds else None

    async def _subscribe_and_check(self, connection: Connection) -> bool:
        """Subscribe to the space. Return True if this member may post.

        Raises:
            Refused: This member may not even read, or there is no quorum.
        """
        await connection.subscribe(f"{self._names.new}>", self._drop_garbled(self._on_post))
        await connection.subscribe(f"{self._names.alive}>", self._drop_garbled(self._on_beat))
        await connection.subscribe(f"{self._names.want}>", self._drop_garbled(self._on_turn_request))
        try:
            await connection.flush()
            await self._last(connection, "-")
            self._round_trip_s = await connection.flush()
            if any(f"{self._names.new}>".lower() in text for text in connection.denied):
                raise Forbidden
        except Forbidden:
            raise Refused("no_permission", where=connection.url, space=self._space.name) from None
        except (Unreachable, OutcomeUnknown):
            raise Refused("no_quorum", where=connection.url) from None
        try:
            if not await accepts_posts(connection, self._barrier_subject(connection)):
                raise Refused("no_quorum", where=connection.url)
        except Forbidden:
            return False
        return True

    async def _watch(self, connection: Connection, created: str) -> Refused:
        for turn in itertools.count(1):
            with anyio.move_on_after(WATCH_S):
                await connection.ended.wait()
            if connection.ended.is_set():
                break
            try:
                await connection.flush()
                if self._failing_since is None and turn % STREAM_EVERY:
                    continue
                if (await find_stream(connection, self._space.name)).created != created:
                    return Refused("replaced", where=connection.url)
                failing = self._failing_since is not None and self._link.may_post
                if not failing or await accepts_posts(connection, self._barrier_subject(connection)):
                    self._failing_since = None
            except Unreachable:
                return Refused("unreachable", where=connection.url, cause="it stopped responding")
            except Refused as refused:
                if refused.kind != "no_quorum":
                    return refused
                self._fail()
            if self._failing_since is not None and time.monotonic() - self._failing_since > UNAVAILABLE_S:
                return Refused("no_quorum", where=connection.url)
        return Refused("unreachable", where=connection.url, cause=connection.why)

    def _fail(self) -> None:
        if self._failing_since is None:
            self._failing_since = time.monotonic()

    def _drop_garbled(self, handler: Callable[[str, Answer], None]) -> Callable[[str, Answer], None]:
        """Wrap a handler so that it logs invalid messages from other members. They must not end the connection."""

        def handle(subject: str, answer: Answer) -> None:
            try:
                handler(subject, answer)
            except Garbled as error:
                logger.warning("space %s: %r is not a message of punchlist: %s", self._space.name, subject[:200], error)

        return handle

    def _on_post(self, subject: str, answer: Answer) -> None:
        assert self._listener is not None
        self._listener.on_post(read_post(parse_list(subject, self._names.new), answer))

    def _on_beat(self, _subject: str, answer: Answer) -> None:
        assert self._listener is not None
        self._listener.on_beat(decode(answer.data, Beat))

    def _on_turn_request(self, subject: str, answer: Answer) -> None:
        assert self._listener is not None
        want = decode(answer.data, TurnRequest)
        self._listener.on_turn_request(parse_list(subject, self._names.want), want.member, want.round_trip_s)

    def _barrier_subject(self, connection: Connection) -> str:
        return f"{self._names.bar}{connection.user}.{self._member}"

    async def _request(self, request: Awaitable[_T], *, writes: bool = False) -> _T:
        """Await the reply to a request. If requests keep failing, switch to another server."""
        try:
            answer = await request
        except OutcomeUnknown as error:
            self._fail()
            if writes:
                raise
            # For a read, it doesn't matter whether the request reached the server.
            raise Unreachable(str(error)) from error
        except Unreachable:
            self._fail()
            raise
        self._failing_since = None
        return answer

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        connection = self._get_posting_connection()
        if len(body) + 1024 > connection.max_payload:
            raise TooLarge(len(body), connection.max_payload - 1024)
        headers = {EXPECTED: str(expected), "Nats-Msg-Id": nonce, "Nats-Expected-Stream": self._names.stream}
        sent_at = time.monotonic()
        request = connection.request(self._names.log + encode_name(list), body, headers, once=True)
        answer = await self._request(request, writes=True)
        try:
            reply = decode_stored(answer.data)
        except Garbled as garbled:
            raise OutcomeUnknown(str(garbled)) from garbled
        self._record_round_trip(sent_at)
        if (error := reply.error) is None:
            return reply.seq
        code = error.err_code
        if code in _WRONG_LAST:
            raise Conflict("Another post has this position.")
        if code == _IN_PROCESS:
            raise OutcomeUnknown("The same post is in flight.")
        if code in _TOO_LARGE:
            raise TooLarge(len(body), connection.max_payload)
        # With several servers, the reply may come from a deposed leader, and its successor may still store the post.
        certain = Unreachable if self._has_single_server else OutcomeUnknown
        raise certain(f"The server of the space can't store posts now: {error.description or code}.")

    async def is_current(self, list: str, position: int) -> bool:
        """Return True if the server stored a barrier that expects this position to be the last."""
        connection = self._get_connection()
        headers = {
            EXPECTED: str(position),
            f"{EXPECTED}-Subject": self._names.log + encode_name(list),
            "Nats-TTL": "1s",
        }
        answer = await self._request(connection.request(self._barrier_subject(connection), b"", headers))
        if (error := decode_stored(answer.data).error) is None:
            return True
        if error.err_code in _WRONG_LAST:
            return False
        self._fail()
        raise Unreachable(f"The servers of the space can't agree now: {error.description}.")

    async def last(self, list: str) -> int:
        return await self._request(self._last(self._get_connection(), list))

    async def _last(self, connection: Connection, list: str) -> int:
        return await self._get_position(connection, {"last_by_subj": self._names.log + encode_name(list)})

    async def _get_position(self, connection: Connection, which: dict[str, Any]) -> int:
        answer = await send_request(connection, f"STREAM.MSG.GET.{self._names.stream}", Got, which)
        if answer.message is not None:
            return answer.message.seq
        error = answer.error or Error()
        if error.err_code == _NO_MESSAGE:
            return 0
        raise Unreachable(f"The server of the space can't read now: {error.description or NO_REASON}.")

    async def read(self, list: str, after: int, limit: int | None = None) -> _Posts:
        """Read posts in pieces, up to the last one that the leader reports."""
        last = await self.last(list)
        posts: _Posts = []
        deadline = time.monotonic() + UNAVAILABLE_S
        while after < last and (limit is None or len(posts) < limit):
            piece = await self._request(self._read_piece(self._get_connection(), list, after, limit or PIECE))
            posts += piece
            if piece:
                after = piece[-1].position
                deadline = time.monotonic() + UNAVAILABLE_S
            elif time.monotonic() > deadline:
                raise Unreachable("The servers of the space lag behind each other.")
            else:
                await asyncio.sleep(0.02)  # the reply came from a follower, which will soon receive the rest
        return posts

    async def _read_piece(self, connection: Connection, list: str, after: int, limit: int) -> _Posts:
        subject = self._names.log + encode_name(list)
        params = {"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": PIECE_BYTES}
        posts: _Posts = []
        async with connection.request_many(
            f"$JS.API.DIRECT.GET.{self._names.stream}", msgspec.json.encode(params)
        ) as receive:
            # The message that ends a piece has a status and no position. A stored message may have any status.
            while "Nats-Sequence" in (answer := await receive()).headers:
                posts.append(read_post(list, answer))
        return posts

    async def lists(self) -> list[str]:
        offset, names = 0, set[str]()
        while True:
            connection = self._get_connection()
            params = {"subjects_filter": f"{self._names.log}>", "offset": offset}
            answer = await self._request(send_request(connection, f"STREAM.INFO.{self._names.stream}", Info, params))
            if answer.error is not None:
                raise Unreachable(f"The server of the space can't list its subjects: {answer.error.description}.")
            subjects = answer.state.subjects or {}
            for subject in subjects:
                with contextlib.suppress(Garbled):
                    names.add(parse_list(subject, self._names.log))
            offset += len(subjects)
            if offset >= answer.total or not subjects:
                return sorted(names)

    async def erase(self, list: str, before: int) -> None:
        """Overwrite all posts before a position, one by one, on the disks of all servers."""
        await self.remove(list, [post for post in await self.read(list, 0) if post.position < before])

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        """Overwrite posts, one by one, on the disks of all servers. Positions are never reused."""
        for post in posts:
            params = {"seq": post.position}
            answer = await self._request(
                send_request(self._get_connection(), f"STREAM.MSG.DELETE.{self._names.stream}", Removed, params)
            )
            error = answer.error or Error()
            if not answer.success and error.err_code not in _GONE:
                raise Unreachable(f"The server of the space can't erase now: {error.description or NO_REASON}.")

    async def beat(self, beat: Beat) -> None:
        connection = self._get_connection()
        await connection.publish(f"{self._names.alive}{connection.user}.{self._member}", msgspec.json.encode(beat))

    async def request_turn(self, list: str) -> None:
        want = TurnRequest(self._member, self._round_trip_s)
        await self._get_connection().publish(self._names.want + encode_name(list), msgspec.json.encode(want))
