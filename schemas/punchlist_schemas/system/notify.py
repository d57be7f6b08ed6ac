"""Reports a program's state to the service manager that started it: sd_notify(3)."""

import logging
import socket
from collections.abc import Mapping

logger = logging.getLogger(__name__)


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
