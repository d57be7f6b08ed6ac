from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine

C = "c"
READS = ("conversation.get", "task.list", "message.list")


async def of(peer: Peer, name: str) -> str:
    return (await peer.result("conversation.get", conversation=name))["conversation"]["conversation"]


async def test_another_users_conversation_is_not_there_whatever_is_asked(running: Engine, log: TouchyLog) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    await alice.result("task.add", conversation=C, title="a")
    head = log.head
    calls: list[tuple[str, dict[str, Any]]] = [
        *((method, {}) for method in READS),
        ("task.list", {"at_version": 1}),
        ("task.get", {"task": "1"}),
        ("event.read", {"after": 0}),
        ("event.wait", {"after": 0, "timeout_ms": 1000}),
        ("event.subscribe", {}),
        ("task.add", {"title": "b"}),
        ("task.delete", {"task": "1"}),
        ("list.clear", {}),
        ("list.undo", {}),
        ("conversation.open", {}),
        ("conversation.delete", {}),
        ("conversation.attach", {"session": "s"}),
        ("message.append", {"role": "user", "content": 1}),
    ]
    for method, params in calls:
        refused = await bob.refusal(method, conversation=C, **params)
        assert (refused["kind"], refused["what"], refused["id"]) == ("not_found", "conversation", C), method
    assert log.head == head
    assert (await bob.result("conversation.list"))["conversations"] == []
    assert (await bob.result("event.read", after=0))["events"] == []
    assert len((await alice.result("conversation.list"))["conversations"]) == 1
    assert len((await (await running.connect()).result("event.read", after=0))["events"]) == 2


async def test_an_unknown_conversation_opened_by_a_bound_connection_is_its_users(running: Engine) -> None:
    alice = await running.connect(user="alice")
    opened = await alice.result("conversation.open", conversation=C)
    assert opened["conversation"]["user"] == "alice"


async def test_what_reaches_outside_the_scope_is_forbidden(running: Engine) -> None:
    alice = await running.connect(user="alice")
    for method, params in [
        ("conversation.open", {"conversation": C, "user": "bob"}),
        ("daemon.hello", {"user": "bob"}),
        ("daemon.shutdown", {}),
    ]:
        refused = await alice.refusal(method, **params)
        assert (refused["kind"], refused["code"]) == ("forbidden", -32011), method
    late = await running.connect()
    await late.result("event.subscribe")
    assert (await late.refusal("daemon.hello", user="alice"))["kind"] == "forbidden"


async def test_a_session_of_another_user_can_not_be_taken(running: Engine) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    await alice.result("conversation.attach", conversation="hers", session="s")
    assert (await bob.refusal("conversation.attach", conversation="his", session="s"))["kind"] == "forbidden"
    assert await of(alice, "s") == "hers"


# sessions


async def test_a_session_finds_its_list_wherever_a_conversation_is_named(running: Engine, peer: Peer) -> None:
    await peer.result("conversation.attach", conversation=C, session="s")
    await peer.result("task.add", conversation="s", title="a")
    for method in READS:
        await peer.result(method, conversation="s")
    assert (await peer.result("task.get", conversation="s", task="1"))["task"]["title"] == "a"
    assert len((await peer.result("task.list", conversation="s", at_version=3))["tasks"]) == 1
    assert len((await peer.result("event.read", conversation="s", after=0))["events"]) == 3
    await peer.result("event.subscribe", conversation="s")
    await peer.result("task.set_status", conversation=C, task="1", status="completed")
    assert (await peer.events(1))[0]["conversation"] == C


async def test_a_session_moves_from_list_to_list(running: Engine, peer: Peer) -> None:
    await peer.result("conversation.attach", conversation="one", session="s")
    await peer.result("conversation.attach", conversation="two", session="s")
    assert await of(peer, "s") == "two"
    one = (await peer.result("conversation.get", conversation="one"))["conversation"]
    assert one.get("sessions", []) == [] and one["version"] == 3, "its log says that the session left"
    await peer.result("conversation.detach", conversation="s", session="s")
    assert await of(peer, "s") == "s"


@pytest.mark.parametrize("refused", [{"expect_version": 9}, {"key": "used"}])
async def test_a_refused_attach_leaves_the_session_where_it_is(
    running: Engine, peer: Peer, refused: dict[str, Any]
) -> None:
    await peer.result("task.add", conversation="two", title="a", key="used")
    await peer.result("conversation.attach", conversation="one", session="s")
    await peer.refusal("conversation.attach", conversation="two", session="s", **refused)
    assert await of(peer, "s") == "one"
    assert (await peer.result("conversation.get", conversation="one"))["conversation"]["version"] == 2


async def test_a_conversation_is_no_session(running: Engine, peer: Peer) -> None:
    await peer.result("task.add", conversation="real", title="a")
    refused = await peer.refusal("conversation.attach", conversation=C, session="real")
    assert (refused["kind"], refused["field"]) == ("invalid_params", "session")


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("recover", [False, True])
async def test_sessions_are_found_after_a_restart_and_gone_ones_are_not(
    tmp_path: Path, kill: bool, recover: bool
) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, kill=kill) as running:
        peer = await running.connect()
        for session in ("stays", "leaves", "moves"):
            await peer.result("conversation.attach", conversation=C, session=session)
        await peer.result("conversation.list")  # everything is indexed
        await peer.result("conversation.detach", conversation=C, session="leaves")
        await peer.result("conversation.attach", conversation="other", session="moves")
        await peer.result("conversation.attach", conversation="other", session="new")
    async with engine(tmp_path, log, recover=recover) as running:
        peer = await running.connect()
        found = [await of(peer, name) for name in ("stays", "leaves", "moves", "new")]
        assert found == [C, "leaves", "other", "other"]


async def test_a_detached_session_is_gone_at_once(running: Engine, peer: Peer) -> None:
    await peer.result("conversation.attach", conversation=C, session="s")
    await peer.result("conversation.list")
    await peer.result("conversation.detach", conversation=C, session="s")
    await peer.result("task.add", conversation="s", title="own")
    assert await of(peer, "s") == "s"
    assert (await peer.result("task.list", conversation=C))["tasks"] == []
