"""Detects peers that first close only their sending side, and later the whole connection."""

import asyncio
import select
import socket
from collections.abc import Callable


class HangUps:
    """Watches connections after EOF, and calls back once both directions of a connection are closed.

    A socket at EOF always looks readable to the event loop, so the loop watches an epoll descriptor instead. All
    connections share one descriptor. One descriptor for each connection would halve the maximum number of connections.
    """

    def __init__(self) -> None:
        self._epoll: select.epoll | None = None
        self._watched: dict[int, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def watch(self, sock: socket.socket, on_gone: Callable[[], None]) -> Callable[[], None]:
        """Call `on_gone` once the peer of `sock` has closed both directions. Return a function that ends the watch."""
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._check)
        fd = sock.fileno()
        self._epoll.register(fd, 0)  # the kernel always reports EPOLLHUP
        self._watched[fd] = on_gone

        def end() -> None:
            # A later connection may have been given the same descriptor.
            if self._watched.get(fd) is on_gone:
                self._forget(fd)

        return end

    def _check(self) -> None:
        assert self._epoll is not None, "it is read only while it is open"
        for fd, _ in self._epoll.poll(0):
            on_gone = self._watched.get(fd)
            if on_gone is not None:  # the previous callback may have ended this watch
                self._forget(fd)
                on_gone()

    def _forget(self, fd: int) -> None:
        assert self._epoll is not None, "something was watched"
        del self._watched[fd]
        try:
            self._epoll.unregister(fd)
        except OSError:
            return  # the socket is already closed, and the kernel has unregistered it
        finally:
            if not self._watched:
                asyncio.get_running_loop().remove_reader(self._epoll.fileno())
                self._epoll.close()
                self._epoll = None


def has_hung_up(sock: socket.socket) -> bool:
    """Return True if the peer has closed both directions, not only its sending side."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)  # macOS reports a hang-up only if an event is requested
    return any(event & select.POLLHUP for _, event in poll.poll(0))
