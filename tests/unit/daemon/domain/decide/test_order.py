"""task.move."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants
from punchlistd.domain.commands import Decision


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    for title in "abc":
        recorder.add(title)
    return recorder


def move(task: str, **place: Any) -> p.TaskMove:
    return p.TaskMove(conversation=CONVERSATION, task=task, **place)


@pytest.mark.parametrize(
    ("task", "place", "order"),
    [
        ("3", {"before": "1"}, "cab"),
        ("3", {"before": "2"}, "acb"),
        ("1", {"after": "2"}, "bac"),
        ("1", {"after": "3"}, "bca"),
        ("1", {"to_end": True}, "bca"),
        ("1", {"before": "2"}, "abc"),
        ("2", {"after": "1"}, "abc"),
        ("3", {"to_end": True}, "abc"),
        ("3", {"after": "2"}, "abc"),
    ],
)
def test_task_moves_to_the_requested_place(recorder: Recorder, task: str, place: Any, order: str) -> None:
    decision = recorder.do(move(task, **place))
    assert "".join(recorder.titles()) == order
    assert (decision.events == ()) == (order == "abc")


def test_later_task_follows_task_moved_to_end(recorder: Recorder) -> None:
    recorder.do(move("1", to_end=True))
    recorder.add("d")
    assert "".join(recorder.titles()) == "bcad"


def test_thousands_of_moves_make_short_ranks(recorder: Recorder) -> None:
    for step in range(3_000):
        recorder.do(move(str(step % 3 + 1), to_end=True))
        recorder.do(move(str(step % 3 + 1), before=recorder.ids()[0]))
    assert max(map(len, recorder.state.ranks.values())) < 10
    check_invariants(recorder.state)


@pytest.mark.parametrize(
    ("task", "place", "kind"),
    [
        ("9", {"to_end": True}, "not_found"),
        ("1", {"before": "9"}, "not_found"),
        ("1", {"before": "1"}, "invalid_params"),
        ("1", {"after": "1"}, "invalid_params"),
        ("1", {}, "invalid_params"),
        ("1", {"before": "2", "to_end": True}, "invalid_params"),
    ],
)
def test_ambiguous_move_is_rejected(recorder: Recorder, task: str, place: Any, kind: str) -> None:
    refusal = recorder.decide(move(task, **place))
    assert isinstance(refusal, Rejection)
    assert refusal.kind == kind


def test_move_to_the_same_place_adds_no_event(recorder: Recorder) -> None:
    assert recorder.decide(move("2", before="3")) == Decision()
