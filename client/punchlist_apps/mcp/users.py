"""The users of one server: which users a request may name, and a connection for each user.

The daemon isolates users, because each connection is limited to its user. This module itself doesn't filter
anything.
"""

import json
import math
import os
import stat
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple, cast

import anyio
import msgspec

from punchlist.clients.aio import AsyncClient
from punchlist.tools.agent_memory import AgentWork, Memory
from punchlist.tools.model import Problem
from punchlist.tools.toolbox import AsyncToolbox
from punchlist_apps.common.http.secret_file import Reporter

USER_KEY = "punchlist/user"
"""Member of a request's `_meta` with the user of the call, for tools that have no `user_id` parameter."""

GRANT_KEY = "punchlist.grant"
"""Key in an HTTP request's scope for the grant of its token."""

MAX_CONNECTIONS = 64
"""Maximum number of users with a connection. The next user waits until all calls of another user have ended."""

IDLE_S = 300.0
"""Time after which an unused connection is closed, in seconds."""

_MAX_NAME = 128
_MIN_TOKEN = 16
_OTHERS_MODE = 0o077


class Grant(NamedTuple):
    """The rights of a token.

    Attributes:
        users: Users that requests with the token may name; None for all.
    """

    users: frozenset[str] | None = None

    def covers(self, other: "Grant") -> bool:
        return self.users is None or (other.users is not None and self.users >= other.users)


ALL_USERS = Grant()


class UsersFile:
    """A private file of tokens and the users that each may name: `{"TOKEN": ["ann", "bob"], "TOKEN": "*"}`.

    The file is read again after it changes. If the file is invalid, or if other users own it or can read it, all tokens
    are rejected.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reporter = Reporter()
        self._stamp: tuple[int, int] | None = None
        self._grants: dict[bytes, Grant] = {}

    def find_grant(self, token: bytes) -> Grant | None:
        """Return the grant of a token, or None if it is invalid or the file can't be used."""
        try:
            return self._find(lambda valid_token: compare_digest(valid_token, token))
        except ValueError:
            return None

    def find_grant_by_digest(self, digest: str) -> Grant | None:
        """Return the grant of the token with this digest, or None if no valid token has it.

        Raises:
            ValueError: The file can't be used at the moment, so the token may still be valid.
        """
        return self._find(lambda valid_token: hash_token(valid_token) == digest)

    def _find(self, is_match: Callable[[bytes], bool]) -> Grant | None:
        match, problem = None, ""
        try:
            # Compare all tokens, each in constant time, so that the time reveals nothing about them.
            for valid_token, grant in self._read().items():
                if is_match(valid_token):
                    match = grant
        except OSError as error:
            problem = f"{self._path} can't be read ({error.strerror}); put the file in place again"
        except ValueError as error:
            problem = str(error)
        self._reporter.report(problem)
        if problem:
            raise ValueError(problem)
        return match

    def check(self) -> None:
        """Read the file.

        Raises:
            OSError: The file can't be read.
            ValueError: The file isn't private, or isn't a table of tokens. The message includes advice.
        """
        self._stamp = None
        self._read()

    def _read(self) -> dict[bytes, Grant]:
        with open(self._path, "rb") as file:
            status = os.fstat(file.fileno())
            stamp = (status.st_ctime_ns, status.st_ino)  # not mtime, because chmod and chown don't change it
            if stamp != self._stamp:
                self._grants = {}
                is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if not is_ours or status.st_mode & _OTHERS_MODE:
                    raise ValueError(f"{self._path} must belong to you and be readable only by you: chmod 600")
                self._grants = _parse_grants(self._path, file.read())
                self._stamp = stamp
        return self._grants


def _parse_grants(path: str, text: bytes) -> dict[bytes, Grant]:
    message = f'{path} must be a JSON object of tokens and their users: {{"TOKEN": ["ann", "bob"], "OTHER": "*"}}'
    try:
        table: object = json.loads(text)
    except ValueError:
        raise ValueError(message) from None
    if not isinstance(table, dict) or not table:
        raise ValueError(message)
    grants: dict[bytes, Grant] = {}
    for token, users in cast("dict[str, object]", table).items():
        if len(token) < _MIN_TOKEN or not token.isascii():
            raise ValueError(f"{path}: a token must have at least {_MIN_TOKEN} ASCII characters")
        if users == "*":
            grants[token.encode()] = ALL_USERS
        elif isinstance(users, list) and users and all(map(is_user, cast("list[object]", users))):
            grants[token.encode()] = Grant(frozenset(cast("list[str]", users)))
        else:
            raise ValueError(message)
    return grants


def hash_token(token: bytes) -> str:
    """Return what is stored of a token."""
    return sha256(b"webhook\0" + token).hexdigest()


def is_user(name: object) -> bool:
    """Return whether this is a valid user name, which has 1 to 128 printable characters."""
    return isinstance(name, str) and 0 < len(name) <= _MAX_NAME and name.isprintable() and "\ufffd" not in name


def select_user(grant: Grant, names: Sequence[object]) -> str | None:
    """Return the user of a call; None if the call names no user and its token is for all users.

    Raises:
        Problem: The token isn't for this user, or it is for several users and the call names none.
    """
    users = list[str]()
    for name in names:
        if not isinstance(name, str) or not is_user(name):
            raise Problem("invalid_arguments", f"user_id must be 1 to {_MAX_NAME} printable characters")
        if grant.users is not None and name not in grant.users:
            raise Problem("forbidden", f"this server's token does not allow the user {name!r}")
        users.append(name)
    if len(set(users)) > 1:
        raise Problem("invalid_arguments", f"user_id and {USER_KEY} in _meta name different users")
    if users:
        return users[0]
    if grant.users is None:
        return None
    if len(grant.users) > 1:
        raise Problem("forbidden", f"this server's token is for several users: name one as {USER_KEY} in _meta")
    return next(iter(grant.users))


class UserConnection:
    """A client that is limited to one user, and its tools.

    Attributes:
        calls: Number of running calls.
        used_at: Time at which the last call ended, on the event loop's clock in seconds.
    """

    def __init__(self, client: AsyncClient, work: Iterable[AgentWork] = (), user: str = "") -> None:
        self.client = client
        self._user = user
        self._memory = Memory(part for part in work if part.user == user)
        self.box = AsyncToolbox(client, memory=self._memory)
        self.calls = 0
        self.used_at = 0.0

    def save_work(self) -> list[AgentWork]:
        """Return what the agents work on, for another process."""
        return [msgspec.structs.replace(part, user=self._user) for part in self._memory.save_work()]


class Users:
    """A connection for each user, opened by the user's first call and closed when unused for some time.

    Args:
        max_connections: Maximum number of connections.
        idle_s: Time after which an unused connection is closed, in seconds.
        work: What the agents worked on when another process ended.
    """

    def __init__(
        self,
        client: AsyncClient,
        max_connections: int = MAX_CONNECTIONS,
        idle_s: float = IDLE_S,
        work: Sequence[AgentWork] = (),
    ) -> None:
        self._client = client
        self._work = work
        self._max_connections = max_connections
        self._idle_s = idle_s
        self._connections: OrderedDict[str, UserConnection] = OrderedDict()
        """By user, least recently used first."""
        self._released = anyio.Event()

    def __len__(self) -> int:
        return len(self._connections)

    @asynccontextmanager
    async def connect(self, user: str) -> AsyncGenerator[UserConnection]:
        """Use a user's connection for a call. Waits if all connections are in use by other users."""
        while (connection := self._connections.get(user)) is None:
            if len(self._connections) < self._max_connections:
                connection = self._connections[user] = UserConnection(self._client.as_user(user), self._work, user)
                break
            if not await self._close(max_count=1):
                await self._released.wait()
        self._connections.move_to_end(user)
        connection.calls += 1
        try:
            yield connection
        finally:
            connection.calls -= 1
            connection.used_at = anyio.current_time()
            released, self._released = self._released, anyio.Event()
            released.set()

    def save_work(self) -> list[AgentWork]:
        """Return what the agents of all users work on, for another process."""
        return [part for connection in self._connections.values() for part in connection.save_work()]

    async def run(self) -> None:
        """Close idle connections until cancelled, then close all connections."""
        try:
            while True:
                await anyio.sleep(self._idle_s / 2)
                await self._close(anyio.current_time() - self._idle_s)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _close(self, before: float = math.inf, max_count: int | None = None) -> int:
        """Close connections that were last used before a given time, least recently used first. Return their number."""
        users = [
            user
            for user, connection in self._connections.items()
            if not connection.calls and connection.used_at < before
        ][:max_count]
        for connection in [self._connections.pop(user) for user in users]:
            await connection.client.aclose()
        return len(users)
