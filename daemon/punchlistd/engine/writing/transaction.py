"""Transactions: what one group commit is made of, and how calls become part of it.

What they need is loaded first, then each call is decided on the state that the calls before it made. Nothing is visible
outside before the transaction is in the log: the conversations that it touches are dirty until then.
"""

import logging
from collections.abc import Callable, Generator, Sequence
from typing import Any

import msgspec

from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import (
    AnyEvent,
    ConversationConfigured,
    ConversationDeleted,
    KnownEvent,
)
from punchlist_schemas.params import (
    Confirmable,
    ConversationAttach,
    ListReplace,
    ListUndo,
    Mutation,
    TaskAdd,
    TaskAddMany,
    TaskClaim,
    TaskDelete,
    TaskEdit,
)
from punchlist_schemas.results import ClaimResult, TaskResult, Written
from punchlistd.domain.commands import NOTHING, Command, Decision, EndClaims, EndReservations, Wake
from punchlistd.domain.decide import decide, follow_up
from punchlistd.domain.evolve import evolve
from punchlistd.domain.rejections import ambiguous_name, conversation_not_found
from punchlistd.domain.responses import respond
from punchlistd.domain.state import State
from punchlistd.engine.calls import ANONYMOUS, Arrival, Barrier, Holder, Item, Read, Stage, Write
from punchlistd.engine.claims import CLAIMS, Claims
from punchlistd.engine.lists.access import Access, check_access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation, Place
from punchlistd.engine.replies import INTERNAL_ERROR, REPLY_BYTES, Outcome, size_of
from punchlistd.engine.timers.deferrals import Deferrals
from punchlistd.engine.timers.idle import Idle
from punchlistd.engine.watching.subscriptions import PublishedEvent
from punchlistd.engine.writing.confirm import Confirmer
from punchlistd.engine.writing.idempotency import fingerprint, key_conflict
from punchlistd.engine.writing.rates import Rates
from punchlistd.engine.writing.undos import Undos
from punchlistd.store.port import Damaged, EventLog, Sealed, Side
from punchlistd.store.record import key_hash, seal

logger = logging.getLogger(__name__)

MOST_PARTS = 512
"""A call with more parts takes long: it is decided and recorded in slices, as a transaction of its own.

Of others so many are taken together.
"""

Steps = Generator[None, None, None]
"""Work that pauses after each of its parts."""

OWING_BYTES = 4 * REPLY_BYTES
"""While answers of so many bytes wait for a commit, further reads are answered behind it."""


class _Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An event in its place, as it is stored and pushed. The event comes last: a tombstone is known by its end.

    `call`, `undoes` and `reverts_to` are left out where they say nothing.
    """

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    call: int = 0
    undoes: tuple[int, ...] = ()
    reverts_to: int | None = None
    event: AnyEvent | None = None  # always given: what stands behind a default needs one


class Transaction:
    """What one group commit is made of.

    `head` is the position of the last event in it; `entries` go into the log, `lines` to the subscribers; `touched` are
    the conversations that run ahead of the log, `sessions` the attachments that change with it, and `deleted` the
    conversations to be erased behind it. `parts` are those of its calls that have several.
    `owed` are the bytes of answers to reads that wait for it, by connection, and
    `owing` those of all together. `place` is where the post leads to whose last group is being appended.
    """

    def __init__(self, head: int) -> None:
        self.head = head
        self.items: list[Item] = []
        self.entries: list[Sealed] = []
        self.lines: list[PublishedEvent] = []
        self.touched: dict[str, LoadedConversation] = {}
        self.sessions: list[tuple[str, ConversationConfigured]] = []
        self.deleted: list[str] = []
        self.owed: dict[Holder, int] = {}
        self.owing = 0
        self.parts = 0
        self.place: Place | None = None

    def append(  # noqa: PLR0913 - whose events, and what is kept beside them
        self,
        events: Sequence[KnownEvent],
        loaded: LoadedConversation,
        command: Command,
        side: Side | None = None,
        params: Mutation | None = None,
        decision: Decision = NOTHING,
    ) -> Generator[None, None, Sequence[KnownEvent]]:
        """Let a conversation's state run ahead by a group of events; all of the events.

        With `params`, the events that they gave are followed by what follows from them. `decision` tells what the
        group takes back. It pauses between events, and between the bytes of each. Nobody looks at the state meanwhile,
        since it is dirty from the first one on.
        """
        if not events:
            return events
        state, at, owner = loaded.state, command.at, loaded.state.user
        name = state.conversation
        if name not in self.touched:
            self.touched[name] = loaded
            loaded.dirty += 1
        for event in events:
            if event is not events[0]:
                yield
            self.head = loaded.seq = self.head + 1
            evolve(state, event, self.head, state.version + 1, at)
        happened = [*events]
        # What follows is asked for only now: a list may be serial only since these events.
        for event in () if params is None else follow_up(state, params, events, loaded.present):
            yield
            self.head = loaded.seq = self.head + 1
            evolve(state, event, self.head, state.version + 1, at)
            happened.append(event)
        if (left := len(happened)) > 1:
            self.parts += left
        owner = state.user or owner  # of an opened one and of a deleted one too
        call, first = 0, state.version - left + 1
        for event in happened:
            if call:
                yield
            left -= 1
            is_deleted = type(event) is ConversationDeleted
            beside = side
            if is_deleted:
                self.deleted.append(name)
                loaded.forget_replies()
                beside = msgspec.structs.replace(side or _NO_SIDE, owner=owner) if owner else side
            elif type(event) is ConversationConfigured:
                self.sessions.append((name, event))
            if left:
                beside = msgspec.structs.replace(beside or _NO_SIDE, left=left)
            elif (place := self.place) is not None:
                beside = msgspec.structs.replace(beside or _NO_SIDE, position=place.position, chain=place.check)
            seq, version, takes_back = self.head - left, state.version - left, (decision.touches, decision.reverts_to)
            wire = _encode(_Wire(seq, name, version, at, command.actor, call, *takes_back, event))
            line, loaded.check = seal(loaded.check, wire, beside)
            self.entries.append(Sealed(name, version, line, "" if beside is None else beside.key, is_deleted))
            self.lines.append(PublishedEvent(name, wire, left, owner))
            call, side, decision = first, None, NOTHING  # the first one has said it
        return happened


class Transactor:
    """Makes calls part of a transaction, one after the other.

    Args:
        log: for the keys that were used before.
        conversations: the conversations in use.
        access: leads names to them.
        claims: who has tasks, and who waits for them.
        idle: the finished lists that are going to be cleared.
        deferrals: when which list has a deferred task to wake.
        confirmer: gives and takes confirmation tokens.
        undos: works out what undos take back.
    """

    def __init__(  # noqa: PLR0913 - what calls are decided by
        self,
        log: EventLog,
        conversations: Conversations,
        access: Access,
        *,
        claims: Claims,
        idle: Idle,
        deferrals: Deferrals,
        confirmer: Confirmer,
        undos: Undos,
    ) -> None:
        self._log = log
        self._conversations = conversations
        self._access = access
        self._claims = claims
        self._idle = idle
        self._deferrals = deferrals
        self._confirmer = confirmer
        self._undos = undos
        self._rates = Rates()

    # before its turn

    def prepare(self, items: Sequence[Item]) -> list[Item]:
        """Find what these calls need; the ones for which it has to be loaded, since deciding never waits."""
        late: list[Item] = []
        for item in items:
            if (type(item) is not Write and type(item) is not Read) or type(item.params) in _LOOK_FURTHER:
                late.append(item)
                continue
            found = self._access.find(item.caller.user, item.params.conversation)
            if found is None or (type(item) is Write and item.params.key is not None and not found.tells_keys):
                late.append(item)
            else:
                item.loaded, item.outcome = found, None
        return late

    async def load(self, items: Sequence[Item]) -> None:
        for item in items:
            if type(item) is Barrier:
                continue
            if type(item) is Arrival:
                item.loaded = await self._conversations.load(item.conversation)
                continue
            user, name = item.caller.user, item.params.conversation
            try:
                loaded = self._access.find(user, name) or await self._access.load(user, name)
                item.loaded, item.outcome = (None, loaded) if isinstance(loaded, Rejection) else (loaded, None)
                if type(item) is Write and item.loaded is not None:
                    params = item.params
                    if params.key is not None:
                        item.loaded = await self._keyed(item, params.key, item.loaded)
                    if type(params) is ListUndo and item.loaded.damage is None:
                        if not await self._undos.decide(item, params, item.loaded):
                            item.loaded = None  # it has to be worked out again
                    elif type(params) is ConversationAttach:
                        await self._access.load(user, params.session)
            except Damaged as damaged:
                item.loaded, item.outcome = None, self._conversations.refusal(damaged)

    async def _keyed(self, item: Write, key: str, loaded: LoadedConversation) -> LoadedConversation:
        """The list that a call with a key is about: one that its session has left since, if the key was used there."""
        if loaded.tells_keys:
            return loaded
        session, hashed = item.params.conversation, key_hash(key)
        lists, seen = [loaded], {loaded.state.conversation}
        for found in lists:  # which grows meanwhile
            name = found.state.conversation
            if found.keys is None:
                found.keys = set(await self._log.keys(name))
            if hashed in found.keys and (
                found is loaded or key in found.replies or await self._log.find_key(name, key)
            ):
                return found
            for former in found.state.origins.get(session, ()):
                origin = None if former in seen else await self._access.load(item.caller.user, former)
                if isinstance(origin, LoadedConversation):
                    lists.append(origin)
                seen.add(former)
        return loaded

    # in its turn

    def decide(self, item: Item, transaction: Transaction) -> Steps:
        """Make a call part of the transaction: set its outcome or its stage, and append its events."""
        if type(item) is Arrival:
            yield from self._arrive(item, transaction)
        if type(item) is not Write:
            return
        loaded, params, user = item.loaded, item.params, item.caller.user
        if loaded is not None and user is not None:  # again: a call before it may have opened it for somebody else
            item.outcome = check_access(user, params.conversation, loaded.state)
        if item.outcome is not None:
            item.to(Stage.DECIDED)
            self._claims.forget(item)
        elif loaded is None:
            item.to(Stage.READING_PAST)
        elif params.key is not None and self._was_used(item, params.key, loaded):
            pass  # its outcome or its stage is set
        elif loaded.lane is not None and loaded.damage is None:
            item.to(Stage.POSTING)
        elif (decision := (yield from self.consider(item, loaded))) is None:
            item.to(Stage.PARKED)
        else:
            item.to(Stage.DECIDED)
            if type(decision) is Rejection:
                item.outcome = self._alike(item, loaded, decision)
            else:
                yield from self._record(item, decision, loaded, transaction)

    def consider(self, item: Write, loaded: LoadedConversation) -> Generator[None, None, Decision | Rejection | None]:
        """What follows from a call on a state, which stays as it is; None if it is a claim that has to wait."""
        state, params = loaded.state, item.params
        if self._log.spoiled and state.conversation in self._log.spoiled:  # whoever has come upon it
            self._conversations.refusal(self._log.spoiled[state.conversation])
        decision: Decision | Rejection | None = loaded.damage
        if decision is None and not state.exists and item.caller.user is None:
            decision = self._name_refusal(state)
        if decision is None:
            try:
                if state.claims or state.settings.rate_limit or type(params) in _ASKED_BEFORE:
                    decision = self._check_before(item, loaded)
                if decision is None:
                    for part in decide(state, item.command):
                        if decision is not None:
                            yield
                        decision = part
                if type(decision) is Rejection:
                    decision = self._claims.explained(state, decision)
                elif type(params) in _CONFIRMABLE:
                    # Last: nobody should confirm what is refused afterwards.
                    lane, check = loaded.lane, self._confirmer.check
                    audience = None if lane is None else lane.audience
                    refusal = check(item.method.name, params, state, item.caller, item.command.at, audience)
                    decision = refusal or decision
            except MemoryError:  # what was noted of claims and tokens may be noted in part: the daemon ends
                raise
            except Exception:
                decision = _fault(item)
        assert decision is not None, "a command has at least one part"
        return self._claims.decided(item, params, state, decision) if type(params) is TaskClaim else decision

    def answer(self, item: Read, transaction: Transaction) -> bool:
        """Answer a read if nothing stands in its way.

        Returns:
            Whether the outcome holds already: it rests on nothing that is not in the log yet.
        """
        loaded, user = item.loaded, item.caller.user
        if loaded is not None and user is not None:
            item.outcome = check_access(user, item.params.conversation, loaded.state)  # again, as for a write
        lane = None if loaded is None else loaded.lane
        if lane is not None and item.lane is not lane:
            item.lane = lane  # writes of the connection may be on their way there
            return False
        item.lane = None
        return loaded is not None and item.outcome is None and self._answer_read(item, loaded, transaction)

    def _arrive(self, arrival: Arrival, transaction: Transaction) -> Steps:
        """Append what a post brought, and answer the calls that it holds."""
        loaded = arrival.loaded
        assert loaded is not None, "it was prepared"
        state = loaded.state
        if loaded.damage is not None or loaded.place != arrival.behind:
            arrival.refusal = loaded.damage or OVERTAKEN
            return
        last = next((step for step in reversed(arrival.steps) if step.events), None)
        if last is not None and state.version < arrival.first - 1:
            state.version = arrival.first - 1  # it is a tombstone: what was before it is erased
        for step in arrival.steps:
            write, had_claims = step.write, bool(state.claims)
            if write is not None:
                write.to(Stage.PARKED if step.parked else Stage.DECIDED)
                if step.parked:
                    continue
                if step.refusal is not None:
                    write.outcome = self._alike(write, loaded, step.refusal)
                    self._claims.forget(write)
                    continue
            transaction.place = arrival.place if step is last else None
            command = Command(_NOTHING, step.at, step.actor)
            events = yield from transaction.append(step.events, loaded, command, step.side, None, step.decision)
            if write is not None:
                self._recorded(write, step.decision, loaded, transaction, events, had_claims=had_claims)
                continue
            self._follow_lists(state, events)
            if had_claims or state.claims:
                self._claims.observe_arrival(state, events)
            if step.side is not None and step.side.key and loaded.keys is not None:
                loaded.keys.add(key_hash(step.side.key))
        transaction.place = None
        loaded.place = arrival.place

    def _answer_read(self, item: Read, loaded: LoadedConversation, transaction: Transaction) -> bool:
        """Answer a read from the state, unless so many bytes wait for its connection that it has to take them first."""
        holder, owed = item.caller.holder, transaction.owed
        if holder is not None and owed.get(holder, 0) + holder.unsent_bytes >= REPLY_BYTES:
            return False
        if transaction.owing >= OWING_BYTES:
            return False
        try:
            item.outcome = self._alike(item, loaded, item.query(item.params, loaded, transaction.head))
        except Exception:
            item.outcome = _fault(item)
        if loaded.dirty and holder is not None:  # the answer waits for the commit
            owed[holder] = owed.get(holder, 0) + (size := size_of(item.outcome))
            transaction.owing += size
        return not loaded.dirty

    def _alike(self, item: Write | Read, loaded: LoadedConversation, outcome: Outcome) -> Outcome:
        """The outcome; of a conversation that is not there nothing can be missing, whosever the name may be."""
        user, name = item.caller.user, item.params.conversation
        missing = type(outcome) is Rejection and outcome.kind == "not_found" and not loaded.state.exists
        return conversation_not_found(name) if missing and user and not self._access.is_own(user, name) else outcome

    def _was_used(self, item: Write, key: str, loaded: LoadedConversation) -> bool:
        """Whether the item's key was used before: then it has its outcome, or that is to be rebuilt from the log."""
        item.call = item.asked = fingerprint(item.method.name, item.params)
        if item.params.conversation != (id := loaded.state.conversation):
            item.call = fingerprint(item.method.name, msgspec.structs.replace(item.params, conversation=id))
        if (kept := loaded.replies.get(key)) is not None:
            item.to(Stage.DECIDED)
            item.outcome = kept[1] if kept[0] == item.call else key_conflict(key)
            self._claims.forget(item)
            if kept[0] == item.call and type(item.params) is TaskClaim:
                self._claims.observe_repeat(item, loaded.state, kept[1])
            return True
        if item.fresh or loaded.keys is None or key_hash(key) not in loaded.keys:
            return False
        item.to(Stage.REPLAYING)
        return True

    def _name_refusal(self, state: State) -> Rejection | None:
        """Reject a change that would create a list under a short name that other lists share."""
        names = self._access.short_names.sharing(state.conversation)
        return ambiguous_name(state.conversation, names) if names else None

    def _check_before(self, item: Write, loaded: LoadedConversation) -> Decision | Rejection | None:
        """What a call comes to that is not decided, because a claim, a name or a rate stands in its way."""
        state, params = loaded.state, item.params
        decision = self._claims.admit(item, state)
        if decision is None and type(params) is ConversationAttach:
            decision = self._session_refusal(item, params) or self._move_refusal(item, params, loaded)
        if decision is None and state.settings.rate_limit:
            decision = self._rates.refusal(state, params, item.command.actor)
        return decision

    def _session_refusal(self, item: Write, params: ConversationAttach) -> Rejection | None:
        """Why a session can't be attached; what others call by this name is no reason, nor told."""
        user, session = item.caller.user, params.session
        named = self._access.find(user, session)
        if named is None:
            is_taken = self._access.is_own(user, session)
        elif named.state.exists and (is_taken := session not in named.state.sessions) is False:
            return named.damage
        else:
            is_taken = named.state.exists
        if not is_taken:
            return None
        message = f"{session} is a conversation itself: a session needs an id of its own."
        return Rejection("invalid_params", message, {"field": "session"})

    def _move_refusal(self, item: Write, params: ConversationAttach, target: LoadedConversation) -> Rejection | None:
        """Why a session can't move: its two lists would change together, and machines share one of them."""
        name, shared = target.state.conversation, self._conversations.lanes
        if not shared:
            return None
        for holder in self._access.holders(item.caller.user, params.session, target):
            held = holder.state.conversation
            if held != name and (held in shared or name in shared):
                message = f"{params.session} is attached to {held}: detach it there first, since machines share a list."
                return Rejection("invalid_params", message, {"field": "session"})
        return None

    def _record(self, item: Write, decision: Decision, loaded: LoadedConversation, transaction: Transaction) -> Steps:
        """Append the events of a decision, and make the answer."""
        params, decided, key = item.params, decision.events, item.params.key
        if type(params) is ConversationAttach:
            former = yield from self._detach_first(params.session, loaded, item.command, transaction)
            if former is not None:
                decided = tuple(
                    msgspec.structs.replace(event, moved_from=former)
                    if isinstance(event, ConversationConfigured)
                    else event
                    for event in decided
                )
        had_claims = bool(loaded.state.claims)
        side = None if key is None and not decision.undoes else Side(key or "", item.call, undoes=decision.undoes)
        events = yield from transaction.append(decided, loaded, item.command, side, params, decision)
        self._recorded(item, decision, loaded, transaction, events, had_claims=had_claims)

    def _follow_lists(
        self, state: State, events: Sequence[KnownEvent], *, undone: bool = False, by: Holder | None = None
    ) -> None:
        if events and state.settings.auto_clear == "idle":
            self._idle.follow(state, undone=undone, by=by)
        if state.deferred or state.conversation in self._deferrals.due:
            self._deferrals.follow(state)
        if (
            state.reserved
            or len(state.claims) < len(state.running)
            or state.conversation in self._claims.reservations.lists
        ):
            self._claims.reservations.follow(state)

    def _recorded(  # noqa: PLR0913 - a call, and what came of it
        self,
        item: Write,
        decision: Decision,
        loaded: LoadedConversation,
        transaction: Transaction,
        events: Sequence[KnownEvent],
        *,
        had_claims: bool,
    ) -> None:
        params, state, holder = item.params, loaded.state, item.caller.holder
        self._follow_lists(state, events, undone=type(params) is ListUndo, by=holder)
        if holder is not None and item.command.actor != ANONYMOUS:
            self._claims.agents.called(item.caller.user, item.command.actor, state.conversation)
        if had_claims or state.claims:  # an undo may give back a claim that is over
            self._claims.observe(item, state, events)
        try:
            answer: Written = respond(params, state, events, transaction.head, decision, item.command.actor)
        except Exception:
            item.outcome = _fault(item)
            return
        item.outcome = _encode(_timed(answer, loaded) if state.running or state.reserved else answer)
        if params.key is not None:
            loaded.remember(params.key, item.call, item.outcome)
            if events and loaded.keys is not None:
                loaded.keys.add(key_hash(params.key))

    def _detach_first(
        self, session: str, target: LoadedConversation, command: Command, transaction: Transaction
    ) -> Generator[None, None, str | None]:
        """A session attached elsewhere moves: its old conversation says so in its own log.

        Returns:
            The conversation that it leaves, if that has the same owner: others must not learn its name.
        """
        owner = target.state.user if target.state.exists else command.user or ""
        former: str | None = None
        for holder in self._access.holders(command.user, session, target):
            former = holder.state.conversation if holder.state.user == owner else former
            yield from transaction.append((ConversationConfigured(detached=session),), holder, command)
        return former


_NO_SIDE = Side()
_NOTHING = Mutation(conversation="")
OVERTAKEN = Rejection("version_conflict", "Another post came first.")
"""Why what was decided for a shared list is not appended: its replica is further, or not so far. No client sees it."""
_LOOK_FURTHER = frozenset({ListUndo, ConversationAttach})
"""Calls that need more than their conversation: its past, or where a session leads."""
_SIDES = (
    "blocks",
    "blocked_by",
    "add_blocks",
    "add_blocked_by",
    "remove_blocks",
    "remove_blocked_by",
    "notes",
    "tasks",
)
"""The members of a change that may give an event for each of many tasks or notes."""


def _sides(change: Any) -> int:
    return sum(len(getattr(change, name, ())) for name in _SIDES)


def _of_each(parts: int, changes: Sequence[Any]) -> int:
    return parts if parts > MOST_PARTS else parts + sum(map(_sides, changes))


PARTS: dict[type, Callable[[Any, State], int]] = {
    ListApply: lambda params, state: _of_each(len(params.changes) + len(state.tasks), params.changes),
    ListReplace: lambda params, state: _of_each(len(params.tasks) + len(state.tasks), params.tasks),
    TaskAddMany: lambda params, state: _of_each(len(params.tasks) + params.keep_equal * len(state.tasks), params.tasks),
    TaskAdd: lambda params, _: len(params.blocks),
    TaskEdit: lambda params, _: _sides(params),
    TaskDelete: lambda params, _: len(params.tasks),
    EndClaims: lambda params, _: 2 * len(params.claims),
    EndReservations: lambda _, state: 2 * (sum(map(len, state.reserved.values())) + len(state.running)),
    Wake: lambda _, state: len(state.deferred),
}
"""How many parts a call has: what it asks for, and where it looks at all tasks, these. Others have none."""


_ASKED_BEFORE = CLAIMS | {ConversationAttach}
"""Calls that are looked at before they are decided, whatever the list is like."""
_CONFIRMABLE = frozenset(Confirmable.__subclasses__())
_WITH_LEASES = (ClaimResult, TaskResult)


def _timed(answer: Written, loaded: LoadedConversation) -> Written:
    """The answer with the time that the lease of its task has left."""
    if not isinstance(answer, _WITH_LEASES):
        return answer
    if isinstance(answer, ClaimResult) and answer.tasks:
        tasks = tuple(loaded.shown([*answer.tasks]))
        return msgspec.structs.replace(answer, task=tasks[0], tasks=tasks)
    if answer.task is not None:
        return msgspec.structs.replace(answer, task=loaded.shown([answer.task])[0])
    return answer


def _fault(item: Write | Read) -> Rejection:
    """A fault of ours in one call takes no other down with it."""
    logger.exception("%s failed", item.method.name)
    return INTERNAL_ERROR


_encode = msgspec.json.Encoder().encode
