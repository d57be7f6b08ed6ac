"""Responses, both the first time and when repeated from the log."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, replay
from punchlistd.domain.responses import respond

C: dict[str, Any] = {"conversation": CONVERSATION}


def answer(recorder: Recorder, call: p.Mutation) -> Any:
    """Return the response to a call; check that replaying the log gives the same one."""
    decision = recorder.do(call)
    first = respond(call, recorder.state, decision.events, recorder.seq, decision, "me")
    again = respond(call, replay(CONVERSATION, recorder.facts), decision.events, recorder.seq, decision, "me")
    assert first == again
    assert (first.version, first.seq) == (recorder.state.version, recorder.seq)
    return first


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.add("a")
    recorder.add("b", blocked_by=("1",))
    recorder.add("c", priority="urgent", blocked_by=("1", "2"))
    return recorder


def test_response_has_added_task_of_new_conversation() -> None:
    assert answer(Recorder(), p.TaskAdd(**C, title="t")).task.id == "1"


def test_response_has_added_and_replaced_tasks(recorder: Recorder) -> None:
    tasks = (p.NewTask(title="x"), p.NewTask(title="y"))
    assert [task.title for task in answer(recorder, p.TaskAddMany(**C, tasks=tasks)).tasks] == ["x", "y"]
    replaced = answer(recorder, p.ListReplace(**C, tasks=tasks[:1]))
    assert [task.title for task in replaced.tasks] == ["a", "b", "c", "y", "x"]


def test_response_has_an_edited_or_moved_task(recorder: Recorder) -> None:
    assert answer(recorder, p.TaskEdit(**C, task="1", title="z")).task.title == "z"
    assert answer(recorder, p.TaskMove(**C, task="1", to_end=True)).task.id == "1"


def test_completion_returns_the_next_task(recorder: Recorder) -> None:
    done = answer(recorder, p.TaskSetStatus(**C, task="1", status="completed"))
    assert (done.next_task.id, done.unblocked, done.remaining) == ("2", ("2",), 2)
    again = answer(recorder, p.TaskSetStatus(**C, task="1", status="completed"))
    assert (again.next_task.id, again.unblocked, again.remaining) == ("2", (), 2)
    last = answer(recorder, p.TaskSetStatus(**C, task="2", status="completed"))
    assert (last.next_task.id, last.unblocked) == ("3", ("3",))


def test_pause_returns_next_task_but_start_does_not(recorder: Recorder) -> None:
    recorder.add("d")
    assert answer(recorder, p.TaskSetStatus(**C, task="1", status="in_progress")).next_task is None
    assert answer(recorder, p.TaskSetStatus(**C, task="1", status="paused")).next_task.id == "4"


def test_completion_that_clears_the_list_returns_its_task() -> None:
    recorder = Recorder()
    recorder.do(p.ConversationOpen(**C, settings=SettingsPatch(auto_clear="when_done")))
    recorder.add("a")
    done = answer(recorder, p.TaskSetStatus(**C, task="1", status="completed", result_summary="ok"))
    assert (done.task.title, done.task.status, done.task.result_summary) == ("a", "completed", "ok")
    assert (done.next_task, done.remaining) == (None, 0)


def test_deletions_and_clears_return_the_removed_tasks(recorder: Recorder) -> None:
    assert answer(recorder, p.TaskDelete(**C, tasks=("3", "1"))).deleted == ("3", "1")
    assert answer(recorder, p.ListClear(**C)).cleared == 1
    assert answer(recorder, p.ListClear(**C)).cleared == 0


def test_undo_returns_its_lines(recorder: Recorder) -> None:
    assert answer(recorder, p.ListUndo(**C)).undone == ('removed #3 "c"',)


def test_message_returns_its_id_and_place(recorder: Recorder) -> None:
    message = answer(recorder, p.MessageAppend(**C, role="user", content=[1])).message
    assert (message.message, message.seq, message.actor, message.at) == ("m4", 5, "me", recorder.at)


def test_conversation_is_returned_with_whether_it_is_new() -> None:
    recorder = Recorder()
    first = answer(recorder, p.ConversationOpen(**C, title="t"))
    assert (first.conversation.title, first.created) == ("t", True)
    assert not answer(recorder, p.ConversationOpen(**C)).created
    assert answer(recorder, p.ConversationConfigure(**C, title="u")).conversation.title == "u"
    assert answer(recorder, p.ConversationAttach(**C, session="s")).conversation.sessions == ("s",)
    assert answer(recorder, p.ConversationDetach(**C, session="s")).conversation.sessions == ()
    gone = answer(recorder, p.ConversationDelete(**C))
    assert isinstance(gone, r.ConversationDeleteResult)
    assert gone.deleted == CONVERSATION


def titles(path: Any) -> list[str]:
    return [name.title for name in path]


def test_claims_and_next_tasks_have_their_parents() -> None:
    recorder = Recorder()
    recorder.add("Plan", status="in_progress")
    recorder.add("Backend", parent="1", status="in_progress")
    recorder.add("schema", parent="2", priority="high")
    recorder.add("tests", parent="2")
    recorder.add("alone")
    claim = answer(recorder, p.TaskClaim(**C, owner="ann"))
    assert (claim.task.title, titles(claim.path), claim.paths) == ("schema", ["Plan", "Backend"], ())
    done = answer(recorder, p.TaskSetStatus(**C, task="3", status="completed", fence=claim.fence))
    assert (done.next_task.title, titles(done.next_path)) == ("tests", ["Plan", "Backend"])
    both = answer(recorder, p.TaskClaim(**C, owner="ann", count=2))
    assert list(map(titles, both.paths)) == [["Plan", "Backend"], []]
