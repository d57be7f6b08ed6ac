"""A list on several machines: responses, errors and pushes with an in-memory space in virtual time."""

import asyncio
import functools
import inspect
import random as chance
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import anyio
import msgspec
import pytest

from punchlist_faults.virtual import VirtualLoop, run
from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AddedTask, TaskAdded
from punchlist_testing.engine import until
from punchlist_testing.machines import Connection, Machine
from punchlist_testing.memory_space import Faults, MemorySpace
from punchlist_testing.turns import turns
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Decision
from punchlistd.domain.decide.many import add_many
from punchlistd.domain.evolve import evolve
from punchlistd.engine.calls import Arrival, DaemonCaller, Step
from punchlistd.engine.lists.loaded import Place
from punchlistd.engine.replies import Reply
from punchlistd.engine.watching import views
from punchlistd.engine.watching.subscriptions import Subscription
from punchlistd.engine.writing.transaction import MAX_PARTS, OVERTAKEN
from punchlistd.replication.lanes.lane import Stage
from punchlistd.replication.lanes.members import MAX_SEEN, Members
from punchlistd.replication.lanes.replica import CERTAIN_S
from punchlistd.replication.port import Conflict, Posted
from punchlistd.replication.posts.history import NameTaken, put_back, read_pieces, share
from punchlistd.replication.posts.posting import post
from punchlistd.replication.posts.posts import check_of, seal
from punchlistd.replication.posts.repair import find_bad
from punchlistd.slices import SLICE_EVENTS

LIST = "release"
T = TypeVar("T", bound=Callable[..., object])


def play(story: Callable[[MemorySpace], Awaitable[None]], faults: Faults | None = None, seed: int = 1) -> None:
    """Run a scenario of machines in virtual time. Then stop the machines that are still running."""
    random = Random(seed)
    chance.seed(seed)
    loop = VirtualLoop(random)

    async def main() -> None:
        await told(story, MemorySpace(random, faults or Faults(delays=(0.001, 0.003))))

    run(main(), loop)


async def told(story: Callable[..., Awaitable[None]], space: MemorySpace, **params: object) -> None:
    await story(space, **params)
    for machine in space.machines:
        await machine.stop()


def together(faults: Faults | None = None) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turn a scenario into a test in virtual time. The scenario gets the space and the fixtures that it names."""

    def decorate(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def test(**params: object) -> None:
            play(lambda space: story(space, **params), faults)

        return named(test, story)

    return decorate


def in_real_time(story: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Turn a scenario into a test in real time, because erasure uses a thread."""

    async def test(**params: object) -> None:
        with anyio.fail_after(60):
            await told(story, MemorySpace(), **params)

    return named(test, story)


def named(test: T, story: Callable[..., object]) -> T:
    """Give a test its scenario's name, and its parameters except the space."""
    signature = inspect.signature(story)
    own = [each for name, each in signature.parameters.items() if name != "space"]
    vars(test).update(__signature__=signature.replace(parameters=own))
    functools.update_wrapper(test, story)
    return test


def add(title: str, key: str | None = None) -> p.TaskAdd:
    return p.TaskAdd(conversation=LIST, title=title, key=key)


def claim(owner: str, **more: object) -> p.TaskClaim:
    return p.TaskClaim(conversation=LIST, owner=owner, **more)  # pyright: ignore[reportArgumentType]


def pair(space: MemorySpace, directory: object = "") -> tuple[Machine, Machine]:
    return Machine("ann", space, LIST, data_dir=str(directory)), Machine("bob", space, LIST, data_dir=str(directory))


async def sharing(space: MemorySpace, directory: object = "") -> tuple[Machine, Machine]:
    """Return two machines that have the list with one task."""
    a, b = pair(space, directory)
    await a.call(add("one"))
    await b.reaches(LIST, 2)
    return a, b


async def decoded(outcome: Awaitable[object]) -> Any:
    got = await outcome
    assert isinstance(got, bytes), got
    return msgspec.json.decode(got)


@together()
async def test_concurrent_machines_number_tasks_without_gaps(space: MemorySpace) -> None:
    machines = Machine("ann", space, LIST), Machine("bob", space, LIST), Machine("eve", space, LIST)
    begun = [each.begin(add(f"{each.connection.actor} {n}")) for n in range(20) for each in machines]
    answers = [await decoded(answer) for answer in begun]
    assert sorted(int(answer["task"]["id"]) for answer in answers) == list(range(1, 61))
    for each in machines:
        await each.reaches(LIST, 61)
    titles = [[t.title for t in (await m.engine.conversations.durable(LIST)).state.ordered()] for m in machines]
    assert titles[0] == titles[1] == titles[2] and len(titles[0]) == 60
    assert sum(lane.counts.conflicts for m in machines for lane in m.lanes.lanes.values()) > 0


@together()
async def test_turn_shows_changes_of_another_machine(space: MemorySpace) -> None:
    a, b = await sharing(space)
    query = p.TurnQuery(agent="ann")
    since = (await a.call(p.TaskAdd(conversation=LIST, title="two", turn=query)))["seq"]
    await b.reaches(LIST, 3)
    version = (await b.call(p.TaskEdit(conversation=LIST, task="1", title="changed")))["version"]
    await a.reaches(LIST, version)
    query = p.TurnQuery(agent="ann", since=since, own=())
    turn = (await a.call(claim("ann", turn=query)))["turn"]
    assert [task["title"] for task in turn["changed"]] == ["changed"]
    assert [task["owner"] for task in turn["running"]] == ["ann"]
    rejection = await a.refused(claim("ann", turn=query))
    assert rejection.kind == "version_conflict"


@together()
async def test_callers_answered_together_share_the_next_post(
    space: MemorySpace,
) -> None:
    space.faults = Faults(delays=(0.005,))
    a = Machine("ann", space, LIST)
    a.shared.round_trip_s = 0.01
    await a.call(add("one"))
    before = a.lanes.lanes[LIST].counts.posts

    async def ask(client: int) -> None:
        await asyncio.sleep(0.004 * (client % 2))  # half of the calls arrive while the other half's post is in flight
        for number in range(20):
            await a.call(add(f"{client} {number}"), Connection())
            await asyncio.sleep(0.0005 + 0.0001 * client)

    began = asyncio.get_running_loop().time()
    await asyncio.gather(*map(ask, range(8)))
    assert a.lanes.lanes[LIST].counts.posts - before <= 23, "twenty rounds, and the first ones"
    together = asyncio.get_running_loop().time() - began
    await ask(0)  # a single caller isn't delayed
    assert asyncio.get_running_loop().time() - began - together < 20 * 0.0125


@together()
async def test_distant_machine_gets_turns_despite_busy_ones(
    space: MemorySpace,
) -> None:
    space.faults = Faults(delays=(0.001, 0.0015))
    near, far = pair(space), Machine("far", space, LIST)
    far.shared.delays, far.shared.round_trip_s = (0.02,), 0.04
    await near[0].call(add("the first one"))
    loop, took = asyncio.get_running_loop(), dict[Machine, list[float]]()
    end = loop.time() + 3

    async def ask(machine: Machine) -> None:
        link = Connection()
        while (began := loop.time()) < end:
            await machine.call(add("one more"), link)
            took.setdefault(machine, []).append(loop.time() - began)

    await asyncio.gather(*(ask(machine) for machine in (*near, far) for _ in range(8)))
    assert max(took[far]) < 10 * 0.04, "ten round trips"
    assert len(took[far]) > 8 * 15
    for machine in (*near, far):
        counts = machine.lanes.lanes[LIST].counts
        assert counts.conflicts < counts.posts / 5, (machine.shared.member, counts.conflicts, counts.posts)
    for machine in near:
        assert len(took[machine]) > 8 * 150 and max(took[machine]) < 0.3


@together()
async def test_shared_list_does_not_slow_local_one(space: MemorySpace) -> None:
    async def steps(machine: Machine) -> float:
        taken = 0

        def count(_frame: object, event: str, _given: object) -> None:
            nonlocal taken
            taken += event in ("call", "c_call")

        await machine.call(p.TaskAdd(conversation="own", title="first"))
        sys.setprofile(count)
        for _ in range(200):
            await machine.call(p.TaskAdd(conversation="own", title="one more"))
        sys.setprofile(None)
        await machine.stop()
        return taken / 200

    beside = Machine("bob", space, LIST)
    await beside.call(add("one"))
    assert await steps(beside) < 1.02 * await steps(Machine("ann", MemorySpace()))


@together()
async def test_one_machine_claims_a_task_with_one_fence(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    won, lost = [await answer for answer in (a.begin(claim("ann")), b.begin(claim("bob")))]
    got = [msgspec.json.decode(each).get("task") for each in (won, lost) if isinstance(each, bytes)]
    assert len([task for task in got if task]) == 1
    await a.reaches(LIST, 3)
    await b.reaches(LIST, 3)
    claims = [(await each.engine.conversations.durable(LIST)).state.claims["1"] for each in (a, b)]
    assert claims[0] == claims[1] and claims[0].fence == 3


@together()
async def test_remote_claim_needs_its_fence(
    space: MemorySpace,
) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    fence = (await a.call(claim("ann")))["fence"]
    await b.reaches(LIST, 3)
    done = p.TaskSetStatus(conversation=LIST, task="1", status="completed")
    refused = await b.refused(done)
    assert refused.kind == "lease_held" and "ann on ann" in refused.message
    renew = p.TaskRenew(conversation=LIST, task="1", owner="ann", fence=fence)
    assert (await b.refused(renew)).kind == "lease_held"
    await b.call(msgspec.structs.replace(done, fence=fence))


@together()
async def test_claim_lasts_while_its_machine_is_alive(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    await a.call(claim("ann", lease_ms=4_000, keep=False))
    begun = asyncio.get_running_loop().time()
    waiting = b.begin(claim("bob", wait_ms=120_000))
    for _ in range(30):
        a.connection.last_seen_at = begun + _
        await asyncio.sleep(1)
    assert not waiting.done(), "its machine still sends heartbeats"
    await a.stop()
    died = asyncio.get_running_loop().time()
    got = await decoded(waiting)
    assert got["task"]["owner"] == "bob" and asyncio.get_running_loop().time() - died < 4 + 2


@together()
async def test_isolated_machine_ends_no_claim(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    await a.call(claim("ann", lease_ms=3_000, keep=True))
    await b.reaches(LIST, 3)
    b.shared.cut()
    renew = p.TaskRenew(conversation=LIST, task="1", owner="ann")
    for _ in range(20):
        await asyncio.sleep(1)
        await a.call(renew)
    b.shared.heal()
    await asyncio.sleep(2)
    assert "1" in (await b.engine.conversations.durable(LIST)).state.claims
    assert await a.version(LIST) == 3


@pytest.mark.parametrize("noticed", [True, False])
@together()
async def test_machine_back_before_rejection_ends_no_claim(space: MemorySpace, *, noticed: bool) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    await a.call(claim("ann", lease_ms=3_000, keep=True))
    await b.reaches(LIST, 3)
    b.shared.cut(noticed=noticed)
    for _ in range(8):
        await asyncio.sleep(1)
        await a.call(p.TaskRenew(conversation=LIST, task="1", owner="ann"))
    b.shared.heal()
    await asyncio.sleep(0.5)
    assert await a.version(LIST) == 3
    await a.stop()
    taken = b.begin(claim("bob", wait_ms=20_000))
    assert (await decoded(taken))["task"]["id"] == "1", "its lease continues"


@together()
async def test_claims_are_checked_against_published_state(space: MemorySpace) -> None:
    a = Machine("ann", space, LIST)
    await a.call(add("one"))
    await a.call(add("two"))
    other = Connection("other")
    done = p.TaskSetStatus(conversation=LIST, task="1", status="completed")
    first, second = a.begin(claim("ann", task="1")), a.begin(done, other)
    assert isinstance(await first, bytes)
    refused = await second
    assert isinstance(refused, Rejection) and refused.kind == "lease_held"
    finishes = {"method": "task.set_status", "task": "2", "status": "completed"}
    changes = msgspec.convert({"conversation": LIST, "changes": [finishes]}, ListApply)
    first, second = a.begin(claim("ann", task="2")), a.begin(changes, other)
    assert isinstance(await first, bytes)
    refused = await second
    assert isinstance(refused, Rejection) and refused.kind == "lease_held"


@together(Faults(push_lost=1.0, delays=(0.001,)))
async def test_lost_push_is_recovered(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    began = asyncio.get_running_loop().time()
    await b.reaches(LIST, 2)
    assert asyncio.get_running_loop().time() - began < 6


async def test_long_call_runs_in_slices_on_every_machine() -> None:
    many = MAX_PARTS + 4 * SLICE_EVENTS
    a, b = pair(MemorySpace(Random(1), Faults(delays=(0.0,))))
    await a.call(add("one"))
    await b.reaches(LIST, 2)
    tasks = [{"title": f"t{number}"} for number in range(many)]
    # In real time, because virtual time stands still while turns are counted.
    async with turns(evolve, add_many) as counted:
        await a.call(msgspec.convert({"conversation": LIST, "tasks": tasks}, p.TaskAddMany))
        await b.reaches(LIST, 2 + many)
    assert counted.total >= 3 * many, "once on the draft, and once on each machine"
    assert counted.longest <= 6 * SLICE_EVENTS
    await a.stop()
    await b.stop()


@together(Faults(delays=(0.0,)))
async def test_post_during_long_call_is_first(space: MemorySpace) -> None:
    """The result was computed for the old list, so the call is computed again."""
    many = MAX_PARTS + 4 * SLICE_EVENTS

    a, b = await sharing(space)
    tasks = [{"title": f"t{number}"} for number in range(many)]
    long = asyncio.create_task(a.call(msgspec.convert({"conversation": LIST, "tasks": tasks}, p.TaskAddMany)))
    await until(lambda: a.lanes.lanes[LIST].replica.posting)
    assert (await b.call(add("between")))["task"]["id"] == "2"
    assert [task["id"] for task in (await long)["tasks"]][::many] == ["3"]
    await b.reaches(LIST, 3 + many)


@together(Faults(delays=(0.0,)))
async def test_long_list_decision_is_not_applied_to_short_list(space: MemorySpace) -> None:
    many = MAX_PARTS + 4 * SLICE_EVENTS

    a, b = pair(space)
    tasks = [{"title": f"t{number}"} for number in range(many)]
    await a.call(msgspec.convert({"conversation": LIST, "tasks": tasks}, p.TaskAddMany))
    await b.reaches(LIST, 1 + many)
    changes = [{"method": "task.edit", "task": "7", "title": f"x{number}"} for number in range(100)]
    edited = asyncio.create_task(a.refused(msgspec.convert({"conversation": LIST, "changes": changes}, ListApply)))
    lane = a.lanes.lanes[LIST]
    await until(lambda: lane.replica.posting)
    await b.call(p.ListClear(conversation=LIST))
    assert ((await edited).kind, lane.counts.conflicts) == ("not_found", 1)


@together()
async def test_stop_during_a_long_call_rejects_it(space: MemorySpace) -> None:
    a = Machine("ann", space, LIST)
    await a.call(add("one"))
    tasks = [{"title": f"t{number}"} for number in range(2 * MAX_PARTS)]
    call = msgspec.convert({"conversation": LIST, "tasks": tasks}, p.TaskAddMany)
    long = asyncio.create_task(a.refused(call))
    lane = a.lanes.lanes[LIST]
    await until(lambda: lane.replica.posting)
    await lane.close(0)
    assert not long.done()
    await a.stop()
    assert (await long).kind == "shutting_down"
    assert len(space.posts[LIST]) == 1


@together()
async def test_early_push_stops_nothing(space: MemorySpace) -> None:
    """The missing part is read. Until then the list lags, but no call is rejected."""

    a, b = await sharing(space)
    replica, stood = b.lanes.lanes[LIST].replica, set[str]()
    space.faults = Faults(delays=(0.001,), push_lost=1.0)
    await a.call(add("unheard"))
    space.faults = Faults(delays=(0.001,))
    await a.call(add("heard"))
    while replica.version < 4:
        stood.add(replica.state)
        await asyncio.sleep(0.0001)
    assert stood == {"behind"}


@together()
async def test_arrival_for_another_state_is_not_applied(space: MemorySpace) -> None:
    a = Machine("ann", space, LIST)
    await a.call(add("one"))
    outcomes: list[Rejection | None] = []
    behind = Place(99, "0" * 16)
    step = Step((TaskAdded(AddedTask("2", "two")),), 1, "eve", None, Decision())
    a.engine.inbox.submit(Arrival(LIST, 3, behind, Place(100, "1" * 16), [step], outcomes.append))
    await a.engine.inbox.barrier()
    assert outcomes == [OVERTAKEN] and await a.version(LIST) == 2


@together()
async def test_late_owner_is_fenced_after_an_outage(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    fence = (await a.call(claim("ann", lease_ms=3_000, keep=True)))["fence"]
    await b.reaches(LIST, 3)
    a.shared.cut()
    taken = await b.call(claim("bob", wait_ms=60_000, keep=True))
    assert taken["task"]["owner"] == "bob"
    a.shared.heal()
    late = p.TaskSetStatus(conversation=LIST, task="1", status="completed", fence=fence)
    assert (await a.refused(late)).kind in ("lease_held", "lease_lost")


@together()
async def test_isolated_machine_can_read_and_not_write(space: MemorySpace) -> None:
    _, b = await sharing(space)
    b.shared.cut()
    began = asyncio.get_running_loop().time()
    refused = await b.refused(add("two", "k"))
    waited = asyncio.get_running_loop().time() - began
    assert refused.kind == "unreachable" and 9 < waited < 9.8, (refused, waited)
    assert (await b.refused(add("three"))).kind == "unreachable"
    assert asyncio.get_running_loop().time() - began - waited < 0.1, "a member known to be offline rejects immediately"
    assert await b.version(LIST) == 2
    b.shared.heal()
    assert (await b.call(add("two", "k")))["task"]["id"] == "2"


@together()
async def test_silent_server_is_unreachable_before_clients_time_out(
    space: MemorySpace,
) -> None:
    a = Machine("ann", space, LIST)
    await a.call(add("one"))
    space.stopped = True  # the link still appears to be up
    began = asyncio.get_running_loop().time()
    assert (await a.refused(add("two"))).kind == "unreachable"
    assert asyncio.get_running_loop().time() - began < 12
    space.stopped = False
    await a.call(add("two"))


@together(Faults(ack_lost=0.4, post_lost=0.2, conflict_invented=0.2, delays=(0.001,)))
async def test_post_with_a_lost_response_is_made_once(space: MemorySpace) -> None:
    a, b = pair(space)
    for n in range(20):
        assert (await a.call(add(f"{n}")))["task"]["id"] == f"{n + 1}"
    await b.reaches(LIST, 21)


@together()
async def test_retry_on_another_machine_gets_the_first_response(space: MemorySpace) -> None:
    a, b = pair(space)
    first = await a.call(add("one", "k"))
    await b.reaches(LIST, 2)
    again = await b.call(add("one", "k"))
    assert (again["task"], again["version"]) == (first["task"], first["version"])
    assert (await b.refused(add("other", "k"))).kind == "key_conflict"
    same = a.begin(add("both", "k2")), b.begin(add("both", "k2"))
    tasks = [(await decoded(each))["task"] for each in same]
    assert tasks[0] == tasks[1]


def test_key_resolves_an_unknown_outcome() -> None:
    kinds = set[str]()

    async def story(space: MemorySpace) -> None:
        a, b = pair(space)
        await a.call(add("one"))
        answer = a.begin(add("two", "k"))
        await asyncio.sleep(0.004)  # the post is in flight
        a.shared.cut(noticed=False)
        outcome = await answer
        assert isinstance(outcome, Rejection)
        kinds.add(outcome.kind)
        assert (await a.refused(add("two", "k"))).kind == outcome.kind, "a retry isn't told that nothing was written"
        assert (await a.refused(add("other", "l"))).kind == "unreachable"
        a.shared.heal()
        assert (await a.call(add("two", "k")))["task"]["id"] == "2"
        await b.reaches(LIST, 3)
        assert len((await b.engine.conversations.durable(LIST)).state.tasks) == 2
        await a.stop()
        await b.stop()

    for seed in range(12):
        play(story, Faults(delays=(0.003, 0.004, 0.005)), seed)
    assert kinds == {"outcome_unknown", "unreachable"}


@together()
async def test_push_shows_which_post_was_first(
    space: MemorySpace,
) -> None:
    log = space.member("ann_1")
    assert await log.post(LIST, 0, "n1", b"x") == 1

    def pushed(_position: int) -> Posted:
        return space.posts[LIST][0]

    assert await post(log, LIST, 0, "n1", b"x", pushed) == 1
    space.faults = Faults(reader_old=1.0)  # a reader wouldn't see the post yet
    with pytest.raises(Conflict):
        await post(log, LIST, 0, "n2", b"y", pushed)


@together(Faults())
async def test_false_conflict_is_an_unknown_outcome(space: MemorySpace) -> None:
    a, b = await sharing(space)
    space.faults = Faults(conflict_kept=1.0, late_s=1.0, delays=(0.01,))
    answer = a.begin(add("two", "k"))
    await asyncio.sleep(0.015)  # the conflict has arrived, and the lane is asking which post follows the expected one
    a.shared.cut(noticed=False)
    outcome = await answer
    assert isinstance(outcome, Rejection) and outcome.kind == "outcome_unknown", outcome
    await b.reaches(LIST, 3)
    space.faults = Faults()
    a.shared.heal()
    assert (await a.call(add("two", "k")))["version"] == 3, "the first attempt was kept"


@together()
async def test_read_only_member_is_rejected_immediately(space: MemorySpace) -> None:
    a, b = Machine("ann", space, LIST), Machine("bob", space, LIST, may_post=False)
    await a.call(add("one"))
    await b.reaches(LIST, 2)
    began = asyncio.get_running_loop().time()
    assert (await b.refused(add("two"))).kind == "forbidden"
    assert asyncio.get_running_loop().time() - began < 1


@together()
async def test_undo_reverts_changes_of_another_machine(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    await a.call(add("two"))
    await b.reaches(LIST, 3)
    undone = b.begin(p.ListUndo(conversation=LIST))
    more = a.begin(add("three"))
    assert isinstance(await undone, bytes) and isinstance(await more, bytes)
    await a.reaches(LIST, 5)
    await b.reaches(LIST, 5)
    states = [(await each.engine.conversations.durable(LIST)).state for each in (a, b)]
    assert [t.title for t in states[0].ordered()] == [t.title for t in states[1].ordered()]
    assert len(states[0].tasks) == 2


@together()
async def test_read_after_a_write_sees_it(space: MemorySpace) -> None:
    a = Machine("ann", space, LIST)
    write = a.begin(add("one"))
    read = a.read(p.TaskList(conversation=LIST))
    assert isinstance(await write, bytes)
    assert [task["title"] for task in (await decoded(read))["tasks"]] == ["one"]


@together()
async def test_waiting_claim_gets_a_task_of_another_machine(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(p.ConversationOpen(conversation=LIST))
    waiting = b.begin(claim("bob", wait_ms=60_000))
    await asyncio.sleep(1)
    await a.call(add("one"))
    assert (await decoded(waiting))["task"]["id"] == "1"


@together()
async def test_restarted_machine_continues(space: MemorySpace) -> None:
    a, b = pair(space)
    for n in range(5):
        await a.call(add(f"{n}"))
    await b.reaches(LIST, 6)
    await b.stop()
    await a.call(add("meanwhile"))
    again = Machine("bob", space, LIST, log=b.log)
    assert (await again.call(add("after")))["task"]["id"] == "7"
    await a.reaches(LIST, 8)


def forged(space: MemorySpace, **changes: object) -> None:
    """Post the last post again with changes, which no daemon would do."""
    last = space.posts[LIST][-1]
    envelope = msgspec.json.decode(last.body) | changes
    assert space.commit(LIST, last.position, "forged", msgspec.json.encode(envelope))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"form": 2}, "upgrade_needed"),
        ({"level": 2}, "upgrade_needed"),
        ({"version": 9}, "diverged"),
        ({"version": 3}, "diverged"),
        ({"version": 3, "check": "0" * 16}, "diverged"),
        ({"groups": []}, "diverged"),
        ({"groups": "rubbish"}, "diverged"),
        ({"groups": [{"at": 1, "actor": "a", "events": [{"type": "Later"}]}]}, "upgrade_needed"),
    ],
)
@together()
async def test_list_with_an_unsupported_post_is_read_only(
    space: MemorySpace, changes: dict[str, object], kind: str
) -> None:
    a, b = await sharing(space)
    forged(space, **changes)
    for each in (a, b):
        refused = await each.refused(add("two"))
        assert refused.kind == kind and refused.data["space"] == "team"
        assert await each.version(LIST) == 2


async def lost(space: MemorySpace, kept: int, *machines: Machine) -> None:
    """Make the space lose all but its first `kept` posts while these machines are disconnected."""
    for each in machines:
        each.shared.cut()
    await asyncio.sleep(1)
    del space.posts[LIST][kept:]
    for each in machines:
        each.shared.heal()
    await asyncio.sleep(1)


@pytest.mark.parametrize("kept", [0, 1])
@together()
async def test_lost_posts_are_detected_until_restored(space: MemorySpace, kept: int) -> None:
    a, b = pair(space)
    reader = Machine("eve", space, LIST, may_post=False)
    for n in range(3):
        await a.call(add(f"{n}"))
    await a.call(claim("ann"))
    await b.call(p.ListUndo(conversation=LIST))
    everybody = (a, b, reader)
    for each in everybody:
        await each.reaches(LIST, 6)
    await lost(space, kept, *everybody)
    for each in (a, b):
        refused = await each.refused(add("more"))
        assert refused.kind == "diverged" and "punch share release --repair" in refused.message
        assert await each.version(LIST) == 6
    await asyncio.sleep(CERTAIN_S + 1)  # a member that can't ask the quorum waits longer
    assert reader.lanes.lanes[LIST].replica.state == "diverged"
    put = await put_back(b.log, b.shared, LIST, Place(), 0)
    assert put == 5 - kept
    for each in everybody:
        await each.becomes(LIST, "current")
    assert (await a.call(add("more")))["version"] == 7
    for each in everybody:
        await each.reaches(LIST, 7)


@together()
async def test_member_continues_after_posts_are_restored(
    space: MemorySpace,
) -> None:
    a, b = pair(space)
    for n in range(3):
        await a.call(add(f"{n}"))
    await b.reaches(LIST, 4)
    b.shared.cut()
    await lost(space, 0, a)
    await put_back(a.log, a.shared, LIST, Place(), 0)
    await a.becomes(LIST, "current")
    await a.call(add("more"))
    b.shared.heal()
    await b.reaches(LIST, 5)
    await lost(space, 0, a, b)
    await put_back(a.log, a.shared, LIST, Place(), 0)
    await a.stop()
    await b.stop()
    again = Machine("ann", space, LIST, log=a.log)
    assert (await again.call(add("after")))["version"] == 6


@together()
async def test_list_changed_during_a_check_is_checked_again(space: MemorySpace) -> None:
    a, b = await sharing(space)
    await lost(space, 0, a, b)
    await put_back(a.log, a.shared, LIST, Place(), 0)
    lane = a.lanes.lanes[LIST]
    lane.compare()
    await asyncio.sleep(0.0005)  # the lane has sent its request, and has no response yet
    lane.resume()
    await b.becomes(LIST, "current")
    await b.call(add("two"))
    await a.reaches(LIST, 3)


@together()
async def test_diverged_space_differs_from_a_lossy_one(
    space: MemorySpace,
) -> None:
    a, b = pair(space)
    for n in range(3):
        await a.call(add(f"{n}"))
    await b.reaches(LIST, 4)
    b.shared.cut()
    del space.posts[LIST][1:]
    fresh = Machine("eve", space, LIST)
    for n in range(3):
        await fresh.call(add(f"other {n}"))
    b.shared.heal()
    refused = await b.refused(add("more"))
    assert refused.kind == "diverged" and "--keep-as" in refused.message
    with pytest.raises(NameTaken):
        await put_back(b.log, b.shared, LIST, Place(), 0)
    assert [await each.version(LIST) for each in (b, fresh)] == [4, 5]


@together()
async def test_members_report_their_part_of_lost_list(space: MemorySpace) -> None:
    a, b = await sharing(space)
    b.shared.cut()
    await a.call(add("two"))
    await lost(space, 0, a, b)
    await asyncio.sleep(2)
    assert b.lanes.members.find_longest(LIST, 2) == (3, a.shared.member)
    assert a.lanes.members.find_longest(LIST, 2) == (2, b.shared.member)


@together()
async def test_a_repaired_list_is_current_when_complete(space: MemorySpace) -> None:
    a, b = await sharing(space)
    assert space.commit(LIST, space.posts[LIST][-1].position, "rubbish", b"rubbish")
    await b.becomes(LIST, "diverged")
    space.posts[LIST].pop()
    a.lanes.lanes[LIST].compare()
    for n in range(5):
        await a.call(add(f"{n}"))
    await b.becomes(LIST, "current")
    assert await b.version(LIST) == 7


@in_real_time
async def test_deleted_list_is_erased_everywhere(space: MemorySpace, tmp_path: Path) -> None:
    a, b = pair(space, tmp_path)
    await a.call(add("secret"))
    await b.reaches(LIST, 2)
    asked = await a.refused(p.ConversationDelete(conversation=LIST))
    await a.call(p.ConversationDelete(conversation=LIST, confirm=asked.data["token"]))
    await b.reaches(LIST, 3)
    for each in (a, b):
        while len(kept := await each.log.read(0, 100, conversation=LIST)) > 1:  # noqa: ASYNC110 - no such event
            await anyio.sleep(0.005)
        assert b"secret" not in kept[0].line
    await b.call(add("new"))
    await a.reaches(LIST, 5)
    assert [b"secret" in post.body for post in space.posts[LIST]] == [False, False], "the space no longer has the list"
    c = Machine("eve", space, LIST, data_dir=str(tmp_path))
    await c.reaches(LIST, 5)
    assert [t.title for t in (await c.engine.conversations.durable(LIST)).state.ordered()] == ["new"]


async def deleted(each: Machine) -> None:
    """Delete the list, with confirmation."""
    asked = await each.refused(p.ConversationDelete(conversation=LIST))
    await each.call(p.ConversationDelete(conversation=LIST, confirm=asked.data["token"]))


async def erased(space: MemorySpace) -> None:
    """Wait until the space has only the tombstone."""
    while len(space.posts[LIST]) > 1:  # noqa: ASYNC110 - no such event
        await anyio.sleep(0.005)


@in_real_time
async def test_keeper_erases_for_other_machines(space: MemorySpace, tmp_path: Path) -> None:
    a, b = pair(space, tmp_path)
    a.shared.may_erase = False
    await a.call(add("secret"))
    await b.reaches(LIST, 2)
    b.shared.may_erase = False
    await deleted(a)
    await b.reaches(LIST, 3)
    assert len(space.posts[LIST]) == 2, "neither may"
    await a.stop()
    await b.stop()
    Machine("bob", space, LIST, log=b.log, data_dir=str(tmp_path))
    await erased(space)


@in_real_time
async def test_absent_machine_erases_a_deleted_list(space: MemorySpace, tmp_path: Path) -> None:
    a, b = pair(space, tmp_path)
    await a.call(add("secret"))
    await b.reaches(LIST, 2)
    b.shared.cut()
    for number in range(3):
        await a.call(add(f"secret {number}"))
    await deleted(a)
    await erased(space)
    await a.call(add("new"))
    b.shared.heal()
    await b.reaches(LIST, await a.version(LIST))
    assert [t.title for t in (await b.engine.conversations.durable(LIST)).state.ordered()] == ["new"]
    while any(b"secret" in kept.line for kept in await b.log.read(0, 100, conversation=LIST)):  # noqa: ASYNC110
        await anyio.sleep(0.005)
    await b.stop()
    again = Machine("bob", space, LIST, log=b.log, data_dir=str(tmp_path))
    assert (await again.call(add("newer")))["task"]["id"] == "2"


async def begun_again(space: MemorySpace, directory: Path) -> Machine:
    """Return a machine with a local list at version 5, which was deleted at version 3 and created again."""
    a = Machine("ann", space, data_dir=str(directory))
    await a.call(add("old"))
    await deleted(a)
    await a.call(add("new"))
    return a


@in_real_time
async def test_recreated_shared_list_is_restored(space: MemorySpace, tmp_path: Path) -> None:
    a = await begun_again(space, tmp_path)
    base, posts = await share(a.log, a.shared, LIST)
    assert posts == 1 and await share(a.log, a.shared, LIST) == (base, 0), "it continues where it stopped"
    before = space.posts.pop(LIST)
    assert await put_back(a.log, a.shared, LIST, base, 5) == 1
    assert [check_of(each.body) for each in space.posts[LIST]] == [check_of(each.body) for each in before]


@in_real_time
async def test_list_deleted_in_a_restored_space_is_kept(space: MemorySpace, tmp_path: Path) -> None:
    a, b = await sharing(space, tmp_path)
    b.shared.cut()
    await a.call(add("two"))
    await a.call(add("three"))
    await a.stop()
    del space.posts[LIST][1:]  # as if restored from a backup
    b.shared.heal()
    await deleted(b)
    await erased(space)
    again = Machine("ann", space, LIST, log=a.log, data_dir=str(tmp_path))
    told = await again.refused(add("four"))
    assert told.kind == "diverged" and "--keep-as" in told.message and await again.version(LIST) == 4


@in_real_time
async def test_list_with_other_space_versions_is_read_only(space: MemorySpace, tmp_path: Path) -> None:
    a = await begun_again(space, tmp_path)
    steps = [step async for piece in read_pieces(a.log, LIST, a.shared.member) for step in piece.steps]
    body = seal(a.shared.member, "nonce", 1, "", steps)  # as if the list's history started with this post
    position = await post(a.shared, LIST, 0, "nonce", body)
    with pytest.raises(NameTaken):
        await share(a.log, a.shared, LIST)
    a.lanes.add(LIST, Place(position, check_of(body)))
    a.engine.conversations.drop(LIST)
    told = await a.refused(add("from here"))
    assert told.kind == "diverged" and "punch join" in told.message and "repair" not in told.message
    b = Machine("bob", space, LIST, data_dir=str(tmp_path))
    await b.reaches(LIST, 3)
    for title in ("x", "y"):
        await b.call(add(title))
    assert await find_bad(space.posts[LIST]) == []
    a.lanes.lanes[LIST].compare()
    assert "punch join" in (await a.refused(add("from here"))).message
    await deleted(b)
    await erased(space)
    a.lanes.lanes[LIST].compare()
    await a.reaches(LIST, 6)
    await a.call(add("anew"))
    await b.reaches(LIST, 8)


@in_real_time
async def test_lost_deleted_list_offers_no_repair(space: MemorySpace, tmp_path: Path) -> None:
    a = Machine("ann", space, LIST, data_dir=str(tmp_path))
    await a.call(add("one"))
    before = list(space.posts[LIST])
    await deleted(a)
    await erased(space)
    for posts, advice in ((before, f"punch share {LIST} --repair"), ([], f"punch leave {LIST}")):
        space.posts[LIST] = posts
        a.lanes.lanes[LIST].compare()
        await a.becomes(LIST, "diverged")
        while advice not in (told := await a.refused(add("more"))).message:  # noqa: ASYNC110 - no such event
            await anyio.sleep(0.05)
        assert "was deleted" in told.message


@together()
async def test_change_larger_than_a_post_is_rejected_alone(
    space: MemorySpace,
) -> None:
    space.max_bytes = 3_000
    a = Machine("ann", space, LIST)
    await a.call(add("one"))
    huge = p.TaskAdd(conversation=LIST, title="huge", description="x" * 4_000)
    begun = [a.begin(add("two")), a.begin(huge), a.begin(add("three"))]
    two, refused, three = [await each for each in begun]
    assert isinstance(refused, Rejection) and (refused.kind, refused.data["maximum"]) == ("limit_exceeded", 3_000)
    assert isinstance(two, bytes) and isinstance(three, bytes)


@together()
async def test_full_disk_catches_up_once_there_is_room(
    space: MemorySpace,
) -> None:
    a, b = await sharing(space)
    b.log.full = True
    await a.call(add("two"))
    refused = await b.refused(add("three", "k"))
    assert refused.kind in ("storage_full", "outcome_unknown")
    assert await b.version(LIST) == 2
    b.log.full = False
    done = await b.call(add("three", "k"))
    assert done["task"]["id"] == "3"
    await a.reaches(LIST, 4)


def test_lost_and_reordered_pushes_leave_no_gap() -> None:
    async def story(space: MemorySpace) -> None:
        a, b = pair(space)
        for n in range(30):
            await a.call(add(f"{n}"))
        await b.reaches(LIST, 31)
        await a.stop()
        await b.stop()

    for seed in range(5):
        play(story, Faults(push_lost=0.3, reader_old=0.2, delays=(0.0, 0.01, 0.1)), seed)


@together()
async def test_owners_are_shown_with_their_machine(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    claimed = await a.call(claim("ann"))
    await b.reaches(LIST, 3)
    shown = [await decoded(each.read(p.TaskList(conversation=LIST))) for each in (a, b)]
    for task in (claimed["task"], *(one["tasks"][0] for one in shown)):
        assert (task["owner"], task["machine"], task["fence"]) == ("ann", "ann", 3)


@together()
async def test_waiters_continue_after_a_lanes_writes(space: MemorySpace) -> None:
    a = Machine("ann", space, LIST)
    await a.call(add("one"))
    write = a.begin(add("two"))
    assert await a.engine.inbox.barrier() is None
    assert not write.done(), "its post is in flight"
    assert await a.lanes.lanes[LIST].barrier() is None
    assert write.done()


@together()
async def test_stale_list_shows_since_when(space: MemorySpace) -> None:
    _, b = await sharing(space)
    place = p.TaskList(conversation=LIST)
    assert "shared" not in await decoded(b.read(place))
    b.shared.cut()
    await asyncio.sleep(5)
    shown = (await decoded(b.read(place)))["shared"]
    assert (shown["space"], shown["state"]) == ("team", "offline")
    assert 4_900 < now_ms() - shown["since"] < 5_200
    b.shared.heal()
    await asyncio.sleep(1)
    assert "shared" not in await decoded(b.read(place))


class Screen(DaemonCaller):
    """A connection that records the pushes it receives.

    Args:
        user: The user that the connection is bound to; None for no user.
    """

    actor = None
    paused = False
    framing = ""

    def __init__(self, machine: Machine, view: str, user: str | None = None, name: str | None = LIST) -> None:
        self.user = user
        self.told: list[dict[str, Any]] = []
        subscriptions = machine.engine.subscriptions
        shown = views.build_view(view, None, 1 << 20, subscriptions.presence, user)
        self.subscription = subscription = Subscription(view, self, view, name, subscriptions.head, shown)
        if name is not None:
            subscription.stale[name] = None
        subscriptions.add(subscription)
        subscriptions.catch_up(subscription)

    def push(self, payload: Reply) -> None:
        assert isinstance(payload, bytes), "the list is short"
        self.told.append(msgspec.json.decode(payload)["params"])

    push_framed = push

    def framed(self, payload: bytes) -> bytes:
        return payload

    def ended(self, id: str, payload: bytes) -> None:
        raise AssertionError(id, payload)

    def states(self) -> list[str]:
        """Return the state of the list in each push; "current" if the push has none."""
        return [told.get("card", told).get("shared", {"state": "current"})["state"] for told in self.told]


@together()
async def test_followers_are_notified_when_staleness_changes(
    space: MemorySpace,
) -> None:
    _, b = await sharing(space)
    screens = {view: Screen(b, view) for view in ("list", "rows", "presence")}
    screens["board"] = Screen(b, "board", name=None)
    stranger = Screen(b, "board", user="eve", name=None)
    stranger.paused = True
    b.shared.cut()
    await asyncio.sleep(1)
    b.shared.heal()
    await asyncio.sleep(1)
    wanted = ["current", "offline", "current"]
    assert {view: each.states() for view, each in screens.items()} == {
        "list": wanted,
        "rows": wanted,
        "board": wanted[1:],
        "presence": ["current"],
    }
    assert {told["seq"] for view in ("list", "rows", "board") for told in screens[view].told} == {2}
    assert [told["rows"] for told in screens["rows"].told[1:]] == [[], []]
    assert not stranger.subscription.stale  # otherwise it would be notified when the list is deleted
    b.lanes.lanes[LIST].suspend(Rejection("forbidden", "It was left."))
    assert screens["list"].states()[3:] == ["forbidden"]


@together()
async def test_brief_lag_is_not_shown(
    space: MemorySpace,
) -> None:
    a, b = await sharing(space)
    screen = Screen(b, "list")
    space.faults = Faults(delays=(0.001,), push_lost=1.0)
    for number in range(5):  # the lane finds each change by comparing or by a conflict, and reads it immediately
        await a.call(add(f"unheard {number}"))
        await b.call(add(f"too late {number}"))
    assert set(screen.states()) == {"current"}
    b.lanes.lanes[LIST].replica.partial = True  # as if another member were still sharing a long history
    b.lanes.lanes[LIST].on_link_change(b.shared.link)
    await asyncio.sleep(5)
    assert screen.states()[-1] == "behind"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"form":1,"level":1,"by":"x","nonce":"n","version":3,"check":"","groups":' + b"[" * 200_000,
        b'{"form":1,"level":1,"by":"x","nonce":"n","version":1' + b"0" * 400 + b',"check":"","groups":[]}',
        b'{"form":1,"level":1,"by":"x","nonce":"n","version":3,"check":"","groups":[{"at":1,"actor":"a","events":[7]}]}',
        b'{"form":1,"level":1,"by":"x","nonce":"n","version":3,"check":"","groups":[{"at":1,"actor":"a","events":[]}]}',
    ],
    ids=["nothing", "no text", "deep", "deep inside", "a huge number", "no event", "an empty group"],
)
@together()
async def test_invalid_posts_stop_only_their_list(space: MemorySpace, body: bytes) -> None:
    a, b = await sharing(space)
    assert space.commit(LIST, space.posts[LIST][-1].position, "rubbish", body)
    for each in (a, b):
        assert (await each.refused(add("two"))).kind in ("diverged", "upgrade_needed")
        assert (await each.call(p.TaskAdd(conversation="own", title="one")))["task"]["id"] == "1"


@together()
async def test_list_opened_for_a_user_elsewhere_is_private(space: MemorySpace) -> None:
    a, b = pair(space)
    bound = Connection("eve")
    bound.user = "eve"
    b.shared.cut()
    await a.call(p.ConversationOpen(conversation=LIST, user="ann"))
    late = b.begin(add("mine"), bound)  # decided when the owner of the list is known
    await asyncio.sleep(1)
    b.shared.heal()
    outcome = await late
    assert isinstance(outcome, Rejection) and outcome.kind == "not_found"
    assert await b.version(LIST) == 1


@together()
async def test_claims_of_departed_machine_become_available(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(add("one"))
    await a.call(claim("ann", lease_ms=3_000, keep=True))
    await b.reaches(LIST, 3)
    a.lanes.lanes[LIST].replica.refused = Rejection("forbidden", "The list was left.", {"what": "list"})
    began = asyncio.get_running_loop().time()
    taken = await b.call(claim("bob", wait_ms=60_000))
    assert taken["task"]["owner"] == "bob" and asyncio.get_running_loop().time() - began < 8


@together(Faults(push_lost=1.0, delays=(0.001,)))
async def test_empty_claim_is_never_based_on_stale_state(space: MemorySpace) -> None:
    a, b = pair(space)
    await a.call(p.ConversationOpen(conversation=LIST))
    await b.reaches(LIST, 1)
    await a.call(add("one"))
    assert await b.version(LIST) == 1, "the machine hasn't received the task"
    assert (await b.call(claim("bob")))["task"]["id"] == "1"


@together()
async def test_followers_without_claims_are_visible(space: MemorySpace) -> None:
    a, b = pair(space)
    Machine("eve", space, LIST, may_post=False)
    await a.call(add("one"))
    async with asyncio.timeout(60):
        while a.lanes.members.followers(LIST) != (b.shared.member,):  # noqa: ASYNC110 - no such event
            await asyncio.sleep(0.01)
    assert a.lanes.members.followers("another") == ()
    await b.lanes.remove(LIST)
    assert b.lanes.members.followers(LIST) == (a.shared.member,)


@together()
async def test_lane_rejects_other_stage_changes(space: MemorySpace) -> None:
    lane = (a := Machine("ann", space, LIST)).lanes.lanes[LIST]
    await a.call(add("one"))
    lane.leave(Rejection("forbidden", "It was left."), lambda: None)
    assert (await a.refused(add("two"))).message == "It was left."
    lane.resume()
    await a.call(add("two"))
    await lane.close(0)
    assert (await a.refused(add("three"))).kind == "shutting_down"
    lane.resume()
    assert lane.stage is Stage.CLOSING
    lane.dissolve()
    with pytest.raises(AssertionError, match="can't go from DISSOLVED to DISSOLVED"):
        lane.dissolve()


def test_member_without_a_name_is_not_recorded() -> None:
    members = Members("ann_1")
    for name in ("ann_1", "\x1b[31m", "x" * 65, "bob_2"):
        members.record_seen(name, ("a",))
    assert members.followers("a") == ("bob_2",)
    for number in range(2 * MAX_SEEN):
        members.record_seen(f"m{number}_1", ("a",))
    assert len(members.seen) == MAX_SEEN and members.followers("a")[0] == f"m{2 * MAX_SEEN - 1}_1"
