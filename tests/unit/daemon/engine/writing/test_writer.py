import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import TaskAdd
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.engine.calls import DaemonCaller, Write, stamp
from punchlistd.engine.replies import Outcome
from punchlistd.engine.writing import transaction
from punchlistd.store.port import Sealed, StorageFailed, StorageFull

C = "c"
ROUNDS = 20


async def titles(peer: Peer, conversation: str = C) -> list[str]:
    return [task["title"] for task in (await peer.result("task.list", conversation=conversation))["tasks"]]


def add(title: str, conversation: str = C, **more: Any) -> dict[str, Any]:
    return {"conversation": conversation, "title": title, **more}


# deciding


async def test_later_calls_of_a_batch_see_earlier_ones(peer: Peer, log: TouchyLog) -> None:
    peer.write(
        peer.request("task.add", add("a"), id=1)
        + peer.request("task.set_status", {"conversation": C, "task": "1", "status": "completed"}, id=2)
        + peer.request("task.get", {"conversation": C, "task": "1"}, id=3)
    )
    answers = [await peer.answer(id) for id in (1, 2, 3)]
    assert answers[2]["result"]["task"]["status"] == "completed"
    assert log.sizes_of_appends == [3], "one commit for both calls"


@asynccontextmanager
async def adding_during_a_commit(running: Engine, log: TouchyLog, count: int) -> AsyncGenerator[None]:
    """Commit one call while `count` more wait for the next commit; then every call gets a response."""
    peers = [await running.connect() for _ in range(1 + count)]
    gate = log.hold()
    peers[0].send("task.add", add("0"))
    await gate.reached()
    for number, peer in enumerate(peers[1:], 1):
        peer.send("task.add", add(str(number)))
    await until(lambda: len(running.writer._forming.items) == count)  # pyright: ignore[reportPrivateUsage]
    yield
    gate.open()
    for peer in peers:
        assert "result" in await peer.answer(0)


async def test_calls_during_a_commit_share_the_next_one(running: Engine, log: TouchyLog) -> None:
    async with adding_during_a_commit(running, log, 9):
        pass
    assert log.sizes_of_appends == [2, 9]


async def test_fast_disk_commits_immediately_again(running: Engine, log: TouchyLog) -> None:
    async with adding_during_a_commit(running, log, 2):
        log.at_once = True
    assert log.sizes_of_appends == [2], "the calls formed meanwhile were committed without the thread"
    assert log.head == 4


class Returning(DaemonCaller):
    """Sends another call a number of loop turns after each reply."""

    def __init__(self, running: Engine, turns: int) -> None:
        self._running = running
        self._turns = turns
        self.asked = 0

    def ask(self, turns: int = 0) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self.ask, turns - 1)
        elif self.asked < ROUNDS:
            self.asked += 1
            params = TaskAdd(conversation=C, title="again")
            self._running.writer.submit(Write(self, b"1", METHODS["task.add"], params, stamp(self, params)))

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        assert id == b"1" and isinstance(outcome, bytes)
        self.ask(self._turns)


async def test_callers_answered_together_share_the_next_commit(tmp_path: Path) -> None:
    log = TouchyLog()
    log.at_once = True
    async with engine(tmp_path, log) as running:
        callers = [Returning(running, turns) for turns in (1, 2, 2, 2)]  # the first is one turn ahead of the others
        for caller in callers:
            caller.ask()
        await until(lambda: log.head == 1 + len(callers) * ROUNDS)
        assert running.metrics.commits == ROUNDS


async def test_single_caller_is_not_delayed(tmp_path: Path) -> None:
    log = TouchyLog()
    log.at_once = True
    async with engine(tmp_path, log) as running:
        caller = Returning(running, 1)
        caller.ask()
        await until(lambda: log.head == 1 + ROUNDS)
        assert running.metrics.commits == ROUNDS and not running.inbox.queue


async def test_rejected_call_changes_nothing(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("a"))
    head = log.head
    assert (await peer.refusal("task.set_status", conversation=C, task="9", status="completed"))["kind"] == "not_found"
    assert (await peer.refusal("task.add", **add("b", expect_version=1)))["kind"] == "version_conflict"
    assert (await peer.refusal("task.add", **add("b", parent="77")))["kind"] == "not_found"
    assert log.head == head and await titles(peer) == ["a"]


async def test_exception_in_one_call_spares_the_others(
    running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transaction.decide

    def decide(state: Any, command: Any) -> Any:
        if getattr(command.params, "title", "") == "poison":
            raise RuntimeError("a fault")
        return real(state, command)

    monkeypatch.setattr(transaction, "decide", decide)
    peer.write(b"".join(peer.request("task.add", add(title), id=title) for title in ("a", "poison", "b")))
    answers = {answer["id"]: answer for answer in [await peer.receive() for _ in range(3)]}
    assert answers["poison"]["error"]["data"]["kind"] == "internal_error"
    assert await titles(peer) == ["a", "b"]


# durable first


async def test_only_durable_state_is_read(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("a"))
    reader = await running.connect()
    gate = log.hold()
    peer.send("task.add", add("b"), id=1)
    await gate.reached()
    reader.send("task.list", {"conversation": C}, id=2)
    reader.send("message.list", {"conversation": C}, id=3)
    reader.send("event.read", {"conversation": C, "after": 0}, id=4)
    await reader.quiet()  # no read got a response
    gate.open()
    answers = {message["id"]: message["result"] for message in [await reader.receive() for _ in range(3)]}
    assert [task["title"] for task in answers[2]["tasks"]] == ["a", "b"]
    assert len(answers[4]["events"]) == 3


async def test_reads_of_other_conversations_do_not_wait(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("a", "other"))
    gate = log.hold()
    peer.send("task.add", add("b"), id=1)
    await gate.reached()
    reader = await running.connect()
    assert await titles(reader, "other") == ["a"]
    gate.open()


async def test_read_sees_everything_acknowledged_before_it(running: Engine) -> None:
    one, two = await running.connect(), await running.connect()
    for number in range(50):
        await one.result("task.add", **add(str(number)))
        assert len(await titles(two)) == number + 1


async def test_pipelined_calls_take_effect_in_order(peer: Peer) -> None:
    calls: list[bytes] = []
    for number in range(40):
        calls.append(peer.request("task.list", {"conversation": C}, id=f"before {number}"))
        calls.append(peer.request("task.add", add(str(number)), id=f"add {number}"))
        calls.append(peer.request("event.read", {"conversation": C, "after": 0}, id=f"events {number}"))
    peer.write(b"".join(calls))
    answers = {answer["id"]: answer["result"] for answer in [await peer.receive() for _ in calls]}
    for number in range(40):
        assert len(answers[f"before {number}"]["tasks"]) == number
        assert answers[f"add {number}"]["task"]["id"] == str(number + 1)
        assert len(answers[f"events {number}"]["events"]) >= number + 2


async def test_reply_precedes_push(peer: Peer) -> None:
    await peer.result("event.subscribe", conversation=C)
    await peer.result("event.subscribe")
    for number in range(20):
        peer.send("task.add", add(str(number)), id=number)
        assert (await peer.receive())["id"] == number
        assert {(await peer.receive())["params"]["subscription"] for _ in range(2)} == {"1", "2"}


# Errors of the disk


async def test_full_disk_rejects_the_whole_batch(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("a"))
    head = log.head
    watcher = await running.connect()
    await watcher.result("event.subscribe")
    gate, log.refusal = log.hold(), StorageFull("full")
    peer.send("task.add", add("b", key="k"), id=1)
    await gate.reached()
    peer.send("task.add", add("c"), id=2)
    peer.send("task.set_status", {"conversation": C, "task": "2", "status": "bad"}, id=3)
    peer.send("task.set_status", {"conversation": C, "task": "99", "status": "completed"}, id=4)
    peer.send("task.list", {"conversation": C}, id=5)
    peer.send("conversation.list", {}, id=6)
    await until(lambda: len(running.writer._forming.items) == 4)  # pyright: ignore[reportPrivateUsage]
    gate.open()
    answers = {message["id"]: message for message in [await peer.receive() for _ in range(6)]}
    assert answers.pop(3)["error"]["data"]["kind"] == "invalid_params", "reported before the writer noticed"
    assert [answers[id]["error"]["data"]["kind"] for id in (1, 2, 4)] == ["storage_full"] * 3
    assert [task["title"] for task in answers[5]["result"]["tasks"]] == ["a"]
    assert len(answers[6]["result"]["conversations"]) == 1
    assert log.head == head and await titles(peer) == ["a"]
    await watcher.quiet()

    log.refusal = None
    again = await peer.result("task.add", **add("b", key="k"))
    assert (again["task"]["id"], again["seq"]) == ("2", head + 1)
    assert [event["seq"] for event in await watcher.events(1)] == [head + 1]


async def test_keys_survive_a_rejected_append(running: Engine, peer: Peer, log: TouchyLog) -> None:
    first = await peer.result("task.add", **add("a", key="k"))
    log.refusal = StorageFull("full")
    assert (await peer.refusal("task.add", **add("b")))["kind"] == "storage_full"
    log.refusal = None
    assert await peer.result("task.add", **add("a", key="k")) == first
    assert await titles(peer) == ["a"]


async def test_list_dropped_before_its_call_is_reloaded(running: Engine, peer: Peer, log: TouchyLog) -> None:
    first = await peer.result("task.add", **add("a", key="k"))
    other = await running.connect()
    gate, log.refusal = log.hold(), StorageFull("full")
    peer.send("task.add", add("b"), id=1)
    await gate.reached()
    loading = log.hold_loads()
    other.send("task.add", add("a", key="k"), id=1)
    other.send("task.add", add("c", key="c"), id=2)
    other.send("task.list", {"conversation": C}, id=3)
    other.send("task.add", add("x", "elsewhere"), id=4)
    await loading.reached()
    gate.open()
    assert (await peer.answer(1))["error"]["data"]["kind"] == "storage_full"
    log.refusal = None
    loading.open()
    answers = {message["id"]: message["result"] for message in [await other.receive() for _ in range(4)]}
    assert answers[1] == first and answers[2]["task"]["id"] == "2"
    assert [task["title"] for task in answers[3]["tasks"]] == ["a", "c"]


async def test_prepared_calls_get_the_disk_failure(running: Engine, peer: Peer, log: TouchyLog) -> None:
    other = await running.connect()
    gate, log.refusal = log.hold(), StorageFailed("EIO")
    peer.send("task.add", add("a"), id=1)
    await gate.reached()
    loading = log.hold_loads()
    other.send("task.add", add("x", "elsewhere"), id=1)
    await loading.reached()
    gate.open()
    for each in (peer, other):
        assert (await each.answer(1))["error"]["data"]["kind"] == "outcome_unknown"


async def test_unknown_outcome_ends_the_writer(running: Engine, peer: Peer, log: TouchyLog) -> None:
    other, third = await running.connect(), await running.connect()
    gate, log.refusal = log.hold(), StorageFailed("EIO")
    peer.send("task.add", add("a"), id=1)
    await gate.reached()
    other.send("task.add", add("b"), id=2)
    other.send("list.undo", {"conversation": C}, id=3)
    third.send("task.list", {"conversation": C}, id=4)
    await until(lambda: len(running.inbox.queue) == 2)
    gate.open()
    assert (await peer.answer(1))["error"]["data"]["kind"] == "outcome_unknown"
    answers = [await other.receive(), await other.receive(), await third.receive()]
    kinds = [message["error"]["data"]["kind"] for message in answers]
    assert kinds == ["outcome_unknown"] * 3
    await until(lambda: running.failure is not None)
    assert (await peer.refusal("task.add", **add("c")))["kind"] == "shutting_down"
    assert log.head == 0


async def test_failed_erasure_is_an_unknown_outcome(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("a"))
    asked = await peer.refusal("conversation.delete", conversation=C)
    log.erase_refusal = StorageFailed("EIO")
    refused = await peer.refusal("conversation.delete", conversation=C, confirm=asked["token"])
    assert refused["kind"] == "outcome_unknown"
    await until(lambda: running.failure is not None)


# Commits aren't cancelled


async def test_closed_connection_does_not_cancel_its_commit(running: Engine, log: TouchyLog) -> None:
    gone = await running.connect()
    gate = log.hold()
    gone.send("task.add", add("a"), id=1)
    await gate.reached()
    gone.send("task.add", add("b"), id=2)
    await until(lambda: len(running.writer._forming.items) == 1)  # pyright: ignore[reportPrivateUsage]
    gone.close()
    await until(lambda: not running.connections.live)
    gate.open()
    assert await titles(await running.connect()) == ["a", "b"]


async def test_close_drains_accepted_calls_and_rejects_the_rest(running: Engine, peer: Peer, log: TouchyLog) -> None:
    gate = log.hold()
    peer.send("task.add", add("a"), id=1)
    await gate.reached()
    peer.send("task.add", add("b"), id=2)
    await until(lambda: len(running.writer._forming.items) == 1)  # pyright: ignore[reportPrivateUsage]
    running.inbox.close()
    assert (await peer.refusal("task.add", **add("c")))["kind"] == "shutting_down"
    gate.open()
    assert "result" in await peer.answer(1) and "result" in await peer.answer(2)
    assert await titles(peer) == ["a", "b"]


# No gaps and no duplicates


@pytest.mark.parametrize("after", [False, True], ids=["before durable", "durable, not published"])
async def test_subscription_during_a_commit_gets_its_events_once(
    running: Engine, peer: Peer, log: TouchyLog, after: bool
) -> None:
    await peer.result("task.add", **add("a"))
    gate = log.hold(after)
    peer.send("task.add", add("b"), id=1)
    await gate.reached()
    watcher = await running.connect()
    watcher.send("event.subscribe", {"after": 0}, id=1)
    watcher.send("event.subscribe", {"conversation": C}, id=2)
    watcher.send("event.subscribe", {"conversation": C, "after": 1}, id=3)
    assert (await watcher.answer(1))["result"]["seq"] == 0
    gate.open()
    seqs: dict[str, list[int]] = {"1": [], "2": [], "3": []}
    starts: dict[int, int] = {1: 0}
    await peer.answer(1)
    await peer.result("task.add", **add("c"))
    while not (seqs["1"][-1:] == seqs["2"][-1:] == seqs["3"][-1:] == [4]):
        message = watcher.pushes.pop(0) if watcher.pushes else await watcher.receive()
        if "id" in message:
            starts[message["id"]] = message["result"]["seq"]
        else:
            seqs[message["params"]["subscription"]] += [event["seq"] for event in message["params"]["events"]]
    by_start = sorted((start, list(range(start + 1, 5))) for start in starts.values())
    assert sorted((found[0] - 1, found) for found in seqs.values()) == by_start


async def test_subscription_under_load_has_no_gap_or_repeat(running: Engine) -> None:
    writers = [await running.connect() for _ in range(4)]
    watchers = [await running.connect() for _ in range(8)]

    async def write(peer: Peer) -> None:
        for number in range(60):
            await peer.result("task.add", **add(str(number)))

    async def watch(peer: Peer, delay: int) -> None:
        for _ in range(delay * 5):
            await asyncio.sleep(0)
        answer = await peer.result("event.subscribe", conversation=C)
        seen = answer["seq"]
        while seen < 241:
            for event in (await peer.push())["params"]["events"]:
                assert event["seq"] == seen + 1
                seen += 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for peer in writers:
                group.start_soon(write, peer)
            for delay, peer in enumerate(watchers):
                group.start_soon(watch, peer, delay)


async def test_settled_list_is_granted_before_new_decisions(running: Engine, peer: Peer, log: TouchyLog) -> None:
    await peer.result("message.append", conversation=C, role="user", content=0)
    reader = await running.connect()
    gate = log.hold()
    peer.send("message.append", {"conversation": C, "role": "user", "content": 1}, id=1)
    await gate.reached()
    peer.send("message.append", {"conversation": C, "role": "user", "content": 2}, id=2)
    await until(lambda: len(running.writer._forming.items) == 1)  # pyright: ignore[reportPrivateUsage]
    reader.send("message.list", {"conversation": C}, id=1)
    await reader.quiet()
    peer.send("message.append", {"conversation": C, "role": "user", "content": 3}, id=3)
    await peer.quiet()
    assert len(running.inbox.queue) == 1
    gate.open()
    messages = (await reader.answer(1))["result"]["messages"]
    assert [message["content"] for message in messages] == [0, 1, 2]
    assert [(await peer.receive())["id"] for _ in range(3)] == [1, 2, 3]


# Names that resolve to another list


async def test_call_right_after_attach_finds_the_list(peer: Peer) -> None:
    peer.write(
        peer.request("conversation.attach", {"conversation": C, "session": "s"}, id=1)
        + peer.request("task.add", add("a", "s"), id=2)
        + peer.request("conversation.detach", {"conversation": C, "session": "s"}, id=3)
        + peer.request("task.add", add("b", "s"), id=4)
    )
    for id in (1, 2, 3, 4):
        assert "result" in await peer.answer(id)
    assert (await titles(peer), await titles(peer, "s")) == (["a"], ["b"])


async def test_conversation_used_after_deletion_is_new(peer: Peer, log: TouchyLog) -> None:
    await peer.result("conversation.attach", conversation=C, session="s")
    await peer.result("task.add", **add("secret", key="k"))
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    peer.write(
        peer.request("conversation.delete", {"conversation": C, "confirm": token}, id=1)
        + peer.request("task.add", add("new", key="k"), id=2)
        + peer.request("task.add", add("own", "s"), id=3)
    )
    deleted, added, own = [(await peer.answer(id))["result"] for id in (1, 2, 3)]
    assert (deleted["version"], added["version"], added["task"]["id"]) == (4, 6, "1")
    assert own["version"] == 2, "the session no longer resolves to the deleted list"
    assert await log.unerased() == []
    lines = await log.read(0, 100)
    assert b"secret" not in b"".join(line.line for line in lines) and lines[0].seq == 4


async def test_deletion_is_durable_without_room_to_erase(
    running: Engine, peer: Peer, log: TouchyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await peer.result("task.add", **add("secret"))
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]

    async def no_room(conversation: str) -> None:
        raise StorageFull("full")

    with monkeypatch.context() as patch:
        patch.setattr(log, "erase", no_room)
        await peer.result("conversation.delete", conversation=C, confirm=token)
        assert await titles(peer) == [] and await log.unerased() == [C]
    with anyio.fail_after(30):
        await running.maintenance.refresh()
    assert await log.unerased() == [], "the next indexing makes up for it"


async def test_damaged_history_rejects_only_its_undo(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add", **add("a", key="k"))
    log.damaged_at[C] = 2
    refused = await peer.refusal("list.undo", conversation=C)
    assert (refused["kind"], refused["seq"]) == ("damaged", 2)
    assert (await peer.refusal("task.add", **add("b")))["kind"] == "damaged"
    assert await titles(peer) == ["a"]
    assert "result" in await peer.call("task.add", **add("b", "other"))


class FickleLog(TouchyLog):
    """A log that claims a fast disk but is slow, or the reverse."""

    _random = Random(1)

    @property
    def quick(self) -> bool:
        """Whether the log claims a fast disk, at random."""
        return self._random.random() < 0.5

    def append_now(self, entries: Sequence[Sealed]) -> bool:
        """Commit in the loop's thread only if the log claims a fast disk."""
        self.at_once = self.quick
        return super().append_now(entries)


async def test_commits_keep_their_order_over_disk_errors(tmp_path: Path) -> None:
    async with engine(tmp_path, FickleLog(), batch_calls=2) as running:
        watcher, *peers = [await running.connect() for _ in range(4)]
        await watcher.result("event.subscribe")
        for number in range(30):
            for peer in peers:
                peer.send("message.append", {"conversation": C, "role": "user", "content": number}, id=number)
        for peer in peers:
            for number in range(30):
                assert "result" in await peer.answer(number)
        assert [event["seq"] for event in await watcher.events(91)] == list(range(1, 92))
