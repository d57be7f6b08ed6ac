"""Reservations: a pending task with an owner is reserved for that owner. Finished and released tasks aren't."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Claimed
from punchlist_schemas.things import Gate, SettingsPatch
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants
from punchlistd.domain.commands import Decision, EndClaims
from punchlistd.domain.decide.claim import Supply
from punchlistd.domain.explain import explain

C: dict[str, Any] = {"conversation": CONVERSATION}


def claim(recorder: Recorder, owner: str, **members: Any) -> list[str]:
    events = recorder.do(p.TaskClaim(**C, owner=owner, **members)).events
    return [event.task for event in events if isinstance(event, Claimed)]


def test_owner_gets_reserved_tasks_first(recorder: Recorder) -> None:
    recorder.add("urgent", priority="urgent")
    recorder.add("for bob", owner="bob")
    recorder.add("for eve", owner="eve", priority="urgent")
    recorder.add("urgent for bob", owner="bob", priority="high")
    assert [claim(recorder, "bob") for _ in range(4)] == [["4"], ["2"], ["1"], []]
    assert recorder.state.counts().ready == 1, "a reserved task counts as ready"
    check_invariants(recorder.state)


def test_several_claims_in_one_call_respect_owners(recorder: Recorder) -> None:
    for owner in ("", "bob", "", "eve", "bob"):
        recorder.add(owner=owner)
    assert claim(recorder, "bob", count=9) == ["2", "5", "1", "3"]


@pytest.mark.parametrize(
    ("owner", "claimer", "gets"),
    [
        ("claude-code", "claude-code/7f3c1a", True),
        ("claude-code", "claude-code/7f3c1a/reviewer", True),
        ("claude-code/7f3c1a", "claude-code/7f3c1a/reviewer", True),
        ("claude-code/7f3c1a", "claude-code/59aa02", False),
        ("claude-code/7f3c1a/reviewer", "claude-code/7f3c1a", False),
        ("claude", "claude-code/7f3c1a", False),
        ("bob", "bob", True),
    ],
)
def test_sessions_get_their_hosts_tasks(recorder: Recorder, owner: str, claimer: str, *, gets: bool) -> None:
    recorder.add(owner=owner)
    assert claim(recorder, claimer) == (["1"] if gets else [])


def test_claim_may_name_further_owners(recorder: Recorder) -> None:
    recorder.add(owner="ann")
    assert claim(recorder, "chat/1f") == []
    assert claim(recorder, "chat/1f", also=("ann",)) == ["1"]


def test_claim_of_a_reserved_task_names_its_owner(recorder: Recorder) -> None:
    recorder.add(owner="bob")
    refused = recorder.call(p.TaskClaim(**C, owner="eve", task="1"))
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data) == ("lease_held", {"task": "1", "owner": "bob", "reserved": True})
    assert "reserved for bob" in refused.message
    recorder.do(p.TaskEdit(**C, task="1", owner=None))
    assert claim(recorder, "eve", task="1") == ["1"]


def test_explanation_names_reservations(recorder: Recorder) -> None:
    recorder.add("build", owner="bob")
    task = recorder.state.tasks["1"]
    for found in (explain(recorder.state, task, "eve"), explain(recorder.state, None, "eve")):
        assert [(reason.kind, reason.owner) for reason in found.reasons] == [("reserved", "bob")]
        assert not found.ready
    own = explain(recorder.state, task, "bob")
    assert (own.ready, own.reasons, own.next and own.next.id) == (True, (), "1")


def expire(recorder: Recorder) -> None:
    fence = recorder.state.claims["1"].fence
    recorder.do(EndClaims(**C, claims=(("1", fence),), reason="expired"))


def fail_and_retry(recorder: Recorder) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(max_attempts=3)))
    recorder.set_status("1", "failed")


def reject(recorder: Recorder) -> None:
    recorder.do(p.TaskEdit(**C, task="1", gate=Gate(yes=True)))
    recorder.set_status("1", "completed")
    recorder.do(p.TaskApprove(**C, task="1", waits_for="yes", accept=False, text="not yet", actor="eve"))


def step(*statuses: Any) -> Callable[[Recorder], None]:
    def run(recorder: Recorder) -> None:
        for status in statuses:
            assert isinstance(recorder.set_status("1", status), Decision)

    return run


ENDS: dict[str, Callable[[Recorder], object]] = {
    "released": lambda recorder: recorder.do(p.TaskRelease(**C, task="1", owner="bob")),
    "expired": expire,
    "reopened": step("pending"),
    "paused and reopened": step("paused", "pending"),
    "completed and reopened": step("completed", "pending"),
    "failed and reopened": step("failed", "pending"),
    "failed and retried": fail_and_retry,
    "rejected": reject,
    "replaced": lambda recorder: recorder.do(p.ListReplace(**C, tasks=(p.NewTask(title="work", status="pending"),))),
}


@pytest.mark.parametrize("ends", ENDS)
def test_released_task_is_not_reserved(recorder: Recorder, ends: str) -> None:
    recorder.add("work", owner="bob")
    claim(recorder, "bob")
    ENDS[ends](recorder)
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].owner) == ("pending", "")
    assert claim(recorder, "eve") == ["1"]


def test_task_never_started_stays_reserved(recorder: Recorder) -> None:
    recorder.add("work", owner="bob")
    step("paused", "pending")(recorder)
    assert (claim(recorder, "eve"), claim(recorder, "bob")) == ([], ["1"])


def test_undo_restores_a_reservation(recorder: Recorder) -> None:
    recorder.add("work", owner="bob")
    recorder.call(p.TaskClaim(**C, owner="bob"), "bob")
    recorder.do(p.ListUndo(**C, of="bob", claims=True))
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].owner) == ("pending", "bob")
    claim(recorder, "bob")
    recorder.call(p.TaskSetStatus(**C, task="1", status="pending"), "eve")
    assert recorder.state.tasks["1"].owner == ""
    recorder.call(p.ListUndo(**C, of="eve"), "eve")
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].owner) == ("in_progress", "bob")
    assert recorder.state.claims["1"].owner == "bob"


def test_serial_list_waits_for_its_tasks_owner(recorder: Recorder) -> None:
    recorder.do(p.ConversationConfigure(**C, settings=SettingsPatch(execution="serial")))
    recorder.add("work", owner="bob")
    recorder.add("later")
    assert (recorder.state.tasks["1"].status, recorder.state.tasks["1"].owner) == ("in_progress", "bob")
    assert claim(recorder, "eve") == []
    refused = recorder.call(p.TaskClaim(**C, owner="eve", task="1"))
    assert isinstance(refused, Rejection)
    assert refused.data["reserved"]
    found = explain(recorder.state, recorder.state.tasks["2"], "eve")
    assert [(reason.kind, reason.by, reason.owner) for reason in found.reasons] == [("serial", "1", "bob")]
    assert claim(recorder, "bob") == ["1"]


def test_earlier_claims_take_only_their_tasks(recorder: Recorder) -> None:
    recorder.add(owner="bob")
    recorder.add()
    supply = Supply(recorder.state)
    assert [supply.take([name], 1) for name in ("eve", "ann", "bob", "bob")] == [1, 0, 1, 0]


def test_tasks_reserved_for_others_cost_nothing(recorder: Recorder) -> None:
    recorder.do(p.TaskAddMany(**C, tasks=tuple(p.NewTask(title=f"t{n}", owner="bob") for n in range(10_000))))
    state = recorder.state
    recorder.add("free", priority="low")
    assert claim(recorder, "eve") == ["10001"]
    began = time.process_time()
    for _ in range(2_000):
        assert state.next_for(["eve"]) is None
    assert time.process_time() - began < 1.0, "next scans other owners' tasks"
