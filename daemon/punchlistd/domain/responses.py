"""Answers to mutations, from the state right after their events: the same call can be answered again from the log."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.events import (
    Claimed,
    ConversationOpened,
    Deleted,
    KnownEvent,
    ListCleared,
    MessageAppended,
    StatusChanged,
    TaskAdded,
)
from punchlist_schemas.results import (
    ApplyResult,
    ClaimResult,
    ClearResult,
    ConversationDeleteResult,
    ConversationResult,
    DeleteResult,
    MessageResult,
    MessageRetractResult,
    SetStatusResult,
    TaskResult,
    TasksResult,
    UndoResult,
    Written,
)
from punchlist_schemas.things import FINISHED, Message, Task, names_of
from punchlistd.domain.commands import NOTHING, Decision, EndClaims, EndReservations, Wake
from punchlistd.domain.decide.serial import find_current
from punchlistd.domain.state import State
from punchlistd.domain.state.equal import equal_task, equal_tasks
from punchlistd.domain.undo.trace import task_id_of

_ASKS_FOR_THE_NEXT = FINISHED | {"paused"}


class _Done(msgspec.Struct, frozen=True, gc=False):
    """What came of a call: the state right after it, its events, and the log's position."""

    state: State
    events: Sequence[KnownEvent]
    seq: int
    decision: Decision
    actor: str


def respond(  # noqa: PLR0913 - what an answer is made of
    params: p.Mutation,
    state: State,
    events: Sequence[KnownEvent],
    seq: int,
    decision: Decision = NOTHING,
    actor: str = "",
) -> Written:
    """The answer to a mutation.

    Args:
        params: the call.
        state: the conversation right after the call's events.
        events: the call's events.
        seq: position of the last of them or, if there are none, the log's head.
        decision: of an undo, what it takes back.
        actor: who is recorded as having called; a message's answer tells it.
    """
    return ANSWERS[type(params)](params, _Done(state, events, seq, decision, actor))


def _task(params: p.TaskEdit | p.TaskNote | p.TaskMove | p.TaskRenew | p.TaskRelease, done: _Done) -> TaskResult:
    return TaskResult(task=done.state.tasks[params.task], version=done.state.version, seq=done.seq)


def _added(params: p.TaskAdd, done: _Done) -> TaskResult:
    for event in done.events:
        if type(event) is TaskAdded:
            return TaskResult(task=done.state.tasks[event.task.id], version=done.state.version, seq=done.seq)
    kept = equal_task(done.state, params)
    assert kept is not None, "task.add adds a task, or keeps one"
    return TaskResult(task=kept, kept=True, version=done.state.version, seq=done.seq)


def _added_many(params: p.TaskAddMany, done: _Done) -> TasksResult:
    added = [event.task.id for event in done.events if isinstance(event, TaskAdded)]
    names, kept = added, tuple[str, ...]()
    if params.keep_equal:  # each task of the call is there now: it was kept, or it is the next of those added
        rest, new = iter(added), set(added)
        equal = equal_tasks(done.state, params.tasks)
        asked = zip(params.tasks, equal, strict=True)
        names = [name if name and name not in new else next(rest) for one, name in asked if one.task is None]
        kept = tuple(name for name in names if name not in new)
    tasks = tuple(done.state.tasks[name] for name in names)
    return TasksResult(tasks=tasks, kept=kept, version=done.state.version, seq=done.seq)


def _replaced(_params: p.ListReplace, done: _Done) -> TasksResult:
    return TasksResult(tasks=tuple(done.state.ordered()), version=done.state.version, seq=done.seq)


def _applied(_params: ListApply, done: _Done) -> ApplyResult:
    tasks = done.state.tasks
    touched = dict.fromkeys(task_id_of(event) for event in done.events)
    return ApplyResult(
        tasks=tuple(tasks[name] for name in touched if name in tasks),
        added=tuple(event.task.id for event in done.events if isinstance(event, TaskAdded)),
        deleted=tuple(event.task for event in done.events if isinstance(event, Deleted)),
        version=done.state.version,
        seq=done.seq,
    )


def _set_status(params: p.TaskSetStatus | p.TaskApprove, done: _Done) -> SetStatusResult:
    state = done.state
    task = state.tasks.get(params.task) or state.last_finished
    assert task is not None, "a completion that cleared the list leaves its task behind"
    remaining = state.remaining
    asked = params.status if isinstance(params, p.TaskSetStatus) else task.status
    following = _next(state, task, done.actor) if asked in _ASKS_FOR_THE_NEXT else None
    return SetStatusResult(
        task=task,
        next_task=following,
        next_path=() if following is None else state.path(following),
        unblocked=_unblocked(state, done.events),
        remaining=remaining,
        failed=0 if remaining else state.counts().failed,
        version=state.version,
        seq=done.seq,
    )


def _next(state: State, task: Task, actor: str) -> Task | None:
    if state.settings.execution == "serial":
        running = next((name for name in find_current(state) if name != task.id), None)
        if running is not None:
            return state.tasks[running]
    return state.next_for(names_of(actor))


def _unblocked(state: State, events: Sequence[KnownEvent]) -> tuple[str, ...]:
    """Return the dependents of completed tasks, parents included, that no open task blocks any more."""
    tasks = state.tasks
    names: dict[str, None] = {}
    for event in events:
        if isinstance(event, StatusChanged) and event.to == "completed" != event.from_ and event.task in tasks:
            names |= dict.fromkeys(tasks[event.task].blocks)
    if not names:
        return ()
    return tuple(name for name in names if not tasks[name].open_blockers and tasks[name].status not in FINISHED)


def _claim(_params: p.TaskClaim, done: _Done) -> ClaimResult:
    state = done.state
    events = [event for event in done.events if isinstance(event, Claimed)]
    tasks = tuple(state.tasks[event.task] for event in events if event.task in state.tasks)
    fences = tuple(state.claims[task.id].fence for task in tasks if task.id in state.claims)
    paths = tuple(map(state.path, tasks))
    many = len(tasks) > 1
    return ClaimResult(
        task=tasks[0] if tasks else None,
        fence=fences[0] if fences else None,
        path=paths[0] if paths else (),
        tasks=tasks if many else (),
        fences=fences if many else (),
        paths=paths if many and any(paths) else (),
        version=state.version,
        seq=done.seq,
    )


def _written(_params: p.Mutation, done: _Done) -> Written:
    return Written(version=done.state.version, seq=done.seq)


def _deleted(_params: p.TaskDelete, done: _Done) -> DeleteResult:
    names = tuple(event.task for event in done.events if isinstance(event, Deleted))
    return DeleteResult(deleted=names, version=done.state.version, seq=done.seq)


def _cleared(_params: p.ListClear | p.TurnEnd, done: _Done) -> ClearResult:
    was_cleared = any(isinstance(event, ListCleared) for event in done.events)
    cleared = done.state.cleared if was_cleared else 0
    return ClearResult(cleared=cleared, version=done.state.version, seq=done.seq)


def _undone(_params: p.ListUndo, done: _Done) -> UndoResult:
    lines, calls = done.decision.lines, done.decision.touches
    return UndoResult(undone=lines, calls=calls, version=done.state.version, seq=done.seq)


def _message(params: p.MessageAppend, done: _Done) -> MessageResult:
    name = next(event.message for event in done.events if isinstance(event, MessageAppended))
    state = done.state
    message = Message(
        message=name,
        role=params.role,
        content=params.content,
        at=state.updated_at,
        actor=done.actor,
        seq=state.messages[name],
        supersedes=params.supersedes or "",
    )
    return MessageResult(message=message, version=state.version, seq=done.seq)


def _retracted(params: p.MessageRetract, done: _Done) -> MessageRetractResult:
    return MessageRetractResult(retracted=params.message, version=done.state.version, seq=done.seq)


def _conversation(_params: p.Mutation, done: _Done) -> ConversationResult:
    created = any(isinstance(event, ConversationOpened) for event in done.events)
    view = done.state.conversation_view()
    return ConversationResult(conversation=view, created=created, version=done.state.version, seq=done.seq)


def _conversation_deleted(params: p.ConversationDelete, done: _Done) -> ConversationDeleteResult:
    return ConversationDeleteResult(deleted=params.conversation, version=done.state.version, seq=done.seq)


ANSWERS: dict[type[p.Mutation], Callable[[Any, _Done], Written]] = {
    p.TaskAdd: _added,
    p.TaskAddMany: _added_many,
    ListApply: _applied,
    p.TaskEdit: _task,
    p.TaskMove: _task,
    p.TaskSetStatus: _set_status,
    p.TaskApprove: _set_status,
    p.TaskClaim: _claim,
    p.TaskRenew: _task,
    p.TaskRelease: _task,
    EndClaims: _written,
    EndReservations: _written,
    Wake: _written,
    p.TaskNote: _task,
    p.TaskDelete: _deleted,
    p.ListReplace: _replaced,
    p.ListClear: _cleared,
    p.TurnEnd: _cleared,
    p.ListUndo: _undone,
    p.MessageAppend: _message,
    p.MessageRetract: _retracted,
    p.ConversationOpen: _conversation,
    p.ConversationConfigure: _conversation,
    p.ConversationAttach: _conversation,
    p.ConversationDetach: _conversation,
    p.ConversationDelete: _conversation_deleted,
}
"""What answers each mutation."""
