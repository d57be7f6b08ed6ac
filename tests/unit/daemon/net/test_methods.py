import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from punchlist_schemas.errors import ERRORS
from punchlist_schemas.results import Limits
from punchlist_testing.daemon import Raw, running_daemon
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlistd.store.port import StorageFailed, StorageFull

C = "c"
GUID = "0f9619ff-8b86-d011-b42d-00c04fc964ff"

# Method, params, and expected members of the error's data: one row for each rejection in the contract that a call can
# get.
REFUSALS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("method_not_found", "task.ad", {}, {"method": "task.ad", "nearest": "task.add"}),
    ("invalid_params", "task.add", {"conversation": C, "titel": "x"}, {"field": "titel", "nearest": "title"}),
    ("invalid_params", "task.add", {"conversation": C}, {"field": "title"}),
    ("not_found", "task.get", {"conversation": C, "task": "9"}, {"what": "task", "id": "9"}),
    ("not_found", "task.get", {"conversation": C, "task": GUID}, {"what": "task", "id": GUID}),
    ("not_found", "task.delete", {"conversation": C, "tasks": ["1" * 128]}, {"what": "task", "id": "1" * 128}),
    ("not_found", "task.add", {"conversation": C, "title": "x", "blocked_by": [GUID]}, {"what": "task", "id": GUID}),
    ("not_found", "event.unsubscribe", {"subscription": "x"}, {"what": "subscription", "id": "x"}),
    ("not_found", "message.list", {"conversation": C, "after": "m"}, {"what": "message", "id": "m"}),
    ("not_found", "conversation.delete", {"conversation": "no"}, {"what": "conversation", "id": "no"}),
    ("version_conflict", "list.clear", {"conversation": C, "expect_version": 1}, {"expected": 1, "actual": 6}),
    (
        "illegal_transition",
        "task.set_status",
        {"conversation": C, "task": "1", "status": "paused"},
        {"from": "completed", "to": "paused", "allowed": ["pending", "in_progress"]},
    ),
    (
        "blocked",
        "task.set_status",
        {"conversation": C, "task": "3", "status": "completed"},
        {"blockers": [{"id": "2", "title": "b", "status": "pending"}]},
    ),
    (
        "dependency_cycle",
        "task.edit",
        {"conversation": C, "task": "2", "add_blocked_by": ["3"]},
        {"path": ["2", "3", "2"]},
    ),
    ("key_conflict", "task.add", {"conversation": C, "title": "other", "key": "k"}, {"key": "k"}),
    ("confirmation_required", "conversation.delete", {"conversation": C}, {}),
    ("wrong_epoch", "event.read", {"after": 0, "epoch": "other"}, {"epoch": "other"}),
    ("wrong_epoch", "event.subscribe", {"after": 999}, {}),
    ("wrong_epoch", "event.wait", {"after": 999, "timeout_ms": 1000}, {}),
    ("invalid_params", "conversation.list", {"cursor": "x"}, {"field": "cursor"}),
    ("invalid_params", "task.list", {"conversation": C, "fields": ["titel"]}, {"field": "fields"}),
    ("invalid_params", "task.list", {"conversation": C, "at_version": 99}, {"field": "at_version"}),
]


async def filled(peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a", key="k")
    await peer.result("task.add", conversation=C, title="b")
    await peer.result("task.add", conversation=C, title="c", blocked_by=["2"])
    await peer.result("task.set_status", conversation=C, task="1", status="completed")
    await peer.result("message.append", conversation=C, role="user", content=1)


@pytest.mark.parametrize(("kind", "method", "params", "facts"), REFUSALS)
async def test_rejected_call_has_its_data_and_changes_nothing(
    tmp_path: Path, kind: str, method: str, params: dict[str, Any], facts: dict[str, Any]
) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await filled(peer)
        head, before = log.head, await peer.result("task.list", conversation=C)
        refused = await peer.refusal(method, **params)
        assert (refused["kind"], refused["code"]) == (kind, ERRORS[kind].code)
        assert {name: refused.get(name) for name in facts} == facts
        assert set(refused) <= {"kind", "code", *ERRORS[kind].data}
        assert log.head == head and await peer.result("task.list", conversation=C) == before


@pytest.mark.parametrize("method", ["task.list", "task.get", "task.explain"])
async def test_read_waits_for_its_version(running: Engine, method: str) -> None:
    peer, other = await running.connect(), await running.connect()
    await filled(peer)
    version = (await peer.result("task.list", conversation=C))["version"]
    task = {} if method == "task.list" else {"task": "1"}
    assert await peer.result(method, conversation=C, min_version=version, **task)
    peer.send(method, {"conversation": C, "min_version": version + 1, **task}, id=7)
    peer.send("task.get", {"conversation": C, "task": "2"}, id=8)
    assert (await peer.receive())["id"] == 8
    await other.result("task.edit", conversation=C, task="1", title="newer")
    answer = await peer.receive()
    assert answer["id"] == 7 and "newer" in str(answer["result"])


async def test_missing_version_error_has_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlistd.engine.reading.queries.REACHED_S", 0.01)
    async with engine(tmp_path) as running:
        peer = await running.connect()
        await filled(peer)
        version = (await peer.result("task.list", conversation=C))["version"]
        refused = await peer.refusal("task.list", conversation=C, min_version=version + 5)
        assert (refused["kind"], refused["expected"], refused["actual"]) == ("version_conflict", version + 5, version)
        assert (await peer.refusal("task.get", conversation="no", task="1", min_version=1))[
            "kind"
        ] == "version_conflict"


async def test_disk_errors_have_their_codes(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        for kind, refusal in (("storage_full", StorageFull()), ("outcome_unknown", StorageFailed())):
            log.refusal = refusal
            refused = await peer.refusal("task.add", conversation=C, title="a")
            assert (refused["kind"], refused["code"]) == (kind, ERRORS[kind].code)
        refused = await peer.refusal("task.add", conversation=C, title="a")
        assert (refused["kind"], refused["code"]) == ("shutting_down", -32012)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1', "parse_error"),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', "invalid_request"),
        (b"[]", "invalid_request"),
        (b'{"a":{"a":' + b"[" * 40 + b"]" * 40 + b"}}", "limit_exceeded"),
        (b"[" + b",".join([b"{}"] * 101) + b"]", "limit_exceeded"),
    ],
)
async def test_invalid_frame_is_rejected(peer: Peer, frame: bytes, kind: str) -> None:
    peer.write(frame + b"\n")
    error = (await peer.receive())["error"]
    assert (error["code"], error["data"]["kind"]) == (ERRORS[kind].code, kind)
    await peer.quiet()


async def test_hello_returns_identity_and_limits(tmp_path: Path) -> None:
    async with engine(tmp_path, limits=Limits(batch=7, frame_seconds=3.5)) as running:
        peer = await running.connect()
        told = await peer.result("daemon.hello", client={"name": "me", "version": "1"})
        assert (told["name"], told["protocol"], told["pid"]) == ("punchlistd", 1, os.getpid())
        assert (told["limits"]["batch"], told["limits"]["frame_seconds"]) == (7, 3.5)
        assert told["epoch"] == running.log.epoch and told["limits"]["connections"] > 0
        added = await peer.result("message.append", conversation=C, role="user", content=1)
        assert added["message"]["actor"] == "me"


async def test_discover_returns_the_whole_contract(running: Engine) -> None:
    document = await (await running.connect()).result("rpc.discover")
    assert {"task.add", "event.subscribe"} <= {method["name"] for method in document["methods"]}


async def test_connection_above_limit_is_closed_with_error(tmp_path: Path) -> None:
    async with engine(tmp_path, limits=Limits(connections=3)) as running:
        peers = [await running.connect() for _ in range(3)]
        for peer in peers:
            await peer.quiet()
        late = await running.connect()
        error = (await late.receive())["error"]["data"]
        assert (error["kind"], error["limit"], error["value"], error["maximum"]) == (
            "limit_exceeded",
            "connections",
            4,
            3,
        )
        await late.closed()
        peers[0].close()
        with anyio.fail_after(30):
            while len(running.connections.live) == 3:
                await anyio.lowlevel.checkpoint()
        await (await running.connect()).quiet()


async def test_subscriptions_of_a_connection_are_limited(tmp_path: Path) -> None:
    async with engine(tmp_path, limits=Limits(subscriptions=2)) as running:
        peer = await running.connect()
        for _ in range(2):
            await peer.result("event.subscribe")
        assert (await peer.refusal("event.subscribe"))["limit"] == "subscriptions"
        await peer.result("event.unsubscribe", subscription="1")
        assert (await peer.result("event.subscribe"))["subscription"] == "3"


async def test_subscription_starts_with_its_list(peer: Peer) -> None:
    await filled(peer)
    shown = await peer.result("event.subscribe", conversation=C, view="list", after=1)
    listed = await peer.result("task.list", conversation=C)
    assert {name: shown[name] for name in ("tasks", "counts", "version", "seq")} == {
        name: listed[name] for name in ("tasks", "counts", "version", "seq")
    }
    await peer.quiet()


async def test_status_figures_are_real(tmp_path: Path) -> None:
    def look(path: str) -> dict[str, Any]:
        peer, other = Raw(path), Raw(path)
        try:
            peer.result("daemon.hello", client={"name": "me"})
            for number in range(5):
                peer.result("task.add", conversation=C, title=str(number))
            peer.call("task.get", conversation=C, task="99")
            other.result("event.subscribe", conversation=C)
            return peer.result("daemon.status")
        finally:
            peer.close()
            other.close()

    async with running_daemon(tmp_path) as daemon:
        told = await anyio.to_thread.run_sync(look, daemon.socket)
    assert (told["pid"], told["seq"], told["commits"]["count"]) == (os.getpid(), 6, 5)
    assert (told["calls"], told["refused"]) == (8, 1)
    assert 0 < told["commits"]["p50_us"] <= told["commits"]["p99_us"]
    assert {client["name"] for client in told["clients"]} == {"me", ""}
    assert told["subscriptions"] == [{"subscription": "1", "client": "", "view": "events", "lag": 0, "conversation": C}]
    assert told["log_bytes"] > 0 and told["socket"].endswith(".sock") and told["uptime_ms"] >= 0
    assert msgspec.json.encode(told)


async def test_idle_shutdown_waits_for_connections_and_claims(running: Engine) -> None:
    peer, other = await running.connect(), await running.connect()
    assert await peer.result("daemon.shutdown", if_idle=True) == {"stopping": False}
    await other.result("task.add", conversation="c", title="a")
    await other.result("task.claim", conversation="c", owner="ann", lease_ms=3_600_000, keep=True)
    other.close()
    assert await peer.result("daemon.shutdown", if_idle=True) == {"stopping": False}
    await peer.result("task.release", conversation="c", task="1", owner="ann")
    with anyio.fail_after(30):
        while not (await peer.result("daemon.shutdown", if_idle=True))["stopping"]:
            pass  # the end of the other connection hasn't been noticed yet
        await running.stopping.wait()


async def test_shutdown_is_answered_before_the_stop(running: Engine) -> None:
    assert await (await running.connect()).result("daemon.shutdown") == {"stopping": True}
    with anyio.fail_after(30):
        await running.stopping.wait()


async def test_language_server_client_can_cancel_and_exit(running: Engine) -> None:
    editor = await running.connect(headers=True)
    told: dict[str, Any] = {
        "processId": 1,
        "rootUri": None,
        "capabilities": {"x": {}},
        "clientInfo": {"name": "helix"},
    }
    editor.send("initialize", told, id=1)
    greeting = (await editor.answer(1))["result"]
    assert greeting["capabilities"] == {} and greeting["serverInfo"]["name"] == "punchlistd"
    editor.send("initialized", {}, id=None)
    editor.send("event.wait", {"after": 0, "conversation": C, "timeout_ms": 60_000}, id=2)
    editor.send("$/cancelRequest", {"id": 2}, id=None)
    assert (await editor.answer(2))["error"]["data"]["kind"] == "cancelled"
    editor.send("$/cancelRequest", {"id": 2}, id=None)  # a notification gets no response
    editor.send("task.add", {"conversation": C, "title": "a"}, id=3)
    assert (await editor.answer(3))["result"]["version"] == 2
    editor.write(editor.frame({"jsonrpc": "2.0", "id": 4, "method": "shutdown", "params": None}))
    assert (await editor.answer(4))["result"] == {}
    editor.send("exit", id=None)
    with pytest.raises(EOFError), anyio.fail_after(5):
        await editor.reader.readexactly(1)
    (event,) = [
        each
        for each in (await (await running.connect()).result("event.read", after=0))["events"]
        if each["event"]["type"] == "TaskAdded"
    ]
    assert event["actor"] == "helix", "the daemon continues"


async def test_undo_preview_names_its_calls(peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a")
    many = [{"title": "b"}, {"title": "c"}]
    last = (await peer.result("task.add_many", conversation=C, tasks=many))["version"]
    await peer.result("task.edit", conversation=C, task="1", title="n", key="edit")
    preview = await peer.result("list.undo", conversation=C, count=2, preview=True)
    assert preview["calls"] == [last + 1, last - 1]
    events = (await peer.result("event.read", conversation=C, after=0))["events"]
    assert {each.get("call") or each["version"] for each in events[-3:]} == set(preview["calls"])
    undone = await peer.result("list.undo", conversation=C, count=2, key="undo")
    assert (undone["calls"], undone["undone"]) == (preview["calls"], preview["undone"])
