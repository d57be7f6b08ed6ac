"""Applies events to a state. It never rejects an event and never raises. Parts that don't apply are ignored.

An event sets `version` and `updated_at` of the conversation and of the task in its `task` member. Other tasks that
change as a result (`blocks`, `open_blockers`, a deleted task's edges and children) keep their `version` and
`updated_at`. `blocked_by`, `blocks` and `open_blockers` are sorted by id.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from punchlist_schemas.events import (
    AddedTask,
    AnyEvent,
    Claimed,
    ConversationConfigured,
    ConversationDeleted,
    ConversationOpened,
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    ListCleared,
    MessageAppended,
    MessageRetracted,
    NoteAdded,
    NoteRemoved,
    Released,
    StatusChanged,
    TaskAdded,
    TaskEdited,
    TaskMoved,
    TaskWoken,
)
from punchlist_schemas.things import TALK, Metadata, Note, Task
from punchlistd.domain.state import Claim, State
from punchlistd.domain.state.members import DAYS, EDITABLE, RARE, rare_of
from punchlistd.domain.state.ordering import default_key


def evolve(state: State, event: AnyEvent, seq: int, version: int, at: int) -> State:
    """Apply an event to `state`, and return the state. Accepts any decodable event in any state."""
    state.version = version
    state.seq = seq
    state.updated_at = at
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event, seq, version, at)
    return state


# conversations


def _on_conversation_opened(state: State, event: ConversationOpened, _seq: int, _version: int, at: int) -> None:
    if not state.exists:
        state.exists = True
        state.created_at = at
        state.title = event.title
        state.user = event.user
        state.settings = event.settings
        state.kind = event.kind
        state.metadata = event.metadata


def _on_conversation_configured(state: State, event: ConversationConfigured, *_: int) -> None:
    if event.title is not UNSET:
        state.title = event.title
    if event.settings is not UNSET:
        state.settings = event.settings
    if event.metadata is not UNSET:
        state.metadata = event.metadata
    if event.attached is not UNSET and event.attached not in state.sessions:
        state.sessions = (*state.sessions, event.attached)
        if event.moved_from is not UNSET:
            origins = state.origins.get(event.attached, ())
            state.origins[event.attached] = tuple(dict.fromkeys((*origins, event.moved_from)))
    if event.detached is not UNSET:
        state.sessions = tuple(session for session in state.sessions if session != event.detached)


def _on_conversation_deleted(state: State, _event: ConversationDeleted, *_: int) -> None:
    state.reset()


def _on_list_cleared(state: State, _event: ListCleared, *_: int) -> None:
    state.cleared = len(state.tasks)
    state.clear()


def _on_message_appended(state: State, event: MessageAppended, seq: int, _version: int, _at: int) -> None:
    if event.message in state.messages:
        return
    state.messages[event.message] = seq
    if state.passing is not None and event.role not in TALK:
        state.passing[event.message] = None
    if event.supersedes in state.messages:
        state.hidden.setdefault(event.supersedes, event.message)


def _on_message_retracted(state: State, event: MessageRetracted, *_: int) -> None:
    if event.message in state.messages:
        state.hidden.setdefault(event.message, "")


# tasks

_MAX_DIGITS = 15
"""Maximum number of digits that every JSON reader decodes exactly."""


def _on_task_added(state: State, event: TaskAdded, _seq: int, version: int, at: int) -> None:
    added = event.task
    name = added.id
    tasks = state.tasks
    if name in tasks:
        return
    task = Task(
        id=name,
        title=added.title,
        status=added.status,
        priority=added.priority,
        description=added.description,
        active_form=added.active_form,
        owner=added.owner,
        metadata=added.metadata,
        result_summary=added.result_summary,
        fail_reason=added.fail_reason,
        attempts=added.attempts,
        created_at=added.created_at or at,
        updated_at=at,
        status_changed_at=added.status_changed_at or at,
        version=version,
    )
    # Set rare members separately, because Python 3.11 builds a dict for a call with 16 arguments.
    if any(rare := rare_of(added)):
        task = replace(task, **_normalize(dict(zip(RARE, rare, strict=True)), at))
    if added.parent is not None and added.parent in tasks:
        task = replace(task, parent=added.parent)
    if added.blocked_by:
        task = _link_blockers(state, task, added)
    state.insert(task, event.rank)
    if len(name) <= _MAX_DIGITS and name.isdecimal() and (number := int(name)) >= state.next_task:
        state.next_task = number + 1


def _normalize(changes: dict[str, Any], at: int) -> dict[str, Any]:
    """Remove repeated labels, and deferrals to a time in the past."""
    if changes.get("labels"):
        changes["labels"] = tuple(dict.fromkeys(changes["labels"]))
    not_before = changes.get("not_before")
    if not_before is not None and not_before <= at:
        changes["not_before"] = changes["not_before_day"] = None
    return changes


def _link_blockers(state: State, task: Task, added: AddedTask) -> Task:
    tasks = state.tasks
    blockers = sorted({blocker for blocker in added.blocked_by if blocker in tasks}, key=default_key)
    for blocker in blockers:
        other = tasks[blocker]
        state.link(replace(other, blocks=_insert_id(other.blocks, task.id)))
    open_blockers = tuple(blocker for blocker in blockers if tasks[blocker].status != "completed")
    return replace(task, blocked_by=tuple(blockers), open_blockers=open_blockers)


def _on_task_edited(state: State, event: TaskEdited, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is None:
        return
    changes = {name: value for name in EDITABLE if (value := getattr(event, name)) is not UNSET}
    # Events from older versions contain no days. A new moment also replaces the old day.
    for moment, day in DAYS:
        if moment in changes:
            changes.setdefault(day, None)
    metadata = event.metadata
    if metadata is not UNSET:
        changes["metadata"] = merge_metadata(old.metadata, metadata)
    parent = changes.get("parent")
    if parent is not None and (parent == old.id or parent not in state.tasks):
        del changes["parent"]
    state.put(replace(old, **_normalize(changes, at), updated_at=at, version=version), old)


def _on_note_added(state: State, event: NoteAdded, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is not None:
        importer = event.actor if event.author or event.written_at else ""
        note = Note(version=version, at=event.written_at or at, actor=event.author or event.actor, text=event.text)
        note = replace(note, imported_by=importer) if importer else note
        state.put(replace(old, notes=(*old.notes, note), updated_at=at, version=version), old)


def _on_note_removed(state: State, event: NoteRemoved, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is not None:
        notes = tuple(note for note in old.notes if note.version != event.note)
        state.put(replace(old, notes=notes, updated_at=at, version=version), old)


def _on_task_woken(state: State, event: TaskWoken, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is not None:
        state.put(replace(old, not_before=None, not_before_day=None, updated_at=at, version=version), old)


def merge_metadata(old: Metadata, patch: Metadata) -> Metadata:
    """Return metadata with a patch applied. None deletes a key."""
    result = {**old, **patch}
    return {key: value for key, value in result.items() if value is not None}


def _on_task_moved(state: State, event: TaskMoved, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is not None:
        state.put(replace(old, updated_at=at, version=version), old)
        state.place(state.tasks[old.id], event.rank)


def _on_status_changed(state: State, event: StatusChanged, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is None:
        return
    old_status = old.status
    to = event.to
    summary = event.result_summary
    if summary is UNSET:
        summary = "" if old_status == "completed" != to else old.result_summary
    reason = event.fail_reason
    if reason is UNSET:
        reason = "" if old_status == "failed" != to else old.fail_reason
    task = replace(
        old,
        status=to,
        result_summary=summary,
        fail_reason=reason,
        attempts=old.attempts if event.attempts is UNSET else event.attempts,
        status_changed_at=old.status_changed_at if old_status == to else at,
        updated_at=at,
        version=version,
        waits_for=event.waits_for,
        spent_ms=old.spent_ms + event.spent_ms,
    )
    _put_status(state, task, old)


def _put_status(state: State, task: Task, old: Task) -> None:
    state.put(task, old)
    completed = task.status == "completed"
    if completed != (old.status == "completed"):
        for dependent in task.blocks:
            _update_open_blockers(state, dependent, task.id, opened=not completed)
        if completed and not state.remaining:
            state.last_finished = task


def _on_claimed(state: State, event: Claimed, seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is None:
        return
    task = replace(
        old,
        status="in_progress",
        owner=event.owner,
        attempts=event.attempts or old.attempts,
        status_changed_at=old.status_changed_at if old.status == "in_progress" else at,
        updated_at=at,
        version=version,
        waits_for=None,
    )
    _put_status(state, task, old)
    state.offered.pop(task.id, None)
    lease = event.lease_ms, event.keep, event.keeper, event.session
    claim = state.claims[task.id] = Claim(event.owner, event.fence or seq, *lease, at)
    if event.session:
        state.remember_agent(claim)


def _on_released(state: State, event: Released, _seq: int, version: int, at: int) -> None:
    old = state.tasks.get(event.task)
    if old is None:
        return
    task = replace(
        old,
        status=event.to,
        owner="",
        attempts=old.attempts if event.attempts is UNSET else event.attempts,
        status_changed_at=old.status_changed_at if old.status == event.to else at,
        updated_at=at,
        version=version,
        waits_for=None,
        spent_ms=old.spent_ms + event.spent_ms,
    )
    _put_status(state, task, old)
    state.claims.pop(task.id, None)
    if event.to == "in_progress":
        state.offered[task.id] = None


def _on_deleted(state: State, event: Deleted, *_: int) -> None:
    task = state.tasks.get(event.task)
    if task is None:
        return
    for blocker in task.blocked_by:
        _drop_dependent(state, blocker, task.id)
    for dependent in task.blocks:
        _drop_blocker(state, dependent, task.id)
    for child in state.children(task.id):
        old = state.tasks[child]
        state.put(replace(old, parent=task.parent if task.parent != child else None), old)
    state.remove(state.tasks[task.id])


# edges


def _on_dependency_added(state: State, event: DependencyAdded, _seq: int, version: int, at: int) -> None:
    tasks = state.tasks
    task = tasks.get(event.task)
    blocker = tasks.get(event.blocker)
    if task is None or blocker is None or task is blocker:
        return
    edges = _insert_id(task.blocked_by, blocker.id)
    open_blockers = task.open_blockers
    if edges is not task.blocked_by:
        state.link(replace(blocker, blocks=_insert_id(blocker.blocks, task.id)))
        open_blockers = _insert_id(open_blockers, blocker.id) if blocker.status != "completed" else open_blockers
    state.put(replace(task, blocked_by=edges, open_blockers=open_blockers, updated_at=at, version=version), task)


def _on_dependency_removed(state: State, event: DependencyRemoved, _seq: int, version: int, at: int) -> None:
    task = state.tasks.get(event.task)
    if task is None:
        return
    if event.blocker in state.tasks:
        _drop_dependent(state, event.blocker, task.id)
        _drop_blocker(state, task.id, event.blocker)
    task = state.tasks[task.id]
    state.put(replace(task, updated_at=at, version=version), task)


def _update_open_blockers(state: State, dependent: str, blocker: str, *, opened: bool) -> None:
    old = state.tasks[dependent]
    open_blockers = _insert_id(old.open_blockers, blocker) if opened else _remove_id(old.open_blockers, blocker)
    state.put(replace(old, open_blockers=open_blockers), old)


def _drop_dependent(state: State, blocker: str, dependent: str) -> None:
    other = state.tasks[blocker]
    blocks = _remove_id(other.blocks, dependent)
    if blocks is not other.blocks:
        state.link(replace(other, blocks=blocks))


def _drop_blocker(state: State, dependent: str, blocker: str) -> None:
    old = state.tasks[dependent]
    edges = _remove_id(old.blocked_by, blocker)
    if edges is old.blocked_by:
        return
    state.put(replace(old, blocked_by=edges, open_blockers=_remove_id(old.open_blockers, blocker)), old)


def _position(ids: tuple[str, ...], task: str) -> int:
    return bisect_left(ids, default_key(task), key=default_key)


def _insert_id(ids: tuple[str, ...], task: str) -> tuple[str, ...]:
    position = _position(ids, task)
    if position < len(ids) and ids[position] == task:
        return ids
    return (*ids[:position], task, *ids[position:])


def _remove_id(ids: tuple[str, ...], task: str) -> tuple[str, ...]:
    position = _position(ids, task)
    if position == len(ids) or ids[position] != task:
        return ids
    return ids[:position] + ids[position + 1 :]


_HANDLERS: dict[type, Callable[[State, Any, int, int, int], None]] = {
    TaskAdded: _on_task_added,
    TaskEdited: _on_task_edited,
    TaskMoved: _on_task_moved,
    NoteAdded: _on_note_added,
    NoteRemoved: _on_note_removed,
    TaskWoken: _on_task_woken,
    StatusChanged: _on_status_changed,
    Deleted: _on_deleted,
    DependencyAdded: _on_dependency_added,
    DependencyRemoved: _on_dependency_removed,
    Claimed: _on_claimed,
    Released: _on_released,
    ListCleared: _on_list_cleared,
    MessageAppended: _on_message_appended,
    MessageRetracted: _on_message_retracted,
    ConversationOpened: _on_conversation_opened,
    ConversationConfigured: _on_conversation_configured,
    ConversationDeleted: _on_conversation_deleted,
}
