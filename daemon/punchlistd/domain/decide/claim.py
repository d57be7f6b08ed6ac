"""Claims: a task belongs to one owner alone until it is finished, given back, or its lease is over.

Leases are a matter of time and live in the engine; here a claim is held until an event ends it.
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
from punchlistd.domain.decide.serial import check_start, current, is_serial, is_stopped
from punchlistd.domain.rejections import blocked, deferred, lease_held, lease_lost, reserved, task_not_found
from punchlistd.domain.state import HELD, State


def claim(state: State, params: p.TaskClaim, command: Command) -> Decision | Rejection:
    """task.claim: nothing happens if there is no task to be had."""
    if params.task is None:
        tasks = available(state, params.count, names(params))
        return Decision(tuple(_claimed(state, task, command, params) for task in tasks))
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    held = state.claims.get(task.id)
    if held is not None and held.fence == command.left:
        return Decision((_released(state, task.id, "left", command.at), _claimed(state, task, command, params)))
    return _check_available(state, task, params, is_abandoned=command.is_abandoned) or Decision(
        (_claimed(state, task, command, params),)
    )


def is_decided(state: State, params: p.TaskClaim) -> bool:
    """Whether a claim that names its task would be granted now, or refused for good."""
    task = state.tasks.get(params.task or "")
    refused = None if task is None else _check_available(state, task, params)
    return refused is None or not may_come(refused)


class Supply:
    """Counts the tasks that are left while claims take them one after the other."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._has_all_ready = not is_serial(state) and not is_stopped(state)
        self._left = Counter(task.owner for task in _current(state)) if is_serial(state) else Counter[str]()
        if self._has_all_ready:
            self._left[""] = len(_offered(state))
        self._known: set[str] = set()

    def take(self, names: Sequence[str], count: int) -> int:
        """Take at most `count` tasks for a caller of these names; return how many there were."""
        wanted = count
        for name in (*names, ""):
            if self._has_all_ready and name not in self._known:
                self._known.add(name)
                self._left[name] += self._state.reserved_count(name)
            taken = min(wanted, self._left[name])
            self._left[name] -= taken
            wanted -= taken
        return count - wanted


def names(params: p.TaskClaim) -> list[str]:
    """The names whose reserved tasks a claim may get."""
    return [*names_of(params.owner), *params.also]


def available(state: State, count: int, names: Sequence[str]) -> list[Task]:
    """Return the tasks to be handed out next to a caller of these names.

    Those whose claim ended come first: they are in progress already.
    """
    if is_serial(state):
        return state.urgent_first(task for task in _current(state) if is_for(task, names))[:count]
    if is_stopped(state):
        return []
    offered = _offered(state)
    tasks = state.first(offered, count) if offered else []
    return tasks + state.ready_for(names, count - len(tasks)) if len(tasks) < count else tasks


def _current(state: State) -> list[Task]:
    if running := current(state):
        free = (state.tasks[name] for name in running if name not in state.claims)
        return [task for task in free if not task.open_blockers]
    following = None if is_stopped(state) else state.next_ready()
    return [] if following is None else [following]


def _offered(state: State) -> list[str]:
    """Return the tasks in progress that wait for another owner, without containers."""
    return [name for name in state.offered if not state.is_container(state.tasks[name])]


def may_come(refused: Rejection) -> bool:
    """Whether a claim that names its task may succeed later, so that waiting for it makes sense."""
    return refused.kind in ("lease_held", "blocked") or "running" in refused.data


def renew(state: State, params: p.TaskRenew, _command: Command) -> Decision | Rejection:
    """task.renew: no event, since the log holds decisions and not heartbeats."""
    return check_claim(state, params.task, params.owner, params.fence) or NOTHING


def release(state: State, params: p.TaskRelease, command: Command) -> Decision | Rejection:
    refused = check_claim(state, params.task, params.owner, params.fence)
    return refused or Decision((_released(state, params.task, "released", command.at),))


def end(state: State, params: EndClaims, command: Command) -> Decision:
    """The engine ends claims; one that is not in force any more is ended already."""
    return Decision(tuple(_ends(state, params, command.at)))


def check_claim(state: State, task: str, owner: str | None, fence: int | None) -> Rejection | None:
    """Why a call that refers to a claim, by its owner or its number, is refused."""
    known = state.tasks.get(task)
    if known is None:
        return task_not_found(task, state.next_task)
    held = state.claims.get(task)
    if held is None:
        return lease_lost(known, fence)
    if (fence is not None and fence != held.fence) or (owner is not None and owner != held.owner):
        return lease_held(known, held.owner)
    return None


def _check_available(state: State, task: Task, params: p.TaskClaim, *, is_abandoned: bool = False) -> Rejection | None:
    held = state.claims.get(task.id)
    if held is not None:
        return lease_held(task, held.owner)
    is_own = task.status == "in_progress" and task.owner == params.owner
    may_have = is_abandoned or is_for(task, names(params))
    if not is_own and (refused := check_children(state, task)) is not None:
        return refused
    if task.status == "in_progress":
        if is_serial(state):
            refused = check_work(state, task) if task.open_blockers else None
            return refused or (None if may_have else reserved(task))
        return None if is_abandoned or task.owner in ("", params.owner) else lease_held(task, task.owner)
    if task.status != "pending":
        return _not_pending(task)
    return check_work(state, task) or (None if may_have else reserved(task))


def check_work(state: State, task: Task) -> Rejection | None:
    """Return why no owner can get a task now, whatever its status."""
    if task.not_before is not None:
        return deferred(task)
    if task.open_blockers:
        return blocked(task, [state.tasks[blocker] for blocker in task.open_blockers])
    parent = state.tasks.get(task.parent) if task.parent is not None else None
    if parent is not None and parent.status in HELD:
        return blocked(task, [parent])
    return check_start(state, task)


def _not_pending(task: Task) -> Rejection:
    message = f"Task #{task.id} is {task.status}; reopen it before it is claimed."
    facts = {"task": task.id, "from": task.status, "to": "in_progress", "allowed": ["pending"]}
    return Rejection("illegal_transition", message, facts)


def _claimed(state: State, task: Task, command: Command, params: p.TaskClaim) -> Claimed:
    """Who takes up what is in progress without ever having been claimed does not begin again."""
    goes_on = task.status == "in_progress" and task.id not in state.offered and task.id not in state.claims
    attempts = task.attempts + (not goes_on)
    return Claimed(task.id, params.owner, params.lease_ms, attempts, params.keep, session=command.session)


def spent_ms(task: Task, at: int) -> int:
    """How long a task that stops being in progress was so; a clock that was set back takes nothing away."""
    return at - task.status_changed_at if task.status == "in_progress" and at > task.status_changed_at else 0


def _released(state: State, task: str, reason: str, at: int) -> Released:
    """The one task of a serial list stays the current one; so does, in any list, what a restart interrupted."""
    stays = (is_serial(state) and not state.tasks[task].open_blockers) or reason == "restarted"
    owner = state.claims[task].owner
    if stays:
        return Released(task=task, owner=owner, reason=reason, to="in_progress")
    spent = spent_ms(state.tasks[task], at)
    return Released(task=task, owner=owner, reason=reason, spent_ms=spent)


def _ends(state: State, params: EndClaims, at: int) -> Iterator[KnownEvent]:
    most = state.settings.max_attempts
    for name, fence in params.claims:
        held = state.claims.get(name)
        if held is None or held.fence != fence:
            continue
        released = _released(state, name, params.reason, at)
        yield released
        attempts = state.tasks[name].attempts
        if params.reason != "released" and 0 < most <= attempts:
            reason = f"The claim of {held.owner} {_ENDS[params.reason]}, and all {most} attempts are spent."
            yield StatusChanged(name, released.to, "failed", fail_reason=reason)


_ENDS = {
    "expired": "expired",
    "disconnected": "ended with its connection",
    "restarted": "was not taken up again after a restart",
    "left": "ended after its session",
}
