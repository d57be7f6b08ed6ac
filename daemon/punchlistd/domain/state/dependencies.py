"""Cycles, found without recursion: a chain of any length is walked, never descended into."""

from collections.abc import Callable, Iterable, Mapping

from punchlist_schemas.things import Task


def cycle_through(task: str, tasks: Mapping[str, Task], changed: Mapping[str, Iterable[str]]) -> list[str] | None:
    """A cycle of blockers through `task`, or None.

    `changed` gives the blockers of tasks for which those stored in `tasks` do not count. In the path each id is
    blocked by the next one; it begins and ends with `task`.

    The search goes down to the blockers and, in step, up to the dependents, and so costs twice the smaller side.
    Once all dependents are known, only they can be on the way. Stored edges that `changed` takes away may still
    count on the way up, which only makes that set larger.
    """
    came: dict[str, str] = {}
    stack = [task]
    above = {task}
    climbing = [task]
    new_dependents = _turned_round(changed)
    while stack:
        here = stack.pop()
        known = tasks.get(here)
        blockers = changed[here] if here in changed else known.blocked_by if known is not None else ()
        for blocker in blockers:
            if blocker not in came and (climbing or blocker in above):
                came[blocker] = here
                stack.append(blocker)
        if task in came:
            return _path(task, came)
        if climbing:
            here = climbing.pop()
            known = tasks.get(here)
            fresh = {*(known.blocks if known is not None else ()), *new_dependents.get(here, ())} - above
            above |= fresh
            climbing.extend(fresh)
    return None


def circle_through(task: str, waits_for: Callable[[str], Iterable[str]]) -> list[str] | None:
    """Return a cycle of waiting tasks through `task`, or None. Its path begins and ends with `task`."""
    came: dict[str, str] = {}
    stack = [task]
    while stack:
        here = stack.pop()
        for other in waits_for(here):
            if other not in came:
                came[other] = here
                stack.append(other)
        if task in came:
            return _path(task, came)
    return None


def waits(
    blockers: Callable[[str], Iterable[str]], children: Callable[[str], Iterable[str]]
) -> Callable[[str], Iterable[str]]:
    """Return a function for what a task waits for: its blockers, and children that don't wait for it."""

    def waits_for(task: str) -> Iterable[str]:
        yield from blockers(task)
        yield from (child for child in children(task) if task not in blockers(child))

    return waits_for


def _turned_round(edges: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    turned: dict[str, list[str]] = {}
    for task, blockers in edges.items():
        for blocker in blockers:
            turned.setdefault(blocker, []).append(task)
    return turned


def _path(task: str, came: Mapping[str, str]) -> list[str]:
    path = [task]
    while True:
        path.append(came[path[-1]])
        if path[-1] == task:
            return path[::-1]


def find_cycle(roots: Iterable[str], blockers_of: Callable[[str], Iterable[str]]) -> list[str] | None:
    """Any cycle that can be reached from `roots`, or None. The path's first id is its last."""
    done: set[str] = set()
    for root in roots:
        if root in done:
            continue
        path = [root]
        on_path = {root}
        waiting = [iter(blockers_of(root))]
        while waiting:
            blocker = next(waiting[-1], None)
            if blocker is None:
                waiting.pop()
                done.add(left := path.pop())
                on_path.discard(left)
            elif blocker in on_path:
                return [*path[path.index(blocker) :], blocker]
            elif blocker not in done:
                path.append(blocker)
                on_path.add(blocker)
                waiting.append(iter(blockers_of(blocker)))
    return None


def parent_cycle(task: str, parent: str | None, parent_of: Callable[[str], str | None]) -> list[str] | None:
    """The cycle that making `parent` the parent of `task` would close, or None."""
    path = [task]
    seen: set[str] = set()
    while parent is not None and parent not in seen:
        path.append(parent)
        if parent == task:
            return path
        seen.add(parent)
        parent = parent_of(parent)
    return None
