import pytest

from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import Scribe, said
from punchlistd.engine.history import history
from punchlistd.store.port import Damaged, Stored


class Cut(MemoryLog):
    """A log that gives one event at a time, and none behind a position."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    async def read(
        self, after: int, limit: int, *, conversation: str | None = None, max_bytes: int = 1 << 20
    ) -> list[Stored]:
        found = await super().read(after, 1, conversation=conversation, max_bytes=max_bytes)
        return [stored for stored in found if stored.seq <= self.last]


async def test_an_answer_that_ends_early_is_asked_on_and_what_is_missing_is_damage() -> None:
    log = Cut(7)
    scribe = Scribe(log)
    for number in range(5):
        await scribe.write("a", said(str(number)))
        await scribe.write("b", said(str(number)))
    assert [stored.seq for stored in await history(log, "a", 7)] == [1, 3, 5, 7]
    assert [stored.seq for stored in await history(log, "a", 7, after=3)] == [5, 7]
    assert await history(log, "a", 0) == []
    with pytest.raises(Damaged, match="behind 7 are missing"):
        await history(log, "a", 9)
