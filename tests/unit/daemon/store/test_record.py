import re
from random import Random

import pytest

from punchlist_testing.memory_log import MemoryLog
from punchlist_testing.store import CLEARED, DELETED, Scribe, said
from punchlistd.store.port import Damaged, Side, Stored, side_of
from punchlistd.store.record import is_tombstone, key_hash, parse, seal, take_groups, verify, verify_chain

WIRE = b'{"seq":9,"conversation":"a.b:c-1","version":3,"at":0,"actor":"x","event":{"type":"ListCleared"}}'


def test_line_is_wire_form_side_and_check() -> None:
    line, check = seal("", WIRE, Side())
    assert line == WIRE + b"\t\t" + check.encode() and re.fullmatch("[0-9a-f]{16}", check)
    side = Side(key="k\t\n", call="c", remaining=2, undoes=(1, 4))
    line, check = seal("", WIRE, side)
    stored = parse(line)
    assert (stored.seq, stored.conversation, stored.version) == (9, "a.b:c-1", 3)
    assert (stored.wire, stored.check, side_of(stored), stored.remaining) == (WIRE, check, side, 2)


def test_check_is_stable() -> None:
    assert seal("0123456789abcdef", WIRE, Side(key="k")) == (
        WIRE + b'\t{"key":"k"}\t113abccc0a4b257d',
        "113abccc0a4b257d",
    )


def test_every_flipped_bit_is_detected() -> None:
    line, _ = seal("0123456789abcdef", WIRE, Side(key="k"))
    assert verify("0123456789abcdef", Stored(9, line)) and not verify("", Stored(9, line))
    for bit in range(len(line) * 8):
        flipped = bytearray(line)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not verify("0123456789abcdef", Stored(9, bytes(flipped))), bit


def test_only_a_tombstone_starts_a_new_chain() -> None:
    log = Scribe(MemoryLog())
    (entry,) = log.group("a", DELETED)
    stored = parse(entry.line)
    assert is_tombstone(stored.wire) and verify("0123456789abcdef", stored) and verify("", stored)
    imitations = [CLEARED, said('"event":{"type":"ConversationDeleted"}}'), said("")]
    imitations.append({**said(""), "content": {"event": {"type": "ConversationDeleted"}}})
    imitations.append({"type": "Other", "event": {"type": "ConversationDeleted"}})
    for imitation in imitations:
        assert not is_tombstone(parse(log.group("a", imitation)[0].line).wire)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\t\t",
        b"{}\t\t0",
        WIRE,
        WIRE + b"\t0",
        WIRE + b"\t\t\t0",
        b" " + WIRE + b"\t\t0",
        WIRE.replace(b"9", b"x", 1) + b"\t\t0",
        WIRE.replace(b'"version":3', b'"version":0') + b"\t\t0",
        WIRE.replace(b"version", b"wersion") + b"\t\t0",
        b'{"seq":1\t\t',
    ],
)
def test_invalid_record_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        parse(line)


def test_record_of_another_position_is_a_value_error() -> None:
    line, _ = seal("", WIRE, Side())
    assert parse(line, 9).seq == 9
    with pytest.raises(ValueError, match="number 9"):
        parse(line, 8)


def test_tombstone_is_allowed_only_at_the_start() -> None:
    scribe = Scribe(MemoryLog())
    entries = [*scribe.group("a", CLEARED, CLEARED), *scribe.group("a", DELETED, CLEARED, after=2)]
    tail = [Stored(seq, entry.line) for seq, entry in enumerate(entries, 1)]
    verify_chain("a", 0, "", tail)
    verify_chain("a", 0, "", tail[2:])
    for start in (1, 3):
        with pytest.raises(Damaged, match=f"event {start + 1}"):
            verify_chain("a", 0, "", tail[start:])
    with pytest.raises(Damaged):
        verify_chain("b", 0, "", tail)
    tombstone = tail[2]
    with pytest.raises(Damaged, match="version 4 is missing"):
        verify_chain("a", tombstone.version, "", [tombstone])


def test_random_damage_raises_only_damaged() -> None:
    random = Random(7)
    scribe = Scribe(MemoryLog())
    entries = scribe.group("a", *[said(str(number)) for number in range(5)])
    for _ in range(500):
        lines = [bytearray(entry.line) for entry in entries]
        line = random.choice(lines)
        line[random.randrange(len(line))] = random.randrange(256)
        tail = [Stored(seq, bytes(line)) for seq, line in enumerate(lines, 1)]
        if [stored.line for stored in tail] != [entry.line for entry in entries]:
            with pytest.raises(Damaged):
                verify_chain("a", 0, "", tail)


def test_groups_are_read_whole() -> None:
    entries = Scribe(MemoryLog()).group("a", CLEARED, CLEARED, CLEARED)
    events = [Stored(seq, entry.line) for seq, entry in enumerate(entries, 1)]
    assert take_groups(events * 2, 1, 1) == events
    assert take_groups(events * 2, 4, 1 << 20) == events * 2
    assert take_groups([], 1, 1) == []


def test_key_hashes_are_stable_signed_64_bit_numbers() -> None:
    assert key_hash("k") == -6029533338027043741
    assert all(-(1 << 63) <= key_hash(str(number)) < 1 << 63 for number in range(100))
    assert len({key_hash(str(number)) for number in range(1000)}) == 1000
