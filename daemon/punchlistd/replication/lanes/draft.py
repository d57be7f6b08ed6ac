"""Draft of a shared list. Calls are decided on a copy of the list, and their events go into one post.

Reads use the list itself, which matches the local log. The draft is at most one post ahead. Once the post is in the
shared log, the same events are applied to the list. If another post was first, the draft is discarded.
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
"""Maximum number of calls in one post."""

_JUDGED = (TaskRenew, TaskRelease, TaskSetStatus, ListApply, EndClaims)
"""Calls whose decision depends on the holder of a claim. The leases only contain published claims."""

_CLAIMING = (*_JUDGED, TaskClaim)


class Draft:
    """A copy of a shared list with the events of an unfinished post applied.

    Args:
        loaded: The list.
        transactor: Decides calls.
        member: ID of this daemon, recorded as the keeper of its claims.
    """

    def __init__(self, loaded: LoadedConversation, transactor: Transactor, member: str) -> None:
        state = loaded.state
        self.loaded = LoadedConversation(load_state(state.conversation, dump_state(state)), "", loaded.seq, 0)
        self.loaded.lane = loaded.lane  # needed because confirmation questions name the other machines
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

    def advance_to(self, place: Place) -> None:
        self.place = place
        self.begin()

    def follow(self, post: Post) -> None:
        """Apply another member's post. The draft must not contain decided calls."""
        state = self.loaded.state
        for number, event, at in (
            (post.version + number, event, step.at)
            for number, (step, event) in enumerate((step, event) for step in post.steps for event in step.events)
        ):
            evolve(state, event, state.seq + 1, number, at)
        self.advance_to(post.place)

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

    def decide_in_slices(self, write: Write) -> Generator[None, None, None]:
        """Decide a call, after the post's earlier calls. Yields after each part of the work."""
        params, command = write.params, write.command
        self._closed = type(params) in EXCLUSIVE
        step = Step((), command.at, command.actor, None, Decision(), write)
        self.steps.append(step)
        # Check access again: another machine's post may have opened the list for another user.
        decision = check_access(write.caller.user, params.conversation, self.loaded.state)
        decision = decision or (yield from self._transactor.consider(write, self.loaded))
        if decision is None:
            step.parked = True
        elif isinstance(decision, Rejection):
            step.refusal = decision
        else:
            step.decision = decision
            step.events = yield from self._evolve_in_slices(write, decision)
        if not step.events:
            return
        if params.key is not None:
            self._keys.add(params.key)
        if params.key is not None or step.decision.undoes:
            step.side = Side(params.key or "", write.fingerprint, undoes=step.decision.undoes)
        if isinstance(params, _CLAIMING) or self.loaded.state.claims:
            self._claims_changed = True

    def _evolve_in_slices(self, write: Write, decision: Decision) -> Generator[None, None, tuple[KnownEvent, ...]]:
        state, events = self.loaded.state, list[KnownEvent]()
        for is_follow_up in (False, True):
            # Compute follow-ups after the decided events are applied, as in `Transaction.append`.
            for event in (
                follow_up(state, write.params, decision.events, self.loaded.present)
                if is_follow_up
                else decision.events
            ):
                version = state.version + 1
                posted = (
                    msgspec.structs.replace(event, fence=version, keeper=self._member)
                    if isinstance(event, Claimed)
                    else event
                )
                evolve(state, posted, state.seq + 1, version, write.command.at)
                events.append(posted)
                yield
        return tuple(events)

    def has_current_lookback(self, write: Write) -> bool:
        """Return False for an undo whose lookback was built from another version of the list."""
        if type(write.params) is not ListUndo:
            return True
        return write.lookback is not None and write.lookback.state.version == self.version
