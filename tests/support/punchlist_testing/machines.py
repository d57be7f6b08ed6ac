"""Machines that share lists: whole engines in one process, each over its own log, in one space."""

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
    """A client's connection: it holds what it claims until it is closed."""

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
        """Everything is let through."""
        return outcome

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        assert id is not None, "every call here has an id"
        self.waiting.pop(id).set_result(outcome)


def _shown(*_counts: int) -> None:
    """Nobody looks at a prompt."""


class Log(MemoryLog):
    """A log that may be full."""

    full = False

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        if self.full:
            raise StorageFull
        return super().append_now(entries)


class Machine:
    """One daemon but for its socket.

    Args:
        name: the machine's.
        space: where it shares lists.
        log: its own log, of a life before perhaps.
        lists: the lists that are shared.
        may_post: whether it may write.
        data_dir: where it keeps files, if it erases anything.
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
        self.engine = engine = Engine(self.log, settings, spawn=self.spawn, show=_shown)
        self.shared: MemorySharedLog = space.member(f"{name}_{self.log.epoch[:8]}", may_post=may_post)
        show = engine.subscriptions.show_again
        parts = Parts(self.log, engine.inbox, engine.conversations, engine.transactor, engine.claims, show)
        self.lanes = Lanes("team", self.shared, parts, engine.claims.leases)
        engine.claims.leases.member = self.lanes.members.get
        for each in lists:
            self.lanes.add(each, Place())
        self.connection = Connection(name)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        space.machines.append(self)
        self.spawn(engine.writer.run())
        self.spawn(self.lanes.run())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def begin(self, params: Mutation, connection: Connection | None = None) -> "asyncio.Future[Outcome]":
        """Call; the future is its answer."""
        link = connection or self.connection
        id = link.next_id()
        answer = link.waiting[id] = asyncio.get_running_loop().create_future()
        self.engine.writer.submit(Write(link, id, METHOD_OF[type(params)], params, stamp(link, params)))
        return answer

    def read(self, params: p.TaskList) -> "asyncio.Future[Outcome]":
        """Read a list in turn, behind the writes of the connection."""
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
        """Call, and take the refusal."""
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
        """End as after kill -9: nothing is answered any more."""
        if self.ended.done():
            return
        self.engine.close()
        self.ended.set_result(None)
        for task in self.tasks:
            task.cancel()
        ended = await asyncio.gather(*self.tasks, return_exceptions=True)
        faults = [each for each in ended if isinstance(each, Exception)]
        if faults:
            raise faults[0]
