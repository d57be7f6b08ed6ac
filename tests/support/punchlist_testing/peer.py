"""A scripted daemon, for faults that a real daemon doesn't produce on demand."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from punchlist import __version__
from punchlist_schemas.build import build_stamp
from punchlist_schemas.methods import PROTOCOL
from punchlist_schemas.results import HelloResult, Limits

Request = dict[str, Any]
Handler = Callable[["Session", Request], None]

HELLO = HelloResult(
    name="punchlistd",
    version=__version__,
    protocol=PROTOCOL,
    epoch="e1",
    pid=1,
    limits=Limits(in_flight=4),
    features=(),
    build=build_stamp(__version__),
)


class Session:
    """One connection of the peer. `number` counts them from 1."""

    def __init__(self, connection: socket.socket, number: int) -> None:
        self.number = number
        self._connection = connection

    def send(self, message: dict[str, Any]) -> None:
        self.raw(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def raw(self, data: bytes) -> None:
        self._connection.sendall(data)

    def answer(self, request: Request, result: Any) -> None:
        self.send({"id": request["id"], "result": result})

    def refuse(self, request: Request, code: int, kind: str) -> None:
        self.send({"id": request["id"], "error": {"code": code, "message": kind, "data": {"kind": kind}}})

    def hang_up(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)


class Peer:
    """A server that answers `daemon.hello`, and passes every other request to `handler`.

    Attributes:
        seen: Requests that were passed to the handler.
        arrived: Released once for each of them.
    """

    def __init__(self, path: str, handler: Handler, hello: HelloResult = HELLO) -> None:
        self.socket = path
        self.seen: list[Request] = []
        self.arrived = threading.Semaphore(0)
        self._handler = handler
        self._hello = hello
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._spawn(self._accept)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _spawn(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._spawn(self._serve, connection, len(self._connections))

    def _serve(self, connection: socket.socket, number: int) -> None:
        session = Session(connection, number)
        # A client that closes with unread data resets the connection.
        with suppress(ConnectionResetError), connection, connection.makefile("rb") as lines:
            for line in lines:
                request = msgspec.json.decode(line, type=Request)
                if request["method"] == "daemon.hello":
                    session.answer(request, self._hello)
                    continue
                self.seen.append(request)
                self.arrived.release()
                self._handler(session, request)


@contextmanager
def scripted_peer(directory: Path, handler: Handler, hello: HelloResult = HELLO) -> Generator[Peer]:
    """Run a peer on a socket in `directory` until the end of the block."""
    peer = Peer(str(directory / "peer.sock"), handler, hello)
    try:
        yield peer
    finally:
        peer.close()
