"""`punch daemon rpc --stdio`: forward bytes between standard input and output and the daemon's socket."""

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

_CHUNK_BYTES = 1 << 16


def run_rpc(context: Context) -> int:
    """Forward bytes. When standard input ends, the socket is only half-closed, so that responses still arrive."""
    with context.target.dial() as sock:
        threading.Thread(target=_send, args=(sock,), daemon=True).start()
        while data := sock.recv(_CHUNK_BYTES):
            while data:
                data = data[os.write(1, data) :]
    return 0


def _send(sock: socket) -> None:
    try:
        while data := os.read(0, _CHUNK_BYTES):
            sock.sendall(data)
        sock.shutdown(SHUT_WR)
    except OSError:
        return  # the daemon disconnected; the reader sees the end of its output and stops
