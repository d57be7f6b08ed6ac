"""Changes: events of past calls with the state that they replaced, recorded while the history is replayed."""

from collections.abc import Sequence

import msgspec

from punchlist_schemas.events import AnyEvent, Deleted, ListCleared
from punchlist_schemas.things import Settings, Task
from punchlistd.domain.commands import Fact
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import Claim, State


class Touch(msgspec.Struct, frozen=True, gc=False):
    """An event that changed a task or added a reference to it from another task.

    `first` is the version of the first event of its call.
    """

    version: int
    first: int
    actor: str
    at: int = 0


class RemovedTask(msgspec.Struct, frozen=True):
    """A task that was removed from the list, with its rank, the ids of its children, and its claim."""

    task: Task
    rank: str
    children: tuple[str, ...]
    claim: Claim | None = None


class Change(msgspec.Struct, frozen=True):
    """An event and the state that it replaced.

    Attributes:
        before: The task that the event names, before the event; None if there was none.
        after: The same task after the event.
        rank: The task's rank before the event.
        removed: The tasks that the event removed, in list order.
        title: The conversation's title before the event.
        settings: The conversation's settings before the event.
        claim: The task's claim before the event.
        at: Time of the event, in milliseconds.
        actor: Who made it.
    """

    event: AnyEvent
    version: int
    before: Task | None
    after: Task | None
    rank: str
    removed: tuple[RemovedTask, ...]
    title: str
    settings: Settings
    claim: Claim | None = None
    at: int = 0
    actor: str = ""


def trace(state: State, fact: Fact) -> Change:
    """Apply an event to the state, and return what it changed."""
    event = fact.event
    name = task_id_of(event)
    before = state.tasks.get(name)
    rank = state.ranks.get(name, "")
    removed = tuple(_describe_removal(state, task) for task in _find_removed(state, event, before))
    title, settings, claim = state.title, state.settings, state.claims.get(name)
    evolve(state, event, fact.seq, fact.version, fact.at)
    after = state.tasks.get(name)
    return Change(event, fact.version, before, after, rank, removed, title, settings, claim, fact.at, fact.actor)


def task_id_of(event: AnyEvent) -> str:
    task = getattr(event, "task", "")
    return task if isinstance(task, str) else task.id


def _find_removed(state: State, event: AnyEvent, before: Task | None) -> Sequence[Task]:
    if isinstance(event, ListCleared):
        return state.ordered()
    return (before,) if isinstance(event, Deleted) and before is not None else ()


def _describe_removal(state: State, task: Task) -> RemovedTask:
    return RemovedTask(task, state.ranks.get(task.id, ""), tuple(state.children(task.id)), state.claims.get(task.id))
