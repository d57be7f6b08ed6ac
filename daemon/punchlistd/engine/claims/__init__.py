"""Claims: which agent holds which task and for how long, and which claims wait for a task.

`admit` checks a call against other agents' claims before it is decided, and `observe` processes its events afterwards.
`agents` records which agents enter and leave. `on_connection_closed` handles closed connections, and `wake` handles
commits. Calls that end or repeat a claim go through `submit`, like all other calls.
"""

from collections.abc import Callable, Iterable, Sequence, Set

import msgspec

from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import (
    Claimed,
    ConversationConfigured,
    ConversationDeleted,
    Deleted,
    KnownEvent,
    ListCleared,
    Released,
    StatusChanged,
)
from punchlist_schemas.params import TaskClaim, TaskRenew, TaskSetStatus
from punchlist_schemas.things import Task, names_of
from punchlistd.domain.commands import Command, Decision, EndClaims
from punchlistd.domain.decide.apply import expand_changes, reject_change
from punchlistd.domain.decide.claim import may_succeed_later
from punchlistd.domain.state import State
from punchlistd.engine.calls import Holder, Stage, Write
from punchlistd.engine.claims.agents import Agents
from punchlistd.engine.claims.lease import Lease
from punchlistd.engine.claims.leases import Leases
from punchlistd.engine.claims.reservations import Reservations
from punchlistd.engine.claims.waiting import WaitingClaims

CLAIMS = frozenset({TaskClaim, EndClaims})
"""Calls that start or end claims. `admit` checks them even if no task is claimed."""

_TOUCH = (Claimed, Released, StatusChanged, Deleted)
_END = (ListCleared, ConversationDeleted)


class Claims:
    """The claims of all conversations.

    Args:
        grace_s: How long a claim outlives its connection, or a restart, in seconds.
        submit: Queues calls that end claims, and waiting claims that are retried.
    """

    def __init__(self, grace_s: float, submit: Callable[[Write], None]) -> None:
        self.leases = Leases(grace_s, submit)
        self.agents = Agents(self._on_agent_left, self._on_agent_back)
        self.reservations = Reservations(self.agents, self._is_elsewhere, submit)
        self.leases.present = self.agents.is_present
        self.waiting = WaitingClaims(submit)

    # before and after a decision

    def admit(self, write: Write, state: State) -> Decision | Rejection | None:
        """Return the outcome of a call that other claims or earlier waiting claims prevent, else None."""
        params, holder = write.params, write.caller.holder
        if type(params) is EndClaims:
            write.command = msgspec.structs.replace(write.command, params=self.leases.select_due(params))
        elif type(params) is TaskClaim:
            if (cancellation := self.waiting.check_given_up(write)) is not None:
                return cancellation
            if self.waiting.must_yield(state, write, params):
                return Decision()
            write.command = msgspec.structs.replace(
                write.command,
                session=params.keep and self.agents.is_present(state.user, params.owner),
                left=self.leases.left_fence(state, params),
                is_abandoned=params.task in state.tasks
                and self.reservations.departure(state, state.tasks[params.task]) is not None,
            )
        elif state.claims and type(params) is ListApply:
            return self._check_change(state, params, write.command, holder)
        elif state.claims:
            return self.leases.check(state, params, write.command, holder)
        return None

    def _check_change(
        self, state: State, params: ListApply, command: Command, holder: Holder | None
    ) -> Rejection | None:
        """Reject a batch at the first change that finishes a task held by another agent.

        A task that an earlier change in the batch pauses or reopens is no longer held.
        """
        freed = set[str]()
        for index, call in enumerate(expand_changes(state, params)):
            if not isinstance(call, TaskSetStatus) or call.task in freed:
                continue
            if call.status in ("pending", "paused"):
                freed.add(call.task)
            elif (rejection := self.leases.check(state, call, command, holder)) is not None:
                return reject_change(params, index, rejection)
        return None

    def finish_or_park(
        self, write: Write, params: TaskClaim, state: State, decision: Decision | Rejection
    ) -> Decision | Rejection | None:
        """Return the outcome of a decided claim, or None if it found no task and waits."""
        if type(decision) is Rejection:
            is_empty = params.wait_ms > 0 and may_succeed_later(decision)
        else:
            is_empty = not decision.events
        if is_empty and self.waiting.should_wait(write, params):
            self.waiting.enqueue(state, write, params)
            return None
        self.waiting.forget(write)
        return Decision() if is_empty else decision

    def observe(self, write: Write, state: State, events: Sequence[KnownEvent]) -> None:
        """Start and end leases according to the events of a call."""
        params, holder = write.params, write.caller.holder
        tasks = dict.fromkeys(event.task for event in events if isinstance(event, _TOUCH))
        if tasks or isinstance(params, TaskRenew):
            self.leases.follow(state, params, holder, tasks)
        self._update_graces(state, events)
        if isinstance(params, TaskClaim):
            write.claims = tuple((task, state.claims[task].fence) for task in tasks if task in state.claims)
        elif any(isinstance(event, _END) for event in events):
            self.leases.clear(state.conversation)

    def observe_arrival(self, state: State, events: Sequence[KnownEvent]) -> None:
        """Start and end leases according to the events of another machine's call."""
        tasks = dict.fromkeys(event.task for event in events if isinstance(event, _TOUCH))
        if tasks:
            self.leases.follow(state, None, None, tasks)
        self._update_graces(state, events)
        if any(isinstance(event, _END) for event in events):
            self.leases.clear(state.conversation)

    def _update_graces(self, state: State, events: Sequence[KnownEvent]) -> None:
        if any(isinstance(event, ConversationConfigured) for event in events):
            self.leases.set_graces(state)

    def observe_repeat(self, write: Write, state: State, reply: bytes) -> None:
        """Attach the leases of a repeated claim to the connection that repeated it."""
        self.leases.rejoin(state, reply, write.caller.holder)

    # after the commit

    def on_published(self, write: Write) -> None:
        """Let a parked claim wait for a task after its commit.

        If a claim got tasks but was cancelled since its decision, release the tasks.
        """
        if write.stage is Stage.PARKED:
            self.waiting.start_waiting(write)
        elif write.cancellation is not None and write.claims and write.loaded is not None:
            self.leases.end(write.loaded.state.conversation, write.claims, "released")
            write.outcome = write.cancellation

    def wake(self, states: Iterable[State]) -> None:
        """Retry waiting claims that may succeed now that these states are published."""
        for state in states:
            self.waiting.wake(state)

    def forget(self, write: Write) -> None:
        self.waiting.forget(write)

    # holders

    def on_loaded(self, state: State) -> None:
        self.leases.adopt(state)
        self.reservations.follow(state)

    def _on_agent_left(self, agent: str) -> None:
        self.leases.agent_left(agent)
        self.reservations.on_agent_changed(agent)

    def _on_agent_back(self, agent: str, pid: int) -> None:
        self.leases.agent_back(agent, pid)
        self.reservations.on_agent_changed(agent)

    def _is_elsewhere(self, keeper: str, conversation: str) -> bool:
        return bool(keeper) and self.leases.member(keeper, conversation) is not None

    def on_connection_closed(self, holder: Holder) -> None:
        """Limit the claims of a closed connection to the grace period."""
        self.leases.on_connection_closed(holder)

    def give_up(self, write: Write, answer: Rejection) -> None:
        """Cancel a waiting claim. If it is already decided, its tasks are released after the commit."""
        self.waiting.give_up(write, answer)

    def close(self) -> None:
        self.leases.close()
        self.reservations.close()

    # answers

    def by_agent(self, user: str | None) -> dict[str, list[Lease]]:
        """Return the leases of each agent and its sub-agents in a user's lists, or in all lists if `user` is None."""
        leases: dict[str, list[Lease]] = {}
        for lease in self.leases:
            for name in names_of(lease.owner) if user in (None, lease.user) else ():
                leases.setdefault(name, []).append(lease)
        return leases

    def explain(self, state: State, rejection: Rejection) -> Rejection:
        """Add the holder of the task and the expiry of the lease to a rejection, if there is a holder."""
        return self.leases.explain(state, rejection)

    def present(self, state: State) -> Set[str]:
        """Return the names of the present agents that belong to the list's user or to no user."""
        return self.agents.names(state.user)

    def add_details(self, state: State, tasks: list[Task]) -> list[Task]:
        """Add fences, machines, expiry times and departures, which the state doesn't contain, to tasks."""
        leases = self.leases.of(state.conversation)
        return [self._add_details(state, task, leases.get(task.id)) if task.owner else task for task in tasks]

    def _add_details(self, state: State, task: Task, lease: Lease | None) -> Task:
        if lease is None:
            departure = self.reservations.departure(state, task)
            if departure is None:
                return task
            return msgspec.structs.replace(task, lease_expires_at=departure.free_at, left_at=departure.left_at)
        return msgspec.structs.replace(
            task,
            lease_expires_at=lease.expires_at(),
            left_at=lease.left_at,
            silent_at=lease.silent_at(),
            fence=lease.fence,
            machine=state.claims[task.id].machine if task.id in state.claims else "",
        )
