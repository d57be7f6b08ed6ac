"""What systemd and a daemon tell each other: sockets to inherit (sd_listen_fds(3)), words of state (sd_notify(3))."""

import os
import socket
from collections.abc import Mapping, MutableMapping

FIRST_DESCRIPTOR = 3
"""SD_LISTEN_FDS_START."""


def inherited_sockets(env: MutableMapping[str, str]) -> list[socket.socket]:
    """The listening sockets that systemd passed to this very process; the variables are taken out of `env`.

    Raises:
        ValueError: the variables are not what sd_listen_fds(3) describes.
    """
    pid, count = env.pop("LISTEN_PID", ""), env.pop("LISTEN_FDS", "")
    env.pop("LISTEN_FDNAMES", None)
    if not pid or int(pid) != os.getpid():
        return []
    descriptors = range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count or "0"))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return [socket.socket(fileno=descriptor) for descriptor in descriptors]


def notify(env: Mapping[str, str], *words: str) -> bool:
    """Tell the service manager something (`READY=1`, `STOPPING=1`, …); False if there is none to tell."""
    address = env.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.connect("\0" + address[1:] if address.startswith("@") else address)
        sock.send("\n".join(words).encode())
    return True


def watchdog_s(env: Mapping[str, str]) -> float | None:
    """How often, in seconds, the service manager wants to hear `WATCHDOG=1`; None if it does not care."""
    usec, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not usec.isdigit() or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 1_000_000
