"""A program that attacks a port of this machine: it holds connections that send a text and read nothing.

It opens those that the server ends again. It reads the text from its input, prints a line once it has opened as many
connections as it was asked to hold, and goes on until it is killed.
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
"""How long one that the server hasn't accepted is kept."""

_ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


@contextmanager
def flood(port: int, text: bytes, connections: int) -> Generator[None]:
    """Attack a port from a process of its own."""
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


class _Held:
    def __init__(self, port: int, text: bytes) -> None:
        self._port, self._text = port, text
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._waiting: dict[int, float] = {}
        """When those that aren't accepted were begun, oldest first."""
        self.opened = 0

    def __len__(self) -> int:
        return len(self._sockets)

    def begin(self) -> None:
        begun = socket.socket()
        begun.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        begun.setblocking(False)
        begun.connect_ex(("127.0.0.1", self._port))
        self._poll.register(begun, select.EPOLLOUT | select.EPOLLRDHUP)
        self._sockets[begun.fileno()] = begun
        self._waiting[begun.fileno()] = time.monotonic()

    def go_on(self) -> None:
        for number, events in self._poll.poll(0.01):
            if events & _ENDED:
                self._drop(number)
            else:
                del self._waiting[number]
                self.opened += 1
                self._poll.modify(number, select.EPOLLRDHUP)
                with suppress(OSError):
                    self._sockets[number].send(self._text)
        for number, begun in list(self._waiting.items()):
            if begun < time.monotonic() - _PATIENCE_S:
                self._drop(number)

    def _drop(self, number: int) -> None:
        self._waiting.pop(number, None)
        self._poll.unregister(number)
        self._sockets.pop(number).close()


def _main(port: str, connections: str) -> None:
    held, is_told = _Held(int(port), sys.stdin.buffer.read()), False
    while True:
        while len(held) < int(connections):
            held.begin()
        held.go_on()
        if not is_told and held.opened >= int(connections):
            is_told = True
            print("open", flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
