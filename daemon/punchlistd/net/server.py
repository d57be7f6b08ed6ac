"""What all connections share: the engine's doors, who is connected, and the calls that concern a connection itself."""

import asyncio
import logging
import os
import time
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
from punchlistd.clock import now_ms
from punchlistd.engine.access import for_the_trusted
from punchlistd.engine.calls import Caller, Write
from punchlistd.engine.claims import Claims
from punchlistd.engine.confirm import Confirmer
from punchlistd.engine.inbox import Inbox, Signal
from punchlistd.engine.metrics import Metrics
from punchlistd.engine.queries import Queries
from punchlistd.engine.replies import LONG_BYTES, SHUTTING_DOWN, Outcome
from punchlistd.engine.subscriptions import Fanout, Subscription
from punchlistd.engine.views import view
from punchlistd.net.hangup import HangUps
from punchlistd.net.held import Held
from punchlistd.settings import Settings

if TYPE_CHECKING:
    from punchlistd.net.session import Session

logger = logging.getLogger(__name__)

FEATURES = (
    "batch",
    "content-length",
    "event.subscribe",
    "event.wait",
    "keys",
    "undo",
    "at_version",
    "claims",
    "rows",
    "board",
)

_OF_ONE = {"rows": True, "board": False}
"""Whether a view is of one conversation or of all; the others are of either."""

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
        queries: answers questions.
        inbox: has the calls that wait for the writer.
        submit: takes mutations.
        claims: who has tasks, and who waits for them.
        fanout: serves subscriptions.
        confirmer: knows what a token would do.
        metrics: counts calls and faults.
        spawn: runs a coroutine beside everything else.
        stop: makes the daemon stop.
        unchanging: whether every change is refused.
        lock: the file by whose lock this is the only daemon of its data directory; None: of a copy.
    """

    def __init__(  # noqa: PLR0913 - what calls reach
        self,
        settings: Settings,
        queries: Queries,
        *,
        inbox: Inbox,
        submit: Callable[[Write], None],
        claims: Claims,
        fanout: Fanout,
        confirmer: Confirmer,
        metrics: Metrics,
        spawn: Spawn,
        stop: Callable[[], None],
        unchanging: bool = False,
        lock: r.FileIdentity | None = None,
    ) -> None:
        """A server without connections."""
        self.settings = settings
        self.queries = queries
        self.inbox = inbox
        self.submit = submit
        self.claims = claims
        self.fanout = fanout
        self.metrics = metrics
        self.spawn = spawn
        self.unchanging = unchanging
        self.uids = frozenset({os.getuid(), 0})
        self.sessions: set[Session] = set()
        self.left = Signal()
        """Given whenever a connection has gone."""
        self.closing = False
        self._lock = lock
        self._epoch = queries.epoch
        self._confirmer = confirmer
        self._stop = stop
        self.held = Held(settings.held_bytes, self._end_stuck)
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
        self.left.give()

    def given_up(self) -> Rejection:
        """The answer of a waiting call that was cancelled."""
        return SHUTTING_DOWN if self.closing else GIVEN_UP

    def _end_stuck(self) -> None:
        """End the connections whose peers have taken nothing of a long answer for as long as a frame may take."""
        late = time.monotonic() - self.settings.limits.frame_seconds
        for session in list(self.sessions):
            if session.taken_at < late and session.unsent_bytes > LONG_BYTES:
                session.abort()

    def failed(self, method: Method, error: Exception) -> None:
        """A call ended in an exception that nobody expected: a fault of ours, told to the log alone."""
        logger.error("%s failed", method.name, exc_info=error)
        self.metrics.error(f"{method.name}: {type(error).__name__}")

    def close(self) -> None:
        """Take no more connections and give up the calls that wait for something to happen."""
        self.closing = True
        for session in list(self.sessions):
            session.waiting.cancel_all()

    async def later(self, session: "Session", caller: Caller, method: Method, params: Any) -> Outcome:
        """Answer a call that may take its time."""
        if method.name == "event.subscribe":
            return await self.queries.typed(self._subscribe(session, caller, params))
        return await self.queries.later(caller, method, params)

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
                lock=self._lock,
                build=BUILD,
            )
        )

    def _shutdown(self, session: "Session", _params: p.Nothing) -> Outcome:
        if (refused := for_the_trusted(session.user, "stop the daemon")) is not None:
            return refused
        asyncio.get_running_loop().call_soon(self._stop)
        return _encode(r.Stopping(stopping=True))

    def _confirmation(self, session: "Session", params: p.ConfirmationGet) -> Outcome:
        found = self._confirmer.get(session.user, params.token, now_ms())
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
        if (refused := self._no_room(session) or _misplaced(params) or self.held.refusal()) is not None:
            return refused
        name = await self.queries.position(caller, params.conversation, params.after, params.epoch)
        if isinstance(name, Rejection):
            return name
        showing = name is not None and params.view == "list"
        opened = await self.queries.durable(caller, name) if name is not None and showing else None
        if isinstance(opened, Rejection):
            return opened
        if session.is_gone:
            return HUNG_UP
        position = self.fanout.head if params.after is None or showing else params.after
        shown = view(params.view, params.after, self.settings.chunk_bytes)
        subscription = Subscription(session.new_subscription_id(), session, params.view, name, position, shown)
        if params.view == "rows" and name is not None:
            position = params.after or 0
            subscription.stale[name] = None
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


def _misplaced(params: p.EventSubscribe) -> Rejection | None:
    is_of_one = _OF_ONE.get(params.view)
    if is_of_one is None or is_of_one == (params.conversation is not None):
        return None
    said = "The view rows is of one conversation." if is_of_one else "The view board is of all conversations."
    return Rejection("invalid_params", said, {"field": "conversation"})


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
