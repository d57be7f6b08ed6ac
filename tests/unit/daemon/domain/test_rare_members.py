"""Due dates, deferral, labels, links, estimates and notes: in events, undo, restored tasks and snapshots."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import Link, SettingsPatch, Task
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants
from punchlistd.domain.commands import Wake
from punchlistd.domain.decide.edit import MAX_LABELS
from punchlistd.domain.decide.notes import MAX_NOTES, MAX_NOTES_CHARACTERS
from punchlistd.domain.explain import explain
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}
LATER = 1 << 50
MEMBERS: dict[str, Any] = {
    "due": LATER + 1,
    "not_before": LATER,
    "labels": ("ui", "needs review"),
    "links": (Link(kind="path", to="src/a.py:12"), Link(kind="discovered-from", to="1")),
    "estimate_ms": 3_600_000,
}


def edit(recorder: Recorder, **members: Any) -> Any:
    return recorder.call(p.TaskEdit(**C, task="1", **members))


def note(recorder: Recorder, text: str) -> Any:
    return recorder.call(p.TaskNote(**C, task="1", text=text))


def shown(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in MEMBERS}


@pytest.mark.parametrize("member", MEMBERS)
def test_each_is_edited_cleared_and_restored(recorder: Recorder, member: str) -> None:
    recorder.add("a")
    before = getattr(recorder.state.tasks["1"], member)
    edit(recorder, **{member: MEMBERS[member]})
    assert getattr(recorder.state.tasks["1"], member) == MEMBERS[member]
    check_invariants(recorder.state)
    edit(recorder, **{member: None})
    assert getattr(recorder.state.tasks["1"], member) == before
    recorder.do(p.ListUndo(**C))
    assert getattr(recorder.state.tasks["1"], member) == MEMBERS[member]
    check_invariants(recorder.state)


def test_restored_task_has_all_of_them(recorder: Recorder) -> None:
    recorder.add("a", **MEMBERS)
    note(recorder, "seen")
    before = recorder.state.tasks["1"]
    recorder.do(p.TaskDelete(**C, task="1"))
    assert recorder.state.wakes_at is None
    recorder.do(p.ListUndo(**C))
    after = recorder.state.tasks["1"]
    assert (shown(after), after.notes) == (MEMBERS, before.notes)


def test_replacement_updates_the_passed_ones(recorder: Recorder) -> None:
    recorder.add("a", labels=("x",), due=LATER)
    recorder.do(p.ListReplace(**C, tasks=(p.NewTask(title="a", labels=("y",)),)))
    task = recorder.state.tasks["1"]
    assert (task.labels, task.due) == (("y",), LATER)


def test_labels_are_added_and_removed_once(recorder: Recorder) -> None:
    recorder.add("a", labels=("x", "x", "y"))
    assert recorder.state.tasks["1"].labels == ("x", "y")
    edit(recorder, add_labels=("z", "y"), remove_labels=("x", "never"))
    assert recorder.state.tasks["1"].labels == ("y", "z")
    assert edit(recorder, add_labels=("z",)).events == ()
    refused = edit(recorder, add_labels=tuple(map(str, range(MAX_LABELS - 1))))
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["limit"]) == ("limit_exceeded", "labels")


def test_notes_have_actor_and_time_and_are_undoable(recorder: Recorder) -> None:
    recorder.add("a")
    for text in ("first", "second", "third"):
        note(recorder, text)
    recorder.call(p.ListUndo(**C))
    notes = recorder.state.tasks["1"].notes
    assert [(each.text, each.actor) for each in notes] == [("first", "me"), ("second", "me")]
    assert notes[0].at and notes[0].version < notes[1].version
    refused = recorder.call(p.TaskNote(**C, task="9", text="x"))
    assert isinstance(refused, Rejection) and refused.kind == "not_found"


def test_notes_are_limited_in_number_and_size(recorder: Recorder) -> None:
    recorder.add("a")
    for _ in range(MAX_NOTES):
        note(recorder, "x")
    refused = note(recorder, "x")
    assert isinstance(refused, Rejection) and refused.data["limit"] == "notes"
    recorder = Recorder()
    recorder.add("a")
    for _ in range(MAX_NOTES_CHARACTERS // 8_192):
        note(recorder, "x" * 8_192)
    refused = note(recorder, "x")
    assert isinstance(refused, Rejection) and refused.data["limit"] == "notes_characters"


def test_deferred_task_is_not_claimable(recorder: Recorder) -> None:
    recorder.add("a", not_before=LATER)
    assert recorder.state.counts().ready == 0
    assert recorder.do(p.TaskClaim(**C, owner="o")).events == ()
    refused = recorder.call(p.TaskClaim(**C, owner="o", task="1"))
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["not_before"]) == ("blocked", LATER)
    (reason,) = explain(recorder.state, recorder.state.tasks["1"]).reasons
    assert (reason.kind, reason.not_before) == ("deferred", LATER)
    recorder.do(p.TaskClaim(**C, owner="o", task=None))
    assert not isinstance(recorder.set_status("1", "in_progress"), Rejection)


def test_only_due_tasks_wake_and_start_list(recorder: Recorder) -> None:
    recorder.do(p.ConversationOpen(**C, settings=SettingsPatch(execution="serial")))
    at = recorder.state.updated_at
    recorder.add("a", not_before=at + 10)
    recorder.add("b", not_before=LATER)
    while recorder.state.updated_at < at + 10:
        assert recorder.state.tasks["1"].status == "pending"
        recorder.do(Wake(**C))
        recorder.do(p.ConversationConfigure(**C, title=f"{recorder.state.version}"))
    recorder.do(Wake(**C))
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].not_before) == ("in_progress", None)
    assert recorder.state.wakes_at == LATER
    check_invariants(recorder.state)


def test_past_time_defers_nothing(recorder: Recorder) -> None:
    recorder.add("a", not_before=1)
    recorder.add("b")
    recorder.do(p.TaskEdit(**C, task="2", not_before=1))
    assert recorder.state.counts().ready == 2


def test_imported_note_keeps_author_time_and_importer(recorder: Recorder) -> None:
    brought = (p.WrittenNote(text="hello", author="ann", at=5), p.WrittenNote(text="hm", at=6), "mine")
    recorder.do(p.TaskAddMany(**C, tasks=(p.NewTask(title="a", notes=brought),)))
    notes = recorder.state.tasks["1"].notes
    assert [(one.text, one.actor, one.at, one.imported_by) for one in notes] == [
        ("hello", "ann", 5, "me"),
        ("hm", "me", 6, "me"),
        ("mine", "me", recorder.at, ""),
    ]
    loaded = load_state(CONVERSATION, dump_state(recorder.state))
    assert loaded.tasks["1"].notes == notes
    version = recorder.state.version
    recorder.do(p.TaskDelete(**C, task="1"))
    recorder.do(p.ListUndo(**C))
    assert recorder.state.tasks["1"].notes == notes
    call = recorder.do(p.TaskNote(**C, task="1", text="more"))
    assert call.events
    recorder.do(p.ListUndo(**C))
    recorder.do(p.ListReplace(**C, tasks=(p.NewTask(title="a", notes=(p.WrittenNote(text="later", author="bob"),)),)))
    assert recorder.state.tasks["1"].notes[-1].actor == "bob"
    recorder.do(p.ListUndo(**C, to_version=version))
    assert [one.actor for one in recorder.state.tasks["1"].notes] == ["ann", "me", "me"]
    recorder.do(p.ListUndo(**C, redo=True))


def test_long_imported_notes_count_like_others(recorder: Recorder) -> None:
    many = tuple(p.WrittenNote(text="x", author="ann") for _ in range(MAX_NOTES))
    recorder.do(p.TaskAddMany(**C, tasks=(p.NewTask(title="a", notes=many),)))
    refused = note(recorder, "x")
    assert isinstance(refused, Rejection) and refused.data["limit"] == "notes"
