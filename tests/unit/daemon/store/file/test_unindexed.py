from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import CLEARED, DELETED, Scribe, said
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Stored


def test_replayed_events_are_indexed_like_appended_ones() -> None:
    scribe = Scribe(MemoryLog())
    batches = [
        [*scribe.group("a", CLEARED, said('"ConversationDeleted"}}'), key="k"), *scribe.group("b", DELETED, after=2)],
        scribe.group("a", DELETED, after=3, key="k2"),
        scribe.group("a", CLEARED, after=4, key="k"),
    ]
    appended, read_back = Unindexed(), Unindexed()
    first = 1
    for batch in batches:
        last = first + len(batch) - 1
        appended.add(batch, first, last)
        read_back.add_stored([Stored(seq, entry.line) for seq, entry in enumerate(batch, first)], last)
        first = last + 1
    assert vars(appended) == vars(read_back)
    assert appended.rows == {"a": [3, 4, 5], "b": [3]}
    assert appended.keys == {"a": {"k": 5, "k2": 4}}
    assert appended.tombstones == {"a": 4, "b": 3}
