"""Who compares journal, log and projections when the dust has settled."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from punchlist_faults.load import Entry
from punchlist_faults.options import Violation, need
from punchlist_faults.process import Daemon
from punchlist_testing.daemon import Raw
from punchlist_testing.domain import replay
from punchlistd.engine.lists.history import fact_of
from punchlistd.store.port import Side, Stored, side_of
from punchlistd.store.recovery.verify import verify_file

Group = list[Stored]


def stored_events(log: Path) -> list[Stored]:
    """Everything in a log that no daemon has open, read by SQLite alone from a copy."""
    with tempfile.TemporaryDirectory(prefix="pl-") as place:
        for suffix in ("", "-wal"):
            if (source := Path(f"{log}{suffix}")).exists():
                shutil.copyfile(source, f"{place}/log.db{suffix}")
        with closing(sqlite3.connect(f"{place}/log.db")) as connection:
            rows: list[tuple[int, bytes]] = connection.execute("SELECT first, body FROM log ORDER BY seq").fetchall()
    return [Stored(first + at, line) for first, body in rows for at, line in enumerate(body.split(b"\n"))]


def groups_in(events: Iterable[Stored]) -> list[Group]:
    """The calls that made these events.

    Raises:
        Violation: positions or versions have a hole, or a call is there in part.
    """
    groups: list[Group] = []
    begun: Group = []
    versions: dict[str, int] = {}
    for number, event in enumerate(events, 1):
        recorded = msgspec.json.decode(event.wire)
        need(recorded["seq"] == number == event.seq, f"position {number} holds {recorded['seq']}")
        name = recorded["conversation"]
        versions[name] = versions.get(name, 0) + 1
        need(recorded["version"] == versions[name], f"{name} has no version {versions[name]}")
        side = side_of(event)
        if begun:
            before = side_of(begun[-1])
            whole = side.left == before.left - 1 and begun[-1].conversation == name and not side.key
            need(whole, f"half-applied: the call that ends with {number - 1} misses {before.left} events")
        begun.append(event)
        if side.left == 0:
            groups.append(begun)
            begun = []
    need(not begun, "half-applied: the last call of the log is there in part")
    return groups


def _keyed(groups: Iterable[Group]) -> dict[tuple[str, str], Group]:
    found: dict[tuple[str, str], Group] = {}
    for group in groups:
        side: Side = side_of(group[0])
        if side.key:
            place = (group[0].conversation, side.key)
            need(place not in found, f"duplicate: {place} was carried out twice")
            found[place] = group
    return found


def compare(journal: Sequence[Entry], events: Sequence[Stored], doubtful_after: float = float("inf")) -> dict[str, int]:
    """Compare what was answered with what is there.

    Args:
        journal: the calls of all clients.
        events: the whole log.
        doubtful_after: answers after this moment (monotonic) may have been given by a disk that was gone already.

    Raises:
        Violation: something acknowledged is lost, twice there, there in part, or not what was asked.
    """
    groups = groups_in(events)
    keyed = _keyed(groups)
    acked = doubtful = kept = retried = 0
    for entry in journal:
        group = keyed.get((entry.params["conversation"], entry.key))
        acks = [ack for ack in entry.acks if ack.at < doubtful_after]
        doubtful += bool(entry.acks and not acks)
        if not acks:
            kept += group is not None
            need(not entry.refused or group is None, f"{entry.key} was refused ({entry.refused}) and is there")
        else:
            acked += 1
            retried += entry.attempts > 1
            need(group is not None, f"lost: {entry.method} {entry.params}, answered with {acks[0]}")
            assert group is not None
            told = {(ack.seq, ack.version) for ack in acks}
            is_at = (group[-1].seq, group[-1].version)
            need(told == {is_at}, f"{entry.key} was answered {told} and is at {is_at}")
        if group is not None:
            _as_asked(entry, group)
    return {
        "acked": acked,
        "lost": 0,
        "duplicates": 0,
        "half-applied": 0,
        "retried": retried,
        "unanswered but kept": kept,
        "in doubt": doubtful,
        "events": len(events),
    }


def _as_asked(entry: Entry, group: Group) -> None:
    wires = [event.wire for event in group if b'"type":"ConversationOpened"' not in event.wire]
    same = len(wires) == len(entry.titles) and all(
        f'"{title}"'.encode() in wire for title, wire in zip(entry.titles, wires, strict=True)
    )
    need(same, f"{entry.params} became {wires}")


def projections(events: Sequence[Stored], link: Raw) -> int:
    """Compare the list of every conversation that a daemon shows with the log's own; how many there were."""
    by_name: dict[str, list[Stored]] = {}
    for event in events:
        by_name.setdefault(event.conversation, []).append(event)
    for name, its in by_name.items():
        shown: dict[str, Any] = link.result("task.list", conversation=name)
        state = replay(name, map(fact_of, its))
        tasks = msgspec.to_builtins(state.ordered())
        for task in shown["tasks"]:
            task.pop("lease_expires_at", None)
        need(shown["version"] == state.version, f"{name} shows version {shown['version']}, the log has {state.version}")
        need(shown["tasks"] == tasks, f"the list of {name} is not what its events make")
    return len(by_name)


def sound(log: Path) -> None:
    """Look through a log file that no daemon has open, as `punch daemon verify` does.

    Raises:
        Violation: something in it is not as it was written.
    """
    report = verify_file(str(log))
    if report.problems:
        raise Violation(f"{log} is not sound: {report.problems[:3]}")


def final(daemon: Daemon, journal: Sequence[Entry]) -> dict[str, int]:
    """Judge a stopped daemon's log, then start it once more and judge what it shows."""
    sound(daemon.log)
    events = stored_events(daemon.log)
    figures = compare(journal, events)
    daemon.start()
    link = daemon.connect()
    figures["conversations equal to replay"] = projections(events, link)
    link.close()
    code = daemon.stop()
    need(code == 0, f"the daemon ended with {code}")
    return figures
