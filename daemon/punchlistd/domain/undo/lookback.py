"""Replays a list's history for an undo, and keeps only what the undo needs.

The newest calls that can be undone are kept with all their changes. For other calls, only possible conflicts are kept:
which tasks they touched, and which clears are in force.
"""

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.events import (
    AnyEvent,
    Claimed,
    ConversationConfigured,
    ConversationDeleted,
    DependencyAdded,
    ListCleared,
    TaskAdded,
    TaskEdited,
)
from punchlistd.domain.commands import Fact
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.undo.inverse import is_undoable
from punchlistd.domain.undo.trace import Change, Touch, task_id_of, trace


class Aim(msgspec.Struct, frozen=True):
    """The calls that an undo selects.

    Attributes:
        of: Select only calls of these actors; None selects calls of all actors.
        call: Select the call that made this version.
        redo: Select undos instead of other calls.
        to_version: Select no calls; restore the state right after this version.
        claims: Whether claims and releases can be undone.
    """

    of: frozenset[str] | None = None
    call: int | None = None
    redo: bool = False
    to_version: int | None = None
    claims: bool = False

    @property
    def latest_start(self) -> int | None:
        """The highest version of a state from which the replay can start; None allows any version."""
        return self.to_version if self.call is None else self.call - 1


def build_aim(params: p.ListUndo) -> Aim:
    """Return the aim of an undo. If the params name a call or a version, any actor may have made it."""
    if params.call is not None or params.to_version is not None:
        return Aim(None, params.call, to_version=params.to_version, claims=params.claims)
    # Calls recorded before `of` existed select by `actor`.
    of = params.actor if params.of is None else params.of
    actors = None if of is None else frozenset((of, *params.also))
    return Aim(actors, redo=params.redo, claims=params.claims)


class Lookback:
    """The calls of a conversation that an undo can reverse, and the later calls that may prevent it.

    A call is identified by the version of its first event.

    Args:
        conversation: The conversation's id.
        aim: The calls to select.
        depth: Maximum number of selected calls to keep; None keeps all.
        state: State to start from. If it is given, earlier calls are not known.
        seq: Log position of `state`.

    Attributes:
        state: The state after the last event.
        seq: The log position of the last event.
        calls: The changes of each selected call, oldest first.
        undone: The calls that have been undone.
        undos: The undos among `calls`.
        erased_at: The version of the newest erasure; 0 if there is none.
        then: The state right after the version to revert to; None until a later event is read.
        is_cut: Whether older calls were left out.
    """

    def __init__(
        self, conversation: str, aim: Aim, depth: int | None = None, state: State | None = None, seq: int = 0
    ) -> None:
        self.state = initial_state(conversation) if state is None else state
        self.seq = seq
        self.calls: dict[int, list[Change]] = {}
        self.undone: set[int] = set()
        self.undos: set[int] = set()
        self.then: State | None = None
        self.erased_at = 0
        self.is_cut = state is not None
        self._aim = aim
        self.depth = depth
        self._clears: list[tuple[int, int]] = []  # the clear's version, and that of its call's first event
        self._touches: dict[str, list[Touch]] = {}
        self._latest: dict[str, Touch] = {}
        self._claims: dict[str, int] = {}
        self._references: dict[str, list[Touch]] = {}
        self._restorations: dict[tuple[str, int], int] = {}
        self._first = 0
        self._actor = ""
        self._is_undo = False
        self._is_redo = False
        self._is_cancelled = False

    def follow(self, fact: Fact, *, begins: bool, undoes: tuple[int, ...] = ()) -> None:
        """Replay the next event.

        Args:
            fact: The event.
            begins: Whether it is the first event of its call.
            undoes: For the first event of an undo, the calls that it undid. If one of these is itself an undo, as in a
                redo, its number is negative, and this undo counts as an ordinary call.
        """
        if begins:
            self._begin(fact, undoes)
        if self.then is None and self._aim.to_version is not None and fact.version > self._aim.to_version:
            self.then = self.state.copy()
        self.seq = fact.seq
        event = fact.event
        touch = Touch(fact.version, self._first, self._actor, fact.at)
        if isinstance(event, ListCleared):
            self._latest |= dict.fromkeys(self.state.tasks, touch)
        elif (name := task_id_of(event)) or isinstance(event, ConversationConfigured):
            self._latest[name] = touch
        if isinstance(event, TaskAdded) and event.task.created_at:
            self._restorations[event.task.id, event.task.created_at] = fact.version
        if self._is_selected() and is_undoable(event, claims=self._aim.claims):
            self._record_change(trace(self.state, fact))
            return
        if isinstance(event, ListCleared) and not self._is_undo:
            self._clears.append((fact.version, self._first))
        elif isinstance(event, ConversationDeleted):
            self._forget_history(fact.version)
        self._record_touch(touch, event)
        evolve(self.state, event, fact.seq, fact.version, fact.at)

    def _begin(self, fact: Fact, undoes: tuple[int, ...]) -> None:
        self._first, self._actor = fact.version, fact.actor
        self._is_undo = bool(undoes) and min(undoes) >= 0
        self._is_redo = bool(undoes) and not self._is_undo
        # An undo that reverses only calls after the selected one leaves the list as that call left it, so there is no
        # conflict.
        self._is_cancelled = self._is_undo and self._aim.call is not None and min(undoes) > self._aim.call
        for version in map(abs, undoes):
            self.undone.add(version)
            if self._aim.call is None:
                self.calls.pop(version, None)
        if self._is_undo:
            self.undos.add(fact.version)
        # This call contains the selected version, or is closer to it than earlier ones.
        if self._aim.call is not None and fact.version <= self._aim.call:
            self.calls.clear()

    def _is_selected(self) -> bool:
        aim = self._aim
        if aim.call is not None:
            return self._first <= aim.call
        return aim.to_version is None and aim.redo is self._is_undo and self._is_by_selected_actor()

    def _is_by_selected_actor(self) -> bool:
        return self._aim.of is None or self._actor in self._aim.of

    def _record_touch(self, touch: Touch, event: AnyEvent) -> None:
        aim = self._aim
        # An undo restores the claim of an earlier call, so that call is still the last one that claimed the task.
        if isinstance(event, Claimed) and not self._is_undo:
            self._claims[event.task] = self._first
        # The events of a selected call that can't be undone, such as the claim that an undo restored, don't block it.
        if self._is_cancelled or self._is_selected():
            return
        is_others = not self._is_by_selected_actor() and not self._is_undo
        if is_others or aim.call is not None or (aim.redo and not (self._is_redo and self._is_by_selected_actor())):
            self._touches.setdefault(task_id_of(event), []).append(touch)
            for task in _referenced_by(event):
                self._references.setdefault(task, []).append(touch)

    def _forget_history(self, version: int) -> None:
        """Drop all records from before an erasure, which can't be undone."""
        self.erased_at = version
        self.calls, self.is_cut = {}, False
        self._clears, self._touches, self._references, self._restorations = [], {}, {}, {}

    def _record_change(self, change: Change) -> None:
        calls = self.calls
        if self._first not in calls and self.depth is not None and len(calls) >= self.depth:
            del calls[next(iter(calls))]
            self.is_cut = True
        calls.setdefault(self._first, []).append(change)

    @property
    def last_clear(self) -> int:
        """The version of the newest clear that is in force and not among `calls`; 0 if there is none."""
        return next((version for version, first in reversed(self._clears) if first not in self.undone), 0)

    def last_touched(self, task: str) -> int:
        """Return the version at which another actor's call, if still in force, last touched a task; 0 if none did."""
        touch = self._newest_touch(self._touches, task)
        return 0 if touch is None else touch.version

    def find_latest(self, task: str) -> Touch | None:
        """Return the newest event about a task or, for "", about the list's settings. A clear is about all tasks."""
        return self._latest.get(task)

    def last_claimed(self, task: str) -> int:
        """Return the version of the first event of the call that last claimed a task; 0 if none did."""
        return self._claims.get(task, 0)

    def find_newer_touch(self, task: str, after: int) -> Touch | None:
        """Return the newest touch of a task by a call in force, if it is newer than version `after`.

        New references to the task count as touches too.
        """
        newest_of_each = (self._newest_touch(touches, task) for touches in (self._touches, self._references))
        newest = max(filter(None, newest_of_each), key=lambda touch: touch.version, default=None)
        return newest if newest is not None and newest.version > after else None

    def _newest_touch(self, touches: dict[str, list[Touch]], task: str) -> Touch | None:
        return next((touch for touch in reversed(touches.get(task, ())) if touch.first not in self.undone), None)

    def last_restored(self, task: str, created_at: int) -> int:
        """Return the version at which the task with this id and creation time was last restored; 0 if it never was."""
        return self._restorations.get((task, created_at), 0)


def _referenced_by(event: AnyEvent) -> tuple[str, ...]:
    """Return the tasks to which an event adds references."""
    match event:
        case TaskAdded(task):
            return task.blocked_by if task.parent is None else (*task.blocked_by, task.parent)
        case TaskEdited(parent=str(parent)):
            return (parent,)
        case DependencyAdded(blocker=blocker):
            return (blocker,)
        case _:
            return ()
