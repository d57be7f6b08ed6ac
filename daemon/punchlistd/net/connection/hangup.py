"""Noticing that a peer which had only stopped sending is gone for good."""

import asyncio
import select
import socket
from collections.abc import Callable


class HangUps:
    """Watches connections of which nothing is read any more, and calls back once both directions of one are closed.

    The event loop would take a connection that is at its end for always readable. What it can watch is an epoll
    descriptor, and one serves for all connections: one for each would halve how many there can be.
    """

    def __init__(self) -> None:
        self._epoll: select.epoll | None = None
        self._watched: dict[int, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def watch(self, sock: socket.socket, gone: Callable[[], None]) -> Callable[[], None]:
        """Call `gone` once, when the peer of `sock` has closed both directions. Returns what ends the watch."""
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._check)
        fd = sock.fileno()
        self._epoll.register(fd, 0)  # no events asked for: the kernel reports EPOLLHUP all the same
        self._watched[fd] = gone

        def end() -> None:
            if self._watched.get(fd) is gone:  # not the next connection that was given this number
                self._forget(fd)

        return end

    def _check(self) -> None:
        assert self._epoll is not None, "it is read only while it is open"
        for fd, _ in self._epoll.poll(0):
            gone = self._watched.get(fd)
            if gone is not None:  # not ended by the call before
                self._forget(fd)
                gone()

    def _forget(self, fd: int) -> None:
        assert self._epoll is not None, "something was watched"
        del self._watched[fd]
        try:
            self._epoll.unregister(fd)
        except OSError:
            return  # closed before us: the kernel has forgotten it already
        finally:
            if not self._watched:
                asyncio.get_running_loop().remove_reader(self._epoll.fileno())
                self._epoll.close()
                self._epoll = None


def hung_up(sock: socket.socket) -> bool:
    """Whether the other end is closed altogether, and not only for sending."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)  # macOS reports no hang-up where nothing was asked for
    return any(event & select.POLLHUP for _, event in poll.poll(0))
