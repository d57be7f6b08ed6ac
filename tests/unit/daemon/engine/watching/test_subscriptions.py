from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlist_testing.store import damaged_log
from punchlistd.engine.watching.subscriptions import NEXT, Phase, Subscription

C = "c"


def add(title: str, conversation: str = C, **more: Any) -> dict[str, Any]:
    return {"conversation": conversation, "title": title, **more}


def many(count: int, size: int = 10, conversation: str = C) -> dict[str, Any]:
    return {"conversation": conversation, "tasks": [{"title": "x", "description": "d" * size} for _ in range(count)]}


def subscriptions(running: Engine) -> list[Subscription]:
    return [each for session in running.connections.live for each in session.subscriptions.values()]


def seqs(events: list[Any]) -> list[int]:
    return [event["seq"] for event in events]


class Reader:
    """Receives pushes and checks that groups arrive complete."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.events: list[Any] = []

    async def upto(self, seq: int) -> list[Any]:
        while not self.events or self.events[-1]["seq"] < seq:
            self.events += (await self.peer.push())["params"]["events"]
        return self.events


def test_every_phase_of_a_subscription_is_reachable() -> None:
    assert set(NEXT) == set(Phase) == frozenset[Phase]().union(*NEXT.values())
    assert [phase for phase, following in NEXT.items() if not following] == [Phase.OVER]


async def test_every_subscriber_gets_every_event_once_in_order(running: Engine, peer: Peer) -> None:
    readers = [Reader(await running.connect()) for _ in range(5)]
    for number, reader in enumerate(readers):
        await reader.peer.result("event.subscribe", **({"conversation": C} if number % 2 else {}))
    for number in range(30):
        await peer.result("task.add", **add(str(number)))
    for reader in readers:
        assert seqs(await reader.upto(31)) == list(range(1, 32))


async def test_push_is_encoded_once_for_many_subscribers(running: Engine, peer: Peer) -> None:
    watching = [*[await running.connect() for _ in range(10)], await running.connect(headers=True)]
    await until(lambda: len(running.connections.live) == 12)
    pushed: list[bytes] = []
    for session in running.connections.live:
        real = session.push_framed
        session.push_framed = lambda framed, real=real: (pushed.append(framed), real(framed))[1]
    for each in watching:
        await each.result("event.subscribe", conversation=C)
    await peer.result("task.add", **add("a"))
    await until(lambda: len(pushed) == 11)
    assert len({id(framed) for framed in pushed}) == 2, "one for each framing"


async def test_other_conversations_are_not_pushed(running: Engine, peer: Peer) -> None:
    reader = Reader(await running.connect())
    await reader.peer.result("event.subscribe", conversation=C)
    await peer.result("task.add", **add("a", "other"))
    await peer.result("task.add", **add("b"))
    assert seqs(await reader.upto(4)) == [3, 4]


@pytest.mark.parametrize("conversation", [C, None])
@pytest.mark.parametrize("recent_bytes", [0, 4 << 20], ids=["from the log", "from memory"])
async def test_resume_misses_nothing_and_splits_no_call(
    tmp_path: Path, conversation: str | None, recent_bytes: int
) -> None:
    async with engine(tmp_path, recent_bytes=recent_bytes, chunk_bytes=700) as running:
        peer = await running.connect()
        ends: list[int] = []
        for count in (1, 7, 2, 30, 1, 3):
            ends.append((await peer.result("task.add_many", **many(count)))["seq"])
        named = {} if conversation is None else {"conversation": conversation}
        for after in (0, 1, ends[0], ends[1], 20, ends[3], ends[5] - 1):
            reader = await running.connect()
            assert (await reader.result("event.subscribe", after=after, **named))["seq"] == after
            events: list[int] = []
            while not events or events[-1] < ends[-1]:
                events += seqs((await reader.push())["params"]["events"])
                assert events[-1] in ends, "whole calls only"
            assert events == list(range(after + 1, ends[-1] + 1))
        await peer.result("event.subscribe", after=ends[-1], **named)
        await peer.quiet()


@pytest.mark.parametrize("view", ["events", "list"])
@pytest.mark.parametrize("recent_bytes", [10_000, 4 << 20], ids=["far behind", "a little behind"])
async def test_stuck_reader_costs_little_and_later_gets_everything(
    tmp_path: Path, view: str, recent_bytes: int
) -> None:
    async with engine(tmp_path, recent_bytes=recent_bytes) as running:
        peer, stuck = await running.connect(), await running.connect()
        await peer.result("task.add", **add("a"))
        await stuck.result("event.subscribe", conversation=C, view=view)
        session = next(session for session in running.connections.live if session.subscriptions)
        stuck.stop_reading()
        most = 0
        for number in range(60):
            await peer.result("task.edit", conversation=C, task="1", description=f"{number} " + "d" * 20_000)
            most = max(most, running.unsent(session))
        assert session.paused and most < 100_000
        assert subscriptions(running)[0].position < running.subscriptions.head
        stuck.resume_reading()
        if view == "events":
            assert seqs(await Reader(stuck).upto(62)) == list(range(3, 63))
        else:
            pushes = 0
            while True:
                pushes += 1
                params = (await stuck.push())["params"]
                if params["version"] == 62:
                    break
            assert params["tasks"][0]["description"].startswith("59 ") and pushes < 50
        await until(lambda: subscriptions(running)[0].position == running.subscriptions.head)
        await peer.result("task.add", **add("z"))
        assert (await stuck.push())["params"]["subscription"] == "1"


async def test_full_connection_still_gets_all_subscriptions(running: Engine, peer: Peer) -> None:
    stuck = await running.connect()
    for named in ({"conversation": C}, {}, {"conversation": C}):
        await stuck.result("event.subscribe", **named)
    stuck.stop_reading()
    for number in range(60):
        await peer.result("task.add", **add("a", description=f"{number} " + "d" * 7_000))
    assert [each.live for each in subscriptions(running)] == [False] * 3
    stuck.resume_reading()
    told: dict[str, list[int]] = {}
    while len(told) < 3 or min(map(len, told.values())) < 61:
        params = (await stuck.push())["params"]
        told.setdefault(params["subscription"], []).extend(seqs(params["events"]))
    assert told == dict.fromkeys("123", list(range(1, 62)))


async def test_event_committed_during_log_read_is_kept(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, recent_bytes=0) as running:
        peer, reader = await running.connect(), Reader(await running.connect())
        for title in ("a", "b"):
            await peer.result("task.add", **add(title))
        slow = log.hold_reads()
        await reader.peer.result("event.subscribe", conversation="quiet", after=0)
        await slow.reached()
        for number in range(5):
            await peer.result("task.add", **add(str(number), "quiet"))
        slow.open()
        assert seqs(await reader.upto(9)) == [4, 5, 6, 7, 8, 9]


async def test_committed_unpublished_event_is_pushed_once(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, recent_bytes=0) as running:
        peer, reader = await running.connect(), Reader(await running.connect())
        for title in ("a", "b"):
            await peer.result("task.add", **add(title))
        gate = log.hold(after=True)
        peer.send("task.add", add("c"), id=1)
        await gate.reached()
        await reader.peer.result("event.subscribe", after=0)
        assert seqs((await reader.peer.push())["params"]["events"]) == [1, 2, 3]
        await reader.peer.quiet()
        gate.open()
        assert seqs(await reader.upto(4)) == [4]
        await reader.peer.quiet()


async def test_list_view_gets_the_newest_lists(running: Engine, peer: Peer) -> None:
    reader = await running.connect()
    await reader.result("event.subscribe", view="list")
    await peer.result("task.add", **add("a", "one"))
    await peer.result("task.add", **add("b", "two"))
    told = [(await reader.push())["params"] for _ in range(2)]
    assert [(list_["conversation"], list_["version"]) for list_ in told] == [("one", 2), ("two", 2)]
    assert told[1]["tasks"][0]["title"] == "b" and told[1]["counts"]["pending"] == 1 and told[1]["seq"] == 4


@pytest.mark.parametrize("recent_bytes", [0, 4 << 20])
async def test_list_view_resumes_with_changed_lists(tmp_path: Path, recent_bytes: int) -> None:
    async with engine(tmp_path, recent_bytes=recent_bytes) as running:
        peer, reader = await running.connect(), await running.connect()
        for name in ("one", "two", "three"):
            await peer.result("task.add", **add("a", name))
        await reader.result("event.subscribe", view="list", after=2)
        assert {(await reader.push())["params"]["conversation"] for _ in range(2)} == {"two", "three"}
        await reader.quiet()
        await until(lambda: subscriptions(running)[0].position == 6)


async def test_deleted_list_is_pushed_as_empty(running: Engine, peer: Peer) -> None:
    reader = await running.connect()
    await peer.result("task.add", **add("a"))
    await reader.result("event.subscribe", conversation=C, view="list")
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("conversation.delete", conversation=C, confirm=token)
    assert (await reader.push())["params"]["tasks"] == []


async def test_unsubscribe_ends_pushes_in_flight(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, recent_bytes=0) as running:
        peer, reader = await running.connect(), await running.connect()
        for number in range(3):
            await peer.result("task.add", **add(str(number)))
        slow = log.hold_reads()
        await reader.result("event.subscribe", after=0)
        await slow.reached()
        await reader.result("event.unsubscribe", subscription="1")
        slow.open()
        await peer.result("task.add", **add("z"))
        await reader.quiet()
        assert not subscriptions(running)


async def test_damage_ends_only_its_own_subscriptions(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, recent_bytes=0) as running:
        peer, reader = await running.connect(), await running.connect()
        await peer.result("task.add", **add("a"))
        await peer.result("task.add", **add("b", "fine"))
        log.damaged_at[C] = 1
        await reader.result("event.subscribe", conversation=C, after=0)
        end = await reader.push()
        assert (end["method"], end["params"]["error"]["data"]["kind"]) == ("end", "damaged")
        assert end["params"]["next"] == 0
        assert (await reader.refusal("event.unsubscribe", subscription="1"))["kind"] == "not_found"
        await reader.result("event.subscribe", conversation="fine", after=0)
        assert seqs(await Reader(reader).upto(4)) == [3, 4]


async def test_follower_of_everything_gets_gaps_and_continues(tmp_path: Path) -> None:
    await damaged_log(tmp_path / "data")
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        await peer.result("event.subscribe", after=0)
        assert seqs(await peer.events(2)) == [1, 2]
        end = await peer.push()
        error = end["params"]["error"]
        assert (end["method"], error["code"], end["params"]["next"]) == ("end", -32014, 3)
        assert error["data"] == {"kind": "gap", "after": 2, "first": 4}
        await peer.result("event.subscribe", after=end["params"]["next"])
        assert seqs(await peer.events(1)) == [4]
        await peer.result("task.add", **add("live"))
        assert seqs(await peer.events(2)) == [5, 6]
        await peer.quiet()
        peer.close()


# users


async def test_bound_subscriber_gets_its_users_events(tmp_path: Path) -> None:
    async with engine(tmp_path, recent_bytes=2_000) as running:
        alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
        for number in range(20):
            await alice.result("task.add", **add(str(number), f"alice-{number % 3}"))
            await bob.result("task.add", **add(str(number), f"bob-{number % 3}"))
        watcher = await running.connect(user="alice")
        await watcher.result("event.subscribe", after=0)
        late = await alice.result("task.add", **add("new", "alice-new"))
        await bob.result("task.add", **add("new", "bob-new"))
        events = await Reader(watcher).upto(late["seq"])
        assert {event["conversation"] for event in events} == {"alice-0", "alice-1", "alice-2", "alice-new"}
        assert len(events) == 25 and seqs(events) == sorted(set(seqs(events)))
        await watcher.quiet()


@pytest.mark.parametrize("hello", [{}, {"user": "ann"}], ids=["view list", "bound"])
async def test_connection_closed_during_load_is_not_subscribed(
    running: Engine, log: TouchyLog, hello: dict[str, Any]
) -> None:
    gate = log.hold_loads()
    for number in range(20):
        peer = await running.connect(**hello)
        peer.send("event.subscribe", {"conversation": f"c{number}", "view": "events" if hello else "list"})
        await gate.reached()
        peer.close()
    await until(lambda: not running.connections.live)
    gate.open()
    await until(lambda: len(running.conversations.loaded) == 20)
    await (await running.connect()).quiet()
    assert running.subscriptions.subscribed == 0


@pytest.mark.parametrize("named", [True, False])
async def test_conversation_of_a_new_user_is_not_shown(running: Engine, peer: Peer, named: bool) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    await alice.result("task.add", **add("a"))
    await alice.result("event.subscribe", **({"conversation": C} if named else {}))
    await alice.result("event.subscribe", view="list", **({"conversation": C} if named else {}))
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("conversation.delete", conversation=C, confirm=token)
    assert {(await alice.push())["method"] for _ in range(2)} == {"events", "list"}
    alice.send("event.wait", {"conversation": C, "after": 3, "timeout_ms": 5000}, id=7)
    await until(lambda: any(session.waiting for session in running.connections.live))
    await bob.result("task.add", **add("bob's secret"))
    assert (await alice.answer(7))["error"]["data"]["kind"] == "not_found"
    await alice.quiet()
    await bob.result("task.add", **add("more secret"))
    await alice.quiet()


async def test_erased_events_leave_the_tail(running: Engine, peer: Peer, log: TouchyLog) -> None:
    async def pushed(**params: Any) -> str:
        watcher = await running.connect()
        await watcher.result("event.subscribe", after=0, **params)
        return str(await Reader(watcher).upto(log.head))

    for name in ("other", C):
        await peer.result("task.add", **add(f"secret of {name}", name))
        await peer.result("message.append", conversation=name, role="user", content=f"said: {name}")
    assert "secret of c" in await pushed() and "said: c" in await pushed(conversation=C)
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("conversation.delete", conversation=C, confirm=token)
    for told in (await pushed(), await pushed(conversation=C)):
        assert "ConversationDeleted" in told and "secret of c" not in told and "said: c" not in told
    assert "secret of other" in await pushed() and log.head == running.subscriptions.head
