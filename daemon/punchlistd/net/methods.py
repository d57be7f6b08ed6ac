"""Handlers of the methods that concern the connection itself: identity, subscriptions, confirmations, cancellation."""

import asyncio
import os
from collections.abc import Callable

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.build import build_stamp
from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import PROTOCOL
from punchlist_schemas.things import Agent
from punchlistd import __version__
from punchlistd.clock import now_ms
from punchlistd.engine.reading.queries import Queries
from punchlistd.engine.replies import Outcome
from punchlistd.engine.watching.subscriptions import Subscription
from punchlistd.engine.watching.views import build_view
from punchlistd.engine.writing.confirm import Confirmer
from punchlistd.net.connection import Connection

FEATURES = (
    "batch",
    "content-length",
    "event.subscribe",
    "event.wait",
    "keys",
    "undo",
    "at_version",
    "claims",
    "turns",
    "rows",
    "board",
    "presence",
    "agents",
    "agent.pid",
)

_IS_LIST_VIEW = {"rows": True, "presence": True, "board": False}
"""View -> whether it requires a conversation (True) or forbids one (False). Other views allow both."""

HUNG_UP = Rejection("cancelled", "The connection was closed before the subscription started.")
"""Outcome of a subscription on a closed connection. It isn't registered, because nothing would ever remove it."""
BUILD = build_stamp(__version__)
"""Build stamp of the loaded code. Read at import, because the files may change later."""


class ConnectionMethods:
    """Handlers that need parts of the daemon besides the connection.

    Args:
        queries: Answers reads.
        confirmer: Pending confirmations.
        stop: Stops the daemon.
        lock: The lock file that makes this the only daemon for its data directory; None if it serves a copy.
    """

    def __init__(
        self, queries: Queries, confirmer: Confirmer, stop: Callable[[], None], lock: r.FileIdentity | None = None
    ) -> None:
        self._queries = queries
        self._confirmer = confirmer
        self._stop = stop
        self._lock = lock

    def hello(self, connection: Connection, params: p.Hello) -> Outcome:
        if params.user is not None and params.user != connection.user:
            if connection.user is not None:
                message = f"This connection is bound to the user {connection.user}; open another one for {params.user}."
                return Rejection("forbidden", message, {"what": "user"})
            if connection.subscriptions:
                return Rejection("forbidden", "Bind the user before subscribing to anything.", {"what": "user"})
            connection.user = params.user
        if params.client is not None:
            connection.client = params.client.name
            connection.actor = params.client.name
            connection.connections.subscriptions.presence.rename(connection.subscriptions.values())
        connection.confirm = connection.confirm or params.confirm
        return _encode(
            r.HelloResult(
                name="punchlistd",
                version=__version__,
                protocol=PROTOCOL,
                epoch=self._queries.epoch,
                pid=os.getpid(),
                limits=connection.connections.settings.limits,
                features=FEATURES,
                lock=self._lock,
                build=BUILD,
            )
        )

    def initialize(self, connection: Connection, params: p.LanguageClient) -> Outcome:
        outcome = self.hello(connection, p.Hello(client=params.client_info))
        if isinstance(outcome, Rejection):
            return outcome
        server = r.ServerInfo(name="punchlistd", version=__version__)
        return _encode(r.InitializeResult(capabilities={}, server_info=server))

    def shutdown(self, connection: Connection, params: p.Shutdown) -> Outcome:
        """Stop the daemon after sending the response. With `if_idle`, only stop if no other client is connected and no
        task is claimed.
        """
        shared = connection.connections
        if params.if_idle and (len(shared.live) > 1 or len(shared.claims.leases)):
            return _encode(r.Stopping(stopping=False))
        asyncio.get_running_loop().call_soon(self._stop)
        return _encode(r.Stopping(stopping=True))

    def get_confirmation(self, connection: Connection, params: p.ConfirmationGet) -> Outcome:
        confirmation = self._confirmer.get(connection.user, params.token, now_ms())
        return confirmation if isinstance(confirmation, Rejection) else _encode(confirmation)

    def enter(self, connection: Connection, params: p.AgentEnter) -> Outcome:
        return connection.connections.claims.agents.enter(connection, params) or ACKNOWLEDGED

    def leave(self, connection: Connection, params: p.AgentLeave) -> Outcome:
        connection.connections.claims.agents.leave(connection.user, params.agent)
        return ACKNOWLEDGED

    async def list_agents(self, connection: Connection, params: p.AgentList) -> Outcome:
        name = params.conversation
        if name is not None:
            loaded = await self._queries.durable(connection, name)
            if isinstance(loaded, Rejection):
                return loaded
            name = loaded.state.conversation
        shared, user = connection.connections, connection.user
        leases = shared.claims.by_agent(user)
        agents: list[Agent] = []
        for agent in shared.claims.agents.listed(user, shared.live):
            tasks = self._queries.list_claimed(leases.get(agent.name, ()))
            if name is None or agent.conversation == name or any(task.conversation == name for task in tasks):
                agents.append(msgspec.structs.replace(agent, tasks=tasks))
        ids = {agent.conversation for agent in agents} | {task.conversation for agent in agents for task in agent.tasks}
        names = await self._queries.short_names(ids) if user is None else {}
        return _encode(r.AgentListResult(agents=tuple(agents), names=names))

    async def list_present(self, connection: Connection, params: p.ConversationParams) -> Outcome:
        loaded = await self._queries.durable(connection, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        return b'{"present":%b}' % connection.connections.subscriptions.presence.present(connection.user, loaded.state)

    async def subscribe(self, connection: Connection, params: p.EventSubscribe) -> Outcome:
        """Register a subscription; its first push follows the response.

        There is no `await` between reading the position, building the snapshot and registering the subscription.
        """
        rejection = _check_subscription_limit(connection) or _check_view(params)
        if rejection is None and (params.after is not None or params.view != "events"):
            # Past events or a view need memory immediately, unlike a subscription to new events only.
            rejection = connection.connections.held.check_room()
        if rejection is not None:
            return rejection
        name = await self._queries.position(connection, params.conversation, params.after, params.epoch)
        if isinstance(name, Rejection):
            return name
        loaded = await self._queries.durable(connection, name) if name is not None and params.view == "list" else None
        if isinstance(loaded, Rejection):
            return loaded
        if connection.is_gone:
            return HUNG_UP
        shared = connection.connections
        starts_at_head = params.after is None or loaded is not None or params.view == "presence"
        position = shared.subscriptions.head if starts_at_head else params.after or 0
        presence = shared.subscriptions.presence
        pushed_view = build_view(params.view, params.after, shared.settings.chunk_bytes, presence, connection.user)
        subscription = Subscription(
            next(connection.subscription_ids),
            connection,
            params.view,
            name,
            position,
            pushed_view,
            about=params.about,
        )
        if params.view == "rows":
            position = params.after or 0
        if name is not None and _IS_LIST_VIEW.get(params.view):
            subscription.stale[name] = None
        # An owner of claims may have disconnected or reconnected since `after`. No event records this.
        if params.view == "board" and not starts_at_head:
            subscription.stale |= {lease.conversation: None for lease in shared.claims.leases}
        connection.subscriptions[subscription.id] = subscription
        shared.subscriptions.add(subscription)
        asyncio.get_running_loop().call_soon(shared.subscriptions.catch_up, subscription)
        result = _encode(r.SubscribeResult(subscription=subscription.id, seq=position, epoch=self._queries.epoch))
        if loaded is None:
            return result
        return loaded.build_list_reply(b"%b," % result[:-1], b',"version":%d}' % loaded.state.version)


def discover(_connection: Connection, _params: p.NoParams) -> Outcome:
    from punchlist_schemas.discover import encode_openrpc  # noqa: PLC0415 - rarely requested, slow to build

    return encode_openrpc()


def cancel(connection: Connection, params: p.Cancel) -> Outcome:
    if not connection.waiting.cancel(params.id):
        facts = {"what": "call", "id": str(params.id)}
        return Rejection("not_found", f"No call with the id {params.id} waits on this connection.", facts)
    return ACKNOWLEDGED


def acknowledge(_connection: Connection, _params: p.AnyParams) -> Outcome:
    return ACKNOWLEDGED


def leave(connection: Connection, _params: p.AnyParams) -> Outcome:
    asyncio.get_running_loop().call_soon(connection.finish)
    return ACKNOWLEDGED


def unsubscribe(connection: Connection, params: p.EventUnsubscribe) -> Outcome:
    subscription = connection.subscriptions.pop(params.subscription, None)
    if subscription is None:
        facts = {"what": "subscription", "id": params.subscription}
        return Rejection("not_found", f"This connection has no subscription {params.subscription}.", facts)
    connection.connections.subscriptions.remove(subscription)
    return ACKNOWLEDGED


def _check_subscription_limit(connection: Connection) -> Rejection | None:
    maximum = connection.connections.settings.limits.subscriptions
    if len(connection.subscriptions) < maximum:
        return None
    facts = {"limit": "subscriptions", "value": maximum + 1, "maximum": maximum}
    return Rejection("limit_exceeded", f"A connection may have {maximum} subscriptions; end one first.", facts)


def _check_view(params: p.EventSubscribe) -> Rejection | None:
    if params.about and params.view != "events":
        message = "`about` adds titles to events: leave it out, or leave out `view`."
        return Rejection("invalid_params", message, {"field": "about"})
    is_of_one = _IS_LIST_VIEW.get(params.view)
    if is_of_one is None or is_of_one == (params.conversation is not None):
        return None
    message = f"The view {params.view} is of {'one conversation' if is_of_one else 'all conversations'}."
    return Rejection("invalid_params", message, {"field": "conversation"})


_encode = msgspec.json.Encoder().encode
ACKNOWLEDGED = _encode(r.Acknowledged())
