"""Sessions: an agent's session holds a claim on each of its tasks in progress; otherwise the task is free."""

from collections.abc import Callable, Iterable, Iterator, Set

from punchlist_schemas.events import Claimed, KnownEvent, NoteAdded, StatusChanged, TaskAdded, TaskEdited
from punchlist_schemas.things import Task, names_of
from punchlistd.domain.commands import Command, Decision, EndReservations
from punchlistd.domain.decide.claim import spent_ms
from punchlistd.domain.decide.reserving import free
from punchlistd.domain.decide.serial import is_serial
from punchlistd.domain.state import State
from punchlistd.domain.undo.trace import task_id_of

_LEASE_MS = 2 * 3_600_000
"""Lease of a session that has claimed nothing in the list before, in milliseconds."""


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


def hand_back(state: State, events: Iterable[KnownEvent], present: Set[str]) -> Iterator[KnownEvent]:
    """Claim tasks that these events left in progress for their owners' sessions, or free them."""
    for name in dict.fromkeys(map(task_id_of, filter(may_lack_claim, events))):
        task = state.tasks.get(name)
        if task is None or task.status != "in_progress" or not task.owner or name in state.claims:
            continue
        if any(one in present for one in names_of(task.owner)):
            known = state.agents.get(task.owner)
            lease_ms = _LEASE_MS if known is None else known.lease_ms
            yield Claimed(name, task.owner, lease_ms, task.attempts, keep=True, session=True)
        elif any(one in state.agents for one in names_of(task.owner)):
            yield from put_back(state, task)


def unclaimed(state: State, is_session: Callable[[str], bool]) -> dict[str, list[str]]:
    """Return the tasks, by owner, that are reserved or in progress for a session without a claim."""
    found = {owner: list(tasks) for owner, tasks in state.reserved.items() if is_session(owner)}
    for name in state.running:
        if name not in state.claims and (owner := state.tasks[name].owner) and is_session(owner):
            found.setdefault(owner, []).append(name)
    return found


def end_reservations(state: State, params: EndReservations, command: Command) -> Decision:
    """Free the tasks of sessions that have ended. A note on each names its former owner."""
    events: list[KnownEvent] = []
    by_owner = unclaimed(state, params.owners.__contains__)
    for owner in params.owners:
        for task in map(state.tasks.__getitem__, by_owner.get(owner, ())):
            if task.status == "pending":
                text = f"It was reserved for {owner}, whose session has ended."
                events += [TaskEdited(task.id, owner=""), NoteAdded(task.id, text, command.actor)]
            else:
                events += put_back(state, task)
    return Decision(tuple(events))


def put_back(state: State, task: Task) -> Iterator[KnownEvent]:
    """Free a task in progress without a claim. In a serial list it stays the current task."""
    if is_serial(state):
        yield TaskEdited(task.id, owner="")
        return
    back = StatusChanged(task.id, "in_progress", "pending", spent_ms=spent_ms(task, state.updated_at))
    yield from (back, *free(task, back))
