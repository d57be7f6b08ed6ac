"""`list.replace`: the smallest set of changes that turns the list into the requested one.

The table of transitions and the check for open blockers don't apply, since a replacement specifies the result, not the
steps.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import (
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    KnownEvent,
    TaskAdded,
    TaskEdited,
    TaskMoved,
)
from punchlist_schemas.order import longest_rise
from punchlist_schemas.things import FINISHED, Task
from punchlistd.domain.commands import NOTHING, Command, Decision, Parts
from punchlistd.domain.decide import notes
from punchlistd.domain.decide.add import Item, build_item_task, order_additions, resolve_items
from punchlistd.domain.decide.edit import check_metadata, diff_metadata
from punchlistd.domain.decide.gates import check_approver
from punchlistd.domain.decide.reserving import clear_owner
from punchlistd.domain.decide.status import change_status
from punchlistd.domain.rejections import dependency_cycle, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.dependencies import combine_waits, find_cycle
from punchlistd.domain.state.members import EDITABLE, MEMBERS, add_days
from punchlistd.domain.state.ordering import between, default_key


class _Plan(msgspec.Struct, frozen=True):
    """The result of a replacement.

    Attributes:
        dropped: Ids of the tasks to delete.
        kept: Ids of unlisted tasks that stay in the list, placed before the listed ones.
        items: The listed tasks.
    """

    dropped: dict[str, None]
    kept: list[str]
    items: list[Item]

    def blockers(self, task: Task) -> list[str]:
        """Return those blockers of an old task that are not dropped."""
        return [blocker for blocker in task.blocked_by if blocker not in self.dropped]

    def parent(self, tasks: Mapping[str, Task], task: Task) -> str | None:
        """Return the nearest ancestor of an old task that is not dropped."""
        parent = task.parent
        for _ in self.dropped:
            if parent is None or parent not in self.dropped:
                break
            parent = tasks[parent].parent
        return parent


def replace(state: State, params: p.ListReplace, command: Command) -> Parts:
    """Yield the parts of a replacement. Members of an item that have their default value don't change an existing task.

    The status is an exception: it is always applied.
    """
    names = _assign_ids(state, params.tasks)
    if isinstance(names, Rejection):
        yield names
        return
    plan = _build_plan(state, params, names)
    for item in resolve_items(params.tasks, names, state.tasks.keys() - plan.dropped.keys()):
        if isinstance(item, Rejection):
            yield item
            return
        plan.items.append(item)
        yield NOTHING
    if (rejection := _check_cycle(state, plan)) is not None:
        yield rejection
        return
    yield Decision(tuple(map(Deleted, plan.dropped)))
    later: list[KnownEvent] = []
    for event in order_additions(state, _place_tasks(state, plan), later):
        yield Decision((event,))
    for item in plan.items:
        task, edits = state.tasks.get(item.name), list[KnownEvent]()
        if task is not None:
            removals, additions = _change_relations(state, plan, item, task)
            edits += (*update_task(task, item.request, command.at), *removals)
            later += additions
        rejection = check_edits(task, edits, command.actor) or notes.check_notes(task, item.name, item.request.notes)
        if rejection is not None:
            yield rejection
            return
        later += (notes.build_note(item.name, note, command.actor) for note in item.request.notes)
        yield Decision(tuple(edits))
    yield Decision(tuple(later))


def check_edits(task: Task | None, changes: Iterable[KnownEvent], actor: str) -> Rejection | None:
    for event in changes:
        if task is not None and isinstance(event, TaskEdited):
            rejection = (None if event.gate is UNSET else check_approver(task, actor)) or check_metadata(task, event)
            if rejection is not None:
                return rejection
    return None


def _build_plan(state: State, params: p.ListReplace, names: Iterable[str]) -> _Plan:
    listed = set(names)
    rest = [task for task in state.ordered() if task.id not in listed]
    kept = [task.id for task in rest if params.keep_unfinished and task.status not in FINISHED]
    dropped = dict.fromkeys(task.id for task in rest if not params.keep_unfinished or task.status in FINISHED)
    return _Plan(dropped, kept, [])


def _assign_ids(state: State, tasks: Sequence[p.NewTask]) -> list[str] | Rejection:
    """Return the id of each listed task: the requested one, that of an old task with the same title, or a new one."""
    used: set[str] = set()
    for request in tasks:
        if request.task is not None:
            if request.task not in state.tasks or request.task in used:
                return task_not_found(request.task)
            used.add(request.task)
    by_title: defaultdict[str, deque[str]] = defaultdict(deque)
    for task in state.ordered():
        if task.id not in used:
            by_title[task.title].append(task.id)
    names: list[str] = []
    number = state.next_task
    for request in tasks:
        if request.task is not None:
            names.append(request.task)
        elif ids := by_title[request.title]:
            names.append(ids.popleft())
        else:
            names.append(str(number))
            number += 1
    return names


def _check_cycle(state: State, plan: _Plan) -> Rejection | None:
    tasks = state.tasks
    items = {item.name: item for item in plan.items}
    related = [item.name for item in plan.items if item.blocked_by or item.parent is not None]
    if not related:
        return None

    def blockers(name: str) -> Iterable[str]:
        item = items.get(name)
        if item is not None and (item.blocked_by or name not in tasks):
            return item.blocked_by
        return plan.blockers(tasks[name])

    def parent(name: str) -> Iterable[str]:
        item = items.get(name)
        above = item.parent if item is not None else None
        if above is None and name in tasks:
            above = plan.parent(tasks, tasks[name])
        return () if above is None else (above,)

    path = find_cycle(related, blockers) or find_cycle(related, parent)
    if path is None:
        below: dict[str, list[str]] = {}
        for name in dict.fromkeys((*tasks, *items)):
            for above in parent(name):
                below.setdefault(above, []).append(name)
        path = find_cycle(related, combine_waits(blockers, lambda name: below.get(name, ()))) if below else None
    if path is None:
        return None
    return dependency_cycle([_spell(items.get(name), name, tasks) for name in path])


def _spell(item: Item | None, name: str, tasks: Mapping[str, Task]) -> str:
    # The caller doesn't know the id of a new task, only its ref.
    return item.request.ref or name if item is not None and name not in tasks else name


def _place_tasks(state: State, plan: _Plan) -> Iterator[TaskAdded | TaskMoved]:
    """Yield the events that add and move tasks, in the order of the result, with as few moves as possible."""
    items = {item.name: item for item in plan.items}
    target = [*plan.kept, *items]
    keys = {name: state.key(name) for name in target if name in state.tasks}
    names = list(keys)
    fixed = {names[index] for index in longest_rise(keys.values())}
    ahead = [name for name in reversed(target) if name in fixed]
    number = state.next_task
    low = ""
    for name in target:
        is_new = name not in keys
        number += is_new
        if name in fixed:
            low = keys[ahead.pop()]
            continue
        before = ahead[-1] if ahead else None
        high = default_key(str(number)) if before is None else keys[before]
        rank = "" if is_new and before is None and low < default_key(name) else between(low, high)
        low = rank or default_key(name)
        if is_new:
            yield TaskAdded(build_item_task(items[name]), before, rank)
        else:
            yield TaskMoved(task=name, before=before, rank=rank)


_REPLACED_MEMBERS = tuple((name, MEMBERS[name].default) for name in EDITABLE if name != "parent")
"""Members that a replacement sets, with their defaults. The parent is changed together with the other relations."""


def update_task(task: Task, request: p.NewTask, at: int) -> Iterator[KnownEvent]:
    """Yield the events that bring a task up to date, except its relations."""
    changes: dict[str, Any] = {}
    for name, default in _REPLACED_MEMBERS:
        value = getattr(request, name)
        if value != default and value != getattr(task, name):
            changes[name] = value
    add_days(task, changes, request)
    metadata = diff_metadata(task.metadata, request.metadata)
    if changes or metadata is not UNSET:
        yield TaskEdited(task.id, **changes, metadata=metadata)
    event = change_status(task, request.status, request.result_summary or None, request.fail_reason or None, at)
    if event is not None:
        yield event
        if not request.owner:
            yield from clear_owner(task, event)


def _change_relations(
    state: State, plan: _Plan, item: Item, task: Task
) -> tuple[Sequence[KnownEvent], Sequence[KnownEvent]]:
    """Return the events that remove relations, and those that add relations.

    If all removals come before all additions, no intermediate step closes a cycle.
    """
    removals: list[KnownEvent] = []
    additions: list[KnownEvent] = []
    if item.blocked_by:
        old = dict.fromkeys(plan.blockers(task))
        new = dict.fromkeys(item.blocked_by)
        removals.extend(DependencyRemoved(task.id, blocker) for blocker in old if blocker not in new)
        additions.extend(DependencyAdded(task.id, blocker) for blocker in new if blocker not in old)
    parent = plan.parent(state.tasks, task)
    if item.parent is not None and item.parent != parent:
        if parent is not None:
            removals.append(TaskEdited(task.id, parent=None))
        additions.append(TaskEdited(task.id, parent=item.parent))
    return removals, additions
