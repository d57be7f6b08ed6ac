"""Turns calls into transactions, the units of group commit.

The conversations that the calls need are loaded first. Then the calls are decided in order, each against the state left
by the previous one. Until the transaction is in the log, its conversations are dirty, and reads outside the queue wait.
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
from punchlistd.domain.decide.turns import check_turn
from punchlistd.domain.evolve import evolve
from punchlistd.domain.rejections import ambiguous_name, conversation_not_found
from punchlistd.domain.responses import respond
from punchlistd.domain.state import State
from punchlistd.domain.state.tally import Tally
from punchlistd.domain.undo.trace import task_id_of
from punchlistd.engine.calls import ANONYMOUS, Arrival, Barrier, Holder, Item, Read, Stage, Write
from punchlistd.engine.claims import CLAIMS, Claims
from punchlistd.engine.lists.access import Access, check_access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.loaded import LoadedConversation, Place
from punchlistd.engine.lists.turns import build_turn
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

MAX_PARTS = 512
"""Maximum number of parts in a transaction. A call with more parts is decided in slices, in its own transaction."""

Steps = Generator[None, None, None]
"""A generator that does its work in parts and yields after each one."""

MAX_OWED_BYTES = 4 * REPLY_BYTES
"""Upper limit for replies to reads held back until the same commit, in bytes.

Other reads are answered after the commit.
"""


class _Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An event as stored and pushed.

    `event` is last, because tombstones are recognized by the end of the line. It is always set, but msgspec requires a
    default after the optional fields.
    """

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    call: int = 0
    undoes: tuple[int, ...] = ()
    reverts_to: int | None = None
    event: AnyEvent | None = None


class Transaction:
    """The contents of one group commit.

    Attributes:
        head: Log position of its last event.
        entries: Records for the log.
        published: The same events for subscribers.
        touched: Conversations whose state is ahead of the log, by id.
        sessions: Attachments that change with the commit.
        deleted: Conversations to erase after the commit.
        parts: Total number of parts of its multi-part calls.
        owed: Bytes of replies to reads that wait for the commit, by connection.
        owed_bytes: Sum of `owed`.
        place: Place in the shared log after a post while that post's last group is being appended, otherwise None.
    """

    def __init__(self, head: int) -> None:
        self.head = head
        self.items: list[Item] = []
        self.entries: list[Sealed] = []
        self.published: list[PublishedEvent] = []
        self.touched: dict[str, LoadedConversation] = {}
        self.sessions: list[tuple[str, ConversationConfigured]] = []
        self.deleted: list[str] = []
        self.owed: dict[Holder, int] = {}
        self.owed_bytes = 0
        self.parts = 0
        self.place: Place | None = None

    def append(  # noqa: PLR0913 - the events and their metadata
        self,
        events: Sequence[KnownEvent],
        loaded: LoadedConversation,
        command: Command,
        side: Side | None = None,
        params: Mutation | None = None,
        decision: Decision = NOTHING,
    ) -> Generator[None, None, Sequence[KnownEvent]]:
        """Apply one group of events to a conversation's state, and add their records. Yields between events.

        The first event makes the conversation dirty, so no read sees its incomplete state.

        Args:
            side: Metadata to store with the group.
            params: The call that produced the events. If given, its follow-up events are appended too.
            decision: For an undo, the decision with the calls that the group undoes.

        Returns:
            All events of the group, including follow-ups.
        """
        if not events:
            return events
        state, at, owner = loaded.state, command.at, loaded.state.user
        name = state.conversation
        # A deletion clears the title.
        shown_name = loaded.shown_name if type(events[-1]) is ConversationDeleted else ""
        titles: list[str] = []
        if name not in self.touched:
            self.touched[name] = loaded
            loaded.dirty += 1
        for event in events:
            if event is not events[0]:
                yield
            self.head = loaded.seq = self.head + 1
            titles.append(_apply(state, event, self.head, at))
        applied = [*events]
        # Follow-ups depend on the new state. For example, these events may have made the list serial.
        for event in () if params is None else follow_up(state, params, events, loaded.present):
            yield
            self.head = loaded.seq = self.head + 1
            titles.append(_apply(state, event, self.head, at))
            applied.append(event)
        if (remaining := len(applied)) > 1:
            self.parts += remaining
        owner = state.user or owner  # opening a list sets its owner, and deletion clears it
        shown_name = loaded.shown_name if state.exists else shown_name
        call, first = 0, state.version - remaining + 1
        for event, title in zip(applied, titles, strict=True):
            if call:
                yield
            remaining -= 1
            is_deleted = type(event) is ConversationDeleted
            event_side = side
            if is_deleted:
                self.deleted.append(name)
                loaded.forget_replies()
                loaded.trail, loaded.tally = None, Tally()
                event_side = msgspec.structs.replace(side or _NO_SIDE, owner=owner) if owner else side
            elif type(event) is ConversationConfigured:
                self.sessions.append((name, event))
            if remaining:
                event_side = msgspec.structs.replace(event_side or _NO_SIDE, remaining=remaining)
            elif (place := self.place) is not None:
                event_side = msgspec.structs.replace(event_side or _NO_SIDE, position=place.position, chain=place.check)
            seq, version = self.head - remaining, state.version - remaining
            if loaded.tally is not None and not is_deleted:
                loaded.tally.add(at, version, seq, command.actor)
            undone = decision.touches, decision.reverts_to
            wire = _encode(_Wire(seq, name, version, at, command.actor, call, *undone, event))
            if loaded.trail is not None:
                loaded.trail.add(seq, command.actor, event, wire)
            line, loaded.check = seal(loaded.check, wire, event_side)
            self.entries.append(Sealed(name, version, line, "" if event_side is None else event_side.key, is_deleted))
            self.published.append(PublishedEvent(name, wire, remaining, owner, title, shown_name))
            # Only the first event carries the group's metadata.
            call, side, decision = first, None, NOTHING
        return applied


def _apply(state: State, event: KnownEvent, seq: int, at: int) -> str:
    """Apply an event, and return the title of its task: after the event or, if this deletes the task, before it."""
    name = task_id_of(event)
    before = state.tasks.get(name)
    evolve(state, event, seq, state.version + 1, at)
    task = state.tasks.get(name, before)
    return "" if task is None else task.title


class Transactor:
    """Adds calls to a transaction, one after another."""

    def __init__(  # noqa: PLR0913 - one collaborator for each aspect of a decision
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

    # Before a call's turn: load everything that the decision needs, because deciding doesn't wait.

    def prepare(self, items: Sequence[Item]) -> list[Item]:
        """Assign loaded conversations to calls, and return the calls that need `load`."""
        unprepared: list[Item] = []
        for item in items:
            if (type(item) is not Write and type(item) is not Read) or type(item.params) in _NEEDS_MORE:
                unprepared.append(item)
                continue
            loaded = self._access.find(item.caller.user, item.params.conversation)
            if loaded is None or (type(item) is Write and item.params.key is not None and not loaded.has_all_keys):
                unprepared.append(item)
            else:
                item.loaded, item.outcome = loaded, None
        return unprepared

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
                        item.loaded = await self._find_keyed_list(item, params.key, item.loaded)
                    if type(params) is ListUndo and item.loaded.damage is None:
                        if not await self._undos.decide(item, params, item.loaded):
                            item.loaded = None  # so that `decide` sends the call back to READING_PAST
                    elif type(params) is ConversationAttach:
                        await self._access.load(user, params.session)
            except Damaged as damaged:
                item.loaded, item.outcome = None, self._conversations.record_damage(damaged)

    async def _find_keyed_list(self, item: Write, key: str, loaded: LoadedConversation) -> LoadedConversation:
        """Return the list in which a call's key was used: `loaded`, or a list that the session has since left."""
        if loaded.has_all_keys:
            return loaded
        session, hashed = item.params.conversation, key_hash(key)
        candidates, seen = [loaded], {loaded.state.conversation}
        for candidate in candidates:  # the list grows during the loop
            name = candidate.state.conversation
            if candidate.keys is None:
                candidate.keys = set(await self._log.keys(name))
            if hashed in candidate.keys and (
                candidate is loaded or key in candidate.replies or await self._log.find_key(name, key)
            ):
                return candidate
            for former in candidate.state.origins.get(session, ()):
                origin = None if former in seen else await self._access.load(item.caller.user, former)
                if isinstance(origin, LoadedConversation):
                    candidates.append(origin)
                seen.add(former)
        return loaded

    # In turn

    def decide(self, item: Item, transaction: Transaction) -> Steps:
        """Add a call to the transaction: set its outcome or its next stage, and append its events."""
        if type(item) is Arrival:
            yield from self._append_arrival(item, transaction)
        if type(item) is not Write:
            return
        loaded, params, user = item.loaded, item.params, item.caller.user
        if loaded is not None and user is not None:
            # Check access again: an earlier call in this transaction may have opened the list for another user.
            item.outcome = check_access(user, params.conversation, loaded.state)
        if item.outcome is not None:
            item.to(Stage.DECIDED)
            self._claims.forget(item)
        elif loaded is None:
            item.to(Stage.READING_PAST)
        elif params.key is not None and self._handle_key(item, params.key, loaded):
            pass
        elif loaded.lane is not None and loaded.damage is None:
            item.to(Stage.POSTING)
        elif (decision := (yield from self.consider(item, loaded))) is None:
            item.to(Stage.PARKED)
        else:
            item.to(Stage.DECIDED)
            if type(decision) is Rejection:
                item.outcome = self._mask_not_found(item, loaded, decision)
            else:
                yield from self._record(item, decision, loaded, transaction)

    def consider(self, item: Write, loaded: LoadedConversation) -> Generator[None, None, Decision | Rejection | None]:
        """Decide a call without changing the state. Return None if it is a claim that has to wait."""
        state, params = loaded.state, item.params
        if self._log.damaged and state.conversation in self._log.damaged:
            # A reader of the log found damage. Reject changes to the loaded conversation too.
            self._conversations.record_damage(self._log.damaged[state.conversation])
        decision: Decision | Rejection | None = loaded.damage
        if decision is None and not state.exists and item.caller.user is None:
            decision = self._check_name(state)
        if decision is None:
            try:
                if params.turn is not None:
                    decision = check_turn(state, params, params.turn)
                if decision is None and (state.claims or state.settings.rate_limit or type(params) in _CHECKED_FIRST):
                    decision = self._check_preconditions(item, loaded)
                if decision is None:
                    for part in decide(state, item.command):
                        if decision is not None:
                            yield
                        decision = part
                if type(decision) is Rejection:
                    decision = self._claims.explain(state, decision)
                elif type(params) in _CONFIRMABLE:
                    # Check this last, so that no person is asked to confirm a call that is then rejected.
                    lane, check = loaded.lane, self._confirmer.check
                    audience = None if lane is None else lane.audience
                    question = check(item.method.name, params, state, item.caller, item.command.at, audience)
                    decision = question or decision
            except MemoryError:  # claims and tokens may be only partly recorded: let the daemon exit
                raise
            except Exception:
                decision = _log_fault(item)
        assert decision is not None, "a command has at least one part"
        return self._claims.finish_or_park(item, params, state, decision) if type(params) is TaskClaim else decision

    def answer(self, item: Read, transaction: Transaction) -> bool:
        """Set a read's outcome if it can be answered now.

        Returns:
            Whether the outcome may be sent immediately, because the state that it is based on is in the log.
        """
        loaded, user = item.loaded, item.caller.user
        if loaded is not None and user is not None:
            # Check access again, as for writes.
            item.outcome = check_access(user, item.params.conversation, loaded.state)
        lane = None if loaded is None else loaded.lane
        if lane is not None and item.lane is not lane:
            # The lane may hold earlier writes of the same connection, which the read must see.
            item.lane = lane
            return False
        item.lane = None
        return loaded is not None and item.outcome is None and self._answer_read(item, loaded, transaction)

    def _append_arrival(self, arrival: Arrival, transaction: Transaction) -> Steps:
        """Append the groups of a post, and set the outcomes of its calls."""
        loaded = arrival.loaded
        assert loaded is not None, "it was prepared"
        state = loaded.state
        if loaded.damage is not None or loaded.place != arrival.previous:
            arrival.refusal = loaded.damage or OVERTAKEN
            return
        last = next((step for step in reversed(arrival.steps) if step.events), None)
        if last is not None and state.version < arrival.first - 1:
            # Only a tombstone skips versions, because the events before it are erased.
            state.version = arrival.first - 1
        for step in arrival.steps:
            write, had_claims = step.write, bool(state.claims)
            if write is not None:
                write.to(Stage.PARKED if step.parked else Stage.DECIDED)
                if step.parked:
                    continue
                if step.refusal is not None:
                    write.outcome = self._mask_not_found(write, loaded, step.refusal)
                    self._claims.forget(write)
                    continue
            transaction.place = arrival.place if step is last else None
            command = Command(_NO_PARAMS, step.at, step.actor)
            events = yield from transaction.append(step.events, loaded, command, step.side, None, step.decision)
            if write is not None:
                self._finish(write, step.decision, loaded, transaction, events, had_claims=had_claims)
                continue
            self._update_timers(state, events)
            if had_claims or state.claims:
                self._claims.observe_arrival(state, events)
            if step.side is not None and step.side.key and loaded.keys is not None:
                loaded.keys.add(key_hash(step.side.key))
        transaction.place = None
        loaded.place = arrival.place

    def _answer_read(self, item: Read, loaded: LoadedConversation, transaction: Transaction) -> bool:
        """Answer a read from the state, unless too many bytes already wait for its connection or the commit."""
        holder, owed = item.caller.holder, transaction.owed
        if holder is not None and owed.get(holder, 0) + holder.unsent_bytes >= REPLY_BYTES:
            return False
        if transaction.owed_bytes >= MAX_OWED_BYTES:
            return False
        try:
            item.outcome = self._mask_not_found(item, loaded, item.query(item.params, loaded, transaction.head))
        except Exception:
            item.outcome = _log_fault(item)
        if loaded.dirty and holder is not None:
            owed[holder] = owed.get(holder, 0) + (size := size_of(item.outcome))
            transaction.owed_bytes += size
        return not loaded.dirty

    def _mask_not_found(self, item: Write | Read, loaded: LoadedConversation, outcome: Outcome) -> Outcome:
        """Return the outcome. In a list that doesn't exist, every missing item gets the same error.

        Otherwise a user could distinguish an unused name from the name of another user's list.
        """
        user, name = item.caller.user, item.params.conversation
        is_missing = type(outcome) is Rejection and outcome.kind == "not_found" and not loaded.state.exists
        return conversation_not_found(name) if is_missing and user and not self._access.is_own(user, name) else outcome

    def _handle_key(self, item: Write, key: str, loaded: LoadedConversation) -> bool:
        """Return True if the call's key was used before. If so, set the call's outcome or send it to REPLAYING."""
        item.fingerprint = item.legacy_fingerprint = fingerprint(item.method.name, item.params)
        if item.params.conversation != (id := loaded.state.conversation):
            item.fingerprint = fingerprint(item.method.name, msgspec.structs.replace(item.params, conversation=id))
        if (reply := loaded.replies.get(key)) is not None:
            is_retry = reply[0] == item.fingerprint
            item.to(Stage.DECIDED)
            item.outcome = reply[1] if is_retry else key_conflict(key)
            self._claims.forget(item)
            if is_retry and type(item.params) is TaskClaim:
                self._claims.observe_repeat(item, loaded.state, reply[1])
            return True
        if item.key_is_new or loaded.keys is None or key_hash(key) not in loaded.keys:
            return False
        item.to(Stage.REPLAYING)
        return True

    def _check_name(self, state: State) -> Rejection | None:
        """Reject a change that would create a list under a short name that other lists share."""
        names = self._access.short_names.sharing(state.conversation)
        return ambiguous_name(state.conversation, names) if names else None

    def _check_preconditions(self, item: Write, loaded: LoadedConversation) -> Decision | Rejection | None:
        """Return the outcome of a call that a claim, a name or a rate limit prevents, else None."""
        state, params = loaded.state, item.params
        decision = self._claims.admit(item, state)
        if decision is None and type(params) is ConversationAttach:
            decision = self._check_session(item, params) or self._check_move(item, params, loaded)
        if decision is None and state.settings.rate_limit:
            decision = self._rates.check(state, params, item.command.actor)
        return decision

    def _check_session(self, item: Write, params: ConversationAttach) -> Rejection | None:
        """Reject a session id that is also the name of a list.

        Only names that the user may see are checked, because a rejection would reveal another user's names.
        """
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
        message = f"{session} is the id of a conversation; a session needs its own id."
        return Rejection("invalid_params", message, {"field": "session"})

    def _check_move(self, item: Write, params: ConversationAttach, target: LoadedConversation) -> Rejection | None:
        """Reject a move from or to a shared list, because two lists would have to change in one post."""
        name, shared = target.state.conversation, self._conversations.lanes
        if not shared:
            return None
        for holder in self._access.holders(item.caller.user, params.session, target):
            former = holder.state.conversation
            if former != name and (former in shared or name in shared):
                message = (
                    f"{params.session} is attached to {former}: detach it there first, since machines share a list."
                )
                return Rejection("invalid_params", message, {"field": "session"})
        return None

    def _record(self, item: Write, decision: Decision, loaded: LoadedConversation, transaction: Transaction) -> Steps:
        """Append a decision's events, and set the call's outcome."""
        params, events, key = item.params, decision.events, item.params.key
        if type(params) is ConversationAttach:
            former = yield from self._detach(params.session, loaded, item.command, transaction)
            if former is not None:
                events = tuple(
                    msgspec.structs.replace(event, moved_from=former)
                    if isinstance(event, ConversationConfigured)
                    else event
                    for event in events
                )
        had_claims = bool(loaded.state.claims)
        side = (
            None if key is None and not decision.undoes else Side(key or "", item.fingerprint, undoes=decision.undoes)
        )
        appended = yield from transaction.append(events, loaded, item.command, side, params, decision)
        self._finish(item, decision, loaded, transaction, appended, had_claims=had_claims)

    def _update_timers(
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

    def _finish(  # noqa: PLR0913 - a call and its result
        self,
        item: Write,
        decision: Decision,
        loaded: LoadedConversation,
        transaction: Transaction,
        events: Sequence[KnownEvent],
        *,
        had_claims: bool,
    ) -> None:
        """Set a recorded call's outcome, and update everything that depends on its events."""
        params, state, holder = item.params, loaded.state, item.caller.holder
        self._update_timers(state, events, undone=type(params) is ListUndo, by=holder)
        if holder is not None and item.command.actor != ANONYMOUS:
            self._claims.agents.record_call(item.caller.user, item.command.actor, state.conversation)
        if had_claims or state.claims:  # an undo may restore a claim that has ended
            self._claims.observe(item, state, events)
        try:
            answer: Written = respond(params, state, events, transaction.head, decision, item.command.actor)
            turn = None if params.turn is None else build_turn(params.turn, loaded, answer.seq, answer)
        except Exception:
            item.outcome = _log_fault(item)
            return
        answer = _add_lease_times(answer, loaded) if state.running or state.reserved else answer
        reply = _encode(answer)
        item.outcome = reply if turn is None else _encode(msgspec.structs.replace(answer, turn=turn))
        if params.key is not None:
            # Without the turn, which is longer than the rest and soon outdated.
            loaded.remember(params.key, item.fingerprint, reply)
            if events and loaded.keys is not None:
                loaded.keys.add(key_hash(params.key))

    def _detach(
        self, session: str, target: LoadedConversation, command: Command, transaction: Transaction
    ) -> Generator[None, None, str | None]:
        """Detach a session from every list except `target`, with an event in each of them.

        Returns:
            The list that the session leaves, if that has the same owner as `target`. Other owners must not learn its
            name.
        """
        owner = target.state.user if target.state.exists else command.user or ""
        former: str | None = None
        for holder in self._access.holders(command.user, session, target):
            former = holder.state.conversation if holder.state.user == owner else former
            yield from transaction.append((ConversationConfigured(detached=session),), holder, command)
        return former


_NO_SIDE = Side()
_NO_PARAMS = Mutation(conversation="")
OVERTAKEN = Rejection("version_conflict", "Another post came first.")
"""The post was decided at a position other than the local replica's. Internal: no client sees this rejection."""

_NEEDS_MORE = frozenset({ListUndo, ConversationAttach})
"""Calls that also need the conversation's history or the session's current list, not only the conversation's state."""

_LIST_MEMBERS = (
    "blocks",
    "blocked_by",
    "add_blocks",
    "add_blocked_by",
    "remove_blocks",
    "remove_blocked_by",
    "notes",
    "tasks",
)
"""Members of a change that can produce an event for each of their entries."""


def _count_list_members(change: Any) -> int:
    return sum(len(getattr(change, name, ())) for name in _LIST_MEMBERS)


def _add_list_members(parts: int, changes: Sequence[Any]) -> int:
    return parts if parts > MAX_PARTS else parts + sum(map(_count_list_members, changes))


PARTS: dict[type, Callable[[Any, State], int]] = {
    ListApply: lambda params, state: _add_list_members(len(params.changes) + len(state.tasks), params.changes),
    ListReplace: lambda params, state: _add_list_members(len(params.tasks) + len(state.tasks), params.tasks),
    TaskAddMany: lambda params, state: _add_list_members(
        len(params.tasks) + params.keep_equal * len(state.tasks), params.tasks
    ),
    TaskAdd: lambda params, _: len(params.blocks),
    TaskEdit: lambda params, _: _count_list_members(params),
    TaskDelete: lambda params, _: len(params.tasks),
    EndClaims: lambda params, _: 2 * len(params.claims),
    EndReservations: lambda _, state: 2 * (sum(map(len, state.reserved.values())) + len(state.running)),
    Wake: lambda _, state: len(state.deferred),
}
"""Functions that count a call's parts: its entries, and the tasks it has to scan.

Calls not listed here have no parts.
"""

_CHECKED_FIRST = CLAIMS | {ConversationAttach}
"""Calls that always go through `_check_preconditions`."""

_CONFIRMABLE = frozenset(Confirmable.__subclasses__())
_WITH_LEASES = (ClaimResult, TaskResult)


def _add_lease_times(answer: Written, loaded: LoadedConversation) -> Written:
    if not isinstance(answer, _WITH_LEASES):
        return answer
    if isinstance(answer, ClaimResult) and answer.tasks:
        tasks = tuple(loaded.add_claim_details([*answer.tasks]))
        return msgspec.structs.replace(answer, task=tasks[0], tasks=tasks)
    if answer.task is not None:
        return msgspec.structs.replace(answer, task=loaded.add_claim_details([answer.task])[0])
    return answer


def _log_fault(item: Write | Read) -> Rejection:
    """Log the current exception, and return the outcome of this call. Other calls are not affected."""
    logger.exception("%s failed", item.method.name)
    return INTERNAL_ERROR


_encode = msgspec.json.Encoder().encode
