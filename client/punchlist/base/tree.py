"""Trees of tasks: children after their parent, and the path to a task.

Works on the plain JSON values of the wire, and is light enough for a shell prompt.
"""

from typing import TYPE_CHECKING

from punchlist.base.text import clip, one_line
from punchlist_schemas.vocabulary import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Task = dict[str, Any]

_NAME = 40
"""Characters of each title in a path."""
_ENDS = 2


def as_tree(tasks: "Iterable[Task]") -> "list[tuple[int, Task]]":
    """Depth and task, children behind their parent, otherwise in the order given.

    A task whose parent is not among them stands at the top level; so do the members of a parent cycle.
    """
    given = list(tasks)
    ids = {task["id"] for task in given}
    children: dict[str | None, list[Task]] = {}
    for task in given:
        parent = task.get("parent")
        children.setdefault(parent if parent in ids and parent != task["id"] else None, []).append(task)
    rows: list[tuple[int, Task]] = []
    seen: set[str] = set()
    for root in [*children.get(None, ()), *given]:
        stack = [(0, root)]
        while stack:
            depth, task = stack.pop()
            if task["id"] in seen:
                continue
            seen.add(task["id"])
            rows.append((depth, task))
            stack.extend((depth + 1, child) for child in reversed(children.get(task["id"], ())))
    return rows


def find_open_parents(tasks: "Iterable[Any]", member: "Callable[[Any, str], Any]" = getattr) -> "set[str | None]":
    """Return the parents that can't be worked on, since they have unfinished children.

    A child that waits for its parent doesn't count.

    Args:
        tasks: All unfinished tasks of a list, or more.
        member: Reads a member of a task; by default an attribute.
    """
    unfinished = (task for task in tasks if member(task, "status") not in FINISHED)
    parents = ((member(task, "parent"), member(task, "open_blockers") or ()) for task in unfinished)
    return {parent for parent, blockers in parents if parent not in blockers}


def with_path(title: str, above: "Sequence[str]") -> str:
    """Return a task's title after those of its parents, `Backend › tests`: of more than two the first and the last."""
    shown = [clip(one_line(name), _NAME) for name in above]
    if len(shown) > _ENDS:
        shown = [shown[0], "…", shown[-1]]
    return " › ".join([*shown, title])


def titles_above(task: "Task", by_id: "dict[str, Task]") -> "list[str]":
    """Return the titles of the parents of a task that are among these tasks, the outermost first."""
    above: dict[str, str] = {}
    parent = by_id.get(task.get("parent") or "")
    while parent is not None and parent["id"] not in above:
        above[parent["id"]] = parent["title"]
        parent = by_id.get(parent.get("parent") or "")
    return [*reversed(above.values())]
