"""The current state of one conversation, the result of its events.

A state has one owner at a time. `evolve` changes it in place, so that the cost of an event does not depend on the
length of the list. Every change to a task goes through `insert`, `put`, `remove` or `place`, which update the order,
the counters and the queue of ready tasks.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence, Set
from heapq import heapify, heappop, heappush, nsmallest
from itertools import takewhile

import msgspec

from punchlist_schemas.things import (
    FINISHED,
    PRIORITIES,
    STATUSES,
    Conversation,
    Counts,
    ListKind,
    Metadata,
    Need,
    Priority,
    Running,
    Settings,
    Task,
    TaskName,
    is_heading,
    machine_of,
)
from punchlistd.domain.state.needs import FIRST_FAILED, MAX_NEEDS_SHOWN, NeedEntry, build_need, find_need, sort_needs
from punchlistd.domain.state.ordering import default_key

HELD = frozenset({"paused", "failed"})
"""A task whose parent has one of these statuses is not ready."""

_URGENCY: dict[Priority, int] = {priority: -weight for weight, priority in enumerate(PRIORITIES)}
_MAX_OUTDATED = 1_000
"""Maximum number of outdated entries in a queue of ready tasks, in addition to twice the number of valid ones."""

MAX_RUNNING_SHOWN = 8
"""Maximum number of tasks in progress shown with a conversation."""

MAX_PATH_SHOWN = 8
"""Maximum number of parents shown with a task."""

MAX_AGENTS = 256
"""Maximum number of agents that a list remembers. A list can outlive any number of sessions."""

MAX_CHANGES = 1_024
"""Maximum number of task changes that a list remembers, with their log positions."""


class Claim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The exclusive right of an owner to work on a task.

    `fence` is the claim's number. `at` is the time when the claim was made (0 if an older daemon recorded it). See
    `Claimed` for the other members.
    """

    owner: str
    fence: int
    lease_ms: int
    keep: bool = False
    keeper: str = ""
    session: bool = False
    at: int = 0

    @property
    def machine(self) -> str:
        return machine_of(self.keeper)


class State:
    """One conversation as of `version`.

    A pending task with an owner is reserved: only that owner can get it. When work on a task ends, its owner is
    cleared, so the owner of a pending task is always one that a caller set.

    Attributes:
        seq: Log position of the last event.
        exists: Whether the conversation has been opened and not deleted since.
        ranks: Sort keys of the tasks that are not in the order of their ids.
        messages: Log position of each message, by id.
        passing: Messages that a later message may supersede; None if an older daemon did not record them.
        hidden: Messages that are not shown, each with its successor, or "" if it was retracted.
        cleared: Number of tasks that the last clear removed.
        last_finished: The task whose completion left no task open. The list may have been cleared in the same step.
        running: Ids of the tasks in progress.
        claims: Claims in force, by task.
        offered: Tasks that are still in progress after their claim ended, and wait for the next claim.
        reserved: Pending tasks, by owner.
        agents: The most recent owners that were agents' sessions when they claimed a task, each with its newest claim.
        deferred: Deferred tasks, each with the time when it becomes ready.
        families: The children of each parent.
        ended_headings: Headings that should be finished, since they have no unfinished children.
        ended_parents: Other parents that should be finished, since they have no unfinished children.
        changes: Log positions at which tasks were added, changed or removed, oldest first.
        floor: Log position below which `changes` is incomplete.
    """

    __slots__ = (
        "_blocked",
        "_failed_children",
        "_last_key",
        "_needs",
        "_open_children",
        "_order",
        "_queues",
        "_ready",
        "_ready_reserved",
        "_ready_reserved_count",
        "_shown_needs",
        "_totals",
        "_wakes_at",
        "agents",
        "changes",
        "claims",
        "cleared",
        "conversation",
        "created_at",
        "deferred",
        "ended_headings",
        "ended_parents",
        "exists",
        "families",
        "floor",
        "hidden",
        "kind",
        "last_finished",
        "messages",
        "metadata",
        "next_task",
        "offered",
        "origins",
        "passing",
        "ranks",
        "reserved",
        "running",
        "seq",
        "sessions",
        "settings",
        "tasks",
        "title",
        "updated_at",
        "user",
        "version",
    )

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.version = 0
        self.seq = 0
        self.updated_at = 0
        self.reset()

    def reset(self) -> None:
        """Clear everything except `version` and `seq`, which continue after a deletion."""
        self.exists = False
        self.title = ""
        self.user = ""
        self.kind: ListKind = "list"
        self.metadata: Metadata = {}
        self.settings = Settings()
        self.sessions: tuple[str, ...] = ()
        self.origins: dict[str, tuple[str, ...]] = {}
        self.created_at = 0
        self.messages: dict[str, int] = {}
        self.passing: dict[str, None] | None = {}
        self.hidden: dict[str, str] = {}
        self.cleared = 0
        self.last_finished: Task | None = None
        self.clear()

    def clear(self) -> None:
        """Remove all tasks, and restart the numbering from 1."""
        self.next_task = 1
        self.tasks: dict[str, Task] = {}
        self.changes: deque[tuple[int, str]] = deque(maxlen=MAX_CHANGES)
        self.floor = self.seq
        self.ranks: dict[str, str] = {}
        self._order: list[str] = []
        self._last_key = ""
        self._totals = dict.fromkeys(STATUSES, 0)
        self._blocked = 0
        self._needs: list[NeedEntry] = []
        self._shown_needs: dict[str, Need] = {}
        self._ready: set[str] = set()
        self._ready_reserved: dict[str, set[str]] = {}
        self.reserved: dict[str, dict[str, None]] = {}
        self._ready_reserved_count = 0
        self._queues: dict[str | None, list[tuple[int, str, str]]] = {}
        self.families: dict[str, dict[str, None]] = {}
        self._open_children: dict[str, int] = {}
        self._failed_children: dict[str, int] = {}
        self.ended_headings: dict[str, None] = {}
        self.ended_parents: dict[str, None] = {}
        self.running: dict[str, None] = {}
        self.claims: dict[str, Claim] = {}
        self.agents: dict[str, Claim] = {}
        self.offered: dict[str, None] = {}
        self.deferred: dict[str, int] = {}
        self._wakes_at: int | None = None

    def copy(self) -> "State":
        """Return an independent copy. Tasks are shared, since they are immutable."""
        duplicate = State(self.conversation)
        for name in State.__slots__:
            value = getattr(self, name)
            setattr(duplicate, name, value.copy() if isinstance(value, (deque, dict, list, set)) else value)
        duplicate.families = {parent: family.copy() for parent, family in self.families.items()}
        duplicate.reserved = {owner: names.copy() for owner, names in self.reserved.items()}
        duplicate._ready_reserved = {owner: names.copy() for owner, names in self._ready_reserved.items()}
        duplicate._queues = {}
        return duplicate

    # reading

    def ordered(self) -> list[Task]:
        tasks = self.tasks
        return [tasks[task] for task in self._order]

    def ids(self) -> list[str]:
        """Return the ids in list order. The result is the state's own list: don't change or keep it."""
        return self._order

    def counts(self) -> Counts:
        return Counts(**self._totals, blocked=self._blocked, ready=len(self._ready))

    @property
    def remaining(self) -> int:
        totals = self._totals
        return totals["pending"] + totals["in_progress"] + totals["paused"]

    def remember_agent(self, claim: Claim) -> None:
        """Remember a claim's owner as an agent. Above the limit, forget the agent whose last claim is the oldest."""
        self.agents.pop(claim.owner, None)
        self.agents[claim.owner] = claim
        if len(self.agents) > MAX_AGENTS:
            del self.agents[next(iter(self.agents))]

    def key(self, task: str) -> str:
        return self.ranks.get(task) or default_key(task)

    def index(self, task: str, key: str | None = None) -> int:
        """Return a task's index in the list, or the index that it would have with this sort key."""
        return bisect_left(self._order, (key or self.key(task), task), key=self._sort_key)

    def children(self, task: str) -> list[str]:
        return list(self.families.get(task, ()))

    def is_container(self, task: Task) -> bool:
        """Return whether a task only contains other tasks, because it has unfinished children or is a heading."""
        return task.id in self._open_children or is_heading(task.metadata)

    def open_count(self, task: str) -> int:
        """Return the number of unfinished children of a task, except children that it blocks."""
        return self._open_children.get(task, 0)

    def open_children(self, task: str) -> list[Task]:
        if task not in self._open_children:
            return []
        children = (self.tasks[name] for name in self.families[task])
        open_children = [child for child in children if self._counter_of(child) is self._open_children]
        return sorted(open_children, key=lambda child: self._sort_key(child.id))

    def failed_children(self, task: str) -> int:
        return self._failed_children.get(task, 0)

    def path(self, task: Task) -> tuple[TaskName, ...]:
        """Return the nearest ancestors of a task, topmost first: at most `MAX_PATH_SHOWN`, each once."""
        above: dict[str, TaskName] = {}
        parent = task.parent
        while parent is not None and parent not in above and parent != task.id and len(above) < MAX_PATH_SHOWN:
            shown = self.tasks[parent]
            above[parent] = TaskName(id=parent, title=shown.title)
            parent = shown.parent
        return (*reversed(above.values()),)

    def is_ready(self, task: Task) -> bool:
        """Return whether a task could be started now.

        Such a task has no open blockers or children, and its parent is neither paused nor failed.
        """
        if task.status != "pending" or task.open_blockers or task.not_before is not None:
            return False
        if task.id in self._open_children or (task.metadata and is_heading(task.metadata)):
            return False
        parent = self.tasks.get(task.parent) if task.parent is not None else None
        return parent is None or parent.status not in HELD

    def next_ready(self) -> Task | None:
        """Return the next ready task, reserved or not. It is the first in the list among the most urgent ones."""
        return self._first_ready(None)

    def next_for(self, names: Sequence[str]) -> Task | None:
        """Return the next ready task for a caller with these names. Tasks reserved for them come first."""
        reserved = [task for name in names if name in self._ready_reserved and (task := self._first_ready(name))]
        return min(reserved, key=self._sort_entry) if reserved else self._first_ready("")

    def ready_for(self, names: Sequence[str], count: int) -> list[Task]:
        """Return the next `count` ready tasks for a caller with these names, in the order of `next_for`."""
        if count == 1:
            open_children = self.next_for(names)
            return [] if open_children is None else [open_children]
        reserved = [task for name in names for task in self._ready_reserved.get(name, ())]
        tasks = self.first(reserved, count)
        if len(tasks) < count:
            tasks += self.first((name for name in self._ready if not self.tasks[name].owner), count - len(tasks))
        return tasks

    def reserved_count(self, owner: str) -> int:
        """Return the number of ready tasks that are reserved for an owner or, if the owner is "", that are free."""
        return len(self._ready_reserved.get(owner, ())) if owner else len(self._ready) - self._ready_reserved_count

    def first(self, tasks: Iterable[str], count: int) -> list[Task]:
        """Return the first `count` of these tasks, sorted by urgency and then by list order."""
        entries = (self._sort_entry(self.tasks[name]) for name in tasks)
        return [self.tasks[name] for _, _, name in nsmallest(count, entries)]

    def urgent_first(self, tasks: Iterable[Task]) -> list[Task]:
        return sorted(tasks, key=self._sort_entry)

    def ahead(self, task: Task, names: Sequence[str]) -> int:
        """Return how many ready tasks a caller with these names gets before this one."""

        def entry(task: Task) -> tuple[bool, tuple[int, str, str]]:
            return (task.owner not in names, self._sort_entry(task))

        last = entry(task)
        ready = (self.tasks[name] for name in self._ready)
        return sum(entry(other) < last for other in ready if not other.owner or other.owner in names)

    @property
    def ready(self) -> Set[str]:
        """The ids of the ready tasks. This is the state's own set: don't change or keep it."""
        return self._ready

    def conversation_view(self) -> Conversation:
        return Conversation(
            conversation=self.conversation,
            title=self.title,
            user=self.user,
            settings=self.settings,
            sessions=self.sessions,
            version=self.version,
            counts=self.counts(),
            created_at=self.created_at,
            updated_at=self.updated_at,
            wakes_at=self.wakes_at,
            kind=self.kind,
            metadata=self.metadata,
            waiting=bisect_left(self._needs, FIRST_FAILED),
            needs=self._first_needs(),
            running=tuple(
                Running(id=task.id, title=task.title, active_form=task.active_form, owner=task.owner, since=since)
                for since, _, task in nsmallest(
                    MAX_RUNNING_SHOWN,
                    ((task.status_changed_at, task.id, task) for task in map(self.tasks.__getitem__, self.running)),
                )
            ),
        )

    def since(self, seq: int) -> tuple[list[str], list[str]] | None:
        """Return the tasks that changed after a log position, and the removed tasks; None if they are not known."""
        changes = self.changes
        if seq < self.floor or (len(changes) == MAX_CHANGES and seq < changes[0][0]):
            return None
        changed = dict.fromkeys(name for _, name in takewhile(lambda change: change[0] > seq, reversed(changes)))
        tasks = self.tasks
        return [name for name in changed if name in tasks], [name for name in changed if name not in tasks]

    @property
    def wakes_at(self) -> int | None:
        """The time when the first deferred task becomes ready, in milliseconds since 1970."""
        if self._wakes_at is None and self.deferred:
            self._wakes_at = min(self.deferred.values())
        return self._wakes_at

    # changing

    def insert(self, task: Task, rank: str = "") -> None:
        """Add a new task at the place given by its rank or, if it has none, by its id."""
        name, status = task.id, task.status
        self.tasks[name] = task
        self.changes.append((self.seq, name))
        if rank:
            self.ranks[name] = rank
        self._insert_in_order(name, rank or default_key(name))
        self._totals[status] += 1
        if task.owner and status == "pending":
            self._add_reserved(task)
        # Fast path: nearly all new tasks are plain and pending.
        if (
            status == "pending"
            and not task.open_blockers
            and task.parent is None
            and task.not_before is None
            and not (task.metadata and is_heading(task.metadata))
        ):
            self._add_ready(task)
            return
        if status == "in_progress":
            self.running[name] = None
        if (need := find_need(task)) is not None:
            insort(self._needs, need)
        if task.open_blockers and task.status not in FINISHED:
            self._blocked += 1
        if task.parent is not None:
            self._join_parent(task)
        if task.not_before is not None:
            self._update_deferred(task)
        self._update_ready(task)
        if task.metadata:
            self._update_ended(name)

    def put(self, task: Task, old: Task) -> None:  # noqa: C901 - a line for each index that depends on a member
        """Replace the stored task `old` with `task`."""
        name = task.id
        self.tasks[name] = task
        self.changes.append((self.seq, name))
        if old.owner != task.owner:
            self._remove_ready(old)
        if (old.owner or task.owner) and (old.owner, old.status) != (task.owner, task.status):
            self._remove_reserved(old)
            self._add_reserved(task)
        if task.parent is not None or old.parent is not None:
            self._follow_child(task, old)
        if old.not_before != task.not_before:
            self._update_deferred(task)
        if old.status != task.status:
            self._totals[old.status] -= 1
            self._totals[task.status] += 1
            if task.blocked_by and (old.status in FINISHED) != (task.status in FINISHED):
                self._shown_needs.clear()
            if task.status == "in_progress":
                self.running[name] = None
            elif old.status == "in_progress":
                self._drop_running(name)
        self._follow_need(task, old)
        if old.open_blockers or task.open_blockers:
            was_blocked = bool(old.open_blockers) and old.status not in FINISHED
            self._blocked += (bool(task.open_blockers) and task.status not in FINISHED) - was_blocked
        self._update_ready(task)
        if name in self.families or task.metadata or old.metadata:
            self._update_ended(name)
        if old.priority != task.priority:
            self._enqueue(task)
        if (old.status in HELD) != (task.status in HELD):
            self.update_ready(self.families.get(name, ()))

    def link(self, task: Task) -> None:
        """Replace a task with one that differs only in `blocks`."""
        self._shown_needs.clear()
        self._follow_need(task, self.tasks[task.id])
        self.tasks[task.id] = task
        self.changes.append((self.seq, task.id))

    def remove(self, task: Task) -> None:
        """Remove a task that no other task refers to."""
        name = task.id
        self.changes.append((self.seq, name))
        self._remove_from_order(name)
        del self.tasks[name]
        self.ranks.pop(name, None)
        self._totals[task.status] -= 1
        self._blocked -= bool(task.open_blockers) and task.status not in FINISHED
        self._drop_need(task)
        self._remove_ready(task)
        self._remove_reserved(task)
        if task.status == "in_progress":
            self._drop_running(name)
        if self.deferred.pop(name, None) is not None:
            self._wakes_at = None
        self.ended_headings.pop(name, None)
        self._leave_parent(task)

    def place(self, task: Task, rank: str) -> None:
        """Give a task another sort key. An empty key restores the default order, by id."""
        name = task.id
        self._remove_from_order(name)
        if rank:
            self.ranks[name] = rank
        else:
            self.ranks.pop(name, None)
        self._insert_in_order(name, rank or default_key(name))
        self._enqueue(task)

    def load(self, tasks: Iterable[Task], ranks: dict[str, str]) -> None:
        """Replace all tasks with those of a stored state, given in list order."""
        self.clear()
        for task in tasks:
            self.tasks[task.id] = task
        self.ranks = ranks
        self._order = list(self.tasks)
        self._remember_last()
        for task in self.tasks.values():
            self._totals[task.status] += 1
            if task.status == "in_progress":
                self.running[task.id] = None
            self._blocked += bool(task.open_blockers) and task.status not in FINISHED
            if (need := find_need(task)) is not None:
                self._needs.append(need)
            if task.parent is not None:
                self.families.setdefault(task.parent, {})[task.id] = None
                if (tally := self._counter_of(task)) is not None:
                    tally[task.parent] = tally.get(task.parent, 0) + 1
            if task.not_before is not None:
                self._update_deferred(task)
            self._add_reserved(task)
        self._needs.sort()
        # This needs a second loop, because a child may come before its parent.
        for task in self.tasks.values():
            self._update_ready(task)
            self._update_ended(task.id)

    def update_ready(self, tasks: Iterable[str]) -> None:
        """Update whether these tasks are ready."""
        for name in tasks:
            self._update_ready(self.tasks[name])

    def _update_deferred(self, task: Task) -> None:
        self._wakes_at = None
        if task.not_before is None:
            del self.deferred[task.id]
        else:
            self.deferred[task.id] = task.not_before

    def _follow_need(self, task: Task, old: Task) -> None:
        # Fast path: nearly all changes concern tasks that need nobody.
        if not (task.waits_for or old.waits_for or task.status == "failed" or old.status == "failed"):
            return
        self._drop_need(old)
        if (need := find_need(task)) is not None:
            insort(self._needs, need)

    def _drop_need(self, task: Task) -> None:
        if (need := find_need(task)) is not None:
            del self._needs[bisect_left(self._needs, need)]
            self._shown_needs.pop(task.id, None)

    def _first_needs(self) -> tuple[Need, ...]:
        """Return the first needs. They are cached, because a card is built for every change."""
        shown, most = self._shown_needs, self.settings.max_attempts
        entries = self._needs[:MAX_NEEDS_SHOWN]
        for entry in entries:
            if (need := shown.get(entry[-1])) is None or need.max_attempts != most:
                shown[entry[-1]] = build_need(entry, self.tasks, most)
        return sort_needs(shown[entry[-1]] for entry in entries)

    def _drop_running(self, task: str) -> None:
        # Only a task in progress can have a claim.
        del self.running[task]
        self.claims.pop(task, None)
        self.offered.pop(task, None)

    # order

    def _sort_key(self, task: str) -> tuple[str, str]:
        return (self.ranks.get(task) or default_key(task), task)

    def _insert_in_order(self, task: str, key: str) -> None:
        if key > self._last_key:
            self._order.append(task)
            self._last_key = key
        else:
            insort(self._order, task, key=self._sort_key)
            self._remember_last()

    def _remove_from_order(self, task: str) -> None:
        order = self._order
        order.pop(-1 if order[-1] == task else self.index(task))
        self._remember_last()

    def _remember_last(self) -> None:
        self._last_key = self.key(self._order[-1]) if self._order else ""

    # ready tasks

    def _update_ready(self, task: Task) -> None:
        if not self.is_ready(task):
            self._remove_ready(task)
        elif task.id not in self._ready:
            self._add_ready(task)

    def _add_ready(self, task: Task) -> None:
        self._ready.add(task.id)
        if task.owner:
            self._ready_reserved.setdefault(task.owner, set()).add(task.id)
            self._ready_reserved_count += 1
        if self._queues:
            self._enqueue(task)

    def _remove_ready(self, task: Task) -> None:
        """Remove a task from the ready tasks. It must have the same owner as when it was added."""
        if task.id not in self._ready:
            return
        self._ready.discard(task.id)
        if task.owner:
            names = self._ready_reserved[task.owner]
            names.discard(task.id)
            self._ready_reserved_count -= 1
            if not names:
                del self._ready_reserved[task.owner]
                self._queues.pop(task.owner, None)

    def _add_reserved(self, task: Task) -> None:
        if task.owner and task.status == "pending":
            self.reserved.setdefault(task.owner, {})[task.id] = None

    def _remove_reserved(self, task: Task) -> None:
        if (names := self.reserved.get(task.owner)) is not None:
            names.pop(task.id, None)
            if not names:
                del self.reserved[task.owner]

    def _sort_entry(self, task: Task) -> tuple[int, str, str]:
        return (_URGENCY[task.priority], self.key(task.id), task.id)

    def _first_ready(self, owner: str | None) -> Task | None:
        """Return the first ready task that is reserved for an owner. The owner "" selects free tasks, None all tasks.

        A queue is built when it is first needed. Its outdated entries are dropped when they reach the front.
        """
        queue = self._queues.get(owner)
        if queue is None:
            names = self._ready_reserved.get(owner, ()) if owner else self._ready
            tasks = (self.tasks[name] for name in names)
            queue = [self._sort_entry(task) for task in tasks if owner is None or task.owner == owner]
            heapify(queue)
            self._queues[owner] = queue
        while queue:
            entry = queue[0]
            if entry[2] in self._ready:
                task = self.tasks[entry[2]]
                if self._sort_entry(task) == entry and (owner is None or task.owner == owner):
                    return task
            heappop(queue)
        return None

    def _enqueue(self, task: Task) -> None:
        if task.id not in self._ready:
            return
        for owner in (None, task.owner):
            queue = self._queues.get(owner)
            if queue is None:
                continue
            heappush(queue, self._sort_entry(task))
            if len(queue) > 2 * len(self._ready) + _MAX_OUTDATED:
                del self._queues[owner]

    # children

    def _counter_of(self, task: Task) -> dict[str, int] | None:
        """Return the counter that includes a task: its parent's unfinished or failed children, or None."""
        # A child that is blocked by its own parent doesn't count. Otherwise the two would wait for each other.
        if task.status == "completed" or task.parent in task.open_blockers:
            return None
        return self._failed_children if task.status == "failed" else self._open_children

    def _join_parent(self, task: Task) -> None:
        parent = task.parent
        if parent is not None:
            family = self.families.setdefault(parent, {})
            family[task.id] = None
            self._move_count(parent, None, self._counter_of(task), crosses=len(family) == 1)

    def _leave_parent(self, task: Task) -> None:
        parent = task.parent
        if parent is None:
            return
        family = self.families[parent]
        del family[task.id]
        if not family:
            del self.families[parent]
        self._move_count(parent, self._counter_of(task), None, crosses=not family)

    def _follow_child(self, task: Task, old: Task) -> None:
        if old.parent != task.parent:
            self._leave_parent(old)
            self._join_parent(task)
        elif task.parent is not None and (was := self._counter_of(old)) is not (now := self._counter_of(task)):
            self._move_count(task.parent, was, now)

    def _move_count(
        self, parent: str, was: dict[str, int] | None, now: dict[str, int] | None, *, crosses: bool = False
    ) -> None:
        """Move a child of a task from one counter to another.

        The parent is updated only if a counter leaves or reaches 0, or if `crosses` is set. `crosses` means that the
        child is the parent's first or was its last.
        """
        if was is not None:
            was[parent] -= 1
            if not was[parent]:
                del was[parent]
                crosses = True
        if now is not None:
            now[parent] = now.get(parent, 0) + 1
            crosses = crosses or now[parent] == 1
        if crosses:
            self._update_ready(self.tasks[parent])
            self._update_ended(parent)

    def _update_ended(self, name: str) -> None:
        """Update whether a task should finish because its children have finished."""
        task = self.tasks[name]
        heading = is_heading(task.metadata)
        # Fast path: nearly all tasks are neither a heading nor a parent.
        if not heading and name not in self.families:
            self.ended_parents.pop(name, None)
            self.ended_headings.pop(name, None)
            return
        # A rejected task is left out, because its result would be the same without another change below it.
        is_ended = (
            name not in self._open_children
            and (task.status not in FINISHED or (task.status == "failed" and name not in self._failed_children))
            and not task.open_blockers
            and task.waits_for is None
            and not is_sent_back(task)
        )
        for ended, applies in ((self.ended_headings, heading), (self.ended_parents, not heading)):
            if is_ended and applies:
                ended[name] = None
            else:
                ended.pop(name, None)


def is_sent_back(task: Task) -> bool:
    """Return whether a gate rejected the task's result. Such a task is pending and contains the gate's reason."""
    return task.status == "pending" and task.gate is not None and bool(task.fail_reason)


def initial_state(conversation: str) -> State:
    return State(conversation)
