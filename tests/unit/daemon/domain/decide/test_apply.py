"""list.apply."""

from random import Random
from typing import Any

import msgspec
import pytest

from punchlist_schemas import params as p
from punchlist_schemas.changes import CALL_PARAMS, CHANGE_PARAMS, CHANGES, ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ListCleared
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, random_call, strip_stamps
from punchlistd.domain.decide.apply import RULES, expand_changes
from punchlistd.domain.responses import respond


def changes(*asked: dict[str, Any], **members: Any) -> ListApply:
    return msgspec.convert({"conversation": CONVERSATION, "changes": asked, **members}, ListApply)


def add(title: str, **members: Any) -> dict[str, Any]:
    return {"method": "task.add", "title": title, **members}


def edit(task: str, **members: Any) -> dict[str, Any]:
    return {"method": "task.edit", "task": task, **members}


def status(task: str, to: str) -> dict[str, Any]:
    return {"method": "task.set_status", "task": task, "status": to}


def move(task: str, **place: Any) -> dict[str, Any]:
    return {"method": "task.move", "task": task, **place}


def delete(*tasks: str) -> dict[str, Any]:
    return {"method": "task.delete", "tasks": tasks}


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    for title in "abc":
        recorder.add(title)
    return recorder


def test_each_change_sees_the_changes_before_it(recorder: Recorder) -> None:
    recorder.do(
        changes(
            add("x", after="1", ref="new"),
            edit("new", description="text", add_blocked_by=["2"]),
            move("3", before="new"),
            delete("2"),
            status("new", "completed"),
            {"method": "task.note", "task": "1", "text": "seen"},
        )
    )
    assert recorder.titles() == ["a", "c", "x"]
    new = recorder.state.tasks["4"]
    assert (new.description, new.status, new.blocked_by) == ("text", "completed", ())
    assert recorder.state.tasks["1"].notes[0].text == "seen"
    check_invariants(recorder.state)


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        (edit("9", title="x"), "not_found"),
        (move("1"), "invalid_params"),
        (edit("1", add_blocked_by=["1"]), "dependency_cycle"),
        (status("2", "in_progress"), "blocked"),
        (delete(), "invalid_params"),
        (add("y", ref="x"), "invalid_params"),
        (edit("later", title="x"), "not_found"),
    ],
)
def test_first_impossible_change_rejects_all(recorder: Recorder, refused: dict[str, Any], kind: str) -> None:
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="2", add_blocked_by=("1",)))
    before, version = strip_stamps(recorder.state), recorder.state.version
    answer = recorder.call(
        changes(add("x", ref="x"), edit("1", title="n"), refused, add("z", ref="later"), delete("7"))
    )
    assert isinstance(answer, Rejection)
    assert (answer.kind, answer.data["change"]) == (kind, 2)
    assert answer.message.startswith(f"changes[2] ({refused['method']}): ")
    assert (strip_stamps(recorder.state), recorder.state.version) == (before, version)


def test_stale_version_rejects_all_changes(recorder: Recorder) -> None:
    answer = recorder.call(changes(edit("1", title="n"), expect_version=2))
    assert isinstance(answer, Rejection) and answer.kind == "version_conflict" and "change" not in answer.data


def test_changes_are_undone_as_one_call(recorder: Recorder) -> None:
    before = strip_stamps(recorder.state)
    recorder.do(changes(add("x", before="1"), edit("1", title="n"), move("2", before="1"), delete("3", "1")))
    recorder.do(p.ListUndo(conversation=CONVERSATION))
    assert strip_stamps(recorder.state) == before


def one_by_one(recorder: Recorder, params: ListApply) -> tuple[Recorder, int | None]:
    """Return the result of the changes as single calls at the same time, and the index of the first rejected one."""
    alone, calls = Recorder(), expand_changes(recorder.state, params)
    alone.state, alone.seq = recorder.state.copy(), recorder.seq
    for place, call in enumerate(calls):
        assert not isinstance(call, Rejection)
        alone.at = recorder.at
        if isinstance(alone.call(call), Rejection):
            return alone, place
    return alone, None


@pytest.mark.parametrize("_round", range(20))
def test_changes_equal_single_calls_and_undo_reverts_all(_round: int) -> None:
    seed = Random().randrange(1 << 32)
    print(f"seed {seed}")
    random, recorder = Random(seed), Recorder()
    never = SettingsPatch(complete_parents="never")
    recorder.do(p.ConversationConfigure(conversation=CONVERSATION, settings=never))
    made = 0
    while made < 15:
        params = random_call(random, recorder.state)
        if isinstance(params, p.ConversationConfigure):
            continue  # consequences of a call come after all of its changes
        if not isinstance(params, ListApply):
            recorder.call(params)
            continue
        before, (alone, first) = strip_stamps(recorder.state), one_by_one(recorder, params)
        answer = recorder.call(params)
        if isinstance(answer, Rejection):
            assert (answer.data["change"], strip_stamps(recorder.state)) == (first, before)
            continue
        assert first is None and strip_stamps(recorder.state) == strip_stamps(alone.state)
        check_invariants(recorder.state)
        if answer.events:
            made += 1
            recorder.do(p.ListUndo(conversation=CONVERSATION, claims=True))
            assert strip_stamps(recorder.state) == before


def test_several_claims_are_one_call() -> None:
    recorder = Recorder()
    recorder.add("a")
    recorder.add("b")
    claims = [{"method": "task.claim", "task": task, "owner": "ann", "keep": True} for task in "12"]
    recorder.call(changes(*claims), "ann")
    assert [held.owner for held in recorder.state.claims.values()] == ["ann", "ann"]
    recorder.do(p.ListUndo(conversation=CONVERSATION, of="ann", count=1, whole=True, claims=True), "ann")
    assert (recorder.state.claims, [task.status for task in recorder.state.ordered()]) == ({}, ["pending", "pending"])


@pytest.mark.parametrize("members", [{}, {"task": "1", "wait_ms": 1}])
def test_claim_among_changes_must_name_its_task(members: dict[str, Any]) -> None:
    recorder = Recorder()
    recorder.add("a")
    refused = recorder.call(changes({"method": "task.claim", "owner": "ann", **members}))
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["change"]) == ("invalid_params", 0)


def test_auto_clear_considers_all_changes() -> None:
    recorder = Recorder()
    recorder.do(p.ConversationConfigure(conversation=CONVERSATION, settings=SettingsPatch(auto_clear="when_done")))
    recorder.add("a")
    made = recorder.do(changes(status("1", "completed"), add("b")))
    assert recorder.titles() == ["a", "b"] and not any(isinstance(event, ListCleared) for event in made.events)
    recorder.do(changes(edit("1", title="c"), status("2", "completed")))
    assert recorder.titles() == []


def test_serial_list_starts_next_task_after_all_changes() -> None:
    recorder = Recorder()
    recorder.do(p.ConversationConfigure(conversation=CONVERSATION, settings=SettingsPatch(execution="serial")))
    for title in "abc":
        recorder.add(title)
    recorder.do(changes(status("1", "completed"), move("3", before="2")))
    assert [(task.title, task.status) for task in recorder.state.ordered()] == [
        ("a", "completed"),
        ("c", "in_progress"),
        ("b", "pending"),
    ]


def test_response_names_added_and_deleted_tasks(recorder: Recorder) -> None:
    asked = changes(add("x"), add("y"), edit("1", title="n"), delete("2", "5"))
    made = recorder.do(asked)
    answer: Any = respond(asked, recorder.state, made.events, recorder.seq)
    assert (answer.added, answer.deleted) == (("4", "5"), ("2", "5"))
    assert [task.title for task in answer.tasks] == ["x", "n"]


def test_quotes_are_stored_in_events_that_allow_them(recorder: Recorder) -> None:
    made = recorder.do(changes(edit("1", title="n"), delete("2"), quote="yes, go on"))
    assert [getattr(event, "quote", None) for event in made.events] == ["yes, go on", "yes, go on"]


def test_every_change_has_a_rule_and_parameters() -> None:
    assert set(RULES) == set(CHANGE_PARAMS.values()) == set(CHANGES.values())
    for struct, params in CHANGES.items():
        own = set(struct.__struct_fields__) - {"ref"}
        assert own == set(params.__struct_fields__) - CALL_PARAMS
