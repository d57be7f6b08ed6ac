"""Access control for requests: the scope of a request's token, and the daemon connection for that scope."""

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

MAX_USERS = 64
"""Maximum number of users whose connections are kept open."""

_READING = frozenset({"GET", "HEAD"})
_ALLOWED = "punchlist.allowed"

_WIDER_PARAMS: dict[str, dict[str, tuple[Any, ...]]] = {
    "conversation.attach": {"session": ()},
    "conversation.open": {"user": (None,), "kind": ("list",)},
}
"""Parameters that make a call about one list affect other lists, with the values of these parameters that are harmless,
by method.

Other programs use a session's id to find their list. A chat's messages change the list that its metadata names.
"""


class Access:
    """Determines what a request is allowed to do.

    Args:
        client: Connection for tokens that are not bound to a user.
        keys: Verifies tokens.
        person: Actor name used on the command line by the person who runs the server.
    """

    def __init__(self, client: AsyncClient, keys: Keys, person: str = "") -> None:
        self._client = client
        self._keys = keys
        self._person = person
        self._users: OrderedDict[str, AsyncClient] = OrderedDict()
        self._watch = TokenWatch[Scope](lambda token, allowed: keys.read_scope(token) == allowed, _send_unauthorized)

    def end_on_revocation(self, app: App) -> App:
        """Wrap an application so that its responses end when the token of their request is revoked or expires."""

        async def serve(scope: AsgiScope, receive: Receive, send: Send) -> None:
            token = get_bearer_token(scope["headers"]) if scope["type"] == "http" else b""
            allowed = self._keys.read_scope(token)
            # Handlers that need a token reject this request in `require_scope`. The page's files don't need a token.
            if allowed is None:
                await app(scope, receive, send)
                return
            scope[_ALLOWED] = allowed
            await self._watch.serve(app, scope, receive, send, token, allowed)

        return serve

    def require_scope(self, request: Request) -> Scope:
        """Return the scope of the request's token.

        Raises:
            Refused: The token is missing or invalid, or it is read-only and the request makes a change.
        """
        scope: Scope | None = request.scope.get(_ALLOWED)
        if scope is None:
            raise Refused(
                "unauthorized", "Send the header Authorization: Bearer TOKEN; `punch web --link` makes a link."
            )
        if scope.mode == "ro" and request.method not in _READING:
            raise Refused("read_only")
        return scope

    def get_person(self, scope: Scope) -> str:
        """Return the name of the person who runs the server if the token is theirs, else an empty string.

        A token with a user, a list or a name belongs to someone else.
        """
        return self._person if scope.user is None and scope.list is None and not scope.name else ""

    def get_actor(self, scope: Scope) -> str:
        """Return the actor for changes made with a token; empty for the server's own name."""
        return scope.name or self.get_person(scope)

    async def build_undo_params(self, scope: Scope, conversation: str) -> dict[str, Any]:
        """Return the parameters of `list.undo` that select the token holder's changes to a list.

        For the person who runs the server, these include changes made by their chats.
        """
        if scope.name:
            return {"of": scope.name}
        client = await self.get_client(scope)
        # Links created by earlier versions have only the server's name.
        if not (person := self.get_person(scope)):
            return {"of": client.options.get("name", "punch web")}
        chats = await client.conversations(kind="chat", limit=THREADS)
        listed = msgspec.to_builtins(chats.conversations)
        return {"of": person, "also": chats_about(conversation, listed)}

    async def get_client(self, scope: Scope) -> AsyncClient:
        """Return the connection for a scope, bound to its user if it has one.

        Raises:
            Refused: The name of the scope's list has become the id of a session that is attached to another list.
        """
        client = self._client if scope.user is None else await self._get_user_client(scope.user)
        if scope.list is not None:
            info = await client.conversation(scope.list).info()
            if info.conversation != scope.list and scope.list in info.sessions:
                detail = f"{scope.list} is a session of another list; this token is limited to the list of that name."
                raise Refused("out_of_scope", detail)
        return client

    async def _get_user_client(self, user: str) -> AsyncClient:
        client = self._users.pop(user, None) or self._client.as_user(user)
        self._users[user] = client
        while len(self._users) > MAX_USERS:
            await self._users.popitem(last=False)[1].aclose()
        return client

    async def aclose(self) -> None:
        for client in self._users.values():
            await client.aclose()


def confine(scope: Scope, conversation: str | None) -> None:
    """Reject a request about a list other than the token's. `conversation` is None for a request about several lists.

    Raises:
        Refused: The token is limited to another list.
    """
    if scope.list is not None and scope.list != conversation:
        raise Refused("out_of_scope", f"This token is limited to the list {scope.list}.")


def confine_call(scope: Scope, method: str, params: Mapping[str, Any]) -> None:
    """Reject a call about the token's list whose parameters affect other lists.

    Raises:
        Refused: A parameter affects another list.
    """
    if scope.list is None:
        return
    for name, harmless in _WIDER_PARAMS.get(method, {}).items():
        if name in params and params[name] not in harmless:
            detail = f"{name} can affect other lists, and this token is limited to the list {scope.list}."
            raise Refused("out_of_scope", detail, field=name)


async def _send_unauthorized(send: Send) -> None:
    """Respond to a request whose token expired or was revoked before the response began."""
    await send_problem(send, Problem("unauthorized", f"{ENDED} A change in progress may have been made."))
