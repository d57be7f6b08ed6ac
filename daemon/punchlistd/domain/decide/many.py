"""`task.add_many`: adds or updates several tasks in one step, with the edges between them."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import DependencyAdded, KnownEvent, TaskAdded, TaskEdited
from punchlist_schemas.things import Task
from punchlistd.domain.commands import NOTHING, Command, Decision, Parts
from punchlistd.domain.decide import notes
from punchlistd.domain.decide.add import Item, build_item_task, order_additions, resolve_items
from punchlistd.domain.decide.replace import check_edits, update_task
from punchlistd.domain.rejections import dependency_cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.dependencies import combine_waits, find_cycle
from punchlistd.domain.state.equal import equal_tasks


def add_many(state: State, params: p.TaskAddMany, command: Command) -> Parts:
    tasks = _keep_equal(state, params.tasks) if params.keep_equal else params.tasks
    names = _assign_ids(state, tasks)
    if isinstance(names, Rejection):
        yield names
        return
    items: list[Item] = []
    for item in resolve_items(tasks, names, state.tasks, state.next_task):
        if isinstance(item, Rejection):
            yield item
            return
        items.append(item)
        yield NOTHING
    path = _find_cycle(state, items)
    # With `keep_equal`, drop the requested edges of tasks that are already in the list if any edges close a cycle.
    if path is not None and params.keep_equal:
        items = [item if item.request.task is None else replace(item, blocked_by=()) for item in items]
        path = _find_cycle(state, items)
    if path is not None:
        spelled = {item.name: item.request.ref for item in items if item.request.ref is not None}
        yield dependency_cycle([spelled.get(name, name) for name in path])
        return
    later: list[KnownEvent] = []
    added = (TaskAdded(build_item_task(item)) for item in items if item.request.task is None)
    for event in order_additions(state, added, later):
        yield Decision((event,))
    yield Decision(tuple(later))
    for item in items:
        task = state.tasks.get(item.name)
        changes = [] if task is None else list(_update_existing(state, item, task, command.at))
        rejection = check_edits(task, changes, command.actor) or notes.check_notes(task, item.name, item.request.notes)
        if rejection is not None:
            yield rejection
            return
        yield Decision((*changes, *(notes.build_note(item.name, note, command.actor) for note in item.request.notes)))


def _keep_equal(state: State, tasks: Sequence[p.NewTask]) -> list[p.NewTask]:
    """Replace each task that equals one in the list with a reference to the task in the list.

    The task in the list gets new edges only if it is pending.
    """
    equal = equal_tasks(state, tasks)
    requests: list[p.NewTask] = []
    for request, name in zip(tasks, equal, strict=True):
        if name and request.task is None:
            task = state.tasks[name]
            edges = request.blocked_by if task.status == "pending" else ()
            requests.append(p.NewTask(title=task.title, task=name, ref=request.ref, blocked_by=edges))
        else:
            requests.append(request)
    return requests


def _assign_ids(state: State, tasks: Sequence[p.NewTask]) -> list[str] | Rejection:
    names: list[str] = []
    number = state.next_task
    for request in tasks:
        if request.task is None:
            names.append(str(number))
            number += 1
        elif request.task in state.tasks:
            names.append(request.task)
        else:
            return task_not_found(request.task, state.next_task)
    if len(set(names)) < len(names):
        seen = set[str]()
        twice = next(name for name in names if name in seen or seen.add(name))
        return invalid("task", "a different task in each entry", f"Task {twice!r} is listed twice; remove one of them.")
    return names


def _update_existing(state: State, item: Item, task: Task, at: int) -> Iterator[KnownEvent]:
    """Yield the events that update an existing task.

    They don't change a claimed task's status, which is left to its owner.
    """
    request = item.request
    # Pending is the default in a request, so it doesn't change the status.
    if request.status == "pending" or item.name in state.claims:
        request = replace(request, status=task.status, result_summary="", fail_reason="")
    yield from update_task(task, request, at)
    if item.parent is not None and item.parent != task.parent:
        yield TaskEdited(task.id, parent=item.parent)
    yield from (DependencyAdded(task.id, other) for other in item.blocked_by if other not in task.blocked_by)


def _find_cycle(state: State, items: list[Item]) -> list[str] | None:
    related = [item.name for item in items if item.blocked_by or item.parent is not None]
    if not related:
        return None
    by_id = {item.name: item for item in items}

    def blockers(name: str) -> Iterable[str]:
        new = by_id[name].blocked_by if name in by_id else ()
        return (*new, *state.tasks[name].blocked_by) if name in state.tasks else new

    def parent(name: str) -> Iterable[str]:
        above = by_id[name].parent if name in by_id else None
        if above is None and name in state.tasks:
            above = state.tasks[name].parent
        return () if above is None else (above,)

    def children(name: str) -> Iterable[str]:
        yield from (child for child in state.families.get(name, ()) if name in parent(child))
        yield from below.get(name, ())

    below: dict[str, list[str]] = {}
    for item in items:
        if item.parent is not None:
            below.setdefault(item.parent, []).append(item.name)
    path = find_cycle(related, blockers) or find_cycle(related, parent)
    if path is None and (below or state.families):
        path = find_cycle(related, combine_waits(blockers, children))
    return path
