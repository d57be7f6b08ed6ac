"""The shared log in NATS JetStream: a stream for each space, a subject for each list."""

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
    ask,
    find,
    list_of,
    read_post,
    read_stored,
    stores,
    word,
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
"""At each so many of these tries the stream is looked at too."""

UNAVAILABLE_S = 3.0
"""A server that answers nothing but that it can't is left for another one after this long, in seconds."""

_WRONG_LAST = frozenset({10071, 10164})
_IN_PROCESS = 10158
_TOO_LARGE = frozenset({10054, 10074})
_NO_MESSAGE = 10037
_GONE = frozenset({10037, 10043, 10057})
NO_REASON = "it does not say why"

PIECE = 512
PIECE_BYTES = 1 << 20
"""Posts, and about how many bytes of them, that are read at a time."""

_T = TypeVar("_T")
_Posts = list[Posted]


class Want(msgspec.Struct, frozen=True):
    """A member's wish for a turn; a post of its takes about that long."""

    member: MemberId
    round_trip_s: RoundTrip


class NatsLog(LinkKeeper[Connection]):
    """A space's shared log.

    Args:
        space: Where it is.
        member: Who this is.
    """

    refused = Refused

    def __init__(self, space: Space, member: str) -> None:
        super().__init__(space, member)
        self._names = Subjects.of(space.name)
        self._failing_since: float | None = None
        self._alone = False  # one server holds the space

    async def _serve(self, url: str) -> Refused:
        connection = await connect(self._space, url, await self._creds(), f"punchlistd {self._member}")
        try:
            found = await find(connection, self._space.name)
            self._alone = found.replicas == 1
            may_post = await self._settle(connection)
            self._connection, self._failing_since = connection, None
            self._show("up", None, connection, may_post)
            logger.info("space %s: up at %s, NATS %s", self._space.name, url, connection.version)
            return await self._watch(connection, found.created)
        finally:
            self._connection = None
            await connection.close()

    async def _creds(self) -> Creds | None:
        return await anyio.to_thread.run_sync(read_creds, self._space.creds) if self._space.creds else None

    async def _settle(self, connection: Connection) -> bool:
        """Hear what happens in the space, and find out whether this member may post there.

        Raises:
            Refused: It may not even read, or the servers can't agree.
        """
        await connection.subscribe(f"{self._names.new}>", self._contained(self._posted))
        await connection.subscribe(f"{self._names.alive}>", self._contained(self._heard_beat))
        await connection.subscribe(f"{self._names.want}>", self._contained(self._wanted))
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
            if not await stores(connection, self._bar(connection)):
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
                if (await find(connection, self._space.name)).created != created:
                    return Refused("replaced", where=connection.url)
                failing = self._failing_since is not None and self._link.may_post
                if not failing or await stores(connection, self._bar(connection)):
                    self._failing_since = None
            except Unreachable:
                return Refused("unreachable", where=connection.url, cause="it stopped answering")
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

    def _contained(self, hear: Callable[[str, Answer], None]) -> Callable[[str, Answer], None]:
        """Rubbish of another member is noted and left: it must end nothing of ours."""

        def contained(subject: str, answer: Answer) -> None:
            try:
                hear(subject, answer)
            except Garbled as error:
                logger.warning("space %s: %r is no message of punchlist: %s", self._space.name, subject[:200], error)

        return contained

    def _posted(self, subject: str, answer: Answer) -> None:
        assert self._listener is not None
        self._listener.on_post(read_post(list_of(subject, self._names.new), answer))

    def _heard_beat(self, _subject: str, answer: Answer) -> None:
        assert self._listener is not None
        self._listener.on_beat(decode(answer.data, Beat))

    def _wanted(self, subject: str, answer: Answer) -> None:
        assert self._listener is not None
        want = decode(answer.data, Want)
        self._listener.on_turn_request(list_of(subject, self._names.want), want.member, want.round_trip_s)

    def _bar(self, connection: Connection) -> str:
        return f"{self._names.bar}{connection.user}.{self._member}"

    async def _asked(self, asking: Awaitable[_T], *, writes: bool = False) -> _T:
        """What a question to the server gives; a run of failures makes the link look elsewhere.

        What writes nothing was not answered, whether it arrived or not.
        """
        try:
            answer = await asking
        except OutcomeUnknown as error:
            self._fail()
            if writes:
                raise
            raise Unreachable(str(error)) from error
        except Unreachable:
            self._fail()
            raise
        self._failing_since = None
        return answer

    async def post(self, list: str, expected: int, nonce: str, body: bytes) -> int:
        connection = self._up_to_post()
        if len(body) + 1024 > connection.max_payload:
            raise TooLarge(len(body), connection.max_payload - 1024)
        headers = {EXPECTED: str(expected), "Nats-Msg-Id": nonce, "Nats-Expected-Stream": self._names.stream}
        asked = time.monotonic()
        asking = connection.request(self._names.log + word(list), body, headers, once=True)
        answer = await self._asked(asking, writes=True)
        try:
            reply = read_stored(answer.data)
        except Garbled as garbled:
            raise OutcomeUnknown(str(garbled)) from garbled
        self._took(asked)
        if (error := reply.error) is None:
            return reply.seq
        code = error.err_code
        if code in _WRONG_LAST:
            raise Conflict("Another post stands there.")
        if code == _IN_PROCESS:
            raise OutcomeUnknown("The same post is under way.")
        if code in _TOO_LARGE:
            raise TooLarge(len(body), connection.max_payload)
        # Of several servers one may be deposed: its answer came first, and its successor may store the post.
        certain = Unreachable if self._alone else OutcomeUnknown
        raise certain(f"The server of the space can't store now: {error.description or code}.")

    async def is_current(self, list: str, position: int) -> bool:
        """Whether this is the position of the last post: a stored barrier says so."""
        connection = self._up()
        headers = {EXPECTED: str(position), f"{EXPECTED}-Subject": self._names.log + word(list), "Nats-TTL": "1s"}
        answer = await self._asked(connection.request(self._bar(connection), b"", headers))
        if (error := read_stored(answer.data).error) is None:
            return True
        if error.err_code in _WRONG_LAST:
            return False
        self._fail()
        raise Unreachable(f"The servers of the space can't agree now: {error.description}.")

    async def last(self, list: str) -> int:
        return await self._asked(self._last(self._up(), list))

    async def _last(self, connection: Connection, list: str) -> int:
        return await self._get(connection, {"last_by_subj": self._names.log + word(list)})

    async def _get(self, connection: Connection, which: dict[str, Any]) -> int:
        answer = await ask(connection, f"STREAM.MSG.GET.{self._names.stream}", Got, which)
        if answer.message is not None:
            return answer.message.seq
        error = answer.error or Error()
        if error.err_code == _NO_MESSAGE:
            return 0
        raise Unreachable(f"The server of the space can't read now: {error.description or NO_REASON}.")

    async def read(self, list: str, after: int, limit: int | None = None) -> _Posts:
        """All posts behind a position, in pieces, up to what the leader says is the last."""
        last = await self.last(list)
        found: _Posts = []
        deadline = time.monotonic() + UNAVAILABLE_S
        while after < last and (limit is None or len(found) < limit):
            piece = await self._asked(self._piece(self._up(), list, after, limit or PIECE))
            found += piece
            if piece:
                after = piece[-1].position
                deadline = time.monotonic() + UNAVAILABLE_S
            elif time.monotonic() > deadline:
                raise Unreachable("The servers of the space lag behind each other.")
            else:
                await asyncio.sleep(0.02)  # what answered is a follower, which gets the rest any moment
        return found

    async def _piece(self, connection: Connection, list: str, after: int, limit: int) -> _Posts:
        subject = self._names.log + word(list)
        asked = {"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": PIECE_BYTES}
        found: _Posts = []
        async with connection.asking(
            f"$JS.API.DIRECT.GET.{self._names.stream}", msgspec.json.encode(asked)
        ) as following:
            # The end of a piece has a status and no position. A stored message may have any status.
            while "Nats-Sequence" in (answer := await following()).headers:
                found.append(read_post(list, answer))
        return found

    async def lists(self) -> list[str]:
        offset, names = 0, set[str]()
        while True:
            connection = self._up()
            asked = {"subjects_filter": f"{self._names.log}>", "offset": offset}
            answer = await self._asked(ask(connection, f"STREAM.INFO.{self._names.stream}", Info, asked))
            if answer.error is not None:
                raise Unreachable(f"The server of the space can't say: {answer.error.description}.")
            subjects = answer.state.subjects or {}
            for subject in subjects:
                with contextlib.suppress(Garbled):
                    names.add(list_of(subject, self._names.log))
            offset += len(subjects)
            if offset >= answer.total or not subjects:
                return sorted(names)

    async def erase(self, list: str, before: int) -> None:
        """Overwrite the posts before a position on the disks of all servers, one by one."""
        await self.remove(list, [post for post in await self.read(list, 0) if post.position < before])

    async def remove(self, list: str, posts: Sequence[Posted]) -> None:
        """Overwrite posts on the disks of all servers, one by one; no position is ever used again."""
        for post in posts:
            asked = {"seq": post.position}
            answer = await self._asked(ask(self._up(), f"STREAM.MSG.DELETE.{self._names.stream}", Removed, asked))
            error = answer.error or Error()
            if not answer.success and error.err_code not in _GONE:
                raise Unreachable(f"The server of the space can't erase now: {error.description or NO_REASON}.")

    async def beat(self, beat: Beat) -> None:
        connection = self._up()
        await connection.publish(f"{self._names.alive}{connection.user}.{self._member}", msgspec.json.encode(beat))

    async def request_turn(self, list: str) -> None:
        want = Want(self._member, self._round_trip_s)
        await self._up().publish(self._names.want + word(list), msgspec.json.encode(want))
