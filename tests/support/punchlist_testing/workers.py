"""The workers that serve `punch agent mcp` in tests: they outlive their relays, so each test stops its own."""

import socket
from pathlib import Path

from punchlist_apps.relay import frames

STOP_S = 20.0
"""Timeout for a worker to end, in seconds."""


def stop_workers(folder: Path) -> None:
    """Stop the workers whose sockets are in a directory, and wait until they have ended."""
    for path in folder.glob("mcp-*.sock"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(STOP_S)
            try:
                sock.connect(str(path))
            except ConnectionRefusedError:
                continue
            sock.sendall(frames.encode(frames.STOP))
            while sock.recv(1 << 16):
                pass
