"""Reservations: a pending task is reserved for the owner set by a caller, never for the owner of earlier work."""

from collections.abc import Sequence

from punchlist_schemas.events import KnownEvent, StatusChanged, TaskEdited
from punchlist_schemas.things import Task


def is_for(task: Task, names: Sequence[str]) -> bool:
    """Return whether a task's owner allows it to be handed out to a caller with these names."""
    return not task.owner or task.owner in names


def clear_owner(task: Task, change: StatusChanged) -> tuple[KnownEvent, ...]:
    """Return the edit that clears the owner of a task that becomes pending after it was worked on."""
    # A paused task without attempts was never started, so its owner is a reservation and stays.
    is_released = task.status in ("in_progress", "completed", "failed") or (task.status == "paused" and task.attempts)
    return (TaskEdited(task.id, owner=""),) if task.owner and change.to == "pending" and is_released else ()
