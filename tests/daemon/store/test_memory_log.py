from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import CLEARED, Scribe
from punchlistd.store.port import EventLog


async def test_two_logs_share_nothing() -> None:
    one: EventLog = MemoryLog()
    other: EventLog = MemoryLog()
    await Scribe(one).write("a", CLEARED, key="k")
    assert one.epoch != other.epoch
    assert (one.head, other.head) == (1, 0) and await other.keys("a") == []


async def test_its_size_is_that_of_its_lines() -> None:
    log = MemoryLog()
    scribe = Scribe(log)
    await scribe.write("a", CLEARED)
    assert await log.sizes() == (len(scribe.lines[0]), 0)
