"""The protocol between systemd and a daemon: inherited sockets (sd_listen_fds(3)) and state (sd_notify(3))."""

import logging
import os
import socket
from collections.abc import Mapping, MutableMapping

from punchlistd.net.listener import InheritedSocket, PlaceUnusable

logger = logging.getLogger(__name__)

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


def notify(env: Mapping[str, str], *words: str) -> bool:
    """Send a state to the service manager (`READY=1`, `STOPPING=1`, …). Return False if that failed."""
    address = env.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
            sock.send("\n".join(words).encode())
    except OSError as error:  # the service manager itself acts on missing notifications
        logger.warning("%s could not be told %s: %s", address, words[0], error)
        return False
    return True


def watchdog_s(env: Mapping[str, str]) -> float | None:
    """Return the interval in seconds at which the service manager expects `WATCHDOG=1`, or None."""
    usec, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 1_000_000
