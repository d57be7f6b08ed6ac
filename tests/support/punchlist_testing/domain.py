"""Runs the domain without a daemon: a recorder of one conversation, and random commands and events."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple, cast

from msgspec import UNSET
from msgspec.structs import replace

from punchlist_schemas import events as e
from punchlist_schemas import params as p
from punchlist_schemas.changes import CHANGES, ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import (
    FINISHED,
    PRIORITIES,
    STATUSES,
    Settings,
    SettingsPatch,
    Task,
    is_heading,
    names_of,
)
from punchlistd.domain.commands import Command, Decision, Fact
from punchlistd.domain.decide import decide, follow_up
from punchlistd.domain.decide.parents import find_parents_to_finish
from punchlistd.domain.decide.undo import undo_calls
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import HELD, State, initial_state, is_sent_back
from punchlistd.domain.state.needs import MAX_NEEDS_SHOWN, build_need, find_need, sort_needs
from punchlistd.domain.undo.lookback import Aim, Lookback, build_aim

CONVERSATION = "c"

HOSTILE_TITLES = (
    "\x1b[31mred\x1b[0m",
    "'; DROP TABLE log; --",
    "🙂" * 100,
    "\u202eright to left",
    "\x00nul",
    " ",
    '"quoted" \\ back',
    "1",
    "#1",
    "tab\there",
    "\u200f\u05d0\u05d1\u05d2",
    "null",
)


def replay(conversation: str, facts: Iterable[Fact]) -> State:
    """Return the state of a conversation after applying all its facts."""
    state = initial_state(conversation)
    for fact in facts:
        evolve(state, fact.event, fact.seq, fact.version, fact.at)
    return state


class Group(NamedTuple):
    """The facts of one call. `undoes` has the version of the first event of each call that it undid."""

    facts: tuple[Fact, ...]
    undoes: tuple[int, ...] = ()


class Recorder:
    """One conversation in memory: decides calls, applies their events and keeps the events.

    Attributes:
        at: Current time, in milliseconds.
        present: Agents that are connected.
    """

    def __init__(self) -> None:
        self.state = initial_state(CONVERSATION)
        self.history: list[Group] = []
        self.at = 1_000
        self.seq = 0
        self.present: frozenset[str] = frozenset()

    @property
    def facts(self) -> list[Fact]:
        return [fact for group in self.history for fact in group.facts]

    def decide(self, params: p.Mutation, actor: str = "me", user: str | None = None) -> Decision | Rejection:
        undo = self.decide_undo(params) if isinstance(params, p.ListUndo) else None
        command = Command(
            params=params,
            at=self.at,
            actor=actor,
            user=user,
            message_id=f"m{self.seq}",
            decided=undo,
            session=isinstance(params, p.TaskClaim) and params.owner in self.present,
        )
        *_, decision = decide(self.state, command)
        return decision

    def look_back(self, of: str | Aim | None = None, depth: int | None = None) -> Lookback:
        """Return the undo information about the whole history."""
        aim = of if isinstance(of, Aim) else Aim(None if of is None else frozenset((of,)))
        past = Lookback(CONVERSATION, aim, depth)
        for group in self.history:
            for fact in group.facts:
                past.follow(fact, begins=fact is group.facts[0], undoes=group.undoes)
        return past

    def decide_undo(self, params: p.ListUndo, depth: int | None = None) -> Decision | Rejection | None:
        *_, decision = undo_calls(self.look_back(build_aim(params), depth), params, self.at)
        return decision

    def call(self, params: p.Mutation, actor: str = "me") -> Decision | Rejection:
        """Make a call and apply its events and their follow-ups."""
        self.at += 7
        decision = self.decide(params, actor)
        if isinstance(decision, Decision):
            happened: Any = self.happen((*decision.events,), decision.undoes, actor, params)
            return replace(decision, events=happened)
        return decision

    def happen(
        self,
        events: Sequence[e.AnyEvent],
        undoes: tuple[int, ...] = (),
        actor: str = "me",
        params: p.Mutation | None = None,
    ) -> tuple[e.AnyEvent, ...]:
        """Apply events as one group, followed by their follow-ups if `params` is the call; return all events."""
        facts: list[Fact] = []

        def follow_ups() -> Iterator[e.AnyEvent]:
            if params is not None:
                yield from follow_up(self.state, params, cast(Sequence[e.KnownEvent], events), lambda _: self.present)

        # Follow-ups are computed lazily, from the state after `events`.
        for event in chain(events, follow_ups()):
            self.seq += 1
            facts.append(Fact(self.seq, self.state.version + 1, self.at, actor, event))
            evolve(self.state, event, self.seq, self.state.version + 1, self.at)
        if facts:
            self.history.append(Group(tuple(facts), undoes))
        return tuple(fact.event for fact in facts)

    def do(self, params: p.Mutation, actor: str = "me") -> Decision:
        """Make a call that must be accepted."""
        decision = self.call(params, actor)
        assert isinstance(decision, Decision), decision
        return decision

    def add(self, title: str = "work", **members: Any) -> Task:
        decision = self.do(p.TaskAdd(conversation=CONVERSATION, title=title, **members))
        return next(self.state.tasks[event.task.id] for event in decision.events if isinstance(event, e.TaskAdded))

    def set_status(self, task: str, status: Any, **members: Any) -> Decision | Rejection:
        return self.call(p.TaskSetStatus(conversation=CONVERSATION, task=task, status=status, **members))

    def titles(self) -> list[str]:
        return [task.title for task in self.state.ordered()]

    def ids(self) -> list[str]:
        return [task.id for task in self.state.ordered()]


def strip_stamps(state: State) -> list[dict[str, Any]]:
    """Return the tasks without the version and times that every change updates."""
    stamps = {"version", "updated_at", "status_changed_at"}
    names = [name for name in Task.__struct_fields__ if name not in stamps]
    return [{name: getattr(task, name) for name in names} for task in state.ordered()]


def check_invariants(state: State) -> None:
    """Check a state's counts and indexes against values computed from its tasks."""
    tasks = state.tasks
    counts = state.counts()
    for status in STATUSES:
        assert getattr(counts, status) == sum(task.status == status for task in tasks.values())
    unfinished = [task for task in tasks.values() if task.status not in {"completed", "failed"}]
    assert state.remaining == len(unfinished)
    deferred = {name: task.not_before for name, task in tasks.items() if task.not_before is not None}
    assert state.deferred == deferred
    assert state.wakes_at == min(deferred.values(), default=None)
    assert counts.blocked == sum(bool(task.open_blockers) for task in unfinished)
    view = state.conversation_view()
    assert view.waiting == sum(task.waits_for == "yes" for task in tasks.values())
    needs = sorted(need for task in tasks.values() if (need := find_need(task)) is not None)[:MAX_NEEDS_SHOWN]
    assert view.needs == sort_needs(build_need(need, tasks, state.settings.max_attempts) for need in needs)
    ready = [task for task in tasks.values() if _is_ready(state, task)]
    assert counts.ready == len(ready)
    order = sorted(tasks, key=lambda name: (state.key(name), name))
    assert [task.id for task in state.ordered()] == order
    places = {name: place for place, name in enumerate(order)}

    def first(candidates: list[Task]) -> Task | None:
        return min(candidates, key=lambda task: (-PRIORITIES.index(task.priority), places[task.id]), default=None)

    assert state.next_ready() == first(ready)
    for owner in ("", *{task.owner for task in ready}):
        reserved = [task for task in ready if task.owner == owner]
        assert state.reserved_count(owner) == len(reserved)
        free = [task for task in ready if not task.owner]
        assert state.next_for(names_of(owner)) == (first(reserved) or first(free))
    for name, task in tasks.items():
        assert task.id == name
        assert task.parent is None or (task.parent in tasks and task.parent != name)
        assert set(state.children(name)) == {other.id for other in tasks.values() if other.parent == name}
        assert all(name in tasks[blocker].blocks for blocker in task.blocked_by)
        assert all(name in tasks[dependent].blocked_by for dependent in task.blocks)
        open_blockers = tuple(blocker for blocker in task.blocked_by if tasks[blocker].status != "completed")
        assert task.open_blockers == open_blockers
        children = [other for other in tasks.values() if other.parent == name and name not in other.open_blockers]
        open_children = [other for other in children if other.status not in FINISHED]
        assert set(map(attrgetter("id"), state.open_children(name))) == {other.id for other in open_children}
        assert state.open_count(name) == len(open_children)
        assert state.failed_children(name) == sum(other.status == "failed" for other in children)
        assert (name in state.ready) <= (not open_children)
    for headings, names in ((True, state.ended_headings), (False, state.ended_parents)):
        assert set(names) == {
            name
            for name, task in tasks.items()
            if is_heading(task.metadata) is headings and (headings or name in state.families) and _is_due(state, task)
        }
    assert set(state.ranks) <= set(tasks)
    _check_owners(state)


def _check_owners(state: State) -> None:
    tasks = state.tasks
    assert set(state.running) == {name for name, task in tasks.items() if task.status == "in_progress"}
    assert set(state.claims) | set(state.offered) <= set(state.running)
    assert not set(state.claims) & set(state.offered)
    reserved = [task for task in tasks.values() if task.owner and task.status == "pending"]
    owners = {task.owner for task in reserved}
    by_owner = {owner: {task.id for task in reserved if task.owner == owner} for owner in owners}
    assert {owner: set(names) for owner, names in state.reserved.items()} == by_owner


def _is_ready(state: State, task: Task) -> bool:
    is_held = task.parent is not None and state.tasks[task.parent].status in HELD
    if task.status != "pending" or task.open_blockers or is_held or task.not_before is not None:
        return False
    return not is_heading(task.metadata) and not state.open_children(task.id)


def _is_due(state: State, task: Task) -> bool:
    """Return whether a parent is open although its children are finished, or has failed although none of its children
    has."""
    if state.open_children(task.id) or task.open_blockers or task.waits_for is not None or is_sent_back(task):
        return False
    return task.status not in FINISHED or (task.status == "failed" and not state.failed_children(task.id))


def check_parents(state: State) -> None:
    """Check that every parent that should have finished with its children has finished."""
    assert not find_parents_to_finish(state)


def random_title(random: Random) -> str:
    """Return a title, sometimes a hostile one and often one that is already used."""
    return random.choice(HOSTILE_TITLES) if random.random() < 0.3 else f"task {random.randrange(12)}"


def random_call(random: Random, state: State) -> p.Mutation:
    """Return any mutation except clear, undo and conversation.delete, sometimes with unknown ids."""
    kind = random.choices(list(_CALLS), weights=[weight for weight, _ in _CALLS.values()])[0]
    return kind(conversation=CONVERSATION, **_CALLS[kind][1](random, _Ids(random, state)))


class _Ids:
    def __init__(self, random: Random, state: State) -> None:
        self.random = random
        self.known = list(state.tasks)
        self.next = state.next_task

    def one(self) -> str:
        if not self.known or self.random.random() < 0.05:
            return str(self.random.randrange(self.next + 2))
        return self.random.choice(self.known)

    def some(self) -> tuple[str, ...]:
        return tuple(self.one() for _ in range(self.random.choice((0, 0, 0, 1, 2))))


def _new_task(random: Random, ids: _Ids, refs: Sequence[str] = ()) -> dict[str, Any]:
    names = [*refs, *ids.some()]
    return {
        "title": random_title(random),
        "status": random.choice(STATUSES),
        "priority": random.choice(PRIORITIES),
        "owner": random.choice(("", "alice")),
        "metadata": random.choice(({}, {}, {"a": 1, "b": None}, {"heading": 2})),
        "parent": random.choice([None, None, *names]),
        "blocked_by": tuple(name for name in names if random.random() < 0.3),
    }


def _add(random: Random, ids: _Ids) -> dict[str, Any]:
    place = random.choice(({}, {}, {"before": ids.one()}, {"after": ids.one()}))
    return {**_new_task(random, ids), "blocks": ids.some(), **place}


def _tasks(random: Random, ids: _Ids) -> dict[str, Any]:
    refs = [f"r{index}" for index in range(random.randrange(1, 6))]
    return {"tasks": tuple(p.NewTask(**_new_task(random, ids, refs), ref=ref) for ref in refs)}


def _replacement(random: Random, ids: _Ids) -> dict[str, Any]:
    return {**_tasks(random, ids), "keep_unfinished": random.random() < 0.7}


def _edit(random: Random, ids: _Ids) -> dict[str, Any]:
    members: dict[str, Any] = {
        "title": random_title(random),
        "description": random.choice((None, "text")),
        "priority": random.choice((None, *PRIORITIES)),
        "owner": random.choice((None, "bob")),
        "parent": random.choice((None, ids.one())),
        "metadata": random.choice((None, {"a": random.randrange(3), "c": None}, {"b": [True, 1]}, {"heading": 1})),
        "add_blocked_by": ids.some(),
        "remove_blocked_by": ids.some(),
        "add_blocks": ids.some(),
        "remove_blocks": ids.some(),
    }
    chosen = {name: value for name, value in members.items() if random.random() < 0.3}
    return {"task": ids.one(), **chosen}


def _status(random: Random, ids: _Ids) -> dict[str, Any]:
    texts: dict[str, Any] = {"result_summary": random.choice((None, "", "done"))}
    texts |= {"fail_reason": random.choice((None, "no"))}
    return {"task": ids.one(), "status": random.choice(STATUSES), "force": random.random() < 0.3, **texts}


def _claim(_random: Random, ids: _Ids) -> dict[str, Any]:
    return {"task": ids.one(), "owner": "alice", "keep": True}


def _move(random: Random, ids: _Ids) -> dict[str, Any]:
    place = random.choice(({"before": ids.one()}, {"after": ids.one()}, {"to_end": True}))
    return {"task": ids.one(), **place}


def _configure(random: Random, _ids: _Ids) -> dict[str, Any]:
    patches = (
        SettingsPatch(auto_clear="when_done"),
        SettingsPatch(max_attempts=3),
        SettingsPatch(complete_parents="auto"),
        SettingsPatch(complete_parents="never"),
    )
    settings = random.choice((None, *patches))
    return {"title": random.choice((None, "a", "b")), "settings": settings}


def _delete(_random: Random, ids: _Ids) -> dict[str, Any]:
    return {"tasks": (ids.one(), *ids.some())}


def _session(random: Random, _ids: _Ids) -> dict[str, Any]:
    return {"session": random.choice("xyz")}


def _message(random: Random, _ids: _Ids) -> dict[str, Any]:
    return {"role": "user", "content": random_title(random)}


def _note(random: Random, ids: _Ids) -> dict[str, Any]:
    return {"task": ids.one(), "text": random_title(random) + "."}


def _changes(random: Random, ids: _Ids) -> dict[str, Any]:
    changes: list[p.Params] = []
    for index in range(random.randrange(1, 5)):
        struct, kind = random.choice([*CHANGES.items()])
        members = _CHANGES[kind](random, ids)
        if kind is p.TaskAdd and random.random() < 0.5:
            members["ref"] = f"r{index}"
            ids.known.append(f"r{index}")
        changes.append(struct(**members))
    return {"changes": tuple(changes)}


_CHANGES: dict[type[p.Mutation], Any] = {
    p.TaskAdd: _add,
    p.TaskEdit: _edit,
    p.TaskSetStatus: _status,
    p.TaskClaim: _claim,
    p.TaskMove: _move,
    p.TaskDelete: _delete,
    p.TaskNote: _note,
}


_CALLS: dict[type[p.Mutation], tuple[int, Any]] = {
    p.TaskAdd: (30, _add),
    p.TaskAddMany: (5, _tasks),
    p.ListReplace: (4, _replacement),
    p.TaskEdit: (25, _edit),
    p.TaskSetStatus: (30, _status),
    p.TaskMove: (15, _move),
    p.TaskDelete: (8, _delete),
    ListApply: (8, _changes),
    p.ConversationConfigure: (3, _configure),
    p.ConversationAttach: (2, _session),
    p.ConversationDetach: (2, _session),
    p.MessageAppend: (3, _message),
}


def random_event(random: Random, ids: Sequence[str]) -> e.AnyEvent:
    """Return any event, consistent with the state or not."""

    def name() -> str:
        return random.choice((*ids, "1", "2", "3", "", "007", "٣", "x", "9" * 30))

    def maybe(value: Any) -> Any:
        return random.choice((UNSET, value))

    status = random.choice(STATUSES)
    names = tuple(name() for _ in range(random.randrange(4)))
    parent = random.choice((None, name()))
    rank = random.choice(("", "0", "Z9", "zz", "b10", "~", "-1"))
    new_task = e.AddedTask(name(), random_title(random), status, parent=parent, blocked_by=names, attempts=-1)
    return random.choice(
        (
            e.ConversationOpened(user="u"),
            e.ConversationConfigured(maybe("t"), maybe(Settings()), maybe("s"), maybe("s"), maybe("o")),
            e.ConversationDeleted() if random.random() < 0.1 else e.MessageAppended(name(), "r", None, name()),
            e.MessageRetracted(name()),
            e.ListCleared() if random.random() < 0.1 else e.TaskAdded(new_task, name(), rank),
            e.TaskAdded(new_task, name(), rank),
            e.TaskAdded(new_task),
            e.TaskEdited(name(), maybe("t"), parent=maybe(parent), metadata=maybe({"a": None}), priority=maybe("high")),
            e.TaskMoved(task=name(), before=name(), rank=rank),
            e.StatusChanged(name(), status, random.choice(STATUSES), maybe("s"), maybe("f"), maybe(-3)),
            e.Deleted(name()),
            e.DependencyAdded(name(), name()),
            e.DependencyAdded(name(), name()),
            e.DependencyRemoved(name(), name()),
            e.Claimed(name(), "o", 5),
            e.Released(task=name(), owner="o", reason="expired", to=status),
            e.decode_event(b'{"type":"FromTomorrow","task":"1"}'),
        )
    )
