"""Taking a change back: new events that undo what still stands as the change left it, and a line that says so.

The rules work on a state of their own that runs ahead: each event they give has been applied to it already, so that
the next, older change is taken back in the list as it then is.
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
from punchlist_schemas.things import FINISHED, Metadata, Note, Task
from punchlistd.domain.commands import Decision
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import Claim, State
from punchlistd.domain.state.dependencies import cycle_through, parent_cycle
from punchlistd.domain.state.members import DAYS, EDITABLE, RESTORABLE, add_days, named
from punchlistd.domain.state.ordering import between, default_key
from punchlistd.domain.undo.trace import Change, Taken

SKIPPED = "skipped"
"""Begins a line that tells what stays as it is."""


_SHOWN = 80
"""Maximum length of a lost text in a preview, in characters."""


_HOUR = 60
"""Minutes."""


class Undoing:
    """A run of changes being taken back, newest first. `events` and `lines` are what has come of it.

    `skipped` are the changes that can't be taken back: the task (or ""), the version, and why.

    `touched` tells at which version each task was last touched by a call that stays: a task that others went on with
    is not taken away. `returned` tells at which version each task (id and time of creation) last came back: one that
    went again after that is not brought back by an older change. `complete` goes false when a part of a call is not
    taken back: such a call does not count as undone, so that a later undo can come back to it. `claimed` tells at which
    version the call begins that claimed a task last.

    `resumed` are the tasks that came back in progress or completed, as they were then: what has changed around them
    since may forbid it.
    """

    def __init__(
        self,
        state: State,
        at: int,
        touched: Callable[[str], int],
        returned: Callable[[str, int], int],
        claimed: Callable[[str], int] = lambda _task: 0,
    ) -> None:
        self.state = state
        self.at = at
        self.touched = touched
        self.returned = returned
        self._claimed = claimed
        self._claims = dict(state.claims)
        self.events: list[KnownEvent] = []
        self.lines: list[str] = []
        self.skipped: list[tuple[str, int, str]] = []
        self.complete = True
        self.resumed: dict[str, Task] = {}
        self._begin = 0
        self._part = 0
        self._first = 0
        self._resumed_in_call: set[str] = set()
        self._freed: dict[str, tuple[Claim, int]] = {}

    def begin_call(self, first: int) -> None:
        """Take back the call whose first event has version `first`."""
        self.complete = True
        self._first = first
        self._begin, self._resumed_in_call, self._freed = len(self.events), set(), {}

    def end_call(self) -> None:
        """Release claims that `free` left, and keep the blockers that each task had before the call."""
        for name, (held, attempts) in self._freed.items():
            if self.state.claims.get(name) is held:
                self.apply(
                    Released(task=name, owner=held.owner, reason="released", to="in_progress", attempts=attempts)
                )
                self.apply(TaskEdited(name, owner=held.owner))
                self.note(f"{name_of(self.state.tasks[name])}: given back by {held.owner}")
        events = self.events[self._begin :]
        edges = {(one.task, one.blocker) for one in events if isinstance(one, DependencyAdded)}
        opened = {one.task for one in events if isinstance(one, StatusChanged) and one.from_ == "completed"}
        for name in self._resumed_in_call & self.state.running.keys():
            then, now = self.resumed[name], self.state.tasks[name].open_blockers
            known = [one for one in now if one in then.open_blockers or one in opened or (name, one) in edges]
            self.resumed[name] = replace(then, open_blockers=tuple(known))

    def is_begun_again(self, task: str) -> bool:
        """Return whether a task is held by a claim that was made after the call that is taken back."""
        held = self.state.claims.get(task)
        return held is not None and held is self._claims.get(task) and self._claimed(task) > self._first

    def apply(self, event: KnownEvent) -> None:
        self.events.append(event)
        evolve(self.state, event, 0, self.state.version + 1, self.at)

    def part(self) -> Decision:
        """Return what happened since the last part."""
        first, self._part = self._part, len(self.events)
        return Decision(tuple(self.events[first:]))

    def note(self, line: str) -> None:
        """Tell what was taken back."""
        self.lines.append(line)

    def skip(self, change: Change, reason: str) -> None:
        """Tell what stays as it is, and why."""
        task = change.after or change.before
        self.note(f"{SKIPPED} {name_of(task) if task is not None else 'the list'}: {reason}")
        self.skipped.append((task.id if task is not None else "", change.version, reason))
        self.complete = False

    def leave(self) -> None:
        """Something is already as it was before the change, by whatever means: nothing to tell."""
        self.complete = False

    def resume(self, then: Task, claim: Claim | None) -> None:
        """Record that a task is again as it was, and give it back to the owner of its claim."""
        if then.status in ("in_progress", "completed"):
            self.resumed[then.id] = then
            self._resumed_in_call.add(then.id)
        self.hand_back(then.id, claim)

    def free(self, before: Task, held: Claim) -> None:
        """Release a claim at the end of the call, unless an older change of it ends the claim: then that is enough."""
        self._freed[before.id] = held, before.attempts

    def hand_back(self, task: str, claim: Claim | None) -> None:
        """Give a task that came back in progress to whoever had claimed it, for as long as the claim was made for.

        Without a claim the task would be nobody's to go on with: not its owner's, and its time would never be over.
        The time of this claim alone counts, since the connection of the one before may be gone.
        """
        now = self.state.tasks.get(task)
        if claim is None or now is None or task in self.state.claims:
            return
        if (now.status, now.owner) == ("in_progress", claim.owner):
            self.apply(Claimed(task, claim.owner, claim.lease_ms, keep=True, session=claim.session))

    def may_return(self, change: Change, task: Task) -> bool:
        """Whether a change is what keeps a task away."""
        return task.id not in self.state.tasks and self.returned(task.id, task.created_at) < change.version

    def standing(self, change: Change) -> Task | None:
        """The task that a change named, if it is still the same one."""
        then = change.after or change.before
        now = None if then is None else self.state.tasks.get(then.id)
        return now if now is not None and then is not None and now.created_at == then.created_at else None


def is_undoable(event: AnyEvent, *, claims: bool = False) -> bool:
    """Whether an event can be taken back at all; claims and releases by somebody only where that is asked for."""
    if isinstance(event, ConversationConfigured):
        return event.title is not UNSET or event.settings is not UNSET
    if isinstance(event, Released):
        return claims and event.reason == "released"  # else a time was over, which nobody did
    if isinstance(event, Claimed):
        return claims
    return type(event) in _RULES


def take_back(run: Undoing, change: Change) -> Iterable[Decision]:
    """Take back one change, as far as it still stands; a clear in parts, made lazily."""
    return (_RULES[type(change.event)](run, change) or ()) if is_undoable(change.event, claims=True) else ()


def name_of(task: Task) -> str:
    return f'#{task.id} "{task.title}"'


def _added(run: Undoing, change: Change) -> None:
    if change.before is not None or change.after is None:
        return
    now = run.standing(change)
    if now is None:
        run.leave()
    elif run.touched(now.id) > change.version:
        run.skip(change, "it changed since")
    else:
        run.apply(Deleted(now.id))
        run.note(f"removed {name_of(now)}")


def _edited(run: Undoing, change: Change) -> None:
    before, after, now = change.before, change.after, run.standing(change)
    if before is None or after is None:
        return
    if now is None:
        run.skip(change, "it is gone")
        return
    changes, missed = _members_back(run, change.event, before, after, now)
    patch, kept = _metadata_back(before.metadata, after.metadata, now.metadata)
    if patch:
        changes["metadata"] = patch
    missed.extend(f"metadata.{key}" for key in kept)
    if changes:
        _put_members_back(run, now, changes, change.claim)
    if missed:
        run.skip(change, f"{named(missed)} changed since")


def _put_members_back(run: Undoing, now: Task, changes: dict[str, Any], claim: Claim | None) -> None:
    run.apply(TaskEdited(now.id, **changes))
    run.note(f"{name_of(now)}: {named(changes)} put back")
    if "owner" in changes:  # a revert takes the owner first, so that its undo gives it back last
        run.hand_back(now.id, claim)


def _may_be(state: State, task: Task, member: str, old: Any) -> bool:
    """Return whether a member can have its old value without breaking a claim or making a cycle of parents."""
    if member == "owner":
        held = state.claims.get(task.id)
        return held is None or held.owner == old
    return member != "parent" or _may_be_parent(state, task, old)


def _members_back(run: Undoing, event: Any, before: Task, after: Task, now: Task) -> tuple[dict[str, Any], list[str]]:
    """Return the members to restore, and the names of those that changed since."""
    changes: dict[str, Any] = {}
    missed: list[str] = []
    for member in EDITABLE:
        old, new, present = getattr(before, member), getattr(after, member), getattr(now, member)
        if getattr(event, member) is UNSET or old == new:
            continue
        if present == old:
            run.leave()
        elif present == new and _may_be(run.state, now, member, old):
            changes[member] = old
        else:
            missed.append(member)
    for moment, day in DAYS:
        if moment in missed:
            changes.pop(day, None)
    add_days(now, changes, before)
    return changes, missed


def _may_be_parent(state: State, task: Task, parent: str | None) -> bool:
    if parent is None:
        return True
    return parent in state.tasks and parent_cycle(task.id, parent, lambda name: state.tasks[name].parent) is None


def _metadata_back(before: Metadata, after: Metadata, now: Metadata) -> tuple[Metadata, list[str]]:
    """The patch that puts the touched keys back, and those that were touched again since."""
    touched = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    patch = {key: before.get(key) for key in touched if now.get(key) == after.get(key)}
    return patch, [key for key in touched if now.get(key) not in (before.get(key), after.get(key))]


def _moved(run: Undoing, change: Change) -> None:
    event, now = change.event, run.standing(change)
    assert isinstance(event, TaskMoved)
    if change.before is None:
        return
    rank = "" if now is None else run.state.ranks.get(now.id, "")
    if now is not None and rank == change.rank:
        run.leave()
    elif now is None or rank != event.rank:
        run.skip(change, "it is gone" if now is None else "it was moved since")
    else:
        rank, before = place_of(run.state, now.id, change.rank)
        run.apply(TaskMoved(task=now.id, before=before, rank=rank))
        run.note(f"{name_of(now)}: moved back")


def place_of(state: State, task: str, rank: str) -> tuple[str, str | None]:
    """Where a sort key puts a task: the key, another one if it is taken by now, and the task that will stand behind."""
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


def _noted(run: Undoing, change: Change) -> None:
    now = run.standing(change)
    if now is None or change.before is None:
        run.leave()
    elif any(note.version == change.version for note in now.notes):
        run.apply(NoteRemoved(now.id, change.version))
        run.note(f"{name_of(now)}: note removed")
    else:
        run.leave()


def _note_removed(run: Undoing, change: Change) -> None:
    event, now = change.event, run.standing(change)
    assert isinstance(event, NoteRemoved)
    if now is None or change.before is None:
        run.leave()
        return
    for note in change.before.notes:
        if note.version == event.note:
            run.apply(note_again(now.id, note))
            run.note(f"{name_of(now)}: note put back")


def note_again(task: str, note: Note) -> NoteAdded:
    """A note that was removed, by its author."""
    if note.imported_by:
        return NoteAdded(task, note.text, note.imported_by, note.actor, note.at)
    return NoteAdded(task, note.text, note.actor)


def _claimed(run: Undoing, change: Change) -> None:
    """Somebody took a task: it goes back to where it was, unless it went on since."""
    event, before, now = change.event, change.before, run.standing(change)
    assert isinstance(event, Claimed)
    if before is None or now is None:
        run.skip(change, "it is gone")
        return
    held = run.state.claims.get(now.id)
    if held is None or held.owner != event.owner or run.is_begun_again(now.id):
        if (now.status, now.owner) == (before.status, before.owner):
            run.leave()
        else:
            run.skip(change, "it went on since")
        return
    if (before.status, before.owner) == ("in_progress", event.owner):
        run.free(before, held)
        return
    run.apply(Released(task=now.id, owner=event.owner, reason="released", to=before.status, attempts=before.attempts))
    if before.owner:
        run.apply(TaskEdited(now.id, owner=before.owner))
    run.note(f"{name_of(now)}: given back by {event.owner}")


def _released(run: Undoing, change: Change) -> None:
    """Somebody gave a task back: it is theirs again."""
    event, before, now = change.event, change.before, run.standing(change)
    assert isinstance(event, Released)
    if before is None or now is None:
        run.skip(change, "it is gone")
    elif (now.status, now.owner) == (before.status, before.owner):
        run.leave()
    elif (now.status, now.owner) != (event.to, ""):
        run.skip(change, "it went on since")
    else:
        claim = change.claim
        if claim is not None and before.status == "in_progress" and claim.owner == before.owner:
            run.apply(Claimed(now.id, claim.owner, claim.lease_ms, before.attempts, keep=True, session=claim.session))
        else:
            if now.status != before.status:
                run.apply(StatusChanged(now.id, now.status, before.status, attempts=before.attempts))
            run.apply(TaskEdited(now.id, owner=before.owner))
        run.resume(before, claim)
        run.note(f"{name_of(now)}: {event.owner} has it again")


def _status(run: Undoing, change: Change) -> None:
    before, after, now = change.before, change.after, run.standing(change)
    if before is None or after is None:
        return
    if now is None:
        run.skip(change, "it is gone")
    elif _standing(now) == _standing(before):
        run.leave()
    elif _standing(now) != _standing(after):
        run.skip(change, "its status changed since")
    elif before.status in FINISHED and run.is_begun_again(now.id):
        run.skip(change, "it was begun again since")
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
        message = f"{now.status} → {before.status}{_loss(before, now)}"
        run.note(f"{name_of(now)}: {'summary and reason put back' if now.status == before.status else message}")


def _loss(before: Task, now: Task) -> str:
    """Return what an undo would lose of a task as it is `now`: its result, its reason, minutes of work."""
    lost = [
        f"{name} {text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'!r}"
        for name, text, old in (
            ("its result", now.result_summary, before.result_summary),
            ("its reason", now.fail_reason, before.fail_reason),
        )
        if text and text != old
    ]
    minutes = (now.spent_ms - before.spent_ms) // 60_000
    if minutes > 0:
        lost.append(f"{minutes // _HOUR} h {minutes % _HOUR} min of work")
    return f"; lost: {', '.join(lost)}" if lost else ""


def _standing(task: Task) -> tuple[object, ...]:
    return (task.status, task.result_summary, task.fail_reason, task.attempts, task.waits_for)


def _edge_added(run: Undoing, change: Change) -> None:
    event, now = change.event, run.standing(change)
    assert isinstance(event, DependencyAdded)
    if change.before is None or change.after is None or event.blocker in change.before.blocked_by:
        return
    if now is not None and event.blocker in now.blocked_by:
        run.apply(DependencyRemoved(now.id, event.blocker))
        run.note(f"{name_of(now)}: no longer waits for #{event.blocker}")
    else:
        run.leave()


def _edge_removed(run: Undoing, change: Change) -> None:
    event, now = change.event, run.standing(change)
    assert isinstance(event, DependencyRemoved)
    if change.before is None or event.blocker not in change.before.blocked_by:
        return
    if now is not None and event.blocker in now.blocked_by:
        run.leave()
    elif now is not None and _tie(run, now.id, event.blocker):
        run.note(f"{name_of(now)}: waits for #{event.blocker} again")
    else:
        run.skip(change, f"it can't wait for #{event.blocker} again")


def _tie(run: Undoing, task: str, blocker: str) -> bool:
    tasks = run.state.tasks
    if task not in tasks or blocker not in tasks or blocker in tasks[task].blocked_by:
        return False
    if cycle_through(task, tasks, {task: (blocker,)}) is not None:
        return False
    run.apply(DependencyAdded(task, blocker))
    return True


def _deleted(run: Undoing, change: Change) -> None:
    for taken in change.taken:
        task = taken.task
        if not run.may_return(change, task):
            _stay_away(run, taken)
            continue
        run.apply(_restored(run.state, taken, run.state.tasks))
        for dependent in task.blocks:
            _tie(run, dependent, task.id)
        _adopt(run, taken, task.parent)
        run.resume(task, taken.claim)
        run.note(f"restored {name_of(task)}")


def _cleared(run: Undoing, change: Change) -> Iterator[Decision]:
    """The tasks come back first; those whose id is in use again are left out, and with them their relations."""
    back = {taken.task.id: taken for taken in change.taken if run.may_return(change, taken.task)}
    for taken in back.values():
        run.apply(_restored(run.state, taken, back))
        yield run.part()
    for taken in back.values():
        for dependent in taken.task.blocks:
            if dependent in back and taken.task.id not in run.state.tasks[dependent].blocked_by:
                run.apply(DependencyAdded(dependent, taken.task.id))
        _adopt(run, taken, None)
        run.resume(taken.task, taken.claim)
        yield run.part()
    if back:
        run.note(f"restored {len(back)} cleared task{'s' if len(back) != 1 else ''}")
    for taken in change.taken:
        if taken.task.id not in back:
            _stay_away(run, taken)


def _stay_away(run: Undoing, taken: Taken) -> None:
    run.leave()
    present = run.state.tasks.get(taken.task.id)
    if present is not None and present.created_at != taken.task.created_at:
        run.note(f"{SKIPPED} {name_of(taken.task)}: its id is in use again")


def _restored(state: State, taken: Taken, among: Container[str]) -> TaskAdded:
    task = taken.task
    rank, before = place_of(state, task.id, taken.rank)
    parent = task.parent
    members = {name: getattr(task, name) for name in RESTORABLE}
    members["parent"] = parent if parent in state.tasks and parent in among else None
    members["blocked_by"] = tuple(other for other in task.blocked_by if other in state.tasks and other in among)
    return TaskAdded(AddedTask(**members), before, rank)


def _adopt(run: Undoing, taken: Taken, left_at: str | None) -> None:
    """The children come back to a restored task, if they are still where its going left them."""
    for name in taken.children:
        child = run.state.tasks.get(name)
        if child is not None and child.parent == left_at and _may_be_parent(run.state, child, taken.task.id):
            run.apply(TaskEdited(name, parent=taken.task.id))


def _configured(run: Undoing, change: Change) -> None:
    event = change.event
    assert isinstance(event, ConversationConfigured)
    back = ConversationConfigured(
        title=change.title if event.title is not UNSET and run.state.title == event.title else UNSET,
        settings=change.settings if event.settings is not UNSET and run.state.settings == event.settings else UNSET,
    )
    if back != ConversationConfigured():
        run.apply(back)
        run.note("the list: title or settings put back")
    if (event.title is not UNSET) != (back.title is not UNSET):
        run.note(f"{SKIPPED} the conversation's title: it changed since")
        run.leave()
    if (event.settings is not UNSET) != (back.settings is not UNSET):
        run.note(f"{SKIPPED} the conversation's settings: they changed since")
        run.leave()


_RULES: dict[type, Callable[[Undoing, Change], Iterable[Decision] | None]] = {
    TaskAdded: _added,
    TaskEdited: _edited,
    TaskMoved: _moved,
    NoteAdded: _noted,
    NoteRemoved: _note_removed,
    Claimed: _claimed,
    Released: _released,
    StatusChanged: _status,
    DependencyAdded: _edge_added,
    DependencyRemoved: _edge_removed,
    Deleted: _deleted,
    ListCleared: _cleared,
    ConversationConfigured: _configured,
}
