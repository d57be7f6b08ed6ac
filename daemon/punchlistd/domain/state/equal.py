"""Matches tasks in a call with equal open tasks in the list: same parent, same normalized title (`title_key`).

Each task in the list matches at most one task in a call, and the oldest is matched first. So two equal tasks in one
call remain two tasks, and a plan that is sent twice matches as a whole. The same lookup after the call finds both kept
and added tasks.
"""

from collections import defaultdict
from collections.abc import Sequence

from punchlist_schemas.params import NewTask, TaskAdd
from punchlist_schemas.things import FINISHED, Task, title_key
from punchlistd.domain.state import State


def equal_task(state: State, params: TaskAdd) -> Task | None:
    """Return the open task that equals the one to add, if any."""
    requests = NewTask(title=params.title, parent=params.parent, status=params.status)
    (name,) = equal_tasks(state, (requests,))
    return state.tasks[name] if name else None


def equal_tasks(state: State, requests: Sequence[NewTask]) -> list[str]:
    """Return, for each task in a call, the id of the task that equals it or that it names; empty for a new task."""
    keys = [title_key(request.title) for request in requests]
    wanted_keys = {key for key, request in zip(keys, requests, strict=True) if request.task is None}
    named_ids = {request.task for request in requests}
    candidates: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
    for name, task in state.tasks.items():
        if task.status not in FINISHED and name not in named_ids and (key := title_key(task.title)) in wanted_keys:
            candidates[key, task.parent].append(name)
    for names in candidates.values():
        names.sort(key=lambda name: (len(name), name), reverse=True)
    refs = {request.ref: index for index, request in enumerate(requests) if request.ref is not None}
    depths = _depths([refs.get(request.parent or "") for request in requests])
    matches = [""] * len(requests)
    # Parents come before their children.
    for index in sorted(range(len(requests)), key=depths.__getitem__):
        request = requests[index]
        parent_index = refs.get(request.parent or "")
        parent = request.parent if parent_index is None else matches[parent_index]
        if request.task is not None:
            matches[index] = request.task
        elif parent != "" and request.status not in FINISHED and (names := candidates.get((keys[index], parent))):
            matches[index] = names.pop()
    return matches


def _depths(parents: Sequence[int | None]) -> list[int]:
    """Return the depth of each task below its topmost ancestor.

    Depths in cycles, which are rejected later, are meaningless.
    """
    depths: list[int | None] = [None] * len(parents)
    for start in range(len(parents)):
        chain: list[int] = []
        index: int | None = start
        while index is not None and depths[index] is None:
            depths[index] = 0
            chain.append(index)
            index = parents[index]
        depth = -1 if index is None else depths[index] or 0
        for offset, index in enumerate(reversed(chain), 1):
            depths[index] = depth + offset
    return [depth or 0 for depth in depths]
