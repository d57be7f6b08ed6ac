"""The form of a stored line, and the arithmetic that shows whether it is still the one that was written.

A line is `wire TAB side TAB check`. `check` covers the line and the check of the event before it in the same
conversation, so a conversation is a chain: nothing in it can be changed, dropped or put elsewhere unnoticed. A
tombstone (`ConversationDeleted`) starts a new chain, because what is before it will be erased. JSON never holds a raw
tab or newline, so lines are split without parsing them.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from punchlistd.store.port import Damaged, Side, Stored

_TOMBSTONE = b'"event":{"type":"ConversationDeleted"}}'
"""How the wire form of a tombstone ends, and no other's: exactly two objects are closed here."""

_TABS = 2
_CHECK = 16
"""Length of a check."""

_encode = msgspec.json.Encoder().encode
_NO_SIDE = b"{}"


def is_tombstone(wire: bytes) -> bool:
    return wire.endswith(_TOMBSTONE)


def is_plain(line: bytes) -> bool:
    return line.endswith(b"\t\t", 0, -_CHECK)


def holds_tombstone(line: bytes) -> bool:
    if is_plain(line):
        return line.endswith(_TOMBSTONE, 0, -_CHECK - _TABS)
    return is_tombstone(line[: line.index(b"\t")])


def _link(check: str, content: bytes, wire: bytes) -> str:
    previous = b"" if is_tombstone(wire) else check.encode()
    return blake2b(previous + content, digest_size=8).hexdigest()


def seal(check: str, wire: bytes, side: Side | None) -> tuple[bytes, str]:
    """Encode an event as a line of the log.

    Args:
        check: Head of the conversation's chain so far, "" at its beginning.
        wire: `{"seq","conversation","version","at","actor","event"}` in this order, as compact JSON.
        side: What is kept beside it, if anything.

    Returns:
        The line and the new head of the chain.
    """
    if side is None:
        content = wire + b"\t"
    else:
        beside = _encode(side)
        content = b"%b\t%b" % (wire, b"" if beside == _NO_SIDE else beside)
    head = _link(check, content, wire)
    return b"%b\t%b" % (content, head.encode()), head


def reseal(check: str, line: bytes) -> bytes:
    """Encode the same content as a line that follows another check."""
    content = line[: line.rindex(b"\t")]
    return b"%b\t%b" % (content, _link(check, content, content[: content.find(b"\t")]).encode())


def parse(line: bytes, seq: int | None = None) -> Stored:
    """Parse a line without verifying it; `seq` is its position if that is known.

    Raises:
        ValueError: It is not a record, or that of another position.
    """
    if line.count(b"\t") != _TABS or not line.startswith(b'{"seq":'):
        raise ValueError("the line is no record")
    stored = Stored(int(line[7 : line.index(b",", 7)]), line)
    if seq is not None and stored.seq != seq:
        raise ValueError(f"the event at {seq} says that it is number {stored.seq}")
    if stored.version < 1:
        raise ValueError("versions count from 1")
    return stored


def verify(previous_check: str, stored: Stored) -> bool:
    content, _, check = stored.line.rpartition(b"\t")
    return _link(previous_check, content, content[: content.find(b"\t")]).encode() == check


def verify_chain(conversation: str, version: int, check: str, newer: Iterable[Stored]) -> None:
    """Check that events follow from a version and from each other; a tombstone may leave out versions.

    Raises:
        Damaged: With the first one that does not.
    """
    for stored in newer:
        try:
            found = parse(stored.line, stored.seq)
            expected = max(version + 1, found.version) if is_tombstone(found.wire) else version + 1
            if found.conversation != conversation or found.version != expected:
                raise ValueError(f"version {expected} is missing")
            if not verify(check, found):
                raise ValueError("its checksum does not match")
        except ValueError as error:
            raise Damaged(conversation, stored.seq, str(error)) from error
        version, check = found.version, found.check


def take_groups(events: Iterable[Stored], limit: int, max_bytes: int) -> list[Stored]:
    """Take events up to a count or size, whichever comes first, then to the end of their group."""
    taken: list[Stored] = []
    size = 0
    for stored in events:
        taken.append(stored)
        size += len(stored.line)
        if (len(taken) >= limit or size >= max_bytes) and not stored.left:
            break
    return taken


def key_hash(key: str) -> int:
    """Return a stable signed 64-bit hash of an idempotency key."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)
