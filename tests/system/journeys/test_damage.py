"""A daemon with a damaged log: every reply reports missing data, and everything else is served."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect_async
from punchlist.tools import AsyncToolbox, ToolCaller
from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer

TASKS = 80
"""Enough events for a snapshot, so that the list doesn't need the events before it."""


def spoil(data: Path, old: bytes, new: bytes) -> None:
    """Change one event of a closed log."""
    with closing(sqlite3.connect(data / "log.db", isolation_level=None)) as connection:
        found: list[tuple[int, bytes]] = connection.execute("SELECT seq, body FROM log").fetchall()
        ((seq, body),) = [(seq, body) for seq, body in found if old in body]
        connection.execute("UPDATE log SET body = ? WHERE seq = ?", (body.replace(old, new, 1), seq)).close()


async def plan(place: Path) -> None:
    """Create a log with a short list, and a long one with messages."""
    async with running_daemon(place) as daemon:
        peer = await Peer.open(daemon.socket)
        for number in range(TASKS):
            await peer.result("task.add", conversation="long", title=f"t{number}.", key=f"k{number}")
            if number % 10 == 0:
                await peer.result("message.append", conversation="long", role="user", content=f"m{number}.")
        await peer.result("task.add", conversation="short", title="fine")
        await peer.result("conversation.list")
        peer.close()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("task.list", {"at_version": TASKS}),
        ("message.list", {}),
        ("event.read", {"after": 0}),
        ("list.undo", {"count": 60}),
        ("task.add", {"title": f"t{TASKS - 1}.", "key": f"k{TASKS - 1}"}),
    ],
)
async def test_damaged_event_is_reported_with_read_only_list(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    await plan(tmp_path)
    needed = b"m40." if method == "message.list" else b"t40."
    await anyio.to_thread.run_sync(spoil, tmp_path / "data", needed, needed.upper())
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        shown = await peer.result("task.list", conversation="long")
        assert len(shown["tasks"]) == TASKS, "the snapshot contains everything"
        if method == "event.read":
            part = await peer.result(method, conversation="long", **params)
            params = {"after": part["next"]}
            assert "t39." in json.dumps(part) and "T40." not in json.dumps(part)
        refused = await peer.refusal(method, conversation="long", **params)
        assert (refused["kind"], refused["conversation"]) == ("damaged", "long")
        assert (await peer.refusal("task.add", conversation="long", title="one more"))["kind"] == "damaged"
        await peer.result("task.add", conversation="short", title="one more")
        peer.close()


async def test_every_view_of_a_damaged_list_reports_it(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        for number in range(5):
            await peer.result("task.add", conversation="cut", title=f"t{number}.")
            await peer.result("message.append", conversation="cut", role="user", content=f"m{number}.")
        await peer.result("task.add", conversation="whole", title="fine")
        peer.close()
    await anyio.to_thread.run_sync(lose_snapshots, tmp_path / "data")
    await anyio.to_thread.run_sync(spoil, tmp_path / "data", b"t3.", b"T3.")
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        mark = {"seq": 8, "reason": "its checksum does not match"}
        for method, params in (
            ("task.list", {}),
            ("task.list", {"limit": 2}),
            ("task.list", {"fields": ["title"]}),
            ("task.get", {"task": "1"}),
            ("message.list", {}),
            ("event.subscribe", {"view": "list"}),
        ):
            assert (await peer.result(method, conversation="cut", **params))["damaged"] == mark
            if method != "task.get":
                assert "damaged" not in await peer.result(method, conversation="whole", **params)
        assert (await peer.result("conversation.get", conversation="cut"))["conversation"]["damaged"] == mark
        for method, params in (
            ("task.get", {"task": "4"}),
            ("task.list", {"at_version": 9}),
            ("message.list", {"after": "m9"}),
        ):
            assert (await peer.refusal(method, conversation="cut", **params))["kind"] == "damaged", (
                "the error doesn't say that the task never existed"
            )
        await peer.result("event.subscribe", view="list", after=8)
        while (push := await peer.push())["params"]["conversation"] != "cut":
            assert "damaged" not in push["params"]
        assert push["params"]["damaged"] == mark and len(push["params"]["tasks"]) == 3
        peer.close()


async def test_agents_are_warned_of_damage_in_every_dialect(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        for title in ("first", "second", "third"):
            await peer.result("task.add", conversation="cut", title=title)
        await peer.result("task.add", conversation="whole", title="fine")
        peer.close()
    await anyio.to_thread.run_sync(lose_snapshots, tmp_path / "data")
    await anyio.to_thread.run_sync(spoil, tmp_path / "data", b"second", b"secund")
    async with (
        running_daemon(tmp_path) as daemon,
        connect_async(socket=daemon.socket, autostart=False) as client,
    ):
        for dialect, tool in (
            ("native", "tasks"),
            ("claude", "TaskList"),
            ("queue", "list_tasks"),
            ("todo", "list_todo_tasks"),
            ("checklist", "ListTasks"),
        ):
            for name in ("cut", "whole"):
                reply = await AsyncToolbox(client, ToolCaller(name)).call(dialect, tool)
                assert not reply.refused, reply.text
                told = "damaged at position" in reply.text and "punch daemon verify --repair" in reply.text
                assert told == (name == "cut"), reply.text
        refused = await AsyncToolbox(client, ToolCaller("cut")).call("native", "plan", {"tasks": [{"title": "more"}]})
        assert refused.refused and "punch daemon verify --repair" in refused.text


def lose_snapshots(data: Path) -> None:
    with closing(sqlite3.connect(data / "log.index", isolation_level=None)) as connection:
        connection.execute("DELETE FROM snapshots").close()


async def test_follower_gets_the_positions_of_missing_events(tmp_path: Path) -> None:
    await plan(tmp_path)
    await anyio.to_thread.run_sync(spoil, tmp_path / "data", b"t40.", b"T40.")
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        for place in ({}, {"conversation": "long"}):
            await peer.result("event.subscribe", after=0, **place)
            told = ""
            while (push := await peer.push())["method"] == "events":
                told += json.dumps(push)
            assert "t39." in told and "t41." not in told
            assert push["params"]["error"]["data"]["kind"] == ("damaged" if place else "gap")
        peer.close()


async def test_intact_list_can_be_deleted_despite_damage(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        calls = [
            {"jsonrpc": "2.0", "id": each, "method": "task.add", "params": {"conversation": name, "title": f"{name}-1"}}
            for each, name in enumerate(("aaa", "bbb"))
        ]
        peer.writer.write(json.dumps(calls).encode() + b"\n")
        assert len(json.loads(await peer.raw())) == 2
        peer.close()
    await anyio.to_thread.run_sync(spoil, tmp_path / "data", b"bbb-1", b"bbX-1")
    for start in range(2):
        async with running_daemon(tmp_path) as daemon:
            peer = await Peer.open(daemon.socket)
            if start == 0:
                token = (await peer.refusal("conversation.delete", conversation="aaa"))["token"]
                await peer.result("conversation.delete", conversation="aaa", confirm=token)
                assert (await peer.refusal("task.add", conversation="bbb", title="x"))["kind"] == "damaged"
            gone = await peer.result("task.list", conversation="aaa")
            assert gone["tasks"] == []
            await peer.result("task.add", conversation="ccc", title="x")
            peer.close()
    data = await anyio.Path(tmp_path / "data" / "log.db").read_bytes()
    assert b"aaa-1" not in data and b"bbX-1" in data


def lose_names(index: Path) -> None:
    root = 0
    with closing(sqlite3.connect(f"file:{index}?mode=ro&immutable=1", uri=True)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_conversations_1'"
        root = connection.execute(query).fetchone()[0]
    content = index.read_bytes()
    index.write_bytes(content[: root * 4096 - 2048] + bytes(2048) + content[root * 4096 :])


def spoil_sessions(index: Path) -> None:
    with closing(sqlite3.connect(index, isolation_level=None)) as connection:
        connection.execute("DROP TABLE sessions").close()
        connection.execute("CREATE TABLE sessions(other)").close()


def overwrite(index: Path) -> None:
    index.write_bytes(b"x" * 9999)


@pytest.mark.parametrize("harm", [Path.unlink, lose_names, spoil_sessions, overwrite])
async def test_wrong_index_hides_nothing(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        for number in range(3):
            await peer.result("task.add", conversation="aaa", title=f"t{number}", key=f"k{number}")
        await peer.result("conversation.attach", conversation="aaa", session="sess")
        peer.close()
    await anyio.to_thread.run_sync(harm, tmp_path / "data" / "log.index")
    for start in range(2):
        async with running_daemon(tmp_path) as daemon:
            peer = await Peer.open(daemon.socket)
            assert (await peer.result("task.list", conversation="sess"))["counts"]["pending"] == 3 + start
            await peer.result("task.add", conversation="aaa", title="t0", key="k0")
            await peer.result("task.add", conversation="aaa", title="new", key=f"n{start}")
            await peer.result("task.add", conversation=f"fresh{start}", title="x")
            listed = await peer.result("conversation.list")
            assert len(listed["conversations"]) == 2 + start
            peer.close()
