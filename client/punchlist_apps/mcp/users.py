"""The users whom one server serves: which of them a request may name, and a bound connection for each.

Users are kept apart by the daemon, which binds a connection to its user; nothing here filters what a tool sees.
"""

import json
import math
import os
import stat
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from hmac import compare_digest
from typing import NamedTuple, cast

import anyio

from punchlist.clients.aio import AsyncClient
from punchlist.tools.model import Problem
from punchlist.tools.toolbox import AsyncToolbox
from punchlist_apps.common.http.secret_file import Reporter

USER_KEY = "punchlist/user"
"""A member of a request's `_meta` that names the user of this call, for tools that take no `user_id`."""

GRANT_KEY = "punchlist.grant"
"""Where in an HTTP request's scope the grant of its token stands."""

MAX_CONNECTIONS = 64
"""How many users have a connection at the same time; one more waits until a call of another ends."""

IDLE_S = 300.0
"""How long a connection that is not used is kept, in seconds."""

_MAX_NAME = 128
_MIN_TOKEN = 16
_OTHERS_MODE = 0o077


class Grant(NamedTuple):
    """What a token allows: `users` are those whom it may name, None for all of them."""

    users: frozenset[str] | None = None

    def covers(self, other: "Grant") -> bool:
        return self.users is None or (other.users is not None and self.users >= other.users)


ALL_USERS = Grant()


class UsersFile:
    """Tokens and the users whom each may name, in a file of ours alone: `{"TOKEN": ["ann", "bob"], "TOKEN": "*"}`.

    It is read again when it has changed. A file that others could read, that is not ours, or that is no such table
    lets nobody in.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reporter = Reporter()
        self._stamp: tuple[int, int] | None = None
        self._grants: dict[bytes, Grant] = {}

    def find_grant(self, given: bytes) -> Grant | None:
        """What a token allows, None if it is none. All tokens are compared, each in constant time."""
        found = None
        try:
            for token, grant in self._read().items():
                if compare_digest(token, given):
                    found = grant
        except OSError as error:
            self._reporter.report(f"{self._path} can't be read ({error.strerror}); put the file in place again")
            return None
        except ValueError as error:
            self._reporter.report(str(error))
            return None
        self._reporter.report("")
        return found

    def check(self) -> None:
        """Read the file.

        Raises:
            OSError: It can't be read.
            ValueError: It is not private, or no table of tokens; the text says what to do.
        """
        self._stamp = None
        self._read()

    def _read(self) -> dict[bytes, Grant]:
        with open(self._path, "rb") as file:
            status = os.fstat(file.fileno())
            stamp = (status.st_ctime_ns, status.st_ino)  # not mtime: chmod and chown leave that as it is
            if stamp != self._stamp:
                self._grants = {}
                is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if not is_ours or status.st_mode & _OTHERS_MODE:
                    raise ValueError(f"{self._path} must be a file of yours that nobody else can read: chmod 600")
                self._grants = _parse_grants(self._path, file.read())
                self._stamp = stamp
        return self._grants


def _parse_grants(path: str, text: bytes) -> dict[bytes, Grant]:
    said = f'{path} must be a JSON object of tokens and their users: {{"TOKEN": ["ann", "bob"], "OTHER": "*"}}'
    try:
        table: object = json.loads(text)
    except ValueError:
        raise ValueError(said) from None
    if not isinstance(table, dict) or not table:
        raise ValueError(said)
    grants: dict[bytes, Grant] = {}
    for token, users in cast("dict[str, object]", table).items():
        if len(token) < _MIN_TOKEN or not token.isascii():
            raise ValueError(f"{path}: a token must have at least {_MIN_TOKEN} ASCII characters")
        if users == "*":
            grants[token.encode()] = ALL_USERS
        elif isinstance(users, list) and users and all(map(is_user, cast("list[object]", users))):
            grants[token.encode()] = Grant(frozenset(cast("list[str]", users)))
        else:
            raise ValueError(said)
    return grants


def is_user(name: object) -> bool:
    """Whether this can name a user: 1 to 128 printable characters."""
    return isinstance(name, str) and 0 < len(name) <= _MAX_NAME and name.isprintable() and "\ufffd" not in name


def select_user(grant: Grant, named: Sequence[object]) -> str | None:
    """The user of a call; None where a token for all names nobody.

    Raises:
        Problem: The token is not for this user, or the call does not say for which one of several it is.
    """
    users = list[str]()
    for name in named:
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
    """A client that is bound to a user, and its tools."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.box = AsyncToolbox(client)
        self.calls = 0
        """How many calls use it now."""
        self.used_at = 0.0


class Users:
    """A bound client for each user, made at their first call, kept while it is used.

    Args:
        most: How many there are at most.
        idle_s: How long one that is not used is kept, in seconds.
    """

    def __init__(self, client: AsyncClient, most: int = MAX_CONNECTIONS, idle_s: float = IDLE_S) -> None:
        self._client = client
        self._most = most
        self._idle_s = idle_s
        self._kept: OrderedDict[str, UserConnection] = OrderedDict()
        self._freed = anyio.Event()

    def __len__(self) -> int:
        """Return the title and the number of connected agents."""
        return len(self._kept)

    @asynccontextmanager
    async def connect(self, user: str) -> AsyncGenerator[UserConnection]:
        while (bound := self._kept.get(user)) is None:
            if len(self._kept) < self._most:
                bound = self._kept[user] = UserConnection(self._client.as_user(user))
                break
            if not await self._close(at_most=1):
                await self._freed.wait()
        self._kept.move_to_end(user)
        bound.calls += 1
        try:
            yield bound
        finally:
            bound.calls -= 1
            bound.used_at = anyio.current_time()
            freed, self._freed = self._freed, anyio.Event()
            freed.set()

    async def run(self) -> None:
        """Close what nobody uses, until cancelled; then all of them."""
        try:
            while True:
                await anyio.sleep(self._idle_s / 2)
                await self._close(anyio.current_time() - self._idle_s)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _close(self, before: float = math.inf, at_most: int | None = None) -> int:
        """Close clients that no call has used since `before`, those first that were used longest ago; how many."""
        idle = [user for user, bound in self._kept.items() if not bound.calls and bound.used_at < before][:at_most]
        for bound in [self._kept.pop(user) for user in idle]:
            await bound.client.aclose()
        return len(idle)
