"""Whom a request speaks for: its token's scope, and the connection to the daemon that goes with it."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request

from punchlist.base.actors import THREADS, chats_about
from punchlist.clients.aio import AsyncClient
from punchlist_apps.common.http.guard import App, Receive, Send, get_bearer_token, send_problem
from punchlist_apps.common.http.guard import Scope as AsgiScope
from punchlist_apps.common.http.keys import Keys, Scope
from punchlist_apps.common.http.problem import Problem, Refused
from punchlist_apps.common.http.revocation import ENDED, TokenWatch

MOST_USERS = 64
"""Of so many users a connection is kept."""

_READING = frozenset({"GET", "HEAD"})
_ALLOWED = "punchlist.allowed"

_OUTWARD: dict[str, dict[str, tuple[Any, ...]]] = {
    "conversation.attach": {"session": ()},
    "conversation.open": {"user": (None,), "kind": ("list",)},
}
"""Parameters by which a call about one list decides about others, and the values with which it doesn't.

A session's id is a name at which other programs look for their list; a chat's messages are worked on in the list that
its metadata names.
"""


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
        self._watch = TokenWatch[Scope](lambda token, allowed: keys.read_scope(token) == allowed, _refuse)

    def watched(self, app: App) -> App:
        """Wrap an application so that its answers end when the token of their request is revoked or expires."""

        async def serve(scope: AsgiScope, receive: Receive, send: Send) -> None:
            token = get_bearer_token(scope["headers"]) if scope["type"] == "http" else b""
            allowed = self._keys.read_scope(token)
            if allowed is None:  # handlers that need one refuse this; files need none
                await app(scope, receive, send)
                return
            scope[_ALLOWED] = allowed
            await self._watch.serve(app, scope, receive, send, token, allowed)

        return serve

    def scope(self, request: Request) -> Scope:
        """What the request's token allows; a request that changes something needs one that does.

        Raises:
            Refused: There is no token or not one, it is none of ours, or it may only read.
        """
        scope: Scope | None = request.scope.get(_ALLOWED)
        if scope is None:
            raise Refused(
                "unauthorized", "Send the header Authorization: Bearer TOKEN; `punch web --link` makes a link."
            )
        if scope.mode == "ro" and request.method not in _READING:
            raise Refused("read_only")
        return scope

    def person(self, scope: Scope) -> str:
        """Return the name of the person who runs the server if they speak by this token, else an empty text.

        A token for a user, for one list, or with a name is for others.
        """
        return self._person if scope.user is None and scope.list is None and not scope.name else ""

    def actor(self, scope: Scope) -> str:
        """Return whose changes those by a token are; empty for the server's own name."""
        return scope.name or self.person(scope)

    async def names(self, scope: Scope, conversation: str) -> dict[str, Any]:
        """Whose changes of a list are those of who speaks by a token, as parameters of `list.undo`.

        The person who runs the server also has chats. A link of an earlier version has no name but the server's.
        """
        if scope.name:
            return {"of": scope.name}
        client = await self.client(scope)
        if not (person := self.person(scope)):
            return {"of": client.options.get("name", "punch web")}
        chats = await client.conversations(kind="chat", limit=THREADS)
        listed = msgspec.to_builtins(chats.conversations)
        return {"of": person, "also": chats_about(conversation, listed)}

    async def client(self, scope: Scope) -> AsyncClient:
        """The connection for a scope: of its user alone, if it has one.

        Raises:
            Refused: The scope's list is none, but a session of another list.
        """
        client = self._client if scope.user is None else await self._of_user(scope.user)
        if scope.list is not None:
            found = await client.conversation(scope.list).info()
            if found.conversation != scope.list and scope.list in found.sessions:
                said = f"{scope.list} is a session of another list; this token is for a list of this name alone."
                raise Refused("out_of_scope", said)
        return client

    async def _of_user(self, user: str) -> AsyncClient:
        found = self._users.pop(user, None) or self._client.as_user(user)
        self._users[user] = found
        while len(self._users) > MOST_USERS:
            await self._users.popitem(last=False)[1].aclose()
        return found

    async def aclose(self) -> None:
        for client in self._users.values():
            await client.aclose()


def confine(scope: Scope, conversation: str | None) -> None:
    """Check that a request stays within the list of its token; None: it is about several lists.

    Raises:
        Refused: It does not.
    """
    if scope.list is not None and scope.list != conversation:
        raise Refused("out_of_scope", f"This token is for the list {scope.list} alone.")


def confine_call(scope: Scope, method: str, params: Mapping[str, Any]) -> None:
    """Check that a call about the list of a token decides about no other.

    Raises:
        Refused: It does.
    """
    if scope.list is None:
        return
    for name, harmless in _OUTWARD.get(method, {}).items():
        if name in params and params[name] not in harmless:
            said = f"{name} decides about more than the list {scope.list}, and this token is for that list alone."
            raise Refused("out_of_scope", said, field=name)


async def _refuse(send: Send) -> None:
    """Answer a request whose token ended before there was an answer."""
    await send_problem(send, Problem("unauthorized", f"{ENDED} A change that was under way may have been made."))
