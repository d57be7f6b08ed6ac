"""Claims: who has which task, for how long, and who waits for one. All that the daemon knows of them goes in here.

Five doors lead in. `agents` takes in who comes and leaves. `admit` says what the claims of others mean for a call,
before it is decided; `observe` takes in the events of a call, after; `connection_closed` and `ready` take in that a
holder is gone, and that something was published. What ends or repeats a claim goes out by one, `submit`, as a call like
all others.
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
from punchlistd.domain.decide.apply import at_change, calls_of
from punchlistd.domain.decide.claim import may_come
from punchlistd.domain.state import State
from punchlistd.engine.calls import Holder, Stage, Write
from punchlistd.engine.claims.agents import Agents
from punchlistd.engine.claims.lease import Lease
from punchlistd.engine.claims.leases import Leases
from punchlistd.engine.claims.reservations import Reservations
from punchlistd.engine.claims.waiting import WaitingClaims

CLAIMS = frozenset({TaskClaim, EndClaims})
"""The calls that make claims or end them: they concern this room also where nothing is claimed."""

_TOUCH = (Claimed, Released, StatusChanged, Deleted)
_END = (ListCleared, ConversationDeleted)


class Claims:
    """The claims of all conversations.

    Args:
        grace_s: how long a claim outlives its connection, or a restart, in seconds.
        submit: takes the calls that end claims, and claims that have waited.
    """

    def __init__(self, grace_s: float, submit: Callable[[Write], None]) -> None:
        self.leases = Leases(grace_s, submit)
        self.agents = Agents(self._agent_left, self._agent_back)
        self.reservations = Reservations(self.agents, self._is_elsewhere, submit)
        self.leases.present = self.agents.is_present
        self.waiting = WaitingClaims(submit)

    # before and after a decision

    def admit(self, write: Write, state: State) -> Decision | Rejection | None:
        """Return the answer of a call that others' claims or waiting claims forbid; None if it may be decided."""
        params, holder = write.params, write.caller.holder
        if type(params) is EndClaims:
            write.command = msgspec.structs.replace(write.command, params=self.leases.due(params))
        elif type(params) is TaskClaim:
            if (cancellation := self.waiting.given_up(write)) is not None:
                return cancellation
            if self.waiting.yields(state, write, params):
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
        """The refusal of the first change that finishes what another holds; one before it may take the task away."""
        taken = set[str]()
        for index, call in enumerate(calls_of(state, params)):
            if not isinstance(call, TaskSetStatus) or call.task in taken:
                continue
            if call.status in ("pending", "paused"):
                taken.add(call.task)
            elif (refused := self.leases.check(state, call, command, holder)) is not None:
                return at_change(params, index, refused)
        return None

    def finish_or_park(
        self, write: Write, params: TaskClaim, state: State, decision: Decision | Rejection
    ) -> Decision | Rejection | None:
        """Return the outcome of a decided claim; None if it found nothing and waits."""
        if type(decision) is Rejection:
            in_vain = params.wait_ms > 0 and may_come(decision)
        else:
            in_vain = not decision.events
        if in_vain and self.waiting.waits(write, params):
            self.waiting.join(state, write, params)
            return None
        self.waiting.forget(write)
        return Decision() if in_vain else decision

    def observe(self, write: Write, state: State, events: Sequence[KnownEvent]) -> None:
        """Begin and end leases as the events of a call say."""
        params, holder = write.params, write.caller.holder
        tasks = dict.fromkeys(event.task for event in events if isinstance(event, _TOUCH))
        if tasks or isinstance(params, TaskRenew):
            self.leases.follow(state, params, holder, tasks)
        self._follow_settings(state, events)
        if isinstance(params, TaskClaim):
            write.claims = tuple((task, state.claims[task].fence) for task in tasks if task in state.claims)
        elif any(isinstance(event, _END) for event in events):
            self.leases.clear(state.conversation)

    def observe_arrival(self, state: State, events: Sequence[KnownEvent]) -> None:
        """Begin and end leases as the events of another machine's call say."""
        tasks = dict.fromkeys(event.task for event in events if isinstance(event, _TOUCH))
        if tasks:
            self.leases.follow(state, None, None, tasks)
        self._follow_settings(state, events)
        if any(isinstance(event, _END) for event in events):
            self.leases.clear(state.conversation)

    def _follow_settings(self, state: State, events: Sequence[KnownEvent]) -> None:
        if any(isinstance(event, ConversationConfigured) for event in events):
            self.leases.set_graces(state)

    def observe_repeat(self, write: Write, state: State, reply: bytes) -> None:
        """Give a repeated claim the tasks that its first call got: its caller lost the connection."""
        self.leases.rejoin(state, reply, write.caller.holder)

    # after the commit

    def on_published(self, write: Write) -> None:
        """A claim's transaction is in the log: answer it, or let it wait."""
        if write.stage is Stage.PARKED:
            self.waiting.wait(write)
        elif write.cancellation is not None and write.claims and write.loaded is not None:
            # Given up after it was decided: nobody is there to take what it got.
            self.leases.end(write.loaded.state.conversation, write.claims, "released")
            write.outcome = write.cancellation

    def wake(self, states: Iterable[State]) -> None:
        """Something was published: let waiting claims try again."""
        for state in states:
            self.waiting.wake(state)

    def forget(self, write: Write) -> None:
        self.waiting.forget(write)

    # what happens to those who have them

    def loaded(self, state: State) -> None:
        self.leases.adopt(state)
        self.reservations.follow(state)

    def _agent_left(self, agent: str) -> None:
        self.leases.agent_left(agent)
        self.reservations.changed(agent)

    def _agent_back(self, agent: str, pid: int) -> None:
        self.leases.agent_back(agent, pid)
        self.reservations.changed(agent)

    def _is_elsewhere(self, keeper: str, conversation: str) -> bool:
        return bool(keeper) and self.leases.member(keeper, conversation) is not None

    def connection_closed(self, holder: Holder) -> None:
        """Let what a closed connection held last for the grace."""
        self.leases.left(holder)

    def give_up(self, write: Write, answer: Rejection) -> None:
        """Cancel a waiting claim. What was decided already is released with its commit."""
        self.waiting.give_up(write, answer)

    def close(self) -> None:
        self.leases.close()
        self.reservations.close()

    # what is shown of them

    def by_agent(self, user: str | None) -> dict[str, list[Lease]]:
        """Return the leases of each agent with its sub-agents, in a user's lists (None: in all)."""
        found: dict[str, list[Lease]] = {}
        for lease in self.leases:
            for name in names_of(lease.owner) if user in (None, lease.user) else ():
                found.setdefault(name, []).append(lease)
        return found

    def explain(self, state: State, rejection: Rejection) -> Rejection:
        """Add to a rejection who holds the task and until when, if somebody does."""
        return self.leases.explain(state, rejection)

    def present(self, state: State) -> Set[str]:
        """Return the names of the agents that are there, of the list's user and of no user."""
        return self.agents.names(state.user)

    def add_details(self, state: State, tasks: list[Task]) -> list[Task]:
        """Add fences, machines, lease ends and departures to tasks; the state doesn't contain them."""
        leases = self.leases.of(state.conversation)
        return [self._add_details(state, task, leases.get(task.id)) if task.owner else task for task in tasks]

    def _add_details(self, state: State, task: Task, lease: Lease | None) -> Task:
        if lease is None:
            gone = self.reservations.departure(state, task)
            if gone is None:
                return task
            return msgspec.structs.replace(task, lease_expires_at=gone.free_at, left_at=gone.left_at)
        return msgspec.structs.replace(
            task,
            lease_expires_at=lease.expires_at(),
            left_at=lease.left,
            silent_at=lease.silent_at(),
            fence=lease.fence,
            machine=state.claims[task.id].machine if task.id in state.claims else "",
        )
