"""A session of the worker, over a socket instead of a relay."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
import pytest

from punchlist_apps.relay import frames
from punchlist_testing.optional import require_package

require_package("mcp")

from punchlist_apps.worker import session  # noqa: E402
from punchlist_apps.worker.session import FrameReader, Session  # noqa: E402

PATIENCE_S = 30.0


class Ends(NamedTuple):
    """A session, its relay's end of the connection, and the lock of lines that begin alone."""

    session: Session
    reader: FrameReader
    writer: asyncio.StreamWriter
    suspects: asyncio.Lock


@asynccontextmanager
async def open_session() -> AsyncGenerator[Ends]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    relay_reader, relay_writer = await asyncio.open_connection(sock=theirs)
    suspects = asyncio.Lock()
    served = Session("id", FrameReader(reader), writer, suspects)
    try:
        with anyio.fail_after(PATIENCE_S):
            yield Ends(served, FrameReader(relay_reader), relay_writer, suspects)
    finally:
        for end in (writer, relay_writer):
            end.close()
            await end.wait_closed()


def encode(op: bytes, number: int, **members: object) -> bytes:
    return frames.encode(op, number, json.dumps({"jsonrpc": "2.0"} | members).encode())


async def test_line_that_waits_for_others_shows_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_SIGN_S", 0.01)
    async with open_session() as ends:
        await ends.suspects.acquire()
        ends.writer.write(encode(frames.ALONE, 1, id=1, method="tools/call", params={}))
        line = asyncio.create_task(anext(ends.session))
        for _ in range(2):
            assert (await anext(ends.reader))[0] == frames.PING
        ends.suspects.release()
        assert "tools/call" in await line
        while (frame := await anext(ends.reader))[0] == frames.PING:
            pass
        assert frame == (frames.BEGIN, 1, b"")
        assert ends.suspects.locked()


@pytest.mark.parametrize(
    "members",
    [
        {"id": None, "method": "tools/call"},
        {"id": 1.5, "method": "tools/call"},
        {"id": 1, "method": "tools/call", "params": []},
        {"id": 1, "method": "tools/call", "jsonrpc": "1.0"},
    ],
)
async def test_invalid_request_is_not_kept(members: dict[str, object]) -> None:
    async with open_session() as ends:
        ends.writer.write(encode(frames.LINE, 7, **members))
        assert "tools/call" in await anext(ends.session)
        assert await anext(ends.reader) == (frames.DONE, 7, b"")


async def test_stream_frames_advance_the_kept_line() -> None:
    async with open_session() as ends:
        ends.writer.write(encode(frames.LINE, 7, id="s", method="events/stream", params={"name": "task.added"}))
        await anext(ends.session)
        for cursor in ("ab.1", "ab.2"):
            meta = {"io.modelcontextprotocol/subscriptionId": "s", "punchlist/conversation": "work"}
            params = {"_meta": meta, "cursor": cursor}
            message = {"jsonrpc": "2.0", "method": "notifications/events/event", "params": params}
            await ends.session.write(json.dumps(message))
            op, number, line = await anext(ends.reader)
            assert (op, number) == (frames.BEGIN, 7)
            assert json.loads(line)["params"] == {
                "name": "task.added",
                "arguments": {"conversation": "work"},
                "cursor": cursor,
                "_meta": {"punchlist/resumed": True},
            }
            assert await anext(ends.reader) == (frames.OUTPUT, 0, json.dumps(message).encode())
