"""The other daemons of a space, as holders of claims.

Each daemon tracks when its own claims expire. A heartbeat from another daemon renews all of that daemon's claims in the
lists named in the heartbeat. If a daemon receives no heartbeat from a claim's holder for the length of a lease, it may
post the end of the claim. The shared log accepts only one such post. A daemon that is cut off can't receive other
daemons' heartbeats, so it doesn't end their claims.
"""

import time
from collections.abc import Iterable, Mapping

import msgspec

from punchlistd.clock import now_ms
from punchlistd.replication.port import is_member_id

BEAT_S = 1.0
"""Interval between the heartbeats of a daemon that holds claims, in seconds."""

PRESENT_S = 20.0
"""Interval at which a daemon that may post reports the lists that it follows, in seconds."""

RECENTLY_MS = 24 * 3_600_000
"""Maximum time since a machine was last seen for it to count as seen recently, in milliseconds."""

MAX_SEEN = 256
"""Maximum number of machines remembered for one space."""

MAX_MEMBERS = 1_000
"""Maximum number of members remembered for one list. Needed because heartbeats may contain invented names."""


class Seen(msgspec.Struct):
    """The times when another daemon and each of its lists were last seen, in milliseconds since 1970."""

    at: int = 0
    lists: dict[str, int] = {}


class Member:
    """Another daemon as the holder of claims in one list; implements `Holder`."""

    is_gone = False
    is_agents = False
    pid = 0
    unsent_bytes = 0

    def __init__(self) -> None:
        self.last_seen_at = time.monotonic()


class Members:
    """The daemons of one space.

    Args:
        own: Member ID of this daemon.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._members: dict[tuple[str, str], Member] = {}
        self._stuck: dict[str, dict[str, tuple[int, float]]] = {}
        self.seen: dict[str, Seen] = {}
        """Other daemons seen since this one started, the most recently seen last."""

    def get(self, keeper: str, conversation: str) -> Member | None:
        """Return the daemon that holds a claim, or None if it is this daemon."""
        if keeper == self._own:
            return None
        return self._members.setdefault((keeper, conversation), Member())

    def record_beat(self, keeper: str, conversations: list[str]) -> None:
        now = time.monotonic()
        for conversation in conversations:
            if (member := self._members.get((keeper, conversation))) is not None:
                member.last_seen_at = now

    def record_seen(self, keeper: str, conversations: Iterable[str]) -> None:
        if keeper == self._own or not is_member_id(keeper):
            return
        now = now_ms()
        seen = self.seen[keeper] = self.seen.pop(keeper, None) or Seen()
        seen.at = now
        seen.lists.update(dict.fromkeys(conversations, now))
        if len(self.seen) > MAX_SEEN:
            del self.seen[next(iter(self.seen))]

    def followers(self, conversation: str) -> tuple[str, ...]:
        """Return the other daemons that were seen recently with a list, the most recently seen first."""
        since = now_ms() - RECENTLY_MS
        return tuple(keeper for keeper, seen in reversed(self.seen.items()) if seen.lists.get(conversation, 0) >= since)

    def record_stuck(self, keeper: str, versions: Mapping[str, int]) -> None:
        for conversation, version in versions.items():
            versions_by_keeper = self._stuck.setdefault(conversation, {})
            if keeper in versions_by_keeper or len(versions_by_keeper) < MAX_MEMBERS:
                versions_by_keeper[keeper] = version, time.monotonic()

    def find_longest(self, conversation: str, within_s: float) -> tuple[int, str]:
        """Return the highest version recently reported by a stuck daemon, and the daemon's ID; (0, "") if none."""
        since = time.monotonic() - within_s
        reports = self._stuck.get(conversation, {})
        return max(((version, keeper) for keeper, (version, at) in reports.items() if at >= since), default=(0, ""))

    def reset_timers(self) -> None:
        """Restart the timers of all members after an outage, during which missed heartbeats prove nothing."""
        now = time.monotonic()
        for member in self._members.values():
            member.last_seen_at = now
