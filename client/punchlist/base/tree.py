"""Trees of tasks: tree order, and the path to a task.

Works on the plain JSON values sent on the wire. Imports little, because shell prompts load this module.
"""

from typing import TYPE_CHECKING

from punchlist.base.text import clip, one_line
from punchlist_schemas.vocabulary import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Task = dict[str, Any]

_MAX_TITLE = 40
"""Longest title in a path, in characters."""

_MAX_TITLES = 2
"""Maximum number of titles in a path. In a longer one, the middle titles are left out."""


def as_tree(tasks: "Iterable[Task]") -> "list[tuple[int, Task]]":
    """Return depth and task in tree order: children follow their parent; otherwise, the order is unchanged.

    A task whose parent is missing is at the top level, and so is the first task of a parent cycle.
    """
    tasks = list(tasks)
    ids = {task["id"] for task in tasks}
    children: dict[str | None, list[Task]] = {}
    for task in tasks:
        parent = task.get("parent")
        children.setdefault(parent if parent in ids and parent != task["id"] else None, []).append(task)
    rows: list[tuple[int, Task]] = []
    seen: set[str] = set()
    for root in [*children.get(None, ()), *tasks]:
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
    """Return the parents that can't be worked on because they have unfinished children.

    Children that are blocked by their parent don't count.

    Args:
        tasks: Tasks of a list, including all unfinished ones. Finished tasks are ignored.
        member: Returns a member of a task; by default, reads an attribute.
    """
    unfinished = (task for task in tasks if member(task, "status") not in FINISHED)
    parents = ((member(task, "parent"), member(task, "open_blockers") or ()) for task in unfinished)
    return {parent for parent, blockers in parents if parent not in blockers}


def with_path(title: str, above: "Sequence[str]") -> str:
    """Return a task's title after its parents' titles, `Backend › tests`. Of more than two, keep the first and last."""
    parents = [clip(one_line(name), _MAX_TITLE) for name in above]
    if len(parents) > _MAX_TITLES:
        parents = [parents[0], "…", parents[-1]]
    return " › ".join([*parents, title])


def titles_above(task: "Task", by_id: "dict[str, Task]") -> "list[str]":
    """Return the titles of a task's parents that are in `by_id`, outermost first."""
    above: dict[str, str] = {}
    parent = by_id.get(task.get("parent") or "")
    while parent is not None and parent["id"] not in above:
        above[parent["id"]] = parent["title"]
        parent = by_id.get(parent.get("parent") or "")
    return [*reversed(above.values())]
