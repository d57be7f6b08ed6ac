"""The time of one claim."""

import time

from punchlistd.clock import now_ms
from punchlistd.domain.state import Claim, State
from punchlistd.engine.calls import Holder

SILENT_S = 30.0
"""How long another machine may be silent before the owners of its claims count as gone, in seconds."""


class Lease:
    """The time of one claim.

    `member` says that a daemon on another machine keeps it, and `holder` is that daemon. Otherwise `holder` is the
    connection that made or renewed the claim, while it is open; its calls prolong the claim unless `keep` is set.
    `session` says that it belongs to an agent's session, `left` since when that is gone, in milliseconds since 1970,
    and `leave_s` how long it then lasts. `reason` is what is told when the time runs out; `asked` that this was asked
    for already.
    """

    def __init__(self, state: State, task: str, claim: Claim, deadline: float) -> None:
        """Start a lease without a holder, which ends at `deadline` on the monotonic clock."""
        self.conversation = state.conversation
        self.user = state.user
        self.leave_s = state.settings.leave_grace
        self.session = claim.session
        self.left: int | None = None
        self.task = task
        self.owner = claim.owner
        self.fence = claim.fence
        self.lease_s = claim.lease_ms / 1000
        self.deadline = deadline
        self.holder: Holder | None = None
        self.keep = claim.keep
        self.member = False
        self.reason = "expired"
        self.asked = False

    def ends_at(self) -> float:
        """Return when it expires without a further call of its holder, in seconds of the monotonic clock."""
        if self.holder is None or self.keep:
            return self.deadline
        return max(self.deadline, self.holder.heard_at + self.lease_s)

    def expires_at(self) -> int:
        """Return when it expires by the wall clock, in milliseconds since 1970."""
        return now_ms() + int((self.ends_at() - time.monotonic()) * 1000)

    def leave(self, at: int, since: float) -> None:
        """Limit the lease to the session's grace, counted from `since` on the monotonic clock."""
        self.left = at
        self.reason = "left"
        self.deadline = min(self.deadline, since + self.leave_s)

    def begin_again(self) -> None:
        """Restart the lease with its full time."""
        self.left = None
        self.reason = "expired"
        self.asked = False
        self.deadline = time.monotonic() + self.lease_s

    def departure(self) -> dict[str, int]:
        """Return when the owner's session left or its machine fell silent; empty while both are present."""
        found = {"left_at": self.left, "silent_at": self.silent_at()}
        return {name: at for name, at in found.items() if at is not None}

    def silent_at(self) -> int | None:
        """Return since when the claim's machine has been silent, in milliseconds since 1970; None below the limit."""
        silent_s = time.monotonic() - self.holder.heard_at if self.member and self.holder is not None else 0.0
        return now_ms() - int(silent_s * 1000) if silent_s > SILENT_S else None
