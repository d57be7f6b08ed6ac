"""Compares what workers and subscribers received with the shared log.

The log is the total order: every acknowledged call names its version, so there is nothing to search. A response that
names none, such as that there was nothing to claim, must have been true at some version between the newest one that any
client had received before the call, and the last one that may have been there when it was answered.
"""

import bisect
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from punchlist_faults.apart_work import OPEN
from punchlist_faults.ledger import Entry, Ledger, Told
from punchlist_faults.options import Figures, Violation, need
from punchlist_schemas.events import Claimed, Released, StatusChanged
from punchlist_schemas.things import machine_of

ALL_SERVERS = "servers"
"""The victim of a fault at servers."""

SILENT_S = 20.0
"""A machine whose last fault is over for so long has been heard again by all others, in seconds: servers elect for up
to nine, a daemon that found none of them waits up to five, and so long again others hold its claims."""

SKEW_MS = 50
"""The stamp of a change is rounded, and a daemon reads the clock a moment after the worker."""


class Attempt(msgspec.Struct, frozen=True):
    """One time that a call was made: by the monotonic clock, and when it began by the wall clock; `end` is how."""

    began: float
    wall: float
    ended: float
    end: str


class Note(msgspec.Struct, frozen=True):
    """One call as its worker noted it; `machine` is added when it is read."""

    by: str
    kind: str
    key: str
    attempts: list[Attempt]
    version: int = 0
    task: str = ""
    fence: int = 0
    completed: int = -1
    machine: str = ""

    @property
    def began(self) -> float:
        return self.attempts[0].began

    @property
    def ended(self) -> float:
        return self.attempts[-1].ended

    @property
    def end(self) -> str:
        """Its outcome: that of the last attempt, or open as long as an earlier one may have been written."""
        last = self.attempts[-1].end
        return "open" if last != "ok" and any(each.end in OPEN for each in self.attempts) else last


class Trouble(NamedTuple):
    """A fault: who could not be relied upon from when to when, by the monotonic clock."""

    name: str
    victims: frozenset[str]
    began: float
    ended: float


class Judge:
    """Checks one rule after the other; each breach is a `Violation`."""

    def __init__(self, ledger: Ledger, notes: Sequence[Note]) -> None:
        self.notes = notes
        self.ledger, self.entries = ledger, ledger.entries
        self.claims: dict[int, Claimed] = {}
        self.completed: dict[str, int] = {}
        self._counts = [0]
        for entry in self.entries:
            self._step(entry, ledger.fences[entry.version - 1])
            self._counts.append(len(self.completed))
        # The newest version that any client had received at a moment, and the last that may have been there.
        acknowledged = sorted((note.ended, note.version) for note in notes if note.end == "ok")
        self._ends = [ended for ended, _ in acknowledged]
        self._newest = [0]
        for _, version in acknowledged:
            self._newest.append(max(self._newest[-1], version))
        begun = sorted((note.began, ledger.calls[note.key].first) for note in notes if note.key in ledger.calls)
        self._begins = [began for began, _ in begun]
        self._limits = [len(self.entries) + 1]
        for _, first in reversed(begun):
            self._limits.append(min(self._limits[-1], first))
        self._limits.reverse()

    def _step(self, entry: Entry, claims: Mapping[str, object]) -> None:
        event = entry.event
        if isinstance(event, Claimed):
            need(event.task not in claims, f"at {entry.version} {event} although {claims.get(event.task)} holds it")
            self.claims[entry.version] = event
        elif isinstance(event, Released):
            need(event.task in claims, f"at {entry.version} the end of a claim that is not there: {event}")
        elif isinstance(event, StatusChanged) and event.to == "completed":
            need(event.task not in self.completed, f"{event.task} is completed twice, and again at {entry.version}")
            need(event.task in claims, f"{event.task} is completed without a claim at {entry.version}")
            self.completed[event.task] = entry.version

    def window(self, note: Note) -> range:
        """The versions of which one must have been what a call was answered from."""
        known = self._newest[bisect.bisect_left(self._ends, note.attempts[-1].began)]
        last = self._limits[bisect.bisect_right(self._begins, note.ended)] - 1
        return range(known, min(last, len(self.entries)) + 1)

    def answers(self) -> Figures:
        """Check that each response was true; return how many of which kind there were."""
        acked = proved = 0
        for note in self.notes:
            if note.end == "ok" and note.kind != "read" and not (note.kind == "claim" and not note.task):
                self._acknowledged(note)
                acked += 1
            elif note.kind == "claim" and note.end == "ok":
                seen = [self.ledger.available[version] for version in self.window(note)]
                need(0 in seen, f"{note} found nothing, and there were {seen} in {self.window(note)}")
                proved += 1
            elif note.end in ("lease_lost", "lease_held"):
                held = [self.ledger.fences[version].get(note.task) for version in self.window(note)]
                need(any(fence != note.fence for fence in held), f"{note} was refused, and held the task all the while")
                proved += 1
            self._not_written(note)
        return {"acknowledged": acked, "refusals proved": proved}

    def _acknowledged(self, note: Note) -> None:
        entry = self.ledger.calls.get(note.key)
        if entry is None:
            raise Violation(f"LOST: {note} was acknowledged and is not in the log")
        need(entry.last == note.version, f"{note} was acknowledged at {note.version} and is at {entry.last}")
        known = self._newest[bisect.bisect_left(self._ends, note.began)]
        need(entry.first > known, f"{note} is at {entry.first}, and {known} was acknowledged before it was made")
        if note.kind == "claim":
            claim = self.claims.get(note.fence)
            got = claim is not None and (claim.task, claim.owner) == (note.task, note.by)
            need(got, f"{note} got {claim}")
        elif note.kind == "complete":
            need(self.completed.get(note.task) == note.version, f"{note}: it is at {self.completed.get(note.task)}")

    def _not_written(self, note: Note) -> None:
        """An attempt that was told that nothing was written is not what is in the log."""
        entry = self.ledger.calls.get(note.key)
        if entry is None:
            return
        may = [each for each in note.attempts if each.end == "ok" or each.end in OPEN]
        need(may, f"{note} was told that nothing was written, and it is in the log at {entry.version}")
        need(entry.at >= may[0].wall * 1000 - SKEW_MS, f"{note} was written by an attempt that was told it was not")

    def reads(self) -> int:
        """Check that each read is the fold at its version, never behind what its machine had shown; return how many."""
        reads = 0
        told: dict[str, list[Note]] = {}
        for note in sorted((each for each in self.notes if each.end == "ok"), key=lambda each: each.ended):
            told.setdefault(note.machine, []).append(note)
        for notes in told.values():
            ends = [note.ended for note in notes]
            newest = [0]
            for note in notes:
                newest.append(max(newest[-1], note.version))
            for note in notes:
                if note.kind != "read":
                    continue
                reads += 1
                before = newest[bisect.bisect_left(ends, note.began)]
                need(note.version >= before, f"{note} is behind {before}, which its machine had told")
                is_so = self._counts[note.version] == note.completed
                need(is_so, f"{note}: at this version {self._counts[note.version]} were completed")
        return reads

    def leases(self, trouble: Sequence[Trouble], wall: float) -> int:
        """Check that no machine ended the claim of another one without a fault; return how many were ended by others.

        Args:
            trouble: All faults.
            wall: The wall clock at 0 of the monotonic one.
        """
        ended = 0
        keepers: dict[str, str] = {}
        for entry in self.entries:
            event = entry.event
            if isinstance(event, Claimed):
                keepers[event.task] = event.keeper
            elif isinstance(event, Released) and entry.member != keepers.get(event.task, entry.member):
                keeper = keepers[event.task]
                at, victims = entry.at / 1000 - wall, {machine_of(keeper), ALL_SERVERS}
                fell = any(
                    each.began < at + 1 and at - SILENT_S < each.ended and each.victims & victims for each in trouble
                )
                need(fell, f"{entry.member} ended the claim of {keeper}, to which nothing had happened: {entry}")
                ended += 1
        return ended


def same(entries: Sequence[Entry], machine: str, told: Sequence[Told], what: str) -> None:
    """Check that a machine shows the shared log, each event once and in order."""
    for number, (entry, other) in enumerate(zip(entries, told, strict=False)):
        need(entry.told == other, f"{machine}'s {what}: at {number} is {other}, and the log has {entry.told}")
    need(len(entries) == len(told), f"{machine}'s {what} ends at {len(told)}, and the log at {len(entries)}")
