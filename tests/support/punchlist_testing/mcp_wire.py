"""A host that sends hand-written messages to a server of the MCP SDK in the same process, in either protocol era."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""`_meta` of a request of the modern era."""

HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


class Wire:
    """The host.

    Attributes:
        capabilities: Those that the server reported.
    """

    def __init__(self, mode: str, lines: MemoryObjectSendStream[str]) -> None:
        self.capabilities: dict[str, Any] = {}
        self._meta = MODERN if mode == "auto" else {}
        self._lines = lines
        self._id = 0
        self._frames: list[Any] = []
        self._replies: dict[int, Any] = {}
        self._arrived = anyio.Event()

    async def write(self, text: str) -> None:
        """Take what the server writes."""
        message = json.loads(text)
        if "method" in message:
            self._frames.append(message)
        else:
            self._replies[message["id"]] = message
        self._arrived.set()

    async def flush(self) -> None:
        pass

    async def send(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._id += 1
        meta = {**self._meta, **params.pop("_meta", {})}
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": {**params, "_meta": meta}}
        await self._lines.send(json.dumps(message))
        return self._id

    async def notify(self, method: str, **params: Any) -> None:
        await self._lines.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def reply(self, id: int) -> Any:
        """Return the response to a request."""
        while id not in self._replies:
            await self._wait()
        return self._replies.pop(id)

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result, or its error."""
        reply = await self.reply(await self.send(method, **params))
        return reply.get("result", reply.get("error"))

    async def frame(self) -> tuple[str, Any]:
        """Return the kind and the params of the next notification."""
        while not self._frames:
            await self._wait()
        message = self._frames.pop(0)
        return message["method"].rpartition("/")[2], message["params"]

    async def _wait(self) -> None:
        self._arrived = anyio.Event()
        with anyio.fail_after(30):
            await self._arrived.wait()

    async def begin(self) -> None:
        if self._meta:
            self.capabilities = (await self.ask("server/discover"))["capabilities"]
        else:
            self.capabilities = (await self.ask("initialize", **HANDSHAKE))["capabilities"]
            await self.notify("notifications/initialized")


@asynccontextmanager
async def open_wire(server: Any, mode: str) -> AsyncGenerator[Wire]:
    """Run a server, and yield a host in an era: "legacy" or "auto"."""
    stdio_server: Any = import_module("mcp.server.stdio").stdio_server
    lines, incoming = anyio.create_memory_object_stream[str](1_000)
    wire: Any = Wire(mode, lines)
    source: Any = incoming
    async with anyio.create_task_group() as group, lines, incoming:

        async def run() -> None:
            async with stdio_server(source, wire) as (read, write):
                await server.run(read, write, server.create_initialization_options())

        group.start_soon(run)
        await wire.begin()
        yield wire
        group.cancel_scope.cancel()
