"""The checker of the fault program `drain`: it detects deliberate faults."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.events import Claimed, StatusChanged
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlist_testing.history import Call, Violation, check_answers, check_log, check_order
from punchlistd.domain.commands import EndClaims, Fact

C: dict[str, Any] = {"conversation": CONVERSATION}


@pytest.fixture
def history() -> tuple[list[Fact], list[Call]]:
    """Two workers, three tasks, and one claim that expired."""
    recorder = Recorder()
    recorder.do(p.TaskAddMany(**C, tasks=tuple(p.NewTask(title=title) for title in "abc")))
    calls: list[Call] = []
    clock = 0

    def take(owner: str) -> tuple[str, int]:
        nonlocal clock
        event = next(e for e in recorder.do(p.TaskClaim(**C, owner=owner)).events if isinstance(e, Claimed))
        calls.append(
            Call("claim", owner, clock, clock + 5, recorder.seq, recorder.state.version, event.task, recorder.seq)
        )
        clock += 10
        return event.task, recorder.seq

    def complete(owner: str, task: str, fence: int) -> None:
        nonlocal clock
        recorder.do(p.TaskSetStatus(**C, task=task, status="completed", fence=fence))
        calls.append(Call("complete", owner, clock, clock + 5, recorder.seq, recorder.state.version, task, fence))
        clock += 10

    lost = take("ann")
    recorder.do(EndClaims(**C, claims=(lost,), reason="expired"))
    for owner in ("bob", "ann", "bob"):
        complete(owner, *take(owner))
    counts = recorder.state.counts()
    calls.append(
        Call("read", "ann", clock, clock + 1, recorder.seq, recorder.state.version, completed=counts.completed)
    )
    return recorder.facts, calls


def check(facts: list[Fact], calls: list[Call]) -> None:
    check_order(calls)
    check_answers(calls, facts, check_log(facts, tasks=3))


def test_possible_histories_are_accepted(history: tuple[list[Fact], list[Call]]) -> None:
    check(*history)


def _again(facts: list[Fact], kind: type, change: Any) -> None:
    at = max(index for index, fact in enumerate(facts) if isinstance(fact.event, kind))
    facts[at] = replace(facts[at], event=replace(facts[at].event, **change))


PLANTED: dict[str, Callable[[list[Fact], list[Call]], object]] = {
    "a hole": lambda facts, calls: facts.pop(3),
    "two in another order": lambda facts, calls: calls.insert(1, replace(calls.pop(2), began=6, ended=7)),
    "a stale read": lambda facts, calls: calls.append(replace(calls.pop(), seq=3, version=3, completed=0)),
    "a read of what is not": lambda facts, calls: calls.append(replace(calls.pop(), completed=2)),
    "a lost completion": lambda facts, calls: facts.pop(),
    "a task completed twice": lambda facts, calls: _again(facts, StatusChanged, {"task": "1"}),
    "a claim out of turn": lambda facts, calls: _again(facts, Claimed, {"task": "1"}),
    "a miscount": lambda facts, calls: _again(facts, Claimed, {"attempts": 7}),
    "one claim for two": lambda facts, calls: calls.append(replace(calls[0], owner="eve", began=99, ended=99)),
    "another's task finished": lambda facts, calls: calls.append(replace(calls.pop(2), owner="eve")),
    "an answer that is not in the log": lambda facts, calls: calls.append(replace(calls.pop(0), task="3")),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_found(fault: str, history: tuple[list[Fact], list[Call]]) -> None:
    facts, calls = list(history[0]), list(history[1])
    PLANTED[fault](facts, calls)
    with pytest.raises(Violation):
        check(facts, calls)
