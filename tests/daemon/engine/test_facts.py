from punchlist_schemas.events import TaskAdded, UnknownEvent
from punchlist_testing.engine import Peer, TouchyLog
from punchlistd.engine.facts import fact_of, groups_of
from punchlistd.store.port import Side, Stored
from punchlistd.store.record import seal


async def test_groups_are_the_calls_that_were_made(peer: Peer, log: TouchyLog) -> None:
    await peer.result("task.add_many", conversation="c", tasks=[{"title": "a"}, {"title": "b"}])
    await peer.result("task.add", conversation="c", title="c")
    await peer.result("list.undo", conversation="c")
    groups = groups_of(await log.read(0, 100))
    assert [[fact.version for fact in group.facts] for group in groups] == [[1, 2, 3], [4], [5]]
    assert [group.undoes for group in groups] == [(), (), (4,)]
    assert isinstance(groups[0].facts[1].event, TaskAdded)


def test_an_event_of_a_later_version_is_kept_as_it_is() -> None:
    wire = b'{"seq":7,"conversation":"c","version":3,"at":1,"actor":"x","event":{"type":"Future","a":1}}'
    fact = fact_of(Stored(7, seal("", wire, Side())[0]))
    assert (fact.seq, fact.version, fact.actor) == (7, 3, "x")
    assert isinstance(fact.event, UnknownEvent) and bytes(fact.event.raw) == b'{"type":"Future","a":1}'
