"""State that a process keeps for its agents between tool calls: positions in the log, claims and notes."""

import time
from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from punchlist_schemas.things import Note

_MAX_STATES = 4_096
"""Maximum number of agent states. The least recently used one is dropped first."""

MAX_SAVED = 16
"""Maximum number of agents whose work is saved for another process."""


class AgentState(msgspec.Struct):
    """State of an agent for a list in a log.

    Attributes:
        seen: Position in the log up to which changes were reported to the agent; None before the agent has looked at
            the list.
        version: Version of the list at that position.
        claims: The agent's claims: task -> fence.
        renewed_at: Time of the last renewal of the claims on the monotonic clock, in seconds; None before the first.
        starters: Actors that started tasks without an owner: `ID@TIME` of the start -> actor.
        has_looked: Whether the list has been searched for tasks that this agent works on.
        own: Tasks in progress of this agent or of nobody at its last call, except those with unfinished children; None
            if they are unknown.
        active_tasks: Tasks in progress whose new notes are reported.
        notes_read: Version of the list up to which the notes on a task were reported, by task.
        unread_notes: Notes to include in the next reply, by task.
    """

    seen: int | None = None
    version: int = 0
    claims: dict[str, int] = {}
    renewed_at: float | None = None
    starters: dict[str, str] = {}
    has_looked: bool = False
    own: tuple[str, ...] | None = None
    active_tasks: set[str] = set()
    notes_read: dict[str, int] = {}
    unread_notes: dict[str, list[Note]] = {}


class AgentWork(msgspec.Struct, frozen=True):
    """What an agent works on in a list after its last call. See `AgentState` for the members.

    Attributes:
        user: The user of the agent's connection; "" if it isn't limited to one.
    """

    log: str
    conversation: str
    actor: str
    seen: int | None
    version: int
    claims: dict[str, int]
    own: tuple[str, ...] | None
    user: str = ""


class Memory:
    """State of all agents of a process. A restarted process can do without it.

    A lost position can be recovered from the log, and a lost claim from the list. Only the repetition of a call that
    another process has begun needs the work from before that call. States are kept separately for each
    epoch, because positions and fences of another log (after a restore, or of another daemon) are meaningless.
    """

    def __init__(self, work: Iterable[AgentWork] = ()) -> None:
        self.prepared: set[str] = set()
        """Lists that a dialect has already set up."""
        self._log = ""
        self._states: OrderedDict[tuple[str, str, str], AgentState] = OrderedDict()
        self._last_lists: OrderedDict[tuple[str, str], str] = OrderedDict()
        # The process before has just renewed the claims. A renewal would look up what the agent works on now.
        renewed_at = time.monotonic()
        for part in work:
            state = AgentState(part.seen, part.version, {**part.claims}, renewed_at, own=part.own)
            self._states[part.log, part.conversation, part.actor] = state

    def save_work(self) -> list[AgentWork]:
        """Return the work of the agents that made the last calls, for a process that continues them."""
        newest = [*self._states.items()][-MAX_SAVED:]
        return [
            AgentWork(*key, state.seen, state.version, {**state.claims}, state.own)
            for key, state in newest
            if state.own is not None or state.claims
        ]

    def state_of(self, log: str, conversation: str, actor: str) -> AgentState:
        if log != self._log:
            self.prepared.clear()
            self._log = log
        key = (log, conversation, actor)
        state = self._states.setdefault(key, AgentState())
        self._states.move_to_end(key)
        if len(self._states) > _MAX_STATES:
            self._states.popitem(last=False)
        return state

    def record_list(self, log: str, actor: str, conversation: str) -> bool:
        """Record which list an agent's latest reply was about.

        Return whether the agent's previous reply was about another list, or whether this is its first reply.
        """
        lists = self._last_lists
        is_other = lists.get((log, actor)) != conversation
        lists[log, actor] = conversation
        lists.move_to_end((log, actor))
        if len(lists) > _MAX_STATES:
            lists.popitem(last=False)
        return is_other
