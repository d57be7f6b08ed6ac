"""What systemd passes to a daemon: a listening socket (sd_listen_fds(3)), and the interval of its watchdog."""

import os
import socket
from collections.abc import Mapping, MutableMapping

from punchlistd.net.listener import InheritedSocket, PlaceUnusable

FIRST_DESCRIPTOR = 3
"""SD_LISTEN_FDS_START."""


def take_inherited_socket(env: MutableMapping[str, str]) -> InheritedSocket | None:
    """Return the listening socket that systemd passed to this process, and remove its variables from `env`.

    Raises:
        PlaceUnusable: systemd passed several sockets, or this daemon can't serve the socket.
    """
    pid, count = env.pop("LISTEN_PID", ""), env.pop("LISTEN_FDS", "")
    env.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return None
    if count != "1":
        raise PlaceUnusable(f"The service manager passed LISTEN_FDS={count!r}; exactly one socket can be served.")
    os.set_inheritable(FIRST_DESCRIPTOR, False)
    return InheritedSocket(socket.socket(fileno=FIRST_DESCRIPTOR))


def watchdog_s(env: Mapping[str, str]) -> float | None:
    """Return the interval in seconds at which the service manager expects `WATCHDOG=1`, or None."""
    usec, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 1_000_000
