"""Agents: connected sessions and people, and those that have left recently.

A connection calls `agent.enter` for each agent that it works for. An agent is present while at least one such
connection is open. The agent leaves when the last of them closes, or with `agent.leave`. Actors that make calls without
`agent.enter` are listed under their own names. Nothing is stored. After a restart, all agents must call `agent.enter`
again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Protocol

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import AgentEnter
from punchlist_schemas.things import Agent, names_of
from punchlistd.clock import now_ms

MAX_PRESENT = 4_096
"""Maximum number of agents present at the same time."""

MAX_LEFT = 256
"""Maximum number of remembered names of agents that have left."""

LATELY_MS = 12 * 3_600_000
"""How long an agent is listed after it has left, in milliseconds."""


class Peer(Protocol):
    """The part of a connection that `Agents` uses."""

    last_seen_at: float
    connected_at: int

    @property
    def client(self) -> str:
        """The client's name from `daemon.hello`; empty before that."""
        ...

    @property
    def user(self) -> str | None: ...

    @property
    def pid(self) -> int: ...


_Key = tuple[str, str]
"""A user ("" for connections that are not bound to one) and a name."""


class Agents:
    """The agents of all connections.

    Args:
        left: Called with the name of an agent that has left.
        back: Called with the name and the process id of an agent that has entered.
    """

    def __init__(self, left: Callable[[str], None], back: Callable[[str, int], None]) -> None:
        self._on_left = left
        self._on_back = back
        self._present: dict[_Key, Agent] = {}
        self._peers: dict[_Key, dict[Peer, None]] = {}
        self._of_peer: dict[Peer, dict[_Key, None]] = {}
        self._left: OrderedDict[_Key, Agent] = OrderedDict()
        self._names: dict[str, frozenset[str]] = {}

    def enter(self, peer: Peer, params: AgentEnter) -> Rejection | None:
        """Record that a connection works for an agent, or return the rejection if there are too many agents."""
        key, now = (peer.user or "", params.agent), now_ms()
        present = self._present.get(key)
        if present is None and len(self._present) >= MAX_PRESENT:
            facts = {"limit": "agents", "value": MAX_PRESENT + 1, "maximum": MAX_PRESENT}
            message = f"The daemon has {MAX_PRESENT} agents, which is its limit. Remove some with agent.leave."
            return Rejection("limit_exceeded", message, facts)
        previous = present or self._left.pop(key, None)
        self._present[key] = Agent(
            name=params.agent,
            host=params.host,
            directory=params.directory,
            branch=params.branch,
            pid=params.pid or peer.pid,
            since=now if present is None else present.since,
            last_call=now,
            conversation="" if previous is None else previous.conversation,
        )
        self._peers.setdefault(key, {})[peer] = None
        self._of_peer.setdefault(peer, {})[key] = None
        if present is None:
            self._names.clear()
            self._on_back(params.agent, peer.pid)
        return None

    def leave(self, user: str | None, name: str) -> None:
        """Record the end of an agent's session on all connections."""
        key = (user or "", name)
        for peer in self._peers.pop(key, {}):
            entered = self._of_peer[peer]
            del entered[key]
            if not entered:
                del self._of_peer[peer]
        self._end(key)

    def on_closed(self, peer: Peer) -> None:
        for key in self._of_peer.pop(peer, {}):
            peers = self._peers[key]
            del peers[peer]
            if not peers:
                del self._peers[key]
                self._end(key)

    def _end(self, key: _Key) -> None:
        if (agent := self._present.pop(key, None)) is not None:
            self._names.clear()
            self._note_left(key, msgspec.structs.replace(agent, left_at=now_ms()))
            self._on_left(agent.name)

    def _note_left(self, key: _Key, agent: Agent) -> None:
        self._left.pop(key, None)
        self._left[key] = agent
        if len(self._left) > MAX_LEFT:
            self._left.popitem(last=False)

    def record_call(self, user: str | None, actor: str, conversation: str) -> None:
        """Record an actor's last call for its agent or, if that agent isn't present, under the actor's own name."""
        now = now_ms()
        for name in names_of(actor):
            for key in ((user or "", name), ("", name)):
                if (agent := self._present.get(key)) is not None:
                    self._present[key] = msgspec.structs.replace(agent, last_call=now, conversation=conversation)
                    return
        key = (user or "", actor)
        agent = self._left.get(key) or Agent(name=actor, since=now, last_call=now)
        agent = msgspec.structs.replace(agent, last_call=now, conversation=conversation, left_at=now)
        self._note_left(key, agent)

    def is_present(self, user: str, owner: str) -> bool:
        """Return whether an owner of tasks in this user's lists is a present agent or one of its sub-agents."""
        present = self.names(user)
        return any(name in present for name in names_of(owner))

    def names(self, user: str) -> Set[str]:
        """Return the names of the agents that are present for this user's lists."""
        if user not in self._names:
            self._names[user] = frozenset(name for owner, name in self._present if owner in ("", user))
        return self._names[user]

    def has_entered(self, user: str, owner: str) -> bool:
        """Return whether an owner is an agent that is present or has recently left, or one of its sub-agents."""
        return self.is_present(user, owner) or self.left_at(user, owner) is not None

    def left_at(self, user: str, owner: str) -> int | None:
        """Return when an owner's agent left, in milliseconds; None if it has not left or never entered."""
        keys = [key for name in names_of(owner) for key in ((user, name), ("", name))]
        return next((agent.left_at for key in keys if (agent := self._left.get(key)) is not None and agent.pid), None)

    def listed(self, user: str | None, peers: Iterable[Peer]) -> Iterator[Agent]:
        """Yield the agents visible to a user: connected ones in order of arrival, then those that left, latest first.

        Args:
            user: The user that the caller is bound to.
            peers: The connections to list by client name if they have not called `agent.enter`.
        """
        agents = {key: agent for key, agent in self._present.items() if user in (None, key[0])}
        entered = {peer.pid for peer in self._of_peer}
        others: dict[_Key, list[Peer]] = {}
        connected: set[_Key] = set()
        for peer in peers:
            key = (peer.user or "", peer.client)
            connected.add(key)
            # A process that called `agent.enter` may have other connections that only make calls or watch.
            if peer.client and peer.pid not in entered and key not in agents and user in (None, key[0]):
                others.setdefault(key, []).append(peer)
        agents |= {key: self._describe_client(key, group) for key, group in others.items()}
        yield from sorted(agents.values(), key=lambda agent: (agent.since, agent.name))
        oldest = now_ms() - LATELY_MS
        for key, agent in reversed(self._left.items()):
            if agent.last_call >= oldest and key not in agents and key not in connected and user in (None, key[0]):
                yield agent

    def _describe_client(self, key: _Key, peers: list[Peer]) -> Agent:
        last_seen = now_ms() - int((time.monotonic() - max(peer.last_seen_at for peer in peers)) * 1000)
        since = min(peer.connected_at for peer in peers)
        actor = self._left.get(key)
        conversation = "" if actor is None else actor.conversation
        last_call = max(last_seen, 0 if actor is None else actor.last_call)
        return Agent(name=key[1], pid=peers[0].pid, since=since, last_call=last_call, conversation=conversation)


def belongs_to(owner: str, agent: str) -> bool:
    """Return whether an owner is an agent or one of its sub-agents."""
    return owner == agent or owner.startswith(f"{agent}/")
