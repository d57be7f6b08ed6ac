"""The contract of event logs, tested with every implementation."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Any

import anyio
import pytest

from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import CLEARED, DELETED, Scribe, said
from punchlistd.store.port import BadCursor, Damaged, EventLog, Sealed, Side, Stored, side_of
from punchlistd.store.record import key_hash
from punchlistd.store.sqlite import SqliteLog

NOTHING: list[Stored] = []


@pytest.fixture(params=["memory", "sqlite", "sqlite, indexed at once"])
async def scribe(request: pytest.FixtureRequest, path: str) -> AsyncIterator[Scribe]:
    log: EventLog = MemoryLog() if request.param == "memory" else await SqliteLog.open(path, reserve_bytes=0)
    yield IndexingScribe(log) if "indexed" in request.param else Scribe(log)
    await log.close()


class IndexingScribe(Scribe):
    """A scribe that updates the index after every commit, so that nothing is found through the unindexed tail."""

    async def append(self, entries: Sequence[Sealed]) -> None:
        await super().append(entries)
        await self.log.maintain([])


def seqs(events: list[Stored]) -> list[int]:
    return [stored.seq for stored in events]


async def test_new_log_is_empty_and_has_epoch(scribe: Scribe) -> None:
    log = scribe.log
    assert log.head == 0 and log.unindexed == 0 and len(log.epoch) == 16 and log.regressed is None
    assert await log.read(0, 10) == NOTHING
    assert not log.unindexed_conversations() and await log.unerased() == []
    loaded = await log.load("nobody")
    assert (loaded.state, loaded.version, loaded.seq, loaded.check, loaded.newer) == (None, 0, 0, "", NOTHING)
    assert await log.keys("nobody") == [] and await log.find_key("nobody", "k") == NOTHING
    assert (
        await log.resolve("s") == []
        and await log.owner("nobody") is None
        and await log.names("") == []
        and await log.totals() == (0, 0)
    )
    assert await log.list(limit=10) == ([], None)


async def test_appended_events_are_read_back_exactly(scribe: Scribe) -> None:
    await scribe.write("a", said("one"), said("two"), key="k1")
    await scribe.write_batch(("b", [CLEARED]), ("a", [said("three")]), ("c", [said("ü\t\n")]))
    events = await scribe.log.read(0, 100)
    assert [stored.line for stored in events] == scribe.lines
    assert seqs(events) == [1, 2, 3, 4, 5] == [scribe.log.head - 4 + n for n in range(5)]
    assert [(stored.conversation, stored.version) for stored in events] == [
        ("a", 1), ("a", 2), ("b", 1), ("a", 3), ("c", 1),
    ]  # fmt: skip
    assert side_of(events[0]) == Side(key="k1", remaining=1) and side_of(events[2]) == Side()
    assert events[3].check == scribe.checks["a"]
    assert events[4].wire.startswith(b'{"seq":5,"conversation":"c","version":1,')


async def test_empty_append_changes_nothing(scribe: Scribe) -> None:
    await scribe.log.append([])
    assert scribe.log.head == 0


async def test_read_continues_after_any_position(scribe: Scribe) -> None:
    for number in range(4):
        await scribe.write_batch(("a", [said(str(number))]), ("b", [CLEARED]), ("a", [CLEARED]))
    for after in range(13):
        assert seqs(await scribe.log.read(after, 100)) == list(range(after + 1, 13))
        own = [seq for seq in range(after + 1, 13) if seq % 3 != 2]
        assert seqs(await scribe.log.read(after, 100, conversation="a")) == own
    assert seqs(await scribe.log.read(4, 3)) == [5, 6, 7]
    assert seqs(await scribe.log.read(4, 3, conversation="a")) == [6, 7, 9]
    assert await scribe.log.read(0, 3, conversation="other") == NOTHING


async def test_groups_are_never_split(scribe: Scribe) -> None:
    await scribe.write_batch(("a", [CLEARED]), ("a", [said("x" * 500)] * 5), ("b", [CLEARED]))
    log = scribe.log
    assert seqs(await log.read(0, 1)) == [1]
    assert seqs(await log.read(0, 2)) == [1, 2, 3, 4, 5, 6]
    assert seqs(await log.read(1, 1)) == [2, 3, 4, 5, 6]
    assert seqs(await log.read(0, 100, max_bytes=1)) == [1]
    assert seqs(await log.read(0, 100, max_bytes=300)) == [1, 2, 3, 4, 5, 6]
    assert seqs(await log.read(1, 100, conversation="a", max_bytes=1)) == [2, 3, 4, 5, 6]


async def test_paged_read_returns_every_event_once(scribe: Scribe) -> None:
    random = Random(20_240_601)
    for _ in range(60):
        calls = [(random.choice("abc"), [said("x" * random.randrange(80))] * random.randint(1, 4)) for _ in range(3)]
        await scribe.write_batch(*calls[: random.randint(1, 3)])
    for conversation in (None, "a"):
        whole = await scribe.log.read(0, 1 << 40, conversation=conversation, max_bytes=1 << 40)
        sizes = [(1 << 30, max_bytes) for max_bytes in range(100, 4_000, 61)]
        for limit, max_bytes in ((1, 1 << 20), (7, 1 << 20), (1000, 700), (5, 300), *sizes):
            paged: list[Stored] = []
            with anyio.fail_after(30):
                while page := await scribe.log.read(
                    paged[-1].seq if paged else 0, limit, conversation=conversation, max_bytes=max_bytes
                ):
                    assert page[-1].remaining == 0
                    paged += page
            assert paged == whole


async def test_load_returns_snapshot_and_later_events(scribe: Scribe) -> None:
    await scribe.write("a", CLEARED)
    await scribe.write("b", CLEARED)
    await scribe.write("a", said("two"), said("three"))
    loaded = await scribe.log.load("a")
    assert (loaded.state, loaded.version, seqs(loaded.newer)) == (None, 0, [1, 3, 4])
    await scribe.log.maintain([scribe.snapshot("a", b"three")])
    check = scribe.checks["a"]
    await scribe.write("a", said("four"))
    loaded = await scribe.log.load("a")
    assert (loaded.state, loaded.version, loaded.seq, loaded.check) == (b"three", 3, 4, check)
    assert seqs(loaded.newer) == [5]
    await scribe.log.maintain([scribe.snapshot("a", None, title="only the summary")])
    assert await scribe.log.load("a") == loaded


@pytest.mark.parametrize("spoil", ["version", "chain", "other content"])
async def test_event_out_of_sequence_is_damage(scribe: Scribe, spoil: str) -> None:
    await scribe.write("a", CLEARED)
    await scribe.write("whole", CLEARED)
    if spoil == "version":
        scribe.versions["a"] = 2
    elif spoil == "chain":
        scribe.checks["a"] = "0" * 16
    entries = scribe.group("a", said("truth"))
    if spoil == "other content":
        entries = [Sealed("a", 2, entries[0].line.replace(b"truth", b"false"))]
    await scribe.append(entries)
    with pytest.raises(Damaged) as caught:
        await scribe.log.load("a")
    assert (caught.value.conversation, caught.value.seq) == ("a", 3)
    assert "event 3" in str(caught.value)
    assert seqs((await scribe.log.load("whole")).newer) == [2]


async def test_key_finds_its_group_until_deletion(scribe: Scribe) -> None:
    await scribe.write("a", CLEARED, said("x"), key="one")
    await scribe.write("a", CLEARED, key="two")
    await scribe.write("b", CLEARED, key="one")
    assert sorted(await scribe.log.keys("a")) == sorted([key_hash("one"), key_hash("two")])
    assert seqs(await scribe.log.find_key("a", "one")) == [1, 2]
    assert seqs(await scribe.log.find_key("b", "one")) == [4]
    assert await scribe.log.find_key("a", "three") == NOTHING
    await scribe.log.maintain([])
    assert seqs(await scribe.log.find_key("a", "two")) == [3]
    await scribe.write("a", DELETED, key="delete")
    await scribe.log.erase("a")
    assert await scribe.log.find_key("a", "one") == NOTHING
    assert await scribe.log.keys("a") == [key_hash("delete")]
    assert seqs(await scribe.log.find_key("a", "delete")) == [5]
    await scribe.write("a", CLEARED, key="one")
    assert seqs(await scribe.log.find_key("a", "one")) == [6]


async def test_erasure_keeps_the_tombstone_and_later_events(scribe: Scribe) -> None:
    await scribe.write("a", said("secret"), key="secret-key")
    await scribe.write_batch(("b", [CLEARED]), ("a", [said("secret")]), ("c", [CLEARED]))
    await scribe.log.maintain([scribe.snapshot("a", b"secret", user="me", sessions=("s",), open=3)])
    await scribe.write("a", DELETED)
    await scribe.write("a", said("again"))
    assert await scribe.log.unerased() == ["a"]
    await scribe.log.erase("a")
    assert await scribe.log.unerased() == []
    await scribe.log.erase("a")
    assert seqs(await scribe.log.read(0, 100)) == [2, 4, 5, 6]
    assert seqs(await scribe.log.read(0, 100, conversation="a")) == [5, 6]
    assert [stored.version for stored in await scribe.log.read(2, 100)] == [1, 3, 4]
    loaded = await scribe.log.load("a")
    assert (loaded.state, loaded.version, seqs(loaded.newer)) == (None, 0, [5, 6])
    assert await scribe.log.resolve("s") == [] and await scribe.log.owner("a") is None
    assert await scribe.log.names("me") == []
    assert await scribe.log.list(limit=10) == ([], None) and await scribe.log.totals() == (0, 0)
    await scribe.write("a", CLEARED)
    assert seqs((await scribe.log.load("a")).newer) == [5, 6, 7]


async def test_snapshot_after_the_tombstone_survives_erasure(scribe: Scribe) -> None:
    await scribe.write("a", said("secret"))
    await scribe.write("a", DELETED)
    await scribe.log.maintain([scribe.snapshot("a", b"gone", deleted=True)])
    await scribe.log.erase("a")
    loaded = await scribe.log.load("a")
    assert (loaded.state, loaded.version, loaded.newer) == (b"gone", 2, NOTHING)


async def test_erasure_without_tombstone_changes_nothing(scribe: Scribe) -> None:
    await scribe.write("a", said("kept"), key="k")
    await scribe.log.maintain([scribe.snapshot("a")])
    await scribe.log.erase("a")
    await scribe.log.erase("nobody")
    assert seqs(await scribe.log.read(0, 9)) == [1] and seqs(await scribe.log.find_key("a", "k")) == [1]
    assert (await scribe.log.load("a")).state == b"state"


async def test_maintenance_completes_the_index(scribe: Scribe) -> None:
    plain = type(scribe) is Scribe
    await scribe.write("a", CLEARED, CLEARED)
    await scribe.write("b", CLEARED)
    assert scribe.log.unindexed == (3 if plain else 0)
    assert sorted(scribe.log.unindexed_conversations()) == (["a", "b"] if plain else [])
    await scribe.log.maintain([])
    assert scribe.log.unindexed == 0 and not scribe.log.unindexed_conversations()


async def test_sessions_resolve_to_their_conversation(scribe: Scribe) -> None:
    await scribe.write_batch(("a", [CLEARED]), ("b", [CLEARED]))
    log = scribe.log
    await log.maintain([scribe.snapshot("a", sessions=("s1", "s2")), scribe.snapshot("b", sessions=("s3",))])
    assert [await log.resolve(session) for session in ("s1", "s2", "s3", "s4")] == [["a"], ["a"], ["b"], []]
    await log.maintain([scribe.snapshot("a", sessions=("s2",)), scribe.snapshot("b", sessions=("s3", "s1"))])
    assert [await log.resolve(session) for session in ("s1", "s2", "s3")] == [["b"], ["a"], ["b"]]
    await log.maintain([scribe.snapshot("b", sessions=("s3",), deleted=True)])
    assert await log.resolve("s3") == []


OWNED = (("a", ""), ("b", "ann"), ("c", "ann\ns"))


async def test_session_is_attached_to_one_list_per_owner(scribe: Scribe) -> None:
    log = scribe.log
    await log.maintain([scribe.snapshot(name, user=user, sessions=("s",)) for name, user in OWNED])
    assert sorted(await log.resolve("s")) == [name for name, _ in OWNED]
    assert [await log.owner(name) for name in ("a", "b", "c", "d")] == ["", "ann", "ann\ns", None]
    await log.maintain([scribe.snapshot("b", user="ann", deleted=True)])
    assert sorted(await log.resolve("s")) == ["a", "c"] and await log.owner("b") is None
    assert await log.resolve("ss") == await log.resolve("") == []


async def test_totals_are_summed_by_user(scribe: Scribe) -> None:
    log = scribe.log
    await log.maintain(
        [
            scribe.snapshot("z", user="ann", open=20, in_progress=10),
            scribe.snapshot("y", user="ann", open=50),
            scribe.snapshot("x", user="bob", in_progress=20),
            scribe.snapshot("v", open=2, in_progress=1),
            scribe.snapshot("u", open=5, in_progress=2),
            scribe.snapshot("w", user="ann", open=100, in_progress=100, deleted=True),
        ]
    )
    assert (
        await log.names("ann") == ["y", "z"] and await log.names("bob") == ["x"] and await log.names("") == ["u", "v"]
    )
    assert await log.totals() == (7, 3), "users' sessions stay with their users"
    await log.maintain([scribe.snapshot("u", open=1)])
    assert await log.totals() == (3, 1)


async def test_idle_lists_to_clear_are_found(scribe: Scribe) -> None:
    idle, done = {"auto_clear": "idle"}, {"completed": 1, "failed": 0}
    finished: dict[str, Any] = {"settings": idle, "counts": done}
    await scribe.log.maintain(
        [
            scribe.snapshot("finished", about=finished),
            scribe.snapshot("failed", user="ann", about={**finished, "counts": {"completed": 0, "failed": 2}}),
            scribe.snapshot("open", open=1, about=finished),
            scribe.snapshot("running", in_progress=1, about=finished),
            scribe.snapshot("cleared", about={**finished, "counts": {"completed": 0, "failed": 0}}),
            scribe.snapshot("kept", title='"auto_clear":"idle"', about={"counts": done}),
            scribe.snapshot("gone", deleted=True, about=finished),
            scribe.snapshot("deferred", open=1, about={"wakes_at": 9}),
        ]
    )
    assert sorted((await scribe.log.survey()).timed) == ["deferred", "failed", "finished"]


@pytest.fixture
async def found(scribe: Scribe) -> Callable[..., Awaitable[list[str]]]:
    """Lists titles from a log of five conversations, one of which was deleted."""
    about: dict[str, dict[str, Any]] = {
        "old": {"title": "Äpfel kaufen", "user": "ann"},
        "mid.b": {"title": "100% done_", "user": "bob", "open": 1},
        "mid.a": {"title": "Pears", "user": "ann", "in_progress": 1},
        "new": {"title": "APPLES", "user": "ann"},
        "gone": {"title": "apples", "user": "ann", "open": 1, "deleted": True},
    }
    for name, members in about.items():
        await scribe.write(name, said("x"))
        await scribe.log.maintain([scribe.snapshot(name, **members)])

    async def titles(**members: object) -> list[str]:
        summaries, cursor = await scribe.log.list(**{"limit": 10, **members})  # pyright: ignore[reportArgumentType]
        assert cursor is None
        return [summary.decode().split('"')[7] for summary in summaries]

    return titles


async def test_conversations_are_listed_newest_first_and_filtered(found: Callable[..., Awaitable[list[str]]]) -> None:
    assert await found() == ["APPLES", "Pears", "100% done_", "Äpfel kaufen"]
    assert await found(user="ann") == ["APPLES", "Pears", "Äpfel kaufen"]
    assert await found(active=True) == ["Pears", "100% done_"]
    assert await found(active=False, user="ann") == ["APPLES", "Äpfel kaufen"]
    assert await found(user="nobody") == []


async def test_query_is_a_case_insensitive_substring(
    found: Callable[..., Awaitable[list[str]]],
) -> None:
    assert await found(query="apples") == ["APPLES"] == await found(query="NEW")
    assert await found(query="äPFEL") == ["Äpfel kaufen"]
    assert await found(query="MID.") == ["Pears", "100% done_"]
    assert await found(query="0% d") == ["100% done_"] == await found(query="e_")
    assert await found(query="p_ars") == [] == await found(query="%%")


async def test_conversations_are_listed_by_kind(scribe: Scribe) -> None:
    await scribe.log.maintain(
        [
            scribe.snapshot("plan"),
            scribe.snapshot("talk", about={"kind": "chat"}),
            scribe.snapshot("sly", title='"kind":"chat"', about={"metadata": {"kind": "chat"}}),
        ]
    )

    async def names(kind: str | None) -> list[str]:
        return sorted(one.decode().split('"')[3] for one in (await scribe.log.list(kind=kind, limit=9))[0])

    assert await names("chat") == ["talk"] and await names("list") == ["plan", "sly"]
    assert await names(None) == ["plan", "sly", "talk"]


async def test_pages_continue_while_conversations_move(scribe: Scribe) -> None:
    names = [f"c{number:02}" for number in range(23)]
    for name in names:
        await scribe.write(name, said("x"))
        await scribe.log.maintain([scribe.snapshot(name)])
    listed: list[str] = []
    cursor = None
    with anyio.fail_after(30):
        while True:
            page, cursor = await scribe.log.list(limit=5, cursor=cursor)
            listed += [summary.decode().split('"')[3] for summary in page]
            await scribe.write(listed[0], said("y"))
            await scribe.log.maintain([scribe.snapshot(listed[0])])
            if cursor is None:
                break
    assert listed == names[::-1]


@pytest.mark.parametrize("cursor", ["", "x", "-", "MTox=", "bnVsbA", "LTE6YQ", "é", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6YQ"])
async def test_unknown_cursor_is_rejected(scribe: Scribe, cursor: str) -> None:
    with pytest.raises(BadCursor):
        await scribe.log.list(limit=5, cursor=cursor)


async def test_second_close_is_harmless(scribe: Scribe) -> None:
    await scribe.write("a", said("x" * 10_000))
    assert sum(await scribe.log.sizes()) >= 10_000
    await scribe.log.close()
    await scribe.log.close()


def test_invalid_line_is_reported() -> None:
    with pytest.raises(ValueError, match="7"):
        _ = Stored(7, b"junk\t\t0").conversation
