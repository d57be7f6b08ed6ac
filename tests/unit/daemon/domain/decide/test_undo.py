"""list.undo: the changes it reverts, keeps and reports."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Claimed
from punchlist_schemas.things import SettingsPatch, Undone
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, strip_stamps
from punchlistd.domain.commands import Decision

C: dict[str, Any] = {"conversation": CONVERSATION}


def undo(**members: Any) -> p.ListUndo:
    return p.ListUndo(**C, **members)


@pytest.fixture
def recorder() -> Recorder:
    """Tasks 1 to 3. Each is a child of the previous one, and is blocked by it."""
    recorder = Recorder()
    recorder.add("one", metadata={"k": 1})
    recorder.add("two", parent="1", blocked_by=("1",))
    recorder.add("three", parent="2", blocked_by=("2",))
    return recorder


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        (p.TaskAdd(**C, title="new"), ('removed #4 "new"',)),
        (p.TaskEdit(**C, task="1", title="uno", owner="x"), ('#1 "one": title, owner restored',)),
        (
            p.TaskEdit(**C, task="1", due_day="2026-12-24", active_form="doing one", estimate_ms=5),
            ('#1 "one": active form, due date, estimate restored',),
        ),
        (p.TaskEdit(**C, task="1", metadata={"k": None, "n": 2}), ('#1 "one": metadata restored',)),
        (p.TaskEdit(**C, task="3", parent=None), ('#3 "three": parent restored',)),
        (p.TaskEdit(**C, task="3", add_blocked_by=("1",)), ('#3 "three": no longer waits for #1',)),
        (p.TaskEdit(**C, task="3", remove_blocked_by=("2",)), ('#3 "three": waits for #2 again',)),
        (p.TaskMove(**C, task="3", before="1"), ('#3 "three": moved back',)),
        (p.TaskSetStatus(**C, task="1", status="completed"), ('#1 "one": completed → pending',)),
        (p.TaskSetStatus(**C, task="1", status="pending", fail_reason="x"), ('#1 "one": summary and reason restored',)),
        (p.TaskDelete(**C, task="2"), ('restored #2 "two"',)),
        (p.TaskDelete(**C, tasks=("1", "2")), ('restored #2 "two"', 'restored #1 "one"')),
        (p.ListClear(**C), ("restored 3 cleared tasks",)),
        (p.ConversationConfigure(**C, title="t"), ("the list: title or settings restored",)),
    ],
)
def test_last_call_is_undone_and_reported(recorder: Recorder, call: p.Mutation, lines: tuple[str, ...]) -> None:
    before, title = strip_stamps(recorder.state), recorder.state.title
    recorder.do(call)
    # A line in the report has the title that the list shows when the report is made.
    assert tuple(line.replace("uno", "one") for line in recorder.do(undo()).lines) == lines
    assert (strip_stamps(recorder.state), recorder.state.title) == (before, title)
    check_invariants(recorder.state)


@pytest.mark.parametrize("preview", [False, True])
def test_undo_in_a_missing_conversation_is_rejected(preview: bool) -> None:
    recorder = Recorder()
    missing = {"what": "conversation", "id": CONVERSATION}
    refusal = recorder.decide(undo(preview=preview))
    assert isinstance(refusal, Rejection)
    assert (refusal.kind, refusal.data) == ("not_found", missing)
    recorder.add()
    recorder.do(p.ConversationDelete(**C))
    refusal = recorder.decide(undo(preview=preview))
    assert isinstance(refusal, Rejection)
    assert refusal.data == missing


def test_second_undo_goes_one_call_further_back(recorder: Recorder) -> None:
    assert recorder.do(undo()).undoes == (4,)
    assert recorder.do(undo()).undoes == (3,)
    recorder.add("four")
    assert recorder.do(undo(count=2)).undoes == (7, 1)
    assert recorder.ids() == []
    assert recorder.do(undo()) == Decision()


def test_undo_skips_openings_messages_and_sessions(recorder: Recorder) -> None:
    recorder.do(p.MessageAppend(**C, role="r", content=1))
    recorder.do(p.ConversationAttach(**C, session="s"))
    recorder.happen([Claimed("1", "o", 5)])
    assert recorder.do(undo()).undoes == (4,)
    assert recorder.state.sessions == ("s",)


def test_undo_of_one_actor_keeps_other_changes(recorder: Recorder) -> None:
    recorder.call(p.TaskEdit(**C, task="1", title="uno"), "bob")
    recorder.call(p.TaskAdd(**C, title="bob's"), "bob")
    recorder.call(p.TaskEdit(**C, task="1", owner="me"), "me")
    decision = recorder.do(undo(actor="bob"), "bob")
    assert decision.lines == ('removed #4 "bob\'s"', '#1 "uno": title restored')
    assert (recorder.state.tasks["1"].title, recorder.state.tasks["1"].owner) == ("one", "me")
    assert recorder.do(undo(actor="nobody")) == Decision()
    assert recorder.do(undo(actor="me", count=1)).lines == ('#1 "one": owner restored',)


@pytest.mark.parametrize(
    ("mine", "theirs", "line"),
    [
        (
            p.TaskEdit(**C, task="1", title="x"),
            p.TaskEdit(**C, task="1", title="y"),
            'skipped #1 "x": title changed since',
        ),
        (
            p.TaskEdit(**C, task="1", metadata={"k": 2}),
            p.TaskEdit(**C, task="1", metadata={"k": 3}),
            'skipped #1 "one": metadata.k changed since',
        ),
        (p.TaskEdit(**C, task="1", title="x"), p.TaskDelete(**C, task="1"), 'skipped #1 "x": it is gone'),
        (
            p.TaskMove(**C, task="1", to_end=True),
            p.TaskMove(**C, task="1", after="2"),
            'skipped #1 "one": it was moved since',
        ),
        (p.TaskMove(**C, task="1", to_end=True), p.TaskDelete(**C, task="1"), 'skipped #1 "one": it is gone'),
        (
            p.TaskSetStatus(**C, task="1", status="in_progress"),
            p.TaskSetStatus(**C, task="1", status="failed"),
            'skipped #1 "one": its status changed since',
        ),
        (
            p.TaskSetStatus(**C, task="1", status="in_progress"),
            p.TaskDelete(**C, task="1"),
            'skipped #1 "one": it is gone',
        ),
        (p.TaskAdd(**C, title="x"), p.TaskEdit(**C, task="4", owner="y"), 'skipped #4 "x": it changed since'),
        (
            p.TaskEdit(**C, task="3", remove_blocked_by=("2",)),
            p.TaskEdit(**C, task="2", add_blocked_by=("3",)),
            'skipped #3 "three": it can\'t wait for #2 again',
        ),
        (
            p.TaskEdit(**C, task="2", parent=None),
            p.TaskEdit(**C, task="1", parent="2"),
            'skipped #2 "two": parent changed since',
        ),
        (p.TaskAdd(**C, title="x"), p.ListClear(**C), 'skipped #4 "x": the list was cleared since'),
        (
            p.ConversationConfigure(**C, title="x"),
            p.ConversationConfigure(**C, title="y"),
            "skipped the conversation's title: it changed since",
        ),
        (
            p.ConversationConfigure(**C, settings=SettingsPatch(max_attempts=1)),
            p.ConversationConfigure(**C, settings=SettingsPatch(max_attempts=2)),
            "skipped the conversation's settings: they changed since",
        ),
    ],
)
def test_later_changes_of_others_are_kept_and_reported(
    recorder: Recorder, mine: p.Mutation, theirs: p.Mutation, line: str
) -> None:
    recorder.call(mine, "ann")
    recorder.call(theirs, "bob")
    decision = recorder.do(undo(actor="ann"))
    assert (decision.events, decision.undoes, decision.lines) == ((), (), (line,))


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (p.TaskAdd(**C, title="x"), p.TaskDelete(**C, task="4")),
        (p.TaskEdit(**C, task="1", title="x"), p.TaskEdit(**C, task="1", title="one")),
        (p.TaskEdit(**C, task="1", metadata={"k": 2}), p.TaskEdit(**C, task="1", metadata={"k": 1})),
        (p.TaskSetStatus(**C, task="1", status="paused"), p.TaskSetStatus(**C, task="1", status="pending")),
        (p.TaskEdit(**C, task="3", add_blocked_by=("1",)), p.TaskEdit(**C, task="3", remove_blocked_by=("1",))),
        (p.TaskEdit(**C, task="3", remove_blocked_by=("2",)), p.TaskEdit(**C, task="3", add_blocked_by=("2",))),
    ],
)
def test_restored_state_is_not_reported(recorder: Recorder, mine: p.Mutation, theirs: p.Mutation) -> None:
    recorder.call(mine, "ann")
    recorder.call(theirs, "bob")
    assert recorder.do(undo(actor="ann")) == Decision()


def test_partly_undone_call_can_be_undone_later(recorder: Recorder) -> None:
    recorder.call(p.TaskEdit(**C, task="1", title="x", owner="ann"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", title="y"), "bob")
    first = recorder.do(undo(actor="ann"))
    assert first.lines == ('#1 "y": owner restored', 'skipped #1 "x": title changed since')
    assert first.undoes == (0,)
    recorder.do(undo(actor="bob"))
    assert recorder.do(undo(actor="ann")).lines == ('#1 "x": title restored',)


def members(changes: tuple[Undone, ...]) -> list[tuple[str, ...]]:
    return [(change.task, change.text, change.skipped, change.by) for change in changes]


def test_members_of_a_change_name_whose_it_was(recorder: Recorder) -> None:
    recorder.call(p.TaskEdit(**C, task="1", title="x", owner="ann"), "ann")
    at, version = recorder.at, recorder.state.version
    recorder.call(p.TaskEdit(**C, task="1", title="y"), "bob")
    restored, skipped = recorder.do(undo(actor="ann")).changes
    assert members((restored, skipped)) == [
        ("1", "owner restored", "", "ann"),
        ("1", "title changed since", "changed", "bob"),
    ]
    assert (restored.at, restored.version, skipped.at, skipped.version) == (at, version, at + 7, version + 1)


@pytest.mark.parametrize(
    ("mine", "theirs", "text", "kind"),
    [
        (p.TaskEdit(**C, task="1", title="x"), p.TaskEdit(**C, task="1", title="y"), "title changed since", "changed"),
        (p.TaskEdit(**C, task="1", title="x"), p.TaskDelete(**C, task="1"), "it is gone", "deleted"),
        (p.TaskEdit(**C, task="1", title="x"), p.ListClear(**C), "the list was cleared since", "deleted"),
        (p.TaskAdd(**C, title="new"), p.TaskClaim(**C, task="4", owner="bob"), "it changed since", "claimed"),
        (
            p.TaskSetStatus(**C, task="1", status="paused"),
            p.TaskSetStatus(**C, task="1", status="failed"),
            "its status changed since",
            "changed",
        ),
    ],
)
def test_members_of_a_skipped_change_name_what_is_in_the_way(
    recorder: Recorder, mine: p.Mutation, theirs: p.Mutation, text: str, kind: str
) -> None:
    recorder.call(mine, "ann")
    recorder.call(theirs, "bob")
    decision = recorder.do(undo(actor="ann", count=1))
    assert (decision.events, [change[1:] for change in members(decision.changes)]) == ((), [(text, kind, "bob")])
    assert decision.changes[0].version == recorder.state.version


def test_reused_id_keeps_a_cleared_task_away(recorder: Recorder) -> None:
    recorder.call(p.ListClear(**C), "ann")
    recorder.call(p.TaskAdd(**C, title="other"), "bob")
    assert recorder.do(undo(actor="ann")).lines == (
        "restored 2 cleared tasks",
        'skipped #1 "one": its id is in use again',
    )
    assert [(task["title"], task["blocked_by"]) for task in strip_stamps(recorder.state)] == [
        ("other", ()),
        ("two", ()),
        ("three", ("2",)),
    ]
    check_invariants(recorder.state)


def test_restored_task_returns_next_to_its_old_place(recorder: Recorder) -> None:
    recorder.call(p.TaskMove(**C, task="2", before="1"), "me")
    recorder.call(p.TaskDelete(**C, task="2"), "ann")
    recorder.call(p.TaskMove(**C, task="3", before="1"), "bob")
    recorder.do(undo(actor="ann"))
    assert recorder.ids() == ["3", "2", "1"]
    recorder.add("between", after="3")
    assert recorder.ids() == ["3", "4", "2", "1"]
    check_invariants(recorder.state)


def test_restored_task_closes_no_cycle(recorder: Recorder) -> None:
    recorder.call(p.TaskDelete(**C, task="2"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", add_blocked_by=("3",)), "bob")
    recorder.do(undo(actor="ann"))
    assert recorder.state.tasks["2"].blocked_by == ("1",)
    assert recorder.state.tasks["3"].blocked_by == ()


def test_undone_completion_restores_an_auto_cleared_list() -> None:
    recorder = Recorder()
    recorder.do(p.ConversationOpen(**C, settings=SettingsPatch(auto_clear="when_done")))
    recorder.add("only")
    recorder.set_status("1", "completed")
    decision = recorder.do(undo())
    assert decision.lines == ("restored 1 cleared task", '#1 "only": completed → pending')
    assert recorder.state.tasks["1"].status == "pending"


def test_undo_skips_calls_without_changes(recorder: Recorder) -> None:
    recorder.do(p.TaskDelete(**C, tasks=("1", "2", "3")))
    recorder.do(p.ListClear(**C))
    assert len(recorder.do(undo()).lines) == 3
    assert recorder.ids() == ["1", "2", "3"]


def test_undo_includes_the_named_further_actors() -> None:
    recorder = Recorder()
    for actor in ("ann", "chat/1", "claude"):
        recorder.do(p.TaskAdd(**C, title=f"by {actor}", actor=actor), actor=actor)
    recorder.do(p.TaskEdit(**C, task="1", title="better", actor="chat/1"), actor="chat/1")
    alone = recorder.call(undo(of="ann", count=1, whole=True, preview=True))
    assert isinstance(alone, Rejection) and alone.kind == "undo_conflict", "a chat that is not named is another actor"
    lines = recorder.do(undo(of="ann", also=("chat/1",), whole=True)).lines
    assert lines == ('#1 "better": title restored', 'removed #2 "by chat/1"', 'removed #1 "by ann"')
    assert [task.title for task in recorder.state.tasks.values()] == ["by claude"]
