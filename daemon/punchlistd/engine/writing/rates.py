"""How many changes an actor may make to a list per minute, where the list's settings say so.

Each actor of each such list has a bucket that refills evenly; its time is monotonic and a restart fills it. Actors are
told apart by the names that calls give: a brake for a loop that has gone wrong, and no fence.
"""

import time
from collections.abc import Callable
from math import ceil

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlistd.domain.commands import EndClaims, EndReservations, Wake
from punchlistd.domain.state import State

FREE = (p.TaskRenew, p.TaskRelease, p.TurnEnd, p.ConversationConfigure)
"""Calls that keep or give back what one has, and the one that changes the limit."""

OF_THE_ENGINE = (EndClaims, EndReservations, Wake)

KEPT = 1_024
"""So many buckets are remembered; the one that was used longest ago goes."""

MINUTE_S = 60.0


class Rates:
    """The buckets of all lists that limit their actors.

    Args:
        clock: the monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def refusal(self, state: State, params: p.Mutation, actor: str) -> Rejection | None:
        """Why an actor can't make another change now; None: it may, and this one counts."""
        most = state.settings.rate_limit
        if type(params) in FREE or isinstance(params, OF_THE_ENGINE):
            return None
        place, now = (state.conversation, actor), self._clock()
        left, seen = self._buckets.pop(place, (float(most), now))
        left = min(float(most), left + (now - seen) * most / MINUTE_S)
        if len(self._buckets) >= KEPT:
            del self._buckets[next(iter(self._buckets))]
        if left >= 1:
            self._buckets[place] = left - 1, now
            return None
        self._buckets[place] = left, now
        wait_ms = ceil((1 - left) * MINUTE_S * 1_000 / most)
        message = (
            f"{actor} has made {most} changes to {state.conversation} within a minute, which is all that its setting "
            f"rate_limit allows: wait for {wait_ms / 1_000:.1f} seconds, and look whether you are in a loop."
        )
        return Rejection("rate_limited", message, {"actor": actor, "maximum": most, "retry_after_ms": wait_ms})
