"""A lease: the time limit of one claim."""

import time

from punchlistd.clock import now_ms
from punchlistd.domain.state import Claim, State
from punchlistd.engine.calls import Holder

SILENT_S = 30.0
"""How long another machine may be silent before the owners of its claims count as gone, in seconds."""


class Lease:
    """The time limit of one claim.

    Attributes:
        holder: The open connection that made or renewed the claim or, for a remote claim, the daemon that keeps it. Its
            calls extend the claim unless `keep` is set.
        keep: Whether the claim depends on time alone, and not on the connection.
        is_remote: Whether a daemon on another machine keeps the claim.
        session: Whether the claim belongs to an agent's session.
        left_at: When that session left, in milliseconds since 1970; None while it is present.
        leave_s: How long the claim lasts after the session has left, in seconds.
        deadline: Monotonic time at which the lease expires, in seconds. Calls of the holder may extend it.
        reason: The reason recorded when the lease expires.
        is_ending: Whether a call to end the claim has already been submitted.
    """

    def __init__(self, state: State, task: str, claim: Claim, deadline: float) -> None:
        self.conversation = state.conversation
        self.user = state.user
        self.leave_s = state.settings.leave_grace
        self.session = claim.session
        self.left_at: int | None = None
        self.task = task
        self.owner = claim.owner
        self.fence = claim.fence
        self.lease_s = claim.lease_ms / 1000
        self.deadline = deadline
        self.holder: Holder | None = None
        self.keep = claim.keep
        self.is_remote = False
        self.reason = "expired"
        self.is_ending = False

    def ends_at(self) -> float:
        """Return the monotonic time at which the lease expires unless its holder makes another call, in seconds."""
        if self.holder is None or self.keep:
            return self.deadline
        return max(self.deadline, self.holder.last_seen_at + self.lease_s)

    def expires_at(self) -> int:
        """Return the wall-clock time at which the lease expires, in milliseconds since 1970."""
        return now_ms() + int((self.ends_at() - time.monotonic()) * 1000)

    def leave(self, at: int, since: float) -> None:
        """Limit the lease to the session's grace period, counted from `since` on the monotonic clock."""
        self.left_at = at
        self.reason = "left"
        self.deadline = min(self.deadline, since + self.leave_s)

    def restart(self) -> None:
        """Restart the lease with its full duration."""
        self.left_at = None
        self.reason = "expired"
        self.is_ending = False
        self.deadline = time.monotonic() + self.lease_s

    def departure(self) -> dict[str, int]:
        """Return when the owner's session left and when its machine fell silent, or nothing while both are present."""
        times = {"left_at": self.left_at, "silent_at": self.silent_at()}
        return {name: at for name, at in times.items() if at is not None}

    def silent_at(self) -> int | None:
        """Return when the claim's machine fell silent, in milliseconds since 1970.

        Return None until the machine has been silent for `SILENT_S`.
        """
        silent_s = time.monotonic() - self.holder.last_seen_at if self.is_remote and self.holder is not None else 0.0
        return now_ms() - int(silent_s * 1000) if silent_s > SILENT_S else None
