"""Compares the journal of clients, the log, and the lists that a daemon returns."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from punchlist_faults.load import Entry
from punchlist_faults.options import need
from punchlist_faults.process import Daemon
from punchlist_testing.daemon import Raw
from punchlist_testing.domain import replay
from punchlistd.engine.lists.history import fact_of
from punchlistd.store.port import Stored, side_of
from punchlistd.store.recovery.verify import verify_file

Group = list[Stored]


def stored_events(log: Path) -> list[Stored]:
    """Read all events of a log that no daemon has open, with plain SQLite from a copy."""
    with tempfile.TemporaryDirectory(prefix="pl-") as place:
        for suffix in ("", "-wal"):
            if (source := Path(f"{log}{suffix}")).exists():
                shutil.copyfile(source, f"{place}/log.db{suffix}")
        with closing(sqlite3.connect(f"{place}/log.db")) as connection:
            rows: list[tuple[int, bytes]] = connection.execute("SELECT first, body FROM log ORDER BY seq").fetchall()
    return [Stored(first + at, line) for first, body in rows for at, line in enumerate(body.split(b"\n"))]


def group_calls(events: Iterable[Stored]) -> list[Group]:
    """Group events by call.

    Raises:
        Violation: A position or version is missing, or a call is incomplete.
    """
    groups: list[Group] = []
    partial: Group = []
    versions: dict[str, int] = {}
    for number, event in enumerate(events, 1):
        recorded = msgspec.json.decode(event.wire)
        need(recorded["seq"] == number == event.seq, f"position {number} holds {recorded['seq']}")
        name = recorded["conversation"]
        versions[name] = versions.get(name, 0) + 1
        need(recorded["version"] == versions[name], f"{name} has no version {versions[name]}")
        side = side_of(event)
        if partial:
            before = side_of(partial[-1])
            whole = side.remaining == before.remaining - 1 and partial[-1].conversation == name and not side.key
            need(whole, f"half-applied: the call that ends with {number - 1} misses {before.remaining} events")
        partial.append(event)
        if side.remaining == 0:
            groups.append(partial)
            partial = []
    need(not partial, "half-applied: the last call of the log is there in part")
    return groups


def compare(journal: Sequence[Entry], events: Sequence[Stored], doubtful_after: float = float("inf")) -> dict[str, int]:
    """Compare responses with the log.

    Args:
        journal: Calls with their responses.
        events: All events of the log.
        doubtful_after: Responses after this time (monotonic) are ignored, because the disk may already have failed.

    Raises:
        Violation: An acknowledged call is lost, duplicated, incomplete or different from its request.
    """
    keyed: dict[tuple[str, str], Group] = {}
    for group in group_calls(events):
        if key := side_of(group[0]).key:
            place = (group[0].conversation, key)
            need(place not in keyed, f"duplicate: {place} was carried out twice")
            keyed[place] = group
    acked = kept = retried = 0
    for entry in journal:
        group = keyed.get((entry.params["conversation"], entry.key))
        acks = [ack for ack in entry.acks if ack.at < doubtful_after]
        if not acks:
            kept += group is not None
            need(not entry.refused or group is None, f"{entry.key} was refused ({entry.refused}) and is there")
        else:
            acked += 1
            retried += entry.attempts > 1
            need(group is not None, f"lost: {entry.method} {entry.params}, answered with {acks[0]}")
            assert group is not None
            positions = {(ack.seq, ack.version) for ack in acks}
            stored = (group[-1].seq, group[-1].version)
            need(positions == {stored}, f"{entry.key} was answered {positions} and is at {stored}")
        if group is not None:
            wires = [event.wire for event in group if b'"type":"ConversationOpened"' not in event.wire]
            is_same = len(wires) == len(entry.titles) and all(
                f'"{title}"'.encode() in wire for title, wire in zip(entry.titles, wires, strict=True)
            )
            need(is_same, f"{entry.params} became {wires}")
    return {"acked": acked, "retried": retried, "unanswered but kept": kept, "events": len(events)}


def check_lists(events: Sequence[Stored], link: Raw) -> int:
    """Check that each list that the daemon returns equals its replayed events; return the number of lists."""
    by_name: dict[str, list[Stored]] = {}
    for event in events:
        by_name.setdefault(event.conversation, []).append(event)
    for name, history in by_name.items():
        shown: dict[str, Any] = link.result("task.list", conversation=name)
        state = replay(name, map(fact_of, history))
        tasks = msgspec.to_builtins(state.ordered())
        for task in shown["tasks"]:
            task.pop("lease_expires_at", None)
        need(shown["version"] == state.version, f"{name} shows version {shown['version']}, the log has {state.version}")
        need(shown["tasks"] == tasks, f"the list of {name} is not what its events make")
    return len(by_name)


def verify_log(log: Path) -> None:
    """Verify a log file that no daemon has open, as `punch daemon verify` does."""
    problems = verify_file(str(log)).problems
    need(not problems, f"{log} is not sound: {problems[:3]}")


def judge_daemon(daemon: Daemon, journal: Sequence[Entry]) -> dict[str, int]:
    """Stop the daemon and check its log, then start it again and check the lists that it returns."""
    if daemon.is_running:
        daemon.stop()
    verify_log(daemon.log)
    events = stored_events(daemon.log)
    figures = compare(journal, events)
    daemon.start()
    figures["conversations equal to replay"] = check_lists(events, daemon.connect())
    daemon.hang_up()
    daemon.stop()
    return figures
