"""What all connections share: the engine's doors, who is connected, and the calls that concern a connection itself."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.build import build_stamp
from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import PROTOCOL, Method
from punchlist_schemas.params import Params
from punchlistd import __version__
from punchlistd.engine.access import for_the_trusted
from punchlistd.engine.calls import Caller, Outcome
from punchlistd.engine.fanout import Fanout, Subscription
from punchlistd.engine.intake import now_ms
from punchlistd.engine.reads import Reads
from punchlistd.engine.writer import SHUTTING_DOWN, Writer
from punchlistd.net.hangup import HangUps
from punchlistd.settings import Settings

if TYPE_CHECKING:
    from punchlistd.net.session import Session

logger = logging.getLogger(__name__)

FEATURES = ("batch", "content-length", "event.subscribe", "event.wait", "keys", "undo", "at_version", "claims")

GIVEN_UP = Rejection("cancelled", "The call was given up by rpc.cancel.")

HUNG_UP = Rejection("cancelled", "The connection was closed before the subscription began.")
"""What nobody reads: the subscription is not registered, since nothing would ever remove it."""
BUILD = build_stamp(__version__)
"""The code that this process has loaded; later the files may be others."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Server:
    """The connections and their way into the engine.

    Args:
        settings: limits.
        writer: takes mutations.
        reads: answers questions.
        fanout: serves subscriptions.
        spawn: runs a coroutine beside everything else.
        stop: makes the daemon stop.
    """

    def __init__(
        self,
        settings: Settings,
        writer: Writer,
        reads: Reads,
        fanout: Fanout,
        *,
        spawn: Spawn,
        stop: Callable[[], None],
    ) -> None:
        """A server without connections."""
        self.settings = settings
        self.writer = writer
        self.reads = reads
        self.fanout = fanout
        self.meters = writer.meters
        self.spawn = spawn
        self.uids = frozenset({os.getuid(), 0})
        self.sessions: set[Session] = set()
        self.closing = False
        self.unchanging = False
        """Whether every change is refused."""
        self.lock: r.FileIdentity | None = None
        """The file by whose lock this is the only daemon of its data directory; None: of a copy."""
        self.on_leave: Callable[[], None] = lambda: None
        self._epoch = reads.epoch
        self._stop = stop
        self.hang_ups = HangUps()
        self.immediate: dict[str, Callable[[Session, Any], Outcome]] = {
            "daemon.hello": self._hello,
            "rpc.discover": _discover,
            "rpc.cancel": _cancel,
            "daemon.shutdown": self._shutdown,
            "event.unsubscribe": self._unsubscribe,
            "confirmation.get": self._confirmation,
        }

    # connections

    def enter(self, session: "Session") -> Rejection | None:
        """Take a connection in, or say why not."""
        if self.closing:
            return SHUTTING_DOWN
        maximum = self.settings.limits.connections
        if len(self.sessions) >= maximum:
            facts = {"limit": "connections", "value": len(self.sessions) + 1, "maximum": maximum}
            said = f"The daemon has {maximum} connections, which is its limit. Close some and try again."
            return Rejection("limit_exceeded", said, facts)
        self.sessions.add(session)
        return None

    def leave(self, session: "Session") -> None:
        """Let a connection go."""
        self.sessions.discard(session)
        self.on_leave()

    def given_up(self) -> Rejection:
        """The answer of a waiting call that was cancelled."""
        return SHUTTING_DOWN if self.closing else GIVEN_UP

    def failed(self, method: Method, error: Exception) -> None:
        """A call ended in an exception that nobody expected: a fault of ours, told to the log alone."""
        logger.error("%s failed", method.name, exc_info=error)
        self.meters.error(f"{method.name}: {type(error).__name__}")

    def close(self) -> None:
        """Take no more connections and give up the calls that wait for something to happen."""
        self.closing = True
        for session in list(self.sessions):
            session.waiting.cancel_all()

    async def later(self, session: "Session", caller: Caller, method: Method, params: Any) -> Outcome:
        """Answer a call that may take its time."""
        if method.name == "event.subscribe":
            return await self.reads.typed(self._subscribe(session, caller, params))
        return await self.reads.later(caller, method, params)

    # calls about the connection itself

    def _hello(self, session: "Session", params: p.Hello) -> Outcome:
        if params.user is not None and params.user != session.user:
            if session.user is not None:
                said = f"This connection is bound to the user {session.user}; open another one for {params.user}."
                return Rejection("forbidden", said, {"what": "user"})
            if session.subscriptions:
                return Rejection("forbidden", "Bind the user before subscribing to anything.", {"what": "user"})
            session.user = params.user
        if params.client is not None:
            session.client = params.client.name
            session.actor = params.client.name
        session.confirm = session.confirm or params.confirm
        return _encode(
            r.HelloResult(
                name="punchlistd",
                version=__version__,
                protocol=PROTOCOL,
                epoch=self._epoch,
                pid=os.getpid(),
                limits=self.settings.limits,
                features=FEATURES,
                lock=self.lock,
                build=BUILD,
            )
        )

    def _shutdown(self, session: "Session", _params: p.Nothing) -> Outcome:
        if (refused := for_the_trusted(session.user, "stop the daemon")) is not None:
            return refused
        asyncio.get_running_loop().call_soon(self._stop)
        return _encode(r.Stopping(stopping=True))

    def _confirmation(self, session: "Session", params: p.ConfirmationGet) -> Outcome:
        found = self.writer.confirmer.get(session.user, params.token, now_ms())
        return found if isinstance(found, Rejection) else _encode(found)

    def _unsubscribe(self, session: "Session", params: p.EventUnsubscribe) -> Outcome:
        subscription = session.subscriptions.pop(params.subscription, None)
        if subscription is None:
            facts = {"what": "subscription", "id": params.subscription}
            return Rejection("not_found", f"This connection has no subscription {params.subscription}.", facts)
        self.fanout.remove(subscription)
        return ACKNOWLEDGED

    async def _subscribe(self, session: "Session", caller: Caller, params: p.EventSubscribe) -> Outcome:
        """Position, snapshot and registration happen without a wait between them; the first push follows the answer."""
        if (refused := self._no_room(session)) is not None:
            return refused
        name = await self.reads.position(caller, params.conversation, params.after, params.epoch)
        if isinstance(name, Rejection):
            return name
        showing = name is not None and params.view == "list"
        opened = await self.reads.durable(caller, name) if name is not None and showing else None
        if isinstance(opened, Rejection):
            return opened
        if session.is_gone:
            return HUNG_UP
        position = self.fanout.head if params.after is None or showing else params.after
        subscription = Subscription(session.new_subscription_id(), session, params.view, name, position)
        session.subscriptions[subscription.id] = subscription
        self.fanout.add(subscription)
        asyncio.get_running_loop().call_soon(self.fanout.lead, subscription)
        result = _encode(r.SubscribeResult(subscription=subscription.id, seq=position, epoch=self._epoch))
        if opened is None:
            return result
        return opened.list_reply(b"%b," % result[:-1], b',"version":%d}' % opened.state.version)

    def _no_room(self, session: "Session") -> Rejection | None:
        maximum = self.settings.limits.subscriptions
        if len(session.subscriptions) < maximum:
            return None
        facts = {"limit": "subscriptions", "value": maximum + 1, "maximum": maximum}
        return Rejection("limit_exceeded", f"A connection may have {maximum} subscriptions; end one first.", facts)


def _discover(_session: "Session", _params: Params) -> Outcome:
    from punchlist_schemas.discover import openrpc_document  # noqa: PLC0415 - rarely asked for, slow to build

    return openrpc_document()


def _cancel(session: "Session", params: p.Cancel) -> Outcome:
    if not session.waiting.cancel(params.id):
        facts = {"what": "call", "id": str(params.id)}
        return Rejection("not_found", f"No call with the id {params.id} waits on this connection.", facts)
    return ACKNOWLEDGED


_encode = msgspec.json.Encoder().encode
ACKNOWLEDGED = _encode(r.Acknowledged())
