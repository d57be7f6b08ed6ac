"""message.append."""

from typing import Any

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_testing.domain import CONVERSATION, Recorder

C: dict[str, Any] = {"conversation": CONVERSATION}


def test_a_message_gets_the_id_that_it_brings_or_a_fresh_one_and_never_a_used_one() -> None:
    recorder = Recorder()
    recorder.do(p.MessageAppend(**C, role="r", content={"a": 1}, message="mine"))
    recorder.do(p.MessageAppend(**C, role="r", content=None))
    assert recorder.state.messages == {"mine": 2, "m2": 3}
    refusal = recorder.call(p.MessageAppend(**C, role="r", content=None, message="mine"))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data["field"]) == ("invalid_params", "message")
