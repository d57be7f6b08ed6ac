"""Whom a request speaks for: its token's scope, and the connection to the daemon that goes with it."""

from collections import OrderedDict

from starlette.requests import Request

from punchlist.aio import AsyncClient
from punchlist.http.guard import values
from punchlist.http.keys import Keys, Scope
from punchlist.http.problem import Refused

MOST_USERS = 64
"""Of so many users a connection is kept."""

_READING = frozenset({"GET", "HEAD"})


class Access:
    """Finds out what a request may do.

    Args:
        client: The connection for tokens that are for no user in particular.
        keys: Reads tokens.
        person: Who runs the server, by their name at the command line.
    """

    def __init__(self, client: AsyncClient, keys: Keys, person: str = "") -> None:
        self._client = client
        self._keys = keys
        self._person = person
        self._users: OrderedDict[str, AsyncClient] = OrderedDict()

    def scope(self, request: Request) -> Scope:
        """What the request's token allows; a request that changes something needs one that does.

        Raises:
            Refused: There is no token or not one, it is none of ours, or it may only read.
        """
        shown = values(request.scope["headers"], b"authorization")
        kind, _, token = shown[0].partition(b" ") if len(shown) == 1 else (b"", b"", b"")
        scope = self._keys.scope(token.strip()) if kind.lower() == b"bearer" else None
        if scope is None:
            raise Refused(
                "unauthorized", "Send the header Authorization: Bearer TOKEN; `punch web --link` makes a link."
            )
        if scope.mode == "ro" and request.method not in _READING:
            raise Refused("read_only")
        return scope

    def person(self, scope: Scope) -> str:
        """Who speaks by a token: whoever runs the server, unless it is for a user or for one list, and so for others.

        Returns:
            Their name, empty for others.
        """
        return self._person if scope.user is None and scope.list is None else ""

    async def client(self, scope: Scope) -> AsyncClient:
        """The connection for a scope: of its user alone, if it has one."""
        if scope.user is None:
            return self._client
        found = self._users.pop(scope.user, None) or self._client.as_user(scope.user)
        self._users[scope.user] = found
        while len(self._users) > MOST_USERS:
            await self._users.popitem(last=False)[1].aclose()
        return found

    async def aclose(self) -> None:
        """Close the connections of users."""
        for client in self._users.values():
            await client.aclose()


def confine(scope: Scope, conversation: str | None) -> None:
    """Check that a request stays within the list of its token; None: it is about several lists.

    Raises:
        Refused: It does not.
    """
    if scope.list is not None and scope.list != conversation:
        raise Refused("out_of_scope", f"This token is for the list {scope.list} alone.")
