"""Places in the list: sort keys that put a task before or after another task."""

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import TaskMoved
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.rejections import invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.ordering import between, default_key


class Spot(msgspec.Struct, frozen=True):
    """A place in the list: its sort key, and the task that follows it (None at the end)."""

    rank: str
    before: str | None


def find_spot(state: State, before: str | None, after: str | None, moved: str | None = None) -> Spot | Rejection:
    """Return the place before or after a neighbor, or the end of the list without one. The task `moved` is ignored."""
    ids = state.ids()
    neighbour = before if before is not None else after
    if neighbour is not None and neighbour not in state.tasks:
        return task_not_found(neighbour, state.next_task)
    position = len(ids) if neighbour is None else state.index(neighbour) + (before is None)
    low = position - 1
    if low >= 0 and ids[low] == moved:
        low -= 1
    high = position
    if high < len(ids) and ids[high] == moved:
        high += 1
    low_key = state.key(ids[low]) if low >= 0 else ""
    if high < len(ids):
        return Spot(between(low_key, state.key(ids[high])), ids[high])
    return Spot(between(low_key, default_key(str(state.next_task))), None)


def move(state: State, params: p.TaskMove, _command: Command) -> Decision | Rejection:
    task = params.task
    if task not in state.tasks:
        return task_not_found(task, state.next_task)
    if (params.before is not None) + (params.after is not None) + params.to_end != 1:
        expected = "exactly one of before, after, to_end"
        return invalid("before", expected, "Pass exactly one of before, after and to_end.")
    neighbour = params.before if params.before is not None else params.after
    if neighbour == task:
        return invalid(
            "before" if params.before else "after",
            "another task",
            "A task can't be moved next to itself; name another task.",
        )
    spot = find_spot(state, params.before, params.after, task)
    if isinstance(spot, Rejection):
        return spot
    ids = state.ids()
    position = state.index(task)
    following = ids[position + 1] if position + 1 < len(ids) else None
    if following == spot.before:
        return NOTHING
    return Decision((TaskMoved(task=task, before=spot.before, rank=spot.rank),))
