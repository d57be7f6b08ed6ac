"""A history followed from its beginning, of which only what an undo has to know is kept.

Each event is folded once. Of the calls that an undo may take back the newest ones are kept with all that they changed,
of the others only what keeps a change from being taken back: who touched a task after it, and which clears stand.
"""

from punchlist_schemas.events import ConversationDeleted, ListCleared, TaskAdded
from punchlistd.domain.commands import Fact
from punchlistd.domain.evolve import evolve
from punchlistd.domain.inverse import is_undoable
from punchlistd.domain.state import State, initial_state
from punchlistd.domain.trace import Change, named, trace


class Lookback:
    """What the newest calls of a conversation changed.

    Args:
        conversation: whose history it is.
        of: only calls of this actor may be taken back; None: anybody's.
        depth: how many of those calls to keep at most; None: all.
        state: the state at position `seq` to begin from, where what came before is left out.
        seq: that position.

    Attributes:
        state: The fold of everything that was followed.
        seq: The position of the last event that was followed.
        calls: The calls that may be taken back, oldest first: by the version of its first event, what each one changed.
        is_cut: Whether older calls than these were left out.
    """

    def __init__(
        self, conversation: str, of: str | None, depth: int | None = None, state: State | None = None, seq: int = 0
    ) -> None:
        """Nothing was followed yet."""
        self.state = initial_state(conversation) if state is None else state
        self.seq = seq
        self.calls: dict[int, list[Change]] = {}
        self.is_cut = state is not None
        self._of = of
        self.depth = depth
        self._undone: set[int] = set()
        self._clears: list[tuple[int, int]] = []  # its version, and that of its call's first event
        self._touches: dict[str, list[tuple[int, int]]] = {}
        self._returns: dict[tuple[str, int], int] = {}
        self._first = 0
        self._actor = ""
        self._is_undo = False

    def follow(self, fact: Fact, *, begins: bool, undoes: tuple[int, ...] = ()) -> None:
        """Take in the next event.

        Args:
            fact: the event.
            begins: whether it is the first one of its call.
            undoes: for the first event of an undo, the versions of the first events of the calls that it took back.
        """
        if begins:
            self._first, self._actor, self._is_undo = fact.version, fact.actor, bool(undoes)
            self._undone.update(undoes)
            for version in undoes:
                self.calls.pop(version, None)
        self.seq = fact.seq
        if not self._is_undo and self._of in (None, self._actor) and is_undoable(fact.event):
            self._remember(trace(self.state, fact))
            return
        event = fact.event
        if self._is_undo:
            if isinstance(event, TaskAdded):
                self._returns[event.task.id, event.task.created_at] = fact.version
        elif isinstance(event, ListCleared):
            self._clears.append((fact.version, self._first))
        elif isinstance(event, ConversationDeleted):
            self._forget()
        if self._of not in (None, self._actor) and not self._is_undo:
            self._touches.setdefault(named(event), []).append((fact.version, self._first))
        evolve(self.state, event, fact.seq, fact.version, fact.at)

    def _forget(self) -> None:
        """Nothing that came before an erasure comes back."""
        self.calls, self.is_cut = {}, False
        self._clears, self._touches, self._returns = [], {}, {}

    def _remember(self, change: Change) -> None:
        calls = self.calls
        if self._first not in calls and self.depth is not None and len(calls) >= self.depth:
            del calls[next(iter(calls))]
            self.is_cut = True
        calls.setdefault(self._first, []).append(change)

    @property
    def last_clear(self) -> int:
        """The version of the newest clear that nobody took back and that is not among `calls`; 0 if there is none."""
        return next((version for version, first in reversed(self._clears) if first not in self._undone), 0)

    def touched(self, task: str) -> int:
        """At which version a standing call of another actor last touched a task; 0 if none did."""
        touches = reversed(self._touches.get(task, ()))
        return next((version for version, first in touches if first not in self._undone), 0)

    def returned(self, task: str, created_at: int) -> int:
        """At which version an undo last brought back the task of this id and time of creation; 0 if none did."""
        return self._returns.get((task, created_at), 0)
