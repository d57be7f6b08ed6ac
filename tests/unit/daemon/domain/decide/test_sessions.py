"""Sessions: a task in progress for an agent is either claimed by that agent or free. A failing case prints its seed."""

from random import Random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.things import SettingsPatch, Task
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants, replay
from punchlistd.domain.commands import EndClaims
from punchlistd.domain.state import MAX_AGENTS, Claim, State
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}
A, B = "kilo/aaaaaa", "kilo/bbbbbb"


def status(task: str, to: Any, **more: Any) -> p.TaskSetStatus:
    return p.TaskSetStatus(**C, task=task, status=to, **more)


def claim(task: str, owner: str = A) -> p.TaskClaim:
    return p.TaskClaim(**C, task=task, owner=owner, keep=True, lease_ms=99_000)


@pytest.fixture
def paused() -> Recorder:
    """A paused task of session A."""
    recorder = Recorder()
    recorder.present = frozenset((A,))
    recorder.add("one")
    recorder.do(claim("1"), A)
    recorder.do(status("1", "paused"), "ann")
    return recorder


def now(recorder: Recorder) -> tuple[str, str, str | None]:
    task, held = recorder.state.tasks["1"], recorder.state.claims.get("1")
    return task.status, task.owner, None if held is None else held.owner


def test_resumed_task_is_claimed_by_its_session_again(paused: Recorder) -> None:
    paused.do(status("1", "in_progress"), "ann")
    held = paused.state.claims["1"]
    assert (held.owner, held.lease_ms, held.keep, held.session) == (A, 99_000, True, True)
    assert paused.state.tasks["1"].attempts == 1


def test_resumed_task_of_an_ended_session_is_free(paused: Recorder) -> None:
    paused.present = frozenset()
    paused.do(status("1", "in_progress"), "ann")
    assert now(paused) == ("pending", "", None)
    assert paused.state.next_for([B]) == paused.state.tasks["1"]


def test_serial_list_keeps_task_of_ended_session(paused: Recorder) -> None:
    paused.do(p.ConversationConfigure(**C, settings=SettingsPatch(execution="serial")))
    paused.present = frozenset()
    paused.do(status("1", "in_progress"), "ann")
    assert now(paused) == ("in_progress", "", None)
    paused.do(p.TaskClaim(**C, owner=B, keep=True), B)
    assert now(paused) == ("in_progress", B, B)


def test_list_records_its_last_agents(recorder: Recorder) -> None:
    recorder.add("one")
    owners = [f"kilo/{number}" for number in range(MAX_AGENTS + 1)]
    for owner in owners:
        recorder.present = frozenset((owner,))
        recorder.do(claim("1", owner), owner)
        recorder.do(p.TaskRelease(**C, task="1", owner=owner), owner)
    assert list(recorder.state.agents) == owners[1:]


def test_agent_with_the_oldest_claim_is_dropped() -> None:
    state = State(CONVERSATION)
    owners = [f"kilo/{number}" for number in range(MAX_AGENTS)]
    for fence, owner in enumerate((*owners, owners[0], "kilo/new")):
        state.remember_agent(Claim(owner, fence, 99_000))
    assert list(state.agents) == [*owners[2:], owners[0], "kilo/new"]


def test_sub_agents_task_belongs_to_its_session(paused: Recorder) -> None:
    paused.do(p.TaskEdit(**C, task="1", owner=f"{A}/tester"), "ann")
    paused.do(status("1", "in_progress"), "ann")
    assert now(paused) == ("in_progress", f"{A}/tester", f"{A}/tester")


def test_sub_agents_task_is_free_after_its_session(paused: Recorder) -> None:
    paused.do(p.TaskEdit(**C, task="1", owner=f"{A}/tester"), "ann")
    paused.present = frozenset()
    paused.do(status("1", "in_progress"), "ann")
    assert now(paused) == ("pending", "", None)


def test_resume_can_be_undone_and_redone(paused: Recorder) -> None:
    paused.do(status("1", "in_progress"), "ann")
    paused.do(p.ListUndo(**C, of="ann", count=1, whole=True), "ann")
    assert now(paused) == ("paused", A, None)
    paused.present = frozenset()
    paused.do(p.ListUndo(**C, of="ann", redo=True, whole=True), "ann")
    assert now(paused) in {("in_progress", A, A), ("pending", "", None)}


def test_owner_that_was_never_a_session_stays(paused: Recorder) -> None:
    paused.do(p.TaskEdit(**C, task="1", owner="zoe"), "ann")
    paused.do(status("1", "in_progress"), "ann")
    assert now(paused) == ("in_progress", "zoe", None)


def test_task_started_for_a_session_is_claimed(paused: Recorder) -> None:
    paused.do(p.TaskAdd(**C, title="two", status="in_progress", owner=A), "ann")
    added = p.NewTask(title="three", status="in_progress", owner=A)
    paused.do(p.TaskAddMany(**C, tasks=(added,)), "ann")
    paused.do(p.TaskAdd(**C, title="four", status="in_progress"), "ann")
    paused.do(p.TaskEdit(**C, task="4", owner=A), "ann")
    assert {name: held.owner for name, held in paused.state.claims.items()} == dict.fromkeys("234", A)


def lacks_claim(state: State, task: Task) -> bool:
    return task.status == "in_progress" and task.owner in state.agents and task.id not in state.claims


def any_call(random: Random, state: State) -> p.Mutation:
    task = random.choice(list(state.tasks) or ["1"])
    owner = state.claims[task].owner if task in state.claims else random.choice((A, B))
    first = state.ordered()[:3]
    again = tuple(p.NewTask(task=one.id, title=one.title, status="in_progress") for one in first)
    calls: list[tuple[int, p.Mutation]] = [
        (3, p.TaskAdd(**C, title="t", owner=random.choice(("", A)), status=random.choice(("pending", "in_progress")))),
        (2, p.TaskAdd(**C, title="part", parent=task if task in state.tasks else None)),
        (8, claim(task, owner)),
        (2, p.TaskClaim(**C, owner=owner, keep=True)),
        (3, p.TaskRelease(**C, task=task, owner=owner)),
        (9, status(task, random.choice(["pending", "paused", "completed", "failed"]))),
        (9, status(task, "in_progress")),
        (3, p.TaskEdit(**C, task=task, owner=random.choice((A, B, "ann", None)))),
        (2, p.ListReplace(**C, tasks=again)),
        (1, p.TaskDelete(**C, task=task)),
        (1, p.ConversationConfigure(**C, settings=SettingsPatch(execution=random.choice(("serial", "manual"))))),
        (4, p.ListUndo(**C, of=random.choice((A, B, "ann")), count=random.choice((1, 3)), claims=True, redo=False)),
        (2, p.ListUndo(**C, of=random.choice((A, B, "ann")), redo=True)),
        (1, p.ListUndo(**C, to_version=random.randint(1, state.version))),
    ]  # fmt: skip
    return random.choices([call for _, call in calls], [weight for weight, _ in calls])[0]


@pytest.mark.parametrize("seed", range(100))
def test_task_in_progress_for_a_session_is_claimed(seed: int) -> None:
    random, recorder = Random(seed), Recorder()
    recorder.present = frozenset((A, B))
    for number, owner in enumerate((A, B), start=1):
        recorder.add("first")
        recorder.do(claim(str(number), owner), owner)
    for step in range(100):
        state = recorder.state
        if random.random() < 0.1:  # a session enters or leaves
            one = random.choice((A, B))
            recorder.present ^= {one}
            ends = (
                ()
                if one in recorder.present
                else [(name, c.fence) for name, c in state.claims.items() if c.owner == one]
            )
            params: p.Mutation = EndClaims(conversation=CONVERSATION, claims=tuple(ends), reason="left")
        else:
            params = any_call(random, state)
        recorder.call(params, random.choice((A, B, "ann")))
        check_invariants(recorder.state)
        lacking = [task.id for task in recorder.state.ordered() if lacks_claim(recorder.state, task)]
        assert not lacking, f"seed {seed}, step {step}: {params}"
    assert dump_state(replay(CONVERSATION, recorder.facts)) == dump_state(recorder.state)
    assert load_state(CONVERSATION, dump_state(recorder.state)).agents == recorder.state.agents
