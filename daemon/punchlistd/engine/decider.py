"""Deciding a batch: what it needs is loaded, then each call is decided on the state that the calls before it made.

Nothing is visible outside before the batch is in the log: the touched conversations are dirty until the writer says so.
"""

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import AnyEvent, ConversationConfigured
from punchlist_schemas.params import ConversationAttach, ConversationDetach, ListUndo
from punchlistd.domain.commands import Decision
from punchlistd.domain.decide import decide
from punchlistd.domain.evolve import evolve
from punchlistd.domain.outcome import outcome
from punchlistd.engine.calls import Item, Quiet, Read, Write, key_conflict
from punchlistd.engine.confirm import Confirmer
from punchlistd.engine.facts import groups_of
from punchlistd.engine.fanout import Line
from punchlistd.engine.reads import read_state
from punchlistd.engine.registry import Open, Registry
from punchlistd.engine.scope import out_of_scope
from punchlistd.store.port import EventLog, Sealed, Side
from punchlistd.store.record import key_hash, seal


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
    the conversations that run ahead of the log, and `sessions` the attachments that change with it.
    """

    __slots__ = ("entries", "head", "items", "lines", "sessions", "touched")

    def __init__(self, head: int) -> None:
        """An empty batch that follows position `head`."""
        self.head = head
        self.items: list[Item] = []
        self.entries: list[Sealed] = []
        self.lines: list[Line] = []
        self.touched: dict[str, Open] = {}
        self.sessions: list[tuple[str, ConversationConfigured]] = []


class Decider:
    """Turns calls into events, one after the other.

    Args:
        log: for what deciding has to know of the past: keys, and the history that an undo takes back.
        registry: the conversations in use.
        confirm_s: how long a confirmation token is valid, in seconds.
    """

    def __init__(self, log: EventLog, registry: Registry, confirm_s: float) -> None:
        """A decider over what the daemon has."""
        self._log = log
        self._registry = registry
        self._confirmer = Confirmer(confirm_s)

    async def prepare(self, items: list[Item]) -> list[Item]:
        """Load what the batch needs, so that deciding never waits."""
        registry, ready = self._registry, list[Item]()
        for item in items:
            params = item.params
            if isinstance(item, Read) and item.run is not None:
                ready.append(item)
                continue
            opened = registry.find(params.conversation) or await registry.load(params.conversation)
            if isinstance(item, Write):
                if item.params.key is not None and opened.keys is None:
                    opened.keys = set(await self._log.keys(opened.state.conversation))
                if type(params) is ListUndo:
                    history = await self._log.read(
                        0, 1 << 60, conversation=opened.state.conversation, max_bytes=1 << 60
                    )
                    item.command = msgspec.structs.replace(item.command, history=groups_of(history))
                elif type(params) is ConversationAttach:
                    ready.extend(await self._detach_first(item, params, opened))
            ready.append(item)
        return ready

    async def _detach_first(self, item: Write, params: ConversationAttach, target: Open) -> list[Item]:
        """A session attached elsewhere moves: its old conversation says so in its own log."""
        holder = await self._registry.load(params.session)
        name = holder.state.conversation
        if holder is target or params.session not in holder.state.sessions:
            return []
        detach = ConversationDetach(conversation=name, session=params.session)
        command = msgspec.structs.replace(item.command, params=detach)
        return [Write(Quiet(item.caller), None, item.method, detach, command)]

    def decide(self, item: Item, batch: Batch) -> bool:
        """Set the item's outcome and add its events to the batch; where that stays None it is answered otherwise.

        Returns:
            Whether the outcome holds already: it rests on nothing that is not in the log yet.
        """
        if isinstance(item, Read) and item.run is not None:
            return False
        opened = self._registry.find(item.params.conversation)
        assert opened is not None, "prepared"
        if isinstance(item, Read):
            item.outcome = read_state(item.method, item.params, opened, batch.head, item.caller)
            return not opened.dirty
        if not self._known(item, opened):
            decision = self._refusal(item, opened) or decide(opened.state, item.command)
            if isinstance(decision, Rejection):
                item.outcome = decision
            else:
                self._record(item, decision, opened, batch)
        return False

    def _known(self, item: Write, opened: Open) -> bool:
        """Whether the item's key was used before; its outcome is set, or to be rebuilt from the log."""
        key = item.params.key
        if key is None:
            return False
        if (kept := opened.replies.get(key)) is not None:
            item.outcome = kept[1] if kept[0] == item.call else key_conflict(key)
            return True
        item.repeat = not item.fresh and opened.keys is not None and key_hash(key) in opened.keys
        return item.repeat

    def _refusal(self, item: Write, opened: Open) -> Rejection | None:
        if opened.damage is not None:
            return opened.damage
        if (refused := out_of_scope(item.caller, opened.state)) is not None:
            return refused
        if isinstance(item.params, ConversationAttach) and self._is_conversation(item.params.session):
            return Rejection(
                "invalid_params",
                f"{item.params.session} is a conversation itself: a session needs an id of its own.",
                {"field": "session"},
            )
        return self._confirmer.check(item.params, opened.state, item.caller.confirm, item.command.at)

    def _is_conversation(self, name: str) -> bool:
        found = self._registry.open.get(name)
        return found is not None and found.state.exists

    def _record(self, item: Write, decision: Decision, opened: Open, batch: Batch) -> None:
        state, command, events = opened.state, item.command, decision.events
        seq, version = batch.head, state.version
        side = Side(item.params.key or "", item.call, len(events) - 1, decision.undoes)
        for index, event in enumerate(events):
            seq += 1
            version += 1
            wire = _encode(_Wire(seq, state.conversation, version, command.at, command.actor, event))
            if index:
                side = Side(left=len(events) - 1 - index)
            line, opened.check = seal(opened.check, wire, side)
            batch.entries.append(Sealed(state.conversation, version, line, side.key))
            batch.lines.append(Line(state.conversation, wire, side.left))
            evolve(state, event, seq, version, command.at)
            if type(event) is ConversationConfigured:
                batch.sessions.append((state.conversation, event))
        if events:
            batch.head = opened.seq = seq
            if state.conversation not in batch.touched:
                batch.touched[state.conversation] = opened
                opened.dirty += 1
        item.outcome = _encode(outcome(item.params, state, events, seq, decision.lines, command.actor))
        if (key := item.params.key) is not None:
            opened.remember(key, item.call, item.outcome)
            if events and opened.keys is not None:
                opened.keys.add(key_hash(key))


_encode = msgspec.json.Encoder().encode
