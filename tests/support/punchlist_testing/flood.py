"""A program that attacks a local port with connections that send text and read nothing.

It reads the text from its input and replaces connections that the server closes. It prints a line once the requested
number of connections has been accepted. It runs until it is killed.
"""

import select
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from punchlist_testing.terminal import environment

_PATIENCE_S = 0.1
"""Time to wait for the server to accept a connection, in seconds."""

_ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


@contextmanager
def flood(port: int, text: bytes, connections: int) -> Generator[None]:
    """Attack a port from a child process until the end of the block."""
    words = [sys.executable, "-m", "punchlist_testing.flood", str(port), str(connections)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(text)
            process.stdin.close()
            assert process.stdout.readline() == b"open\n"
            yield
        finally:
            process.kill()


class _Connections:
    def __init__(self, port: int, text: bytes) -> None:
        self._port, self._text = port, text
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._waiting: dict[int, float] = {}
        """File descriptor -> start time of each connection that isn't accepted yet, oldest first."""
        self.opened = 0

    def __len__(self) -> int:
        return len(self._sockets)

    def open(self) -> None:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", self._port))
        self._poll.register(connection, select.EPOLLOUT | select.EPOLLRDHUP)
        self._sockets[connection.fileno()] = connection
        self._waiting[connection.fileno()] = time.monotonic()

    def poll(self) -> None:
        for number, events in self._poll.poll(0.01):
            if events & _ENDED:
                self._drop(number)
            else:
                del self._waiting[number]
                self.opened += 1
                self._poll.modify(number, select.EPOLLRDHUP)
                with suppress(OSError):
                    self._sockets[number].send(self._text)
        for number, started in list(self._waiting.items()):
            if started < time.monotonic() - _PATIENCE_S:
                self._drop(number)

    def _drop(self, number: int) -> None:
        self._waiting.pop(number, None)
        self._poll.unregister(number)
        self._sockets.pop(number).close()


def _main(port: str, connections: str) -> None:
    held, has_reported = _Connections(int(port), sys.stdin.buffer.read()), False
    while True:
        while len(held) < int(connections):
            held.open()
        held.poll()
        if not has_reported and held.opened >= int(connections):
            has_reported = True
            print("open", flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
