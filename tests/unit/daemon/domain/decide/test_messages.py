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


def test_message_gets_given_or_unused_id(recorder: Recorder) -> None:
    recorder.do(p.MessageAppend(**C, role="r", content={"a": 1}, message="mine"))
    recorder.do(p.MessageAppend(**C, role="r", content=None))
    assert recorder.state.messages == {"mine": 2, "m2": 3}
    refusal = recorder.call(p.MessageAppend(**C, role="r", content=None, message="mine"))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data["field"]) == ("invalid_params", "message")


@pytest.fixture
def talk() -> Recorder:
    """A conversation with one message of each of the roles `user`, `tool` and `widget`."""
    recorder = Recorder()
    for role in ("user", "tool", "widget"):
        recorder.do(p.MessageAppend(**C, role=role, content=role, message=role[0]))
    return recorder


def refused(recorder: Recorder, params: p.Mutation) -> str:
    answer = recorder.call(params)
    assert isinstance(answer, Rejection), answer
    return f"{answer.kind} {answer.data.get('field', answer.data.get('what'))}: {answer.message}"


def test_newer_output_hides_the_superseded_one(talk: Recorder) -> None:
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
def test_messages_of_people_are_never_superseded(talk: Recorder, role: str, supersedes: str, said: str) -> None:
    talk.do(p.MessageRetract(**C, message="w"))
    call = p.MessageAppend(**C, role=role, content=2, message="n", supersedes=supersedes)
    assert refused(talk, call).startswith(said)


def test_message_is_superseded_once(talk: Recorder) -> None:
    talk.do(p.MessageAppend(**C, role="tool", content=2, message="t2", supersedes="t"))
    again = p.MessageAppend(**C, role="tool", content=3, message="t3", supersedes="t")
    assert "superseded by t2; supersede that one" in refused(talk, again)
    assert "superseded by t2; retract that one" in refused(talk, p.MessageRetract(**C, message="t"))


def test_retracted_message_stays_in_the_log(talk: Recorder) -> None:
    talk.do(p.MessageRetract(**C, message="u", reason="a slip"))
    assert talk.state.hidden == {"u": ""} and "u" in talk.state.messages
    assert talk.facts[-1].event == MessageRetracted("u", "a slip")
    again = talk.decide(p.MessageRetract(**C, message="u"))
    assert isinstance(again, Decision) and again.events == ()
    assert refused(talk, p.MessageRetract(**C, message="none")).startswith("not_found message")


def test_old_state_lets_no_message_be_superseded(talk: Recorder) -> None:
    talk.state.passing = None
    state = load_state(CONVERSATION, dump_state(talk.state))
    assert state.passing is None
    call = p.MessageAppend(**C, role="tool", content=2, message="t2", supersedes="t")
    assert "it is of an earlier version" in refused(talk, call)


def test_inconsistent_events_hide_nothing(talk: Recorder) -> None:
    talk.happen(
        [MessageRetracted("none"), MessageAppended("x", "tool", 1, "none"), MessageAppended("t", "tool", 9, "u")]
    )
    assert talk.state.hidden == {}
