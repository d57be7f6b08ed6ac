"""The other daemons of a space as holders of what was claimed through them.

A daemon keeps the time of its own claims. The others know of them only that it lives: each beat prolongs all its claims
in the lists that the beat names. Whoever hears nothing of it for as long as a lease may post the end of the claim, and
the log lets one of them in. While this daemon itself is cut off it hears nothing of anybody, and ends nobody's claim.
"""

import time
from collections.abc import Iterable, Mapping

import msgspec

from punchlistd.clock import now_ms
from punchlistd.replication.port import is_member_id

BEAT_S = 1.0
"""How often a daemon that keeps claims gives a sign of life, in seconds."""

PRESENT_S = 20.0
"""How often a daemon that may post names the lists that it follows, in seconds."""

RECENTLY_MS = 24 * 3_600_000
"""A machine was seen recently if that is not longer ago, in milliseconds."""

SEEN = 256
"""Upper limit for the machines of a space that are remembered as seen."""

MAX_MEMBERS = 1_000
"""Members of one list that are remembered: any of them may send signs of life in names of its own."""


class Seen(msgspec.Struct):
    """Another daemon of the space: when it was last heard of, and each of its lists, in milliseconds since 1970."""

    at: int = 0
    lists: dict[str, int] = {}


class Member:
    """Another daemon, in one list; see `Holder`."""

    is_gone = False
    is_agents = False
    pid = 0
    unsent_bytes = 0

    def __init__(self) -> None:
        self.heard_at = time.monotonic()


class Members:
    """The daemons of one space.

    Args:
        own: this one.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._members: dict[tuple[str, str], Member] = {}
        self._stuck: dict[str, dict[str, tuple[int, float]]] = {}
        self.seen: dict[str, Seen] = {}
        """The other daemons that were heard of since this one started, the latest last."""

    def of(self, keeper: str, conversation: str) -> Member | None:
        """The daemon that keeps a claim; None: this one."""
        if keeper == self._own:
            return None
        return self._members.setdefault((keeper, conversation), Member())

    def beat(self, keeper: str, conversations: list[str]) -> None:
        now = time.monotonic()
        for conversation in conversations:
            if (member := self._members.get((keeper, conversation))) is not None:
                member.heard_at = now

    def saw(self, keeper: str, conversations: Iterable[str]) -> None:
        if keeper == self._own or not is_member_id(keeper):
            return
        now = now_ms()
        seen = self.seen[keeper] = self.seen.pop(keeper, None) or Seen()
        seen.at = now
        seen.lists.update(dict.fromkeys(conversations, now))
        if len(self.seen) > SEEN:
            del self.seen[next(iter(self.seen))]

    def followers(self, conversation: str) -> tuple[str, ...]:
        """Return the other daemons that were seen recently with a list, the latest first."""
        since = now_ms() - RECENTLY_MS
        return tuple(keeper for keeper, seen in reversed(self.seen.items()) if seen.lists.get(conversation, 0) >= since)

    def stuck(self, keeper: str, versions: Mapping[str, int]) -> None:
        for conversation, version in versions.items():
            told = self._stuck.setdefault(conversation, {})
            if keeper in told or len(told) < MAX_MEMBERS:
                told[keeper] = version, time.monotonic()

    def longest(self, conversation: str, within_s: float) -> tuple[int, str]:
        """The highest version that another daemon has told of lately, and who it is; 0 if none did."""
        since = time.monotonic() - within_s
        told = self._stuck.get(conversation, {})
        return max(((version, keeper) for keeper, (version, at) in told.items() if at >= since), default=(0, ""))

    def heard_of(self) -> None:
        """The way to the space is open again: whatever was not heard in between proves nothing."""
        now = time.monotonic()
        for member in self._members.values():
            member.heard_at = now
