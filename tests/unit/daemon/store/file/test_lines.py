from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import CLEARED, Scribe, said
from punchlistd.store.file.lines import (
    Row,
    checksum,
    find_names,
    join,
    may_belong_to,
    salvage,
    select_conversation,
    split,
)


def row_of(*lines: bytes, first: int, last: int) -> Row:
    body = join(lines)
    return last, first, checksum(body), body


def lines_from(first: int) -> list[bytes]:
    scribe = Scribe(MemoryLog())
    entries = [*scribe.group("a", said("one"), after=first - 1), *scribe.group("aa", CLEARED, after=first)]
    return [entry.line for entry in [*entries, *scribe.group("a", said("two"), after=first + 1)]]


def no_check(conversation: str, seq: int) -> str:
    return ""


def test_a_row_is_split_into_its_lines() -> None:
    lines = lines_from(4)
    found = split(row_of(*lines, first=4, last=6))
    assert found and [(stored.seq, stored.line) for stored in found] == list(zip((4, 5, 6), lines, strict=True))
    assert [stored.seq for stored in select_conversation(found, "a")] == [4, 6]
    assert select_conversation(found, "b") == []


def test_lines_next_to_erased_ones_have_positions() -> None:
    lines = lines_from(4)
    found = split(row_of(lines[0], lines[2], first=4, last=6))
    assert found and [stored.seq for stored in found] == [4, 6]
    assert split(row_of(first=4, last=6)) == []


def test_row_with_a_wrong_checksum_is_not_split() -> None:
    last, first, total, body = row_of(*lines_from(4), first=4, last=6)
    assert split((last, first, total ^ 1, body)) is None


def test_erased_row_with_intact_lines_misses_nothing() -> None:
    lines = lines_from(4)
    rest = salvage((6, 4, 0, join([lines[0], lines[2]])), no_check)
    assert [stored.seq for stored in rest.good] == [4, 6] and rest.bad == []


def test_chain_continues_after_a_damaged_line() -> None:
    lines = lines_from(4)
    rest = salvage((6, 4, 0, join([lines[0].replace(b"one", b"won"), *lines[1:]])), no_check)
    assert [stored.seq for stored in rest.good] == [5, 6] and [bad[:2] for bad in rest.bad] == [(4, "a")]


def test_merged_line_is_not_taken_for_an_erasure() -> None:
    lines = lines_from(4)
    body = join(lines)
    begin = body.rindex(b"\t", 0, len(lines[0])) + 1  # start of the first line's check; everything after it is zeroed
    rest = salvage((6, 4, 0, body[:begin] + bytes(len(body) - begin)), no_check)
    assert rest.good == [] and [seq for seq, _, _ in rest.bad] == [4, 5, 6]


def test_foreign_and_repeated_lines_are_ignored() -> None:
    lines = lines_from(4)
    rest = salvage((6, 4, 0, join([*lines, *lines_from(9), lines[0]])), no_check)
    assert [stored.seq for stored in rest.good] == [4, 5, 6] and rest.bad == []


def test_line_with_one_wrong_byte_keeps_its_owner() -> None:
    line = lines_from(4)[1]
    assert may_belong_to("aa", 5, line) and may_belong_to("ab", 5, line) and may_belong_to("aa", 6, line)
    assert (
        not may_belong_to("bb", 5, line) and not may_belong_to("a", 5, line) and not may_belong_to("aa", 5, line[:10])
    )


def test_junk_is_one_damaged_line() -> None:
    rest = salvage((6, 4, 0, b"\xff\x00junk\n\n"), no_check)
    assert rest.good == [] and [bad[:2] for bad in rest.bad] == [(4, ""), (5, ""), (6, "")] and rest.names == set()
    assert find_names(b'x"conversation":"a.b"y"conversation":"c') == {"a.b"}
