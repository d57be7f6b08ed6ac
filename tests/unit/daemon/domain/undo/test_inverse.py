"""Events that can be undone, and events without effect. The rules for undo itself are tested with list.undo."""

import pytest
from msgspec import Raw

from punchlist_schemas import events as e
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.undo.inverse import UndoRun, is_undoable, undo_change
from punchlistd.domain.undo.trace import Change, trace

UNDOABLE = (
    e.TaskAdded(e.AddedTask("9", "t")),
    e.TaskEdited("9", title="x"),
    e.TaskMoved(task="9", rank="Z"),
    e.StatusChanged("9", "pending", "failed"),
    e.Deleted("9"),
    e.DependencyAdded("9", "1"),
    e.DependencyRemoved("9", "1"),
    e.ListCleared(),
    e.ConversationConfigured(title="t"),
)
LASTING = (
    e.ConversationOpened(),
    e.ConversationDeleted(),
    e.ConversationConfigured(attached="s"),
    e.ConversationConfigured(detached="s"),
    e.Released(task="1", owner="o", reason="expired"),
    e.MessageAppended("m", "r", None),
    e.MessageRetracted("m"),
    e.UnknownEvent(Raw(b"{}")),
)


def after_the_first(recorder: Recorder) -> tuple[Change, State]:
    """Return the change made by the second call's first event, and the final state."""
    state = initial_state(CONVERSATION)
    changes = [trace(state, fact) for fact in recorder.facts]
    return changes[len(recorder.history[0].facts)], state


def test_only_changes_of_the_list_can_be_undone() -> None:
    assert all(is_undoable(event) for event in UNDOABLE)
    assert not any(is_undoable(event) for event in LASTING)


@pytest.mark.parametrize("event", [*UNDOABLE[1:7], *LASTING, e.TaskAdded(e.AddedTask("1", "again"))])
def test_event_without_effect_is_undone_silently(recorder: Recorder, event: e.AnyEvent) -> None:
    recorder.add()
    recorder.happen([event])
    change, state = after_the_first(recorder)
    run = UndoRun(state, 5, lambda _task: 0, lambda _task, _at: 0)
    assert not list(undo_change(run, change))
    assert (run.events, run.lines) == ([], [])
