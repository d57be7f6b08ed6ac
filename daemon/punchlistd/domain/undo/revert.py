"""Revert: events that restore a list to an earlier version, no matter which actors have changed it since."""

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
from punchlistd.domain.state.members import EDITABLE, RESTORABLE, add_days, describe_members
from punchlistd.domain.undo.inverse import UndoRun, find_place, rebuild_note


def revert(run: UndoRun, then: State) -> Iterator[Decision]:
    """Change the run's state to `then`, in one part for each task. Claims that have ended since are made again."""
    for task in list(run.state.ordered()):
        if not _is_same(then.tasks.get(task.id), task):
            run.apply(Deleted(task.id))
            run.report(task, "removed")
        yield run.take_part()
    missing = [task for task in then.ordered() if task.id not in run.state.tasks]
    for task in missing:
        members: dict[str, Any] = {name: getattr(task, name) for name in RESTORABLE}
        members |= {"parent": None, "blocked_by": ()}
        rank, before = find_place(run.state, task.id, then.ranks.get(task.id, ""))
        run.apply(TaskAdded(AddedTask(**members), before, rank))
        run.report(task, "restored")
        yield run.take_part()
    restored = {task.id for task in missing}
    for task in then.ordered():
        _end_claim(run, task.id, then.claims.get(task.id))
        changed = _restore_members(run, task)
        changed += _restore_edges(run, task)
        changed += _restore_place(run, then, task)
        run.resume(task, then.claims.get(task.id))
        if changed and task.id not in restored:
            run.report(task, f"{describe_members(changed)} restored")
        yield run.take_part()
    _restore_settings(run, then)


def _is_same(then: Task | None, now: Task) -> bool:
    return then is not None and then.created_at == now.created_at


def _end_claim(run: UndoRun, task: str, then: Claim | None) -> None:
    """Release a claim of another owner. Otherwise it would stay in force when the task's former owner is restored."""
    held = run.state.claims.get(task)
    if held is not None and (then is None or then.owner != held.owner):
        run.apply(Released(task=task, owner=held.owner, reason="released"))


def _restore_members(run: UndoRun, then: Task) -> list[str]:
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
    names = list(changes)
    if _progress_of(run.state.tasks[then.id]) != _progress_of(then):
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
        names.append("status")
    return names + _restore_notes(run, then)


def _progress_of(task: Task) -> tuple[object, ...]:
    return (task.status, task.result_summary, task.fail_reason, task.attempts, task.waits_for, task.spent_ms)


def _restore_notes(run: UndoRun, then: Task) -> list[str]:
    now = run.state.tasks[then.id].notes
    target = [(note.at, note.text) for note in then.notes]
    present = [(note.at, note.text) for note in now]
    surplus = [note for note in now if (note.at, note.text) not in target]
    missing = [note for note in then.notes if (note.at, note.text) not in present]
    for note in surplus:
        run.apply(NoteRemoved(then.id, note.version))
    for note in missing:
        run.apply(rebuild_note(then.id, note))
    return ["notes"] if surplus or missing else []


def _restore_edges(run: UndoRun, then: Task) -> list[str]:
    now = run.state.tasks[then.id].blocked_by
    surplus = [other for other in now if other not in then.blocked_by]
    missing = [other for other in then.blocked_by if other not in now]
    for other in surplus:
        run.apply(DependencyRemoved(then.id, other))
    for other in missing:
        run.apply(DependencyAdded(then.id, other))
    return ["blockers"] if surplus or missing else []


def _restore_place(run: UndoRun, then: State, task: Task) -> list[str]:
    target, state = then.ranks.get(task.id, ""), run.state
    if state.ranks.get(task.id, "") == target:
        return []
    rank, before = find_place(state, task.id, target)
    run.apply(TaskMoved(task=task.id, before=before, rank=rank))
    return ["place"]


def _restore_settings(run: UndoRun, then: State) -> None:
    now, changes = run.state, dict[str, Any]()
    if now.title != then.title:
        changes["title"] = then.title
    if now.settings != then.settings:
        changes["settings"] = then.settings
    if changes:
        run.apply(ConversationConfigured(**changes))
        run.add_line(f"the list: {' and '.join(changes)} restored")
