"""Noticing that a peer which had only stopped sending is gone for good."""

import asyncio
import select
import socket
from collections.abc import Callable


class HangUp:
    """Watches a connection of which nothing is read any more; `told` is called once both directions are closed.

    An epoll descriptor of its own is what the event loop can watch for that: it would take a connection that is at its
    end for always readable.
    """

    def __init__(self, fd: int, told: Callable[[], None]) -> None:
        """Watch descriptor `fd`."""
        self._told = told
        self._epoll = select.epoll(1)
        self._epoll.register(fd, 0)
        asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._tell)

    def _tell(self) -> None:
        self.close()
        self._told()

    def close(self) -> None:
        """Watch no more."""
        if not self._epoll.closed:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
            self._epoll.close()


def hung_up(sock: socket.socket) -> bool:
    """Whether the other end is closed altogether, and not only for sending."""
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(0))
