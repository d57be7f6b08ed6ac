"""Finds cycles of tasks that wait for each other.

A task waits for its blockers, and a parent also waits for its children.
"""

from collections.abc import Iterator, Mapping, Sequence

from punchlistd.domain.state import State
from punchlistd.domain.state.dependencies import combine_waits, find_cycle_through

_NONE_MOVED: Mapping[str, str | None] = {}


def find_waiting_cycle(
    state: State, task: str, changed: Mapping[str, Sequence[str]], moved: Mapping[str, str | None] = _NONE_MOVED
) -> list[str] | None:
    """Return a cycle of waiting tasks through `task`, or None.

    Args:
        state: The list.
        task: A task whose blockers or parent change.
        changed: New blockers of tasks, which replace the stored ones.
        moved: New parents of tasks, which replace the stored ones.
    """
    tasks = state.tasks
    if not state.families and not any(moved.values()):
        return None

    def blockers(name: str) -> Sequence[str]:
        return changed[name] if name in changed else tasks[name].blocked_by if name in tasks else ()

    def children(name: str) -> Iterator[str]:
        yield from (child for child in state.families.get(name, ()) if child not in moved)
        yield from (child for child, parent in moved.items() if parent == name)

    return find_cycle_through(task, combine_waits(blockers, children))
