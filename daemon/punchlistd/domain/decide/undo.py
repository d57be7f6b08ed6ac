"""Undo: calls are taken back by new events; nothing is erased."""

from collections.abc import Iterable, Iterator, Sequence, Set

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured, Released, StatusChanged, TaskAdded
from punchlist_schemas.things import Task
from punchlistd.domain.commands import NOTHING, Command, Decision
from punchlistd.domain.decide.claim import check_work
from punchlistd.domain.decide.status import status_change
from punchlistd.domain.rejections import conversation_not_found
from punchlistd.domain.state import State
from punchlistd.domain.undo.inverse import SKIPPED, Undoing, is_undoable, name_of, take_back
from punchlistd.domain.undo.lookback import Lookback, Touch, aim
from punchlistd.domain.undo.revert import revert
from punchlistd.domain.undo.trace import Change, named

NO_CALL = (0,)
"""What an undo records as undone that took back nothing but parts of calls: no event has version 0."""


def undo(state: State, params: p.ListUndo, command: Command) -> Decision | Rejection:
    """list.undo. What follows was worked out from the history by `take_back_calls`."""
    if not state.exists:
        return conversation_not_found(params.conversation)
    return command.decided or NOTHING


def wanted(params: p.ListUndo) -> int | None:
    """How many calls an undo takes back; None: all of them."""
    if params.call is not None or params.redo:
        return params.count or 1
    return 1 if params.count is None and aim(params).of is None else params.count


def take_back_calls(  # noqa: C901, PLR0911, PLR0912 - the calls in turn, and every way in which one of them ends it
    past: Lookback, params: p.ListUndo, at: int
) -> Iterator[Decision | Rejection | None]:
    """Take back the newest calls that are meant, newest first, in a copy of the history's state.

    Calls that were undone, or that left nothing to undo, are passed over.

    Yields:
        The decision on each change, made lazily, and of a clear on each task. The last one is that on the whole: None
        if there may be further calls to take back that `past` does not hold.
    """
    refused = _check_undo(past, params)
    if refused is not None:
        yield refused
        return
    run = Undoing(past.state.copy(), at, past.touched, past.returned, past.claimed)
    if params.to_version is not None:
        if past.then is not None:
            yield from revert(run, past.then)
            yield from _settle(run, past.state)
        yield _decision(run, params, (), (), params.to_version)
        return
    last_clear, count = past.last_clear, wanted(params)
    taken: list[int] = []
    finished: list[int] = []
    for first, changes in reversed(past.calls.items()):
        if len(taken) == count:
            break
        if params.whole and (conflict := _conflict(past, first, changes)) is not None:
            yield conflict
            return
        message = len(run.lines)
        run.begin_call(first)
        for change in reversed(changes):
            if change.version > last_clear or isinstance(change.event, ConversationConfigured):
                yield from take_back(run, change)
            elif is_undoable(change.event, claims=True):
                run.skip(change, "the list was cleared since")
            yield run.part()
        run.end_call()
        if params.whole and run.skipped:
            yield _skipped(past, first, run)
            return
        if params.whole and len(run.lines) == message and (conflict := _overtaken(past, first, changes)) is not None:
            yield conflict
            return
        if len(run.lines) > message:
            taken.append(first)
            if run.complete:
                finished.append(-first if first in past.undos else first)
    if len(taken) != count and past.is_cut and params.call is None:
        yield None
        return
    yield from _settle(run, past.state)
    if len(taken) != count and _is_as_it_was(past.state, run):  # all is undone but what only adds up to nothing
        yield Decision(lines=tuple(line for line in run.lines if line.startswith(SKIPPED)))
        return
    is_redo = any(first in past.undos for first in taken)
    yield _decision(run, params, tuple(finished) or (() if is_redo else NO_CALL), tuple(taken), None)


def _settle(run: Undoing, was: State) -> Iterator[Decision]:
    """Keep what came back within the rules for calls: the list may have changed around it since.

    A task stays completed if no gate was set since. It stays in progress if no new blocker, no running task of a serial
    list and, where it is claimed, no paused parent and no new date forbid it. Earlier tasks of the list go first.
    """
    state = run.state
    came_back = [(state.tasks[name], then) for name, then in run.resumed.items() if name in state.tasks]
    for task, then in came_back:
        if task.status == then.status == "completed" and task.gate not in (None, then.gate):
            reopened = msgspec.structs.replace(task, status="pending")
            event = status_change(reopened, "completed", None, None, run.at)
            assert event is not None, "its gate asks for a check or a yes"
            run.apply(msgspec.structs.replace(event, from_="completed", result_summary=task.result_summary))
            run.note(f"{name_of(task)}: paused, since its gate was set after it was completed")
        yield run.part()
    skipped = {task for task, _, _ in run.skipped}
    running = [(task.id, then) for task, then in came_back if task.status == then.status == "in_progress"]
    for name, then in sorted(running, key=lambda one: state.key(one[0]), reverse=True):
        refusal = None if name in was.running else _check_return(state, state.tasks[name], then, skipped)
        if refusal is not None:
            _put_back(run, state.tasks[name], refusal)
        yield run.part()


def _check_return(state: State, task: Task, then: Task, skipped: Set[str]) -> Rejection | None:
    """Return why a task can't be in progress again as it was `then`.

    What blocked it at that time doesn't count, unless that is among the tasks that the undo skipped.
    """
    is_claimed, known = task.id in state.claims, set(then.open_blockers) - skipped
    since = msgspec.structs.replace(
        task,
        open_blockers=tuple(other for other in task.open_blockers if other not in known),
        not_before=task.not_before if is_claimed and task.not_before != then.not_before else None,
        parent=task.parent if is_claimed else None,
    )
    return check_work(state, since)


def _put_back(run: Undoing, task: Task, refusal: Rejection) -> None:
    claim = run.state.claims.get(task.id)
    if claim is not None:
        run.apply(Released(task=task.id, owner=claim.owner, reason="released"))
    else:
        run.apply(StatusChanged(task.id, "in_progress", "pending"))
    run.note(f"{name_of(task)}: pending, since {_hindrance(refusal)}")


def _hindrance(refusal: Rejection) -> str:
    """Return why a task can't be in progress, for a line about an undo."""
    if running := refusal.data.get("running"):
        return f"#{running} is in progress, and this list runs one task at a time"
    names = ", ".join(f"#{blocker['id']}" for blocker in refusal.data["blockers"])
    return f"it waits for {names}" if names else "it is deferred"


def _is_as_it_was(state: State, run: Undoing) -> bool:
    """Whether what was put back and taken again adds up to nothing."""
    now = run.state
    if (state.title, state.settings) != (now.title, now.settings):
        return False
    return all(
        _unstamped(state.tasks.get(task)) == _unstamped(now.tasks.get(task))
        and state.ranks.get(task) == now.ranks.get(task)
        for task in set(map(named, run.events))
    )


def _unstamped(task: Task | None) -> Task | None:
    return None if task is None else msgspec.structs.replace(task, version=0, updated_at=0, status_changed_at=0)


def _decision(
    run: Undoing, params: p.ListUndo, undoes: tuple[int, ...], touches: tuple[int, ...], reverts_to: int | None
) -> Decision:
    lines = tuple(run.lines)
    if params.preview or not run.events:
        return Decision(lines=lines, touches=touches)
    return Decision(tuple(run.events), undoes, lines, touches, reverts_to)


def _check_undo(past: Lookback, params: p.ListUndo) -> Rejection | None:
    if sum((params.call is not None, params.to_version is not None, params.redo)) > 1:
        return Rejection("invalid_params", "call, redo and to_version exclude each other.", {"field": "call"})
    version = past.state.version
    for name, given in (("call", params.call), ("to_version", params.to_version)):
        if given is not None and given > version:
            message = f"The list is at version {version}: there is no version {given} of it."
            return Rejection("invalid_params", message, {"field": name})
    for name, given in (("call", params.call), ("to_version", params.to_version)):
        if given is not None and given < past.erased_at:
            message = f"What happened up to version {past.erased_at} was erased with the list."
            return Rejection("invalid_params", message, {"field": name})
    gone = next((first for first in past.calls if params.call is not None and first in past.undone), None)
    if gone is not None:
        return Rejection("invalid_params", f"Call {gone} was taken back already.", {"field": "call"})
    return None


def _conflict(past: Lookback, first: int, changes: Sequence[Change]) -> Rejection | None:
    for change in changes:
        for task in _foundations(past, change):
            if (touch := past.resting(task, change.version)) is not None:
                return _refusal(first, touch, task)
    return None


def _overtaken(past: Lookback, first: int, changes: Sequence[Change]) -> Rejection | None:
    """The refusal if nothing is left of a call because of a newer one: an older one must not go in its place."""
    for change in changes:
        if (touch := past.resting(named(change.event), change.version)) is not None:
            return _refusal(first, touch, named(change.event))
    return None


def _foundations(past: Lookback, change: Change) -> Iterable[str]:
    """The tasks on which others may have built because of a change: taking it back would pull them away."""
    event, after = change.event, change.after
    if isinstance(event, TaskAdded):
        yield event.task.id
    elif isinstance(event, StatusChanged) and event.to == "completed" and after is not None:
        tasks = past.state.tasks
        yield from (task for task in after.blocks if task in tasks and tasks[task].status != "pending")


def _skipped(past: Lookback, first: int, run: Undoing) -> Rejection:
    """The refusal for what can't be taken back as it is now."""
    task, after, why = run.skipped[0]
    if (touch := past.resting(task, after)) is not None:
        return _refusal(first, touch, task)
    message = f"Call {first} can't be taken back as a whole: {why}."
    return Rejection("undo_conflict", message, {"call": first, "task": task})


def _refusal(first: int, touch: Touch, task: str) -> Rejection:
    newer = f"the newer call {touch.first} of {touch.actor} rests on it (task #{task})"
    facts = {"call": first, "newer": touch.first, "actor": touch.actor, "task": task}
    return Rejection("undo_conflict", f"Call {first} can't be taken back: {newer}.", facts)
