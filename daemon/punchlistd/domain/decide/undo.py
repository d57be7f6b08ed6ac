"""`list.undo`: reverses calls with new events, and erases nothing."""

from collections.abc import Iterable, Iterator, Sequence, Set

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured, Released, StatusChanged, TaskAdded
from punchlist_schemas.things import Task
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.decide.claim import check_work
from punchlistd.domain.decide.status import change_status
from punchlistd.domain.rejections import conversation_not_found
from punchlistd.domain.state import State
from punchlistd.domain.undo.inverse import UndoRun, is_undoable, undo_change
from punchlistd.domain.undo.lookback import Lookback, build_aim
from punchlistd.domain.undo.revert import revert
from punchlistd.domain.undo.trace import Change, Touch, task_id_of

NO_CALL = (0,)
"""Recorded as the undone calls if an undo reversed no call completely. No event has version 0."""


def undo(state: State, params: p.ListUndo, command: Command) -> Decision | Rejection:
    """Return the decision that `undo_calls` computed from the history."""
    if not state.exists:
        return conversation_not_found(params.conversation)
    return command.decided or NOTHING


def call_limit(params: p.ListUndo) -> int | None:
    """Return the maximum number of calls that an undo reverses, or None for all."""
    if params.call is not None or params.redo:
        return params.count or 1
    return 1 if params.count is None and build_aim(params).of is None else params.count


def undo_calls(  # noqa: C901, PLR0911, PLR0912 - one loop over calls, with every condition that ends it
    past: Lookback, params: p.ListUndo, at: int
) -> Iterator[Decision | Rejection | None]:
    """Undo the selected calls of a history, newest first, on a copy of the state.

    Skip calls that left nothing to undo.

    Yields:
        A decision for each change, and for each task of a clear, made lazily. The last one is the decision for the
        whole undo, or None if `past` is too short to contain all the selected calls.
    """
    rejection = _check_undo(past, params)
    if rejection is not None:
        yield rejection
        return
    run = UndoRun(past.state.copy(), at, past.last_touched, past.last_restored, past.last_claimed, past.find_latest)
    if params.to_version is not None:
        if past.then is not None:
            yield from revert(run, past.then)
            yield from _enforce_rules(run, past.state)
        yield _build_decision(run, params, (), (), params.to_version)
        return
    last_clear, count = past.last_clear, call_limit(params)
    undone: list[int] = []
    complete: list[int] = []
    for first, changes in reversed(past.calls.items()):
        if len(undone) == count:
            break
        if params.whole and (conflict := _find_conflict(past, first, changes)) is not None:
            yield conflict
            return
        line_count = len(run.lines)
        run.begin_call(first)
        for change in reversed(changes):
            if change.version > last_clear or isinstance(change.event, ConversationConfigured):
                yield from undo_change(run, change)
            elif is_undoable(change.event, claims=True):
                run.skip(change, "the list was cleared since")
            yield run.take_part()
        run.end_call()
        if params.whole and run.skipped:
            yield _reject_skipped(past, first, run)
            return
        if (
            params.whole
            and len(run.lines) == line_count
            and (conflict := _find_newer_change(past, first, changes)) is not None
        ):
            yield conflict
            return
        if len(run.lines) > line_count:
            undone.append(first)
            if run.complete:
                complete.append(-first if first in past.undos else first)
    if len(undone) != count and past.is_cut and params.call is None:
        yield None
        return
    yield from _enforce_rules(run, past.state)
    # The remaining calls cancel each other out, so report that there is nothing to undo.
    if len(undone) != count and _is_unchanged(past.state, run):
        kept = [(line, change) for line, change in zip(run.lines, run.changes, strict=True) if change.skipped]
        yield Decision(lines=tuple(line for line, _ in kept), changes=tuple(change for _, change in kept))
        return
    is_redo = any(first in past.undos for first in undone)
    yield _build_decision(run, params, tuple(complete) or (() if is_redo else NO_CALL), tuple(undone), None)


def _enforce_rules(run: UndoRun, before: State) -> Iterator[Decision]:
    """Change the status of resumed tasks if the list in its current state no longer allows it.

    A completed task is paused if a gate has been set since. A task in progress becomes pending if it has new blockers,
    or if another task of a serial list is in progress. A claimed task also becomes pending if its parent is paused or a
    new date defers it.
    """
    state, run.change = run.state, None
    resumed = [(state.tasks[name], then) for name, then in run.resumed.items() if name in state.tasks]
    for task, then in resumed:
        if task.status == then.status == "completed" and task.gate not in (None, then.gate):
            reopened = msgspec.structs.replace(task, status="pending")
            event = change_status(reopened, "completed", None, None, run.at)
            assert event is not None, "its gate requires a check or an approval"
            run.apply(msgspec.structs.replace(event, from_="completed", result_summary=task.result_summary))
            run.report(task, "paused, since its gate was set after it was completed")
        yield run.take_part()
    skipped = {task for task, _, _ in run.skipped}
    running = [(task.id, then) for task, then in resumed if task.status == then.status == "in_progress"]
    # The last task of the list is checked first, so that a serial list keeps its first one in progress.
    for name, then in sorted(running, key=lambda item: state.key(item[0]), reverse=True):
        rejection = None if name in before.running else _check_resumption(state, state.tasks[name], then, skipped)
        if rejection is not None:
            _make_pending(run, state.tasks[name], rejection)
        yield run.take_part()


def _check_resumption(state: State, task: Task, then: Task, skipped: Set[str]) -> Rejection | None:
    """Reject the resumption of a task if the list no longer allows it to be in progress.

    The blockers that the task had before the undone change don't count, unless the undo skipped them.
    """
    is_claimed, former_blockers = task.id in state.claims, set(then.open_blockers) - skipped
    since = msgspec.structs.replace(
        task,
        open_blockers=tuple(other for other in task.open_blockers if other not in former_blockers),
        not_before=task.not_before if is_claimed and task.not_before != then.not_before else None,
        parent=task.parent if is_claimed else None,
    )
    return check_work(state, since)


def _make_pending(run: UndoRun, task: Task, rejection: Rejection) -> None:
    claim = run.state.claims.get(task.id)
    if claim is not None:
        run.apply(Released(task=task.id, owner=claim.owner, reason="released"))
    else:
        run.apply(StatusChanged(task.id, "in_progress", "pending"))
    run.report(task, f"pending, since {_describe_hindrance(rejection)}")


def _describe_hindrance(rejection: Rejection) -> str:
    """Return why a task can't be in progress, for a line in the description of an undo."""
    if running := rejection.data.get("running"):
        return f"#{running} is in progress, and this list runs one task at a time"
    names = ", ".join(f"#{blocker['id']}" for blocker in rejection.data["blockers"])
    return f"it waits for {names}" if names else "it is deferred"


def _is_unchanged(state: State, run: UndoRun) -> bool:
    now = run.state
    if (state.title, state.settings) != (now.title, now.settings):
        return False
    return all(
        _without_stamps(state.tasks.get(task)) == _without_stamps(now.tasks.get(task))
        and state.ranks.get(task) == now.ranks.get(task)
        for task in set(map(task_id_of, run.events))
    )


def _without_stamps(task: Task | None) -> Task | None:
    return None if task is None else msgspec.structs.replace(task, version=0, updated_at=0, status_changed_at=0)


def _build_decision(
    run: UndoRun, params: p.ListUndo, undoes: tuple[int, ...], touches: tuple[int, ...], reverts_to: int | None
) -> Decision:
    decision = Decision(lines=tuple(run.lines), changes=tuple(run.changes), touches=touches)
    if params.preview or not run.events:
        return decision
    return msgspec.structs.replace(decision, events=tuple(run.events), undoes=undoes, reverts_to=reverts_to)


def _check_undo(past: Lookback, params: p.ListUndo) -> Rejection | None:
    if sum((params.call is not None, params.to_version is not None, params.redo)) > 1:
        return Rejection("invalid_params", "Pass only one of call, redo and to_version.", {"field": "call"})
    version = past.state.version
    for field, number in (("call", params.call), ("to_version", params.to_version)):
        if number is not None and number > version:
            message = f"The list is at version {version}; version {number} does not exist."
            return Rejection("invalid_params", message, {"field": field})
    for field, number in (("call", params.call), ("to_version", params.to_version)):
        if number is not None and number < past.erased_at:
            message = f"The history up to version {past.erased_at} was erased with the list."
            return Rejection("invalid_params", message, {"field": field})
    undone_call = next((first for first in past.calls if params.call is not None and first in past.undone), None)
    if undone_call is not None:
        return Rejection("invalid_params", f"Call {undone_call} was already undone.", {"field": "call"})
    return None


def _find_conflict(past: Lookback, first: int, changes: Sequence[Change]) -> Rejection | None:
    for change in changes:
        for task in _find_foundations(past, change):
            if (touch := past.find_newer_touch(task, change.version)) is not None:
                return _reject_conflict(first, touch, task)
    return None


def _find_newer_change(past: Lookback, first: int, changes: Sequence[Change]) -> Rejection | None:
    """Reject the undo of a call that a newer one prevents, so that no older call is undone in its place."""
    for change in changes:
        if (touch := past.find_newer_touch(task_id_of(change.event), change.version)) is not None:
            return _reject_conflict(first, touch, task_id_of(change.event))
    return None


def _find_foundations(past: Lookback, change: Change) -> Iterable[str]:
    """Return the tasks that later calls may depend on because of this change."""
    event, after = change.event, change.after
    if isinstance(event, TaskAdded):
        yield event.task.id
    elif isinstance(event, StatusChanged) and event.to == "completed" and after is not None:
        tasks = past.state.tasks
        yield from (task for task in after.blocks if task in tasks and tasks[task].status != "pending")


def _reject_skipped(past: Lookback, first: int, run: UndoRun) -> Rejection:
    task, after, why = run.skipped[0]
    if (touch := past.find_newer_touch(task, after)) is not None:
        return _reject_conflict(first, touch, task)
    message = f"Call {first} can't be undone as a whole: {why}."
    return Rejection("undo_conflict", message, {"call": first, "task": task})


def _reject_conflict(first: int, touch: Touch, task: str) -> Rejection:
    newer = f"the newer call {touch.first} of {touch.actor} depends on it (task #{task})"
    facts = {"call": first, "newer": touch.first, "actor": touch.actor, "task": task}
    return Rejection("undo_conflict", f"Call {first} can't be undone: {newer}.", facts)
