"""One call to a running daemon without the library.

Importing the library takes several times as long as starting Python. This module doesn't start the daemon, retry or
make a second call: if the result is `None`, the caller uses the full client. A change that got no response may have
been made, so the full client repeats the call with the same key (`take_key`).
"""

import json
import os
from collections.abc import Sequence
from socket import socket
from typing import Any

from punchlist import __version__
from punchlist.connection import launch
from punchlist.connection.waiting import Waiting
from punchlist.errors import DaemonUnavailable, TimedOut
from punchlist_schemas.build import build_stamp, is_same_code

TIMEOUT_S = 10.0
"""Upper limit for connecting, `daemon.hello` and the call together, in seconds."""

_CHUNK = 1 << 18
_key = ""

completed_calls: list[tuple[str, dict[str, Any], Any]] = []
"""Write calls made by this command: method, params and result."""

local_changes: list[str] = []
"""Changes that this command made without a call, such as `the file /home/ann/.punchlist.toml`."""


def take_key() -> str | None:
    """Return and forget the key of a change whose outcome is unknown; None if no change has an unknown outcome."""
    global _key  # noqa: PLW0603 - a process makes one change here
    key, _key = _key, ""
    return key or None


def call(
    target: launch.Target,
    method: str,
    params: dict[str, Any],
    *,
    writes: bool = False,
    same_build: bool = False,
    timeout_s: float | None = None,
) -> dict[str, Any] | None:
    """Return the result of a call.

    Return None on any error: the full client then repeats the call and reports the error.

    Args:
        writes: Whether the call is a mutation. Mutations get a key, and are sent only to a daemon with the same build.
        same_build: Whether to return None if the daemon is another build, which the full client then reports.
        timeout_s: Upper limit for the whole call, in seconds; by default `TIMEOUT_S`.

    Raises:
        TimedOut: The daemon accepted the connection but didn't respond.
    """
    global _key  # noqa: PLW0603
    deadline = target.deadline(TIMEOUT_S if timeout_s is None else timeout_s)
    try:
        sock = target.connect_running(deadline)
        try:
            waiting = Waiting(target, deadline)
            hello = _exchange(sock, 0, "daemon.hello", {"client": {"name": "punch", "version": __version__}}, waiting)
            waiting.greeted = True
            lock: dict[str, str] = hello.get("lock", {})
            target.check(lock.get("device", ""), lock.get("inode", ""))
            if (writes or same_build) and not is_same_code(hello.get("build", ""), build_stamp(__version__)):
                return None
            if writes:
                _key = os.urandom(16).hex()
                params = {**params, "key": _key}
            result = _exchange(sock, 1, method, params, waiting)
            if writes:
                _key = ""
                completed_calls.append((method, params, result))
            if timeout_s is None:
                ensure_mirrors_run(target)
            return result
        finally:
            sock.close()
    except TimedOut:
        raise
    except (OSError, DaemonUnavailable, ValueError, RecursionError):
        return None


def ensure_mirrors_run(target: launch.Target) -> None:
    """Start `punch mirror run` if mirrors are configured and it isn't running."""
    if target.autostart and os.path.lexists(f"{target.data_dir}/mirror/config.json"):
        from punchlist_apps.common import autostart

        autostart.ensure_running(target.socket, target.data_dir)


def _exchange(sock: socket, number: int, method: str, params: dict[str, Any], waiting: Waiting) -> Any:
    """Send a call and return its result.

    Raises:
        ValueError: The reply is an error, or not a response to this call.
        TimedOut: See `punchlist.connection.waiting`.
    """
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    waiting.send(sock, f"{json.dumps(request)}\n".encode("ascii"))
    parts: list[bytes] = []
    while not (parts and parts[-1].endswith(b"\n")):
        parts.append(waiting.run(sock, sock.recv, _CHUNK))
        if not parts[-1]:
            raise ConnectionResetError
    reply = json.loads(b"".join(parts))
    if reply.get("id") != number or "result" not in reply:
        raise ValueError
    return reply["result"]


EVENTS_OF_FIRST_TASK = 2
"""Number of events that the first `task.add` in a new list produces: one opens the list, and one adds the task."""


def may_have_restarted_list(added: Any) -> bool:
    """Return whether adding a task may have restored a deleted list."""
    return added["task"]["id"] == "1" and added["version"] > EVENTS_OF_FIRST_TASK


def are_several_titles(words: Sequence[str]) -> bool:
    """Return whether the arguments of `punch add` look like several quoted titles: each contains a space."""
    return len(words) > 1 and all(" " in word.strip() for word in words)
