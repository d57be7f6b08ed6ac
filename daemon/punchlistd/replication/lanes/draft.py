"""What would become of a shared list: calls are decided on a draft of it, and one post holds what follows.

The list itself stays what the local log says, and is read meanwhile. The draft runs ahead of it by one post at most:
once that is in the shared log, both have moved by the same events; if another was first, the draft is thrown away.
"""

from collections.abc import Generator

import msgspec

from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Claimed, KnownEvent
from punchlist_schemas.params import ListUndo, TaskClaim, TaskRelease, TaskRenew, TaskSetStatus
from punchlistd.domain.commands import Decision, EndClaims
from punchlistd.domain.decide import follow_up
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state.snapshot import dump_state, load_state
from punchlistd.engine.calls import Step, Write
from punchlistd.engine.lists.access import check_access
from punchlistd.engine.lists.loaded import LoadedConversation, Place
from punchlistd.engine.writing.inbox import EXCLUSIVE
from punchlistd.engine.writing.transaction import Transactor
from punchlistd.replication.posts.posts import Post
from punchlistd.store.port import Side

BATCH_CALLS = 512
"""At most so many calls share one post."""

_JUDGED = (TaskRenew, TaskRelease, TaskSetStatus, ListApply, EndClaims)
"""Calls that depend on who holds a claim; the leases know only of claims that are published."""

_CLAIMING = (*_JUDGED, TaskClaim)


class Draft:
    """A shared list as it would be after a post that is being made.

    Args:
        loaded: the list as it is.
        transactor: decides.
        member: this daemon, the keeper of what is claimed through it.
    """

    def __init__(self, loaded: LoadedConversation, transactor: Transactor, member: str) -> None:
        state = loaded.state
        self.loaded = LoadedConversation(load_state(state.conversation, dump_state(state)), "", loaded.seq, 0)
        self.loaded.lane = loaded.lane  # a question names who else has the list
        self.loaded.present = loaded.present
        self.place = loaded.place
        self.begin()
        self._transactor = transactor
        self._member = member

    @property
    def version(self) -> int:
        return self.loaded.state.version

    def begin(self) -> None:
        self.first = self.version + 1
        self.steps: list[Step] = []
        self._keys: set[str] = set()
        self._claims_changed = False
        self._closed = False

    def reached(self, place: Place) -> None:
        self.place = place
        self.begin()

    def follow(self, post: Post) -> None:
        """Another post came in, and nothing is decided: the draft stays the list."""
        state = self.loaded.state
        for number, event, at in (
            (post.version + number, event, step.at)
            for number, (step, event) in enumerate((step, event) for step in post.steps for event in step.events)
        ):
            evolve(state, event, state.seq + 1, number, at)
        self.reached(post.place)

    @property
    def groups(self) -> list[Step]:
        return [step for step in self.steps if step.events]

    def has_room_for(self, write: Write) -> bool:
        params = write.params
        if self._closed or len(self.steps) >= BATCH_CALLS or params.key in self._keys:
            return False
        if type(params) in EXCLUSIVE:
            return not self.steps
        return not (self._claims_changed and isinstance(params, _JUDGED))

    def deciding(self, write: Write) -> Generator[None, None, None]:
        """Decide a call, as it follows from those before it in the post, with a pause after each of its parts."""
        params, command = write.params, write.command
        self._closed = type(params) in EXCLUSIVE
        step = Step((), command.at, command.actor, None, Decision(), write)
        self.steps.append(step)
        # Again: what another machine posted may have opened it for somebody else.
        decision = check_access(write.caller.user, params.conversation, self.loaded.state)
        decision = decision or (yield from self._transactor.consider(write, self.loaded))
        if decision is None:
            step.parked = True
        elif isinstance(decision, Rejection):
            step.refusal = decision
        else:
            step.decision = decision
            step.events = yield from self._happening(write, decision)
        if not step.events:
            return
        if params.key is not None:
            self._keys.add(params.key)
        if params.key is not None or step.decision.undoes:
            step.side = Side(params.key or "", write.fingerprint, undoes=step.decision.undoes)
        if isinstance(params, _CLAIMING) or self.loaded.state.claims:
            self._claims_changed = True

    def _happening(self, write: Write, decision: Decision) -> Generator[None, None, tuple[KnownEvent, ...]]:
        state, happened = self.loaded.state, list[KnownEvent]()
        for given in (True, False):
            # What follows is asked for when the given events have happened, as in `Transaction.append`.
            for event in (
                decision.events if given else follow_up(state, write.params, decision.events, self.loaded.present)
            ):
                version = state.version + 1
                posted = (
                    msgspec.structs.replace(event, fence=version, keeper=self._member)
                    if isinstance(event, Claimed)
                    else event
                )
                evolve(state, posted, state.seq + 1, version, write.command.at)
                happened.append(posted)
                yield
        return tuple(happened)

    def holds(self, write: Write) -> bool:
        """Whether what an undo worked out is about the list as it is."""
        if type(write.params) is not ListUndo:
            return True
        return write.lookback is not None and write.lookback.state.version == self.version
