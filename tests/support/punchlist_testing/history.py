"""Checks concurrent workers' calls against the log: real-time order, exclusive claims, each task completed once.

Every acknowledgement carries its log position, which fixes the total order, so no search for a valid order is needed.
A call without acknowledgement may have taken effect at any later time, or never.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from punchlist_schemas.events import Claimed, Released, StatusChanged
from punchlist_schemas.things import names_of
from punchlistd.domain.commands import Fact
from punchlistd.domain.decide.claim import find_available
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state


class Call(msgspec.Struct, frozen=True):
    """An acknowledged call.

    Attributes:
        kind: `claim`, `complete` or `read`.
        began: Time when it was sent, in nanoseconds of the monotonic clock.
        ended: Time when its response arrived, in the same unit.
        seq: Log position of the response.
        task: Task of a claim or completion.
        fence: Fencing token of a claim or completion.
        completed: Number of completed tasks that a read returned.
    """

    kind: str
    owner: str
    began: int
    ended: int
    seq: int
    version: int
    task: str = ""
    fence: int = 0
    completed: int = -1


class Violation(AssertionError):
    """The history is inconsistent with the log."""


def check_order(calls: Iterable[Call]) -> None:
    """Check that each call is ordered after all calls that were acknowledged before it was sent.

    A read may be at the position of the last of these calls; a write must be after it.
    """
    ends = sorted(calls, key=lambda call: call.ended)
    newest, at = 0, 0
    for call in sorted(ends, key=lambda call: call.began):
        while ends[at].ended < call.began:
            newest = max(newest, ends[at].seq)
            at += 1
        if call.seq < newest or (call.seq == newest and call.kind != "read"):
            raise Violation(f"{call} is behind position {newest}, which was acknowledged before it was called")


def check_log(facts: Sequence[Fact], *, tasks: int) -> dict[int, int]:
    """Replay the log and check each step; return the number of completed tasks at each version.

    Raises:
        Violation: A step is illegal, or the log ends with unfinished or claimed tasks.
    """
    state = initial_state("c")
    completed: dict[str, int] = {}
    by_version: dict[int, int] = {}
    for number, fact in enumerate(facts, 1):
        if fact.version != number:
            raise Violation(f"version {fact.version} stands at place {number}")
        _check_step(state, fact, completed)
        evolve(state, fact.event, fact.seq, fact.version, fact.at)
        by_version[number] = len(completed)
    missing = [task for task in state.tasks if task not in completed]
    if missing or len(completed) != tasks:
        raise Violation(f"{len(completed)} of {tasks} tasks were completed; missing: {missing[:5]}")
    if state.claims or state.offered:
        raise Violation("a completed task is still claimed")
    return by_version


def _check_step(state: State, fact: Fact, completed: dict[str, int]) -> None:
    event = fact.event
    if isinstance(event, Claimed):
        if event.task in state.claims:
            raise Violation(f"{event} at {fact.seq}, but {state.claims[event.task]} holds the task")
        first = find_available(state, 1, names_of(event.owner))
        if not first or first[0].id != event.task:
            raise Violation(f"{event} at {fact.seq} is out of turn: {first[:1]} comes first")
        if event.attempts != state.tasks[event.task].attempts + 1:
            raise Violation(f"{event} at {fact.seq} miscounts: {state.tasks[event.task].attempts} attempts before it")
    elif isinstance(event, Released):
        held = state.claims.get(event.task)
        if held is None or held.owner != event.owner:
            raise Violation(f"{event} at {fact.seq} ends a claim that is not there: {held}")
    elif isinstance(event, StatusChanged):
        if event.to != "completed" or event.task not in state.claims:
            raise Violation(f"{event} at {fact.seq} is not the end of a claim")
        if event.task in completed:
            raise Violation(f"{event} at {fact.seq}: completed at {completed[event.task]} already")
        completed[event.task] = fact.seq


def check_answers(calls: Iterable[Call], facts: Sequence[Fact], by_version: Mapping[int, int]) -> None:
    """Check that each acknowledged call matches the log, and that no claim was acknowledged to two owners."""
    at: dict[int, Any] = {fact.seq: fact.event for fact in facts}
    owners: dict[int, str] = {}
    for call in calls:
        event = at.get(call.fence if call.kind == "claim" else call.seq)
        if call.kind == "claim":
            if not isinstance(event, Claimed) or (event.task, event.owner) != (call.task, call.owner):
                raise Violation(f"{call} is not in the log; {event} is")
            if owners.setdefault(call.fence, call.owner) != call.owner:
                raise Violation(f"{call}: {owners[call.fence]} got the same claim")
        elif call.kind == "complete":
            if not isinstance(event, StatusChanged) or event.task != call.task:
                raise Violation(f"{call} is not in the log; {event} is")
            if owners.get(call.fence, call.owner) != call.owner:
                raise Violation(f"{call} finished what {owners[call.fence]} had claimed")
        elif by_version.get(call.version, 0) != call.completed:
            raise Violation(f"{call} differs from the log: {by_version.get(call.version)} completed")
