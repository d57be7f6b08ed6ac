"""A history followed from its beginning, of which only what an undo has to know is kept.

Each event is folded once. Of the calls that an undo may take back the newest ones are kept with all that they changed,
of the others only what keeps a change from being taken back: who touched a task after it, and which clears stand.
"""

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.events import (
    AnyEvent,
    Claimed,
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
from punchlistd.domain.undo.trace import Change, named, trace


class Aim(msgspec.Struct, frozen=True):
    """Which calls an undo means.

    `of` are these actors' calls alone (None: anybody's). `call` is the one that made this version, `redo` means undos
    instead of other calls, and `to_version` none at all: the state right after that version is wanted. `claims` says
    that claims and releases count.
    """

    of: frozenset[str] | None = None
    call: int | None = None
    redo: bool = False
    to_version: int | None = None
    claims: bool = False

    @property
    def latest_start(self) -> int | None:
        """The highest version of a state to begin from; None: any."""
        return self.to_version if self.call is None else self.call - 1


def aim(params: p.ListUndo) -> Aim:
    """Which calls are meant. Before there was `of`, `actor` said whose; a named call or version is anybody's."""
    if params.call is not None or params.to_version is not None:
        return Aim(None, params.call, to_version=params.to_version, claims=params.claims)
    of = params.actor if params.of is None else params.of
    whose = None if of is None else frozenset((of, *params.also))
    return Aim(whose, redo=params.redo, claims=params.claims)


class Touch(msgspec.Struct, frozen=True, gc=False):
    """An event that named a task or rests on it: its version, that of its call's first event, and who made it."""

    version: int
    first: int
    actor: str


class Lookback:
    """What the newest calls of a conversation changed.

    Args:
        conversation: whose history it is.
        aim: which calls may be taken back.
        depth: how many of those calls to keep at most; None: all.
        state: the state at position `seq` to begin from, where what came before is left out.
        seq: that position.

    Attributes:
        state: The fold of everything that was followed.
        seq: The position of the last event that was followed.
        calls: The calls that may be taken back, oldest first: by the version of its first event, what each one changed.
        undone: The calls that were taken back, by the version of their first event.
        undos: Those among `calls` that took others back.
        erased_at: The version of the newest erasure, 0 if there is none.
        then: The state right after the version that the aim names; None while that is the present one.
        is_cut: Whether older calls than these were left out.
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
        self._clears: list[tuple[int, int]] = []  # its version, and that of its call's first event
        self._touches: dict[str, list[Touch]] = {}
        self._claimed: dict[str, int] = {}
        self._rests: dict[str, list[Touch]] = {}
        self._returns: dict[tuple[str, int], int] = {}
        self._first = 0
        self._actor = ""
        self._is_undo = False
        self._is_redo = False
        self._is_cancelled = False

    def follow(self, fact: Fact, *, begins: bool, undoes: tuple[int, ...] = ()) -> None:
        """Take in the next event.

        Args:
            fact: the event.
            begins: whether it is the first one of its call.
            undoes: for the first event of an undo, the versions of the first events of the calls that it took back;
                negative are undos that it took back, which makes it a call like any other.
        """
        if begins:
            self._begin(fact, undoes)
        if self.then is None and self._aim.to_version is not None and fact.version > self._aim.to_version:
            self.then = self.state.copy()
        self.seq = fact.seq
        event = fact.event
        if isinstance(event, TaskAdded) and event.task.created_at:
            self._returns[event.task.id, event.task.created_at] = fact.version
        if self._is_meant() and is_undoable(event, claims=self._aim.claims):
            self._remember(trace(self.state, fact))
            return
        if isinstance(event, ListCleared) and not self._is_undo:
            self._clears.append((fact.version, self._first))
        elif isinstance(event, ConversationDeleted):
            self._forget(fact.version)
        self._note_touch(fact.version, event)
        evolve(self.state, event, fact.seq, fact.version, fact.at)

    def _begin(self, fact: Fact, undoes: tuple[int, ...]) -> None:
        self._first, self._actor = fact.version, fact.actor
        self._is_undo = bool(undoes) and min(undoes) >= 0
        self._is_redo = bool(undoes) and not self._is_undo
        # Together with the newer calls that it took back, an undo changed nothing that an older call could miss.
        self._is_cancelled = self._is_undo and self._aim.call is not None and min(undoes) > self._aim.call
        for version in map(abs, undoes):
            self.undone.add(version)
            if self._aim.call is None:
                self.calls.pop(version, None)
        if self._is_undo:
            self.undos.add(fact.version)
        if self._aim.call is not None and fact.version <= self._aim.call:
            self.calls.clear()  # what follows holds the version that is meant, or comes nearer to it

    def _is_meant(self) -> bool:
        aim = self._aim
        if aim.call is not None:
            return self._first <= aim.call
        return aim.to_version is None and aim.redo is self._is_undo and self._is_aims()

    def _is_aims(self) -> bool:
        return self._aim.of is None or self._actor in self._aim.of

    def _note_touch(self, version: int, event: AnyEvent) -> None:
        aim, touch = self._aim, Touch(version, self._first, self._actor)
        if isinstance(event, Claimed):
            self._claimed[event.task] = self._first
        if self._is_cancelled:
            return
        is_others = not self._is_aims() and not self._is_undo
        if is_others or aim.call is not None or (aim.redo and not (self._is_redo and self._is_aims())):
            self._touches.setdefault(named(event), []).append(touch)
            for task in _rested_on(event):
                self._rests.setdefault(task, []).append(touch)

    def _forget(self, version: int) -> None:
        """Nothing that came before an erasure comes back."""
        self.erased_at = version
        self.calls, self.is_cut = {}, False
        self._clears, self._touches, self._rests, self._returns = [], {}, {}, {}

    def _remember(self, change: Change) -> None:
        calls = self.calls
        if self._first not in calls and self.depth is not None and len(calls) >= self.depth:
            del calls[next(iter(calls))]
            self.is_cut = True
        calls.setdefault(self._first, []).append(change)

    @property
    def last_clear(self) -> int:
        """The version of the newest clear that nobody took back and that is not among `calls`; 0 if there is none."""
        return next((version for version, first in reversed(self._clears) if first not in self.undone), 0)

    def touched(self, task: str) -> int:
        """At which version a standing call of another actor last touched a task; 0 if none did."""
        found = self._standing(self._touches, task)
        return 0 if found is None else found.version

    def claimed(self, task: str) -> int:
        """Return the version at which the call begins that claimed a task last; 0 if none did."""
        return self._claimed.get(task, 0)

    def resting(self, task: str, after: int) -> Touch | None:
        """The newest standing call behind a version that touched a task, or made something that refers to it."""
        found = [one for kept in (self._touches, self._rests) if (one := self._standing(kept, task)) is not None]
        newest = max(found, key=lambda one: one.version, default=None)
        return newest if newest is not None and newest.version > after else None

    def _standing(self, kept: dict[str, list[Touch]], task: str) -> Touch | None:
        return next((one for one in reversed(kept.get(task, ())) if one.first not in self.undone), None)

    def returned(self, task: str, created_at: int) -> int:
        """At which version the task of this id and time of creation last came back; 0 if it never did."""
        return self._returns.get((task, created_at), 0)


def _rested_on(event: AnyEvent) -> tuple[str, ...]:
    """The tasks that what an event made refers to."""
    match event:
        case TaskAdded(task):
            return task.blocked_by if task.parent is None else (*task.blocked_by, task.parent)
        case TaskEdited(parent=str(parent)):
            return (parent,)
        case DependencyAdded(blocker=blocker):
            return (blocker,)
        case _:
            return ()
