"""The connections to one server of a space, for statements and notifications. All of them close at the first
inconsistency.

A statement that times out is never cancelled, because a server that waits for its standby would then report success.
Instead, the connections are dropped, and new ones are checked again.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from punchlistd.replication.adapters.link_refusals import build_tls_context, read_private
from punchlistd.replication.adapters.postgres.refusals import FLOOR, Refused, map_error
from punchlistd.replication.port import Forbidden, OutcomeUnknown, SharedLogError, Unreachable
from punchlistd.replication.posts.foreign import convert
from punchlistd.replication.spaces import Space, is_loopback

CONNECT_S = 6.0
"""Timeout for each step of connecting, in seconds."""

REQUEST_S = 2.0
"""Timeout for a statement, in seconds."""

LINES = 2
"""Number of connections for statements. Another connection receives notifications."""

_SESSION = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
SET default_transaction_isolation = 'read committed';
SET search_path = '';
SET statement_timeout = 0;
SET lock_timeout = 0;
SET client_min_messages = 'warning'
"""
"""Settings of each session. They ensure that the server responds only once the change is on its disk and on that of its
standby."""

_NOT_ALLOWED = "42501"
_postgres = cast(Any, asyncpg)


class NotStored(Unreachable):
    """The server reported that it could not store a post."""


class Address(NamedTuple):
    """Address of a database, including the user."""

    host: str
    port: int
    user: str
    database: str

    @classmethod
    def of(cls, url: str) -> "Address":
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or 0, parts.username or "", parts.path[1:])


def read_password(path: str, at: Address) -> str:
    """Return the password for an address from a file in the format of PostgreSQL's `.pgpass`.

    Raises:
        Refused: The file can't be read, is readable by other users, or has no line for the address.
    """
    target = (at.host, str(at.port), at.database, at.user)
    for line in read_private(path, Refused).splitlines():
        fields = [re.sub(r"\\(.)", r"\1", field) for field in re.findall(r"(?:\\.|[^:\\])+", line)]
        if len(fields) == len(target) + 1 and not line.startswith("#"):
            if all(field in ("*", value) for field, value in zip(fields, target, strict=False)):
                return fields[-1]
    raise Refused("creds_malformed", creds=path, user=at.user, host=at.host)


class Connection:
    """Open connections to one server. They are never used again once `ended` is set.

    Attributes:
        url: Address of the server.
        version: The server's version.
        ended: Set when the connections have ended; `why` contains the reason.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.version = ""
        self.ended = asyncio.Event()
        self.why = "it was closed"
        self._all: list[Any] = []
        self._idle: list[Any] = []
        self._free = asyncio.Semaphore(LINES)

    async def open(self, **options: Any) -> None:
        """Connect. The library's exceptions are not converted."""
        for number in range(LINES + 1):
            async with asyncio.timeout(CONNECT_S):
                line = await _postgres.connect(**options)
            self._all.append(line)
            line.add_termination_listener(self._on_termination)
            line.add_log_listener(self._on_log_message)
            if number:
                self._idle.append(line)
            async with asyncio.timeout(CONNECT_S):
                await line.execute(_SESSION)

    async def listen(self, channel: str, handler: Callable[[str], None]) -> None:
        """Call `handler` for each notification on a channel.

        Raises:
            Unreachable: The connection has ended.
        """

        def handle(_line: Any, _process: int, _channel: str, text: str) -> None:
            handler(text)

        try:
            async with asyncio.timeout(REQUEST_S):
                await self._all[0].add_listener(channel, handle)
        except Exception as error:
            self.end("it stopped responding")
            raise Unreachable("The connection to the space was lost.") from error

    async def query(self, statement: str, *values: object, writes: bool = False) -> list[Any]:
        """Run one statement in its own transaction, and return its rows.

        Args:
            statement: The statement.
            values: Its parameters.
            writes: Whether the caller must know if the statement was executed.

        Raises:
            Unreachable: The statement was not executed; or, without `writes`, the server did not respond.
            OutcomeUnknown: The statement may have been executed.
            NotStored: The server could not store the change.
            Forbidden: This member lacks the permission.
        """
        async with self._free:
            if self.ended.is_set():
                raise Unreachable(f"The connection to the space was lost: {self.why}.")
            line = self._idle.pop()
            try:
                return await self._run(line, statement, values)
            except OutcomeUnknown as error:
                if writes:
                    raise
                raise Unreachable(str(error)) from error
            finally:
                self._idle.append(line)

    async def _run(self, line: Any, statement: str, values: tuple[object, ...]) -> list[Any]:
        running: asyncio.Future[list[Any]] = asyncio.ensure_future(line.fetch(statement, *values))
        running.add_done_callback(_retrieve_exception)
        try:
            await asyncio.wait({running}, timeout=REQUEST_S)
        except asyncio.CancelledError:
            self.end("a statement was cancelled")
            raise
        if not running.done():
            self.end("it stopped responding")
            raise OutcomeUnknown("The server did not respond in time.")
        if (error := running.exception()) is not None:
            raise self._map_error(line, error) from error
        if self.ended.is_set():
            raise OutcomeUnknown(f"The connection ended before the server responded: {self.why}.")
        return running.result()

    def _map_error(self, line: Any, error: BaseException) -> SharedLogError:
        if getattr(error, "severity_en", "") == "ERROR" and not line.is_closed():
            state, text = cast(Any, error).sqlstate or "", str(error).partition("\n")[0]
            if state == _NOT_ALLOWED:
                return Forbidden("The space's creds do not allow this: ask its keeper for permission.")
            if state[:2] in ("53", "58", "XX"):
                return NotStored(f"The server of the space can't store posts now: {text}.")
            return Unreachable(f"The server of the space reported an error: {text}.")
        self.end("it was lost")
        return OutcomeUnknown(f"The connection ended before the server responded: {self.why}.")

    def _on_termination(self, _line: Any) -> None:
        self.end("the server ended it")

    def _on_log_message(self, _line: Any, message: Any) -> None:
        # A server that stops waiting for its standby sends a warning and then reports success.
        if message.severity_en == "WARNING":
            self.end("the server warned")

    def end(self, why: str) -> None:
        if self.ended.is_set():
            return
        self.why = why
        self.ended.set()
        for line in self._all:
            line.terminate()


def _retrieve_exception(done: "asyncio.Future[list[Any]]") -> None:
    # Otherwise, asyncio would log the exception of a statement that timed out earlier.
    if not done.cancelled():
        done.exception()


async def connect(space: Space, url: str, name: str) -> Connection:
    """Connect to one server of a space.

    Args:
        space: Configuration of the space; its `ca` replaces the system's certificate authorities.
        url: One of the space's addresses.
        name: Name of this connection in the server's views.

    Raises:
        Refused: The connection failed. Passwords are never sent to a server without TLS, except on this machine.
    """
    at = Address.of(url)
    password = await anyio.to_thread.run_sync(read_password, space.creds, at) if space.creds else ""
    connection = Connection(url)
    encrypted: ssl.SSLContext | bool = False
    try:
        encrypted = (
            await anyio.to_thread.run_sync(_load_tls, space.ca) if space.ca or not is_loopback(at.host) else False
        )
        options = {**at._asdict(), "password": password, "ssl": encrypted, "target_session_attrs": "any"}
        await connection.open(**options, server_settings={"application_name": name})
        (row,) = await connection.query(_GET_VERSION)
        version = convert(row, _Version)
    except Exception as problem:
        connection.end("it failed")
        why = map_error(problem, url, at.host, space.name, encrypted=bool(encrypted))
        raise (Refused("creds_needed", where=url) if why.kind == "unauthorized" and not password else why) from problem
    connection.version = version.text.partition(" ")[0]
    if version.number < FLOOR * 10_000:
        connection.end("it is too old")
        raise Refused("server_too_old", where=url, version=connection.version, floor=FLOOR)
    return connection


class _Version(msgspec.Struct, frozen=True):
    text: str
    number: int


_GET_VERSION = """
SELECT current_setting('server_version') AS text, current_setting('server_version_num')::int AS number
"""


def _load_tls(ca: str) -> ssl.SSLContext:
    try:
        return build_tls_context(ca, ssl.SSLContext)
    except OSError as error:
        raise Refused("bad_ca", ca=ca) from error
