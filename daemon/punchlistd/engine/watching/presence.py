"""Presence: who follows each conversation at this moment.

A connection is at a conversation while it has a subscription to it. Coming and going is noted in a dictionary for
everybody; names are gathered only for whoever asks or watches, and once for all who are told the same.
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
"""What comes and goes within this time is told at once, in seconds: after a restart everybody comes back together."""


class Peer(Protocol):
    """The part of a connection that others may see."""

    @property
    def actor(self) -> str | None: ...

    @property
    def user(self) -> str | None: ...


class Follower(Protocol):
    """The part of a subscription that says who is where."""

    conversation: str | None
    since: int
    view: str

    @property
    def sink(self) -> Peer:
        """Whose it is."""
        ...


class _Roster:
    """The subscriptions to one conversation, and how many of them watch who is there.

    `told` has the encoded names, by the user whose list it is, or who asks where there is none yet. It is made anew
    once somebody has come or gone.
    """

    def __init__(self) -> None:
        self.followers: dict[Follower, None] = {}
        self.watchers = 0
        self.told: dict[tuple[bool, str | None], bytes] = {}


class Presence:
    """Who follows which conversation.

    Args:
        tell: called with a conversation at which somebody came or went, if anybody watches that.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
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

    def renamed(self, followers: Iterable[Follower]) -> None:
        """Note that the connection of these subscriptions goes by another name."""
        for name in {follower.conversation for follower in followers}:
            if name is not None and (roster := self._rosters.get(name)) is not None:
                self._note(name, roster)

    def present(self, user: str | None, state: State) -> bytes:
        """Encode who is at a conversation, as far as a caller of this user may know, first come first."""
        roster = self._rosters.get(state.conversation)
        if roster is None:
            return b"[]"
        told_to = (True, state.user) if state.exists else (False, user)
        if told_to not in roster.told:
            roster.told[told_to] = _encode(_gathered(roster.followers, user, state))
        return roster.told[told_to]

    def _note(self, name: str, roster: _Roster) -> None:
        roster.told = {}
        if roster.watchers:
            if not self._changed:
                asyncio.get_running_loop().call_later(GATHER_S, self._flush)
            self._changed[name] = None

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        for name in changed:
            self._tell(name)


def _gathered(followers: Iterable[Follower], user: str | None, state: State) -> list[Present]:
    """Each actor once, from its oldest subscription on; a connection counts once."""
    begun: dict[Peer, int] = {}
    for follower in followers:
        if may_meet(user, follower.sink.user, state):
            begun.setdefault(follower.sink, follower.since)
    found: dict[str, list[int]] = {}
    for peer, since in begun.items():
        found.setdefault(peer.actor or "", []).append(since)
    present = [Present(actor=actor, connections=len(each), since=min(each)) for actor, each in found.items()]
    return sorted(present, key=attrgetter("since", "actor"))


_encode = msgspec.json.Encoder().encode
