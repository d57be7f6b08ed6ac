"""Reverting: the events that make a list what it was at an earlier version, whoever changed it since."""

from collections.abc import Iterator
from typing import Any

from punchlist_schemas.events import (
    AddedTask,
    ConversationConfigured,
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    NoteRemoved,
    Released,
    StatusChanged,
    TaskAdded,
    TaskEdited,
    TaskMoved,
)
from punchlist_schemas.things import Task
from punchlistd.domain.commands import Decision
from punchlistd.domain.state import Claim, State
from punchlistd.domain.state.members import EDITABLE, RESTORABLE, add_days, named
from punchlistd.domain.undo.inverse import Undoing, name_of, note_again, place_of


def revert(run: Undoing, then: State) -> Iterator[Decision]:
    """Make the run's state be `then`; claims that are over begin anew. Yields a part for each task."""
    for task in list(run.state.ordered()):
        if not _is_same(then.tasks.get(task.id), task):
            run.apply(Deleted(task.id))
            run.note(f"removed {name_of(task)}")
        yield run.part()
    back = [task for task in then.ordered() if task.id not in run.state.tasks]
    for task in back:
        members: dict[str, Any] = {name: getattr(task, name) for name in RESTORABLE}
        members |= {"parent": None, "blocked_by": ()}
        rank, before = place_of(run.state, task.id, then.ranks.get(task.id, ""))
        run.apply(TaskAdded(AddedTask(**members), before, rank))
        run.note(f"restored {name_of(task)}")
        yield run.part()
    came_back = {task.id for task in back}
    for task in then.ordered():
        _release(run, task.id, then.claims.get(task.id))
        changed = _edit(run, task)
        changed += _relate(run, task)
        changed += _place(run, then, task)
        run.resume(task, then.claims.get(task.id))
        if changed and task.id not in came_back:
            run.note(f"{name_of(task)}: {named(changed)} put back")
        yield run.part()
    _configure(run, then)


def _is_same(then: Task | None, now: Task) -> bool:
    return then is not None and then.created_at == now.created_at


def _release(run: Undoing, task: str, then: Claim | None) -> None:
    """End a claim of another owner. The task would otherwise keep it under its former owner."""
    held = run.state.claims.get(task)
    if held is not None and (then is None or then.owner != held.owner):
        run.apply(Released(task=task, owner=held.owner, reason="released"))


def _edit(run: Undoing, then: Task) -> list[str]:
    now = run.state.tasks[then.id]
    changes: dict[str, Any] = {
        name: getattr(then, name) for name in EDITABLE if getattr(now, name) != getattr(then, name)
    }
    add_days(now, changes, then)
    keys = {**now.metadata, **then.metadata}
    patch = {key: then.metadata.get(key) for key in keys if now.metadata.get(key) != then.metadata.get(key)}
    if patch:
        changes["metadata"] = patch
    if changes:
        run.apply(TaskEdited(then.id, **changes))
    message = list(changes)
    if _life(run.state.tasks[then.id]) != _life(then):
        run.apply(
            StatusChanged(
                then.id,
                now.status,
                then.status,
                then.result_summary,
                then.fail_reason,
                then.attempts,
                then.waits_for,
                then.spent_ms - now.spent_ms,
            )
        )
        message.append("status")
    return message + _notes(run, then)


def _life(task: Task) -> tuple[object, ...]:
    return (task.status, task.result_summary, task.fail_reason, task.attempts, task.waits_for, task.spent_ms)


def _notes(run: Undoing, then: Task) -> list[str]:
    now = run.state.tasks[then.id].notes
    written = [(note.at, note.text) for note in then.notes]
    there = [(note.at, note.text) for note in now]
    gone = [note for note in now if (note.at, note.text) not in written]
    missing = [note for note in then.notes if (note.at, note.text) not in there]
    for note in gone:
        run.apply(NoteRemoved(then.id, note.version))
    for note in missing:
        run.apply(note_again(then.id, note))
    return ["notes"] if gone or missing else []


def _relate(run: Undoing, then: Task) -> list[str]:
    now = run.state.tasks[then.id].blocked_by
    gone = [other for other in now if other not in then.blocked_by]
    missing = [other for other in then.blocked_by if other not in now]
    for other in gone:
        run.apply(DependencyRemoved(then.id, other))
    for other in missing:
        run.apply(DependencyAdded(then.id, other))
    return ["blockers"] if gone or missing else []


def _place(run: Undoing, then: State, task: Task) -> list[str]:
    wanted, state = then.ranks.get(task.id, ""), run.state
    if state.ranks.get(task.id, "") == wanted:
        return []
    rank, before = place_of(state, task.id, wanted)
    run.apply(TaskMoved(task=task.id, before=before, rank=rank))
    return ["place"]


def _configure(run: Undoing, then: State) -> None:
    now, changes = run.state, dict[str, Any]()
    if now.title != then.title:
        changes["title"] = then.title
    if now.settings != then.settings:
        changes["settings"] = then.settings
    if changes:
        run.apply(ConversationConfigured(**changes))
        run.note(f"the list: {' and '.join(changes)} put back")
