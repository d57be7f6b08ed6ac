"""A frame that arrives too slowly ends its connection.

Tests where no frame may time out check the timer itself, because machines can be slow too.
"""

import asyncio
from pathlib import Path
from typing import Any

from punchlist_schemas.results import Limits
from punchlist_testing.engine import Engine, TouchyLog, engine, until


def timer(running: Engine) -> asyncio.TimerHandle | None:
    """Return the deadline of the only connection's unfinished frame."""
    (connection,) = running.connections.live
    return connection.frame_timer


async def test_unfinished_frame_times_out(tmp_path: Path) -> None:
    async with engine(tmp_path, limits=Limits(frame_seconds=0.05)) as running:
        peer = await running.connect()
        peer.write(b'{"jsonrpc"')
        error = (await peer.receive())["error"]["data"]
        assert (error["kind"], error["limit"]) == ("limit_exceeded", "frame_seconds")
        await peer.closed()


async def test_each_frame_has_its_own_deadline(tmp_path: Path) -> None:
    async with engine(tmp_path, limits=Limits(frame_seconds=3600)) as running:
        peer = await running.connect()
        await peer.quiet()
        assert timer(running) is None
        frame = peer.request("daemon.hello", id=1)
        peer.write(frame[:10])
        await until(lambda: timer(running))
        for _ in range(10):  # there is always an unfinished frame, but a different one each time
            before = timer(running)
            peer.write(frame[10:] + frame[:10])
            assert "result" in await peer.receive()
            await until(lambda before=before: timer(running) is not before)
            assert before is not None and before.cancelled() and timer(running) is not None
        for byte in frame[10:-1]:
            before = timer(running)
            peer.write(bytes([byte]))
            await asyncio.sleep(0)
            assert timer(running) is before
        peer.write(frame[-1:])
        assert "result" in await peer.receive()
        assert timer(running) is None


async def test_busy_daemon_does_not_time_frames_out(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, limits=Limits(frame_seconds=3600, in_flight=4)) as running:
        peer = await running.connect()
        gate = log.hold()
        frames = [peer.request("task.add", add(str(number)), id=number) for number in range(8)]
        peer.write(b"".join(frames)[:-5])
        await gate.reached()
        await until(lambda: timer(running))
        (connection,) = running.connections.live
        connection.end_frame()
        again = timer(running)
        peer.write(frames[-1][-5:])
        gate.open()
        assert again is not None  # the frame got a second deadline
        assert {(await peer.receive())["id"] for _ in range(8)} == set(range(8))
        assert timer(running) is None


def add(title: str) -> dict[str, Any]:
    return {"conversation": "c", "title": title}
