"""Handles a daemon whose build differs from this command's: replaces it if it is older and idle, else prints a note."""

import os
import re
import time
from collections.abc import Callable

import punchlist_schemas
from punchlist import __version__
from punchlist.base import project
from punchlist.base.text import safe
from punchlist.connection.launch import Target
from punchlist.errors import InvalidParams, PunchlistError, TimedOut
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_schemas.build import build_stamp
from punchlist_schemas.results import HelloResult

_STOP_TIMEOUT_S = 10.0
_POLL_S = 0.02
_PHASES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "post": 1}


def handle_other_build(caller: Caller, hello: HelloResult, target: Target, note: Callable[[str], None]) -> None:
    """Replace the daemon with one from this installation, or print advice once a day for each daemon."""
    running, own = safe(hello.build or hello.version), build_stamp(__version__)
    older = target.autostart and _is_older(caller, hello)
    if older and _stop_if_idle(caller):
        successor = _connect_to_successor(caller, hello.pid)
        note(f"punch: replaced the daemon (process {hello.pid}, {running}) with {own} (process {successor.pid})")
        return
    mark = f"build {hello.pid} {own}"
    if project.was_announced(target.data_dir, mark, time.time()):
        return
    project.note_announced(target.data_dir, mark)
    which = "an older build" if older else "another build"
    until = ", and is replaced when no other client is connected" if older else ""
    note(
        f"punch: the daemon (process {hello.pid}) runs {which} ({running}) than this command ({own}){until}; "
        "to replace it now: punch daemon stop"
    )


def _is_older(caller: Caller, hello: HelloResult) -> bool:
    """Return whether the daemon's version is lower, or the daemon started before this version was installed."""
    if hello.version != __version__:
        return _build_sort_key(hello.version) < _build_sort_key(__version__)
    changed = os.stat(punchlist_schemas.__file__).st_ctime
    return caller.call("daemon.status")["started_at"] / 1000 < changed


def _build_sort_key(version: str) -> list[int]:
    """Return a sort key: development versions and pre-releases come before their release, post-releases after it."""
    parts: list[str] = re.findall(r"\d+|[a-z]+", version.partition("+")[0])
    return [*(int(part) if part.isdecimal() else _PHASES.get(part, 0) for part in parts), 0]


def _stop_if_idle(caller: Caller) -> bool:
    try:
        stopping: bool = caller.call("daemon.shutdown", {"if_idle": True})["stopping"]
    except InvalidParams:  # a version that doesn't support `if_idle`
        return False
    return stopping


def _connect_to_successor(caller: Caller, pid: int) -> HelloResult:
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while True:
        caller.close()
        try:
            hello = caller.open()
        except PunchlistError as error:
            if time.monotonic() > deadline:
                raise
            del error
        else:
            if hello.pid != pid:
                return hello
            if time.monotonic() > deadline:
                raise TimedOut(f"the older daemon (process {pid}) did not stop; find out why: punch doctor")
        time.sleep(_POLL_S)
