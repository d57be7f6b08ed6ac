"""The answer to a repeated idempotency key, long after the first: rebuilt from the log, since nothing else is kept."""

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import KnownEvent, UnknownEvent
from punchlistd.domain.evolve import evolve
from punchlistd.domain.outcome import outcome
from punchlistd.domain.state import initial_state
from punchlistd.engine.calls import Write, key_conflict
from punchlistd.engine.facts import fact_of
from punchlistd.engine.registry import Registry
from punchlistd.engine.scope import out_of_scope
from punchlistd.store.port import EventLog, side_of


async def rebuild(log: EventLog, registry: Registry, item: Write) -> bytes | Rejection | None:
    """The first answer of the item's key; None if the log does not know the key after all."""
    key = item.params.key
    assert key is not None, "only keyed calls are repeated"
    opened = await registry.load(item.params.conversation)
    name = opened.state.conversation
    if (refused := out_of_scope(item.caller, opened.state)) is not None:
        return refused
    group = await log.find_key(name, key)
    if not group:
        return None
    if side_of(group[0]).call != item.call:
        return key_conflict(key)
    last = group[-1].version
    state, events, seq = initial_state(name), list[KnownEvent](), group[-1].seq
    for stored in await log.read(0, 1 << 60, conversation=name, max_bytes=1 << 60):
        if stored.version > last:
            break
        fact = fact_of(stored)
        evolve(state, fact.event, fact.seq, fact.version, fact.at)
        if fact.version >= group[0].version and not isinstance(fact.event, UnknownEvent):
            events.append(fact.event)
    return msgspec.json.encode(outcome(item.params, state, events, seq))
