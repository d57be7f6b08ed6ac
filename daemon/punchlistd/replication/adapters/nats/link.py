"""One connection to a space's server: made with TLS and creds, asked by request and answer, ended at the first doubt.

Automatic reconnection of the client library is off. Each new connection repeats all checks, so an outdated server or
a replaced stream is rejected.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
from nats.aio.client import Client

from punchlistd.replication.adapters.link_refusals import tls_settings
from punchlistd.replication.adapters.nats.creds import Creds
from punchlistd.replication.adapters.nats.refusals import FLOOR, NotEncrypted, Refused, refusal
from punchlistd.replication.port import Forbidden, Garbled, OutcomeUnknown, Unreachable
from punchlistd.replication.spaces import Space, is_loopback

CONNECT_S = 3
"""How long each step of making a connection may take, in seconds."""

REQUEST_S = 2.0
"""How long an answer may take, in seconds."""

ASKED_AGAIN_S = 0.25
"""How long after a question it is asked again, in seconds: what is asked while nobody leads is never answered."""

ANYONE = "anyone"
"""The word for a member in subjects where the server knows no members."""

_NO_RESPONDERS = "503"


class Answer(NamedTuple):
    """A message that answers a request."""

    headers: Mapping[str, str]
    data: bytes


class _NotingContext(ssl.SSLContext):
    """A TLS context that records whether a connection has used it."""

    used = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self.used = True
        return super().wrap_bio(*arguments, **options)


class SpaceClient(Client):
    """The library's client, which tries its one server once, and introduces itself only where the line is encrypted."""

    may_introduce: Callable[[], None]

    async def _select_next_server(self) -> None:
        server = self._server_pool[0]
        await self._connect_to_server(server)
        self._current_server = server

    def _connect_command(self) -> bytes:
        self.may_introduce()
        return super()._connect_command()

    # The library stops reading at the first message that it can't decode, and any member can post one.

    async def _process_headers(self, headers: bytes) -> Any:
        try:
            return await super()._process_headers(headers)  # pyright: ignore[reportUnknownMemberType]
        except (ValueError, IndexError):
            return None

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any) -> Any:
        return super()._build_message(sid, _readable(subject), _readable(reply), data, headers)


def _readable(subject: bytes) -> bytes:
    return subject.decode("utf-8", "replace").encode()


class Connection:
    """An open connection; it never comes back once `ended` is set.

    Attributes:
        version: The server's version.
        max_payload: How many bytes a message may have.
        user: The word for this member in subjects.
        ended: Set when the connection can't be used any more; `why` has the reason.
        denied: What the server did not let this member do, in its words.
    """

    def __init__(self, client: Any, url: str, user: str, info: "_ServerInfo") -> None:
        self.version = ".".join(map(str, info.version))
        self.max_payload = info.max_payload
        self.url = url
        self.user = user
        self.ended = asyncio.Event()
        self.why = "it was closed"
        self.denied: list[str] = []
        self._client = client
        self._inbox = f"_INBOX_{user}.{client.new_inbox().rpartition('.')[2]}"
        self._waiting: dict[str, tuple[str, asyncio.Future[Answer] | asyncio.Queue[Answer | None]]] = {}
        self._serial = 0

    @property
    def clustered(self) -> bool:
        return len(self._client.servers) > 1

    async def open(self) -> None:
        """Begin to hear answers.

        Raises:
            Unreachable: The connection has ended.
        """
        with _as_unreachable():
            await self._client.subscribe(f"{self._inbox}.*", cb=self._hear)

    async def subscribe(self, subject: str, hear: Callable[[str, Answer], None]) -> None:
        """Let a function hear every message of a subject, with the subject that it came by.

        Raises:
            Unreachable: The connection has ended.
        """

        async def take(message: Any) -> None:
            hear(message.subject, Answer(message.headers or {}, message.data))

        with _as_unreachable():
            await self._client.subscribe(subject, cb=take)

    async def flush(self) -> float:
        """Wait until the server has seen everything that was sent; how long that took, in seconds.

        Raises:
            Unreachable: It did not answer in time.
        """
        asked = time.monotonic()
        with _as_unreachable():
            await self._client.flush(REQUEST_S)
        return time.monotonic() - asked

    async def publish(self, subject: str, body: bytes) -> None:
        with _as_unreachable():
            await self._client.publish(subject, body)

    async def request(
        self, subject: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, once: bool = False
    ) -> Answer:
        """Ask, and wait for the one answer.

        Args:
            subject: Whom.
            body: What.
            headers: The same.
            once: Send it once: what would be another post if it came twice.

        Raises:
            Unreachable: The request went nowhere.
            OutcomeUnknown: It went out and was not answered.
            Forbidden: The server does not let this member ask.
        """
        if self.ended.is_set():
            raise Unreachable(self.why)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        token = self._expect(subject, future)
        try:
            async with asyncio.timeout(REQUEST_S):
                while not future.done():
                    with _as_unreachable():
                        await self._client.publish(
                            subject, body, f"{self._inbox}.{token}", dict(headers) if headers else None
                        )
                    await asyncio.wait((future,), timeout=None if once else ASKED_AGAIN_S)
                answer = future.result()
        except TimeoutError:
            raise OutcomeUnknown("The server did not answer in time.") from None
        finally:
            self._waiting.pop(token, None)
        if answer.headers.get("Status") == _NO_RESPONDERS:
            raise Unreachable("Nobody answers for the space at this server.")
        return answer

    @contextlib.asynccontextmanager
    async def asking(self, subject: str, body: bytes) -> AsyncGenerator[Callable[[], Awaitable[Answer]]]:
        """Ask for several answers: the block gets a function that waits for the next one.

        Raises:
            Unreachable: The next answer did not come, or the request went nowhere.
            Forbidden: The server does not let this member ask.
        """
        if self.ended.is_set():
            raise Unreachable(self.why)
        queue: asyncio.Queue[Answer | None] = asyncio.Queue()
        token = self._expect(subject, queue)

        async def following() -> Answer:
            try:
                async with asyncio.timeout(REQUEST_S):
                    answer = await queue.get()
            except TimeoutError:
                raise Unreachable("The server did not answer in time.") from None
            if answer is None:
                raise Forbidden(_not_allowed(subject)) if not self.ended.is_set() else Unreachable(self.why)
            return answer

        try:
            with _as_unreachable():
                await self._client.publish(subject, body, f"{self._inbox}.{token}")
            yield following
        finally:
            self._waiting.pop(token, None)

    def end(self, why: str) -> None:
        if self.ended.is_set():
            return
        self.why = why
        self.ended.set()
        for _, waiting in self._waiting.values():
            if isinstance(waiting, asyncio.Queue):
                waiting.put_nowait(None)
            elif not waiting.done():
                waiting.set_exception(OutcomeUnknown(f"The connection ended before the answer came: {why}."))

    async def close(self) -> None:
        """Let go of the socket; a peer that takes nothing any more is not waited for."""
        self.end("it was closed")
        with anyio.move_on_after(1, shield=True), contextlib.suppress(Exception):
            await self._client.close()

    def deny(self, text: str) -> None:
        """The server has said that a message was not let through: tell whoever sent it."""
        self.denied.append(text.lower())
        for subject, waiting in self._waiting.values():
            if f'"{subject.lower()}"' not in text.lower():
                continue
            if isinstance(waiting, asyncio.Queue):
                waiting.put_nowait(None)
            elif not waiting.done():
                waiting.set_exception(Forbidden(_not_allowed(subject)))

    def _expect(self, subject: str, waiting: "asyncio.Future[Answer] | asyncio.Queue[Answer | None]") -> str:
        self._serial += 1
        token = str(self._serial)
        self._waiting[token] = (subject, waiting)
        return token

    async def _hear(self, message: Any) -> None:
        _, waiting = self._waiting.get(message.subject.rpartition(".")[2], ("", None))
        answer = Answer(message.headers or {}, message.data)
        if isinstance(waiting, asyncio.Queue):
            waiting.put_nowait(answer)
        elif waiting is not None and not waiting.done():
            waiting.set_result(answer)


def _not_allowed(subject: str) -> str:
    return f"The space's creds do not allow this ({subject.partition('.')[0]}): ask its keeper for permission."


@contextlib.contextmanager
def _as_unreachable() -> Any:
    """Whatever the library raises while a connection ends under it means that."""
    try:
        yield
    except Exception as error:
        raise Unreachable("The connection to the space was lost.") from error


async def connect(space: Space, url: str, creds: Creds | None, name: str) -> Connection:
    """Connect to one server of a space.

    Args:
        space: What was configured; `ca` names the authorities that are trusted instead of the system's.
        url: One of its addresses.
        creds: Who this is.
        name: What the server's own reports call this connection.

    Raises:
        Refused: It can't be; nothing was sent to a server without TLS, unless it is this machine.
    """
    host = urlsplit(url).hostname or ""
    context = await anyio.to_thread.run_sync(_tls, space.ca)
    connection: Connection | None = None
    client = SpaceClient()

    def may_introduce() -> None:
        if not context.used and not (url.startswith("nats://") and is_loopback(host)):
            raise NotEncrypted

    async def error(problem: Exception) -> None:
        if connection is not None and "permissions violation" in str(problem).lower():
            connection.deny(str(problem))

    async def closed() -> None:
        if connection is not None:
            connection.end("the server ended it" if client.last_error is None else "it was cut")

    client.may_introduce = may_introduce
    try:
        async with asyncio.timeout(4 * CONNECT_S):
            await client.connect(
                [url],
                name=name,
                error_cb=error,
                closed_cb=closed,
                allow_reconnect=False,
                connect_timeout=CONNECT_S,
                ping_interval=3600,  # the way is watched by whoever uses the connection
                pending_size=0,
                tls=context,
                tls_hostname=host,
                **({} if creds is None else _introduction(creds)),
            )
        info = _read_info(client)
    except Exception as problem:
        with anyio.move_on_after(1, shield=True), contextlib.suppress(Exception):
            await client.close()
        why = refusal(problem, url, host)
        raise (Refused("creds_needed", where=url) if why.kind == "unauthorized" and creds is None else why) from problem
    connection = Connection(client, url, ANYONE if creds is None else creds.user, info)
    if info.version[:2] < FLOOR:
        await connection.close()
        raise Refused("server_too_old", where=url, version=connection.version)
    try:
        await connection.open()
    except Unreachable:
        await connection.close()
        raise Refused("unreachable", where=url, cause="the connection was cut") from None
    return connection


class _ServerInfo(NamedTuple):
    """Facts that a server sends when a client connects."""

    version: tuple[int, int, int]
    max_payload: int


def _read_info(client: Any) -> _ServerInfo:
    """Return the facts that the server sent.

    Raises:
        Garbled: It is not a NATS server.
    """
    try:
        found = client.connected_server_version
        version, max_payload = (found.major, found.minor, found.patch), client.max_payload
    except (ValueError, TypeError) as error:
        raise Garbled(f"what answers there is no NATS server: {error}") from error
    if not isinstance(max_payload, int):
        raise Garbled("what answers there is no NATS server: it names no largest payload")
    return _ServerInfo(version, max_payload)


def _introduction(creds: Creds) -> dict[str, Any]:
    if not creds.token:
        return {"nkeys_seed_str": creds.seed}
    return {"signature_cb": creds.sign, "user_jwt_cb": creds.token.encode, "token": None}


def _tls(ca: str) -> _NotingContext:
    try:
        return tls_settings(ca, _NotingContext)
    except OSError as error:
        raise Refused("bad_ca", ca=ca) from error
