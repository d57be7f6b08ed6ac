"""Presence: which connections have a subscription to each conversation.

Subscriptions are recorded for every connection. Names are collected only for a request or a watcher. The encoded result
is shared by all callers that may see the same names.
"""

import asyncio
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Protocol

import msgspec

from punchlist_schemas.results import Present
from punchlistd.domain.state import State
from punchlistd.engine.lists.access import may_meet

GATHER_S = 0.05
"""Debounce delay for presence pushes, in seconds. After a restart, all clients reconnect at about the same time."""


class Peer(Protocol):
    """The part of a connection that is visible to others."""

    @property
    def actor(self) -> str | None: ...

    @property
    def user(self) -> str | None: ...


class Follower(Protocol):
    """The part of a subscription that presence uses."""

    conversation: str | None
    since: int
    view: str

    @property
    def sink(self) -> Peer: ...


class _Roster:
    """The subscriptions to one conversation.

    Attributes:
        watchers: Number of subscriptions to its presence.
        encoded: Cached names. The key is the owner if the list exists, otherwise the caller's user.
    """

    def __init__(self) -> None:
        self.followers: dict[Follower, None] = {}
        self.watchers = 0
        self.encoded: dict[tuple[bool, str | None], bytes] = {}


class Presence:
    """The subscriptions to all conversations.

    Args:
        on_change: Called with the id of a watched conversation whose presence has changed.
    """

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change
        self._rosters: dict[str, _Roster] = {}
        self._changed: dict[str, None] = {}

    def come(self, follower: Follower) -> None:
        if (name := follower.conversation) is not None and follower.sink.actor is not None:
            roster = self._rosters.setdefault(name, _Roster())
            roster.followers[follower] = None
            roster.watchers += follower.view == "presence"
            self._note(name, roster)

    def go(self, follower: Follower) -> None:
        name = follower.conversation
        roster = None if name is None else self._rosters.get(name)
        if name is None or roster is None or follower not in roster.followers:
            return
        del roster.followers[follower]
        roster.watchers -= follower.view == "presence"
        if roster.followers:
            self._note(name, roster)
        else:
            del self._rosters[name]

    def rename(self, followers: Iterable[Follower]) -> None:
        """Update the presence in the conversations of these subscriptions, whose connection has a new name."""
        for name in {follower.conversation for follower in followers}:
            if name is not None and (roster := self._rosters.get(name)) is not None:
                self._note(name, roster)

    def present(self, user: str | None, state: State) -> bytes:
        """Encode the actors in a conversation that a caller bound to `user` may see, in order of arrival."""
        roster = self._rosters.get(state.conversation)
        if roster is None:
            return b"[]"
        audience = (True, state.user) if state.exists else (False, user)
        if audience not in roster.encoded:
            roster.encoded[audience] = _encode(_list_present(roster.followers, user, state))
        return roster.encoded[audience]

    def _note(self, name: str, roster: _Roster) -> None:
        roster.encoded = {}
        if roster.watchers:
            if not self._changed:
                asyncio.get_running_loop().call_later(GATHER_S, self._flush)
            self._changed[name] = None

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        for name in changed:
            self._on_change(name)


def _list_present(followers: Iterable[Follower], user: str | None, state: State) -> list[Present]:
    """Return each actor once, with the number of its connections and the start of its oldest subscription."""
    starts: dict[Peer, int] = {}
    for follower in followers:
        if may_meet(user, follower.sink.user, state):
            starts.setdefault(follower.sink, follower.since)
    by_actor: dict[str, list[int]] = {}
    for peer, since in starts.items():
        by_actor.setdefault(peer.actor or "", []).append(since)
    present = [Present(actor=actor, connections=len(times), since=min(times)) for actor, times in by_actor.items()]
    return sorted(present, key=attrgetter("since", "actor"))


_encode = msgspec.json.Encoder().encode
