"""Finds cycles of blockers and of parents. It doesn't use recursion, since chains can be of any length."""

from collections.abc import Callable, Iterable, Mapping

from punchlist_schemas.things import Task


def find_blocker_cycle(task: str, tasks: Mapping[str, Task], changed: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Return a cycle of blockers through `task`, or None.

    Each task in the path is blocked by the next one. The path begins and ends with `task`.

    The search alternates between blockers and dependents, so its cost is at most twice that of the smaller side. Once
    all dependents are known, the search is limited to them, since only they can be part of a cycle. The known
    dependents may include tasks that depend only through edges that `changed` removes. Such tasks cost time but
    produce no false cycle.

    Args:
        task: The task.
        tasks: The list's tasks, with their stored blockers.
        changed: New blockers of tasks, which replace the stored ones.
    """
    came_from: dict[str, str] = {}
    stack = [task]
    above = {task}
    dependents_to_visit = [task]
    new_dependents = _invert(changed)
    while stack:
        current = stack.pop()
        current_task = tasks.get(current)
        stored = () if current_task is None else current_task.blocked_by
        blockers = changed.get(current, stored)
        for blocker in blockers:
            if blocker not in came_from and (dependents_to_visit or blocker in above):
                came_from[blocker] = current
                stack.append(blocker)
        if task in came_from:
            return _trace_path(task, came_from)
        if dependents_to_visit:
            current = dependents_to_visit.pop()
            current_task = tasks.get(current)
            stored = () if current_task is None else current_task.blocks
            dependents = {*stored, *new_dependents.get(current, ())} - above
            above |= dependents
            dependents_to_visit.extend(dependents)
    return None


def find_cycle_through(task: str, waits_for: Callable[[str], Iterable[str]]) -> list[str] | None:
    """Return a cycle of waiting tasks through `task`, or None. Its path begins and ends with `task`."""
    came_from: dict[str, str] = {}
    stack = [task]
    while stack:
        current = stack.pop()
        for other in waits_for(current):
            if other not in came_from:
                came_from[other] = current
                stack.append(other)
        if task in came_from:
            return _trace_path(task, came_from)
    return None


def combine_waits(
    blockers: Callable[[str], Iterable[str]], children: Callable[[str], Iterable[str]]
) -> Callable[[str], Iterable[str]]:
    """Return a function that yields what a task waits for: its blockers, and children that don't wait for it."""

    def waits_for(task: str) -> Iterable[str]:
        yield from blockers(task)
        yield from (child for child in children(task) if task not in blockers(child))

    return waits_for


def _invert(edges: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    inverted: dict[str, list[str]] = {}
    for task, blockers in edges.items():
        for blocker in blockers:
            inverted.setdefault(blocker, []).append(task)
    return inverted


def _trace_path(task: str, came_from: Mapping[str, str]) -> list[str]:
    path = [task]
    while True:
        path.append(came_from[path[-1]])
        if path[-1] == task:
            return path[::-1]


def find_cycle(roots: Iterable[str], blockers_of: Callable[[str], Iterable[str]]) -> list[str] | None:
    """Return any cycle that can be reached from `roots`, or None. The path's first id is also its last."""
    visited: set[str] = set()
    for root in roots:
        if root in visited:
            continue
        path = [root]
        on_path = {root}
        iterators = [iter(blockers_of(root))]
        while iterators:
            blocker = next(iterators[-1], None)
            if blocker is None:
                iterators.pop()
                visited.add(finished := path.pop())
                on_path.discard(finished)
            elif blocker in on_path:
                return [*path[path.index(blocker) :], blocker]
            elif blocker not in visited:
                path.append(blocker)
                on_path.add(blocker)
                iterators.append(iter(blockers_of(blocker)))
    return None


def find_parent_cycle(task: str, parent: str | None, parent_of: Callable[[str], str | None]) -> list[str] | None:
    """Return the cycle that `task` closes if `parent` becomes its parent, or None."""
    path = [task]
    seen: set[str] = set()
    while parent is not None and parent not in seen:
        path.append(parent)
        if parent == task:
            return path
        seen.add(parent)
        parent = parent_of(parent)
    return None
