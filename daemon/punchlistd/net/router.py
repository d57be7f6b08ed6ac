"""The table of what answers each method, and a call's way to it.

A read that comes behind a write of the same connection is answered behind it. An exception becomes an error on the wire
here and nowhere else.
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
from punchlistd.engine.replies import INTERNAL_ERROR, LONG_BYTES, SHUTTING_DOWN, Outcome, Pieces
from punchlistd.engine.writing.inbox import Inbox
from punchlistd.net import jsonrpc
from punchlistd.net import methods as m
from punchlistd.net.connection import Connection
from punchlistd.net.connection.callers import BatchCaller, WaitingCall
from punchlistd.net.connection.connections import GIVEN_UP, Connections
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
    """What answers a method. A write has none of the first three: the writer decides it.

    Attributes:
        method: The row of the contract: name, kind, params, result.
        at_once: Answers from the connection itself.
        state: Answers from the present state of one conversation.
        log: Answers from the log, however long it takes.
        from_log: Whether a call needs `log` where there is `state` too.
        long: Whether the answers of `log` may be long: they are made one after the other, as the peer takes them.
        reaches: Whether it may ask for a version that has not come yet.
        waits: Whether it may wait for something to happen; it does not hold up the other calls of its connection.
        trusted: What it does that a connection which is bound to a user can't.
        scope: Refuses a call of a connection that is bound to a user.
    """

    method: Method
    at_once: Callable[[Connection, Any], Outcome] | None = None
    state: StateQuery | None = None
    log: Callable[[Connection, Any], Awaitable[Outcome]] | None = None
    from_log: Callable[[Any], bool] | None = None
    long: bool = False
    reaches: bool = False
    waits: bool = False
    trusted: str = ""
    scope: Callable[[str | None, Mutation], Rejection | None] | None = None


def table(own: ConnectionMethods, queries: Queries, search: Search, sharing: Sharing) -> dict[str, Row]:
    def row(name: str, **answers: Any) -> Row:
        return Row(METHODS[name], **answers)

    def machines(name: str, answer: Callable[[Any], Awaitable[Outcome]]) -> Row:
        def answered(_connection: Connection, params: Any) -> Awaitable[Outcome]:
            return answer(params)

        return row(name, log=answered, trusted="decide what other machines get")

    rows = (
        row("daemon.hello", at_once=own.hello),
        row("rpc.discover", at_once=m.discover),
        row("rpc.cancel", at_once=m.cancel),
        row("$/cancelRequest", at_once=m.cancel),
        row("initialize", at_once=own.initialize),
        row("initialized", at_once=m.acknowledge),
        row("shutdown", at_once=m.acknowledge),
        row("exit", at_once=m.leave),
        row("daemon.status", log=queries.status),
        row("daemon.backup", log=queries.backup, trusted="copy the whole log"),
        row("daemon.shutdown", at_once=own.shutdown, trusted="stop the daemon"),
        row("agent.enter", at_once=own.enter),
        row("agent.leave", at_once=own.leave),
        row("agent.list", log=own.agents),
        row("confirmation.get", at_once=own.confirmation),
        row("conversation.open", scope=foreign_owner),
        row("conversation.get", state=q.get_conversation),
        row("conversation.presence", log=own.presence),
        row("conversation.list", log=queries.list_conversations, long=True),
        row("conversation.resolve", log=queries.resolve),
        row("task.get", state=q.get_task, reaches=True),
        row(
            "task.list",
            state=q.list_tasks,
            log=queries.list_tasks,
            from_log=q.needs_log,
            long=True,
            reaches=True,
        ),
        row("task.explain", state=q.explain_task, reaches=True),
        row("task.search", log=search.answer, long=True),
        row("message.get", log=queries.get_message),
        row("message.list", log=queries.list_messages, long=True),
        row("event.find", log=queries.find_events),
        row("event.read", log=queries.read_events, long=True),
        row("event.wait", log=queries.wait_events, waits=True),
        row("event.subscribe", log=own.subscribe),
        row("event.unsubscribe", at_once=m.unsubscribe),
        machines("space.add", sharing.add_space),
        machines("space.list", sharing.list_spaces),
        machines("space.remove", sharing.remove_space),
        machines("space.repair", sharing.repair_space),
        machines("list.share", sharing.share),
        machines("list.join", sharing.join),
        machines("list.leave", sharing.leave),
    )
    writes = {method.name: Row(method) for method in METHODS.values() if method.kind == "write"}
    return {**writes, **{each.method.name: each for each in rows}}


class Router:
    """Brings the calls of connections to where they are answered.

    Args:
        table: what answers each method.
        connections: where calls come from.
        queries: answers what is asked of a state.
        inbox: has the calls that wait for the writer.
        submit: takes undos.
        claims: who has tasks, and who waits for them.
        spawn: runs a coroutine beside everything else.
        read_only: whether every change is refused.
    """

    def __init__(  # noqa: PLR0913 - where calls go
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
            refused = READ_ONLY if self._read_only else None if row.scope is None else row.scope(caller.user, params)
            write = Write(caller, call.id, row.method, params, stamp(caller, params))
            if refused is None and type(params) is TaskClaim and params.wait_ms > 0:
                refused = self._begin_claim(connection, write)
            if refused is not None:
                caller.answer(call.id, refused)
                return
            connection.last_write = write
            if type(params) is ListUndo:
                self._submit(write)
            else:
                self._inbox.submit(write)
        except MemoryError:  # the writer may have lost the word that there is work: the daemon ends
            raise
        except Exception:
            logger.exception("%s failed", call.method)
            caller.answer(call.id, INTERNAL_ERROR)

    def _begin_claim(self, connection: Connection, write: Write) -> Rejection | None:
        call = self._begin_waiting(connection, write.caller, write.id)
        if type(call) is Rejection:
            return call
        write.caller = call
        call.on_give_up = lambda: self._claims.give_up(write, self._connections.given_up)
        return None

    def _begin_waiting(self, connection: Connection, caller: Caller, id: bytes | None) -> WaitingCall | Rejection:
        return SHUTTING_DOWN if self._connections.closing else connection.waiting.begin(caller, id)

    def _read(self, connection: Connection, caller: Caller, id: bytes | None, row: Row, params: Any) -> None:
        refused = caller.full if type(caller) is BatchCaller else None
        if refused is None and row.trusted:
            refused = check_trusted(caller.user, row.trusted)
        if refused is not None:
            caller.answer(id, refused)
            return
        behind_write = connection.last_write is not None
        if row.reaches and params.min_version is not None:
            self._spawn(self._answer_later(connection, caller, id, row, params, behind_write))
        elif row.state is not None and (row.from_log is None or not row.from_log(params)):
            outcome = None if behind_write else self._queries.now(caller, row.state, params)
            if outcome is None:

                def later() -> None:
                    self._spawn(self._answer_later(connection, caller, id, row, params, False))

                self._inbox.submit(Read(caller, id, row.method, params, row.state, later))
            else:
                long = type(outcome) is Pieces or (type(outcome) is bytes and len(outcome) > LONG_BYTES)
                caller.answer(id, caller.admit(outcome) if long else outcome)
        elif row.at_once is not None:
            caller.answer(id, row.at_once(connection, params))
        else:
            if row.waits:
                call = self._begin_waiting(connection, caller, id)
                if isinstance(call, Rejection):
                    caller.answer(id, call)
                    return
                caller = call
            self._spawn(self._answer_later(connection, caller, id, row, params, behind_write))

    async def _answer_later(  # noqa: PLR0913 - a call, and where it came from
        self, connection: Connection, caller: Caller, id: bytes | None, row: Row, params: Any, behind_write: bool
    ) -> None:
        outcome: Outcome = GIVEN_UP
        try:
            if behind_write and (refused := await self._passed(connection)) is not None:
                outcome = refused
            elif (
                row.reaches
                and params.min_version is not None
                and (refused := await self._queries.reaches(connection, params.conversation, params.min_version))
            ):
                outcome = refused
            elif isinstance(caller, WaitingCall):
                with caller.running():
                    outcome = await self._from_log(connection, row, params)
            elif row.long:
                async with caller.turn():
                    full = caller.full if isinstance(caller, BatchCaller) else None
                    outcome = full or await self._from_log(connection, row, params)
            else:
                outcome = await self._from_log(connection, row, params)
        except MemoryError:
            raise
        except Exception as error:
            logger.error("%s failed", row.method.name, exc_info=error)
            self._connections.metrics.error(f"{row.method.name}: {type(error).__name__}")
            outcome = INTERNAL_ERROR
        if row.method.kind == "read":  # a subscription that is made is never refused
            outcome = caller.admit(outcome)
        # Asked only now: whether the daemon stops decides what a call is told that was given up.
        caller.answer(id, self._connections.given_up if outcome is GIVEN_UP else outcome)
        caller.flush()

    async def _passed(self, connection: Connection) -> Rejection | None:
        """Wait until the connection's writes are published, those that a lane posts included; why they never are."""
        refused, write = await self._inbox.barrier(), connection.last_write
        if refused is None and write is not None and write.stage is Stage.POSTING and write.loaded is not None:
            return None if write.loaded.lane is None else await write.loaded.lane.barrier()
        return refused

    async def _from_log(self, connection: Connection, row: Row, params: Any) -> Outcome:
        if row.state is not None and (row.from_log is None or not row.from_log(params)):
            return await self._queries.reject_damage(self._queries.from_state(connection, row.state, params))
        assert row.log is not None, f"nothing answers {row.method.name}"
        return await self._queries.reject_damage(row.log(connection, params))
