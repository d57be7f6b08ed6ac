"""The connections to one server of a space: asked by statement and rows, all ended at the first doubt.

A statement that is not answered in time is never cancelled: a server that waits for its standby would take that for
leave to say "done". The connections are dropped instead, and what is made next is checked anew.
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

from punchlistd.replication.adapters.link_refusals import read_private, tls_settings
from punchlistd.replication.adapters.postgres.refusals import FLOOR, Refused, refusal
from punchlistd.replication.port import Forbidden, OutcomeUnknown, SharedLogError, Unreachable
from punchlistd.replication.posts.foreign import convert
from punchlistd.replication.spaces import Space, is_loopback

CONNECT_S = 6.0
"""How long making a connection may take, in seconds."""

REQUEST_S = 2.0
"""How long an answer may take, in seconds."""

LINES = 2
"""So many statements run at once; one connection more listens."""

_SESSION = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
SET default_transaction_isolation = 'read committed';
SET search_path = '';
SET statement_timeout = 0;
SET lock_timeout = 0;
SET client_min_messages = 'warning'
"""
"""Settings of each session, so that a response means that the change is on the server's disk and its standby's."""

_NOT_ALLOWED = "42501"
_postgres = cast(Any, asyncpg)


class NotStored(Unreachable):
    """The server could not store a post, of which it is certain."""


class Address(NamedTuple):
    """Where a server is, and who is let in there."""

    host: str
    port: int
    user: str
    database: str

    @classmethod
    def of(cls, url: str) -> "Address":
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or 0, parts.username or "", parts.path[1:])


def read_password(path: str, at: Address) -> str:
    """The password for an address in a file of the form that PostgreSQL's own programs read (`.pgpass`).

    Raises:
        Refused: It can't be read, others may read it, or it has no such line.
    """
    wanted = (at.host, str(at.port), at.database, at.user)
    for line in read_private(path, Refused).splitlines():
        fields = [re.sub(r"\\(.)", r"\1", field) for field in re.findall(r"(?:\\.|[^:\\])+", line)]
        if len(fields) == len(wanted) + 1 and not line.startswith("#"):
            if all(given in ("*", asked) for given, asked in zip(fields, wanted, strict=False)):
                return fields[-1]
    raise Refused("creds_malformed", creds=path, user=at.user, host=at.host)


class Connection:
    """Open connections to one server; none comes back once `ended` is set.

    Attributes:
        url: Where the server is.
        version: The server's version.
        ended: Set when they can't be used any more; `why` has the reason.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.version = ""
        self.ended = asyncio.Event()
        self.why = "it was closed"
        self._all: list[Any] = []
        self._idle: list[Any] = []
        self._free = asyncio.Semaphore(LINES)

    async def open(self, **how: Any) -> None:
        """Connect; whatever the library raises goes through."""
        for number in range(LINES + 1):
            async with asyncio.timeout(CONNECT_S):
                line = await _postgres.connect(**how)
            self._all.append(line)
            line.add_termination_listener(self._ended)
            line.add_log_listener(self._warned)
            if number:
                self._idle.append(line)
            async with asyncio.timeout(CONNECT_S):
                await line.execute(_SESSION)

    async def listen(self, channel: str, hear: Callable[[str], None]) -> None:
        """Let a function hear every notification of a channel.

        Raises:
            Unreachable: The connection has ended.
        """

        def heard(_line: Any, _process: int, _channel: str, text: str) -> None:
            hear(text)

        try:
            async with asyncio.timeout(REQUEST_S):
                await self._all[0].add_listener(channel, heard)
        except Exception as error:
            self.end("it stopped answering")
            raise Unreachable("The connection to the space was lost.") from error

    async def ask(self, statement: str, *values: object, writes: bool = False) -> list[Any]:
        """Run one statement, a transaction of its own; its rows.

        Args:
            statement: what to run.
            values: its parameters.
            writes: whether it matters if it was done without an answer.

        Raises:
            Unreachable: It was not done; or was not answered, if it writes nothing.
            OutcomeUnknown: It may have been done.
            NotStored: The server could not.
            Forbidden: This member may not.
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
        running.add_done_callback(_seen)
        try:
            await asyncio.wait({running}, timeout=REQUEST_S)
        except asyncio.CancelledError:
            self.end("nobody waited for the answer any more")
            raise
        if not running.done():
            self.end("it stopped answering")
            raise OutcomeUnknown("The server did not answer in time.")
        if (error := running.exception()) is not None:
            raise self._meaning(line, error) from error
        if self.ended.is_set():
            raise OutcomeUnknown(f"The connection ended before the answer came: {self.why}.")
        return running.result()

    def _meaning(self, line: Any, error: BaseException) -> SharedLogError:
        if getattr(error, "severity_en", "") == "ERROR" and not line.is_closed():
            state, text = cast(Any, error).sqlstate or "", str(error).partition("\n")[0]
            if state == _NOT_ALLOWED:
                return Forbidden("The space's creds do not allow this: ask its keeper for permission.")
            if state[:2] in ("53", "58", "XX"):
                return NotStored(f"The server of the space can't store now: {text}.")
            return Unreachable(f"The server of the space refused: {text}.")
        self.end("it was cut")
        return OutcomeUnknown(f"The connection ended before the answer came: {self.why}.")

    def _ended(self, _line: Any) -> None:
        self.end("the server ended it")

    def _warned(self, _line: Any, message: Any) -> None:
        """A server that gives up waiting for its standby warns, and says "done" all the same."""
        if message.severity_en == "WARNING":
            self.end("the server warned")

    def end(self, why: str) -> None:
        if self.ended.is_set():
            return
        self.why = why
        self.ended.set()
        for line in self._all:
            line.terminate()


def _seen(done: "asyncio.Future[list[Any]]") -> None:
    """An error that nobody waits for any more is none of the daemon's."""
    if not done.cancelled():
        done.exception()


async def connect(space: Space, url: str, name: str) -> Connection:
    """Connect to one server of a space.

    Args:
        space: What was configured; `ca` names the authorities that are trusted instead of the system's.
        url: One of its addresses.
        name: What the server's own reports call this connection.

    Raises:
        Refused: It can't be; nothing was sent to a server without TLS, unless it is this machine.
    """
    at = Address.of(url)
    password = await anyio.to_thread.run_sync(read_password, space.creds, at) if space.creds else ""
    connection = Connection(url)
    encrypted: ssl.SSLContext | bool = False
    try:
        encrypted = await anyio.to_thread.run_sync(_tls, space.ca) if space.ca or not is_loopback(at.host) else False
        how = {**at._asdict(), "password": password, "ssl": encrypted, "target_session_attrs": "any"}
        await connection.open(**how, server_settings={"application_name": name})
        (row,) = await connection.ask("SELECT current_setting('server_version') AS words, " + _NUMBER)
        found = convert(row, _Version)
    except Exception as problem:
        connection.end("it was refused")
        why = refusal(problem, url, at.host, space.name, encrypted=bool(encrypted))
        raise (Refused("creds_needed", where=url) if why.kind == "unauthorized" and not password else why) from problem
    connection.version = found.words.partition(" ")[0]
    if found.number < FLOOR * 10_000:
        connection.end("it is too old")
        raise Refused("server_too_old", where=url, version=connection.version, floor=FLOOR)
    return connection


class _Version(msgspec.Struct, frozen=True):
    words: str
    number: int


_NUMBER = "current_setting('server_version_num')::int AS number"


def _tls(ca: str) -> ssl.SSLContext:
    try:
        return tls_settings(ca, ssl.SSLContext)
    except OSError as error:
        raise Refused("bad_ca", ca=ca) from error
