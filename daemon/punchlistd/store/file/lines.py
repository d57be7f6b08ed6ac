"""From rows of the log to lines and back, and what can still be trusted of a row that is damaged."""

import re
import zlib
from collections.abc import Callable

import msgspec

from punchlistd.store.port import Stored
from punchlistd.store.record import parse, verify

_NAMES = re.compile(rb'"conversation":"([A-Za-z0-9_.:-]{1,128})"')

Row = tuple[int, int, int, bytes]
"""Last position, first position, checksum and body of a row."""

SPOILED = -1
"""The checksum of a row that can't be the one that was written: no body has it."""


_BEGINS = "typeof(log.first) = 'integer' AND log.first BETWEEN 1 AND log.seq"
_TYPED = f"{_BEGINS} AND typeof(log.sum) = 'integer' AND typeof(log.body) = 'blob'"

# An erased row has an empty body and its checksum, 0: both were written. Where they are NULL, as in a sector of zeros,
# nothing was: that is damage.
ROW = f"""log.seq, iif({_BEGINS}, log.first, log.seq), iif({_TYPED}, log.sum, {SPOILED}),
    ifnull(CAST(log.body AS BLOB), x'')"""
"""The columns of a row of the log, of the right types whatever a damaged record makes of them."""

MAX_SPAN = 1 << 20
"""No commit has more events; a damaged row may claim any number."""


checksum = zlib.crc32
"""The checksum of a row's body."""

join = b"\n".join
"""The body of a row with these lines."""


def split(row: Row) -> list[Stored] | None:
    """The lines of a row, None if it is not the row that was written."""
    last, first, total, body = row
    if zlib.crc32(body) != total:
        return None
    if not body:
        return []
    lines = body.split(b"\n")
    if len(lines) == last - first + 1:
        return list(map(Stored, range(first, last + 1), lines))
    found = [parse(line) for line in lines]  # some were erased: the others say themselves where they stand
    return found if first <= found[0].seq and found[-1].seq <= last else None


def lost(first: int, last: int) -> Row:
    """What stands for rows that are not there or can't be read."""
    return last, first, SPOILED, b""


def is_lost(row: Row) -> bool:
    return row[2] == SPOILED and not row[3]


def is_sparse(row: Row) -> bool:
    """Whether a row has fewer lines than positions: some were erased, or its own position is not the one it had."""
    return row[3].count(b"\n") + bool(row[3]) <= row[0] - row[1]


def of_conversation(lines: list[Stored], conversation: str) -> list[Stored]:
    member = b',"conversation":"%s","' % conversation.encode()
    return [stored for stored in lines if stored.line.startswith(member, stored.line.find(b",", 7))]


class Salvage(msgspec.Struct):
    """What is left of a damaged row.

    `good` are the lines that the chains prove, `bad` the positions that can't be trusted, whose they say they are (""
    where that can't be told) and what stands there, `names` all conversations that the bytes mention.
    """

    good: list[Stored]
    bad: list[tuple[int, str, bytes]]
    names: set[str]


def salvage(row: Row, check_before: Callable[[str, int], str]) -> Salvage:
    """Sort the lines of a damaged row by what the chains prove.

    Args:
        row: The row.
        check_before: Gives the check of a conversation's last event before a position, "" where there is none.
    """
    last, first, _, body = row
    if is_lost(row):
        return Salvage([], [(seq, "", b"") for seq in sorted({first, last})], set())
    first = max(first, last - MAX_SPAN, 1)
    pieces = body.split(b"\n")
    found, broken = _recognize(pieces, first, last)
    culprits = set[str]().union(*map(names_in, broken))
    result = Salvage([], [], names_in(body))
    checks: dict[str, str] = {}
    missing: list[tuple[int, str, bytes]] = []
    for seq in range(first, last + 1):
        stored = found.get(seq)
        if stored is None:
            there = pieces[seq - first] if len(pieces) == last - first + 1 else b""
            missing.append((seq, min(culprits) if len(culprits) == 1 else "", there))
            continue
        name = stored.conversation
        if verify(checks[name] if name in checks else check_before(name, first), stored):
            result.good.append(stored)
        else:
            result.bad.append((seq, name, stored.line))
        checks[name] = stored.check
    if broken or result.bad:  # otherwise all that is left is as it was written, and the others had been erased
        result.bad = sorted(result.bad + missing)
    return result


def _recognize(pieces: list[bytes], first: int, last: int) -> tuple[dict[int, Stored], list[bytes]]:
    found: dict[int, Stored] = {}
    broken: list[bytes] = []
    for piece in pieces:
        try:
            stored = parse(piece)
        except ValueError:
            broken.append(piece)
            continue
        if first <= stored.seq <= last and stored.seq not in found:
            found[stored.seq] = stored
        else:
            broken.append(piece)
    return found, broken


def may_be_of(conversation: str, seq: int, line: bytes) -> bool:
    """Whether a spoiled line begins as one of this conversation would, but for a byte."""
    start = b'{"seq":%d,"conversation":"%s","version":' % (seq, conversation.encode())
    return len(line) > len(start) and sum(a != b for a, b in zip(start, line, strict=False)) <= 1


def names_in(data: bytes) -> set[str]:
    return {name.decode() for name in _NAMES.findall(data)}


def owner_of(line: bytes) -> str:
    """Whose line it says it is, however spoiled it may be; "" where it says nothing."""
    found = _NAMES.search(line)
    return found[1].decode() if found else ""
