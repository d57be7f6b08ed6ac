"""Rate limit for changes, for lists with the setting `rate_limit`.

Each actor of such a list has a token bucket that refills at a constant rate, measured on the monotonic clock. A restart
refills all buckets. Actors are identified by the names in their calls, so the limit stops a runaway loop but is not a
security boundary.
"""

import time
from collections.abc import Callable
from math import ceil

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlistd.domain.commands import EndClaims, EndReservations, Wake
from punchlistd.domain.state import State

FREE = (p.TaskRenew, p.TaskRelease, p.TurnEnd, p.ConversationConfigure)
"""Calls that don't count toward the limit, because they keep or release an actor's own claims or change the limit."""

INTERNAL = (EndClaims, EndReservations, Wake)

MAX_BUCKETS = 1_024
"""Maximum number of buckets in memory. Above it, the least recently used one is dropped."""

MINUTE_S = 60.0


class Rates:
    """The buckets of all lists with a rate limit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def check(self, state: State, params: p.Mutation, actor: str) -> Rejection | None:
        """Charge the actor for a change, or return the rejection if it has reached the limit."""
        limit = state.settings.rate_limit
        if type(params) in FREE or isinstance(params, INTERNAL):
            return None
        bucket, now = (state.conversation, actor), self._clock()
        left, filled_at = self._buckets.pop(bucket, (float(limit), now))
        left = min(float(limit), left + (now - filled_at) * limit / MINUTE_S)
        if len(self._buckets) >= MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        if left >= 1:
            self._buckets[bucket] = left - 1, now
            return None
        self._buckets[bucket] = left, now
        wait_ms = ceil((1 - left) * MINUTE_S * 1_000 / limit)
        message = (
            f"{actor} has made {limit} changes to {state.conversation} within a minute, the limit of its "
            "setting rate_limit: "
            f"wait for {wait_ms / 1_000:.1f} seconds, and check whether you are in a loop."
        )
        return Rejection("rate_limited", message, {"actor": actor, "maximum": limit, "retry_after_ms": wait_ms})
