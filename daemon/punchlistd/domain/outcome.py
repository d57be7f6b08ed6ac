"""Answers to mutations, from the state right after their events: the same call can be answered again from the log."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.events import (
    ConversationOpened,
    Deleted,
    KnownEvent,
    ListCleared,
    MessageAppended,
    StatusChanged,
    TaskAdded,
)
from punchlist_schemas.results import (
    ClearResult,
    ConversationDeleteResult,
    ConversationResult,
    DeleteResult,
    MessageResult,
    SetStatusResult,
    TaskResult,
    TasksResult,
    UndoResult,
    Written,
)
from punchlist_schemas.things import FINISHED, Message, Task
from punchlistd.domain.state import State

_ASKS_FOR_THE_NEXT = FINISHED | {"paused"}


class _Done(msgspec.Struct, frozen=True, gc=False):
    """What came of a call: the state right after it, its events, and the log's position."""

    state: State
    events: Sequence[KnownEvent]
    seq: int
    lines: Sequence[str]
    actor: str


def outcome(  # noqa: PLR0913 - what an answer is made of
    params: p.Mutation,
    state: State,
    events: Sequence[KnownEvent],
    seq: int,
    lines: Sequence[str] = (),
    actor: str = "",
) -> Written:
    """The answer to a mutation.

    Args:
        params: the call.
        state: the conversation right after the call's events.
        events: the call's events.
        seq: position of the last of them or, if there are none, the log's head.
        lines: what `decide` said about an undo.
        actor: who is recorded as having called; a message's answer tells it.
    """
    return ANSWERS[type(params)](params, _Done(state, events, seq, lines, actor))


def _task(params: p.TaskEdit | p.TaskMove, done: _Done) -> TaskResult:
    return TaskResult(task=done.state.tasks[params.task], version=done.state.version, seq=done.seq)


def _added(_params: p.TaskAdd, done: _Done) -> TaskResult:
    name = next(event.task.id for event in done.events if isinstance(event, TaskAdded))
    return TaskResult(task=done.state.tasks[name], version=done.state.version, seq=done.seq)


def _added_many(_params: p.TaskAddMany, done: _Done) -> TasksResult:
    tasks = done.state.tasks
    added = tuple(tasks[event.task.id] for event in done.events if isinstance(event, TaskAdded))
    return TasksResult(tasks=added, version=done.state.version, seq=done.seq)


def _replaced(_params: p.ListReplace, done: _Done) -> TasksResult:
    return TasksResult(tasks=tuple(done.state.ordered()), version=done.state.version, seq=done.seq)


def _set_status(params: p.TaskSetStatus, done: _Done) -> SetStatusResult:
    state = done.state
    task = state.tasks.get(params.task) or state.last_finished
    assert task is not None, "a completion that cleared the list leaves its task behind"
    return SetStatusResult(
        task=task,
        next_task=state.next_ready() if params.status in _ASKS_FOR_THE_NEXT else None,
        unblocked=_unblocked(state, task, done.events),
        remaining=state.remaining,
        version=state.version,
        seq=done.seq,
    )


def _unblocked(state: State, task: Task, events: Sequence[KnownEvent]) -> tuple[str, ...]:
    """The dependents that had nothing else open before them."""
    completed = any(
        isinstance(event, StatusChanged) and event.to == "completed" and event.from_ != "completed" for event in events
    )
    if not completed:
        return ()
    dependents = [state.tasks[name] for name in task.blocks if name in state.tasks]
    return tuple(other.id for other in dependents if not other.open_blockers and other.status not in FINISHED)


def _deleted(_params: p.TaskDelete, done: _Done) -> DeleteResult:
    names = tuple(event.task for event in done.events if isinstance(event, Deleted))
    return DeleteResult(deleted=names, version=done.state.version, seq=done.seq)


def _cleared(_params: p.ListClear, done: _Done) -> ClearResult:
    was_cleared = any(isinstance(event, ListCleared) for event in done.events)
    cleared = done.state.cleared if was_cleared else 0
    return ClearResult(cleared=cleared, version=done.state.version, seq=done.seq)


def _undone(_params: p.ListUndo, done: _Done) -> UndoResult:
    return UndoResult(undone=tuple(done.lines), version=done.state.version, seq=done.seq)


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
    )
    return MessageResult(message=message, version=state.version, seq=done.seq)


def _conversation(_params: p.Mutation, done: _Done) -> ConversationResult:
    created = any(isinstance(event, ConversationOpened) for event in done.events)
    view = done.state.conversation_view()
    return ConversationResult(conversation=view, created=created, version=done.state.version, seq=done.seq)


def _conversation_deleted(params: p.ConversationDelete, done: _Done) -> ConversationDeleteResult:
    return ConversationDeleteResult(deleted=params.conversation, version=done.state.version, seq=done.seq)


ANSWERS: dict[type[p.Mutation], Callable[[Any, _Done], Written]] = {
    p.TaskAdd: _added,
    p.TaskAddMany: _added_many,
    p.TaskEdit: _task,
    p.TaskMove: _task,
    p.TaskSetStatus: _set_status,
    p.TaskDelete: _deleted,
    p.ListReplace: _replaced,
    p.ListClear: _cleared,
    p.ListUndo: _undone,
    p.MessageAppend: _message,
    p.ConversationOpen: _conversation,
    p.ConversationConfigure: _conversation,
    p.ConversationAttach: _conversation,
    p.ConversationDetach: _conversation,
    p.ConversationDelete: _conversation_deleted,
}
"""What answers each mutation."""
