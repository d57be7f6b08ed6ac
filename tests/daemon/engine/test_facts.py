from punchlist_schemas.events import UnknownEvent
from punchlistd.engine.facts import fact_of
from punchlistd.store.port import Side, Stored
from punchlistd.store.record import seal


def test_an_event_of_a_later_version_is_kept_as_it_is() -> None:
    wire = b'{"seq":7,"conversation":"c","version":3,"at":1,"actor":"x","event":{"type":"Future","a":1}}'
    fact = fact_of(Stored(7, seal("", wire, Side())[0]))
    assert (fact.seq, fact.version, fact.actor) == (7, 3, "x")
    assert isinstance(fact.event, UnknownEvent) and bytes(fact.event.raw) == b'{"type":"Future","a":1}'
