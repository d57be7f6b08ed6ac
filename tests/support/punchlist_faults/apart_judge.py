"""Compares what workers and subscribers received with the shared log.

The log is the total order: every acknowledged call names its version, so no search for it is needed. A response without
a version, such as "nothing to claim", must have been true at some version between the newest one that any client had
received before the call and the newest one that may have existed when the call was answered.
"""

import bisect
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from punchlist_faults.apart_work import OPEN
from punchlist_faults.ledger import Entry, Ledger, ReplicatedEvent
from punchlist_faults.options import Figures, Violation, need
from punchlist_schemas.events import Claimed, Released, StatusChanged
from punchlist_schemas.things import machine_of

ALL_SERVERS = "servers"
"""Name that stands for all machines, because a fault of the servers affects all of them."""

SILENT_S = 20.0
"""Time after a machine's last fault within which all others receive its heartbeats again, in seconds.

An election takes up to 9 s. A daemon that found no server waits up to 5 s, and the others keep its claims for
another 5 s.
"""

SKEW_MS = 50
"""Tolerance between a worker's clock and the time of a change, which is rounded and read slightly later."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a call.

    Attributes:
        began: Start on the monotonic clock.
        ended: End on the monotonic clock.
        wall: Start on the wall clock.
        end: Outcome.
    """

    began: float
    wall: float
    ended: float
    end: str


class Note(msgspec.Struct, frozen=True):
    """A call as recorded by its worker; `machine` is added when the record is read."""

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
        """Outcome of the last attempt; `open` if it failed and an earlier one may have been written."""
        last = self.attempts[-1].end
        return "open" if last != "ok" and any(attempt.end in OPEN for attempt in self.attempts) else last


class Trouble(NamedTuple):
    """A fault: the machines that it affects, and its beginning and end on the monotonic clock."""

    name: str
    victims: frozenset[str]
    began: float
    ended: float


class Judge:
    """Checks workers' calls against the shared log; each breach raises a `Violation`."""

    def __init__(self, ledger: Ledger, notes: Sequence[Note]) -> None:
        self.notes = notes
        self.ledger, self.entries = ledger, ledger.entries
        self.claims: dict[int, Claimed] = {}
        self.completed: dict[str, int] = {}
        self._counts = [0]
        for entry in self.entries:
            self._step(entry, ledger.fences[entry.version - 1])
            self._counts.append(len(self.completed))
        # For each time: the newest version that a client had received, and the newest that may have existed.
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
        """Return the versions that the response to a call may be based on."""
        known = self._newest[bisect.bisect_left(self._ends, note.attempts[-1].began)]
        last = self._limits[bisect.bisect_right(self._begins, note.ended)] - 1
        return range(known, min(last, len(self.entries)) + 1)

    def answers(self) -> Figures:
        """Check each response against the log; return the number of acknowledged calls and of confirmed rejections."""
        acked = proved = 0
        for note in self.notes:
            if note.end == "ok" and note.kind != "read" and not (note.kind == "claim" and not note.task):
                self._check_acknowledged(note)
                acked += 1
            elif note.kind == "claim" and note.end == "ok":
                seen = [self.ledger.available[version] for version in self.window(note)]
                need(0 in seen, f"{note} found nothing, and there were {seen} in {self.window(note)}")
                proved += 1
            elif note.end in ("lease_lost", "lease_held"):
                held = [self.ledger.fences[version].get(note.task) for version in self.window(note)]
                need(any(fence != note.fence for fence in held), f"{note} was refused, and held the task all the while")
                proved += 1
            self._check_not_written(note)
        return {"acknowledged": acked, "refusals proved": proved}

    def _check_acknowledged(self, note: Note) -> None:
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

    def _check_not_written(self, note: Note) -> None:
        """Check that a call in the log has an attempt that may have written it."""
        entry = self.ledger.calls.get(note.key)
        if entry is None:
            return
        candidates = [attempt for attempt in note.attempts if attempt.end == "ok" or attempt.end in OPEN]
        need(candidates, f"{note} was told that nothing was written, and it is in the log at {entry.version}")
        is_later = entry.at >= candidates[0].wall * 1000 - SKEW_MS
        need(is_later, f"{note} was written by an attempt that was told it was not")

    def reads(self) -> int:
        """Check that each read matches its version and isn't older than an earlier response from the same machine.

        Return the number of reads.
        """
        reads = 0
        by_machine: dict[str, list[Note]] = {}
        for note in sorted((note for note in self.notes if note.end == "ok"), key=lambda note: note.ended):
            by_machine.setdefault(note.machine, []).append(note)
        for notes in by_machine.values():
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
                is_right = self._counts[note.version] == note.completed
                need(is_right, f"{note}: at this version {self._counts[note.version]} were completed")
        return reads

    def leases(self, trouble: Sequence[Trouble], wall: float) -> int:
        """Check that machines ended each other's claims only after faults. Return the number of claims that ended this
        way.

        Args:
            trouble: All faults.
            wall: Wall time at which the monotonic clock was 0.
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
                had_fault = any(
                    fault.began < at + 1 and at - SILENT_S < fault.ended and fault.victims & victims
                    for fault in trouble
                )
                need(had_fault, f"{entry.member} ended the claim of {keeper}, to which nothing had happened: {entry}")
                ended += 1
        return ended


def check_same(entries: Sequence[Entry], machine: str, events: Sequence[ReplicatedEvent], what: str) -> None:
    """Check that a machine's events equal the shared log."""
    for number, (entry, other) in enumerate(zip(entries, events, strict=False)):
        need(
            entry.replicated == other, f"{machine}'s {what}: at {number} is {other}, and the log has {entry.replicated}"
        )
    need(len(entries) == len(events), f"{machine}'s {what} ends at {len(events)}, and the log at {len(entries)}")
