"""Snapshots. A property test checks that every state survives a snapshot."""

import msgspec
import pytest

from punchlist_schemas import params as p
from punchlist_schemas.events import AddedTask, TaskAdded
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.state.snapshot import dump_state, load_state


def test_snapshot_restores_everything(recorder: Recorder) -> None:
    recorder.do(
        p.ConversationOpen(
            conversation=CONVERSATION,
            title="t",
            user="u",
            settings=SettingsPatch("serial"),
            kind="chat",
            metadata={"a": 1},
        )
    )
    recorder.do(p.ConversationAttach(conversation=CONVERSATION, session="s"))
    recorder.do(p.MessageAppend(conversation=CONVERSATION, role="r", content=1))
    recorder.add("one", metadata={"deep": [{"x": None}]}, parent=None)
    recorder.add("two", blocked_by=("1",), before="1")
    recorder.set_status("1", "completed")
    recorder.set_status("2", "completed")
    copy = load_state(CONVERSATION, dump_state(recorder.state))
    assert copy.ordered() == recorder.state.ordered()
    assert copy.conversation_view() == recorder.state.conversation_view()
    assert (copy.ranks, copy.messages, copy.next_task) == (recorder.state.ranks, {"m2": 3}, 3)
    assert copy.last_finished == recorder.state.last_finished
    assert copy.last_finished is not None


def test_events_once_accepted_always_load(recorder: Recorder) -> None:
    recorder.happen([TaskAdded(AddedTask("1" * 40, "two\nlines"))])
    copy = load_state(CONVERSATION, dump_state(recorder.state))
    assert copy.ordered()[0].title == "two\nlines"


def test_invalid_snapshot_bytes_are_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        load_state(CONVERSATION, b"\x00")


def test_older_snapshot_makes_no_person_an_agent(recorder: Recorder) -> None:
    recorder.present = frozenset(("kilo/aaaaaa",))
    for number, owner in enumerate(("ann", "kilo/aaaaaa"), start=1):
        recorder.add()
        recorder.do(p.TaskClaim(conversation=CONVERSATION, task=str(number), owner=owner))
    members = msgspec.msgpack.decode(dump_state(recorder.state))
    older = load_state(CONVERSATION, msgspec.msgpack.encode(members[:-2]))
    assert older.claims == recorder.state.claims
    assert set(older.agents) == {"kilo/aaaaaa"}
