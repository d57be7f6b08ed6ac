"""Replays the posts of a shared list, which define the order of all its events."""

from collections.abc import Iterable
from typing import NamedTuple

from punchlist_faults.options import need
from punchlist_schemas.events import AnyEvent, KnownEvent
from punchlistd.domain.decide.claim import Supply
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import initial_state
from punchlistd.engine.lists.loaded import Place
from punchlistd.replication.port import Posted
from punchlistd.replication.posts.posts import unseal

LIST = "release"

ReplicatedEvent = tuple[int, int, str, AnyEvent]
"""An event as read from a machine: version, time, actor and event."""


class Entry(NamedTuple):
    """An event in the shared log; `first` and `last` are the versions of its call's first and last event."""

    version: int
    at: int
    actor: str
    event: KnownEvent
    member: str
    key: str
    first: int
    last: int

    @property
    def replicated(self) -> ReplicatedEvent:
        return self.version, self.at, self.actor, self.event


class Ledger:
    """The shared log.

    Attributes:
        entries: All events, from version 1 on.
        calls: The first event of the call with each key.
        available: Number of tasks that could be claimed at each version, from 0 on.
        fences: The fence of each claimed task at each version, from 0 on.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.calls: dict[str, Entry] = {}
        self.available = [0]
        self.fences: list[dict[str, int]] = [{}]
        self.state = initial_state(LIST)
        self._place = Place()
        self._posts = 0

    def follow(self, posts: Iterable[Posted]) -> int:
        for posted in list(posts)[self._posts :]:
            self._posts += 1
            behind = self._place.position
            need(posted.before == behind, f"post {posted.position} follows {posted.before}, not {behind}")
            received = unseal(posted, self._place, len(self.entries))
            for step in received.steps:
                first, last = len(self.entries) + 1, len(self.entries) + len(step.events)
                key = step.side.key if step.side is not None else ""
                for version, event in enumerate(step.events, first):
                    self.entries.append(Entry(version, step.at, step.actor, event, received.by, key, first, last))
                    evolve(self.state, event, version, version, step.at)
                    self.available.append(Supply(self.state).take([], 100))
                    self.fences.append({task: claim.fence for task, claim in self.state.claims.items()})
                if key:
                    need(key not in self.calls, f"the key {key} is there twice, and again at {first}")
                    self.calls[key] = self.entries[first - 1]
            self._place = received.place
        return len(self.entries)
