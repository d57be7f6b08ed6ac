"""The way of a connection's calls to the engine: who answers each one, and after what.

A read that comes behind a write of the same connection is answered behind it. An exception becomes an error on the wire
here and nowhere else.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS, Method
from punchlist_schemas.params import ListUndo, Mutation, Params, TaskClaim
from punchlistd.engine.access import foreign_owner
from punchlistd.engine.calls import Caller, Read, Stage, Write, stamp
from punchlistd.engine.queries import state_read
from punchlistd.engine.replies import INTERNAL_ERROR, LONG_BYTES, SHUTTING_DOWN, Outcome, Pieces
from punchlistd.net import jsonrpc
from punchlistd.net.batch import BatchReply
from punchlistd.net.server import GIVEN_UP, Server
from punchlistd.net.waiting import WAITING, Waiting, WaitingCall

if TYPE_CHECKING:
    from punchlistd.net.session import Session

logger = logging.getLogger(__name__)

LONG = frozenset({"task.list", "message.list", "event.read", "conversation.list"})
"""Methods whose answers may be long and are made one after the other, as the peer takes them."""

READ_ONLY = Rejection(
    "forbidden",
    "This daemon was started to be read alone. End it, put right what keeps the log from being written, start another.",
    {"what": "change"},
)


class Dispatch:
    """Leads the calls of one connection to where they are answered.

    Args:
        server: the engine's doors.
        session: the connection.
        waiting: where its calls are listed that wait for something to happen.
    """

    __slots__ = ("_last_write", "_server", "_session", "_waiting", "undo")

    def __init__(self, server: Server, session: "Session", waiting: Waiting) -> None:
        """Nothing was called yet."""
        self._server = server
        self._session = session
        self._waiting = waiting
        self._last_write: Write | None = None
        self.undo: Write | None = None
        """The last undo. What comes behind it waits until it is done, since its history is read beside the writer."""

    def take(self, call: jsonrpc.Call | jsonrpc.Malformed, caller: Caller) -> None:
        """Begin a call; `caller` is answered once, now or later."""
        if type(call) is jsonrpc.Malformed:
            caller.answer(call.id, call.rejection)
            return
        try:
            method = METHODS.get(call.method)
            if method is None:
                caller.answer(call.id, jsonrpc.unknown_method(call.method))
                return
            params = jsonrpc.parse_params(method, call.params)
            if type(params) is Rejection:
                caller.answer(call.id, params)
            elif method.kind == "write":
                self._write(caller, call.id, method, cast(Mutation, params))
            else:
                self._read(caller, call.id, method, params)
        except Exception:
            logger.exception("%s failed", call.method)
            caller.answer(call.id, INTERNAL_ERROR)

    def _write(self, caller: Caller, id: bytes | None, method: Method, params: Mutation) -> None:
        refused = READ_ONLY if self._server.unchanging else None
        if refused is None and caller.user is not None:
            refused = foreign_owner(caller.user, params)
        if refused is not None:
            caller.answer(id, refused)
            return
        command = stamp(caller, params)
        if type(params) is TaskClaim and params.wait_ms > 0:
            self._claim(caller, Write(caller, id, method, params, command))
        else:
            self._last_write = write = Write(caller, id, method, params, command)
            if type(params) is ListUndo:
                self.undo = write
                self._server.submit(write)
            else:
                self._server.inbox.submit(write)

    def _claim(self, caller: Caller, write: Write) -> None:
        """A claim that may have to wait."""
        call = self._begin_waiting(caller, write.id)
        if type(call) is Rejection:
            caller.answer(write.id, call)
            return
        write.caller = call
        call.on_give_up = lambda: self._server.claims.give_up(write, self._server.given_up())
        self._last_write = write
        self._server.inbox.submit(write)

    def _begin_waiting(self, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        return SHUTTING_DOWN if self._server.closing else self._waiting.begin(caller, id)

    def _read(self, caller: Caller, id: bytes | None, method: Method, params: Params) -> None:
        if type(caller) is BatchReply and (full := caller.full) is not None:
            caller.answer(id, full)
            return
        server = self._server
        behind_write = self._last_write is not None and self._last_write.stage is not Stage.ANSWERED
        if (read := state_read(method, params)) is not None:
            outcome = None if behind_write else server.queries.now(caller, read, params)
            if outcome is None:
                later = partial(self._begin, caller, id, method, params)
                server.inbox.submit(Read(caller, id, method, params, read, later))
            else:
                long = type(outcome) is Pieces or (type(outcome) is bytes and len(outcome) > LONG_BYTES)
                caller.answer(id, caller.admit(outcome) if long else outcome)
        elif (call := server.immediate.get(method.name)) is not None:
            caller.answer(id, call(self._session, params))
        else:
            self._read_later(caller, id, method, params, behind_write)

    def _read_later(self, caller: Caller, id: bytes | None, method: Method, params: Params, behind_write: bool) -> None:
        if method.name in WAITING:
            call = self._begin_waiting(caller, id)
            if isinstance(call, Rejection):
                caller.answer(id, call)
                return
            caller = call
        self._begin(caller, id, method, params, behind_write)

    def _begin(
        self, caller: Caller, id: bytes | None, method: Method, params: Params, behind_write: bool = False
    ) -> None:
        self._server.spawn(self._answer_later(caller, id, method, params, behind_write))

    async def _answer_later(
        self, caller: Caller, id: bytes | None, method: Method, params: Any, behind_write: bool
    ) -> None:
        server = self._server
        outcome: Outcome = GIVEN_UP
        try:
            if behind_write and (refused := await server.inbox.barrier()) is not None:
                outcome = refused
            elif isinstance(caller, WaitingCall):
                with caller.running():
                    outcome = await server.later(self._session, caller, method, params)
            elif method.name in LONG:
                async with caller.turn():
                    full = caller.full if isinstance(caller, BatchReply) else None
                    outcome = full or await server.later(self._session, caller, method, params)
            else:
                outcome = await server.later(self._session, caller, method, params)
        except Exception as error:
            server.failed(method, error)
            outcome = INTERNAL_ERROR
        if method.kind == "read":  # a subscription that is made is never refused
            outcome = caller.admit(outcome)
        # Asked only now: whether the daemon stops decides what a call is told that was given up.
        caller.answer(id, server.given_up() if outcome is GIVEN_UP else outcome)
        caller.flush()
