"""Rules that apply to every decision."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import ERRORS, Rejection
from punchlist_schemas.events import ConversationOpened
from punchlist_schemas.methods import METHODS
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.commands import Decision, EndClaims, EndReservations, Wake
from punchlistd.domain.decide import RULES
from punchlistd.domain.responses import BUILDERS

C: dict[str, Any] = {"conversation": CONVERSATION}


def test_every_mutation_has_a_rule_and_a_response() -> None:
    mutations = {method.params for method in METHODS.values() if issubclass(method.params, p.Mutation)}
    assert mutations | {EndClaims, EndReservations, Wake} == set(RULES) == set(BUILDERS)


@pytest.mark.parametrize(("expected", "fits"), [(0, False), (1, False), (2, True), (3, False)])
def test_expected_version_must_be_current(recorder: Recorder, expected: int, fits: bool) -> None:
    recorder.add()
    answer = recorder.decide(p.TaskAdd(**C, title="t", expect_version=expected))
    if fits:
        assert isinstance(answer, Decision)
    else:
        assert isinstance(answer, Rejection)
        assert (answer.kind, answer.data) == ("version_conflict", {"expected": expected, "actual": 2})


def test_unknown_conversation_is_at_version_zero() -> None:
    assert isinstance(Recorder().decide(p.TaskAdd(**C, title="t", expect_version=0)), Decision)


@pytest.mark.parametrize(
    "call",
    [
        p.MessageAppend(**C, role="r", content=None),
        p.ListClear(**C),
        p.ListReplace(**C, tasks=()),
        p.ConversationConfigure(**C, title="t"),
        p.ConversationAttach(**C, session="s"),
    ],
)
def test_mutation_opens_a_conversation_for_the_bound_user(call: p.Mutation) -> None:
    decision = Recorder().decide(call, user="ann")
    assert isinstance(decision, Decision)
    assert decision.events[:1] == (ConversationOpened(user="ann"),)


@pytest.mark.parametrize(
    "call",
    [
        p.TaskEdit(**C, task="1"),
        p.TaskSetStatus(**C, task="1", status="completed"),
        p.TaskMove(**C, task="1", to_end=True),
        p.TaskDelete(**C, task="1"),
    ],
)
def test_call_that_names_a_task_opens_nothing(call: p.Mutation) -> None:
    refusal = Recorder().decide(call)
    assert isinstance(refusal, Rejection)
    assert refusal.data == {"what": "task", "id": "1"}


def test_rejection_has_the_data_of_the_error_table(recorder: Recorder) -> None:
    recorder.add()
    for call in (
        p.TaskSetStatus(**C, task="9", status="failed"),
        p.TaskMove(**C, task="1"),
        p.TaskEdit(**C, task="1", add_blocks=("1",)),
        p.TaskAdd(**C, title="t", expect_version=9),
    ):
        refusal = recorder.decide(call)
        assert isinstance(refusal, Rejection)
        assert set(refusal.data) <= set(ERRORS[refusal.kind].data)
        assert refusal.message.endswith(".")
