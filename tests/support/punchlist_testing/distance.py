"""A TCP proxy that adds latency."""

import asyncio
import contextlib
import socket
import threading


class Distance(threading.Thread):
    """A proxy on loopback that delays all bytes to and from a NATS server.

    Args:
        host: Address of the server.
        port: Port of the server.
        milliseconds: Delay in each direction.
    """

    def __init__(self, host: str, port: int, milliseconds: float) -> None:
        super().__init__(daemon=True)
        self._to, self._delay_s = (host, port), milliseconds / 1000
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self.url = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    def end(self) -> None:
        """Close all connections and wait for the thread to end."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(self._loop)])
        self.join()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._carry, sock=self._listener)
        async with server:
            await server.serve_forever()

    async def _carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, there = await asyncio.open_connection(*self._to)
        try:
            await asyncio.gather(self._forward(near, there), self._forward(far, back))
        finally:
            there.transport.abort()
            back.transport.abort()

    async def _forward(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def write() -> None:
            while True:
                at, data = await waiting.get()
                await asyncio.sleep(max(0.0, at - self._loop.time()))
                if not data:
                    to.close()
                    return
                to.write(data)

        writing = asyncio.create_task(write())
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                waiting.put_nowait((self._loop.time() + self._delay_s, data))
        waiting.put_nowait((self._loop.time() + self._delay_s, b""))
        await writing
