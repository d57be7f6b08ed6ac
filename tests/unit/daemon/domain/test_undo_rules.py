"""States restored by undo, redo and revert obey the rules for calls. A failing case prints its seed."""

from random import Random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import StatusChanged, TaskEdited
from punchlist_schemas.things import Gate, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, replay
from punchlistd.domain.commands import Decision
from punchlistd.domain.decide.serial import find_current
from punchlistd.domain.state import HELD, State
from punchlistd.domain.undo.inverse import SKIPPED

C: dict[str, Any] = {"conversation": CONVERSATION}
ACTORS = ("ann", "bob", "cy")


def status(task: str, to: Any, **more: Any) -> p.TaskSetStatus:
    return p.TaskSetStatus(**C, task=task, status=to, **more)


def claim(task: str, owner: str = "bot") -> p.TaskClaim:
    return p.TaskClaim(**C, task=task, owner=owner, keep=True)


def undo(**how: Any) -> p.ListUndo:
    members: dict[str, Any] = {"of": "ann", "count": 1, "whole": True, "claims": True, **how}
    return p.ListUndo(**C, **members)


def test_a_reopened_blocker_keeps_a_task_pending(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.add("B", blocked_by=("1",))
    recorder.call(status("1", "completed"), "ann")
    recorder.call(claim("2"), "bot")
    recorder.call(status("2", "completed", result_summary="4 h of work"), "bot")
    recorder.call(status("1", "pending"), "ann")
    done = recorder.do(undo(of="bot"), "ann")
    assert (recorder.state.tasks["2"].status, recorder.state.claims) == ("pending", {})
    assert done.lines[-1] == '#2 "B": pending, since it waits for #1'


def test_a_serial_list_keeps_its_running_task(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.add("B")
    recorder.call(status("1", "in_progress"), "ann")
    recorder.call(status("1", "paused"), "ann")
    recorder.call(claim("2"), "bot")
    recorder.call(p.ConversationConfigure(**C, settings=SettingsPatch(execution="serial")), "bob")
    done = recorder.do(undo(), "ann")
    assert list(recorder.state.running) == ["2"]
    assert done.lines[-1] == '#1 "A": pending, since #2 is in progress, and this list runs one task at a time'


def test_a_paused_parent_ends_a_returned_claim(recorder: Recorder) -> None:
    recorder.add("parent")
    recorder.add("child", parent="1")
    recorder.call(claim("2"), "bot")
    recorder.call(status("2", "completed"), "ann")
    recorder.call(status("1", "paused"), "bob")
    recorder.do(undo(), "ann")
    assert (recorder.state.tasks["2"].status, recorder.state.claims) == ("pending", {})


def test_a_gate_holds_for_a_returned_completion(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(status("1", "completed", result_summary="r"), "ann")
    recorder.call(status("1", "pending"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", gate=Gate(yes=True)), "bob")
    recorder.do(undo(), "ann")
    task = recorder.state.tasks["1"]
    assert (task.status, task.waits_for, task.result_summary) == ("paused", "yes", "r")


def test_reverted_claim_is_complete(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(claim("1"), "bot")
    recorder.call(undo(to_version=2, of=None, count=None), "ann")
    assert recorder.state.tasks["1"].status == "pending"
    recorder.do(undo(), "ann")
    task, held = recorder.state.tasks["1"], recorder.state.claims["1"]
    assert (task.status, task.owner, held.owner) == ("in_progress", "bot", "bot")


def test_revert_restores_the_claim_of_an_old_log(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(claim("1"), "bot")
    earlier = (TaskEdited("1", owner=""), StatusChanged("1", "in_progress", "pending", attempts=0))
    recorder.happen(earlier, (0,), "ann")
    recorder.do(undo(of=None, call=recorder.state.version, redo=False), "ann")
    task, held = recorder.state.tasks["1"], recorder.state.claims["1"]
    assert (task.status, task.owner, held.owner) == ("in_progress", "bot", "bot")


def test_revert_ends_another_owners_claim(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(claim("1", "bot"), "bot")
    then = recorder.state.version
    recorder.call(p.TaskRelease(**C, task="1", owner="bot"), "bot")
    recorder.call(claim("1", "cat"), "cat")
    recorder.do(undo(to_version=then, of=None, count=None), "ann")
    assert (recorder.state.tasks["1"].owner, recorder.state.claims["1"].owner) == ("bot", "bot")


def test_undone_completion_names_its_losses(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(claim("1"), "bot")
    recorder.at += 2 * 3_600_000
    recorder.call(status("1", "completed", result_summary="tests pass"), "bot")
    done = recorder.do(undo(of="bot", preview=True), "ann")
    assert done.lines == ("#1 \"A\": completed → in_progress; lost: its result 'tests pass', 2 h 0 min of work",)


def test_undone_change_blocks_no_other_undo(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="A"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", title="B"), "ann")
    recorder.do(undo(), "ann")
    preview = recorder.do(undo(preview=True), "ann")
    assert recorder.do(undo(of=None, call=preview.touches[0]), "ann").lines == ('removed #1 "A"',)


def test_own_later_change_blocks_undo_of_older_call(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="A"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", title="B"), "ann")
    recorder.do(undo(), "ann")
    recorder.do(undo(redo=True), "ann")
    refused = recorder.call(undo(of=None, call=1), "ann")
    assert isinstance(refused, Rejection)
    assert refused.data["newer"] == recorder.state.version, "the redo repeated the edit"


def test_a_redo_is_one_event_for_a_task(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(claim("1"), "ann")
    recorder.do(undo(), "ann")
    assert [type(event).__name__ for event in recorder.do(undo(redo=True), "ann").events] == ["Claimed"]
    recorder.call(status("1", "completed"), "ann")
    recorder.do(undo(), "ann")
    assert [type(event).__name__ for event in recorder.do(undo(redo=True), "ann").events] == ["StatusChanged"]


def test_redo_completes_no_restarted_task(recorder: Recorder) -> None:
    recorder.add("A")
    recorder.call(claim("1"), "codex")
    recorder.call(status("1", "completed"), "codex")
    recorder.call(undo(of="codex", count=None), "root")
    assert recorder.state.tasks["1"].status == "pending"
    recorder.call(claim("1"), "codex")
    held = recorder.state.claims["1"]
    decision = recorder.do(undo(of="root", redo=True, whole=False), "root")
    assert (recorder.state.tasks["1"].status, recorder.state.claims) == ("in_progress", {"1": held})
    assert 'skipped #1 "A": it was started again since' in decision.lines


def any_call(random: Random, state: State) -> p.Mutation:
    ids = list(state.tasks) or ["1"]
    task, other = random.choice(ids), random.choice(ids)
    owner = state.claims[task].owner if task in state.claims else random.choice(ACTORS)
    settings: dict[str, Any] = random.choice(
        [{"execution": "serial"}, {"execution": "manual"}, {"on_failure": "stop"}, {"max_attempts": 2}]
    )
    yes = random.random() < 0.7
    gate = random.choice([None, Gate(yes=True), Gate(check="lint")])
    calls: list[tuple[int, p.Mutation]] = [
        (4, p.TaskAdd(**C, title="t", blocked_by=tuple({other} & state.tasks.keys()))),
        (2, p.TaskAdd(**C, title="part", parent=other if other in state.tasks else None)),
        (8, claim(task, owner)),
        (3, p.TaskRelease(**C, task=task, owner=owner)),
        (4, status(task, "completed", result_summary="r")),
        (8, status(task, random.choice(["pending", "paused", "completed", "failed"]))),
        (1, status(task, "in_progress")),
        (2, p.TaskEdit(**C, task=task, add_blocked_by=(other,))),
        (2, p.TaskEdit(**C, task=task, remove_blocked_by=(other,))),
        (2, p.TaskEdit(**C, task=task, gate=gate)),
        (2, p.TaskApprove(**C, task=task, waits_for=random.choice(("yes", "check")), accept=yes, text="t")),
        (1, p.TaskDelete(**C, task=task)),
        (1, p.ConversationConfigure(**C, settings=SettingsPatch(**settings))),
        (1, p.ListClear(**C)),
    ]  # fmt: skip
    return random.choices([call for _, call in calls], [weight for weight, _ in calls])[0]


def any_undo(random: Random, version: int) -> p.ListUndo:
    how: dict[str, Any] = random.choice(
        [
            {"of": random.choice(ACTORS)},
            {"of": random.choice(ACTORS), "count": 3},
            {"of": random.choice(ACTORS), "redo": True},
            {"of": None, "call": random.randint(1, version)},
            {"of": None, "count": None, "to_version": random.randint(1, version)},
        ]
    )
    return undo(**how, whole=random.random() < 0.5)


@pytest.mark.parametrize("seed", range(150))
def test_restored_tasks_obey_the_rules(seed: int) -> None:
    random, recorder = Random(seed), Recorder()
    recorder.add("first")
    for step in range(120):
        if random.random() < 0.75:
            recorder.call(any_call(random, recorder.state), random.choice(ACTORS))
            continue
        before, params = recorder.state.copy(), any_undo(random, recorder.state.version)
        decision = recorder.call(params, random.choice(ACTORS))
        if isinstance(decision, Rejection) or not decision.events:
            continue
        check_invariants(recorder.state)
        check_rules(before, recorder, params, decision, f"seed {seed}, step {step}: {params}: {decision.lines}")


def check_rules(before: State, recorder: Recorder, params: p.ListUndo, decision: Decision, said: str) -> None:
    """Check a restored state against the rules. A task may also equal its state before an undone call."""
    now = recorder.state
    firsts = [params.to_version + 1] if params.to_version is not None else decision.touches
    pasts = [replay(CONVERSATION, [fact for fact in recorder.facts if fact.version < first]) for first in firsts]
    for task in now.ordered():
        assert task.waits_for is None or task.status == "paused", said
        if task.status != "in_progress":
            assert task.id not in now.claims, said
            continue
        held = now.claims.get(task.id)
        assert held is None or held.owner == task.owner, said
        if task.id in before.running:
            continue
        thens = [then for then in pasts if task.id in then.running]
        exact = [then for then in thens if set(task.open_blockers) <= set(then.tasks[task.id].open_blockers)]
        assert exact or not task.open_blockers, f"{said}: #{task.id} is blocked by {task.open_blockers}"
        unclaimed = [then for then in thens if task.id not in then.claims or then.claims[task.id].owner != task.owner]
        is_partial = any(line.startswith(SKIPPED) for line in decision.lines)
        assert held is not None or unclaimed or is_partial, f"{said}: {task.owner} has #{task.id} without a claim"
        parent = now.tasks.get(task.parent or "")
        assert held is None or parent is None or parent.status not in HELD, f"{said}: #{task.id} is in #{task.parent}"
    if now.settings.execution == "serial":
        assert len(find_current(now)) <= 1, said
