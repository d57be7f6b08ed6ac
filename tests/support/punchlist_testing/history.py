"""Checking what a herd of workers did against the log: order, claims that never overlap, everything done once.

Every acknowledgement carries its position, so the total order is given and nothing has to be searched for. A call that
was never acknowledged may have happened at any later time, or not at all.
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
    """An acknowledged call: when it was made and answered (nanoseconds of the monotonic clock), and its position.

    `kind` is claim, complete or read; a claim and a completion tell their task and fence, a read the counts it saw.
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
    """The history is not one that may have happened."""


def check_order(calls: Iterable[Call]) -> None:
    """What was acknowledged before something else was called comes before it in the log.

    A read sees at least all that was acknowledged before it began.
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
    """Fold the log, refusing illegal steps; for each version how many tasks were completed."""
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
        raise Violation("somebody holds a completed task")
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
    """What was acknowledged is in the log as it was acknowledged, and no claim was given to two."""
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
            raise Violation(f"{call} saw what the log does not say: {by_version.get(call.version)} completed")
