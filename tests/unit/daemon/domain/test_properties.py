"""Properties that hold for all sequences of calls. A failing case prints its seed."""

from random import Random

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_testing.domain import (
    CONVERSATION,
    Recorder,
    check_invariants,
    random_call,
    random_event,
    replay,
    strip_stamps,
)
from punchlistd.domain.commands import Decision
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.state.dependencies import find_cycle
from punchlistd.domain.state.snapshot import dump_state, load_state
from punchlistd.domain.undo.inverse import SKIPPED, is_undoable

SEEDS = range(60)
UNDO = p.ListUndo(conversation=CONVERSATION, claims=True)
UNDO_ALL = p.ListUndo(conversation=CONVERSATION, count=10_000, claims=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_keep_invariants_and_replay(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for step in range(80):
        recorder.call(_any_call(random, recorder), random.choice(("alice", "bob")))
        if step % 8 == 0:
            check_invariants(recorder.state)
    state = recorder.state
    check_invariants(state)
    assert find_cycle(state.tasks, lambda name: state.tasks[name].blocked_by) is None
    assert find_cycle(state.tasks, lambda name: _parent(state.tasks[name].parent)) is None
    assert dump_state(replay(CONVERSATION, recorder.facts)) == dump_state(state)


def _any_call(random: Random, recorder: Recorder) -> p.Mutation:
    kind = random.random()
    if kind < 0.02:
        return p.ListClear(conversation=CONVERSATION)
    if kind < 0.06:
        return UNDO
    if kind < 0.08:
        return p.ListUndo(conversation=CONVERSATION, actor=random.choice(("alice", "bob")))
    return random_call(random, recorder.state)


def _parent(parent: str | None) -> tuple[str, ...]:
    return () if parent is None else (parent,)


@pytest.mark.parametrize("seed", SEEDS)
def test_state_continues_the_same_from_its_snapshot(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(30):
        recorder.call(_any_call(random, recorder))
    copy = load_state(CONVERSATION, dump_state(recorder.state))
    assert dump_state(copy) == dump_state(recorder.state)
    check_invariants(copy)
    before = len(recorder.facts)
    for _ in range(30):
        recorder.call(_any_call(random, recorder))
    for fact in recorder.facts[before:]:
        evolve(copy, fact.event, fact.seq, fact.version, fact.at)
    check_invariants(copy)
    assert dump_state(copy) == dump_state(recorder.state)


@pytest.mark.parametrize("seed", SEEDS)
def test_copied_state_continues_independently(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(30):
        recorder.call(_any_call(random, recorder))
    first, copy, untouched = recorder.state.copy(), recorder.state.copy(), dump_state(recorder.state)
    for _ in range(30):
        before = len(recorder.facts)
        recorder.call(_any_call(random, recorder))
        for fact in recorder.facts[before:]:
            evolve(copy, fact.event, fact.seq, fact.version, fact.at)
        assert strip_stamps(copy) == strip_stamps(recorder.state)
    check_invariants(copy)
    check_invariants(first)
    assert (dump_state(copy), dump_state(first)) == (dump_state(recorder.state), untouched)


@pytest.mark.parametrize("seed", SEEDS)
def test_evolve_accepts_any_event_in_any_state(seed: int) -> None:
    random = Random(seed)
    state = initial_state(CONVERSATION)
    for version in range(1, 250):
        assert evolve(state, random_event(random, list(state.tasks)), version, version, version * 10) is state
        assert (state.version, state.updated_at) == (version, version * 10)
        if version % 10 == 0:
            check_invariants(state)
    copy = load_state(CONVERSATION, dump_state(state))
    assert dump_state(copy) == dump_state(state)


@pytest.mark.parametrize("seed", SEEDS)
def test_decide_accepts_any_call_in_any_state(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(60):
        recorder.happen([random_event(random, list(recorder.state.tasks)) for _ in range(3)])
        recorder.call(_any_call(random, recorder))
    check_invariants(recorder.state)


@pytest.mark.parametrize("seed", SEEDS)
def test_undo_reverts_the_last_call_exactly(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(50):
        before, title = strip_stamps(recorder.state), recorder.state.title
        groups = len(recorder.history)
        clears = bool(before) and random.random() < 0.05
        call = p.ListClear(conversation=CONVERSATION) if clears else random_call(random, recorder.state)
        recorder.call(call)
        if len(recorder.history) == groups or not any(
            is_undoable(fact.event, claims=True) for fact in recorder.history[-1].facts
        ):
            continue
        if random.random() < 0.4:
            decision = recorder.do(UNDO)
            assert decision.undoes == (recorder.history[groups].facts[0].version,), call
            assert strip_stamps(recorder.state) == before, call
            assert recorder.state.title == title
            check_invariants(recorder.state)


@pytest.mark.parametrize("seed", [*SEEDS, 73, 294, 379])
def test_undo_of_everything_empties_the_list(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(60):
        recorder.call(_any_call(random, recorder), random.choice(("alice", "bob")))
    recorder.do(UNDO_ALL)
    assert recorder.ids() == []
    assert recorder.state.title == ""
    assert recorder.do(UNDO_ALL).events == ()


def _whole(state: State) -> tuple[object, ...]:
    """Return the part of the state that an undo can restore; a restored note has a new time."""
    notes = {task.id: [(note.text, note.actor) for note in task.notes] for task in state.tasks.values()}
    return state.title, state.settings, notes, [{**task, "notes": ()} for task in strip_stamps(state)]


@pytest.mark.parametrize("seed", [*SEEDS, 92, 103, 277])
def test_undo_and_redo_pass_the_same_states(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    recorder.add("first")
    states = [_whole(recorder.state)]
    while len(states) < 15:
        before = len(recorder.history)
        recorder.call(random_call(random, recorder.state), "ann")
        if not recorder.state.exists:
            return
        told = _whole(recorder.state)
        if any(is_undoable(fact.event, claims=True) for group in recorder.history[before:] for fact in group.facts):
            states.append(told)
        else:
            states[-1] = told
    at = len(states) - 1
    for _ in range(30):
        redo = at == 0 or (at < len(states) - 1 and random.random() < 0.4)
        recorder.do(p.ListUndo(conversation=CONVERSATION, of="ann", count=1, redo=redo, whole=True, claims=True), "ann")
        at += 1 if redo else -1
        assert _whole(recorder.state) == states[at], (at, redo)


@pytest.mark.parametrize("seed", [*SEEDS, 251, 637])
def test_redo_reverts_a_complete_undo_exactly(seed: int) -> None:
    random, actors = Random(seed), ("ann", "bob", "cy")
    recorder = Recorder()
    recorder.add("first")
    for _ in range(25):
        for _ in range(random.randrange(3)):
            recorder.call(_any_call(random, recorder), random.choice(actors))
        if not recorder.state.exists:
            return
        who, whole, count = random.choice((*actors, None)), random.random() < 0.5, random.choice((1, 1, 2, 3))
        maker = who or "ann"

        def asked(
            *, redo: bool, of: str | None = maker, count: int = 1, maker: str = maker, whole: bool = whole
        ) -> Decision | Rejection:
            params = p.ListUndo(conversation=CONVERSATION, of=of, count=count, redo=redo, whole=whole, claims=True)
            return recorder.call(params, maker)

        before = _whole(recorder.state)
        taken_back = asked(redo=False, of=who, count=count)
        check_invariants(recorder.state)
        if isinstance(taken_back, Rejection) or not taken_back.events:
            assert _whole(recorder.state) == before
        elif not any(line.startswith(SKIPPED) for line in taken_back.lines) and random.random() < 0.5:
            after = _whole(recorder.state)
            for redo, then in ((True, before), (False, after)):
                assert isinstance(asked(redo=redo), Decision), taken_back.lines
                assert _whole(recorder.state) == then, taken_back.lines


@pytest.mark.parametrize("seed", SEEDS)
def test_preview_matches_the_undo(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(30):
        recorder.call(_any_call(random, recorder), random.choice(("alice", "bob")))
    if not recorder.state.exists:
        return
    preview = recorder.decide(p.ListUndo(conversation=CONVERSATION, actor="bob", preview=True))
    decision = recorder.decide(p.ListUndo(conversation=CONVERSATION, actor="bob"))
    assert isinstance(preview, Decision)
    assert isinstance(decision, Decision)
    assert preview.lines == decision.lines
    assert preview.changes == decision.changes and len(decision.changes) == len(decision.lines)
    assert preview.events == preview.undoes == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_older_followers_see_the_same_order(seed: int) -> None:
    random = Random(seed)
    recorder = Recorder()
    for _ in range(60):
        recorder.call(_any_call(random, recorder))
    order: list[str] = []
    for fact in recorder.facts:
        _follow(order, fact.event)
    assert order == recorder.ids()


def _follow(order: list[str], event: object) -> None:
    kind = type(event).__name__
    if kind == "ListCleared":
        order.clear()
    elif kind in {"Deleted", "TaskMoved", "TaskAdded"}:
        name = getattr(event, "task", "")
        name = getattr(name, "id", name)
        if name in order:
            order.remove(name)
        if kind != "Deleted":
            before = getattr(event, "before", None)
            order.insert(len(order) if before is None else order.index(before), name)
