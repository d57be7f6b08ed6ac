"""Adding a task, and what adding many shares with it."""

from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AddedTask, DependencyAdded, KnownEvent, TaskAdded, TaskEdited, TaskMoved
from punchlist_schemas.things import TASK_LINKS, Task
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.decide.days import with_moments
from punchlistd.domain.decide.order import spot
from punchlistd.domain.decide.serial import check_start
from punchlistd.domain.evolve import merged
from punchlistd.domain.rejections import cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.circles import circle
from punchlistd.domain.state.dependencies import cycle_through
from punchlistd.domain.state.equal import equal_task
from punchlistd.domain.state.members import EDITABLE, RARE


def add(state: State, params: p.TaskAdd, _command: Command) -> Decision | Rejection:
    if params.keep_equal and (kept := equal_task(state, params)) is not None:
        return _check_relations(state, kept.id, params) or Decision(_edges(state, kept, params.blocked_by))
    if params.status == "in_progress" and (refused := check_start(state, None)) is not None:
        return refused
    name = str(state.next_task)
    dated = params if params.due_day is params.not_before_day is None else with_moments(params)
    if isinstance(dated, Rejection):
        return dated
    task = added_task(name, dated)
    if params.blocked_by or params.blocks or params.parent is not None:
        if (refused := _check_relations(state, name, params)) is not None:
            return refused
        task = replace(task, parent=params.parent, blocked_by=distinct(params.blocked_by))
    event = TaskAdded(task)
    if params.before is not None or params.after is not None:
        event = _placed(state, params, task)
        if isinstance(event, Rejection):
            return event
    edges = (DependencyAdded(blocked, name) for blocked in distinct(params.blocks)) if params.blocks else ()
    return Decision((event, *edges))


def _placed(state: State, params: p.TaskAdd, task: AddedTask) -> TaskAdded | Rejection:
    if params.before is not None and params.after is not None:
        return invalid("after", "one of before and after", "Say where the task goes by `before` or `after`, not both.")
    place = spot(state, params.before, params.after)
    if isinstance(place, Rejection):
        return place
    return TaskAdded(task) if place.before is None else TaskAdded(task, place.before, place.rank)


def _edges(state: State, kept: Task, blockers: Sequence[str]) -> tuple[DependencyAdded, ...]:
    """Return the edges that a kept task gets: none if it is in progress, or if they would close a cycle."""
    new = [one for one in distinct(blockers) if one not in kept.blocked_by]
    changed = {kept.id: (*kept.blocked_by, *new)}
    if kept.status != "pending" or cycle_through(kept.id, state.tasks, changed) or circle(state, kept.id, changed):
        return ()
    return tuple(DependencyAdded(kept.id, one) for one in new)


_RARE = tuple(name for name in RARE if name in EDITABLE)
_rare_of = attrgetter(*_RARE)


def added_task(name: str, asked: p.TaskAdd | p.NewTask) -> AddedTask:
    """The task as it begins, still without parent and edges."""
    task = AddedTask(
        id=name,
        title=asked.title,
        status=asked.status,
        priority=asked.priority,
        description=asked.description,
        active_form=asked.active_form,
        owner=asked.owner,
        metadata=merged({}, asked.metadata) if asked.metadata else asked.metadata,
        result_summary=asked.result_summary,
        fail_reason=asked.fail_reason,
        attempts=1 if asked.status == "in_progress" else 0,
    )
    rare = _rare_of(asked)
    return replace(task, **dict(zip(_RARE, rare, strict=True))) if any(rare) else task


def distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _check_relations(state: State, name: str, params: p.TaskAdd) -> Rejection | None:
    tasks = state.tasks
    for other in (*params.blocked_by, *params.blocks, *(() if params.parent is None else (params.parent,))):
        if other not in tasks:
            return task_not_found(other, state.next_task)
    if not params.blocked_by or not (params.blocks or params.parent):
        return None
    changed: dict[str, Sequence[str]] = {name: params.blocked_by}
    for blocked in params.blocks:
        changed[blocked] = (*tasks[blocked].blocked_by, name)
    path = cycle_through(name, tasks, changed) or circle(state, name, changed, {name: params.parent})
    return None if path is None else cycle(path)


class Item(msgspec.Struct, frozen=True):
    """A task of a call of many: its id, what is asked of it, and its relations with refs resolved."""

    name: str
    asked: p.NewTask
    blocked_by: tuple[str, ...]
    parent: str | None


def items_of(
    tasks: Sequence[p.NewTask], names: Sequence[str], there: Container[str], next_task: int = 0
) -> Iterator[Item | Rejection]:
    """Yield the items of a call; a rejection, which comes last, takes their place. Refs win over ids.

    Args:
        tasks: What is asked for.
        names: The id of each task.
        there: Other tasks to which they may refer.
        next_task: The number of the next new task, for rejections.
    """
    refs: dict[str, str] = {}
    for asked, name in zip(tasks, names, strict=True):
        if asked.ref in refs:
            yield invalid("ref", "a different ref for each task", f"The ref {asked.ref!r} is used twice; rename one.")
            return
        if asked.ref is not None:
            refs[asked.ref] = name
    for name, asked in zip(names, tasks, strict=True):
        for other in asked.blocked_by if asked.parent is None else (*asked.blocked_by, asked.parent):
            if other not in refs and other not in there:
                yield task_not_found(other, next_task)
                return
        dated = with_moments(asked)
        if isinstance(dated, Rejection):
            yield dated
            return
        if asked.links:
            links = (
                replace(one, to=refs.get(one.to, one.to)) if one.kind in TASK_LINKS else one for one in asked.links
            )
            dated = replace(dated, links=tuple(links))
        blockers = distinct(refs.get(other, other) for other in asked.blocked_by)
        yield Item(name, dated, blockers, None if asked.parent is None else refs.get(asked.parent, asked.parent))


def added_item(item: Item) -> AddedTask:
    return replace(added_task(item.name, item.asked), blocked_by=item.blocked_by, parent=item.parent)


def additions(
    state: State, events: Iterable[TaskAdded | TaskMoved], later: list[KnownEvent]
) -> Iterator[TaskAdded | TaskMoved]:
    """Yield the events that add tasks which may refer to each other in any direction.

    What a task refers to must be there when it is added. Other edges and parents are added to `later`, for the time
    when all are there.
    """
    there = set(state.tasks)
    for event in events:
        if isinstance(event, TaskMoved):
            yield event
            continue
        task = event.task
        later.extend(DependencyAdded(task.id, other) for other in task.blocked_by if other not in there)
        parent = task.parent
        if parent is not None and parent not in there:
            later.append(TaskEdited(task.id, parent=parent))
            parent = None
        kept = tuple(other for other in task.blocked_by if other in there)
        yield replace(event, task=replace(task, parent=parent, blocked_by=kept))
        there.add(task.id)
