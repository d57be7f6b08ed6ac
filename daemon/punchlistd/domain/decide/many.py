"""Many tasks with the edges between them in one step: new ones, and others that are brought up to date."""

from collections.abc import Generator, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import DependencyAdded, KnownEvent, TaskAdded, TaskEdited
from punchlist_schemas.things import Task
from punchlistd.domain.commands import Command, Deciding, Decision
from punchlistd.domain.decide import notes
from punchlistd.domain.decide.add import added_task, additions, distinct, refs_of, tied_links
from punchlistd.domain.decide.days import with_moments
from punchlistd.domain.decide.replace import refused_edit, updates
from punchlistd.domain.rejections import cycle, invalid, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.dependencies import find_cycle, waits
from punchlistd.domain.state.equal import equal_tasks


class _Item(msgspec.Struct, frozen=True):
    """A task of the call: its id, what is asked of it, and its relations with refs resolved."""

    name: str
    asked: p.NewTask
    blocked_by: tuple[str, ...]
    parent: str | None


def add_many(state: State, params: p.TaskAddMany, command: Command) -> Deciding:
    """task.add_many: refs win over ids of the same spelling."""
    asked = (yield from _keeping(state, params.tasks)) if params.keep_equal else params.tasks
    items = yield from _items(state, asked)
    if isinstance(items, Rejection):
        return items
    path = yield from _cycle_among(state, items)
    if path is not None and params.keep_equal:
        items = [item if item.asked.task is None else replace(item, blocked_by=()) for item in items]
        path = yield from _cycle_among(state, items)
    if path is not None:
        spelled = {item.name: item.asked.ref for item in items if item.asked.ref is not None}
        return cycle([spelled.get(name, name) for name in path])
    added = [item for item in items if item.asked.task is None]
    begun = (replace(added_task(one.name, one.asked), parent=one.parent, blocked_by=one.blocked_by) for one in added)
    first, later = yield from additions(state, map(TaskAdded, begun))
    changes: list[KnownEvent] = []
    for item in items:
        task = state.tasks.get(item.name)
        if task is not None:
            changes.extend(_brought_up(state, item, task, command.at))
        refusal = notes.refused_notes(task, item.name, item.asked.notes)
        if refusal is not None:
            return refusal
        changes.extend(notes.added(item.name, one, command.actor) for one in item.asked.notes)
        yield
    for event in changes:
        if isinstance(event, TaskEdited):
            refusal = refused_edit(state.tasks[event.task], event, command.actor)
            if refusal is not None:
                return refusal
        yield
    return Decision((*first, *later, *changes))


def _keeping(state: State, tasks: Sequence[p.NewTask]) -> Generator[None, None, list[p.NewTask]]:
    """Return the tasks of the call. An equal task of the list gets only the edges, and only to pending tasks."""
    equal = yield from equal_tasks(state, tasks)
    asked: list[p.NewTask] = []
    for one, name in zip(tasks, equal, strict=True):
        if name and one.task is None:
            task = state.tasks[name]
            edges = one.blocked_by if task.status == "pending" else ()
            asked.append(p.NewTask(title=task.title, task=name, ref=one.ref, blocked_by=edges))
        else:
            asked.append(one)
        yield
    return asked


def _items(state: State, tasks: Sequence[p.NewTask]) -> Generator[None, None, list[_Item] | Rejection]:
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
        yield
    if len(set(names)) < len(names):
        seen = set[str]()
        twice = next(name for name in names if name in seen or seen.add(name))
        return invalid("task", "a different task for each", f"The task {twice!r} comes twice; leave one of them out.")
    refs = refs_of(tasks, names)
    if isinstance(refs, Rejection):
        return refs
    items: list[_Item] = []
    for name, asked in zip(names, tasks, strict=True):
        for other in (*asked.blocked_by, *(() if asked.parent is None else (asked.parent,))):
            if other not in refs and other not in state.tasks:
                return task_not_found(other, state.next_task)
        blockers = distinct(refs.get(other, other) for other in asked.blocked_by)
        parent = None if asked.parent is None else refs.get(asked.parent, asked.parent)
        dated = with_moments(asked)
        if isinstance(dated, Rejection):
            return dated
        tied = replace(dated, links=tied_links(asked.links, refs)) if asked.links else dated
        items.append(_Item(name, tied, blockers, parent))
        yield
    return items


def _brought_up(state: State, item: _Item, task: Task, at: int) -> Iterator[KnownEvent]:
    """What an existing task needs. Who holds a claim of it decides on its status alone."""
    is_status_kept = item.asked.status == "pending" or item.name in state.claims
    asked = replace(item.asked, status=task.status, result_summary="", fail_reason="") if is_status_kept else item.asked
    yield from updates(task, asked, at)
    if item.parent is not None and item.parent != task.parent:
        yield TaskEdited(task.id, parent=item.parent)
    yield from (DependencyAdded(task.id, other) for other in item.blocked_by if other not in task.blocked_by)


def _cycle_among(state: State, items: list[_Item]) -> Generator[None, None, list[str] | None]:
    """A cycle of blockers or parents: only tasks of the call can close one."""
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
    path = (yield from find_cycle(by_id, blockers)) or (yield from find_cycle(by_id, parent))
    if path is None and (below or state.families):
        path = yield from find_cycle(by_id, waits(blockers, children))
    return path
