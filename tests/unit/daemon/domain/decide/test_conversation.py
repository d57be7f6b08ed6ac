"""conversation.*"""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured, ConversationDeleted, ConversationOpened
from punchlist_schemas.things import Settings, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.commands import Decision

C: dict[str, Any] = {"conversation": CONVERSATION}


def test_conversation_is_opened_once(recorder: Recorder) -> None:
    opened = p.ConversationOpen(**C, title="plan", user="ann", settings=SettingsPatch(max_attempts=2))
    assert recorder.do(opened).events == (ConversationOpened("plan", "ann", Settings(max_attempts=2)),)
    assert recorder.do(p.ConversationOpen(**C, title="other")).events == ()
    assert (recorder.state.title, recorder.state.created_at) == ("plan", recorder.at - 7)


def test_kind_stays_and_metadata_merges(recorder: Recorder) -> None:
    opened = p.ConversationOpen(**C, kind="chat", metadata={"list": "plan", "none": None})
    assert recorder.do(opened).events == (ConversationOpened(kind="chat", metadata={"list": "plan"}),)
    configured = recorder.do(p.ConversationConfigure(**C, metadata={"list": None, "mood": ["good"]}))
    assert configured.events == (ConversationConfigured(metadata={"mood": ["good"]}),)
    assert recorder.do(p.ConversationConfigure(**C, metadata={"mood": ["good"]})).events == ()
    view = recorder.state.conversation_view()
    assert (view.kind, view.metadata) == ("chat", {"mood": ["good"]})


def test_bound_connection_opens_for_its_user() -> None:
    assert Recorder().decide(p.ConversationOpen(**C), user="ann") == Decision((ConversationOpened(user="ann"),))


@pytest.mark.parametrize(
    ("asked", "event"),
    [
        ({"title": "new"}, ConversationConfigured(title="new")),
        ({"title": "old"}, None),
        ({"settings": SettingsPatch()}, None),
        (
            {"settings": SettingsPatch("serial", "stop", 0, "when_done")},
            ConversationConfigured(settings=Settings("serial", "stop", 0, "when_done")),
        ),
    ],
)
def test_configuration_records_all_new_values(
    recorder: Recorder, asked: Any, event: ConversationConfigured | None
) -> None:
    recorder.do(p.ConversationOpen(**C, title="old"))
    assert recorder.do(p.ConversationConfigure(**C, **asked)).events == (() if event is None else (event,))


def test_sessions_attach_and_detach(recorder: Recorder) -> None:
    for session in ("s", "t", "s"):
        recorder.do(p.ConversationAttach(**C, session=session))
    assert recorder.state.sessions == ("s", "t")
    for session in ("s", "s"):
        recorder.do(p.ConversationDetach(**C, session=session))
    assert recorder.state.sessions == ("t",)
    assert len(recorder.facts) == 4


@pytest.mark.parametrize("call", [p.ConversationDetach(**C, session="s"), p.ConversationDelete(**C)])
def test_unknown_names_are_neither_detached_nor_deleted(call: p.Mutation) -> None:
    refusal = Recorder().call(call)
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data) == ("not_found", {"what": "conversation", "id": "c"})


def test_deletion_resets_all_but_the_numbering(recorder: Recorder) -> None:
    recorder.do(p.ConversationOpen(**C, title="plan", user="ann"))
    recorder.add()
    recorder.do(p.MessageAppend(**C, role="user", content=1))
    assert recorder.do(p.ConversationDelete(**C)).events == (ConversationDeleted(),)
    state = recorder.state
    assert (state.exists, state.title, state.user, state.tasks, state.messages) == (False, "", "", {}, {})
    assert state.version == 4
    assert recorder.add().id == "1"
    assert (state.version, state.exists) == (6, True)
