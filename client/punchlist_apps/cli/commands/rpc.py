"""`punch daemon rpc --stdio`: bytes between our standard streams and the socket, both ways, until both are done."""

import os
import threading
from socket import SHUT_WR, socket

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage

COMMANDS = {
    "rpc": Usage(
        (Argument(("--stdio",), "use standard input and output", {"action": "store_true", "required": True}),),
        ("ssh host punch daemon rpc --stdio",),
    ),
}

_CHUNK = 1 << 16


def run_rpc(context: Context) -> int:
    """Pipe bytes. The end of our input is passed on as half a close, and answers still come through."""
    with context.target.dial() as sock:
        threading.Thread(target=_send, args=(sock,), daemon=True).start()
        while data := sock.recv(_CHUNK):
            while data:
                data = data[os.write(1, data) :]
    return 0


def _send(sock: socket) -> None:
    try:
        while data := os.read(0, _CHUNK):
            sock.sendall(data)
        sock.shutdown(SHUT_WR)
    except OSError:
        return  # the daemon hung up: the reader sees the end of its answers and stops
