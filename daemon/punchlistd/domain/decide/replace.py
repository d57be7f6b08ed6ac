"""Making the list be what is asked: the smallest set of changes that leads from one list to another.

A replacement states how things are; the table of transitions and open blockers, which guard steps, do not apply.
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
from punchlistd.domain.decide.add import Item, added_item, additions, items_of
from punchlistd.domain.decide.edit import metadata_patch, too_much_metadata
from punchlistd.domain.decide.gates import check_opening
from punchlistd.domain.decide.reserving import free
from punchlistd.domain.decide.status import status_change
from punchlistd.domain.rejections import cycle, task_not_found
from punchlistd.domain.state import State
from punchlistd.domain.state.dependencies import find_cycle, waits
from punchlistd.domain.state.members import EDITABLE, MEMBERS, add_days
from punchlistd.domain.state.ordering import between, default_key


class _Plan(msgspec.Struct, frozen=True):
    """The ids of the tasks that go and of those that stay in front, and what follows them."""

    dropped: dict[str, None]
    kept: list[str]
    items: list[Item]

    def blockers(self, task: Task) -> list[str]:
        """The edges of an old task that are left when the dropped ones are gone."""
        return [blocker for blocker in task.blocked_by if blocker not in self.dropped]

    def parent(self, tasks: Mapping[str, Task], task: Task) -> str | None:
        """The parent of an old task when the dropped ones are gone."""
        parent = task.parent
        for _ in self.dropped:
            if parent is None or parent not in self.dropped:
                break
            parent = tasks[parent].parent
        return parent


def replace(state: State, params: p.ListReplace, command: Command) -> Parts:
    """list.replace. What an item leaves at its default is not touched in a kept task, except its status."""
    names = _names(state, params.tasks)
    if isinstance(names, Rejection):
        yield names
        return
    plan = _plan(state, params, names)
    for item in items_of(params.tasks, names, state.tasks.keys() - plan.dropped.keys()):
        if isinstance(item, Rejection):
            yield item
            return
        plan.items.append(item)
        yield NOTHING
    if (refusal := _check_cycle(state, plan)) is not None:
        yield refusal
        return
    yield Decision(tuple(map(Deleted, plan.dropped)))
    ties: list[KnownEvent] = []
    for event in additions(state, _placements(state, plan), ties):
        yield Decision((event,))
    for item in plan.items:
        task, edits = state.tasks.get(item.name), list[KnownEvent]()
        if task is not None:
            loosened, tied = _relations(state, plan, item, task)
            edits += (*updates(task, item.asked, command.at), *loosened)
            ties += tied
        refusal = check_edits(task, edits, command.actor) or notes.check_notes(task, item.name, item.asked.notes)
        if refusal is not None:
            yield refusal
            return
        ties += (notes.added(item.name, one, command.actor) for one in item.asked.notes)
        yield Decision(tuple(edits))
    yield Decision(tuple(ties))


def check_edits(task: Task | None, changes: Iterable[KnownEvent], actor: str) -> Rejection | None:
    for event in changes:
        if task is not None and isinstance(event, TaskEdited):
            refusal = (None if event.gate is UNSET else check_opening(task, actor)) or too_much_metadata(task, event)
            if refusal is not None:
                return refusal
    return None


def _plan(state: State, params: p.ListReplace, names: Iterable[str]) -> _Plan:
    staying = set(names)
    rest = [task for task in state.ordered() if task.id not in staying]
    kept = [task.id for task in rest if params.keep_unfinished and task.status not in FINISHED]
    dropped = dict.fromkeys(task.id for task in rest if not params.keep_unfinished or task.status in FINISHED)
    return _Plan(dropped, kept, [])


def _names(state: State, tasks: Sequence[p.NewTask]) -> list[str] | Rejection:
    """The id of each task of the new list: the one it says, that of an old task of its title, or a new one."""
    named: set[str] = set()
    for asked in tasks:
        if asked.task is not None:
            if asked.task not in state.tasks or asked.task in named:
                return task_not_found(asked.task)
            named.add(asked.task)
    same_title: defaultdict[str, deque[str]] = defaultdict(deque)
    for task in state.ordered():
        if task.id not in named:
            same_title[task.title].append(task.id)
    names: list[str] = []
    number = state.next_task
    for asked in tasks:
        if asked.task is not None:
            names.append(asked.task)
        elif known := same_title[asked.title]:
            names.append(known.popleft())
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
        path = find_cycle(related, waits(blockers, lambda name: below.get(name, ()))) if below else None
    if path is None:
        return None
    return cycle([_spelled(items.get(name), name, tasks) for name in path])


def _spelled(item: Item | None, name: str, tasks: Mapping[str, Task]) -> str:
    """A new task is known to the caller by its ref."""
    return item.asked.ref or name if item is not None and name not in tasks else name


def _placements(state: State, plan: _Plan) -> Iterator[TaskAdded | TaskMoved]:
    """Brings the tasks into order, in order: those that stand right already stay where they are."""
    items = {item.name: item for item in plan.items}
    wanted = [*plan.kept, *items]
    keys = {name: state.key(name) for name in wanted if name in state.tasks}
    names = list(keys)
    fixed = {names[index] for index in longest_rise(keys.values())}
    ahead = [name for name in reversed(wanted) if name in fixed]
    number = state.next_task
    low = ""
    for name in wanted:
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
            yield TaskAdded(added_item(items[name]), before, rank)
        else:
            yield TaskMoved(task=name, before=before, rank=rank)


_REPLACED = tuple((name, MEMBERS[name].default) for name in EDITABLE if name != "parent")
"""Parents are relations."""


def updates(task: Task, asked: p.NewTask, at: int) -> Iterator[KnownEvent]:
    """What brings a task up to date with what is asked of it, but for its relations."""
    changes: dict[str, Any] = {}
    for name, default in _REPLACED:
        value = getattr(asked, name)
        if value != default and value != getattr(task, name):
            changes[name] = value
    add_days(task, changes, asked)
    metadata = metadata_patch(task.metadata, asked.metadata)
    if changes or metadata is not UNSET:
        yield TaskEdited(task.id, **changes, metadata=metadata)
    event = status_change(task, asked.status, asked.result_summary or None, asked.fail_reason or None, at)
    if event is not None:
        yield event
        if not asked.owner:
            yield from free(task, event)


def _relations(state: State, plan: _Plan, item: Item, task: Task) -> tuple[Sequence[KnownEvent], Sequence[KnownEvent]]:
    """What is loosened and what is tied afterwards: in this order no step on the way closes a cycle."""
    loosened: list[KnownEvent] = []
    tied: list[KnownEvent] = []
    if item.blocked_by:
        old = dict.fromkeys(plan.blockers(task))
        new = dict.fromkeys(item.blocked_by)
        loosened.extend(DependencyRemoved(task.id, blocker) for blocker in old if blocker not in new)
        tied.extend(DependencyAdded(task.id, blocker) for blocker in new if blocker not in old)
    parent = plan.parent(state.tasks, task)
    if item.parent is not None and item.parent != parent:
        if parent is not None:
            loosened.append(TaskEdited(task.id, parent=None))
        tied.append(TaskEdited(task.id, parent=item.parent))
    return loosened, tied
