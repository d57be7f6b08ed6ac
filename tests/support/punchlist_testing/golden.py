"""Creates and compares golden files: a database and a transcript of one version that all later ones must support.

    PYTHONPATH=tests/support .venv/bin/python -m punchlist_testing.golden tests/golden/v0.1.0

They are created once for each version and never again: a regenerated golden file proves nothing.
"""

import itertools
import os
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer
from punchlistd.engine import calls
from punchlistd.store.file.schema import connect
from punchlistd.store.port import EventLog, Sealed, Side
from punchlistd.store.record import seal
from punchlistd.store.sqlite import SqliteLog

BEGAN_MS = 1_700_000_000_000
ENDED_MS = BEGAN_MS + 10_000_000
"""All times in a golden database lie between `BEGAN_MS` and this, in milliseconds since 1970.

Later times come from a test run.
"""

EPOCH = "601de20123456789"
SETTINGS: dict[str, Any] = {"grace_s": 3_600.0}
"""Settings of a daemon with a golden database: the long grace period keeps the database's old claims from ending during
a test."""

_VOLATILE = frozenset({"epoch", "pid", "limits", "features"})


def copy_into(golden: Path, home: Path) -> None:
    """Copy a golden database to the data directory of a daemon whose files are below `home`."""
    (home / "data").mkdir(parents=True, mode=0o700)
    shutil.copyfile(golden / "log.db", home / "data" / "log.db")


def transcript(golden: Path) -> list[dict[str, Any]]:
    """Return the recorded messages in order, each as `{"send": message}` or `{"receive": message}`."""
    return [msgspec.json.decode(line) for line in (golden / "transcript.jsonl").read_bytes().splitlines()]


def strip_volatile(value: Any, name: str = "") -> Any:
    """Return a message without the values that differ between runs: times, ids, and text for humans."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {
            key: strip_volatile(member, key)
            for key, member in members.items()
            if key not in _VOLATILE and not _is_text(key, member, members)
        }
    if isinstance(value, list):
        return [strip_volatile(item) for item in cast(list[Any], value)]
    is_time = name == "at" or name.endswith("_at")
    return "a time of the run" if is_time and isinstance(value, int) and value > ENDED_MS else value


def _is_text(name: str, value: Any, siblings: dict[str, Any]) -> bool:
    """Return whether a member is the text of an error or the version of a program."""
    return (name == "message" and "code" in siblings) or (name == "version" and isinstance(value, str))


def still_matches(expected: Any, actual: Any) -> bool:
    """Return whether a message equals the expected one, apart from additional members."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        members = cast(dict[str, Any], actual)
        return all(
            name in members and still_matches(value, members[name])
            for name, value in cast(dict[str, Any], expected).items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        lists = cast(list[Any], expected), cast(list[Any], actual)
        return len(lists[0]) == len(lists[1]) and all(map(still_matches, *lists))
    return expected == actual


async def receive(peer: Peer, events: int | None = None) -> Any:
    """Return the next message without volatile values.

    With `events`, join pushes until they contain this number of events, because the daemon may split them anywhere.
    """
    message = await peer.receive()
    while events is not None and len(message["params"]["events"]) < events:
        message["params"]["events"] += (await peer.receive())["params"]["events"]
    return strip_volatile(message)


# Creating golden files


async def make(directory: Path) -> None:
    """Create both files in a new directory."""
    await anyio.Path(directory).mkdir(parents=True)
    clock = itertools.count(BEGAN_MS, 1_000)
    real, calls.now_ms = calls.now_ms, lambda: next(clock)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            await _fill(Path(scratch))
            await _append_by_hand(Path(scratch) / "data" / "log.db")
            shutil.copyfile(Path(scratch) / "data" / "log.db", directory / "log.db")
    finally:
        calls.now_ms = real
    with tempfile.TemporaryDirectory() as scratch:
        copy_into(directory, Path(scratch))
        await _record(Path(scratch), directory / "transcript.jsonl")


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("conversation.open", {"conversation": "plan", "title": "Ein Plan 計画", "user": "ann", "key": "open"}),
    ("conversation.configure", {"conversation": "plan", "title": "The plan", "settings": {"max_attempts": 3}}),
    ("conversation.attach", {"conversation": "plan", "session": "host-1"}),
    ("conversation.attach", {"conversation": "plan", "session": "host-2"}),
    ("conversation.detach", {"conversation": "plan", "session": "host-1"}),
    (
        "task.add_many",
        {
            "conversation": "plan",
            "key": "many",
            "tasks": [
                {"title": "Read", "ref": "r", "priority": "urgent", "metadata": {"pr": 117, "x": [None, True, 1.5]}},
                {"title": "Write", "blocked_by": ["r"], "description": "a\n\tb \u2028 \U0001f600"},
                {"title": "Ship", "parent": "r", "active_form": "Shipping", "owner": "bob"},
            ],
        },
    ),
    ("task.add", {"conversation": "plan", "title": "First", "before": "1", "actor": "bob"}),
    ("task.move", {"conversation": "plan", "task": "1", "to_end": True}),
    ("task.edit", {"conversation": "plan", "task": "2", "title": "Write it", "metadata": {"n": 1}}),
    ("task.edit", {"conversation": "plan", "task": "4", "add_blocked_by": ["2", "3"]}),
    ("task.edit", {"conversation": "plan", "task": "4", "remove_blocked_by": ["3"]}),
    ("task.set_status", {"conversation": "plan", "task": "1", "status": "in_progress"}),
    ("task.set_status", {"conversation": "plan", "task": "1", "status": "completed", "result_summary": "read"}),
    ("task.set_status", {"conversation": "plan", "task": "3", "status": "failed", "fail_reason": "no key"}),
    ("task.set_status", {"conversation": "plan", "task": "3", "status": "pending"}),
    ("task.claim", {"conversation": "plan", "owner": "ann", "task": "2", "lease_ms": 86_400_000}),
    ("task.release", {"conversation": "plan", "owner": "ann", "task": "2"}),
    ("task.claim", {"conversation": "plan", "owner": "bob", "lease_ms": 86_400_000}),
    ("task.add", {"conversation": "plan", "title": "Not needed"}),
    ("task.delete", {"conversation": "plan", "task": "5"}),
    ("task.add", {"conversation": "plan", "title": "A mistake"}),
    ("list.undo", {"conversation": "plan"}),
    ("message.append", {"conversation": "plan", "role": "user", "content": {"a": ["b", None]}, "message": "m1"}),
    ("message.append", {"conversation": "plan", "role": "model", "content": "c", "message": "m2"}),
    ("task.add", {"conversation": "cleared", "title": "old"}),
    ("list.clear", {"conversation": "cleared"}),
    ("task.add", {"conversation": "cleared", "title": "new"}),
    *(("task.add", {"conversation": "long", "title": f"Step {number}"}) for number in range(70)),
    ("list.replace", {"conversation": "serial", "tasks": [{"title": "a"}, {"title": "b"}]}),
    ("conversation.configure", {"conversation": "serial", "settings": {"execution": "serial"}}),
    ("task.set_status", {"conversation": "serial", "task": "1", "status": "completed"}),
    ("task.add", {"conversation": "erased", "title": "a secret"}),
)
"""Calls that fill a golden database."""


async def _fill(home: Path) -> None:
    async with running_daemon(home, **SETTINGS) as daemon:
        peer = await Peer.open(daemon.socket)
        await peer.result("daemon.hello", client={"name": "golden", "version": "1"})
        for method, params in CALLS:
            await peer.result(method, **params)
        token = (await peer.refusal("conversation.delete", conversation="erased"))["token"]
        await peer.result("conversation.delete", conversation="erased", confirm=token)
        await peer.result("task.add", conversation="erased", title="after it")
        peer.close()


FOREIGN: tuple[dict[str, Any], ...] = (
    {"type": "ConversationOpened", "title": "From the future", "mood": "good"},
    {"type": "TaskAdded", "task": {"id": "1", "title": "Known", "weight": 3}, "why": {"not": ["known"]}},
    {"type": "TaskPainted", "task": "1", "colour": "blue"},
    {"type": "StatusChanged", "task": "1", "from": "pending", "to": "completed", "mood": None},
)
"""Events as a later version may write them, with members and a type that this version does not define."""


async def _append_by_hand(path: Path) -> None:
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    await log.append(_foreign_lines(log))
    await log.close()
    with closing(connect(str(path), "rw")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (EPOCH,)).close()


def _foreign_lines(log: EventLog) -> list[Sealed]:
    lines: list[Sealed] = []
    check = ""
    for version, event in enumerate(FOREIGN, 1):
        place = {"seq": log.head + version, "conversation": "foreign", "version": version, "at": ENDED_MS - 1}
        wire = msgspec.json.encode({**place, "actor": "future", "event": event})
        line, check = seal(check, wire, Side(remaining=len(FOREIGN) - version))
        lines.append(Sealed("foreign", version, line, ""))
    return lines


QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("daemon.hello", {"client": {"name": "golden", "version": "1"}}),
    ("conversation.list", {}),
    ("conversation.list", {"query": "plan", "active": True}),
    *(
        (method, {"conversation": name})
        for name in ("plan", "cleared", "long", "serial", "erased", "foreign", "host-2", "nobody")
        for method in ("conversation.get", "task.list", "message.list")
        if (name, method) != ("long", "task.list")
    ),
    ("task.list", {"conversation": "long", "limit": 2, "offset": 60, "fields": ["title"]}),
    ("task.list", {"conversation": "plan", "at_version": 9}),
    ("task.get", {"conversation": "plan", "task": "2"}),
    ("task.get", {"conversation": "plan", "task": "99"}),
    ("event.read", {"after": 0, "limit": 40}),
    ("event.read", {"conversation": "foreign", "after": 0}),
    ("event.read", {"conversation": "erased", "after": 0}),
    ("list.undo", {"conversation": "plan", "count": 3, "preview": True}),
    ("conversation.open", {"conversation": "plan", "title": "Ein Plan 計画", "user": "ann", "key": "open"}),
    ("task.add", {"conversation": "plan", "title": "other", "key": "many"}),
    ("task.set_status", {"conversation": "plan", "task": "4", "status": "completed"}),
    ("task.edit", {"conversation": "plan", "task": "2", "add_blocked_by": ["4"]}),
    ("task.add", {"conversation": "plan", "title": "x", "expect_version": 1}),
    ("task.ad", {}),
    ("task.add", {"conversation": "plan", "titel": "x"}),
    ("event.subscribe", {"conversation": "foreign", "after": 0}),
    ("task.add", {"conversation": "foreign", "title": "Now", "actor": "present"}),
    ("task.set_status", {"conversation": "foreign", "task": "1", "status": "pending"}),
)
"""Requests to a daemon with a golden database; a subscription's events follow its response."""

_PUSHED = {"event.subscribe": len(FOREIGN), "task.add": 1, "task.set_status": 1}


async def _record(home: Path, path: Path) -> None:
    exchange: list[dict[str, Any]] = []
    async with running_daemon(home, **SETTINGS) as daemon:
        peer = await Peer.open(daemon.socket)
        subscribed = False
        for id, (method, params) in enumerate(QUESTIONS, 1):
            request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            exchange.append({"send": request})
            peer.write(peer.frame(request))
            exchange.append({"receive": await receive(peer)})
            subscribed = subscribed or method == "event.subscribe"
            if subscribed:
                exchange.append({"receive": await receive(peer, _PUSHED[method])})
        peer.close()
    await anyio.Path(path).write_bytes(b"".join(msgspec.json.encode(message) + b"\n" for message in exchange))


if __name__ == "__main__":
    if len(sys.argv) != 2 or os.path.exists(sys.argv[1]):  # noqa: PLR2004
        sys.exit("name a new directory: golden files are never regenerated")
    anyio.run(make, Path(sys.argv[1]))
