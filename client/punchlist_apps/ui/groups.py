"""Groups and sorts the tasks of a list, and folds groups."""

from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

from punchlist.base.departures import clock
from punchlist_apps.ui.filters import is_deferred
from punchlist_apps.ui.parts import Item, build_tree, hue, sanitize
from punchlist_schemas.things import FINISHED, PRIORITIES, Task, is_heading

HEADING = "\0"
"""Start of the key of a folded group. No task's id contains it."""

STATES = {
    "running": ("Running", "in_progress"),
    "needs": ("Needs you", "asks"),
    "ready": ("Ready", "title"),
    "blocked": ("Blocked", "blocked"),
    "paused": ("Paused", "paused"),
    "later": ("Put off", "note"),
    "done": ("Done", "completed"),
}
"""Groups by state in the order shown: their heading and its style."""

GROUPINGS = ("state", "owner", "label", "parent", "none")
_LAST = float("inf")


def find_state(task: Task, parents: Container[str | None]) -> str:
    """Return a task's group by state. A task with open subtasks counts as blocked, since no agent works on it."""
    if task.status == "failed" or task.waits_for == "yes":
        return "needs"
    if task.status != "pending":
        return {"in_progress": "running", "completed": "done"}.get(task.status, "paused")
    if task.open_blockers or task.id in parents or is_heading(task.metadata):
        return "blocked"
    return "later" if is_deferred(task) else "ready"


SORTS: dict[str, Callable[[Task], Any]] = {
    "order": lambda task: 0,
    "priority": lambda task: -PRIORITIES.index(task.priority),
    "due": lambda task: task.due or _LAST,
    "owner": lambda task: (not task.owner, task.owner.casefold()),
    "age": lambda task: task.status_changed_at,
}
"""Sort keys. Tasks with equal keys stay in list order."""


class Arrangement(NamedTuple):
    """How a list is arranged.

    Attributes:
        grouping: One of `GROUPINGS`.
        sort: One of `SORTS`.
        folded: Keys of folded groups.
    """

    grouping: str = "state"
    sort: str = "order"
    folded: frozenset[str] = frozenset({f"{HEADING}state:done"})

    def build_key(self, name: str) -> str:
        """Return the key of a group."""
        return f"{HEADING}{self.grouping}:{name}"

    def find_groups(self, task: Task, parents: Container[str | None]) -> tuple[str, ...]:
        """Return the names of the groups in which a task stands."""
        if self.grouping == "state":
            return (find_state(task, parents),)
        if self.grouping == "owner":
            return (task.owner,)
        return task.labels or ("",) if self.grouping == "label" else ("",)

    def place(self, task: Task, parents: Container[str | None]) -> "Placed":
        """Return a task with its place.

        Args:
            parents: Ids of tasks with open subtasks.
        """
        return Placed(task, self.find_groups(task, parents), SORTS[self.sort](task), Item(task.id))


class Placed(NamedTuple):
    """A task with its groups, its sort key, and its line."""

    task: Task
    groups: tuple[str, ...]
    order: Any
    item: Item


def task_of_key(key: str) -> str:
    """Return the task's id for a line's key. A task with several labels has several lines."""
    return key.partition(HEADING)[0]


def arrange(
    tasks: Iterable[Placed], how: Arrangement, marks: tuple[str, str], *, fold: bool
) -> tuple[list[Item], dict[str, str]]:
    """Return the lines of a list, and the group's key for each line's key.

    Args:
        marks: Signs of an open and of a folded group.
        fold: Whether folded groups are folded.
    """
    if how.sort != "order":
        tasks = sorted(tasks, key=lambda placed: placed.order)
    if how.grouping == "parent":
        return build_tree(placed.task for placed in tasks), {}
    if how.grouping == "none":
        return [placed.item for placed in tasks], {}
    groups: dict[str, list[Placed]] = {name: [] for name in STATES} if how.grouping == "state" else {}
    for placed in tasks:
        for name in placed.groups:
            groups.setdefault(name, []).append(placed)
    if how.grouping != "state":
        groups = dict(sorted(groups.items(), key=lambda group: (not group[0], group[0].casefold())))
    items: list[Item] = []
    places: dict[str, str] = {}
    for name, members in groups.items():
        if not members:
            continue
        key = how.build_key(name)
        is_folded = fold and key in how.folded
        heading, style = _describe(name, how.grouping, members)
        items.append(Item(key if is_folded else "", 0, f"{marks[is_folded]} {heading}", style))
        places[key] = key
        if is_folded:
            continue
        if how.grouping == "state" and name == "done" and how.sort == "order":
            members.sort(key=lambda placed: -placed.task.status_changed_at)
        for placed in members:
            item = placed.item if placed.task.id not in places else Item(f"{placed.task.id}{HEADING}{name}")
            places[item.key] = key
            items.append(item)
    return items, places


def _describe(name: str, grouping: str, members: list[Placed]) -> tuple[str, str]:
    """Return a group's heading and its style."""
    if grouping == "state":
        words, style = STATES[name]
        newest = (
            f", the newest {clock(max(placed.task.status_changed_at for placed in members))}" if name == "done" else ""
        )
        return f"{words} {len(members)}{newest}", style
    sign, none = ("@", "nobody") if grouping == "owner" else ("+", "no label")
    words = f"{sign}{sanitize(name)}" if name else none
    unfinished = sum(placed.task.status not in FINISHED for placed in members)
    style = "dim" if not name else hue(name) if grouping == "owner" else "label"
    return f"{words} {len(members)}, {unfinished} open", style
