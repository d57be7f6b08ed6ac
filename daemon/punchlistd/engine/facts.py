"""From what the log keeps to what the domain folds."""

import msgspec

from punchlist_schemas.events import Recorded, decode_event
from punchlistd.domain.commands import Fact
from punchlistd.store.port import Stored

_recorded = msgspec.json.Decoder(Recorded)


def fact_of(stored: Stored) -> Fact:
    """Decode one stored event."""
    recorded = _recorded.decode(stored.wire)
    return Fact(recorded.seq, recorded.version, recorded.at, recorded.actor, decode_event(recorded.event))
