"""Circles of tasks that wait for each other: for their blockers, and a parent for the tasks below it."""

from collections.abc import Iterator, Mapping, Sequence

from punchlistd.domain.dependencies import circle_through, waits
from punchlistd.domain.state import State

_NONE_MOVED: Mapping[str, str | None] = {}


def circle(
    state: State, task: str, changed: Mapping[str, Sequence[str]], moved: Mapping[str, str | None] = _NONE_MOVED
) -> list[str] | None:
    """A circle through `task`, or None: of tasks that wait for their blockers and for the tasks below them.

    Args:
        state: The list.
        task: A task of which edges or the parent change.
        changed: All blockers of tasks for which the stored ones do not count.
        moved: The parents of tasks for which the stored ones do not count.
    """
    tasks = state.tasks
    if not state.families and not any(moved.values()):
        return None

    def blockers(name: str) -> Sequence[str]:
        return changed[name] if name in changed else tasks[name].blocked_by if name in tasks else ()

    def children(name: str) -> Iterator[str]:
        yield from (child for child in state.families.get(name, ()) if child not in moved)
        yield from (child for child, parent in moved.items() if parent == name)

    return circle_through(task, waits(blockers, children))
