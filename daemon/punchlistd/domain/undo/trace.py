"""What an event of a past call changed: the task that it names before and after, and what it took out of the list."""

from collections.abc import Sequence

import msgspec

from punchlist_schemas.events import AnyEvent, Deleted, ListCleared
from punchlist_schemas.things import Settings, Task
from punchlistd.domain.commands import Fact
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import Claim, State


class Taken(msgspec.Struct, frozen=True):
    """A task that left the list: as it was, with its rank, the ids of its children, and its claim."""

    task: Task
    rank: str
    children: tuple[str, ...]
    claim: Claim | None = None


class Change(msgspec.Struct, frozen=True):
    """An event and what it did. `before` and `after` are the task that it names, if it names one, `claim` its claim.

    `taken` are the tasks that it removed, in the list's order; `claim`, `title` and `settings` are those of before.
    """

    event: AnyEvent
    version: int
    before: Task | None
    after: Task | None
    rank: str
    taken: tuple[Taken, ...]
    title: str
    settings: Settings
    claim: Claim | None = None


def trace(state: State, fact: Fact) -> Change:
    """Let an event happen, and tell what it changed."""
    event = fact.event
    name = named(event)
    before = state.tasks.get(name)
    rank = state.ranks.get(name, "")
    taken = tuple(_taken(state, task) for task in _leaving(state, event, before))
    title, settings, claim = state.title, state.settings, state.claims.get(name)
    evolve(state, event, fact.seq, fact.version, fact.at)
    return Change(event, fact.version, before, state.tasks.get(name), rank, taken, title, settings, claim)


def named(event: AnyEvent) -> str:
    task = getattr(event, "task", "")
    return task if isinstance(task, str) else task.id


def _leaving(state: State, event: AnyEvent, named: Task | None) -> Sequence[Task]:
    if isinstance(event, ListCleared):
        return state.ordered()
    return (named,) if isinstance(event, Deleted) and named is not None else ()


def _taken(state: State, task: Task) -> Taken:
    return Taken(task, state.ranks.get(task.id, ""), tuple(state.children(task.id)), state.claims.get(task.id))
