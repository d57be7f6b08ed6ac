"""A connection to a space's server, with TLS and creds. It sends requests, and closes at the first inconsistency.

The client library's automatic reconnection is turned off. Each new connection repeats all checks, so that an outdated
server or a replaced stream is rejected.
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

from punchlistd.replication.adapters.link_refusals import build_tls_context
from punchlistd.replication.adapters.nats.creds import Creds
from punchlistd.replication.adapters.nats.refusals import FLOOR, NotEncrypted, Refused, map_error
from punchlistd.replication.port import Forbidden, Garbled, OutcomeUnknown, Unreachable
from punchlistd.replication.spaces import Space, is_loopback

CONNECT_S = 3
"""Timeout for each step of connecting, in seconds."""

REQUEST_S = 2.0
"""Timeout for a request, in seconds."""

RESEND_S = 0.25
"""Delay before an unanswered request is sent again, in seconds. Servers without a leader never reply to requests."""

ANYONE = "anyone"
"""Placeholder for the member in subjects if the server does not authenticate members."""

_NO_RESPONDERS = "503"


class Answer(NamedTuple):
    """A received message, such as the reply to a request."""

    headers: Mapping[str, str]
    data: bytes


class _RecordingContext(ssl.SSLContext):
    """A TLS context that records whether a connection has used it."""

    used = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self.used = True
        return super().wrap_bio(*arguments, **options)


class SpaceClient(Client):
    """The library's client, except that it tries one server once, and checks for encryption before it sends creds.

    Attributes:
        check_encryption: Called before the client sends its creds. An exception ends the attempt.
    """

    check_encryption: Callable[[], None]

    async def _select_next_server(self) -> None:
        server = self._server_pool[0]
        await self._connect_to_server(server)
        self._current_server = server

    def _connect_command(self) -> bytes:
        self.check_encryption()
        return super()._connect_command()

    # Any member can post a message that the library can't decode. The library would then stop reading.

    async def _process_headers(self, headers: bytes) -> Any:
        try:
            return await super()._process_headers(headers)  # pyright: ignore[reportUnknownMemberType]
        except (ValueError, IndexError):
            return None

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any) -> Any:
        return super()._build_message(sid, _sanitize(subject), _sanitize(reply), data, headers)


def _sanitize(subject: bytes) -> bytes:
    return subject.decode("utf-8", "replace").encode()


class Connection:
    """An open connection. It is never used again once `ended` is set.

    Attributes:
        version: The server's version.
        max_payload: Maximum size of a message, in bytes.
        user: Name that identifies this member in subjects.
        ended: Set when the connection has ended; `why` contains the reason.
        denied: The server's messages about missing permissions, in lower case.
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
        """Subscribe to the replies to requests.

        Raises:
            Unreachable: The connection has ended.
        """
        with _as_unreachable():
            await self._client.subscribe(f"{self._inbox}.*", cb=self._on_reply)

    async def subscribe(self, subject: str, handler: Callable[[str, Answer], None]) -> None:
        """Call `handler` with each message sent to a subject and the message's exact subject.

        Raises:
            Unreachable: The connection has ended.
        """

        async def handle(message: Any) -> None:
            handler(message.subject, Answer(message.headers or {}, message.data))

        with _as_unreachable():
            await self._client.subscribe(subject, cb=handle)

    async def flush(self) -> float:
        """Wait until the server has received all sent messages, and return how long that took in seconds.

        Raises:
            Unreachable: The server did not respond in time.
        """
        sent_at = time.monotonic()
        with _as_unreachable():
            await self._client.flush(REQUEST_S)
        return time.monotonic() - sent_at

    async def publish(self, subject: str, body: bytes) -> None:
        with _as_unreachable():
            await self._client.publish(subject, body)

    async def request(
        self, subject: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, once: bool = False
    ) -> Answer:
        """Send a request and return the reply.

        Args:
            subject: Subject of the request.
            body: Body of the request.
            headers: Headers of the request.
            once: Whether to send the request only once, because a second copy would be another post.

        Raises:
            Unreachable: The request was not sent, or no server accepted it.
            OutcomeUnknown: The request was sent, but the server did not reply.
            Forbidden: This member lacks the permission.
        """
        if self.ended.is_set():
            raise Unreachable(self.why)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        token = self._register(subject, future)
        try:
            async with asyncio.timeout(REQUEST_S):
                while not future.done():
                    with _as_unreachable():
                        await self._client.publish(
                            subject, body, f"{self._inbox}.{token}", dict(headers) if headers else None
                        )
                    await asyncio.wait((future,), timeout=None if once else RESEND_S)
                answer = future.result()
        except TimeoutError:
            raise OutcomeUnknown("The server did not respond in time.") from None
        finally:
            self._waiting.pop(token, None)
        if answer.headers.get("Status") == _NO_RESPONDERS:
            raise Unreachable("This server has no responder for the space.")
        return answer

    @contextlib.asynccontextmanager
    async def request_many(self, subject: str, body: bytes) -> AsyncGenerator[Callable[[], Awaitable[Answer]]]:
        """Send a request that has several replies. The `with` block gets a function that returns the next reply.

        Raises:
            Unreachable: The request was not sent, or the next reply did not arrive in time.
            Forbidden: This member lacks the permission.
        """
        if self.ended.is_set():
            raise Unreachable(self.why)
        queue: asyncio.Queue[Answer | None] = asyncio.Queue()
        token = self._register(subject, queue)

        async def receive() -> Answer:
            try:
                async with asyncio.timeout(REQUEST_S):
                    answer = await queue.get()
            except TimeoutError:
                raise Unreachable("The server did not respond in time.") from None
            if answer is None:
                raise Forbidden(_describe_denial(subject)) if not self.ended.is_set() else Unreachable(self.why)
            return answer

        try:
            with _as_unreachable():
                await self._client.publish(subject, body, f"{self._inbox}.{token}")
            yield receive
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
                waiting.set_exception(OutcomeUnknown(f"The connection ended before the server responded: {why}."))

    async def close(self) -> None:
        """Close the socket. Before that, wait at most a second for the peer to read buffered data."""
        self.end("it was closed")
        with anyio.move_on_after(1, shield=True), contextlib.suppress(Exception):
            await self._client.close()

    def record_denial(self, text: str) -> None:
        """Record a server message about a missing permission, and fail the requests that it names."""
        self.denied.append(text.lower())
        for subject, waiting in self._waiting.values():
            if f'"{subject.lower()}"' not in text.lower():
                continue
            if isinstance(waiting, asyncio.Queue):
                waiting.put_nowait(None)
            elif not waiting.done():
                waiting.set_exception(Forbidden(_describe_denial(subject)))

    def _register(self, subject: str, waiting: "asyncio.Future[Answer] | asyncio.Queue[Answer | None]") -> str:
        self._serial += 1
        token = str(self._serial)
        self._waiting[token] = (subject, waiting)
        return token

    async def _on_reply(self, message: Any) -> None:
        _, waiting = self._waiting.get(message.subject.rpartition(".")[2], ("", None))
        answer = Answer(message.headers or {}, message.data)
        if isinstance(waiting, asyncio.Queue):
            waiting.put_nowait(answer)
        elif waiting is not None and not waiting.done():
            waiting.set_result(answer)


def _describe_denial(subject: str) -> str:
    return f"The space's creds do not allow this ({subject.partition('.')[0]}): ask its keeper for permission."


@contextlib.contextmanager
def _as_unreachable() -> Any:
    """Convert any exception of the library to Unreachable. The library raises exceptions of many types when a
    connection ends."""
    try:
        yield
    except Exception as error:
        raise Unreachable("The connection to the space was lost.") from error


async def connect(space: Space, url: str, creds: Creds | None, name: str) -> Connection:
    """Connect to one server of a space.

    Args:
        space: Configuration of the space; its `ca` replaces the system's certificate authorities.
        url: One of the space's addresses.
        creds: Creds of this member.
        name: Name of this connection in the server's monitoring.

    Raises:
        Refused: The connection failed. Creds are never sent to a server without TLS, except on this machine.
    """
    host = urlsplit(url).hostname or ""
    context = await anyio.to_thread.run_sync(_load_tls, space.ca)
    connection: Connection | None = None
    client = SpaceClient()

    def check_encryption() -> None:
        if not context.used and not (url.startswith("nats://") and is_loopback(host)):
            raise NotEncrypted

    async def error(problem: Exception) -> None:
        if connection is not None and "permissions violation" in str(problem).lower():
            connection.record_denial(str(problem))

    async def closed() -> None:
        if connection is not None:
            connection.end("the server ended it" if client.last_error is None else "it was lost")

    client.check_encryption = check_encryption
    try:
        async with asyncio.timeout(4 * CONNECT_S):
            await client.connect(
                [url],
                name=name,
                error_cb=error,
                closed_cb=closed,
                allow_reconnect=False,
                connect_timeout=CONNECT_S,
                ping_interval=3600,  # `NatsLog` watches the connection itself
                pending_size=0,
                tls=context,
                tls_hostname=host,
                **({} if creds is None else _connect_options(creds)),
            )
        info = _read_info(client)
    except Exception as problem:
        with anyio.move_on_after(1, shield=True), contextlib.suppress(Exception):
            await client.close()
        why = map_error(problem, url, host)
        raise (Refused("creds_needed", where=url) if why.kind == "unauthorized" and creds is None else why) from problem
    connection = Connection(client, url, ANYONE if creds is None else creds.user, info)
    if info.version[:2] < FLOOR:
        await connection.close()
        raise Refused("server_too_old", where=url, version=connection.version)
    try:
        await connection.open()
    except Unreachable:
        await connection.close()
        raise Refused("unreachable", where=url, cause="the connection was lost") from None
    return connection


class _ServerInfo(NamedTuple):
    """Information that a server sends when a client connects."""

    version: tuple[int, int, int]
    max_payload: int


def _read_info(client: Any) -> _ServerInfo:
    """Return the information that the server sent.

    Raises:
        Garbled: The server is not a NATS server.
    """
    try:
        server = client.connected_server_version
        version, max_payload = (server.major, server.minor, server.patch), client.max_payload
    except (ValueError, TypeError) as error:
        raise Garbled(f"the server at this address is not a NATS server: {error}") from error
    if not isinstance(max_payload, int):
        raise Garbled("the server at this address is not a NATS server: it reports no maximum payload")
    return _ServerInfo(version, max_payload)


def _connect_options(creds: Creds) -> dict[str, Any]:
    if not creds.token:
        return {"nkeys_seed_str": creds.seed}
    return {"signature_cb": creds.sign, "user_jwt_cb": creds.token.encode, "token": None}


def _load_tls(ca: str) -> _RecordingContext:
    try:
        return build_tls_context(ca, _RecordingContext)
    except OSError as error:
        raise Refused("bad_ca", ca=ca) from error
