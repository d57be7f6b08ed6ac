"""The time of one claim."""

import time

from punchlistd.clock import now_ms
from punchlistd.domain.state import Claim, State
from punchlistd.engine.calls import Holder

SILENT_S = 30.0
"""How long another machine that keeps a claim is not heard of before the claim's owner counts as gone, in seconds."""


class Lease:
    """The time of one claim.

    `member` says that a daemon on another machine keeps it, and `holder` is that daemon. Otherwise `holder` is the
    connection that made or renewed the claim, while it is open; its calls prolong the claim unless `keep` is set.
    `session` says that it belongs to an agent's session, `left` since when that is gone, in milliseconds since 1970,
    and `leave_s` how long it then lasts. `reason` is what is told when the time runs out; `asked` that this was asked
    for already.
    """

    __slots__ = (
        "asked",
        "conversation",
        "deadline",
        "fence",
        "holder",
        "keep",
        "lease_s",
        "leave_s",
        "left",
        "member",
        "owner",
        "reason",
        "session",
        "task",
        "user",
    )

    def __init__(self, state: State, task: str, claim: Claim, deadline: float) -> None:
        """A lease that nobody holds, up to `deadline` of the monotonic clock."""
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
        """When it expires unless its holder is heard of, in seconds of the monotonic clock."""
        if self.holder is None or self.keep:
            return self.deadline
        return max(self.deadline, self.holder.heard_at + self.lease_s)

    def expires_at(self) -> int:
        """The same by the wall clock, in milliseconds."""
        return now_ms() + int((self.ends_at() - time.monotonic()) * 1000)

    def leave(self, at: int, since: float) -> None:
        """Last for the grace of a session that is gone, from `since` of the monotonic clock on."""
        self.left = at
        self.reason = "left"
        self.deadline = min(self.deadline, since + self.leave_s)

    def begin_again(self) -> None:
        """Last for its whole time from now on."""
        self.left = None
        self.reason = "expired"
        self.asked = False
        self.deadline = time.monotonic() + self.lease_s

    def departure(self) -> dict[str, int]:
        """Return since when its owner's session, or the machine that keeps it, is gone; empty while both are there."""
        found = {"left_at": self.left, "silent_at": self.silent_at()}
        return {name: at for name, at in found.items() if at is not None}

    def silent_at(self) -> int | None:
        """Since when the machine that keeps it has not been heard of, if that is long, in milliseconds since 1970."""
        silent_s = time.monotonic() - self.holder.heard_at if self.member and self.holder is not None else 0.0
        return now_ms() - int(silent_s * 1000) if silent_s > SILENT_S else None
