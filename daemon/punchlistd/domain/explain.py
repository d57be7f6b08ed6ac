"""`task.explain`: why a task can't be started or completed now, or why a list has no task to hand out.

It uses the rules that decide calls, so that an explanation can't contradict a response.
"""

from collections.abc import Iterator, Sequence

import msgspec

from punchlist_schemas.things import FINISHED, Reason, ReasonKind, Status, Task, TaskName, is_heading, names_of
from punchlistd.domain.decide.claim import find_available
from punchlistd.domain.decide.parents import finishes_with_children
from punchlistd.domain.decide.reserving import is_for
from punchlistd.domain.decide.serial import find_current, is_serial, is_stopped
from punchlistd.domain.decide.status import check_status
from punchlistd.domain.state import HELD, State, is_sent_back

MAX_REASONS = 100
"""Maximum number of reasons in an explanation."""

_MAX_COUNTED = 1_000
"""Maximum number of reasons counted."""

_MAX_TEXT = 500
"""Maximum length of a quoted failure reason, in characters."""


class Explanation(msgspec.Struct, frozen=True):
    """The result of `task.explain`, without the expiry times of leases."""

    ready: bool
    startable: bool
    completable: bool
    ahead: int
    next: TaskName | None
    reasons: tuple[Reason, ...]
    more: int


def explain(state: State, task: Task | None, owner: str = "") -> Explanation:
    """Explain a task, or the list if the task is None, for an owner ("" for any owner)."""
    names = names_of(owner)
    all_reasons = _explain_list(state, names) if task is None else _explain_task(state, task, names)
    reasons = [reason for _, reason in zip(range(_MAX_COUNTED), all_reasons, strict=False)]
    stopped = is_stopped(state) or (is_serial(state) and bool(find_current(state)))
    next_tasks = find_available(state, 1, names) or state.ready_for(names, 1)
    return Explanation(
        ready=not stopped and (bool(next_tasks) if task is None else task.id in state.ready and is_for(task, names)),
        startable=task is not None and _may_become(state, task, "in_progress"),
        completable=task is not None and _may_become(state, task, "completed"),
        ahead=0 if task is None or task.id not in state.ready else state.ahead(task, names or names_of(task.owner)),
        next=_name_task(next_tasks[0]) if next_tasks else None,
        reasons=tuple(reasons[:MAX_REASONS]),
        more=max(0, len(reasons) - MAX_REASONS),
    )


def _may_become(state: State, task: Task, to: Status) -> bool:
    return task.status != to and check_status(state, task, to) is None


def _name_task(task: Task) -> TaskName:
    return TaskName(id=task.id, title=task.title)


def _explain_task(state: State, task: Task, names: Sequence[str]) -> Iterator[Reason]:
    """Yield the reasons for a task, each followed by its own causes. The causes of a blocker are given only once."""
    if task.status == "pending":
        yield from _explain_queue(state, task.id)
    seen = {task.id}
    stack = [(0, reason) for reason in reversed(_find_reasons(state, task))]
    while stack:
        depth, reason = stack.pop()
        if reason.kind == "reserved" and is_for(task, names):
            continue
        is_repeated = reason.kind == "blocker" and reason.by in seen
        yield msgspec.structs.replace(reason, depth=depth, again=is_repeated)
        if reason.kind == "blocker" and not is_repeated:
            seen.add(reason.by)
            stack.extend((depth + 1, direct) for direct in reversed(_find_reasons(state, state.tasks[reason.by])))


def _explain_list(state: State, names: Sequence[str]) -> Iterator[Reason]:
    """Yield what blocks the whole list: the queue, paused and reserved tasks, rejected headings, and failures."""
    yield from _explain_queue(state, None)
    open_ = [task for task in state.ordered() if task.status not in FINISHED]
    held = [task for task in state.urgent_first(open_) if task.status == "paused"]
    yield from (_build_reason(task.waits_for or "paused", task, task) for task in held)
    ready = state.urgent_first(state.tasks[name] for name in state.ready)
    reserved = (task for task in ready if not is_for(task, names))
    yield from (_build_reason("reserved", task, task) for task in reserved)
    headings = (task for task in open_ if is_heading(task.metadata) and is_sent_back(task))
    yield from (_build_reason("heading", task, task) for task in headings if not state.open_count(task.id))
    holders = dict.fromkeys(task.parent for task in open_ if task.status == "pending" and task.parent is not None)
    failed_above = [above for name in holders if (above := state.tasks[name]).status == "failed"]
    yield from (_build_reason("failed", task, task) for task in state.urgent_first(failed_above))
    awaited = dict.fromkeys(blocker for task in open_ if task.status == "pending" for blocker in task.open_blockers)
    failed = [state.tasks[name] for name in awaited if state.tasks[name].status == "failed" and name not in holders]
    yield from (_build_reason("failed", task, task) for task in state.urgent_first(failed))


def _explain_queue(state: State, except_task: str | None) -> Iterator[Reason]:
    if is_stopped(state):
        failed = next(task for task in state.ordered() if task.status == "failed")
        yield _build_reason("stopped", None, failed)
    if is_serial(state):
        running = [name for name in find_current(state) if name != except_task]
        if running:
            first = min(running, key=lambda name: (state.key(name), name))
            yield _build_reason("serial", None, state.tasks[first])


def _find_reasons(state: State, task: Task) -> list[Reason]:
    status = task.status
    if task.waits_for is not None:
        return [_build_reason(task.waits_for, task, task)]
    if status in FINISHED:
        return [_build_reason(status, task, _find_finisher(state, task))]
    children = [_build_reason("child", task, child) for child in state.open_children(task.id)]
    blockers = [_build_reason("blocker", task, state.tasks[name]) for name in task.open_blockers]
    if status != "pending":
        return [_build_reason(status, task, task), *blockers, *children]
    reasons = [] if task.not_before is None else [_build_reason("deferred", task, task)]
    reasons += blockers + children
    parent = state.tasks.get(task.parent) if task.parent is not None else None
    if parent is not None and parent.status in HELD:
        reasons.append(_build_reason("parent", task, parent))
    if not reasons and is_heading(task.metadata):
        reasons.append(_build_reason("heading", task, task))
    return reasons + ([_build_reason("reserved", task, task)] if task.owner else [])


def _find_finisher(state: State, task: Task) -> Task:
    """Return the task to reopen so that a finished task continues: the child that finished it, or the task itself."""
    children = [state.tasks[name] for name in state.children(task.id)] if finishes_with_children(state, task) else []
    ends = [child for child in children if child.status == task.status]
    return max(ends, key=lambda child: (child.status_changed_at, state.key(child.id)), default=task)


def _build_reason(kind: ReasonKind, of: Task | None, by: Task) -> Reason:
    return Reason(
        kind=kind,
        of=None if of is None else of.id,
        by=by.id,
        title=by.title,
        status=by.status,
        owner=by.owner,
        attempts=by.attempts,
        not_before=by.not_before,
        not_before_day=by.not_before_day,
        gate=by.gate,
        fail_reason=by.fail_reason[:_MAX_TEXT],
    )
