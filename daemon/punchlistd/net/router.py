"""The table of handlers for all methods, and the router that dispatches calls to them.

A read waits for earlier writes on its connection. Only the router turns exceptions into errors on the wire.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS, Method
from punchlist_schemas.params import ListUndo, Mutation, TaskClaim
from punchlistd.engine.calls import Caller, Read, Stage, StateQuery, Write, stamp
from punchlistd.engine.claims import Claims
from punchlistd.engine.lists.access import check_trusted, foreign_owner
from punchlistd.engine.reading import state_queries as q
from punchlistd.engine.reading.queries import Queries
from punchlistd.engine.reading.search import Search
from punchlistd.engine.reading.timeline import Timeline
from punchlistd.engine.replies import INTERNAL_ERROR, LONG_BYTES, SHUTTING_DOWN, Outcome, Pieces
from punchlistd.engine.writing.inbox import Inbox
from punchlistd.net import jsonrpc
from punchlistd.net import methods as m
from punchlistd.net.connection import Connection
from punchlistd.net.connection.callers import BatchCaller, WaitingCall
from punchlistd.net.connection.connections import CANCELLED, Connections
from punchlistd.net.methods import ConnectionMethods
from punchlistd.net.sharing import Sharing

logger = logging.getLogger(__name__)

READ_ONLY = Rejection(
    "forbidden",
    "This daemon is read-only. Stop it, fix what prevents writing the log, and start it again without --read-only.",
    {"what": "change"},
)

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Row(NamedTuple):
    """Handlers of one method. A write has no `immediate`, `state` or `log`, because the writer decides it.

    Attributes:
        method: Name, kind, params and result of the method.
        immediate: Answers from the connection itself.
        state: Answers from the current state of one conversation.
        log: Answers from the log, which may be slow.
        needs_log: Whether a call needs `log`, for methods that also have `state`.
        long: Whether replies from `log` may be long. A connection builds one long reply at a time, as fast as its peer
            reads.
        takes_min_version: Whether the params may contain a future version to wait for.
        waits: Whether the call may wait for an event, without delaying other calls of its connection.
        trusted: Action named in the error if connections bound to a user can't call the method, else empty.
        scope: Returns a rejection if the user to whom the connection is bound may not make this call.
    """

    method: Method
    immediate: Callable[[Connection, Any], Outcome] | None = None
    state: StateQuery | None = None
    log: Callable[[Connection, Any], Awaitable[Outcome]] | None = None
    needs_log: Callable[[Any], bool] | None = None
    long: bool = False
    takes_min_version: bool = False
    waits: bool = False
    trusted: str = ""
    scope: Callable[[str | None, Mutation], Rejection | None] | None = None


def build_table(
    own: ConnectionMethods, queries: Queries, search: Search, timeline: Timeline, sharing: Sharing
) -> dict[str, Row]:
    def row(name: str, **answers: Any) -> Row:
        return Row(METHODS[name], **answers)

    def sharing_row(name: str, handler: Callable[[Any], Awaitable[Outcome]]) -> Row:
        def answer(_connection: Connection, params: Any) -> Awaitable[Outcome]:
            return handler(params)

        return row(name, log=answer, trusted="decide what other machines get")

    rows = (
        row("daemon.hello", immediate=own.hello),
        row("rpc.discover", immediate=m.discover),
        row("rpc.cancel", immediate=m.cancel),
        row("$/cancelRequest", immediate=m.cancel),
        row("initialize", immediate=own.initialize),
        row("initialized", immediate=m.acknowledge),
        row("shutdown", immediate=m.acknowledge),
        row("exit", immediate=m.leave),
        row("daemon.status", log=queries.status),
        row("daemon.backup", log=queries.backup, trusted="copy the whole log"),
        row("daemon.shutdown", immediate=own.shutdown, trusted="stop the daemon"),
        row("agent.enter", immediate=own.enter),
        row("agent.leave", immediate=own.leave),
        row("agent.list", log=own.list_agents),
        row("confirmation.get", immediate=own.get_confirmation),
        row("conversation.open", scope=foreign_owner),
        row("conversation.get", state=q.get_conversation),
        row("conversation.presence", log=own.list_present),
        row("conversation.list", log=queries.list_conversations, long=True),
        row("conversation.resolve", log=queries.resolve),
        row("task.get", state=q.get_task, takes_min_version=True),
        row(
            "task.list",
            state=q.list_tasks,
            log=queries.list_tasks,
            needs_log=q.needs_log,
            long=True,
            takes_min_version=True,
        ),
        row("task.explain", state=q.explain_task, takes_min_version=True),
        row("task.search", log=search.answer, long=True),
        row("message.get", log=queries.get_message),
        row("message.list", log=queries.list_messages, long=True),
        row("event.find", log=queries.find_events),
        row("event.spans", log=timeline.find_spans, long=True),
        row("event.histogram", log=timeline.count_events),
        row("event.read", log=queries.read_events, long=True),
        row("event.wait", log=queries.wait_events, waits=True),
        row("event.subscribe", log=own.subscribe),
        row("event.unsubscribe", immediate=m.unsubscribe),
        sharing_row("space.add", sharing.add_space),
        sharing_row("space.list", sharing.list_spaces),
        sharing_row("space.remove", sharing.remove_space),
        sharing_row("space.repair", sharing.repair_space),
        sharing_row("list.share", sharing.share),
        sharing_row("list.join", sharing.join),
        sharing_row("list.leave", sharing.leave),
    )
    writes = {method.name: Row(method) for method in METHODS.values() if method.kind == "write"}
    return {**writes, **{row.method.name: row for row in rows}}


class Router:
    """Dispatches the calls of connections to their handlers.

    Args:
        table: Handlers by method name.
        connections: All connections.
        queries: Answers reads.
        inbox: The writer's queue.
        submit: Accepts undos.
        claims: Claims of tasks, and the calls that wait for a claim.
        spawn: Runs a coroutine in the background.
        read_only: Whether to reject all writes.
    """

    def __init__(  # noqa: PLR0913 - destinations of calls
        self,
        table: dict[str, Row],
        connections: Connections[Connection],
        queries: Queries,
        *,
        inbox: Inbox,
        submit: Callable[[Write], None],
        claims: Claims,
        spawn: Spawn,
        read_only: bool = False,
    ) -> None:
        self.table = table
        self._connections = connections
        self._queries = queries
        self._inbox = inbox
        self._submit = submit
        self._claims = claims
        self._spawn = spawn
        self._read_only = read_only

    def begin(self, connection: Connection, caller: Caller, call: jsonrpc.Call) -> None:
        try:
            row = self.table.get(call.method)
            if row is None:
                caller.answer(call.id, jsonrpc.unknown_method(call.method))
                return
            try:
                params: Any = msgspec.convert(call.params, row.method.params)
            except msgspec.ValidationError as error:
                caller.answer(call.id, jsonrpc.invalid_params(row.method, error))
                return
            if row.method.kind != "write":
                self._read(connection, caller, call.id, row, params)
                return
            rejection = READ_ONLY if self._read_only else None if row.scope is None else row.scope(caller.user, params)
            write = Write(caller, call.id, row.method, params, stamp(caller, params))
            if rejection is None and type(params) is TaskClaim and params.wait_ms > 0:
                rejection = self._begin_claim(connection, write)
            if rejection is not None:
                caller.answer(call.id, rejection)
                return
            connection.last_write = write
            if type(params) is ListUndo:
                self._submit(write)
            else:
                self._inbox.submit(write)
        except MemoryError:  # the writer may have missed its wake-up, so the daemon has to exit
            raise
        except Exception:
            logger.exception("%s failed", call.method)
            caller.answer(call.id, INTERNAL_ERROR)

    def _begin_claim(self, connection: Connection, write: Write) -> Rejection | None:
        call = self._begin_waiting(connection, write.caller, write.id)
        if type(call) is Rejection:
            return call
        write.caller = call
        call.on_cancel = lambda: self._claims.give_up(write, self._connections.cancelled_rejection)
        return None

    def _begin_waiting(self, connection: Connection, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        return SHUTTING_DOWN if self._connections.closing else connection.waiting.begin(caller, id)

    def _read(self, connection: Connection, caller: Caller, id: bytes | None, row: Row, params: Any) -> None:
        rejection = caller.size_rejection if type(caller) is BatchCaller else None
        if rejection is None and row.trusted:
            rejection = check_trusted(caller.user, row.trusted)
        if rejection is not None:
            caller.answer(id, rejection)
            return
        after_write = connection.last_write is not None
        if row.takes_min_version and params.min_version is not None:
            self._spawn(self._answer_later(connection, caller, id, row, params, after_write))
        elif row.state is not None and (row.needs_log is None or not row.needs_log(params)):
            outcome = None if after_write else self._queries.now(caller, row.state, params)
            if outcome is None:

                def later() -> None:
                    self._spawn(self._answer_later(connection, caller, id, row, params, False))

                self._inbox.submit(Read(caller, id, row.method, params, row.state, later))
            else:
                long = type(outcome) is Pieces or (type(outcome) is bytes and len(outcome) > LONG_BYTES)
                caller.answer(id, caller.admit(outcome) if long else outcome)
        elif row.immediate is not None:
            caller.answer(id, row.immediate(connection, params))
        else:
            if row.waits:
                call = self._begin_waiting(connection, caller, id)
                if isinstance(call, Rejection):
                    caller.answer(id, call)
                    return
                caller = call
            self._spawn(self._answer_later(connection, caller, id, row, params, after_write))

    async def _answer_later(  # noqa: PLR0913 - a call and its origin
        self, connection: Connection, caller: Caller, id: bytes | None, row: Row, params: Any, after_write: bool
    ) -> None:
        outcome: Outcome = CANCELLED
        try:
            if after_write and (rejection := await self._wait_for_writes(connection)) is not None:
                outcome = rejection
            elif (
                row.takes_min_version
                and params.min_version is not None
                and (rejection := await self._queries.reaches(connection, params.conversation, params.min_version))
            ):
                outcome = rejection
            elif isinstance(caller, WaitingCall):
                with caller.cancel_scope():
                    outcome = await self._query(connection, row, params)
            elif row.long:
                async with caller.turn():
                    # Check again: the batch may have grown while this call waited for its turn.
                    rejection = caller.size_rejection if isinstance(caller, BatchCaller) else None
                    outcome = rejection or await self._query(connection, row, params)
            else:
                outcome = await self._query(connection, row, params)
        except MemoryError:
            raise
        except Exception as error:
            logger.error("%s failed", row.method.name, exc_info=error)
            self._connections.metrics.error(f"{row.method.name}: {type(error).__name__}")
            outcome = INTERNAL_ERROR
        if row.method.kind == "read":  # never reject a subscription that is already registered
            outcome = caller.admit(outcome)
        # Look this up last: the response to a cancelled call depends on whether the daemon is stopping by then.
        caller.answer(id, self._connections.cancelled_rejection if outcome is CANCELLED else outcome)
        caller.flush()

    async def _wait_for_writes(self, connection: Connection) -> Rejection | None:
        """Wait until the connection's writes are published, including those to shared lists.

        Return a rejection if they can't be published.
        """
        rejection, write = await self._inbox.barrier(), connection.last_write
        if rejection is None and write is not None and write.stage is Stage.POSTING and write.loaded is not None:
            return None if write.loaded.lane is None else await write.loaded.lane.barrier()
        return rejection

    async def _query(self, connection: Connection, row: Row, params: Any) -> Outcome:
        if row.state is not None and (row.needs_log is None or not row.needs_log(params)):
            return await self._queries.reject_damage(self._queries.from_state(connection, row.state, params))
        assert row.log is not None, f"nothing answers {row.method.name}"
        return await self._queries.reject_damage(row.log(connection, params))
