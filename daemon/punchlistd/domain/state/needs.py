"""Tasks that can't continue without a person or a check, in the order in which a list's card shows them."""

from collections.abc import Iterable, Mapping
from typing import get_args

from punchlist_schemas.things import FINISHED, Need, NeedKind, Task

MAX_NEEDS_SHOWN = 8
"""Maximum number of such tasks shown with a conversation."""

MAX_FREED = 99
"""Upper limit for `Need.frees`."""

MAX_EDGES = 1_000
"""Maximum number of edges followed to count the tasks that one task frees. A card is built for every change."""

MAX_TEXT = 200
"""Maximum number of characters of a result or reason shown with a conversation."""

KINDS: tuple[NeedKind, ...] = get_args(NeedKind)

NeedEntry = tuple[int, int, int, int, str]
"""Index of the kind, negated number of direct dependents, time of the status change, length of the id, and the id."""

FIRST_FAILED = (KINDS.index("failed"),)
"""Sorts after all entries of tasks that wait for approval, and before all others."""


def find_need(task: Task) -> NeedEntry | None:
    """Return the sort key of a task that needs someone, else None."""
    kind: NeedKind | None = task.waits_for or ("failed" if task.status == "failed" else None)
    if kind is None:
        return None
    return KINDS.index(kind), -len(task.blocks), task.status_changed_at, len(task.id), task.id


def sort_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return needs in the order in which a card shows them."""
    return (*sorted(needs, key=lambda need: (KINDS.index(need.kind), -need.frees, need.since)),)


def build_need(entry: NeedEntry, tasks: Mapping[str, Task], max_attempts: int) -> Need:
    kind, task = KINDS[entry[0]], tasks[entry[-1]]
    text = task.fail_reason if kind == "failed" else task.result_summary
    return Need(
        id=task.id,
        title=task.title,
        kind=kind,
        owner=task.owner,
        since=task.status_changed_at,
        version=task.version,
        attempts=task.attempts,
        max_attempts=max_attempts,
        frees=count_freed(task, tasks),
        text=" ".join(text.lstrip()[:MAX_TEXT].split()),
        by=_find_answerer(task, kind),
    )


def _find_answerer(task: Task, kind: NeedKind) -> str:
    if kind == "failed" or task.gate is None:
        return ""
    return task.gate.by if kind == "yes" else task.gate.check


def count_freed(task: Task, tasks: Mapping[str, Task]) -> int:
    """Return the number of unfinished tasks that wait for a task, directly or through other unfinished tasks."""
    if not task.blocks:
        return 0
    seen = {task.id}
    stack = [task]
    edges = MAX_EDGES
    while stack:
        for name in stack.pop().blocks[:edges]:
            edges -= 1
            if name in seen or tasks[name].status in FINISHED:
                continue
            seen.add(name)
            stack.append(tasks[name])
            if len(seen) > MAX_FREED:
                return MAX_FREED
    return len(seen) - 1
