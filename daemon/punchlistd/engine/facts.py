"""From what the log keeps to what the domain folds."""

from collections.abc import Iterable

import msgspec

from punchlist_schemas.events import Recorded, decode_event
from punchlistd.domain.commands import Fact, Group
from punchlistd.store.port import Stored, side_of

_recorded = msgspec.json.Decoder(Recorded)


def fact_of(stored: Stored) -> Fact:
    """Decode one stored event."""
    recorded = _recorded.decode(stored.wire)
    return Fact(recorded.seq, recorded.version, recorded.at, recorded.actor, decode_event(recorded.event))


def groups_of(history: Iterable[Stored]) -> tuple[Group, ...]:
    """The calls that made these events, oldest first; an erased conversation's begin behind its tombstone."""
    groups: list[Group] = []
    facts: list[Fact] = []
    undoes: tuple[int, ...] = ()
    for stored in history:
        side = side_of(stored)
        undoes = undoes or side.undoes
        facts.append(fact_of(stored))
        if side.left == 0:
            groups.append(Group(tuple(facts), undoes))
            facts, undoes = [], ()
    return tuple(groups)
