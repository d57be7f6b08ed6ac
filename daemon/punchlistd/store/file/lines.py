"""Conversion between rows of the log and lines, and recovery of the intact lines of a damaged row."""

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
"""Checksum that marks a row as damaged. No body has this checksum."""


_BEGINS = "typeof(log.first) = 'integer' AND log.first BETWEEN 1 AND log.seq"
_TYPED = f"{_BEGINS} AND typeof(log.sum) = 'integer' AND typeof(log.body) = 'blob'"

# An erased row has an empty body with the checksum 0, both written explicitly. NULL in their place, as in a sector of
# zeros, is damage.
ROW = f"""log.seq, iif({_BEGINS}, log.first, log.seq), iif({_TYPED}, log.sum, {SPOILED}),
    ifnull(CAST(log.body AS BLOB), x'')"""
"""SQL for the columns of a `Row`. Invalid values in a damaged record are converted or replaced."""

MAX_SPAN = 1 << 20
"""Maximum number of positions in a row. A damaged row may claim more positions than any commit has."""


checksum = zlib.crc32
"""Compute the checksum of a row's body."""

join = b"\n".join
"""Build a row's body from lines."""


def split(row: Row) -> list[Stored] | None:
    """Return the lines of a row, or None if its checksum or its positions don't match."""
    last, first, total, body = row
    if zlib.crc32(body) != total:
        return None
    if not body:
        return []
    lines = body.split(b"\n")
    if len(lines) == last - first + 1:
        return list(map(Stored, range(first, last + 1), lines))
    # After an erasure, a line's index no longer gives its position, so read the position from each line.
    remaining = [parse(line) for line in lines]
    return remaining if first <= remaining[0].seq and remaining[-1].seq <= last else None


def lost_row(first: int, last: int) -> Row:
    """Build the placeholder for missing or unreadable rows."""
    return last, first, SPOILED, b""


def is_lost(row: Row) -> bool:
    return row[2] == SPOILED and not row[3]


def is_sparse(row: Row) -> bool:
    """Whether a row has fewer lines than positions, because lines were erased or one of its positions is damaged."""
    return row[3].count(b"\n") + bool(row[3]) <= row[0] - row[1]


def select_conversation(lines: list[Stored], conversation: str) -> list[Stored]:
    member = b',"conversation":"%s","' % conversation.encode()
    return [stored for stored in lines if stored.line.startswith(member, stored.line.find(b",", 7))]


class Salvage(msgspec.Struct):
    """The contents of a damaged row.

    Attributes:
        good: Lines verified by their conversation's hash chain.
        bad: Position, claimed conversation ("" if unknown) and bytes of each line that can't be trusted.
        names: All conversations mentioned in the bytes.
    """

    good: list[Stored]
    bad: list[tuple[int, str, bytes]]
    names: set[str]


def salvage(row: Row, check_before: Callable[[str, int], str]) -> Salvage:
    """Separate the intact lines of a damaged row from the others, by verifying the hash chains.

    Args:
        row: The row.
        check_before: Returns the check of a conversation's last event before a position, or "" if none exists.
    """
    last, first, _, body = row
    if is_lost(row):
        return Salvage([], [(seq, "", b"") for seq in sorted({first, last})], set())
    first = max(first, last - MAX_SPAN, 1)
    pieces = body.split(b"\n")
    parsed, broken = _parse_pieces(pieces, first, last)
    owners = set[str]().union(*map(find_names, broken))
    result = Salvage([], [], find_names(body))
    checks: dict[str, str] = {}
    missing: list[tuple[int, str, bytes]] = []
    for seq in range(first, last + 1):
        stored = parsed.get(seq)
        if stored is None:
            piece = pieces[seq - first] if len(pieces) == last - first + 1 else b""
            missing.append((seq, min(owners) if len(owners) == 1 else "", piece))
            continue
        name = stored.conversation
        if verify(checks[name] if name in checks else check_before(name, first), stored):
            result.good.append(stored)
        else:
            result.bad.append((seq, name, stored.line))
        checks[name] = stored.check
    # If all pieces are intact, the missing lines were erased.
    if broken or result.bad:
        result.bad = sorted(result.bad + missing)
    return result


def _parse_pieces(pieces: list[bytes], first: int, last: int) -> tuple[dict[int, Stored], list[bytes]]:
    """Return the parsed lines by position, and the pieces that are not lines of this row."""
    parsed: dict[int, Stored] = {}
    broken: list[bytes] = []
    for piece in pieces:
        try:
            stored = parse(piece)
        except ValueError:
            broken.append(piece)
            continue
        if first <= stored.seq <= last and stored.seq not in parsed:
            parsed[stored.seq] = stored
        else:
            broken.append(piece)
    return parsed, broken


def may_belong_to(conversation: str, seq: int, line: bytes) -> bool:
    """Whether a damaged line starts like a line of this conversation, with at most one byte changed."""
    start = b'{"seq":%d,"conversation":"%s","version":' % (seq, conversation.encode())
    return len(line) > len(start) and sum(a != b for a, b in zip(start, line, strict=False)) <= 1


def find_names(data: bytes) -> set[str]:
    return {name.decode() for name in _NAMES.findall(data)}


def parse_owner(line: bytes) -> str:
    """Return the conversation named in a line, which may be damaged, or "" if it names none."""
    match = _NAMES.search(line)
    return match[1].decode() if match else ""
