"""Queries of a state: the next task, ready tasks, counts."""

from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.things import Counts
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants


def next_id(recorder: Recorder) -> str | None:
    task = recorder.state.next_ready()
    return None if task is None else task.id


def test_next_task_is_by_priority_then_order(recorder: Recorder) -> None:
    for priority in ("low", "normal", "urgent", "high", "urgent"):
        recorder.add(priority=priority)
    order: list[str] = []
    while (name := next_id(recorder)) is not None:
        order.append(name)
        recorder.set_status(name, "completed")
    assert order == ["3", "5", "4", "2", "1"]


def test_next_task_follows_moves_and_priorities(recorder: Recorder) -> None:
    for _ in range(3):
        recorder.add()
    assert next_id(recorder) == "1"
    recorder.do(p.TaskMove(conversation=CONVERSATION, task="3", before="1"))
    assert next_id(recorder) == "3"
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", priority="high"))
    assert next_id(recorder) == "2"
    recorder.do(p.TaskDelete(conversation=CONVERSATION, task="2"))
    assert next_id(recorder) == "3"


def test_blocked_tasks_and_held_tasks_children_are_unready(recorder: Recorder) -> None:
    recorder.add()
    recorder.add(parent="1")
    recorder.add(blocked_by=("2",))
    assert recorder.state.counts() == Counts(pending=3, blocked=1, ready=1)
    recorder.set_status("1", "paused")
    assert next_id(recorder) is None
    assert recorder.state.counts() == Counts(pending=2, paused=1, blocked=1, ready=0)
    recorder.set_status("1", "pending")
    assert next_id(recorder) == "2"
    recorder.set_status("2", "completed")
    assert next_id(recorder) == "1"
    assert recorder.state.counts() == Counts(pending=2, completed=1, ready=2)
    assert recorder.state.remaining == 2


def test_ready_queue_does_not_grow_with_history(recorder: Recorder) -> None:
    recorder.add()
    recorder.add(priority="low")
    assert next_id(recorder) == "1"
    for _ in range(1_500):
        recorder.set_status("2", "paused")
        recorder.set_status("2", "pending")
    assert len(recorder.state._queues.get(None, ())) < 1_100  # pyright: ignore[reportPrivateUsage]
    assert next_id(recorder) == "1"
    check_invariants(recorder.state)


def test_view_shows_the_conversation(recorder: Recorder) -> None:
    recorder.do(p.ConversationOpen(conversation=CONVERSATION, title="t", user="u"))
    recorder.add()
    view = recorder.state.conversation_view()
    assert (view.title, view.user, view.version, view.counts.pending) == ("t", "u", 2, 1)
    assert (view.created_at, view.updated_at) == (1_007, 1_014)


def test_path_ends_at_a_cycle_and_after_eight(recorder: Recorder) -> None:
    for number in range(1, 13):
        recorder.add(f"t{number}", parent=str(number - 1) if number > 1 else None)
    path = recorder.state.path(recorder.state.tasks["12"])
    assert [one.id for one in path] == ["4", "5", "6", "7", "8", "9", "10", "11"]
    assert recorder.state.path(recorder.state.tasks["1"]) == ()
    recorder.state.tasks["1"] = replace(recorder.state.tasks["1"], parent="3")  # only a damaged log contains a cycle
    assert [one.id for one in recorder.state.path(recorder.state.tasks["3"])] == ["1", "2"]


def test_copy_has_its_own_reservations(recorder: Recorder) -> None:
    recorder.add(owner="ann")
    recorder.add(owner="ann")
    copy = recorder.state.copy()
    recorder.do(p.TaskDelete(conversation=CONVERSATION, task="1"))
    check_invariants(copy)
    assert copy.reserved == {"ann": {"1": None, "2": None}}
