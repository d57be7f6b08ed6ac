from pathlib import Path
from typing import Any, cast

import pytest

from punchlist_schemas.methods import METHODS
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlistd.engine.reading.queries import Queries
from punchlistd.engine.reading.search import Search
from punchlistd.engine.reading.timeline import Timeline
from punchlistd.net.connection import Connection
from punchlistd.net.methods import ConnectionMethods
from punchlistd.net.router import build_table
from punchlistd.net.sharing import Sharing

C = "c"


def broken(_connection: Connection, _params: Any) -> bytes:
    raise RuntimeError("planted")


class Anything:
    """An object with every attribute."""

    def __getattr__(self, name: str) -> Any:
        return (self, name)


def add(title: str) -> dict[str, Any]:
    return {"conversation": C, "title": title}


async def test_notifications_are_executed_without_reply(peer: Peer) -> None:
    peer.send("task.add", add("a"), id=None)
    peer.send("task.add", {"conversation": C}, id=None)
    peer.write(peer.frame([{"jsonrpc": "2.0", "method": "task.add", "params": add("b")}] * 2))
    listed = await peer.result("task.list", conversation=C)
    assert [task["title"] for task in listed["tasks"]] == ["a", "b", "b"]


async def test_exception_becomes_an_internal_error(running: Engine, peer: Peer) -> None:
    refused = await peer.refusal("daemon.status")  # no report is installed here
    assert (refused["kind"], refused["code"]) == ("internal_error", -32603)
    await peer.quiet()
    assert "daemon.status" in running.metrics.errors[0]


async def test_next_call_is_served_after_an_exception(
    running: Engine, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    rows = running.router.table
    rows["rpc.discover"] = rows["rpc.discover"]._replace(immediate=broken)
    assert (await peer.refusal("rpc.discover"))["kind"] == "internal_error"
    assert "rpc.discover failed" in caplog.text
    await peer.quiet()


@pytest.mark.parametrize(("method", "member", "seen"), [("task.list", "tasks", 2), ("event.read", "events", 3)])
async def test_read_after_a_write_sees_it(tmp_path: Path, method: str, member: str, seen: int) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a"))
        gate = log.hold()
        peer.send("task.add", add("b"), id=1)
        peer.send(method, {"conversation": C, **({"after": 0} if method == "event.read" else {})}, id=2)
        await gate.reached()
        gate.open()
        assert (await peer.receive())["id"] == 1
        assert len((await peer.receive())["result"][member]) == seen


def test_every_method_has_a_handler() -> None:
    rows = build_table(
        cast(ConnectionMethods, Anything()),
        cast(Queries, Anything()),
        cast(Search, Anything()),
        cast(Timeline, Anything()),
        cast(Sharing, Anything()),
    )
    assert rows.keys() == METHODS.keys()
    for name, row in rows.items():
        answers = (row.immediate, row.state, row.log)
        assert row.method is METHODS[name]
        assert any(answers) != (row.method.kind == "write"), (
            f"{name}: the writer handles writes, a function all other methods"
        )
