"""Claims: a task belongs to one owner until it is finished or released, or until its lease expires.

The engine keeps the leases, because they depend on time. For the domain, a claim lasts until an event ends it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Claimed, KnownEvent, Released, StatusChanged
from punchlist_schemas.things import Task, names_of
from punchlistd.domain.commands import NOTHING, Command, Decision, EndClaims
from punchlistd.domain.decide.parents import check_start as check_children
from punchlistd.domain.decide.reserving import is_for
from punchlistd.domain.decide.serial import check_start, find_current, is_serial, is_stopped
from punchlistd.domain.rejections import (
    lease_held,
    lease_lost,
    task_blocked,
    task_deferred,
    task_not_found,
    task_reserved,
)
from punchlistd.domain.state import HELD, State


def claim(state: State, params: p.TaskClaim, command: Command) -> Decision | Rejection:
    """Claim the named task or, if the call names none, available ones. It is not an error if no task is available."""
    if params.task is None:
        tasks = find_available(state, params.count, caller_names(params))
        return Decision(tuple(_grant(state, task, command, params) for task in tasks))
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    held = state.claims.get(task.id)
    # The owner of the existing claim has left, so this one may replace it.
    if held is not None and held.fence == command.left:
        return Decision((_release(state, task.id, "left", command.at), _grant(state, task, command, params)))
    return _check_available(state, task, params, is_abandoned=command.is_abandoned) or Decision(
        (_grant(state, task, command, params),)
    )


def is_decided(state: State, params: p.TaskClaim) -> bool:
    """Return whether a claim that names its task would now be granted or permanently rejected."""
    task = state.tasks.get(params.task or "")
    rejection = None if task is None else _check_available(state, task, params)
    return rejection is None or not may_succeed_later(rejection)


class Supply:
    """The number of available tasks that remain while waiting claims take them one after another."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._has_all_ready = not is_serial(state) and not is_stopped(state)
        self._left = Counter(task.owner for task in _find_current(state)) if is_serial(state) else Counter[str]()
        if self._has_all_ready:
            self._left[""] = len(_find_offered(state))
        self._counted: set[str] = set()

    def take(self, names: Sequence[str], count: int) -> int:
        """Take at most `count` tasks for a caller with these names, and return how many it got."""
        missing = count
        for name in (*names, ""):
            if self._has_all_ready and name not in self._counted:
                self._counted.add(name)
                self._left[name] += self._state.reserved_count(name)
            taken = min(missing, self._left[name])
            self._left[name] -= taken
            missing -= taken
        return count - missing


def caller_names(params: p.TaskClaim) -> list[str]:
    """Return the names whose reserved tasks a claim may take."""
    return [*names_of(params.owner), *params.also]


def find_available(state: State, count: int, names: Sequence[str]) -> list[Task]:
    """Return the tasks that a caller with these names gets next."""
    if is_serial(state):
        return state.urgent_first(task for task in _find_current(state) if is_for(task, names))[:count]
    if is_stopped(state):
        return []
    # Tasks whose claim has ended come first, since they are already in progress.
    offered = _find_offered(state)
    tasks = state.first(offered, count) if offered else []
    return tasks + state.ready_for(names, count - len(tasks)) if len(tasks) < count else tasks


def _find_current(state: State) -> list[Task]:
    if running := find_current(state):
        free = (state.tasks[name] for name in running if name not in state.claims)
        return [task for task in free if not task.open_blockers]
    next_task = None if is_stopped(state) else state.next_ready()
    return [] if next_task is None else [next_task]


def _find_offered(state: State) -> list[str]:
    """Return the tasks in progress that wait for a new owner, except containers."""
    return [name for name in state.offered if not state.is_container(state.tasks[name])]


def may_succeed_later(rejection: Rejection) -> bool:
    """Return whether a rejected claim of a named task may succeed later, so that it can wait."""
    return rejection.kind in ("lease_held", "blocked") or "running" in rejection.data


def renew(state: State, params: p.TaskRenew, _command: Command) -> Decision | Rejection:
    """Accept or reject a renewal. It produces no event, since the log records decisions but not heartbeats."""
    return check_claim(state, params.task, params.owner, params.fence) or NOTHING


def release(state: State, params: p.TaskRelease, command: Command) -> Decision | Rejection:
    rejection = check_claim(state, params.task, params.owner, params.fence)
    return rejection or Decision((_release(state, params.task, "released", command.at),))


def end_claims(state: State, params: EndClaims, command: Command) -> Decision:
    """Decide `EndClaims`, the engine's internal call. Skip claims that have already ended."""
    return Decision(tuple(_release_claims(state, params, command.at)))


def check_claim(state: State, task: str, owner: str | None, fence: int | None) -> Rejection | None:
    """Reject a call whose owner or fence differs from that of the claim in force."""
    current_task = state.tasks.get(task)
    if current_task is None:
        return task_not_found(task, state.next_task)
    held = state.claims.get(task)
    if held is None:
        return lease_lost(current_task, fence)
    if (fence is not None and fence != held.fence) or (owner is not None and owner != held.owner):
        return lease_held(current_task, held.owner)
    return None


def _check_available(state: State, task: Task, params: p.TaskClaim, *, is_abandoned: bool = False) -> Rejection | None:
    held = state.claims.get(task.id)
    if held is not None:
        return lease_held(task, held.owner)
    is_own = task.status == "in_progress" and task.owner == params.owner
    may_have = is_abandoned or is_for(task, caller_names(params))
    if not is_own and (rejection := check_children(state, task)) is not None:
        return rejection
    if task.status == "in_progress":
        if is_serial(state):
            rejection = check_work(state, task) if task.open_blockers else None
            return rejection or (None if may_have else task_reserved(task))
        return None if is_abandoned or task.owner in ("", params.owner) else lease_held(task, task.owner)
    if task.status != "pending":
        return _reject_not_pending(task)
    return check_work(state, task) or (None if may_have else task_reserved(task))


def check_work(state: State, task: Task) -> Rejection | None:
    """Reject a task that no owner can work on now."""
    if task.not_before is not None:
        return task_deferred(task)
    if task.open_blockers:
        return task_blocked(task, [state.tasks[blocker] for blocker in task.open_blockers])
    parent = state.tasks.get(task.parent) if task.parent is not None else None
    if parent is not None and parent.status in HELD:
        return task_blocked(task, [parent])
    return check_start(state, task)


def _reject_not_pending(task: Task) -> Rejection:
    message = f"Task #{task.id} is {task.status}; reopen it before it is claimed."
    facts = {"task": task.id, "from": task.status, "to": "in_progress", "allowed": ["pending"]}
    return Rejection("illegal_transition", message, facts)


def _grant(state: State, task: Task, command: Command, params: p.TaskClaim) -> Claimed:
    # Claiming a task that was started without a claim continues the same attempt.
    is_continued = task.status == "in_progress" and task.id not in state.offered and task.id not in state.claims
    attempts = task.attempts + (not is_continued)
    return Claimed(task.id, params.owner, params.lease_ms, attempts, params.keep, session=command.session)


def measure_work(task: Task, at: int) -> int:
    """Return how long a task has been in progress, in milliseconds; 0 if the clock was set back."""
    return at - task.status_changed_at if task.status == "in_progress" and at > task.status_changed_at else 0


def _release(state: State, task: str, reason: str, at: int) -> Released:
    # A serial list keeps its current task in progress. Every list does so for a task whose work a restart interrupted.
    stays = (is_serial(state) and not state.tasks[task].open_blockers) or reason == "restarted"
    owner = state.claims[task].owner
    if stays:
        return Released(task=task, owner=owner, reason=reason, to="in_progress")
    spent = measure_work(state.tasks[task], at)
    return Released(task=task, owner=owner, reason=reason, spent_ms=spent)


def _release_claims(state: State, params: EndClaims, at: int) -> Iterator[KnownEvent]:
    max_attempts = state.settings.max_attempts
    for name, fence in params.claims:
        held = state.claims.get(name)
        if held is None or held.fence != fence:
            continue
        released = _release(state, name, params.reason, at)
        yield released
        attempts = state.tasks[name].attempts
        if params.reason != "released" and 0 < max_attempts <= attempts:
            reason = (
                f"The claim of {held.owner} {_ENDINGS[params.reason]}, and all {max_attempts} attempts are used up."
            )
            yield StatusChanged(name, released.to, "failed", fail_reason=reason)


_ENDINGS = {
    "expired": "expired",
    "disconnected": "ended with its connection",
    "restarted": "was not resumed after a restart",
    "left": "ended after its session",
}
