"""Sessions: a task that is in progress for an agent's session must have a claim. Without one, it is freed."""

from collections.abc import Callable, Iterable, Iterator, Set

from punchlist_schemas.events import Claimed, KnownEvent, NoteAdded, StatusChanged, TaskAdded, TaskEdited
from punchlist_schemas.things import Task, names_of
from punchlistd.domain.commands import Command, Decision, EndReservations
from punchlistd.domain.decide.claim import measure_work
from punchlistd.domain.decide.reserving import clear_owner
from punchlistd.domain.decide.serial import is_serial
from punchlistd.domain.state import State
from punchlistd.domain.undo.trace import task_id_of

_LEASE_MS = 2 * 3_600_000
"""Lease for a session that has no earlier claim in the list, in milliseconds."""


def may_lack_claim(event: KnownEvent) -> bool:
    """Return whether an event may leave a task in progress with an owner but without a claim."""
    match event:
        case StatusChanged(to="in_progress"):
            return True
        case TaskAdded(task=added):
            return added.status == "in_progress"
        case TaskEdited(owner=str(owner)):
            return bool(owner)
        case _:
            return False


def restore_claims(state: State, events: Iterable[KnownEvent], present: Set[str]) -> Iterator[KnownEvent]:
    """Claim the tasks that these events left in progress for their owners' sessions.

    Free them if the session is absent.
    """
    for name in dict.fromkeys(map(task_id_of, filter(may_lack_claim, events))):
        task = state.tasks.get(name)
        if task is None or task.status != "in_progress" or not task.owner or name in state.claims:
            continue
        if any(member in present for member in names_of(task.owner)):
            agent = state.agents.get(task.owner)
            lease_ms = _LEASE_MS if agent is None else agent.lease_ms
            yield Claimed(name, task.owner, lease_ms, task.attempts, keep=True, session=True)
        elif any(member in state.agents for member in names_of(task.owner)):
            yield from free_task(state, task)


def find_unclaimed(state: State, is_session: Callable[[str], bool]) -> dict[str, list[str]]:
    """Return the tasks without a claim that are reserved for a session or in progress for it, by owner."""
    tasks = {owner: list(tasks) for owner, tasks in state.reserved.items() if is_session(owner)}
    for name in state.running:
        if name not in state.claims and (owner := state.tasks[name].owner) and is_session(owner):
            tasks.setdefault(owner, []).append(name)
    return tasks


def end_reservations(state: State, params: EndReservations, command: Command) -> Decision:
    """Free the tasks of sessions that have ended. A note on each reserved task names its former owner."""
    events: list[KnownEvent] = []
    by_owner = find_unclaimed(state, params.owners.__contains__)
    for owner in params.owners:
        for task in map(state.tasks.__getitem__, by_owner.get(owner, ())):
            if task.status == "pending":
                text = f"It was reserved for {owner}, whose session has ended."
                events += [TaskEdited(task.id, owner=""), NoteAdded(task.id, text, command.actor)]
            else:
                events += free_task(state, task)
    return Decision(tuple(events))


def free_task(state: State, task: Task) -> Iterator[KnownEvent]:
    """Free a task that is in progress without a claim. In a serial list, it stays the current task."""
    if is_serial(state):
        yield TaskEdited(task.id, owner="")
        return
    back = StatusChanged(task.id, "in_progress", "pending", spent_ms=measure_work(task, state.updated_at))
    yield from (back, *clear_owner(task, back))
