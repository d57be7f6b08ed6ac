"""What past calls changed."""

from punchlist_schemas.events import ConversationConfigured, DependencyAdded, ListCleared, MessageAppended
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.state import initial_state
from punchlistd.domain.state.snapshot import dump_state
from punchlistd.domain.undo.trace import named, trace


def test_each_event_is_told_with_the_state_before_and_after() -> None:
    recorder = Recorder()
    recorder.add("one")
    recorder.add("two", parent="1", before="1")
    recorder.set_status("1", "paused")
    recorder.happen([ListCleared()])
    state = initial_state(CONVERSATION)
    *_, change, clear = [trace(state, fact) for fact in recorder.facts]
    assert dump_state(state) == dump_state(recorder.state)
    assert change.before is not None
    assert change.after is not None
    assert (change.before.status, change.after.status, change.taken) == ("pending", "paused", ())
    assert [(taken.task.title, taken.children) for taken in clear.taken] == [("two", ()), ("one", ("2",))]
    assert clear.taken[0].rank
    assert not clear.taken[1].rank


def test_an_event_names_its_task_if_it_has_one() -> None:
    assert named(DependencyAdded("2", "1")) == "2"
    assert named(MessageAppended("m", "r", None)) == named(ConversationConfigured(title="t")) == ""
