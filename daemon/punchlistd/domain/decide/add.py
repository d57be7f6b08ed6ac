"""Adding a task, and what adding many shares with it."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AddedTask, DependencyAdded, KnownEvent, TaskAdded, TaskEdited, TaskMoved
from punchlist_schemas.things import TASK_LINKS, Link, Metadata, Task
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.decide.days import with_moments
from punchlistd.domain.decide.order import spot
from punchlistd.domain.decide.serial import refused_start
from punchlistd.domain.rejections import cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.circles import circle
from punchlistd.domain.state.dependencies import cycle_through
from punchlistd.domain.state.equal import equal_task
from punchlistd.domain.state.members import arguments, written


def add(state: State, params: p.TaskAdd, _command: Command) -> Decision | Rejection:
    """task.add."""
    if params.keep_equal and (kept := equal_task(state, params)) is not None:
        return _refused_relations(state, kept.id, params) or Decision(_edges(state, kept, params.blocked_by))
    if params.status == "in_progress" and (refused := refused_start(state, None)) is not None:
        return refused
    name = str(state.next_task)
    dated = with_moments(params)
    if isinstance(dated, Rejection):
        return dated
    task = added_task(name, dated)
    if params.blocked_by or params.blocks or params.parent is not None:
        if (refused := _refused_relations(state, name, params)) is not None:
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


def _without_nulls(metadata: Metadata) -> Metadata:
    return {key: value for key, value in metadata.items() if value is not None}


_BEGINS_AS = {
    "id": "name",
    "parent": "None",
    "blocked_by": "()",
    "metadata": "without_nulls(asked.metadata) if asked.metadata else asked.metadata",
    "attempts": '1 if asked.status == "in_progress" else 0',
    "notes": "()",
    "waits_for": "None",
    "spent_ms": "0",
    "created_at": "0",
    "status_changed_at": "0",
}
added_task: Callable[[str, p.TaskAdd | p.NewTask], AddedTask] = written(
    "name, asked",
    f"AddedTask({arguments('asked', AddedTask.__struct_fields__, _BEGINS_AS)})",
    AddedTask=AddedTask,
    without_nulls=_without_nulls,
)
"""The task as it begins, still without parent and edges."""


def distinct(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids without repetitions."""
    return tuple(dict.fromkeys(ids))


def _refused_relations(state: State, name: str, params: p.TaskAdd) -> Rejection | None:
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


def refs_of(tasks: Sequence[p.NewTask], names: Sequence[str]) -> dict[str, str] | Rejection:
    """Which id each temporary ref stands for."""
    refs: dict[str, str] = {}
    for task, name in zip(tasks, names, strict=True):
        if task.ref is None:
            continue
        if task.ref in refs:
            return invalid("ref", "a different ref for each task", f"The ref {task.ref!r} is used twice; rename one.")
        refs[task.ref] = name
    return refs


def tied_links(links: Sequence[Link], refs: Mapping[str, str]) -> tuple[Link, ...]:
    """Links with the refs in them resolved, as far as their kind leads to tasks."""
    return tuple(replace(one, to=refs.get(one.to, one.to)) if one.kind in TASK_LINKS else one for one in links)


def additions(
    state: State, events: Iterable[TaskAdded | TaskMoved]
) -> Generator[None, None, tuple[list[KnownEvent], list[KnownEvent]]]:
    """The events that add tasks which may refer to each other in any direction, and those to follow them.

    What a task refers to must be there when it is added: other edges and parents come behind, when all are there.
    """
    added: list[KnownEvent] = []
    later: list[KnownEvent] = []
    there = set(state.tasks)
    for event in events:
        yield
        if isinstance(event, TaskMoved):
            added.append(event)
            continue
        task = event.task
        later.extend(DependencyAdded(task.id, other) for other in task.blocked_by if other not in there)
        parent = task.parent
        if parent is not None and parent not in there:
            later.append(TaskEdited(task.id, parent=parent))
            parent = None
        kept = tuple(other for other in task.blocked_by if other in there)
        added.append(replace(event, task=replace(task, parent=parent, blocked_by=kept)))
        there.add(task.id)
    return added, later
