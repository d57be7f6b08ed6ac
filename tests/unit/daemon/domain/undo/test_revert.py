"""Undo of one call, redo and revert, where no newer change depends on it."""

from random import Random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, random_call, strip_stamps
from punchlistd.domain.commands import Decision

C: dict[str, Any] = {"conversation": CONVERSATION}


def refused(recorder: Recorder, actor: str = "ann", **how: Any) -> dict[str, Any]:
    decision = recorder.call(p.ListUndo(**C, whole=True, **how), actor)
    assert isinstance(decision, Rejection), decision
    return {"kind": decision.kind, **decision.data}


def shape(recorder: Recorder) -> list[Any]:
    """Return the parts of a list that people see, without change times, versions, claim numbers or time spent."""
    hidden = {"updated_at", "version", "status_changed_at", "fence", "lease_expires_at", "spent_ms"}
    tasks = [
        {name: value for name, value in each.items() if name not in hidden} for each in strip_stamps(recorder.state)
    ]
    for each in tasks:
        each["notes"] = [(note.actor, note.text) for note in each.get("notes", ())]
    return tasks


def test_undo_keeps_later_changes_of_others(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskAdd(**C, title="b"), "ann")
    recorder.call(p.TaskDelete(**C, task="2"), "ann")
    recorder.call(p.TaskSetStatus(**C, task="1", status="completed", result_summary="hours of work"), "bob")
    decision = recorder.do(p.ListUndo(**C, of="ann", count=1, whole=True), "ann")
    assert decision.lines == ('restored #2 "b"',)
    assert [task.status for task in recorder.state.ordered()] == ["completed", "pending"]


@pytest.mark.parametrize(
    "newer",
    [
        p.TaskSetStatus(**C, task="1", status="in_progress"),
        p.TaskEdit(**C, task="1", title="better"),
        p.TaskAdd(**C, title="its tests", blocked_by=("1",)),
        p.TaskAdd(**C, title="a part", parent="1"),
        p.TaskNote(**C, task="1", text="seen"),
        p.TaskClaim(**C, task="1", owner="bob"),
    ],
    ids=lambda params: type(params).__name__,
)
def test_undo_keeps_what_others_depend_on(recorder: Recorder, newer: p.Mutation) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(newer, "bob")
    before = recorder.state.version
    assert refused(recorder, of="ann", count=1) == {
        **{"kind": "undo_conflict", "call": 1, "newer": 3, "actor": "bob", "task": "1"}
    }
    assert refused(recorder, call=2)["newer"] == 3
    assert recorder.state.version == before


def test_completion_stays_once_an_unblocked_task_started(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskAdd(**C, title="b", blocked_by=("1",)), "ann")
    recorder.call(p.TaskSetStatus(**C, task="1", status="completed"), "ann")
    recorder.call(p.TaskClaim(**C, task="2", owner="bob"), "bob")
    assert refused(recorder, of="ann", count=1) == {
        **{"kind": "undo_conflict", "call": 4, "newer": 5, "actor": "bob", "task": "2"}
    }


def test_undo_never_falls_back_to_an_older_call(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskSetStatus(**C, task="1", status="completed"), "ann")
    recorder.call(p.TaskSetStatus(**C, task="1", status="pending"), "bob")
    assert refused(recorder, of="ann", count=1)["newer"] == 4
    recorder.call(p.TaskSetStatus(**C, task="1", status="failed"), "bob")
    assert refused(recorder, of="ann", count=1)["newer"] == 5
    assert isinstance(recorder.call(p.ListUndo(**C, of="ann", count=1), "ann"), Decision), "without whole it skips"


def test_undo_can_be_undone_repeatedly(recorder: Recorder) -> None:
    for title in "abc":
        recorder.call(p.TaskAdd(**C, title=title), "ann")
    seen = [shape(recorder)]
    for _ in range(2):
        recorder.do(p.ListUndo(**C, of="ann", count=1, whole=True), "ann")
        seen.append(shape(recorder))
    assert [len(each) for each in seen] == [3, 2, 1]
    for wanted in (seen[1], seen[0]):
        recorder.do(p.ListUndo(**C, of="ann", redo=True, whole=True), "ann")
        assert shape(recorder) == wanted
    assert recorder.do(p.ListUndo(**C, of="ann", redo=True, whole=True), "ann").events == ()
    recorder.do(p.ListUndo(**C, of="ann", count=1, whole=True), "ann")
    assert shape(recorder) == seen[1], "a redo can be undone like any call"
    recorder.do(p.ListUndo(**C, of="ann", redo=True, whole=True), "ann")
    assert shape(recorder) == seen[0]


def test_redo_is_rejected_after_restored_task_starts(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskDelete(**C, task="1"), "ann")
    recorder.do(p.ListUndo(**C, of="ann", count=1), "ann")
    recorder.call(p.TaskClaim(**C, task="1", owner="bob"), "bob")
    assert refused(recorder, of="ann", redo=True)["actor"] == "bob"


def test_call_is_undone_by_any_of_its_versions(recorder: Recorder) -> None:
    many = tuple(p.NewTask(title=title) for title in "abc")
    recorder.call(p.TaskAddMany(**C, tasks=many), "ann")
    recorder.call(p.TaskAdd(**C, title="d"), "bob")
    decision = recorder.do(p.ListUndo(**C, call=3), "eve")
    assert (recorder.titles(), decision.touches, decision.undoes) == (["d"], (1,), (1,))
    assert refused(recorder, call=2) == {"kind": "invalid_params", "field": "call"}
    assert refused(recorder, call=99) == {"kind": "invalid_params", "field": "call"}
    undo = recorder.state.version
    assert recorder.do(p.ListUndo(**C, call=undo), "eve").undoes == (-6,)
    assert sorted(recorder.titles()) == ["a", "b", "c", "d"]


def test_claim_can_be_undone_and_expiry_can_not(recorder: Recorder) -> None:
    task = recorder.add("a")
    recorder.call(p.TaskClaim(**C, task="1", owner="ann"), "ann")
    recorder.do(p.ListUndo(**C, of="ann", count=1, whole=True, claims=True), "ann")
    now = recorder.state.tasks["1"]
    assert (now.status, now.owner, now.attempts) == (task.status, task.owner, task.attempts)
    assert not recorder.state.claims
    recorder.do(p.ListUndo(**C, of="ann", redo=True, whole=True, claims=True), "ann")
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].owner) == ("in_progress", "ann")


def test_redo_restores_an_undone_note(recorder: Recorder) -> None:
    recorder.add("a")
    recorder.call(p.TaskNote(**C, task="1", text="seen"), "ann")
    ways: tuple[dict[str, Any], ...] = ({"count": 1}, {"redo": True})
    for how in ways:
        recorder.do(p.ListUndo(**C, of="ann", whole=True, **how), "ann")
    assert [(note.actor, note.text) for note in recorder.state.tasks["1"].notes] == [("ann", "seen")]


def test_conflicting_parameters_are_rejected(recorder: Recorder) -> None:
    recorder.add("a")
    assert refused(recorder, call=1, redo=True)["kind"] == "invalid_params"
    assert refused(recorder, to_version=1, call=1)["kind"] == "invalid_params"
    assert refused(recorder, to_version=99) == {"kind": "invalid_params", "field": "to_version"}


def test_nothing_from_before_an_erasure_is_restored(recorder: Recorder) -> None:
    recorder.add("secret")
    recorder.do(p.ConversationDelete(**C))
    recorder.add("new")
    assert refused(recorder, to_version=2)["field"] == "to_version"
    assert refused(recorder, call=2)["field"] == "call"
    assert not recorder.do(p.ListUndo(**C, of="me", count=2, whole=True), "me").events[1:]
    assert recorder.titles() == []


def test_list_is_reverted_past_a_clear(recorder: Recorder) -> None:
    recorder.add("a")
    recorder.add("b", blocked_by=("1",), labels=("ops",))
    recorder.add("c", parent="2")
    recorder.do(p.TaskMove(**C, task="3", before="1"))
    recorder.do(p.TaskNote(**C, task="2", text="seen"))
    wanted, version = shape(recorder), recorder.state.version
    recorder.do(p.ListClear(**C), "bob")
    recorder.call(p.TaskAdd(**C, title="other"), "bob")
    decision = recorder.do(p.ListUndo(**C, to_version=version), "ann")
    assert (shape(recorder), decision.reverts_to, decision.undoes) == (wanted, version, ())
    recorder.do(p.ListUndo(**C, of="ann", count=1, whole=True), "ann")
    assert recorder.titles() == ["other"], "a revert can be undone like any call"
    assert recorder.do(p.ListUndo(**C, to_version=recorder.state.version)).events == ()


@pytest.mark.parametrize("seed", range(30))
def test_list_can_be_reverted_to_any_version(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    recorder.add("first")
    seen: dict[int, list[Any]] = {recorder.state.version: shape(recorder)}
    for _ in range(30):
        params = random_call(random, recorder.state)
        if random.random() < 0.06:
            params = p.ListClear(**C)
        recorder.call(params, random.choice(("ann", "bob")))
        seen[recorder.state.version] = shape(recorder)
    for _ in range(4):
        version = random.choice(list(seen))
        recorder.do(p.ListUndo(**C, to_version=version))
        check_invariants(recorder.state)
        assert shape(recorder) == seen[version], f"seed {seed}"


@pytest.mark.parametrize("seed", [*range(30), 240])
def test_undo_and_redo_restore_the_list(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(25):
        recorder.call(random_call(random, recorder.state), "ann")
    steps = [shape(recorder)]
    for _ in range(random.randrange(1, 6)):
        if not recorder.state.exists or not recorder.do(p.ListUndo(**C, of="ann", count=1), "ann").events:
            break
        steps.append(shape(recorder))
    for wanted in reversed(steps[:-1]):
        recorder.do(p.ListUndo(**C, of="ann", redo=True, whole=True), "ann")
        check_invariants(recorder.state)
        assert shape(recorder) == wanted, f"seed {seed}"


@pytest.mark.parametrize("keep", [True, False])
def test_reverted_list_has_its_former_claims(recorder: Recorder, keep: bool) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskClaim(**C, task="1", owner="bob", lease_ms=7_000, keep=keep), "bob")
    then = recorder.state.version
    recorder.call(p.TaskSetStatus(**C, task="1", status="paused"), "ann")
    recorder.do(p.ListUndo(**C, to_version=then), "ann")
    (task,), claim = recorder.state.ordered(), recorder.state.claims["1"]
    assert (task.status, task.owner, task.attempts) == ("in_progress", "bob", 1)
    assert (claim.owner, claim.lease_ms, claim.keep) == ("bob", 7_000, True), "no connection holds the claim any more"


def test_redo_removes_a_claim_restored_by_undo(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskClaim(**C, task="1", owner="bob", keep=True), "bob")
    recorder.call(p.TaskSetStatus(**C, task="1", status="completed"), "ann")
    recorder.do(p.ListUndo(**C, of="ann", count=1), "ann")
    assert recorder.state.claims["1"].owner == "bob"
    recorder.do(p.ListUndo(**C, of="ann", count=1, redo=True), "ann")
    assert (recorder.state.tasks["1"].status, recorder.state.claims) == ("completed", {})


def test_task_claimed_by_another_is_not_restored(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskClaim(**C, task="1", owner="bob", keep=True), "bob")
    recorder.call(p.TaskSetStatus(**C, task="1", status="pending"), "ann")
    recorder.call(p.TaskClaim(**C, task="1", owner="carl", keep=True), "carl")
    recorder.do(p.ListUndo(**C, of="ann", count=1), "ann")
    assert recorder.state.claims["1"].owner == "carl"


def test_undo_keeps_the_owner_of_a_newer_claim_that_it_restores(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", owner="bob"), "ann")
    recorder.call(p.TaskClaim(**C, task="1", owner="bob", keep=True), "bob")
    recorder.call(p.TaskSetStatus(**C, task="1", status="paused"), "ann")
    recorder.call(p.ListUndo(**C, of="ann", count=2), "ann")
    (task,) = recorder.state.ordered()
    assert (task.status, task.owner, recorder.state.claims["1"].owner) == ("in_progress", "bob", "bob")
