"""What a process of tools remembers: how far each agent has looked, and its claims."""

from collections import OrderedDict

import msgspec

from punchlist_schemas.things import Note

_MINDS = 4_096
"""How many minds are kept; the one that was used longest ago is dropped first."""


class AgentState(msgspec.Struct):
    """What one agent remembers of one list in one log.

    Attributes:
        seen: Position in the log up to which the agent knows what happened; None if it has not looked yet.
        version: The version that the list had there.
        claims: The agent's claims: task → fence.
        renewed: When the claims were renewed last, in seconds of the monotonic clock; None if they were not.
        began: Who began a task without an owner: `ID@TIME` of its start → actor.
        has_looked: Whether the list was asked for tasks that this agent works on.
        works_on: The tasks in progress whose new notes are told.
        noted: How far the notes on a task are known: task → version of the list.
        unread: Notes to include in the next reply, by task.
    """

    seen: int | None = None
    version: int = 0
    claims: dict[str, int] = {}
    renewed: float | None = None
    began: dict[str, str] = {}
    has_looked: bool = False
    works_on: set[str] = set()
    noted: dict[str, int] = {}
    unread: dict[str, list[Note]] = {}


class Memory:
    """What the agents of one process remember. Nothing in it is needed after a restart.

    A position that is not known any more is found again in the log and a claim in the list. Positions and claims of
    different logs are kept apart by the log's epoch: after a restore, or with several daemons, those of another log
    mean nothing.
    """

    def __init__(self) -> None:
        self.prepared: set[str] = set()
        """Conversations that a dialect has set up already."""
        self._log = ""
        self._minds: OrderedDict[tuple[str, str, str], AgentState] = OrderedDict()
        self._named: OrderedDict[tuple[str, str], str] = OrderedDict()

    def mind(self, log: str, conversation: str, actor: str) -> AgentState:
        if log != self._log:
            self.prepared.clear()
            self._log = log
        key = (log, conversation, actor)
        mind = self._minds.setdefault(key, AgentState())
        self._minds.move_to_end(key)
        if len(self._minds) > _MINDS:
            self._minds.popitem(last=False)
        return mind

    def is_other_list(self, log: str, actor: str, conversation: str) -> bool:
        """Return True if the last reply to an agent was about another list, or there was none; remember this one."""
        named = self._named
        is_other = named.get((log, actor)) != conversation
        named[log, actor] = conversation
        named.move_to_end((log, actor))
        if len(named) > _MINDS:
            named.popitem(last=False)
        return is_other
