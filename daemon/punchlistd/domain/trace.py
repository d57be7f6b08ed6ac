"""What the events of past calls changed: the state before and after each, gathered in one pass over the history."""

from collections.abc import Iterable, Sequence

import msgspec

from punchlist_schemas.events import AnyEvent, Deleted, ListCleared
from punchlist_schemas.things import Settings, Task
from punchlistd.domain.commands import Fact, Group
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state


class Taken(msgspec.Struct, frozen=True):
    """A task that left the list: as it was, with its rank, and the ids of its children."""

    task: Task
    rank: str
    children: tuple[str, ...]


class Change(msgspec.Struct, frozen=True):
    """An event and what it did. `before` and `after` are the task that it names, if it names one.

    `taken` are the tasks that it removed, in the list's order; `title` and `settings` those of before.
    """

    event: AnyEvent
    version: int
    before: Task | None
    after: Task | None
    rank: str
    taken: tuple[Taken, ...]
    title: str
    settings: Settings


def trace(conversation: str, history: Sequence[Group], wanted: Iterable[int]) -> tuple[State, list[list[Change]]]:
    """Fold a history: the state that it ends in, and for each wanted group (by its index) its changes, in order."""
    state = initial_state(conversation)
    changes: list[list[Change]] = []
    wanted = frozenset(wanted)
    for index, group in enumerate(history):
        if index in wanted:
            changes.append([_change(state, fact) for fact in group.facts])
        else:
            for fact in group.facts:
                evolve(state, fact.event, fact.seq, fact.version, fact.at)
    return state, changes


def _change(state: State, fact: Fact) -> Change:
    event = fact.event
    name = named(event)
    before = state.tasks.get(name)
    rank = state.ranks.get(name, "")
    taken = tuple(_taken(state, task) for task in _leaving(state, event, before))
    title, settings = state.title, state.settings
    evolve(state, event, fact.seq, fact.version, fact.at)
    return Change(event, fact.version, before, state.tasks.get(name), rank, taken, title, settings)


def named(event: AnyEvent) -> str:
    """The id of the task that an event names, or an empty string."""
    task = getattr(event, "task", "")
    return task if isinstance(task, str) else task.id


def _leaving(state: State, event: AnyEvent, named: Task | None) -> Sequence[Task]:
    if isinstance(event, ListCleared):
        return state.ordered()
    return (named,) if isinstance(event, Deleted) and named is not None else ()


def _taken(state: State, task: Task) -> Taken:
    return Taken(task, state.ranks.get(task.id, ""), tuple(state.children(task.id)))
