"""Idempotency keys: fingerprints of calls, and original responses rebuilt from the log."""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, UnknownEvent
from punchlist_schemas.params import ListUndo, Mutation
from punchlistd.domain.commands import Decision
from punchlistd.domain.evolve import evolve
from punchlistd.domain.responses import respond
from punchlistd.domain.state import State, initial_state
from punchlistd.engine.calls import Write
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.history import History, fact_of
from punchlistd.store.port import Damaged, EventLog, Stored, side_of


def fingerprint(method: str, params: Mutation) -> str:
    """Return a hash of a call's method and its params, without the key, the confirmation token and the turn.

    A caller that repeats the call after its own restart knows less about the list, and asks for another turn.
    """
    bare = msgspec.structs.replace(params, key=None, turn=None)
    if getattr(bare, "confirm", None) is not None:
        bare = msgspec.structs.replace(bare, confirm=None)
    text = method.encode() + msgspec.json.encode(bare, order="deterministic")
    return blake2b(text, digest_size=8).hexdigest()


def key_conflict(key: str) -> Rejection:
    return Rejection("key_conflict", "This idempotency key was used for another call. Use a new one.", {"key": key})


class Replays:
    """Rebuilds the original responses to repeated calls."""

    def __init__(self, log: EventLog, conversations: Conversations, access: Access, history: History) -> None:
        self._log = log
        self._conversations = conversations
        self._access = access
        self._history = history

    async def rebuild(self, item: Write) -> bytes | Rejection | None:
        """Return the original response for the call's key, or None if the key is not in the log."""
        key = item.params.key
        assert key is not None, "only keyed calls are repeated"
        try:
            # Load by id: the session may have left the list, so that its name now resolves to another one.
            target = item.params.conversation if item.loaded is None else item.loaded.state.conversation
            loaded = await self._access.load(item.caller.user, target)
            if isinstance(loaded, Rejection):
                return loaded
            name = loaded.state.conversation
            group = await self._log.find_key(name, key)
            if not group:
                return None
            if side_of(group[0]).call not in (item.fingerprint, item.legacy_fingerprint):
                return key_conflict(key)
            state, undo = initial_state(name), Decision()

            def take(stored: Stored) -> bool:
                is_before = stored.seq < group[0].seq
                if is_before:
                    _fold(state, (stored,))
                return is_before

            async with self._history.room(name):
                if isinstance(item.params, ListUndo):
                    # Undo is deterministic: on the history before the call, it produces the same decision again.
                    undo = await self._history.rebuild_undo(name, item.params, item.command.at, group)
                else:
                    await self._history.follow(name, take, 0, group[-1].seq)
        except Damaged as damaged:
            return self._conversations.record_damage(damaged)
        events = _fold(state, group)
        actor = fact_of(group[0]).actor
        return msgspec.json.encode(respond(item.params, state, events, group[-1].seq, undo, actor))


def _fold(state: State, history: Iterable[Stored]) -> list[KnownEvent]:
    events: list[KnownEvent] = []
    for fact in map(fact_of, history):
        evolve(state, fact.event, fact.seq, fact.version, fact.at)
        if not isinstance(fact.event, UnknownEvent):
            events.append(fact.event)
    return events
