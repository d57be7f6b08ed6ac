"""Open tasks of a list that equal those of a call: same parent, same normalized title (`title_key`).

Each task of the list stands for one task of a call, the oldest first. So two tasks of one call stay two, and a plan
that is made twice is found as a whole. The same lookup after the call finds what was kept and what was added.
"""

from collections import defaultdict
from collections.abc import Sequence

from punchlist_schemas.params import NewTask, TaskAdd
from punchlist_schemas.things import FINISHED, Task, title_key
from punchlistd.domain.state import State


def equal_task(state: State, params: TaskAdd) -> Task | None:
    """Return the open task that equals the one to add, if any."""
    asked = NewTask(title=params.title, parent=params.parent, status=params.status)
    (name,) = equal_tasks(state, (asked,))
    return state.tasks[name] if name else None


def equal_tasks(state: State, asked: Sequence[NewTask]) -> list[str]:
    """Return, for each task of a call, the id of the task that equals it or that it names; empty for a new one."""
    keys = [title_key(one.title) for one in asked]
    wanted = {key for key, one in zip(keys, asked, strict=True) if one.task is None}
    named = {one.task for one in asked}
    there: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
    for name, task in state.tasks.items():
        if task.status not in FINISHED and name not in named and (key := title_key(task.title)) in wanted:
            there[key, task.parent].append(name)
    for names in there.values():
        names.sort(key=lambda name: (len(name), name), reverse=True)
    refs = {one.ref: index for index, one in enumerate(asked) if one.ref is not None}
    depths = _depths([refs.get(one.parent or "") for one in asked])
    found = [""] * len(asked)
    for index in sorted(range(len(asked)), key=depths.__getitem__):  # parents come before their children
        one = asked[index]
        above = refs.get(one.parent or "")
        parent = one.parent if above is None else found[above]
        if one.task is not None:
            found[index] = one.task
        elif parent != "" and one.status not in FINISHED and (names := there.get((keys[index], parent))):
            found[index] = names.pop()
    return found


def _depths(parents: Sequence[int | None]) -> list[int]:
    """Return the depth of each task below its topmost ancestor. Cycles, rejected later, have meaningless depths."""
    depths: list[int | None] = [None] * len(parents)
    for start in range(len(parents)):
        chain: list[int] = []
        index: int | None = start
        while index is not None and depths[index] is None:
            depths[index] = 0
            chain.append(index)
            index = parents[index]
        depth = -1 if index is None else depths[index] or 0
        for below, index in enumerate(reversed(chain), 1):
            depths[index] = depth + below
    return [depth or 0 for depth in depths]
