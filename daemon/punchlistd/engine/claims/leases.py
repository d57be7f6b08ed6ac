"""Leases of all claims: monotonic deadlines in memory, with one timer for all.

The log has events for the start and the end of a claim, but none for renewals. Any call on a connection renews its
claims. After the connection closes, and after a restart of the daemon, the claims last for a short grace period. A
claim with `keep` needs no connection. It lasts until its lease expires, and its age is measured with the wall clock
after a restart. If its agent called `agent.enter`, the claim belongs to the agent's session. Such a claim lasts for the
list's `leave_grace` after the agent has left or the daemon has restarted, unless the agent comes back.

A call that completes or fails a task must come from the claim's holder. `Leases.check` enforces this for calls without
a fence, because a late owner could otherwise finish the next owner's work.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import Mutation, TaskClaim, TaskRelease, TaskRenew, TaskSetStatus
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command, EndClaims
from punchlistd.domain.rejections import lease_held
from punchlistd.domain.state import Claim, State
from punchlistd.engine.calls import DaemonCaller, Holder, Write
from punchlistd.engine.claims.agents import belongs_to
from punchlistd.engine.claims.lease import Lease

_SLACK = 1_000
"""Number of stale entries allowed in the timer's queue, in addition to twice the number of valid ones."""

_READ_S = 0.01
"""Time to read buffered input before a claim expires, in seconds."""

_STANDSTILL_S = 0.5
"""If the timer is late by more than this, in seconds, the process or the machine was suspended.

The holders may have been suspended too, so claims that expired in that time get the grace period.
"""

MEMBER_SLACK_S = 1.5
"""Time added to the lease of a remote claim, in seconds, because heartbeats are delayed and some are lost."""

_RELEASE = METHODS["task.release"]
_OF_HOLDERS = (TaskRenew, TaskRelease, TaskSetStatus)


class _Fences(msgspec.Struct):
    """The fences in the response to a claim."""

    fence: int | None = None
    fences: tuple[int, ...] = ()


_NONE: Mapping[str, Lease] = {}


class Leases:
    """The leases of all claims.

    Args:
        grace_s: How long a claim outlives its connection, or a restart, in seconds.
        submit: Queues the calls that end claims.
    """

    def __init__(self, grace_s: float, submit: Callable[[Write], None]) -> None:
        self.member: Callable[[str, str], Holder | None] = lambda _keeper, _conversation: None
        """Returns the daemon on another machine that keeps a list's claims; None if this daemon keeps them."""
        self.present: Callable[[str, str], bool] = lambda _user, _owner: False
        """Returns whether the owner of a claim in this user's lists is a present agent."""
        self.show: Callable[[str, list[str]], None] = lambda _conversation, _tasks: None
        """Pushes tasks whose displayed state has changed without a new event."""
        self._grace_s = grace_s
        self._submit = submit
        self._began = now_ms(), time.monotonic()
        self._held: dict[str, dict[str, Lease]] = {}
        self._of_holder: dict[Holder, dict[Lease, None]] = {}
        self._count = 0
        self._queue: list[tuple[float, int, Lease]] = []
        self._serial = 0
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Lease]:
        return (lease for held in self._held.values() for lease in held.values())

    def of(self, conversation: str) -> Mapping[str, Lease]:
        return self._held.get(conversation, _NONE)

    def keeps(self, conversation: str) -> bool:
        """Return True if this daemon keeps any leases of the conversation."""
        return any(not lease.is_remote for lease in self.of(conversation).values())

    # start and renewal

    def adopt(self, state: State) -> None:
        """Start leases for the claims of a loaded list.

        Claims with `keep` get the rest of their time. Other claims get the grace period.
        """
        name = state.conversation
        for task in list(self.of(name)):
            if task not in state.claims:
                self._drop(name, task)
        grace = time.monotonic() + self._grace_s
        for task, claim in state.claims.items():
            lease = self.of(name).get(task)
            if lease is None or lease.fence != claim.fence:
                lease = self._add(Lease(state, task, claim, grace))
                if (member := self._member(name, claim)) is not None:
                    self._hold_remotely(lease, member)
                elif lease.keep:
                    self._resume(lease, claim.at)
                else:
                    lease.reason = "restarted"
            elif lease.is_ending:
                lease.is_ending = False
                lease.deadline = grace
            self._schedule(lease)

    def follow(self, state: State, params: Mutation | None, holder: Holder | None, tasks: Iterable[str]) -> None:
        """Update the leases of these tasks after a call. `params` is None for a call from another machine."""
        name = state.conversation
        for task in tasks:
            claim, lease = state.claims.get(task), self.of(name).get(task)
            if claim is None:
                self._drop(name, task)
            elif lease is None or lease.fence != claim.fence:
                lease = self._add(Lease(state, task, claim, 0.0))
                if (member := self._member(name, claim)) is not None:
                    self._hold_remotely(lease, member)
                else:
                    self._hold(lease, holder if isinstance(params, TaskClaim) else None)
                    lease.session = lease.session or (claim.keep and self.present(lease.user, lease.owner))
                    self._check_session(lease)
        if isinstance(params, TaskRenew) and (lease := self.of(name).get(params.task)) is not None:
            lease.lease_s = lease.lease_s if params.lease_ms is None else params.lease_ms / 1000
            self._hold(lease, holder)

    # sessions

    def agent_left(self, agent: str) -> None:
        """Limit the claims of an agent's session and its sub-agents to the `leave_grace` of their lists."""
        self._show_again([lease for lease in self._of_agent(agent) if self._check_session(lease)])

    def agent_back(self, agent: str, pid: int) -> None:
        """Restore the full leases of an agent's claims.

        Kept claims that its process made before it called `agent.enter` now belong to the agent's session too.
        """
        for lease in self:
            is_its = lease.holder is not None and lease.holder.pid == pid and belongs_to(lease.owner, agent)
            lease.session = lease.session or (is_its and lease.keep)
        leases = [lease for lease in self._of_agent(agent) if lease.left_at is not None]
        for lease in leases:
            lease.restart()
            self._schedule(lease)
        self._show_again(leases)

    def set_graces(self, state: State) -> None:
        """Apply the list's settings. Sessions that leave from now on get the new grace period."""
        for lease in self.of(state.conversation).values():
            lease.leave_s = state.settings.leave_grace

    def left_fence(self, state: State, params: TaskClaim) -> int | None:
        """Return the fence of the claim that this new claim may replace because the previous owner has left."""
        lease = self.of(state.conversation).get(params.task or "")
        return lease.fence if lease is not None and lease.owner != params.owner and lease.departure() else None

    def _of_agent(self, agent: str) -> list[Lease]:
        return [lease for lease in self if lease.session and not lease.is_remote and belongs_to(lease.owner, agent)]

    def _check_session(self, lease: Lease) -> bool:
        if not lease.session or lease.left_at is not None or self.present(lease.user, lease.owner):
            return False
        lease.leave(now_ms(), time.monotonic())
        self._schedule(lease)
        return True

    def _resume(self, lease: Lease, claimed_at: int) -> None:
        """Restore the remaining time of a kept claim from an earlier daemon."""
        now = time.monotonic()
        if not lease.session or self.present(lease.user, lease.owner):
            past_s = 0.0 if lease.session or not claimed_at else (now_ms() - claimed_at) / 1000
            lease.deadline = now + min(max(lease.lease_s - past_s, self._grace_s), lease.lease_s)
            return
        began_ms, began = self._began
        lease.deadline = now + lease.lease_s
        lease.leave(began_ms, max(began, now + self._grace_s - lease.leave_s))

    def _show_again(self, leases: Iterable[Lease]) -> None:
        """Push these leases' tasks again, in the next iteration of the event loop, so that replies are sent first."""
        tasks: dict[str, list[str]] = {}
        for lease in leases:
            tasks.setdefault(lease.conversation, []).append(lease.task)
        for conversation, names in tasks.items():
            asyncio.get_running_loop().call_soon(self.show, conversation, names)

    def _member(self, conversation: str, claim: Claim) -> Holder | None:
        return self.member(claim.keeper, conversation) if claim.keeper else None

    def _hold_remotely(self, lease: Lease, member: Holder) -> None:
        """Keep a remote claim for as long as its daemon sends heartbeats."""
        lease.keep, lease.is_remote = False, True
        lease.lease_s += MEMBER_SLACK_S
        self._hold(lease, member)

    def rejoin(self, state: State, reply: bytes, holder: Holder | None) -> None:
        """Attach the leases of a repeated claim to the connection that repeated it."""
        result = msgspec.json.decode(reply, type=_Fences)
        fences = {result.fence, *result.fences}
        for lease in self.of(state.conversation).values():
            if lease.fence in fences and not lease.is_remote:
                self._hold(lease, holder)

    def clear(self, conversation: str) -> None:
        """Drop the leases of a cleared list or a deleted conversation."""
        for task in list(self.of(conversation)):
            self._drop(conversation, task)

    def on_connection_closed(self, holder: Holder) -> None:
        """Limit the leases of a closed connection to the grace period."""
        grace = time.monotonic() + self._grace_s
        for lease in self._of_holder.pop(holder, ()):
            self._orphan(lease, grace)

    def _hold(self, lease: Lease, holder: Holder | None) -> None:
        self._detach_holder(lease)
        if holder is not None:
            lease.holder = holder
            self._of_holder.setdefault(holder, {})[lease] = None
        if lease.left_at is not None:
            self._show_again([lease])
        lease.restart()
        self._schedule(lease)
        if holder is not None and holder.is_gone:
            self.on_connection_closed(holder)

    def _detach_holder(self, lease: Lease) -> None:
        holder, lease.holder = lease.holder, None
        if holder is not None and (held := self._of_holder.get(holder)) is not None:
            held.pop(lease, None)
            if not held:
                del self._of_holder[holder]

    def _orphan(self, lease: Lease, grace: float) -> None:
        ends = lease.ends_at()
        self._detach_holder(lease)
        if lease.keep:
            return
        lease.deadline = min(ends, grace)
        if grace <= ends:
            lease.reason = "disconnected"
        self._schedule(lease)

    # permissions

    def check(self, state: State, params: Mutation, command: Command, holder: Holder | None) -> Rejection | None:
        """Return the rejection for a call without a fence if another agent holds the task, else None.

        A claim that is bound to a connection can be renewed, released or finished only by that connection. A kept claim
        can be finished only by its owner: by a call with the owner as actor, or by a call without an actor on the
        connection that made the claim.
        """
        if not isinstance(params, _OF_HOLDERS):
            return None
        lease = self.of(state.conversation).get(params.task)
        if isinstance(params, TaskRenew) and lease is not None and lease.is_remote:
            return self.explain(state, lease_held(state.tasks[params.task], lease.owner + _machine(state, lease)))
        if params.fence is not None:
            return None
        finishes = isinstance(params, TaskSetStatus) and params.status in ("completed", "failed")
        if lease is None or not (finishes or isinstance(params, TaskRenew | TaskRelease)):
            return None
        is_holder = lease.holder is not None and lease.holder is holder
        if lease.keep:
            # A renewal or a release names the owner, which the domain checks.
            is_allowed = not finishes or command.actor == lease.owner or (is_holder and params.actor is None)
        else:
            is_allowed = is_holder or lease.holder is None
        where = _machine(state, lease) if lease.is_remote else "" if lease.keep else " on another connection"
        return None if is_allowed else self.explain(state, lease_held(state.tasks[params.task], lease.owner + where))

    def explain(self, state: State, rejection: Rejection) -> Rejection:
        """Add the owner and the expiry of the lease to a rejection about a held task."""
        if rejection.kind != "lease_held":
            return rejection
        lease = self.of(state.conversation).get(rejection.data["task"])
        if lease is None:
            return rejection
        facts: dict[str, object] = {"owner": lease.owner, "expires_at": lease.expires_at()}
        message = rejection.message
        if departure := lease.departure():
            machine = state.claims[lease.task].machine
            facts |= departure | ({"machine": machine} if machine else {})
            message = f"Task #{lease.task} is held by {lease.owner}, which has left; claim the task by its id, or wait."
        return Rejection(rejection.kind, message, rejection.data | facts)

    # time

    def end(self, conversation: str, claims: Iterable[tuple[str, int]], reason: str) -> None:
        params = EndClaims(conversation=conversation, claims=tuple(claims), reason=reason)
        for task, fence in params.claims:
            lease = self.of(conversation).get(task)
            if lease is not None and lease.fence == fence:
                lease.is_ending = True
        command = Command(params=params, at=now_ms(), actor=DaemonCaller.actor)
        self._submit(Write(DaemonCaller(), None, _RELEASE, params, command))

    def select_due(self, params: EndClaims) -> EndClaims:
        """Return the claims that still have to end: those that no call or heartbeat has renewed since the request."""
        held, now = self.of(params.conversation), time.monotonic()
        due: list[tuple[str, int]] = []
        for task, fence in params.claims:
            lease = held.get(task)
            if lease is not None and lease.is_remote and lease.ends_at() > now:
                lease.is_ending = False
                self._schedule(lease)
            elif lease is None or lease.is_ending:
                due.append((task, fence))
        return EndClaims(conversation=params.conversation, claims=tuple(due), reason=params.reason)

    def _add(self, lease: Lease) -> Lease:
        self._drop(lease.conversation, lease.task)
        self._held.setdefault(lease.conversation, {})[lease.task] = lease
        self._count += 1
        return lease

    def _drop(self, conversation: str, task: str) -> None:
        held = self._held.get(conversation, {})
        lease = held.pop(task, None)
        if lease is not None:
            self._detach_holder(lease)
            self._count -= 1
            if not held:
                del self._held[conversation]

    def _is_live(self, lease: Lease) -> bool:
        return self.of(lease.conversation).get(lease.task) is lease

    def _schedule(self, lease: Lease) -> None:
        self._serial += 1
        heappush(self._queue, (lease.ends_at(), self._serial, lease))
        if len(self._queue) > 2 * self._count + _SLACK:
            self._queue = [(lease.ends_at(), index, lease) for index, lease in enumerate(self)]
            heapify(self._queue)
        self._arm()

    def _arm(self) -> None:
        if not self._queue:
            return
        at = self._queue[0][0]
        if self._timer is not None:
            if self._rings_at <= at:
                return
            self._timer.cancel()
        self._rings_at = at
        self._timer = asyncio.get_running_loop().call_later(max(0.0, at - time.monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        # uvloop runs timers before it reads from sockets. Let it first read the calls and heartbeats that have arrived.
        self._rings_at = time.monotonic() + _READ_S
        self._timer = asyncio.get_running_loop().call_later(_READ_S, self._expire, self._queue[0][0])

    def _expire(self, due: float) -> None:
        """End the claims that have expired; `due` is the time at which the first of them expired."""
        self._timer = None
        now = time.monotonic()
        stood_still = now - due > _STANDSTILL_S
        ended: dict[tuple[str, str], list[tuple[str, int]]] = {}
        while self._queue and self._queue[0][0] <= now:
            lease = heappop(self._queue)[2]
            if not self._is_live(lease) or lease.is_ending:
                continue
            if stood_still and lease.ends_at() <= now:
                lease.deadline = now + self._grace_s
            if (ends := lease.ends_at()) > now:
                self._serial += 1
                heappush(self._queue, (ends, self._serial, lease))
                continue
            lease.is_ending = True  # the lease may be queued more than once
            ended.setdefault((lease.conversation, lease.reason), []).append((lease.task, lease.fence))
        for (conversation, reason), claims in ended.items():
            self.end(conversation, claims, reason)
        self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _machine(state: State, lease: Lease) -> str:
    """Return the end of a message, which names the machine of a remote claim."""
    return f" on {state.claims[lease.task].machine}"
