"""Machines that share lists in one space: engines in this process, each with its own log."""

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import Mutation
from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.memory_space import MemorySharedLog, MemorySpace
from punchlistd.app.app import Engine
from punchlistd.engine.calls import DaemonCaller, Read, Write, stamp
from punchlistd.engine.lists.loaded import Place
from punchlistd.engine.reading.state_queries import list_tasks
from punchlistd.engine.replies import Outcome
from punchlistd.replication.lanes.lanes import Lanes
from punchlistd.replication.lanes.replica import Parts
from punchlistd.settings import Settings
from punchlistd.store.port import Sealed, StorageFull

METHOD_OF = {method.params: method for method in METHODS.values()}
SETTINGS = Settings(socket="", data_dir="", index_delay_s=0.05, grace_s=1.0)


class Connection(DaemonCaller):
    """A client's connection; its claims last until it closes."""

    user: str | None = None
    pid = 1
    unsent_bytes = 0
    is_gone = False
    is_agents = False

    def __init__(self, actor: str = "client") -> None:
        self.actor = actor
        self.holder = self
        self.last_seen_at = asyncio.get_running_loop().time()
        self.waiting: dict[bytes, asyncio.Future[Outcome]] = {}
        self._ids = itertools.count(1)

    def next_id(self) -> bytes:
        return b"%d" % next(self._ids)

    def admit(self, outcome: Outcome) -> Outcome:
        """Return the outcome unchanged: this connection has no quota."""
        return outcome

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        assert id is not None, "every call here has an id"
        self.waiting.pop(id).set_result(outcome)


def _ignore_totals(*_counts: int) -> None:
    pass


class Log(MemoryLog):
    """A log that rejects appends while `full` is set."""

    full = False

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        if self.full:
            raise StorageFull
        return super().append_now(entries)


class Machine:
    """A daemon without a socket.

    Args:
        name: Name of the machine.
        space: Space in which it shares lists.
        lists: Names of the shared lists.
        log: Its log, for a restart over an earlier one; by default a new one.
        may_post: Whether it may write to the space.
        data_dir: Directory for its files; only needed to erase.
    """

    def __init__(
        self,
        name: str,
        space: MemorySpace,
        *lists: str,
        log: Log | None = None,
        may_post: bool = True,
        data_dir: str = "",
    ) -> None:
        self.log = log or Log(at_once=True)
        settings = msgspec.structs.replace(SETTINGS, data_dir=data_dir)
        self.tasks: list[asyncio.Task[Any]] = []
        self.engine = engine = Engine(self.log, settings, spawn=self.spawn, show=_ignore_totals)
        self.shared: MemorySharedLog = space.member(f"{name}_{self.log.epoch[:8]}", may_post=may_post)
        show = engine.subscriptions.show_again
        parts = Parts(self.log, engine.inbox, engine.conversations, engine.transactor, engine.claims, show)
        self.lanes = Lanes("team", self.shared, parts, engine.claims.leases)
        engine.claims.leases.member = self.lanes.members.get
        for list_name in lists:
            self.lanes.add(list_name, Place())
        self.connection = Connection(name)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        space.machines.append(self)
        self.spawn(engine.writer.run())
        self.spawn(self.lanes.run())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def begin(self, params: Mutation, connection: Connection | None = None) -> "asyncio.Future[Outcome]":
        """Submit a call; return the future of its outcome."""
        link = connection or self.connection
        id = link.next_id()
        answer = link.waiting[id] = asyncio.get_running_loop().create_future()
        self.engine.writer.submit(Write(link, id, METHOD_OF[type(params)], params, stamp(link, params)))
        return answer

    def read(self, params: p.TaskList) -> "asyncio.Future[Outcome]":
        """Submit a read, which runs after the connection's earlier writes; return the future of its outcome."""
        link = self.connection
        id = link.next_id()
        answer = link.waiting[id] = asyncio.get_running_loop().create_future()
        self.engine.inbox.submit(Read(link, id, METHODS["task.list"], params, list_tasks, lambda: None))
        return answer

    async def call(self, params: Mutation, connection: Connection | None = None) -> dict[str, Any]:
        outcome = await self.begin(params, connection)
        assert isinstance(outcome, bytes), outcome
        return msgspec.json.decode(outcome)

    async def refused(self, params: Mutation, connection: Connection | None = None) -> Rejection:
        """Make a call that must be rejected; return the rejection."""
        outcome = await self.begin(params, connection)
        assert isinstance(outcome, Rejection), outcome
        return outcome

    async def version(self, name: str) -> int:
        return (await self.engine.conversations.durable(name)).state.version

    async def reaches(self, name: str, version: int) -> None:
        async with asyncio.timeout(60):
            while await self.version(name) < version:  # noqa: ASYNC110 - the engine has no such event
                await asyncio.sleep(0.01)

    async def becomes(self, name: str, state: str) -> None:
        async with asyncio.timeout(60):
            while self.lanes.lanes[name].replica.state != state:  # noqa: ASYNC110 - the engine has no such event
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """End as a killed process does, leaving all calls unanswered. Re-raise the first exception of its tasks."""
        if self.ended.done():
            return
        self.engine.close()
        self.ended.set_result(None)
        for task in self.tasks:
            task.cancel()
        results = await asyncio.gather(*self.tasks, return_exceptions=True)
        faults = [result for result in results if isinstance(result, Exception)]
        if faults:
            raise faults[0]
