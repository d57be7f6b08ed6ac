"""An anchor for small reads: a minimal Python server with typed decoding.

echo.py SOCKET
"""

import asyncio
import sys
from typing import Any, cast

import msgspec


class Params(msgspec.Struct):
    """Params of `task.get`."""

    conversation: str
    task: str


class Request(msgspec.Struct):
    """A request."""

    id: int
    method: str
    params: Params
    jsonrpc: str = "2.0"


class Task(msgspec.Struct, omit_defaults=True):
    """A task with as many bytes as one from the daemon."""

    id: str
    title: str
    status: str = ""
    created_at: int = 0
    updated_at: int = 0
    status_changed_at: int = 0
    version: int = 0


class Result(msgspec.Struct):
    """Result of `task.get`."""

    task: Task
    version: int
    seq: int


class Response(msgspec.Struct):
    """A response."""

    id: int
    result: Result
    jsonrpc: str = "2.0"


class Echo(asyncio.Protocol):
    """Answers every line with a task."""

    def __init__(self) -> None:
        self._rest = b""
        self._decode = msgspec.json.Decoder(Request).decode
        self._encode = msgspec.json.Encoder().encode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        answers: list[bytes] = []
        for line in lines:
            request = self._decode(line)
            at = 1763600000123
            task = Task(request.params.task, "write the parser for the frame header", "pending", at, at, at, 17)
            answers.append(self._encode(Response(request.id, Result(task, 50, 3200))))
        if answers:
            self._transport.write(b"\n".join(answers) + b"\n")


async def serve(path: str) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_unix_server(Echo, path, backlog=4096)
    await server.serve_forever()


def main() -> None:
    """Run on uvloop if it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        asyncio.run(serve(sys.argv[1]))
    else:
        factory: Any = uvloop.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(serve(sys.argv[1]))


if __name__ == "__main__":
    main()
