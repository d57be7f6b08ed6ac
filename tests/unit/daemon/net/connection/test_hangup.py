"""A half-closed peer still gets its replies, and a closed one is noticed at any time."""

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from punchlist_testing.engine import Engine, engine

C: dict[str, Any] = {"conversation": "c"}


@pytest.mark.parametrize("method", ["task.claim", "event.wait"])
async def test_hangup_after_half_close_is_noticed(tmp_path: Path, method: str) -> None:
    asked = {"owner": "gone", "wait_ms": 60_000} if method == "task.claim" else {"after": 0, "timeout_ms": 60_000}
    async with engine(tmp_path) as running:
        peer = await running.connect()
        peer.send(method, {**C, **asked}, id=7)
        peer.writer.write_eof()
        await peer_waits(running, True)
        peer.close()
        await peer_waits(running, False)
        assert len(running.claims.waiting) == 0


async def test_half_closed_peer_is_answered(running: Engine) -> None:
    peer, other = await running.connect(), await running.connect()
    peer.send("task.claim", {**C, "owner": "ann", "wait_ms": 60_000}, id=7)
    peer.writer.write_eof()
    await peer_waits(running, True)
    await other.result("task.add", **C, title="a")
    assert (await peer.answer(7))["result"]["task"]["id"] == "1"
    await peer.closed()


async def test_half_closed_peers_share_one_descriptor(running: Engine) -> None:
    peers = [await running.connect() for _ in range(20)]
    before = len(os.listdir("/proc/self/fd"))
    for peer in peers:
        peer.send("event.wait", {**C, "after": 0, "timeout_ms": 60_000}, id=7)
        peer.writer.write_eof()
    with anyio.fail_after(30):
        while len(running.connections.hang_ups) < len(peers):
            await anyio.lowlevel.checkpoint()
    assert len(os.listdir("/proc/self/fd")) == before + 1
    for peer in peers:
        peer.close()
    with anyio.fail_after(30):
        while len(running.connections.hang_ups):
            await anyio.lowlevel.checkpoint()
    await peer_waits(running, False)


async def peer_waits(running: Any, waits: bool) -> None:
    with anyio.fail_after(30):
        while any(session.waiting for session in running.connections.live) != waits:
            await anyio.lowlevel.checkpoint()
