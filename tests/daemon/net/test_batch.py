"""How the answers of a batch are put together: all at once, and before the pushes that follow from it."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import msgspec
import pytest

from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import Outcome
from punchlistd.net.batch import BatchReply
from punchlistd.net.held import Held
from punchlistd.net.jsonrpc import Call, Malformed


class Recorder:
    """A connection that notes what a batch does to it."""

    actor = "somebody"
    user = None
    confirm = True
    holder = None

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.held = Held(0, lambda: None)

    def hold(self) -> None:
        self.seen.append("hold")

    def release(self) -> None:
        self.seen.append("release")

    def settle(self, outcome: Outcome) -> None:
        self.seen.append(("settled", outcome))

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        raise AssertionError("a batch answers as a whole")

    def answer_batch(self, pieces: list[bytes]) -> None:
        self.seen.append(msgspec.json.decode(b"".join(pieces)))

    def turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def admit(self, outcome: Outcome) -> Outcome:
        return self.held.admit(outcome)

    def flush(self) -> None:
        self.seen.append("flush")


READ = Call(b"1", "task.list", {})
WRITE = Call(b"2", "task.add", {})
NOTICE = Call(None, "task.add", {})
REFUSED = Rejection("not_found", "It is not there.")


def test_the_answers_go_out_together_once_the_last_one_is_there() -> None:
    session = Recorder()
    batch = BatchReply(session, [READ, Malformed(b"null", REFUSED)])
    batch.answer(b"null", REFUSED)
    assert session.seen == [("settled", REFUSED)] and session.held.bytes > 0
    batch.answer(b"1", b"{}")
    replies = session.seen[-1]
    assert [reply["id"] for reply in replies] == [None, 1]
    assert replies[0]["error"]["data"]["kind"] == "not_found"
    assert replies[1]["result"] == {} and session.held.bytes == 0


def test_notifications_alone_are_not_answered_at_all() -> None:
    session = Recorder()
    BatchReply(session, [NOTICE]).answer(None, b"{}")
    assert session.seen == ["hold", ("settled", b"{}"), "release"]


@pytest.mark.parametrize(("call", "held"), [(WRITE, True), (Call(b"3", "event.subscribe", {}), True), (READ, False)])
def test_pushes_wait_for_a_batch_that_changes_or_subscribes(call: Call, held: bool) -> None:
    session = Recorder()
    batch = BatchReply(session, [call])
    assert session.seen == (["hold"] if held else [])
    batch.answer(call.id, b"{}")
    assert (session.seen[-1] == "release") is held
    assert isinstance(session.seen[-2 if held else -1], list), "the answer comes first"


def test_a_batch_acts_with_the_rights_of_its_connection() -> None:
    session = Recorder()
    batch = BatchReply(session, [READ])
    assert (batch.actor, batch.user, batch.confirm, batch.holder) == ("somebody", None, True, None)
    batch.flush()
    assert session.seen == ["flush"]
