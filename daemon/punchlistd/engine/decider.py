"""Deciding a batch: what it needs is loaded, then each call is decided on the state that the calls before it made.

Nothing is visible outside before the batch is in the log: the touched conversations are dirty until the writer says so.
"""

import logging
from collections.abc import Iterable, Sequence

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import (
    AnyEvent,
    Claimed,
    ConversationConfigured,
    ConversationDeleted,
    Deleted,
    KnownEvent,
    ListCleared,
    Released,
    StatusChanged,
)
from punchlist_schemas.params import Confirmable, ConversationAttach, ListUndo, Mutation, TaskClaim, TaskRenew
from punchlist_schemas.results import ClaimResult, TaskResult, Written
from punchlistd.domain.commands import Command, Decision, EndClaims
from punchlistd.domain.decide import decide, follow_up
from punchlistd.domain.decide.claim import may_come
from punchlistd.domain.evolve import evolve
from punchlistd.domain.outcome import outcome
from punchlistd.domain.refusals import conversation_not_found
from punchlistd.domain.state import State
from punchlistd.engine.access import refused
from punchlistd.engine.calls import (
    INTERNAL_ERROR,
    REPLY_BYTES,
    Holder,
    Item,
    Outcome,
    Read,
    Write,
    fingerprint,
    key_conflict,
    size_of,
)
from punchlistd.engine.confirm import Confirmer
from punchlistd.engine.fanout import Line
from punchlistd.engine.idle import Idle
from punchlistd.engine.leases import Leases
from punchlistd.engine.reads import state_read
from punchlistd.engine.registry import Open, Registry
from punchlistd.engine.undos import Undos
from punchlistd.engine.waiters import Waiters
from punchlistd.store.port import Damaged, EventLog, Sealed, Side
from punchlistd.store.record import key_hash, seal

logger = logging.getLogger(__name__)


class _Wire(msgspec.Struct, frozen=True, gc=False):
    """An event in its place, as it is stored and pushed."""

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    event: AnyEvent


class Batch:
    """What one group commit is made of.

    `head` is the position of the last event in it; `entries` go into the log, `lines` to the subscribers; `touched` are
    the conversations that run ahead of the log, `sessions` the attachments that change with it, and `deleted` the
    conversations to be erased behind it. `owed` are the bytes of answers to reads that wait for it, by connection.
    """

    __slots__ = ("deleted", "entries", "head", "items", "lines", "owed", "sessions", "touched")

    def __init__(self, head: int) -> None:
        """An empty batch that follows position `head`."""
        self.head = head
        self.items: list[Item] = []
        self.entries: list[Sealed] = []
        self.lines: list[Line] = []
        self.touched: dict[str, Open] = {}
        self.sessions: list[tuple[str, ConversationConfigured]] = []
        self.deleted: list[str] = []
        self.owed: dict[Holder, int] = {}


class Decider:
    """Turns calls into events, one after the other.

    Args:
        log: for the keys that were used before.
        registry: the conversations in use.
        confirmer: gives and takes confirmation tokens.
        leases: the time of claims.
        waiters: the claims that wait.
        idle: the finished lists that are going to be cleared.
    """

    def __init__(
        self,
        log: EventLog,
        registry: Registry,
        confirmer: Confirmer,
        *,
        leases: Leases,
        waiters: Waiters,
        idle: Idle,
    ) -> None:
        """A decider over what the daemon has."""
        self.undos = Undos(registry)
        """Works out what an undo takes back."""
        self._leases = leases
        self._idle = idle
        self._waiters = waiters
        self._log = log
        self._access = registry.access
        self._registry = registry
        self.confirmer = confirmer

    async def prepare(self, items: Sequence[Item]) -> None:
        """Load what these calls need, so that deciding never waits."""
        for item in items:
            if type(item) is Read and item.run is not None:
                continue
            user, name = item.caller.user, item.params.conversation
            try:
                opened = self._access.find(user, name) or await self._access.load(user, name)
                item.opened, item.outcome = (opened, None) if isinstance(opened, Open) else (None, opened)
                if item.opened is None:
                    continue
                if type(item) is Write and (item.params.key is not None or type(item.params) in _PREPARED):
                    await self._prepare_write(item, item.opened)
            except Damaged as damaged:
                item.opened, item.outcome = None, self._registry.refusal(damaged)

    async def _prepare_write(self, item: Write, opened: Open) -> None:
        name, params = opened.state.conversation, item.params
        if params.key is not None and opened.keys is None:
            opened.keys = set(await self._log.keys(name))
        if type(params) is ListUndo and opened.damage is None:
            item.again = not await self.undos.decide(item, params, opened)
            item.opened = None if item.again else opened
        elif type(params) is ConversationAttach:
            await self._access.load(item.caller.user, params.session)

    def decide(self, item: Item, batch: Batch) -> bool:
        """Set the item's outcome and add its events to the batch; where that stays None it is answered otherwise.

        Returns:
            Whether the outcome holds already: it rests on nothing that is not in the log yet.
        """
        opened = item.opened
        if opened is not None and item.caller.user is not None:
            # Again: a call before it in the batch may have opened it for somebody else.
            item.outcome = refused(item.caller.user, item.params.conversation, opened.state)
        if item.outcome is not None:
            if type(item) is Write:
                self._waiters.forget(item)
            return False
        if opened is None:
            return False  # a read that has something to run, or an undo that has to look back farther
        if type(item) is Read:
            return self._look_up(item, opened, batch)
        if item.params.key is None or not self._known(item, item.params.key, opened):
            decision: Decision | Rejection | None = self._decision(item, opened)
            if type(item.params) is TaskClaim:
                decision = self._claim(item, item.params, decision, opened)
            if decision is None:
                item.parked = True
            elif type(decision) is Rejection:
                item.outcome = self._alike(item, opened, decision)
            else:
                self._record(item, decision, opened, batch)
        return False

    def _alike(self, item: Item, opened: Open, outcome: Outcome) -> Outcome:
        """The outcome; of a conversation that is not there nothing can be missing, whosever the name may be."""
        user, name = item.caller.user, item.params.conversation
        missing = type(outcome) is Rejection and outcome.kind == "not_found" and not opened.state.exists
        return conversation_not_found(name) if missing and user and not self._access.is_own(user, name) else outcome

    def _look_up(self, item: Read, opened: Open, batch: Batch) -> bool:
        """Answer a read from the state, unless so many bytes wait for its connection that it has to take them first."""
        holder = item.caller.holder
        if holder is not None and batch.owed.get(holder, 0) + holder.unsent_bytes >= REPLY_BYTES:
            return False
        try:
            read = state_read(item.method, item.params)
            assert read is not None, "what needs more than the state has something to run"
            item.outcome = self._alike(item, opened, read(item.params, opened, batch.head))
        except Exception:
            item.outcome = _fault(item)
        if opened.dirty and holder is not None:  # the answer waits for the commit
            batch.owed[holder] = batch.owed.get(holder, 0) + size_of(item.outcome)
        return not opened.dirty

    def _known(self, item: Write, key: str, opened: Open) -> bool:
        """Whether the item's key was used before; its outcome is set, or to be rebuilt from the log."""
        item.call = item.asked = fingerprint(item.method.name, item.params)
        if item.params.conversation != (id := opened.state.conversation):
            item.call = fingerprint(item.method.name, msgspec.structs.replace(item.params, conversation=id))
        if (kept := opened.replies.get(key)) is not None:
            item.outcome = kept[1] if kept[0] == item.call else key_conflict(key)
            if isinstance(item.params, TaskClaim) and kept[0] == item.call:
                self._leases.rejoin(opened.state, kept[1], item.caller.holder)
            return True
        item.repeat = not item.fresh and opened.keys is not None and key_hash(key) in opened.keys
        return item.repeat

    def _decision(self, item: Write, opened: Open) -> Decision | Rejection:
        state, params = opened.state, item.params
        if self._log.spoiled and state.conversation in self._log.spoiled:  # whoever has come upon it
            self._registry.refusal(self._log.spoiled[state.conversation])
        if opened.damage is not None:
            return opened.damage
        try:
            decision = self._foreseen(item, state) if state.claims or type(params) in _FORESEEN else None
            if decision is None:
                decision = decide(state, item.command)
            if type(decision) is Rejection:
                return self._leases.told(state, decision)
            if type(params) in _CONFIRMABLE:
                # Last: nobody should confirm what is refused afterwards.
                asked = self.confirmer.check(item.method.name, params, state, item.caller, item.command.at)
                return asked or decision
            return decision
        except Exception:
            return _fault(item)

    def _foreseen(self, item: Write, state: State) -> Decision | Rejection | None:
        """What the claims and sessions of others say to a call, before it is decided."""
        params = item.params
        if type(params) is EndClaims:
            item.command = msgspec.structs.replace(item.command, params=self._leases.due(params))
        elif type(params) is TaskClaim:
            if (unwanted := self._waiters.given_up(item)) is not None:
                return unwanted
            if self._waiters.yields(state, item, params):
                return Decision()
        elif type(params) is ConversationAttach:
            return self._session_refusal(item, params)
        elif state.claims:
            return self._leases.refusal(state, params, item.command, item.caller.holder)
        return None

    def _claim(
        self, item: Write, params: TaskClaim, decision: Decision | Rejection, opened: Open
    ) -> Decision | Rejection | None:
        """What becomes of a claim; None if it found nothing and waits."""
        if type(decision) is Rejection:
            in_vain = params.wait_ms > 0 and may_come(decision)
        else:
            in_vain = not decision.events
        if in_vain and self._waiters.waits(item, params):
            self._waiters.join(opened.state, item, params)
            return None
        self._waiters.forget(item)
        return Decision() if in_vain else decision

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
        said = f"{session} is a conversation itself: a session needs an id of its own."
        return Rejection("invalid_params", said, {"field": "session"})

    def _record(self, item: Write, decision: Decision, opened: Open, batch: Batch) -> None:
        command, params, events = item.command, item.params, decision.events
        if type(params) is ConversationAttach:
            self._detach_first(params.session, opened, command, batch)
        key, side = params.key, None
        if key is not None or decision.undoes:
            side = Side(key or "", item.call, undoes=decision.undoes)
        events = self._append(events, opened, command, side, batch, params)
        if events and opened.state.settings.auto_clear == "idle":
            self._idle.follow(opened.state, undone=type(params) is ListUndo)
        held = self._leases.of(opened.state.conversation)
        if held or type(params) is TaskClaim:
            self._follow_claims(item, opened.state, events)
        try:
            answer: Written = outcome(params, opened.state, events, batch.head, decision.lines, command.actor)
        except Exception:
            item.outcome = _fault(item)
            return
        item.outcome = _encode(_timed(answer, opened) if opened.state.claims else answer)
        if key is not None:
            opened.remember(key, item.call, item.outcome)
            if events and opened.keys is not None:
                opened.keys.add(key_hash(key))

    def _follow_claims(self, item: Write, state: State, events: Sequence[KnownEvent]) -> None:
        """Claims begin and end with these events; their time is kept from now on."""
        tasks = dict.fromkeys(event.task for event in events if isinstance(event, _TOUCH_CLAIMS))
        if tasks or isinstance(item.params, TaskRenew):
            self._leases.follow(state, item.params, item.caller.holder, tasks)
        if isinstance(item.params, TaskClaim):
            item.claims = tuple((task, state.claims[task].fence) for task in tasks if task in state.claims)
        elif any(isinstance(event, _END_CLAIMS) for event in events):
            self._leases.clear(state.conversation)

    def _detach_first(self, session: str, target: Open, command: Command, batch: Batch) -> None:
        """A session attached elsewhere moves: its old conversation says so in its own log."""
        for holder in self._access.holders(command.user, session, target):
            self._append((ConversationConfigured(detached=session),), holder, command, None, batch)

    def _append(  # noqa: PLR0913 - what a group of events is made of
        self,
        events: Sequence[KnownEvent],
        opened: Open,
        command: Command,
        side: Side | None,
        batch: Batch,
        params: Mutation | None = None,
    ) -> list[KnownEvent]:
        """Let the conversation's state run ahead by a group of events, and add it to the batch; all of the events.

        With `params`, the events that they gave are followed by what follows from them.
        """
        state = opened.state
        owner, version = state.user, state.version
        happened: list[KnownEvent] = []
        _happen(events, opened, command.at, batch, happened)
        if params is not None and (later := follow_up(state, params, events)):
            _happen(later, opened, command.at, batch, happened)
        if not happened:
            return happened
        owner = state.user or owner  # of an opened one and of a deleted one too
        name, seq, left = state.conversation, batch.head - len(happened), len(happened)
        for event in happened:
            left -= 1
            seq += 1
            version += 1
            if left:
                side = msgspec.structs.replace(side or _NO_SIDE, left=left)
            deleted = type(event) is ConversationDeleted
            if deleted and owner:
                side = msgspec.structs.replace(side or _NO_SIDE, owner=owner)
            wire = _encode(_Wire(seq, name, version, command.at, command.actor, event))
            line, opened.check = seal(opened.check, wire, side)
            batch.entries.append(Sealed(name, version, line, "" if side is None else side.key, deleted))
            batch.lines.append(Line(name, wire, left, owner))
            side = None
            if deleted:
                batch.deleted.append(name)
                opened.forget_replies()
            elif type(event) is ConversationConfigured:
                batch.sessions.append((name, event))
        if name not in batch.touched:
            batch.touched[name] = opened
            opened.dirty += 1
        return happened


def _happen(events: Iterable[KnownEvent], opened: Open, at: int, batch: Batch, happened: list[KnownEvent]) -> None:
    """Let events happen, each before the next one is asked for: some follow from what those before them did."""
    state = opened.state
    for event in events:
        batch.head = opened.seq = batch.head + 1
        evolve(state, event, batch.head, state.version + 1, at)
        happened.append(event)


_NO_SIDE = Side()
_CONFIRMABLE = frozenset(Confirmable.__subclasses__())
_PREPARED = frozenset({ListUndo, ConversationAttach})
_FORESEEN = frozenset({EndClaims, TaskClaim, ConversationAttach})
_END_CLAIMS = (ListCleared, ConversationDeleted)
_WITH_LEASES = (ClaimResult, TaskResult)
_TOUCH_CLAIMS = (Claimed, Released, StatusChanged, Deleted)


def _timed(answer: Written, opened: Open) -> Written:
    """The answer with the time that the lease of its task has left."""
    if not isinstance(answer, _WITH_LEASES):
        return answer
    if isinstance(answer, ClaimResult) and answer.tasks:
        tasks = tuple(opened.shown([*answer.tasks]))
        return msgspec.structs.replace(answer, task=tasks[0], tasks=tasks)
    if answer.task is not None:
        return msgspec.structs.replace(answer, task=opened.shown([answer.task])[0])
    return answer


def _fault(item: Item) -> Rejection:
    """A fault of ours in one call takes no other down with it."""
    logger.exception("%s failed", item.method.name)
    return INTERNAL_ERROR


_encode = msgspec.json.Encoder().encode
