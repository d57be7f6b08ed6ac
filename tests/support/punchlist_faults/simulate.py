"""The engine in virtual time, from the writer to subscriptions, with a disk that loses data in a crash.

SIZE is the number of seeds. Each seed runs several lives of a daemon, each of which ends with a crash at a random time.
Clients write and retry calls by key, subscribers come, go and get stuck. It checks that acknowledged and pushed events
are durable, that calls are pushed whole, in order and without a gap, and that all acknowledged calls survive every
crash.
"""

import asyncio
import copy
from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any

import msgspec

from punchlist_faults.judge import group_calls
from punchlist_faults.options import Figures, Options, Violation, need
from punchlist_faults.virtual import VirtualLoop, live_through
from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlist_testing.domain import random_call, replay, strip_stamps
from punchlist_testing.memory_log import MemoryLog
from punchlistd.app.app import Engine
from punchlistd.domain.state import initial_state
from punchlistd.engine.calls import DaemonCaller, Write, stamp
from punchlistd.engine.lists.history import fact_of
from punchlistd.engine.replies import Outcome, Pieces, Reply
from punchlistd.engine.watching.subscriptions import Subscription
from punchlistd.settings import Settings
from punchlistd.store.port import Sealed, Snapshot, StorageFull, Stored

LIVES = 3
CLIENTS = 4
SUBSCRIBERS = 3
CONVERSATIONS = ("a", "b", "c")
_METHODS = {method.params: method for method in METHODS.values()}
_SETTINGS = Settings(
    socket="",
    data_dir="",
    batch_calls=4,
    index_events=20,
    index_delay_s=0.05,
    loaded_s=0.2,
    chunk_bytes=900,
    recent_bytes=4_000,
)


class ForgetfulLog(MemoryLog):
    """A log whose commits take time and are durable only at their end."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._pending: list[Sealed] = []
        self.full_until = 0.0

    async def append(self, entries: Sequence[Sealed]) -> None:
        now = asyncio.get_running_loop().time()
        if self._random.random() < 0.01:
            self.full_until = now + 0.05
        if now < self.full_until:
            await asyncio.sleep(0.001)
            raise StorageFull
        self._pending = list(entries)
        await asyncio.sleep(self._random.choice((0, 0.001, 0.02)))
        await super().append(entries)
        self._pending = []
        await asyncio.sleep(self._random.choice((0, 0, 0.005)))

    @property
    def quick(self) -> bool:
        return self._random.random() < 0.5

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        if not self.quick or asyncio.get_running_loop().time() < self.full_until:
            return False
        return self._commit(entries)

    def _commit(self, entries: Sequence[Sealed]) -> bool:
        MemoryLog.__dict__["_append"](self, entries)
        return True

    async def load(self, conversation: str) -> Any:
        await asyncio.sleep(self._random.choice((0, 0.003)))
        return await super().load(conversation)

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        found = await super().read(after, limit, conversation=conversation, max_bytes=max_bytes)
        await asyncio.sleep(self._random.choice((0, 0.003)))
        return found

    async def maintain(self, snapshots: Sequence[Snapshot]) -> None:
        await asyncio.sleep(self._random.choice((0, 0.002)))
        await super().maintain(snapshots)

    def survivor(self) -> "ForgetfulLog":
        """Return the log after a power failure; a commit in flight is durable as a whole or not at all."""
        other = ForgetfulLog(self._random)
        lost = ("_random", "_pending", "full_until")
        vars(other).update(copy.deepcopy({name: value for name, value in vars(self).items() if name not in lost}))
        if self._pending and self._random.random() < 0.5:
            other._commit(self._pending)
        return other

    def place_of(self, params: p.Mutation) -> int | None:
        return self._keys.get(params.conversation, {}).get(params.key or "")

    def everything(self) -> list[Stored]:
        return list(self._after(0, None))


class Call:
    """One call of the journal.

    Attributes:
        answered: Number of successful responses.
        results: Distinct results (position, version, first event) of a call with events. A call that changed nothing
            isn't in the log, so a retry is a new call.
        refused: Kind of its final rejection, or "".
    """

    def __init__(self, params: p.Mutation) -> None:
        self.params = params
        self.answered = 0
        self.results: set[tuple[int, int, int]] = set()
        self.refused = ""


class Connection(DaemonCaller):
    """A client's connection to one daemon. After it is closed, it ignores responses."""

    def __init__(self, world: "World", actor: str) -> None:
        self.actor = actor
        self.closed = False
        self.waiting: asyncio.Future[bytes | Rejection] | None = None
        self._world = world

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        if self.closed:
            return
        assert type(outcome) is not Pieces, "no list here is long"
        assert self.waiting is not None
        need(not self.waiting.done(), "answered twice")
        if isinstance(outcome, bytes):
            seq = msgspec.json.decode(outcome)["seq"]
            need(seq <= self._world.log.head, f"answered with {seq}, durable is {self._world.log.head}")
        self.waiting.set_result(outcome)


class Client:
    """A client that makes calls in sequence and, after a crash, retries those without a response."""

    def __init__(self, number: int, world: "World", random: Random) -> None:
        self._number = number
        self._world = world
        self._random = random
        self.journal: list[Call] = []
        self.connection = Connection(world, "")

    async def live(self) -> None:
        self.connection = Connection(self._world, f"client{self._number}")
        for call in [call for call in self.journal if not call.answered and not call.refused]:
            await self._ask(call)
        while True:
            await asyncio.sleep(self._random.choice((0, 0, 0.001, 0.03)))
            if self.journal and self._random.random() < 0.1:
                await self._ask(self._random.choice(self.journal))
            else:
                self.journal.append(Call(self._new()))
                await self._ask(self.journal[-1])

    def _new(self) -> p.Mutation:
        name = self._random.choice(CONVERSATIONS)
        opened = self._world.conversations.loaded.get(name)
        params = random_call(self._random, opened.state if opened else initial_state(name))
        key = f"{self._number}.{len(self.journal)}"
        return msgspec.structs.replace(params, conversation=name, key=key, actor=None)

    async def _ask(self, call: Call) -> None:
        link = self.connection
        link.waiting = asyncio.get_running_loop().create_future()
        command = stamp(link, call.params)
        self._world.engine.writer.submit(Write(link, b"1", _METHODS[type(call.params)], call.params, command))
        outcome = await link.waiting
        if isinstance(outcome, bytes):
            call.answered += 1
            result = msgspec.json.decode(outcome)
            if (first := self._world.log.place_of(call.params)) is not None:
                call.results.add((result["seq"], result["version"], first))
        elif outcome.kind not in ("storage_full", "shutting_down"):
            call.refused = outcome.kind
            need(outcome.kind != "internal_error", f"a fault of ours in {call.params}")
            need(not call.results, f"{call.params.key} was answered and is now refused: {outcome}")


class Sink:
    """A watcher's connection to one daemon. After it is closed, it ignores pushes."""

    actor = None
    user = None
    framing = "lines"

    def __init__(self, watcher: "Watcher") -> None:
        self.paused = False
        self.closed = False
        self._watcher = watcher

    def push(self, payload: Reply) -> None:
        if not self.closed and isinstance(payload, bytes):
            need(not self.paused, "pushed to a connection that takes nothing")
            if self._watcher.check_push(msgspec.json.decode(payload)["params"]["events"]):
                self.paused = True
                self._watcher.hold()

    def push_framed(self, framed: bytes) -> None:
        self.push(framed)

    def framed(self, payload: bytes) -> bytes:
        return payload

    def ended(self, id: str, payload: bytes) -> None:
        raise Violation(f"a subscription ended: {payload!r}")


class Watcher:
    """A subscriber to all events that gets stuck at times, and resumes after its last event."""

    def __init__(self, world: "World", random: Random) -> None:
        self.position = 0
        self.pushed = 0
        self.sink = Sink(self)
        self.subscription: Subscription | None = None
        self._world = world
        self._random = random

    def check_push(self, events: list[dict[str, Any]]) -> bool:
        """Check that a push is durable, in order and complete; return whether the connection's buffer is now full."""
        for event in events:
            need(event["seq"] == self.position + 1, f"after {self.position} came {event['seq']}")
            self.position = event["seq"]
        need(self.position <= self._world.log.head, f"pushed {self.position}, durable is {self._world.log.head}")
        need(self._world.ends_a_call(self.position), f"a call was pushed in part, up to {self.position}")
        self.pushed += len(events)
        return self._random.random() < 0.1

    def hold(self) -> None:
        if self.subscription is not None:
            self._world.subscriptions.pause(self.subscription)

    async def live(self) -> None:
        while True:
            self.sink = Sink(self)
            subscription = self.subscription = Subscription("1", self.sink, "events", None, self.position)
            self._world.subscriptions.add(subscription)
            self._world.subscriptions.catch_up(subscription)
            for _ in range(self._random.randint(1, 20)):
                await asyncio.sleep(self._random.choice((0.001, 0.02)))
                if self.sink.paused and self._random.random() < 0.5:
                    self.sink.paused = False
                    self._world.subscriptions.catch_up(subscription)
            self._world.subscriptions.remove(subscription)
            self.sink.closed = True


def _ignore(*_arguments: object) -> None:
    pass


class World:
    """One seed: a disk, clients and watchers, and a new daemon in each life."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.log = ForgetfulLog(random)
        self.clients = [Client(number, self, random) for number in range(CLIENTS)]
        self.watchers = [Watcher(self, random) for _ in range(SUBSCRIBERS)]
        self.turns = 0

    def ends_a_call(self, seq: int) -> bool:
        return seq == 0 or self.log.everything()[seq - 1].remaining == 0

    def begin(self, tasks: list["asyncio.Task[Any]"]) -> None:
        def spawn(work: Coroutine[Any, Any, None]) -> None:
            tasks.append(asyncio.ensure_future(work))

        self.engine = engine = Engine(self.log, _SETTINGS, spawn=spawn, show=_ignore)
        self.conversations, self.subscriptions = engine.conversations, engine.subscriptions
        spawn(engine.writer.run())
        spawn(engine.maintenance.recover())

    def check_turn(self) -> None:
        self.turns += 1
        need(self.subscriptions.head <= self.log.head, "published before it was durable")
        for name, opened in self.conversations.loaded.items():
            if not opened.dirty:
                need(opened.seq <= self.log.head, f"{name} is shown ahead of the log")

    async def live(self, loop: VirtualLoop) -> None:
        tasks: list[asyncio.Task[Any]] = []
        self.begin(tasks)
        loop.on_turn = self.check_turn
        tasks += [asyncio.ensure_future(actor.live()) for actor in (*self.clients, *self.watchers)]
        end = loop.time() + self.random.uniform(0.01, 0.6)
        while loop.time() < end:
            await asyncio.sleep(0.005)
            for task in tasks:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise Violation(f"something ended: {error!r}") from error
        loop.on_turn = lambda: None
        self.log = self.log.survivor()  # tasks of the dead daemon write to the old log, which is discarded
        for client in self.clients:
            client.connection.closed = True
        for watcher in self.watchers:
            watcher.sink.closed = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def judge(self) -> None:
        """Check the log after a crash: whole calls, no gaps, and each acknowledged call at its position."""
        group_calls(self.log.everything())
        for client in self.clients:
            for call in client.journal:
                need(len(call.results) <= 1, f"{call.params} was answered {call.results}")
                for _, _, first in call.results:
                    need(self.log.place_of(call.params) == first, f"lost: {call.params}, answered {call.results}")


async def _life(world: World, loop: VirtualLoop) -> None:
    for _ in range(LIVES):
        await world.live(loop)
        world.judge()
    for name in CONVERSATIONS:
        loaded = Engine(world.log, _SETTINGS, spawn=_ignore, show=_ignore).conversations
        history = [event for event in world.log.everything() if event.conversation == name]
        need(
            strip_stamps((await loaded.load(name)).state) == strip_stamps(replay(name, map(fact_of, history))),
            f"{name} is not its replay",
        )


def run_seed(seed: object) -> World:
    """Run one seed; a `Violation` names it."""
    random = Random(f"simulate/{seed}")
    loop = VirtualLoop(random)
    world = World(random)
    live_through(seed, _life(world, loop), loop)
    return world


def run(options: Options) -> Figures:
    events = answered = turns = pushed = 0
    for seed in range(options.seed, options.seed + options.size):
        world = run_seed(seed)
        events += world.log.head
        turns += world.turns
        answered += sum(call.answered for client in world.clients for call in client.journal)
        pushed += sum(watcher.pushed for watcher in world.watchers)
    return {
        "seeds": options.size,
        "crashes": options.size * LIVES,
        "turns checked": turns,
        "events": events,
        "answers": answered,
        "pushed": pushed,
    }
