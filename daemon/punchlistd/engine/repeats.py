"""The answer to a repeated idempotency key, long after the first: rebuilt from the log, since nothing else is kept."""

from collections.abc import Iterable

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, UnknownEvent
from punchlist_schemas.params import ListUndo
from punchlistd.domain.evolve import evolve
from punchlistd.domain.outcome import outcome
from punchlistd.domain.state import State, initial_state
from punchlistd.engine.calls import Write, key_conflict
from punchlistd.engine.facts import fact_of
from punchlistd.engine.registry import Registry
from punchlistd.store.port import Damaged, EventLog, Stored, side_of


async def rebuild(log: EventLog, registry: Registry, item: Write) -> bytes | Rejection | None:
    """The first answer of the item's key; None if the log does not know the key after all."""
    key = item.params.key
    assert key is not None, "only keyed calls are repeated"
    try:
        opened = await registry.access.load(item.caller.user, item.params.conversation)
        if isinstance(opened, Rejection):
            return opened
        name = opened.state.conversation
        group = await log.find_key(name, key)
        if not group:
            return None
        if side_of(group[0]).call not in (item.call, item.asked):
            return key_conflict(key)
        state, lines = initial_state(name), tuple[str, ...]()
        if isinstance(item.params, ListUndo):  # the same rules on the same history say the same again
            lines = (await registry.history.taken_back(name, item.params, item.command.at, group)).lines
        else:

            def take(stored: Stored) -> bool:
                is_before = stored.seq < group[0].seq
                if is_before:
                    _fold(state, (stored,))
                return is_before

            await registry.history.follow(name, take, 0, group[-1].seq)
    except Damaged as damaged:
        return registry.refusal(damaged)
    events = _fold(state, group)
    actor = fact_of(group[0]).actor
    return msgspec.json.encode(outcome(item.params, state, events, group[-1].seq, lines, actor))


def _fold(state: State, history: Iterable[Stored]) -> list[KnownEvent]:
    events: list[KnownEvent] = []
    for fact in map(fact_of, history):
        evolve(state, fact.event, fact.seq, fact.version, fact.at)
        if not isinstance(fact.event, UnknownEvent):
            events.append(fact.event)
    return events
