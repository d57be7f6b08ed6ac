"""Claims as events: one owner at a time, with fences, and expiry."""

from random import Random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Claimed, Released
from punchlist_schemas.things import SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, random_call, replay
from punchlistd.domain.commands import Decision, EndClaims
from punchlistd.domain.decide.claim import Supply, find_available
from punchlistd.domain.decide.serial import find_current
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}
SEEDS = range(60)


def claim(recorder: Recorder, owner: str = "ann", **members: Any) -> list[tuple[str, int]]:
    """Claim tasks; return the id and the number of attempts of each."""
    events = recorder.do(p.TaskClaim(**C, owner=owner, **members)).events
    return [(event.task, event.attempts) for event in events if isinstance(event, Claimed)]


def refusal(recorder: Recorder, call: p.Mutation) -> Rejection:
    """Return the rejection of a call."""
    answer = recorder.call(call)
    assert isinstance(answer, Rejection), answer
    return answer


def end(recorder: Recorder, task: str, reason: str = "expired") -> Decision:
    """End the claim on a task, as the engine does."""
    return recorder.do(EndClaims(**C, claims=((task, recorder.state.claims[task].fence),), reason=reason))


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    for title in "abcd":
        recorder.add(title)
    return recorder


def configure(recorder: Recorder, **settings: Any) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(**settings)))


def test_next_task_is_most_urgent_then_first(recorder: Recorder) -> None:
    recorder.add("e", priority="high")
    recorder.do(p.TaskMove(**C, task="4", before="1"))
    assert [claim(recorder)[0][0] for _ in range(5)] == ["5", "4", "1", "2", "3"]
    assert claim(recorder) == []
    assert recorder.state.tasks["5"].owner == "ann"


def test_several_tasks_are_claimed_in_order(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(**C, task="2", add_blocked_by=("4",)))
    assert claim(recorder, count=2) == [("1", 1), ("3", 1)]
    assert claim(recorder, count=100) == [("4", 1)]


def test_claim_in_an_unknown_conversation_writes_nothing() -> None:
    recorder = Recorder()
    assert recorder.do(p.TaskClaim(**C, owner="ann")).events == ()
    assert not recorder.state.exists


def test_held_or_unready_task_is_rejected_by_id(recorder: Recorder) -> None:
    claim(recorder, task="1")
    held = refusal(recorder, p.TaskClaim(**C, owner="bob", task="1"))
    assert (held.kind, held.data) == ("lease_held", {"task": "1", "owner": "ann"})
    recorder.do(p.TaskEdit(**C, task="2", add_blocked_by=("1",)))
    assert refusal(recorder, p.TaskClaim(**C, owner="bob", task="2")).kind == "blocked"
    recorder.set_status("3", "completed")
    done = refusal(recorder, p.TaskClaim(**C, owner="bob", task="3"))
    assert (done.kind, done.data["from"], done.data["allowed"]) == ("illegal_transition", "completed", ["pending"])
    assert refusal(recorder, p.TaskClaim(**C, owner="bob", task="9")).kind == "not_found"
    recorder.do(p.TaskEdit(**C, task="4", parent="2"))
    recorder.set_status("2", "paused")
    parent = refusal(recorder, p.TaskClaim(**C, owner="bob", task="4"))
    assert (parent.kind, parent.data["blockers"]) == ("blocked", [{"id": "2", "title": "b", "status": "paused"}])


def test_started_task_is_claimed_only_by_owner(recorder: Recorder) -> None:
    recorder.set_status("1", "in_progress")
    assert claim(recorder)[0] == ("2", 1)
    assert claim(recorder, task="1") == [("1", 1)]
    recorder.do(p.TaskEdit(**C, task="3", owner="bob"))
    recorder.set_status("3", "in_progress")
    assert refusal(recorder, p.TaskClaim(**C, owner="ann", task="3")).kind == "lease_held"
    assert claim(recorder, "bob", task="3") == [("3", 1)]


def test_released_task_is_pending_until_next_attempt(recorder: Recorder) -> None:
    claim(recorder)
    released = recorder.do(p.TaskRelease(**C, task="1", owner="ann")).events
    assert released == (Released(task="1", owner="ann", reason="released", spent_ms=7),)
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].owner) == ("pending", "")
    assert claim(recorder, "bob") == [("1", 2)]


@pytest.mark.parametrize("kind", [p.TaskRenew, p.TaskRelease])
def test_claim_changes_need_owner_and_number(recorder: Recorder, kind: Any) -> None:
    claim(recorder)
    first = recorder.state.claims["1"].fence
    assert refusal(recorder, kind(**C, task="1", owner="bob")).kind == "lease_held"
    assert refusal(recorder, kind(**C, task="2", owner="ann")).kind == "lease_lost"
    assert refusal(recorder, kind(**C, task="9", owner="ann")).kind == "not_found"
    end(recorder, "1")
    late = refusal(recorder, kind(**C, task="1", owner="ann", fence=first))
    assert (late.kind, late.data) == ("lease_lost", {"task": "1", "status": "pending", "fence": first})
    assert late.message.endswith("Claim the task again.")
    claim(recorder)
    assert refusal(recorder, kind(**C, task="1", owner="ann", fence=first)).kind == "lease_held"
    assert isinstance(recorder.call(kind(**C, task="1", owner="ann")), Decision)


@pytest.mark.parametrize("kind", [p.TaskRenew, p.TaskRelease])
def test_finished_task_is_claimable_only_once_reopened(recorder: Recorder, kind: Any) -> None:
    claim(recorder)
    fence = recorder.state.claims["1"].fence
    recorder.call(p.TaskSetStatus(**C, task="1", status="completed", fence=fence))
    late = refusal(recorder, kind(**C, task="1", owner="ann"))
    assert (late.kind, late.message.rpartition(". ")[2]) == ("lease_lost", "Reopen it first to claim it again.")


@pytest.mark.parametrize("call", [{"status": "completed"}, {"title": "mine"}])
def test_stale_fence_can_neither_finish_nor_edit(recorder: Recorder, call: dict[str, Any]) -> None:
    kind: Any = p.TaskSetStatus if "status" in call else p.TaskEdit
    claim(recorder)
    late = recorder.state.claims["1"].fence
    end(recorder, "1")
    assert refusal(recorder, kind(**C, task="1", fence=late, **call)).kind == "lease_lost"
    claim(recorder, "bob")
    assert refusal(recorder, kind(**C, task="1", fence=late, **call)).data["owner"] == "bob"
    assert isinstance(recorder.call(kind(**C, task="1", fence=recorder.state.claims["1"].fence, **call)), Decision)


def test_interrupted_task_stays_in_progress_and_goes_first(recorder: Recorder) -> None:
    claim(recorder, count=2)
    end(recorder, "2", "restarted")
    assert recorder.state.tasks["2"].status == "in_progress"
    assert Supply(recorder.state).take([], 9) == 3
    assert [task.id for task in find_available(recorder.state, 9, [])] == ["2", "3", "4"]
    assert claim(recorder, "bob") == [("2", 2)]


def test_inactive_claim_counts_as_ended(recorder: Recorder) -> None:
    claim(recorder)
    fence = recorder.state.claims["1"].fence
    recorder.do(p.TaskRelease(**C, task="1", owner="ann"))
    claim(recorder, "bob")
    assert recorder.do(EndClaims(**C, claims=(("1", fence),), reason="expired")).events == ()
    recorder.set_status("1", "paused")
    assert recorder.state.claims == {}
    assert recorder.do(EndClaims(**C, claims=(("1", fence), ("7", 3)), reason="expired")).events == ()


def test_task_fails_when_its_attempts_are_used_up(recorder: Recorder) -> None:
    configure(recorder, max_attempts=2)
    claim(recorder)
    end(recorder, "1", "disconnected")
    assert claim(recorder) == [("1", 2)]
    end(recorder, "1", "disconnected")
    task = recorder.state.tasks["1"]
    assert (task.status, task.attempts) == ("failed", 2)
    assert task.fail_reason == "The claim of ann ended with its connection, and all 2 attempts are used up."


def test_stopped_queue_waits_until_the_failure_is_resolved(recorder: Recorder) -> None:
    configure(recorder, on_failure="stop")
    recorder.set_status("1", "failed")
    assert claim(recorder) == []
    assert claim(recorder, task="2") == [("2", 1)]
    recorder.set_status("1", "pending")
    assert claim(recorder) == [("1", 1)]


def test_delete_clear_and_finish_end_a_claim(recorder: Recorder) -> None:
    claim(recorder, count=4)
    recorder.set_status("1", "completed")
    recorder.set_status("2", "pending")
    recorder.do(p.TaskDelete(**C, task="3"))
    assert set(recorder.state.claims) == {"4"}
    recorder.do(p.ListClear(**C))
    assert recorder.state.claims == {}


def random_claim_call(random: Random, recorder: Recorder) -> p.Mutation:
    """Return a call that a competing worker could make; owners and fences are sometimes wrong."""
    claims = recorder.state.claims
    task = random.choice([*claims, *recorder.state.tasks, "1"])
    held = claims.get(task)
    owner = held.owner if held is not None and random.random() < 0.8 else random.choice("xyz")
    fence = random.choice([None, held.fence if held is not None else 1, random.randrange(1, recorder.seq + 2)])
    named = random.choice([None, None, task])
    status: Any = random.choice(["completed", "completed", "failed", "paused", "pending", "in_progress"])
    return random.choice(
        [
            p.TaskClaim(**C, owner=random.choice("xyz"), task=named, count=random.choice([1, 1, 3])),
            p.TaskClaim(**C, owner=random.choice("xyz")),
            p.TaskRenew(**C, task=task, owner=owner, fence=fence),
            p.TaskRelease(**C, task=task, owner=owner, fence=fence),
            p.TaskSetStatus(**C, task=task, status=status, fence=fence),
            p.TaskSetStatus(**C, task=task, status=status),
            EndClaims(**C, claims=((task, fence or 1),), reason=random.choice(["expired", "restarted"])),
            p.TaskAdd(**C, title="more", priority=random.choice(["low", "high"])),
            p.ListUndo(**C),
            random_call(random, recorder.state),
        ]
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("execution", ["manual", "serial"])
def test_random_claims_never_overlap_and_replay(seed: int, execution: Any) -> None:
    random = Random(seed)
    recorder = Recorder()
    recorder.add()
    configure(recorder, execution=execution, max_attempts=random.choice([0, 3]))
    held: dict[str, int] = {}
    for _ in range(120):
        before = len(recorder.facts)
        recorder.call(random_claim_call(random, recorder), random.choice("xyz"))
        for fact in recorder.facts[before:]:
            if isinstance(fact.event, Claimed):
                assert fact.event.task not in held, "a second claim of a held task"
                held[fact.event.task] = fact.seq
            held = {task: fence for task, fence in held.items() if task in recorder.state.claims}
        assert {task: one.fence for task, one in recorder.state.claims.items()} == held
        for names in ([], ["bob"], ["alice"]):
            assert Supply(recorder.state).take(names, 1_000) == len(find_available(recorder.state, 1_000, names))
        if recorder.state.settings.execution == "serial":
            assert len(find_current(recorder.state)) <= 1
    check_invariants(recorder.state)
    assert dump_state(replay(CONVERSATION, recorder.facts)) == dump_state(recorder.state)
    copy = load_state(CONVERSATION, dump_state(recorder.state))
    check_invariants(copy)
    assert (copy.claims, copy.offered) == (recorder.state.claims, recorder.state.offered)
