"""Builds responses to mutations from the state right after their events.

A response can be rebuilt later from the log.
"""

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

_SHOWS_NEXT = FINISHED | {"paused"}


class _Outcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a call: the state right after the call, its events, and its log position."""

    state: State
    events: Sequence[KnownEvent]
    seq: int
    decision: Decision
    actor: str


def respond(  # noqa: PLR0913 - the parts of an outcome
    params: p.Mutation,
    state: State,
    events: Sequence[KnownEvent],
    seq: int,
    decision: Decision = NOTHING,
    actor: str = "",
) -> Written:
    """Build the response to a mutation.

    Args:
        params: The call.
        state: The conversation right after the call's events.
        events: The call's events.
        seq: Log position of the last event or, if there are no events, the position of the log's head.
        decision: The decision of an undo.
        actor: The recorded caller, for the response to a message.
    """
    return BUILDERS[type(params)](params, _Outcome(state, events, seq, decision, actor))


def _build_task(
    params: p.TaskEdit | p.TaskNote | p.TaskMove | p.TaskRenew | p.TaskRelease, outcome: _Outcome
) -> TaskResult:
    return TaskResult(task=outcome.state.tasks[params.task], version=outcome.state.version, seq=outcome.seq)


def _build_added(params: p.TaskAdd, outcome: _Outcome) -> TaskResult:
    for event in outcome.events:
        if type(event) is TaskAdded:
            return TaskResult(task=outcome.state.tasks[event.task.id], version=outcome.state.version, seq=outcome.seq)
    kept = equal_task(outcome.state, params)
    assert kept is not None, "task.add adds a task, or keeps one"
    return TaskResult(task=kept, kept=True, version=outcome.state.version, seq=outcome.seq)


def _build_added_many(params: p.TaskAddMany, outcome: _Outcome) -> TasksResult:
    added = [event.task.id for event in outcome.events if isinstance(event, TaskAdded)]
    names, kept = added, tuple[str, ...]()
    # By now, the list contains an equal task for each one in the call: one that was kept, or the next one added.
    if params.keep_equal:
        rest, new = iter(added), set(added)
        equal = equal_tasks(outcome.state, params.tasks)
        pairs = zip(params.tasks, equal, strict=True)
        names = [name if name and name not in new else next(rest) for request, name in pairs if request.task is None]
        kept = tuple(name for name in names if name not in new)
    tasks = tuple(outcome.state.tasks[name] for name in names)
    return TasksResult(tasks=tasks, kept=kept, version=outcome.state.version, seq=outcome.seq)


def _build_replaced(_params: p.ListReplace, outcome: _Outcome) -> TasksResult:
    return TasksResult(tasks=tuple(outcome.state.ordered()), version=outcome.state.version, seq=outcome.seq)


def _build_applied(_params: ListApply, outcome: _Outcome) -> ApplyResult:
    tasks = outcome.state.tasks
    touched = dict.fromkeys(task_id_of(event) for event in outcome.events)
    return ApplyResult(
        tasks=tuple(tasks[name] for name in touched if name in tasks),
        added=tuple(event.task.id for event in outcome.events if isinstance(event, TaskAdded)),
        deleted=tuple(event.task for event in outcome.events if isinstance(event, Deleted)),
        version=outcome.state.version,
        seq=outcome.seq,
    )


def _build_status(params: p.TaskSetStatus | p.TaskApprove, outcome: _Outcome) -> SetStatusResult:
    state = outcome.state
    task = state.tasks.get(params.task) or state.last_finished
    assert task is not None, "a completion that cleared the list leaves its task behind"
    remaining = state.remaining
    status = params.status if isinstance(params, p.TaskSetStatus) else task.status
    next_task = _find_next(state, task, outcome.actor) if status in _SHOWS_NEXT else None
    return SetStatusResult(
        task=task,
        next_task=next_task,
        next_path=() if next_task is None else state.path(next_task),
        unblocked=_find_unblocked(state, outcome.events),
        remaining=remaining,
        failed=0 if remaining else state.counts().failed,
        version=state.version,
        seq=outcome.seq,
    )


def _find_next(state: State, task: Task, actor: str) -> Task | None:
    if state.settings.execution == "serial":
        running = next((name for name in find_current(state) if name != task.id), None)
        if running is not None:
            return state.tasks[running]
    return state.next_for(names_of(actor))


def _find_unblocked(state: State, events: Sequence[KnownEvent]) -> tuple[str, ...]:
    """Return the tasks that these events have unblocked: dependents of completed tasks, and parents."""
    tasks = state.tasks
    names: dict[str, None] = {}
    for event in events:
        if isinstance(event, StatusChanged) and event.to == "completed" != event.from_ and event.task in tasks:
            names |= dict.fromkeys(tasks[event.task].blocks)
    if not names:
        return ()
    return tuple(name for name in names if not tasks[name].open_blockers and tasks[name].status not in FINISHED)


def _build_claim(_params: p.TaskClaim, outcome: _Outcome) -> ClaimResult:
    state = outcome.state
    events = [event for event in outcome.events if isinstance(event, Claimed)]
    tasks = tuple(state.tasks[event.task] for event in events if event.task in state.tasks)
    fences = tuple(state.claims[task.id].fence for task in tasks if task.id in state.claims)
    paths = tuple(map(state.path, tasks))
    is_batch = len(tasks) > 1
    return ClaimResult(
        task=tasks[0] if tasks else None,
        fence=fences[0] if fences else None,
        path=paths[0] if paths else (),
        tasks=tasks if is_batch else (),
        fences=fences if is_batch else (),
        paths=paths if is_batch and any(paths) else (),
        version=state.version,
        seq=outcome.seq,
    )


def _build_written(_params: p.Mutation, outcome: _Outcome) -> Written:
    return Written(version=outcome.state.version, seq=outcome.seq)


def _build_deleted(_params: p.TaskDelete, outcome: _Outcome) -> DeleteResult:
    names = tuple(event.task for event in outcome.events if isinstance(event, Deleted))
    return DeleteResult(deleted=names, version=outcome.state.version, seq=outcome.seq)


def _build_cleared(_params: p.ListClear | p.TurnEnd, outcome: _Outcome) -> ClearResult:
    was_cleared = any(isinstance(event, ListCleared) for event in outcome.events)
    cleared = outcome.state.cleared if was_cleared else 0
    return ClearResult(cleared=cleared, version=outcome.state.version, seq=outcome.seq)


def _build_undone(_params: p.ListUndo, outcome: _Outcome) -> UndoResult:
    decision = outcome.decision
    return UndoResult(
        undone=decision.lines,
        calls=decision.touches,
        changes=decision.changes,
        version=outcome.state.version,
        seq=outcome.seq,
    )


def _build_message(params: p.MessageAppend, outcome: _Outcome) -> MessageResult:
    name = next(event.message for event in outcome.events if isinstance(event, MessageAppended))
    state = outcome.state
    message = Message(
        message=name,
        role=params.role,
        content=params.content,
        at=state.updated_at,
        actor=outcome.actor,
        seq=state.messages[name],
        supersedes=params.supersedes or "",
    )
    return MessageResult(message=message, version=state.version, seq=outcome.seq)


def _build_retracted(params: p.MessageRetract, outcome: _Outcome) -> MessageRetractResult:
    return MessageRetractResult(retracted=params.message, version=outcome.state.version, seq=outcome.seq)


def _build_conversation(_params: p.Mutation, outcome: _Outcome) -> ConversationResult:
    created = any(isinstance(event, ConversationOpened) for event in outcome.events)
    view = outcome.state.conversation_view()
    return ConversationResult(conversation=view, created=created, version=outcome.state.version, seq=outcome.seq)


def _build_conversation_deleted(params: p.ConversationDelete, outcome: _Outcome) -> ConversationDeleteResult:
    return ConversationDeleteResult(deleted=params.conversation, version=outcome.state.version, seq=outcome.seq)


BUILDERS: dict[type[p.Mutation], Callable[[Any, _Outcome], Written]] = {
    p.TaskAdd: _build_added,
    p.TaskAddMany: _build_added_many,
    ListApply: _build_applied,
    p.TaskEdit: _build_task,
    p.TaskMove: _build_task,
    p.TaskSetStatus: _build_status,
    p.TaskApprove: _build_status,
    p.TaskClaim: _build_claim,
    p.TaskRenew: _build_task,
    p.TaskRelease: _build_task,
    EndClaims: _build_written,
    EndReservations: _build_written,
    Wake: _build_written,
    p.TaskNote: _build_task,
    p.TaskDelete: _build_deleted,
    p.ListReplace: _build_replaced,
    p.ListClear: _build_cleared,
    p.TurnEnd: _build_cleared,
    p.ListUndo: _build_undone,
    p.MessageAppend: _build_message,
    p.MessageRetract: _build_retracted,
    p.ConversationOpen: _build_conversation,
    p.ConversationConfigure: _build_conversation,
    p.ConversationAttach: _build_conversation,
    p.ConversationDetach: _build_conversation,
    p.ConversationDelete: _build_conversation_deleted,
}
"""The function that builds the response to each mutation."""
