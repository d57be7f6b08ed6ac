"""Rules that undo one change: each emits events that reverse the change where no later change has overwritten it.

The rules operate on a copy of the state. Every event is applied to the copy as it is emitted, so that the next older
change is undone in the resulting list.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from punchlist_schemas.events import (
    AddedTask,
    AnyEvent,
    Claimed,
    ConversationConfigured,
    Deleted,
    DependencyAdded,
    DependencyRemoved,
    KnownEvent,
    ListCleared,
    NoteAdded,
    NoteRemoved,
    Released,
    StatusChanged,
    TaskAdded,
    TaskEdited,
    TaskMoved,
)
from punchlist_schemas.things import FINISHED, Metadata, Note, Skipped, Task, Undone
from punchlistd.domain.commands import Decision
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import Claim, State
from punchlistd.domain.state.dependencies import find_blocker_cycle, find_parent_cycle
from punchlistd.domain.state.members import DAYS, EDITABLE, RESTORABLE, add_days, describe_members
from punchlistd.domain.state.ordering import between, default_key
from punchlistd.domain.undo.trace import Change, RemovedTask, Touch

SKIPPED = "skipped"
"""First word of a line that describes a change that was not undone."""

_VERBS = frozenset({"removed", "restored"})
"""Texts that precede the name of the task."""

_MAX_QUOTE = 80
"""Maximum length of lost text quoted in a preview, in characters."""

_MINUTES_PER_HOUR = 60


class UndoRun:
    """The progress of one undo, which reverses changes from the newest to the oldest.

    Attributes:
        last_touched: Returns the version at which a call that isn't undone last touched a task. Later work by others
            prevents the removal of a task.
        last_restored: Returns the version at which a task, given by id and creation time, was last restored. If the
            task was removed again after that, undoing an older change does not restore it.
        events: Events of the undo so far.
        lines: The description shown to the user: a line for each reversed or skipped change.
        changes: The members of each line.
        change: The change that is being undone; None if the undo applies the list's rules.
        skipped: Changes that can't be undone, each with its task id (or ""), version and reason.
        complete: Whether the current call has been undone completely. A call that is undone in part stays undoable.
        resumed: Tasks that are in progress or completed again, each as it was before the undone change. Later changes
            in the list may not allow that status.
    """

    def __init__(
        self,
        state: State,
        at: int,
        last_touched: Callable[[str], int],
        last_restored: Callable[[str, int], int],
        last_claimed: Callable[[str], int] = lambda _task: 0,
        find_latest: Callable[[str], Touch | None] = lambda _task: None,
    ) -> None:
        self.state = state
        self.at = at
        self.last_touched = last_touched
        self.last_restored = last_restored
        self._last_claimed = last_claimed
        self._claims_before = dict(state.claims)
        self.events: list[KnownEvent] = []
        self.lines: list[str] = []
        self.changes: list[Undone] = []
        self.change: Change | None = None
        self._find_latest = find_latest
        self.skipped: list[tuple[str, int, str]] = []
        self.complete = True
        self.resumed: dict[str, Task] = {}
        self._begin = 0
        self._part = 0
        self._first = 0
        self._resumed_in_call: set[str] = set()
        self._deferred_releases: dict[str, tuple[Claim, int]] = {}

    def begin_call(self, first: int) -> None:
        """Start undoing the call whose first event has version `first`."""
        self.complete = True
        self._first = first
        self._begin, self._resumed_in_call, self._deferred_releases = len(self.events), set(), {}

    def end_call(self) -> None:
        """Make the deferred releases of claims, and update the recorded blockers of each resumed task."""
        for name, (held, attempts) in self._deferred_releases.items():
            # An older change of the call may have changed the owner, which ends no claim.
            if self.state.claims.get(name) is held and self.state.tasks[name].owner == held.owner:
                self.apply(
                    Released(task=name, owner=held.owner, reason="released", to="in_progress", attempts=attempts)
                )
                self.apply(TaskEdited(name, owner=held.owner))
                self.report(self.state.tasks[name], f"released by {held.owner}")
        events = self.events[self._begin :]
        edges = {(event.task, event.blocker) for event in events if isinstance(event, DependencyAdded)}
        opened = {event.task for event in events if isinstance(event, StatusChanged) and event.from_ == "completed"}
        for name in self._resumed_in_call & self.state.running.keys():
            then, now = self.resumed[name], self.state.tasks[name].open_blockers
            blockers = [
                other for other in now if other in then.open_blockers or other in opened or (name, other) in edges
            ]
            self.resumed[name] = replace(then, open_blockers=tuple(blockers))

    def is_claimed_later(self, task: str) -> bool:
        """Return whether a task has a claim that is newer than the call being undone."""
        held = self.state.claims.get(task)
        return held is not None and held is self._claims_before.get(task) and self._last_claimed(task) > self._first

    def can_restore_owner(self, task: str, owner: str) -> bool:
        """Return whether a task can get its former owner back: no newer claim of another owner would lose the task."""
        held = self.state.claims.get(task)
        if held is None or held.owner == owner:
            return True
        if held is self._claims_before.get(task):
            return not self.is_claimed_later(task)
        # The undo of a newer call may have restored a claim that is newer than this call. A claim that this call's undo
        # has restored is older.
        return any(isinstance(event, Claimed) and event.task == task for event in self.events[self._begin :])

    def apply(self, event: KnownEvent) -> None:
        self.events.append(event)
        evolve(self.state, event, 0, self.state.version + 1, self.at)

    def take_part(self) -> Decision:
        """Return the events since the last call of this method."""
        first, self._part = self._part, len(self.events)
        return Decision(tuple(self.events[first:]))

    def add_line(self, line: str, skipped: Skipped = "") -> None:
        """Describe what was done to the list as a whole, or why that was skipped."""
        self._describe(line, Undone(text=line, skipped=skipped))

    def report(self, task: Task, text: str, skipped: Skipped = "") -> None:
        """Describe what was done to a task, or why that was skipped."""
        line = f"{text} {name_of(task)}" if text in _VERBS else f"{name_of(task)}: {text}"
        self._describe(line, Undone(task=task.id, title=task.title, text=text, skipped=skipped))

    def _describe(self, line: str, undone: Undone) -> None:
        self.lines.append(f"{SKIPPED} {line}" if undone.skipped else line)
        change, latest = self.change, self._find_latest(undone.task)
        if latest is not None and (change is None or (undone.skipped and latest.version > change.version)):
            undone = replace(undone, by=latest.actor, at=latest.at, version=latest.version)
        elif change is not None:
            undone = replace(undone, by=change.actor, at=change.at, version=change.version)
        self.changes.append(undone)

    def skip(self, change: Change, reason: str, kind: Skipped = "changed") -> None:
        """Record that a change can't be undone."""
        self.change, task = change, change.after or change.before
        if task is None:
            self.add_line(f"the list: {reason}", kind)
        else:
            self.report(task, reason, kind if self.find_task(change) is not None else "deleted")
        self.skipped.append((task.id if task is not None else "", change.version, reason))
        self.complete = False

    def why_changed(self, task: Task) -> Skipped:
        """Return why a change of a task that was started or handed over since is skipped."""
        return "claimed" if task.id in self.state.claims else "changed"

    def mark_partial(self) -> None:
        """Record that a part of the call was not undone, without adding a line about it."""
        self.complete = False

    def resume(self, then: Task, claim: Claim | None) -> None:
        """Record that a task has its former status again, and restore its claim."""
        if then.status in ("in_progress", "completed"):
            self.resumed[then.id] = then
            self._resumed_in_call.add(then.id)
        self.restore_claim(then.id, claim)

    def defer_release(self, before: Task, held: Claim) -> None:
        """Release a claim at the end of the call, unless the undo of an older change in the call ends it first."""
        self._deferred_releases[before.id] = held, before.attempts

    def restore_claim(self, task: str, claim: Claim | None) -> None:
        """Claim a task in progress again for its former owner, with the lease of the former claim.

        Without a claim, the owner could not continue the task, and nothing would ever free it. The new claim depends on
        its lease alone (`keep`), because the connection of the former claim may be closed.
        """
        now = self.state.tasks.get(task)
        if claim is None or now is None or task in self.state.claims:
            return
        if (now.status, now.owner) == ("in_progress", claim.owner):
            self.apply(Claimed(task, claim.owner, claim.lease_ms, keep=True, session=claim.session))

    def can_restore(self, change: Change, task: Task) -> bool:
        """Return whether undoing a removal should restore the task: it is missing, and was not restored since."""
        return task.id not in self.state.tasks and self.last_restored(task.id, task.created_at) < change.version

    def find_task(self, change: Change) -> Task | None:
        """Return the changed task as it is now, or None if it is gone or its id belongs to another task."""
        then = change.after or change.before
        now = None if then is None else self.state.tasks.get(then.id)
        return now if now is not None and then is not None and now.created_at == then.created_at else None


def is_undoable(event: AnyEvent, *, claims: bool = False) -> bool:
    """Return whether a rule can undo an event. Claims and deliberate releases count only if `claims` is set."""
    if isinstance(event, ConversationConfigured):
        return event.title is not UNSET or event.settings is not UNSET
    if isinstance(event, Released):
        # Other releases were made by the daemon, for example when a lease expired.
        return claims and event.reason == "released"
    if isinstance(event, Claimed):
        return claims
    return type(event) in _RULES


def undo_change(run: UndoRun, change: Change) -> Iterable[Decision]:
    """Undo one change as far as possible. A clear is undone in parts, which are made lazily."""
    run.change = change
    return (_RULES[type(change.event)](run, change) or ()) if is_undoable(change.event, claims=True) else ()


def name_of(task: Task) -> str:
    return f'#{task.id} "{task.title}"'


def _undo_add(run: UndoRun, change: Change) -> None:
    if change.before is not None or change.after is None:
        return
    now = run.find_task(change)
    if now is None:
        run.mark_partial()
    elif run.last_touched(now.id) > change.version:
        run.skip(change, "it changed since", run.why_changed(now))
    else:
        run.apply(Deleted(now.id))
        run.report(now, "removed")


def _undo_edit(run: UndoRun, change: Change) -> None:
    before, after, now = change.before, change.after, run.find_task(change)
    if before is None or after is None:
        return
    if now is None:
        run.skip(change, "it is gone")
        return
    changes, conflicts = _find_members(run, change.event, before, after, now)
    patch, kept = _find_metadata(before.metadata, after.metadata, now.metadata)
    if patch:
        changes["metadata"] = patch
    conflicts.extend(f"metadata.{key}" for key in kept)
    if changes:
        _restore_members(run, now, changes, change.claim)
    if conflicts:
        kind = run.why_changed(now) if conflicts == ["owner"] else "changed"
        run.skip(change, f"{describe_members(conflicts)} changed since", kind)


def _restore_members(run: UndoRun, now: Task, changes: dict[str, Any], claim: Claim | None) -> None:
    run.apply(TaskEdited(now.id, **changes))
    run.report(now, f"{describe_members(changes)} restored")
    # A revert changes the owner first, so undoing the revert restores the owner last, and the claim with it.
    if "owner" in changes:
        run.restore_claim(now.id, claim)


def _can_restore(run: UndoRun, task: Task, member: str, old: Any) -> bool:
    """Return whether a member can get its old value back without breaking a newer claim or making a cycle."""
    if member == "owner":
        return run.can_restore_owner(task.id, old)
    return member != "parent" or _can_be_parent(run.state, task, old)


def _find_members(run: UndoRun, event: Any, before: Task, after: Task, now: Task) -> tuple[dict[str, Any], list[str]]:
    """Return the members to restore, and the names of those that have changed since."""
    changes: dict[str, Any] = {}
    conflicts: list[str] = []
    for member in EDITABLE:
        old, new, present = getattr(before, member), getattr(after, member), getattr(now, member)
        if getattr(event, member) is UNSET or old == new:
            continue
        if present == old:
            run.mark_partial()
        elif present == new and _can_restore(run, now, member, old):
            changes[member] = old
        else:
            conflicts.append(member)
    for moment, day in DAYS:
        if moment in conflicts:
            changes.pop(day, None)
    add_days(now, changes, before)
    return changes, conflicts


def _can_be_parent(state: State, task: Task, parent: str | None) -> bool:
    if parent is None:
        return True
    return parent in state.tasks and find_parent_cycle(task.id, parent, lambda name: state.tasks[name].parent) is None


def _find_metadata(before: Metadata, after: Metadata, now: Metadata) -> tuple[Metadata, list[str]]:
    """Return the patch that restores the changed keys, and the keys that have changed again since."""
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    patch = {key: before.get(key) for key in changed if now.get(key) == after.get(key)}
    return patch, [key for key in changed if now.get(key) not in (before.get(key), after.get(key))]


def _undo_move(run: UndoRun, change: Change) -> None:
    event, now = change.event, run.find_task(change)
    assert isinstance(event, TaskMoved)
    if change.before is None:
        return
    rank = "" if now is None else run.state.ranks.get(now.id, "")
    if now is not None and rank == change.rank:
        run.mark_partial()
    elif now is None or rank != event.rank:
        run.skip(change, "it is gone" if now is None else "it was moved since")
    else:
        rank, before = find_place(run.state, now.id, change.rank)
        run.apply(TaskMoved(task=now.id, before=before, rank=rank))
        run.report(now, "moved back")


def find_place(state: State, task: str, rank: str) -> tuple[str, str | None]:
    """Return the place that a sort key gives a task: the key, and the task that follows.

    If another task has the key by now, the place is right after that task, with a new key.
    """
    key = rank or default_key(task)
    ids = state.ids()
    position = state.index("", key)
    others = [name for name in ids[position : position + 2] if name != task]
    if others and state.key(others[0]) == key:
        position = state.index(others[0]) + 1
        following = next((name for name in ids[position : position + 2] if name != task), None)
        high = default_key(str(state.next_task)) if following is None else state.key(following)
        return between(key, high), following
    return rank, others[0] if others else None


def _undo_note(run: UndoRun, change: Change) -> None:
    now = run.find_task(change)
    if now is None or change.before is None:
        run.mark_partial()
    elif any(note.version == change.version for note in now.notes):
        run.apply(NoteRemoved(now.id, change.version))
        run.report(now, "note removed")
    else:
        run.mark_partial()


def _undo_note_removal(run: UndoRun, change: Change) -> None:
    event, now = change.event, run.find_task(change)
    assert isinstance(event, NoteRemoved)
    if now is None or change.before is None:
        run.mark_partial()
        return
    for note in change.before.notes:
        if note.version == event.note:
            run.apply(rebuild_note(now.id, note))
            run.report(now, "note restored")


def rebuild_note(task: str, note: Note) -> NoteAdded:
    """Return the event that adds a removed note again, under its author's name."""
    if note.imported_by:
        return NoteAdded(task, note.text, note.imported_by, note.actor, note.at)
    return NoteAdded(task, note.text, note.actor)


def _undo_claim(run: UndoRun, change: Change) -> None:
    """Release the claim, unless it has ended or been made again since."""
    event, before, now = change.event, change.before, run.find_task(change)
    assert isinstance(event, Claimed)
    if before is None or now is None:
        run.skip(change, "it is gone")
        return
    held = run.state.claims.get(now.id)
    if held is None or held.owner != event.owner or run.is_claimed_later(now.id):
        if (now.status, now.owner) == (before.status, before.owner):
            run.mark_partial()
        else:
            run.skip(change, "it has changed since")
        return
    if (before.status, before.owner) == ("in_progress", event.owner):
        run.defer_release(before, held)
        return
    run.apply(Released(task=now.id, owner=event.owner, reason="released", to=before.status, attempts=before.attempts))
    if before.owner:
        run.apply(TaskEdited(now.id, owner=before.owner))
    run.report(now, f"released by {event.owner}")


def _undo_release(run: UndoRun, change: Change) -> None:
    """Give the task back to the owner who released it."""
    event, before, now = change.event, change.before, run.find_task(change)
    assert isinstance(event, Released)
    if before is None or now is None:
        run.skip(change, "it is gone")
    elif (now.status, now.owner) == (before.status, before.owner):
        run.mark_partial()
    elif (now.status, now.owner) != (event.to, ""):
        run.skip(change, "it has changed since")
    else:
        claim = change.claim
        if claim is not None and before.status == "in_progress" and claim.owner == before.owner:
            run.apply(Claimed(now.id, claim.owner, claim.lease_ms, before.attempts, keep=True, session=claim.session))
        else:
            if now.status != before.status:
                run.apply(StatusChanged(now.id, now.status, before.status, attempts=before.attempts))
            run.apply(TaskEdited(now.id, owner=before.owner))
        run.resume(before, claim)
        run.report(now, f"claimed by {event.owner} again")


def _undo_status(run: UndoRun, change: Change) -> None:
    before, after, now = change.before, change.after, run.find_task(change)
    if before is None or after is None:
        return
    if now is None:
        run.skip(change, "it is gone")
    elif _progress_of(now) == _progress_of(before):
        run.mark_partial()
    elif _progress_of(now) != _progress_of(after):
        run.skip(change, "its status changed since", run.why_changed(now))
    elif before.status in FINISHED and run.is_claimed_later(now.id):
        run.skip(change, "it was started again since", "claimed")
    else:
        run.apply(
            StatusChanged(
                now.id,
                now.status,
                before.status,
                before.result_summary,
                before.fail_reason,
                UNSET if before.attempts == now.attempts else before.attempts,
                before.waits_for,
                before.spent_ms - now.spent_ms if before.spent_ms != after.spent_ms else 0,
            )
        )
        run.resume(before, change.claim)
        message = f"{now.status} → {before.status}{_describe_loss(before, now)}"
        run.report(now, "summary and reason restored" if now.status == before.status else message)


def _describe_loss(before: Task, now: Task) -> str:
    """Return the parts of the current task that the undo loses: its result, its reason, and the time worked on it."""
    lost = [
        f"{name} {text if len(text) <= _MAX_QUOTE else text[: _MAX_QUOTE - 1] + '…'!r}"
        for name, text, old in (
            ("its result", now.result_summary, before.result_summary),
            ("its reason", now.fail_reason, before.fail_reason),
        )
        if text and text != old
    ]
    minutes = (now.spent_ms - before.spent_ms) // 60_000
    if minutes > 0:
        lost.append(f"{minutes // _MINUTES_PER_HOUR} h {minutes % _MINUTES_PER_HOUR} min of work")
    return f"; lost: {', '.join(lost)}" if lost else ""


def _progress_of(task: Task) -> tuple[object, ...]:
    return (task.status, task.result_summary, task.fail_reason, task.attempts, task.waits_for)


def _undo_edge(run: UndoRun, change: Change) -> None:
    event, now = change.event, run.find_task(change)
    assert isinstance(event, DependencyAdded)
    if change.before is None or change.after is None or event.blocker in change.before.blocked_by:
        return
    if now is not None and event.blocker in now.blocked_by:
        run.apply(DependencyRemoved(now.id, event.blocker))
        run.report(now, f"no longer waits for #{event.blocker}")
    else:
        run.mark_partial()


def _undo_edge_removal(run: UndoRun, change: Change) -> None:
    event, now = change.event, run.find_task(change)
    assert isinstance(event, DependencyRemoved)
    if change.before is None or event.blocker not in change.before.blocked_by:
        return
    if now is not None and event.blocker in now.blocked_by:
        run.mark_partial()
    elif now is not None and _restore_edge(run, now.id, event.blocker):
        run.report(now, f"waits for #{event.blocker} again")
    else:
        run.skip(change, f"it can't wait for #{event.blocker} again")


def _restore_edge(run: UndoRun, task: str, blocker: str) -> bool:
    tasks = run.state.tasks
    if task not in tasks or blocker not in tasks or blocker in tasks[task].blocked_by:
        return False
    if find_blocker_cycle(task, tasks, {task: (blocker,)}) is not None:
        return False
    run.apply(DependencyAdded(task, blocker))
    return True


def _undo_deletion(run: UndoRun, change: Change) -> None:
    for removed in change.removed:
        task = removed.task
        if not run.can_restore(change, task):
            _skip_task(run, removed)
            continue
        run.apply(_build_task_added(run.state, removed, run.state.tasks))
        for dependent in task.blocks:
            _restore_edge(run, dependent, task.id)
        _restore_children(run, removed, task.parent)
        run.resume(task, removed.claim)
        run.report(task, "restored")


def _undo_clear(run: UndoRun, change: Change) -> Iterator[Decision]:
    """Restore all tasks, then their relations. A task whose id is in use again is skipped, including its relations."""
    restored = {removed.task.id: removed for removed in change.removed if run.can_restore(change, removed.task)}
    for removed in restored.values():
        run.apply(_build_task_added(run.state, removed, restored))
        yield run.take_part()
    for removed in restored.values():
        for dependent in removed.task.blocks:
            if dependent in restored and removed.task.id not in run.state.tasks[dependent].blocked_by:
                run.apply(DependencyAdded(dependent, removed.task.id))
        _restore_children(run, removed, None)
        run.resume(removed.task, removed.claim)
        yield run.take_part()
    if restored:
        run.add_line(f"restored {len(restored)} cleared task{'s' if len(restored) != 1 else ''}")
    for removed in change.removed:
        if removed.task.id not in restored:
            _skip_task(run, removed)


def _skip_task(run: UndoRun, removed: RemovedTask) -> None:
    run.mark_partial()
    present = run.state.tasks.get(removed.task.id)
    if present is not None and present.created_at != removed.task.created_at:
        run.report(removed.task, "its id is in use again", "deleted")


def _build_task_added(state: State, removed: RemovedTask, among: Container[str]) -> TaskAdded:
    task = removed.task
    rank, before = find_place(state, task.id, removed.rank)
    parent = task.parent
    members = {name: getattr(task, name) for name in RESTORABLE}
    members["parent"] = parent if parent in state.tasks and parent in among else None
    members["blocked_by"] = tuple(other for other in task.blocked_by if other in state.tasks and other in among)
    return TaskAdded(AddedTask(**members), before, rank)


def _restore_children(run: UndoRun, removed: RemovedTask, left_at: str | None) -> None:
    """Move the children back below a restored task if they are still where its removal left them."""
    for name in removed.children:
        child = run.state.tasks.get(name)
        if child is not None and child.parent == left_at and _can_be_parent(run.state, child, removed.task.id):
            run.apply(TaskEdited(name, parent=removed.task.id))


def _undo_settings(run: UndoRun, change: Change) -> None:
    event = change.event
    assert isinstance(event, ConversationConfigured)
    restored = ConversationConfigured(
        title=change.title if event.title is not UNSET and run.state.title == event.title else UNSET,
        settings=change.settings if event.settings is not UNSET and run.state.settings == event.settings else UNSET,
    )
    if restored != ConversationConfigured():
        run.apply(restored)
        run.add_line("the list: title or settings restored")
    if (event.title is not UNSET) != (restored.title is not UNSET):
        run.add_line("the conversation's title: it changed since", "changed")
        run.mark_partial()
    if (event.settings is not UNSET) != (restored.settings is not UNSET):
        run.add_line("the conversation's settings: they changed since", "changed")
        run.mark_partial()


_RULES: dict[type, Callable[[UndoRun, Change], Iterable[Decision] | None]] = {
    TaskAdded: _undo_add,
    TaskEdited: _undo_edit,
    TaskMoved: _undo_move,
    NoteAdded: _undo_note,
    NoteRemoved: _undo_note_removal,
    Claimed: _undo_claim,
    Released: _undo_release,
    StatusChanged: _undo_status,
    DependencyAdded: _undo_edge,
    DependencyRemoved: _undo_edge_removal,
    Deleted: _undo_deletion,
    ListCleared: _undo_clear,
    ConversationConfigured: _undo_settings,
}
