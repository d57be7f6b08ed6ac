"""message.append and message.retract."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import MessageAppended, MessageRetracted
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.commands import Decision
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}


def test_a_message_gets_the_id_that_it_brings_or_a_fresh_one_and_never_a_used_one(recorder: Recorder) -> None:
    recorder.do(p.MessageAppend(**C, role="r", content={"a": 1}, message="mine"))
    recorder.do(p.MessageAppend(**C, role="r", content=None))
    assert recorder.state.messages == {"mine": 2, "m2": 3}
    refusal = recorder.call(p.MessageAppend(**C, role="r", content=None, message="mine"))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data["field"]) == ("invalid_params", "message")


@pytest.fixture
def talk() -> Recorder:
    """What was said, and what a tool put out."""
    recorder = Recorder()
    for role in ("user", "tool", "widget"):
        recorder.do(p.MessageAppend(**C, role=role, content=role, message=role[0]))
    return recorder


def refused(recorder: Recorder, params: p.Mutation) -> str:
    answer = recorder.call(params)
    assert isinstance(answer, Rejection), answer
    return f"{answer.kind} {answer.data.get('field', answer.data.get('what'))}: {answer.message}"


def test_a_newer_output_is_shown_instead_of_the_one_that_it_supersedes(talk: Recorder) -> None:
    talk.do(p.MessageAppend(**C, role="tool", content=2, message="t2", supersedes="t"))
    assert talk.state.hidden == {"t": "t2"}
    talk.do(p.MessageAppend(**C, role="tool", content=3, message="t3", supersedes="t2"))
    assert talk.state.hidden == {"t": "t2", "t2": "t3"}
    copy = load_state(CONVERSATION, dump_state(talk.state))
    assert (copy.hidden, copy.passing) == (talk.state.hidden, talk.state.passing)


@pytest.mark.parametrize(
    ("role", "supersedes", "said"),
    [
        (
            "tool",
            "u",
            "invalid_params supersedes: Message u can't be superseded: messages of the roles user and "
            "assistant are kept.",
        ),
        ("assistant", "t", "invalid_params supersedes: A message of role user or assistant can't supersede another"),
        ("tool", "none", "not_found message: Message none does not exist."),
        ("tool", "w", "invalid_params supersedes: Message w is retracted."),
    ],
)
def test_what_was_said_supersedes_nothing_and_is_superseded_by_nothing(
    talk: Recorder, role: str, supersedes: str, said: str
) -> None:
    talk.do(p.MessageRetract(**C, message="w"))
    call = p.MessageAppend(**C, role=role, content=2, message="n", supersedes=supersedes)
    assert refused(talk, call).startswith(said)


def test_a_message_is_superseded_once_and_then_the_newer_one_is_named(talk: Recorder) -> None:
    talk.do(p.MessageAppend(**C, role="tool", content=2, message="t2", supersedes="t"))
    again = p.MessageAppend(**C, role="tool", content=3, message="t3", supersedes="t")
    assert "superseded by t2; supersede that one" in refused(talk, again)
    assert "superseded by t2; retract that one" in refused(talk, p.MessageRetract(**C, message="t"))


def test_a_retracted_message_is_kept_in_the_log_and_retracting_it_again_changes_nothing(talk: Recorder) -> None:
    talk.do(p.MessageRetract(**C, message="u", reason="a slip"))
    assert talk.state.hidden == {"u": ""} and "u" in talk.state.messages
    assert talk.facts[-1].event == MessageRetracted("u", "a slip")
    again = talk.decide(p.MessageRetract(**C, message="u"))
    assert isinstance(again, Decision) and again.events == ()
    assert refused(talk, p.MessageRetract(**C, message="none")).startswith("not_found message")


def test_a_state_of_an_earlier_version_lets_none_of_its_messages_be_superseded(talk: Recorder) -> None:
    talk.state.passing = None
    state = load_state(CONVERSATION, dump_state(talk.state))
    assert state.passing is None
    call = p.MessageAppend(**C, role="tool", content=2, message="t2", supersedes="t")
    assert "it is of an earlier version" in refused(talk, call)


def test_events_that_make_no_sense_hide_nothing(talk: Recorder) -> None:
    talk.happen(
        [MessageRetracted("none"), MessageAppended("x", "tool", 1, "none"), MessageAppended("t", "tool", 9, "u")]
    )
    assert talk.state.hidden == {}
