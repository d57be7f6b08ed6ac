"""Three machines that share a list, in virtual time, over an unreliable space. SIZE is the number of seeds.

In each seed, workers make calls on all machines while pushes, responses and posts are lost or late, a deposed leader
responds, and machines are cut off, killed and restarted. Then everything recovers, and the responses are compared with
the posts, which define the order of all changes.
"""

import asyncio
import random as chance
from random import Random
from typing import NamedTuple

import msgspec

from punchlist_faults.ledger import LIST, Ledger
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.virtual import VirtualLoop, live_through
from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Claimed, Deleted, ListCleared, Released, StatusChanged
from punchlist_testing.domain import random_call, strip_stamps
from punchlist_testing.machines import Connection, Machine
from punchlist_testing.memory_space import Faults, MemorySpace
from punchlistd.domain.state import initial_state
from punchlistd.engine.lists.history import fact_of
from punchlistd.store.port import side_of

NAMES = ("ann", "bob", "eve")
WORKERS = 2
SECONDS = 40.0
NOT_WRITTEN = ("unreachable", "forbidden")

FAULTS = Faults(
    ack_lost=0.05,
    post_lost=0.03,
    post_late=0.03,
    conflict_invented=0.05,
    conflict_kept=0.03,
    reader_old=0.1,
    barrier_lost=0.03,
    push_lost=0.1,
    delays=(0.0, 0.001, 0.002, 0.02),
    late_s=3.0,
)


class Attempt(NamedTuple):
    """One attempt of a call.

    Attributes:
        known: The newest version that any client had received before the attempt.
        newest: The newest version after the attempt.
        unanswered: Whether a machine was killed during an earlier attempt.
    """

    params: p.Mutation
    known: int
    newest: int
    outcome: bytes | Rejection
    unanswered: bool


class Worker:
    """Makes calls on any machine, and retries those with an unknown outcome."""

    def __init__(self, number: int, world: "World", random: Random) -> None:
        self.attempts: list[Attempt] = []
        self._number = number
        self._world = world
        self._random = random
        self._calls = 0
        self._unanswered = False

    async def live(self) -> None:
        world, random = self._world, self._random
        while asyncio.get_running_loop().time() < SECONDS:
            await asyncio.sleep(random.choice((0, 0.01, 0.2, 1.0)))
            params = await self._new()
            self._unanswered = False
            for _ in range(4):
                if not await self._ask(random.choice(world.machines), params):
                    break

    async def _new(self) -> p.Mutation:
        self._calls += 1
        key, random = f"{self._number}.{self._calls}", self._random
        if random.random() < 0.35:
            owner, wait_ms = f"worker{self._number}", random.choice((0, 0, 500))
            lease_ms, keep = random.choice((1_000, 5_000, 60_000)), random.random() < 0.5
            return p.TaskClaim(conversation=LIST, owner=owner, wait_ms=wait_ms, lease_ms=lease_ms, keep=keep, key=key)
        loaded = random.choice(self._world.machines).engine.conversations.loaded.get(LIST)
        params = random_call(random, loaded.state if loaded else initial_state(LIST))
        return msgspec.structs.replace(params, conversation=LIST, key=key, actor=None)

    async def _ask(self, machine: Machine, params: p.Mutation) -> bool:
        world = self._world
        known, link = world.acknowledged, Connection(f"worker{self._number}")
        answer = machine.begin(params, link)
        await asyncio.wait({answer, machine.ended}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            self._unanswered = True  # the machine was killed
            return True
        outcome = answer.result()
        assert isinstance(outcome, bytes | Rejection), "no list here is long"
        self.attempts.append(Attempt(params, known, world.follow(), outcome, self._unanswered))
        if isinstance(outcome, bytes):
            world.acknowledged = max(world.acknowledged, msgspec.json.decode(outcome)["version"])
            return False
        need(outcome.kind not in ("internal_error", "diverged", "upgrade_needed"), f"{outcome} to {params}")
        return outcome.kind in ("unreachable", "outcome_unknown", "shutting_down")


class World:
    """One seed: the space, its machines and workers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.space = MemorySpace(random, FAULTS)
        self.ledger = Ledger()
        self.acknowledged = 0
        self.kills = self.cuts = self.turns = 0
        self.workers = [Worker(number, self, random) for number in range(len(NAMES) * WORKERS)]
        self.machines: list[Machine] = []

    def follow(self) -> int:
        return self.ledger.follow(self.space.posts.get(LIST, []))

    async def live(self) -> None:
        self.machines = [Machine(name, self.space, LIST) for name in NAMES]
        working = [asyncio.ensure_future(worker.live()) for worker in self.workers]
        trouble = asyncio.ensure_future(self._trouble())
        await asyncio.gather(*working, trouble)
        self.space.faults = Faults()
        for machine in self.machines:
            machine.shared.heal()
        await asyncio.sleep(15)
        for machine in self.machines:
            await machine.reaches(LIST, self.follow())
        await self._judge()
        for machine in self.machines:
            await machine.stop()

    async def _trouble(self) -> None:
        while asyncio.get_running_loop().time() < SECONDS:
            await asyncio.sleep(self.random.uniform(0.2, 4))
            index = self.random.randrange(len(self.machines))
            machine = self.machines[index]
            if self.random.random() < 0.4:
                self.kills += 1
                await machine.stop()
                self.machines[index] = Machine(NAMES[index], self.space, LIST, log=machine.log)
            else:
                self.cuts += 1
                machine.shared.cut(noticed=self.random.random() < 0.7)
                await asyncio.sleep(self.random.choice((0.1, 3, 14)))
                machine.shared.heal()

    # Checks

    async def _judge(self) -> None:
        events = [(entry.event, entry.at) for entry in self.ledger.entries]
        for machine in self.machines:
            stored = await machine.log.read(0, 1 << 60, conversation=LIST, max_bytes=1 << 60)
            facts = [(fact.event, fact.at) for fact in map(fact_of, stored)]
            need(facts == events, f"{machine.shared.member} has other events")
            state = (await machine.engine.conversations.durable(LIST)).state
            need(strip_stamps(state) == strip_stamps(self.ledger.state), f"{machine.shared.member} shows another list")
            places = [side.position for side in map(side_of, stored) if side.position]
            need(places == [post.position for post in self.space.posts.get(LIST, [])], "a post is missing or doubled")
        for attempt in (attempt for worker in self.workers for attempt in worker.attempts):
            self._judge_attempt(attempt)
        _judge_claims(self.ledger)

    def _judge_attempt(self, attempt: Attempt) -> None:
        key = attempt.params.key or ""
        call = self.ledger.calls.get(key)
        attempts = [other for worker in self.workers for other in worker.attempts if other.params is attempt.params]
        if isinstance(attempt.outcome, Rejection):
            never = all(
                isinstance(other.outcome, Rejection) and other.outcome.kind in NOT_WRITTEN for other in attempts
            )
            need(call is None or not never or attempt.unanswered, f"{key} was not written, and is there")
            return
        answer = msgspec.json.decode(attempt.outcome)
        need(answer["version"] <= attempt.newest, f"{key} was answered before it was posted")
        if call is not None:
            need(call.last <= answer["version"], f"{key} was answered {answer['version']}, and is at {call.last}")
            fresh = call.last > attempt.known or len(attempts) > 1 or attempt.unanswered
            need(fresh, f"{key} is older than what was known")
        elif type(attempt.params) is p.TaskClaim and not answer.get("task"):
            last, entries = attempt.newest, self.ledger.entries
            while last < len(entries) and isinstance(entries[last].event, Claimed):
                last += 1  # waiting claims took the available tasks immediately
            window = self.ledger.available[attempt.known : last + 1]
            need(0 in window, f"{key} found nothing from version {attempt.known} to {attempt.newest}: {window}")


def _judge_claims(ledger: Ledger) -> None:
    held: dict[str, tuple[str, int]] = {}
    for version, event in ((entry.version, entry.event) for entry in ledger.entries):
        if isinstance(event, Claimed):
            need(event.task not in held, f"{event.task} was claimed twice, at {held.get(event.task)} and {version}")
            need(event.fence == version, f"the claim at {version} has the fence {event.fence}")
            held[event.task] = (event.owner, version)
        elif isinstance(event, Released | StatusChanged | Deleted):
            held.pop(event.task, None)
        elif isinstance(event, ListCleared):
            held.clear()


def run_seed(seed: object) -> World:
    """Run one seed; a `Violation` names it."""
    random = Random(f"simulate-shared/{seed}")
    chance.seed(f"simulate-shared/{seed}")  # seeds the pauses between attempts
    loop = VirtualLoop(random)
    world = World(random)
    live_through(seed, world.live(), loop)
    world.turns = loop.turns
    return world


def run(options: Options) -> Figures:
    worlds = [run_seed(seed) for seed in range(options.seed, options.seed + options.size)]
    attempts = [attempt for world in worlds for worker in world.workers for attempt in worker.attempts]
    turns = sum(world.turns for world in worlds)
    lanes = [lane for world in worlds for machine in world.machines for lane in machine.lanes.lanes.values()]
    return {
        "seeds": options.size,
        "turns": turns,
        "posts": sum(len(world.space.posts.get(LIST, [])) for world in worlds),
        "answers": sum(isinstance(attempt.outcome, bytes) for attempt in attempts),
        "refusals": sum(isinstance(attempt.outcome, Rejection) for attempt in attempts),
        "conflicts (of the last lives)": sum(lane.counts.conflicts for lane in lanes),
        "machines killed": sum(world.kills for world in worlds),
        "machines cut off": sum(world.cuts for world in worlds),
    }
