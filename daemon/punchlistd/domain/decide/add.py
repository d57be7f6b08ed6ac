"""`task.add`, and helpers shared by all calls that add tasks."""

from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AddedTask, DependencyAdded, KnownEvent, TaskAdded, TaskEdited, TaskMoved
from punchlist_schemas.things import TASK_LINKS, Task
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.decide.days import add_moments
from punchlistd.domain.decide.order import find_spot
from punchlistd.domain.decide.serial import check_start
from punchlistd.domain.evolve import merge_metadata
from punchlistd.domain.rejections import dependency_cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.circles import find_waiting_cycle
from punchlistd.domain.state.dependencies import find_blocker_cycle
from punchlistd.domain.state.equal import equal_task
from punchlistd.domain.state.members import EDITABLE, RARE


def add(state: State, params: p.TaskAdd, _command: Command) -> Decision | Rejection:
    if params.keep_equal and (kept := equal_task(state, params)) is not None:
        return _check_relations(state, kept.id, params) or Decision(_add_edges(state, kept, params.blocked_by))
    if params.status == "in_progress" and (rejection := check_start(state, None)) is not None:
        return rejection
    name = str(state.next_task)
    dated = params if params.due_day is params.not_before_day is None else add_moments(params)
    if isinstance(dated, Rejection):
        return dated
    task = build_task(name, dated)
    if params.blocked_by or params.blocks or params.parent is not None:
        if (rejection := _check_relations(state, name, params)) is not None:
            return rejection
        task = replace(task, parent=params.parent, blocked_by=deduplicate(params.blocked_by))
    event = TaskAdded(task)
    if params.before is not None or params.after is not None:
        event = _place(state, params, task)
        if isinstance(event, Rejection):
            return event
    edges = (DependencyAdded(blocked, name) for blocked in deduplicate(params.blocks)) if params.blocks else ()
    return Decision((event, *edges))


def _place(state: State, params: p.TaskAdd, task: AddedTask) -> TaskAdded | Rejection:
    if params.before is not None and params.after is not None:
        return invalid("after", "one of before and after", "Pass `before` or `after`, not both.")
    spot = find_spot(state, params.before, params.after)
    if isinstance(spot, Rejection):
        return spot
    return TaskAdded(task) if spot.before is None else TaskAdded(task, spot.before, spot.rank)


def _add_edges(state: State, kept: Task, blockers: Sequence[str]) -> tuple[DependencyAdded, ...]:
    """Return the new edges of a kept task. It gets none if it isn't pending or if they would close a cycle."""
    new = [other for other in deduplicate(blockers) if other not in kept.blocked_by]
    changed = {kept.id: (*kept.blocked_by, *new)}
    if (
        kept.status != "pending"
        or find_blocker_cycle(kept.id, state.tasks, changed)
        or find_waiting_cycle(state, kept.id, changed)
    ):
        return ()
    return tuple(DependencyAdded(kept.id, other) for other in new)


_RARE = tuple(name for name in RARE if name in EDITABLE)
_rare_of = attrgetter(*_RARE)


def build_task(name: str, request: p.TaskAdd | p.NewTask) -> AddedTask:
    """Return a new task, without its parent and edges."""
    task = AddedTask(
        id=name,
        title=request.title,
        status=request.status,
        priority=request.priority,
        description=request.description,
        active_form=request.active_form,
        owner=request.owner,
        metadata=merge_metadata({}, request.metadata) if request.metadata else request.metadata,
        result_summary=request.result_summary,
        fail_reason=request.fail_reason,
        attempts=1 if request.status == "in_progress" else 0,
    )
    rare = _rare_of(request)
    return replace(task, **dict(zip(_RARE, rare, strict=True))) if any(rare) else task


def deduplicate(ids: Iterable[str]) -> tuple[str, ...]:
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
    path = find_blocker_cycle(name, tasks, changed) or find_waiting_cycle(state, name, changed, {name: params.parent})
    return None if path is None else dependency_cycle(path)


class Item(msgspec.Struct, frozen=True):
    """A task in a call that adds several: its id, its params, and its relations with refs resolved."""

    name: str
    request: p.NewTask
    blocked_by: tuple[str, ...]
    parent: str | None


def resolve_items(
    tasks: Sequence[p.NewTask], names: Sequence[str], known_ids: Container[str], next_task: int = 0
) -> Iterator[Item | Rejection]:
    """Yield the items of a call. Refs take precedence over ids. At the first invalid task, yield a rejection and stop.

    Args:
        tasks: The tasks in the call.
        names: The id of each task in the call.
        known_ids: Ids of other tasks that the tasks in the call may refer to.
        next_task: The number of the next new task, for rejections.
    """
    refs: dict[str, str] = {}
    for request, name in zip(tasks, names, strict=True):
        if request.ref in refs:
            yield invalid("ref", "a unique ref for each task", f"The ref {request.ref!r} is used twice; rename one.")
            return
        if request.ref is not None:
            refs[request.ref] = name
    for name, request in zip(names, tasks, strict=True):
        for other in request.blocked_by if request.parent is None else (*request.blocked_by, request.parent):
            if other not in refs and other not in known_ids:
                yield task_not_found(other, next_task)
                return
        dated = add_moments(request)
        if isinstance(dated, Rejection):
            yield dated
            return
        if request.links:
            links = (
                replace(link, to=refs.get(link.to, link.to)) if link.kind in TASK_LINKS else link
                for link in request.links
            )
            dated = replace(dated, links=tuple(links))
        blockers = deduplicate(refs.get(other, other) for other in request.blocked_by)
        yield Item(name, dated, blockers, None if request.parent is None else refs.get(request.parent, request.parent))


def build_item_task(item: Item) -> AddedTask:
    return replace(build_task(item.name, item.request), blocked_by=item.blocked_by, parent=item.parent)


def order_additions(
    state: State, events: Iterable[TaskAdded | TaskMoved], later: list[KnownEvent]
) -> Iterator[TaskAdded | TaskMoved]:
    """Yield events that add tasks. The tasks may refer to each other in any order.

    An added task keeps references to tasks that already exist. Events for its other edges and its parent are appended
    to `later`. The caller must apply those after all tasks have been added.
    """
    known_ids = set(state.tasks)
    for event in events:
        if isinstance(event, TaskMoved):
            yield event
            continue
        task = event.task
        later.extend(DependencyAdded(task.id, other) for other in task.blocked_by if other not in known_ids)
        parent = task.parent
        if parent is not None and parent not in known_ids:
            later.append(TaskEdited(task.id, parent=parent))
            parent = None
        kept = tuple(other for other in task.blocked_by if other in known_ids)
        yield replace(event, task=replace(task, parent=parent, blocked_by=kept))
        known_ids.add(task.id)
