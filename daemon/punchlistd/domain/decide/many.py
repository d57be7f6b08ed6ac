"""Many tasks with the edges between them in one step: new ones, and others that are brought up to date."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import DependencyAdded, KnownEvent, TaskAdded, TaskEdited
from punchlist_schemas.things import Task
from punchlistd.domain.commands import NOTHING, Command, Decision, Parts
from punchlistd.domain.decide import notes
from punchlistd.domain.decide.add import Item, added_item, additions, items_of
from punchlistd.domain.decide.replace import check_edits, updates
from punchlistd.domain.rejections import cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.dependencies import find_cycle, waits
from punchlistd.domain.state.equal import equal_tasks


def add_many(state: State, params: p.TaskAddMany, command: Command) -> Parts:
    """task.add_many: refs win over ids of the same spelling."""
    tasks = _keeping(state, params.tasks) if params.keep_equal else params.tasks
    names = _names(state, tasks)
    if isinstance(names, Rejection):
        yield names
        return
    items: list[Item] = []
    for item in items_of(tasks, names, state.tasks, state.next_task):
        if isinstance(item, Rejection):
            yield item
            return
        items.append(item)
        yield NOTHING
    path = _cycle_among(state, items)
    if path is not None and params.keep_equal:
        items = [item if item.asked.task is None else replace(item, blocked_by=()) for item in items]
        path = _cycle_among(state, items)
    if path is not None:
        spelled = {item.name: item.asked.ref for item in items if item.asked.ref is not None}
        yield cycle([spelled.get(name, name) for name in path])
        return
    later: list[KnownEvent] = []
    added = (TaskAdded(added_item(item)) for item in items if item.asked.task is None)
    for event in additions(state, added, later):
        yield Decision((event,))
    yield Decision(tuple(later))
    for item in items:
        task = state.tasks.get(item.name)
        changes = [] if task is None else list(_brought_up(state, item, task, command.at))
        refusal = check_edits(task, changes, command.actor) or notes.check_notes(task, item.name, item.asked.notes)
        if refusal is not None:
            yield refusal
            return
        yield Decision((*changes, *(notes.added(item.name, one, command.actor) for one in item.asked.notes)))


def _keeping(state: State, tasks: Sequence[p.NewTask]) -> list[p.NewTask]:
    """Return the tasks of the call. An equal task of the list gets only the edges, and only to pending tasks."""
    equal = equal_tasks(state, tasks)
    asked: list[p.NewTask] = []
    for one, name in zip(tasks, equal, strict=True):
        if name and one.task is None:
            task = state.tasks[name]
            edges = one.blocked_by if task.status == "pending" else ()
            asked.append(p.NewTask(title=task.title, task=name, ref=one.ref, blocked_by=edges))
        else:
            asked.append(one)
    return asked


def _names(state: State, tasks: Sequence[p.NewTask]) -> list[str] | Rejection:
    names: list[str] = []
    number = state.next_task
    for asked in tasks:
        if asked.task is None:
            names.append(str(number))
            number += 1
        elif asked.task in state.tasks:
            names.append(asked.task)
        else:
            return task_not_found(asked.task, state.next_task)
    if len(set(names)) < len(names):
        seen = set[str]()
        twice = next(name for name in names if name in seen or seen.add(name))
        return invalid("task", "a different task for each", f"The task {twice!r} comes twice; leave one of them out.")
    return names


def _brought_up(state: State, item: Item, task: Task, at: int) -> Iterator[KnownEvent]:
    """What an existing task needs. Who holds a claim of it decides on its status alone."""
    is_status_kept = item.asked.status == "pending" or item.name in state.claims
    asked = replace(item.asked, status=task.status, result_summary="", fail_reason="") if is_status_kept else item.asked
    yield from updates(task, asked, at)
    if item.parent is not None and item.parent != task.parent:
        yield TaskEdited(task.id, parent=item.parent)
    yield from (DependencyAdded(task.id, other) for other in item.blocked_by if other not in task.blocked_by)


def _cycle_among(state: State, items: list[Item]) -> list[str] | None:
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
        path = find_cycle(related, waits(blockers, children))
    return path
