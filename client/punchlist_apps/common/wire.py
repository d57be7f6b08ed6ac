"""One call to a running daemon without the library, whose import costs several times a bare interpreter.

No start of a daemon, no retry, no second call: whoever gets `None` takes the full client. A change that got no answer
may have happened; the full client then repeats it with the same key (`taken_key`).
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
"""How long connecting, introduction and call may take together, in seconds: nothing here waits on purpose."""

_CHUNK = 1 << 18
_key = ""

completed: list[tuple[str, dict[str, Any], Any]] = []
"""Calls of this command that may have changed something: method, parameters and result."""

written: list[str] = []
"""Changes that this command made without a call, such as `the file /home/ann/.punchlist.toml`."""


def taken_key() -> str | None:
    """The key of a change that was begun here and may have happened; handed out once."""
    global _key  # noqa: PLW0603 - one process makes one change here
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
    """The result, or `None` when anything at all is unusual.

    Args:
        writes: Whether it is a mutation: it gets a key, and is made only by a daemon of the same build.
        same_build: Leave a daemon of another build to the full client, which says so.
        timeout_s: How long all of it may take, in seconds; by default `TIMEOUT_S`.

    Raises:
        TimedOut: The daemon is there and does not answer.
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
                completed.append((method, params, result))
            if timeout_s is None:
                keep_mirrors(target)
            return result
        finally:
            sock.close()
    except TimedOut:
        raise
    except (OSError, DaemonUnavailable, ValueError, RecursionError):
        return None


def keep_mirrors(target: launch.Target) -> None:
    """Start the process that mirrors lists to files, if some are configured and none runs."""
    if target.autostart and os.path.lexists(f"{target.data_dir}/mirror/config.json"):
        from punchlist_apps.common import autostart

        autostart.ensure(target.socket, target.data_dir)


def _exchange(sock: socket, number: int, method: str, params: dict[str, Any], waiting: Waiting) -> Any:
    """The result.

    Raises:
        ValueError: It is a refusal, or no answer to this call.
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


STARTED = 2
"""Events of an addition that starts a list: its opening, and the task."""


def may_restart(added: Any) -> bool:
    """Return whether a task that was added may have started a deleted list again."""
    return added["task"]["id"] == "1" and added["version"] > STARTED


def are_titles(words: Sequence[str]) -> bool:
    """Return whether the arguments of `punch add` look like several quoted titles: each contains a space."""
    return len(words) > 1 and all(" " in word.strip() for word in words)
