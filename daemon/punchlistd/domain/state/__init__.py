"""What is true of one conversation now: the fold of its events.

A state has one owner at a time. `evolve` changes it in place, so that an event costs what it changes and never the
length of the list. Every change of a task goes through `insert`, `put`, `remove` and `place`, which keep the order,
the counters and the queue of ready tasks right.
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
    Priority,
    Running,
    Settings,
    Task,
    TaskName,
    is_heading,
    machine_of,
)
from punchlistd.domain.state.ordering import default_key

HELD = frozenset({"paused", "failed"})
"""A task whose parent is in one of these states is not ready."""

_URGENCY: dict[Priority, int] = {priority: -weight for weight, priority in enumerate(PRIORITIES)}
_MAX_OUTDATED = 1_000
"""How many outdated entries the queue of ready tasks may hold beside twice the valid ones."""

MAX_RUNNING_SHOWN = 8
"""So many tasks in progress are shown with a conversation."""

MAX_PATH_SHOWN = 8
"""Maximum number of parents that are shown with a task."""

MAX_AGENTS = 256
"""Upper limit for the agents that a list remembers: it outlives any number of sessions."""

MAX_CHANGES = 1_024
"""So many changes of rows a list remembers, with their positions."""


class Claim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who has a task to himself. `fence` is the claim's number, `at` when it was made (0: by an older version).

    See `Claimed` for the rest.
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

    `exists` is true from its opening to its deletion. `ranks` holds the sort keys of the tasks that do not stand in
    the order of their ids, `messages` the log position of each message by its id. Of these,
    `passing` are those that a later one may supersede (None: earlier versions have not noted which), and `hidden` those
    that are not shown, with the one that is shown instead ("": none). `cleared` is how many tasks the
    last clear removed; `last_finished` the task whose completion left nothing to do, kept because the list may have
    been cleared in the same step. `running` are the ids of the tasks in progress; of these, `claims` has those that
    somebody holds, and `offered` those whose claim ended and that wait, still in progress, for the next one.
    `reserved` are the pending tasks of each owner, and `agents` the last owners that had entered when they claimed a
    task, each with its newest claim.
    `deferred` are the tasks that are not ready before a time, and that time. `families`: each parent's children.
    `ended_headings` and `ended_parents` are the headings, and the other parents, that have no unfinished child and are
    not what that makes them.

    A pending task that has an owner is reserved: it is handed out to that owner alone. What ends the work on a task
    clears its owner, so the owner of a pending task is one that a caller has set.

    `seq` is the log position of the last event, `changes` the positions at which tasks came, looked different or went,
    oldest first. What is before `floor` or before the oldest of `CHANGES_KEPT` only the whole list can tell.
    """

    __slots__ = (
        "_blocked",
        "_failed_children",
        "_last_key",
        "_open_children",
        "_order",
        "_queues",
        "_ready",
        "_ready_reserved",
        "_ready_reserved_count",
        "_totals",
        "_waiting",
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
        """Forget everything but the numbers that go on for ever."""
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
        """Remove all tasks and number from 1 again."""
        self.next_task = 1
        self.tasks: dict[str, Task] = {}
        self.changes: deque[tuple[int, str]] = deque(maxlen=MAX_CHANGES)
        self.floor = self.seq
        self.ranks: dict[str, str] = {}
        self._order: list[str] = []
        self._last_key = ""
        self._totals = dict.fromkeys(STATUSES, 0)
        self._blocked = 0
        self._waiting = 0
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
        """A state of its own that is equal; the tasks are shared, since they never change."""
        twin = State(self.conversation)
        for name in State.__slots__:
            kept = getattr(self, name)
            setattr(twin, name, kept.copy() if isinstance(kept, (deque, dict, list, set)) else kept)
        twin.families = {parent: family.copy() for parent, family in self.families.items()}
        twin.reserved = {owner: names.copy() for owner, names in self.reserved.items()}
        twin._ready_reserved = {owner: names.copy() for owner, names in self._ready_reserved.items()}
        twin._queues = {}
        return twin

    # reading

    def ordered(self) -> list[Task]:
        tasks = self.tasks
        return [tasks[task] for task in self._order]

    def ids(self) -> list[str]:
        """The ids in the list's order: the state's own list, not to be changed and not to be kept."""
        return self._order

    def counts(self) -> Counts:
        return Counts(**self._totals, blocked=self._blocked, ready=len(self._ready))

    @property
    def remaining(self) -> int:
        totals = self._totals
        return totals["pending"] + totals["in_progress"] + totals["paused"]

    def remember_agent(self, claim: Claim) -> None:
        """Remember a claim's owner as an agent. Above the limit, forget the agent that claimed longest ago."""
        self.agents.pop(claim.owner, None)
        self.agents[claim.owner] = claim
        if len(self.agents) > MAX_AGENTS:
            del self.agents[next(iter(self.agents))]

    def key(self, task: str) -> str:
        return self.ranks.get(task) or default_key(task)

    def index(self, task: str, key: str | None = None) -> int:
        """Where in the list a task stands, or would stand with this sort key."""
        return bisect_left(self._order, (key or self.key(task), task), key=self._sort_key)

    def children(self, task: str) -> list[str]:
        return list(self.families.get(task, ()))

    def is_container(self, task: Task) -> bool:
        """Return whether a task only contains others: it has unfinished children, or is a heading."""
        return task.id in self._open_children or is_heading(task.metadata)

    def open_count(self, task: str) -> int:
        """Return the number of unfinished children of a task, without those that wait for it."""
        return self._open_children.get(task, 0)

    def open_children(self, task: str) -> list[Task]:
        if task not in self._open_children:
            return []
        children = (self.tasks[name] for name in self.families[task])
        found = [child for child in children if self._tally(child) is self._open_children]
        return sorted(found, key=lambda child: self._sort_key(child.id))

    def failed_children(self, task: str) -> int:
        return self._failed_children.get(task, 0)

    def path(self, task: Task) -> tuple[TaskName, ...]:
        """Return the ancestors of a task, topmost first: at most `PATH_SHOWN` of the nearest, each once."""
        above: dict[str, TaskName] = {}
        parent = task.parent
        while parent is not None and parent not in above and parent != task.id and len(above) < MAX_PATH_SHOWN:
            shown = self.tasks[parent]
            above[parent] = TaskName(id=parent, title=shown.title)
            parent = shown.parent
        return (*reversed(above.values()),)

    def is_ready(self, task: Task) -> bool:
        """Return whether a task could be started now.

        It has no open blockers or children, and its parent is neither paused nor failed.
        """
        if task.status != "pending" or task.open_blockers or task.not_before is not None:
            return False
        if task.id in self._open_children or (task.metadata and is_heading(task.metadata)):
            return False
        parent = self.tasks.get(task.parent) if task.parent is not None else None
        return parent is None or parent.status not in HELD

    def next_ready(self) -> Task | None:
        """The ready task to do next, whoever it is reserved for: the most urgent, of those the first in the list."""
        return self._top(None)

    def next_for(self, names: Sequence[str]) -> Task | None:
        """The ready task that comes next for a caller of these names: what is reserved for them is first."""
        reserved = [task for name in names if name in self._ready_reserved and (task := self._top(name))]
        return min(reserved, key=self._entry) if reserved else self._top("")

    def ready_for(self, names: Sequence[str], count: int) -> list[Task]:
        """The first `count` ready tasks for a caller of these names, in the order in which they are handed out."""
        if count == 1:
            found = self.next_for(names)
            return [] if found is None else [found]
        reserved = [task for name in names for task in self._ready_reserved.get(name, ())]
        tasks = self.first(reserved, count)
        if len(tasks) < count:
            tasks += self.first((name for name in self._ready if not self.tasks[name].owner), count - len(tasks))
        return tasks

    def reserved_count(self, owner: str) -> int:
        """Return the number of ready tasks that are reserved for an owner; "": that are free."""
        return len(self._ready_reserved.get(owner, ())) if owner else len(self._ready) - self._ready_reserved_count

    def first(self, tasks: Iterable[str], count: int) -> list[Task]:
        """Of these tasks the `count` to do first: the most urgent, of those the first in the list."""
        return [self.tasks[entry[2]] for entry in nsmallest(count, (self._entry(self.tasks[name]) for name in tasks))]

    def urgent_first(self, tasks: Iterable[Task]) -> list[Task]:
        return sorted(tasks, key=self._entry)

    def ahead(self, task: Task, names: Sequence[str]) -> int:
        """Return how many ready tasks a caller of these names gets before this one."""

        def entry(task: Task) -> tuple[bool, tuple[int, str, str]]:
            return (task.owner not in names, self._entry(task))

        last = entry(task)
        ready = (self.tasks[name] for name in self._ready)
        return sum(entry(other) < last for other in ready if not other.owner or other.owner in names)

    @property
    def ready(self) -> Set[str]:
        """The ids of the ready tasks: the state's own set, not to be changed and not to be kept."""
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
            waiting=self._waiting,
            running=tuple(
                Running(id=task.id, title=task.title, active_form=task.active_form, owner=task.owner, since=since)
                for since, _, task in nsmallest(
                    MAX_RUNNING_SHOWN,
                    ((task.status_changed_at, task.id, task) for task in map(self.tasks.__getitem__, self.running)),
                )
            ),
        )

    def since(self, seq: int) -> tuple[list[str], list[str]] | None:
        """The tasks that look different since a log position, and those gone; None: only the whole list can tell."""
        changes = self.changes
        if seq < self.floor or (len(changes) == MAX_CHANGES and seq < changes[0][0]):
            return None
        behind = dict.fromkeys(name for _, name in takewhile(lambda change: change[0] > seq, reversed(changes)))
        tasks = self.tasks
        return [name for name in behind if name in tasks], [name for name in behind if name not in tasks]

    @property
    def wakes_at(self) -> int | None:
        """When the first of the deferred tasks becomes ready, in milliseconds since 1970."""
        if self._wakes_at is None and self.deferred:
            self._wakes_at = min(self.deferred.values())
        return self._wakes_at

    # changing

    def insert(self, task: Task, rank: str = "") -> None:
        """Add a task that is not there yet, at the place that its rank or else its id gives it."""
        name, status = task.id, task.status
        self.tasks[name] = task
        self.changes.append((self.seq, name))
        if rank:
            self.ranks[name] = rank
        self._stand(name, rank or default_key(name))
        self._totals[status] += 1
        if task.owner and status == "pending":
            self._reserve(task)
        if (
            status == "pending"
            and not task.open_blockers
            and task.parent is None
            and task.not_before is None
            and not (task.metadata and is_heading(task.metadata))
        ):
            self._file(task)  # as nearly always, without looking at what else it may be
            return
        if status == "in_progress":
            self.running[name] = None
        self._waiting += task.waits_for == "yes"
        if task.open_blockers and task.status not in FINISHED:
            self._blocked += 1
        if task.parent is not None:
            self._join_parent(task)
        if task.not_before is not None:
            self._defer(task)
        self._settle(task)
        if task.metadata:
            self._judge(name)

    def put(self, task: Task, old: Task) -> None:  # noqa: C901 - a line for each set that follows from a member
        """Replace a task by a changed one; `old` is the one that is there."""
        name = task.id
        self.tasks[name] = task
        self.changes.append((self.seq, name))
        if old.owner != task.owner:
            self._unfile(old)
        if (old.owner or task.owner) and (old.owner, old.status) != (task.owner, task.status):
            self._unreserve(old)
            self._reserve(task)
        if task.parent is not None or old.parent is not None:
            self._follow_child(task, old)
        if old.not_before != task.not_before:
            self._defer(task)
        if old.status != task.status:
            self._totals[old.status] -= 1
            self._totals[task.status] += 1
            if task.status == "in_progress":
                self.running[name] = None
            elif old.status == "in_progress":
                self._stop(name)
        self._waiting += (task.waits_for == "yes") - (old.waits_for == "yes")
        if old.open_blockers or task.open_blockers:
            was_blocked = bool(old.open_blockers) and old.status not in FINISHED
            self._blocked += (bool(task.open_blockers) and task.status not in FINISHED) - was_blocked
        self._settle(task)
        if name in self.families or task.metadata or old.metadata:
            self._judge(name)
        if old.priority != task.priority:
            self._enqueue(task)
        if (old.status in HELD) != (task.status in HELD):
            self.resettle(self.families.get(name, ()))

    def link(self, task: Task) -> None:
        """Replace a task by one that differs in what it blocks alone."""
        self.tasks[task.id] = task
        self.changes.append((self.seq, task.id))

    def remove(self, task: Task) -> None:
        """Take a task out of the list. Nothing may refer to it any more."""
        name = task.id
        self.changes.append((self.seq, name))
        self._leave(name)
        del self.tasks[name]
        self.ranks.pop(name, None)
        self._totals[task.status] -= 1
        self._blocked -= bool(task.open_blockers) and task.status not in FINISHED
        self._waiting -= task.waits_for == "yes"
        self._unfile(task)
        self._unreserve(task)
        if task.status == "in_progress":
            self._stop(name)
        if self.deferred.pop(name, None) is not None:
            self._wakes_at = None
        self.ended_headings.pop(name, None)
        self._leave_parent(task)

    def place(self, task: Task, rank: str) -> None:
        """Give a task another sort key; an empty one puts it back to the place of its id."""
        name = task.id
        self._leave(name)
        if rank:
            self.ranks[name] = rank
        else:
            self.ranks.pop(name, None)
        self._stand(name, rank or default_key(name))
        self._enqueue(task)

    def load(self, tasks: Iterable[Task], ranks: dict[str, str]) -> None:
        """Take over the tasks of an earlier state, in its order."""
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
            self._waiting += task.waits_for == "yes"
            if task.parent is not None:
                self.families.setdefault(task.parent, {})[task.id] = None
                if (tally := self._tally(task)) is not None:
                    tally[task.parent] = tally.get(task.parent, 0) + 1
            if task.not_before is not None:
                self._defer(task)
            self._reserve(task)
        for task in self.tasks.values():  # a child may come before its parent
            self._settle(task)
            self._judge(task.id)

    def resettle(self, tasks: Iterable[str]) -> None:
        """Look again whether these tasks are ready."""
        for name in tasks:
            self._settle(self.tasks[name])

    def _defer(self, task: Task) -> None:
        self._wakes_at = None
        if task.not_before is None:
            del self.deferred[task.id]
        else:
            self.deferred[task.id] = task.not_before

    def _stop(self, task: str) -> None:
        """A task that is not in progress any more is held by nobody."""
        del self.running[task]
        self.claims.pop(task, None)
        self.offered.pop(task, None)

    # order

    def _sort_key(self, task: str) -> tuple[str, str]:
        return (self.ranks.get(task) or default_key(task), task)

    def _stand(self, task: str, key: str) -> None:
        if key > self._last_key:
            self._order.append(task)
            self._last_key = key
        else:
            insort(self._order, task, key=self._sort_key)
            self._remember_last()

    def _leave(self, task: str) -> None:
        order = self._order
        order.pop(-1 if order[-1] == task else self.index(task))
        self._remember_last()

    def _remember_last(self) -> None:
        self._last_key = self.key(self._order[-1]) if self._order else ""

    # ready tasks

    def _settle(self, task: Task) -> None:
        if not self.is_ready(task):
            self._unfile(task)
        elif task.id not in self._ready:
            self._file(task)

    def _file(self, task: Task) -> None:
        self._ready.add(task.id)
        if task.owner:
            self._ready_reserved.setdefault(task.owner, set()).add(task.id)
            self._ready_reserved_count += 1
        if self._queues:
            self._enqueue(task)

    def _unfile(self, task: Task) -> None:
        """Take a task out of the ready ones; its owner is still the one that it was filed under."""
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

    def _reserve(self, task: Task) -> None:
        if task.owner and task.status == "pending":
            self.reserved.setdefault(task.owner, {})[task.id] = None

    def _unreserve(self, task: Task) -> None:
        if (names := self.reserved.get(task.owner)) is not None:
            names.pop(task.id, None)
            if not names:
                del self.reserved[task.owner]

    def _entry(self, task: Task) -> tuple[int, str, str]:
        return (_URGENCY[task.priority], self.key(task.id), task.id)

    def _top(self, owner: str | None) -> Task | None:
        """The first of the tasks that are reserved for an owner; "": of those that are free, None: of all.

        A queue is built when it is first asked for; what is outdated in it falls out when it comes up.
        """
        queue = self._queues.get(owner)
        if queue is None:
            names = self._ready_reserved.get(owner, ()) if owner else self._ready
            tasks = (self.tasks[name] for name in names)
            queue = [self._entry(task) for task in tasks if owner is None or task.owner == owner]
            heapify(queue)
            self._queues[owner] = queue
        while queue:
            entry = queue[0]
            if entry[2] in self._ready:
                task = self.tasks[entry[2]]
                if self._entry(task) == entry and (owner is None or task.owner == owner):
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
            heappush(queue, self._entry(task))
            if len(queue) > 2 * len(self._ready) + _MAX_OUTDATED:
                del self._queues[owner]

    # children

    def _tally(self, task: Task) -> dict[str, int] | None:
        """The count of its parent in which a task is: of the unfinished children, or of the failed ones.

        A child that waits for its own parent is in neither: the two would wait for each other.
        """
        if task.status == "completed" or task.parent in task.open_blockers:
            return None
        return self._failed_children if task.status == "failed" else self._open_children

    def _join_parent(self, task: Task) -> None:
        parent = task.parent
        if parent is not None:
            family = self.families.setdefault(parent, {})
            family[task.id] = None
            self._recount(parent, None, self._tally(task), crosses=len(family) == 1)

    def _leave_parent(self, task: Task) -> None:
        parent = task.parent
        if parent is None:
            return
        family = self.families[parent]
        del family[task.id]
        if not family:
            del self.families[parent]
        self._recount(parent, self._tally(task), None, crosses=not family)

    def _follow_child(self, task: Task, old: Task) -> None:
        if old.parent != task.parent:
            self._leave_parent(old)
            self._join_parent(task)
        elif task.parent is not None and (was := self._tally(old)) is not (now := self._tally(task)):
            self._recount(task.parent, was, now)

    def _recount(
        self, parent: str, was: dict[str, int] | None, now: dict[str, int] | None, *, crosses: bool = False
    ) -> None:
        """Take a child of a task out of one count and into another. `crosses`: it is the first one, or was the last.

        The parent is looked at again only where a count leaves 0 or comes to it.
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
            self._settle(self.tasks[parent])
            self._judge(parent)

    def _judge(self, name: str) -> None:
        """Look again whether a task should finish because its children have.

        A task that waits for others, or for its gate, does not. Nor does one that a person has sent back: without
        another change below it, it would come out the same.
        """
        task = self.tasks[name]
        heading = is_heading(task.metadata)
        if not heading and name not in self.families:  # as nearly always
            self.ended_parents.pop(name, None)
            self.ended_headings.pop(name, None)
            return
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
    """Return whether a gate's result was rejected: the task is pending, with the reason."""
    return task.status == "pending" and task.gate is not None and bool(task.fail_reason)


def initial_state(conversation: str) -> State:
    """A conversation of which nothing is known."""
    return State(conversation)
