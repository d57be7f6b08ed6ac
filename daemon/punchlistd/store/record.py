"""The format of a stored line, and the hash chain that detects changed lines.

A line is `wire TAB side TAB check`. `check` covers the line and the check of the conversation's previous event. Each
conversation is therefore a hash chain, in which changed, dropped or moved lines are detected. A tombstone
(`ConversationDeleted`) starts a new chain, because the lines before it will be erased. JSON contains no raw tab or
newline, so lines can be split without parsing.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from punchlistd.store.port import Damaged, Side, Stored

_TOMBSTONE = b'"event":{"type":"ConversationDeleted"}}'
"""Suffix of a tombstone's wire form. No other event ends with it, because it closes exactly two objects."""

_TABS = 2
_CHECK = 16
"""Length of a check, in bytes."""

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
        check: Head of the conversation's chain so far, or "" at its beginning.
        wire: Compact JSON of `{"seq","conversation","version","at","actor","event"}`, in this order.
        side: Metadata stored with the event.

    Returns:
        The line and the new head of the chain.
    """
    if side is None:
        content = wire + b"\t"
    else:
        metadata = _encode(side)
        content = b"%b\t%b" % (wire, b"" if metadata == _NO_SIDE else metadata)
    head = _link(check, content, wire)
    return b"%b\t%b" % (content, head.encode()), head


def reseal(check: str, line: bytes) -> bytes:
    """Return the line with its check recomputed for a different previous check."""
    content = line[: line.rindex(b"\t")]
    return b"%b\t%b" % (content, _link(check, content, content[: content.find(b"\t")]).encode())


def parse(line: bytes, seq: int | None = None) -> Stored:
    """Parse a line without verifying its check.

    Args:
        line: The line.
        seq: Expected position, if known.

    Raises:
        ValueError: The line is not a record, or has a different position.
    """
    if line.count(b"\t") != _TABS or not line.startswith(b'{"seq":'):
        raise ValueError("the line is not a record")
    stored = Stored(int(line[7 : line.index(b",", 7)]), line)
    if seq is not None and stored.seq != seq:
        raise ValueError(f"the event at {seq} has the number {stored.seq}")
    if stored.version < 1:
        raise ValueError("versions count from 1")
    return stored


def verify(previous_check: str, stored: Stored) -> bool:
    content, _, check = stored.line.rpartition(b"\t")
    return _link(previous_check, content, content[: content.find(b"\t")]).encode() == check


def verify_chain(conversation: str, version: int, check: str, newer: Iterable[Stored]) -> None:
    """Check that events continue a conversation's versions and hash chain. A tombstone may skip versions.

    Raises:
        Damaged: An event does not continue them. The exception describes the first such event.
    """
    for stored in newer:
        try:
            event = parse(stored.line, stored.seq)
            expected = max(version + 1, event.version) if is_tombstone(event.wire) else version + 1
            if event.conversation != conversation or event.version != expected:
                raise ValueError(f"version {expected} is missing")
            if not verify(check, event):
                raise ValueError("its checksum does not match")
        except ValueError as error:
            raise Damaged(conversation, stored.seq, str(error)) from error
        version, check = event.version, event.check


def take_groups(events: Iterable[Stored], limit: int, max_bytes: int) -> list[Stored]:
    """Return the first events until a count or size is reached, extended to whole groups."""
    selected: list[Stored] = []
    size = 0
    for stored in events:
        selected.append(stored)
        size += len(stored.line)
        if (len(selected) >= limit or size >= max_bytes) and not stored.remaining:
            break
    return selected


def key_hash(key: str) -> int:
    """Return a stable signed 64-bit hash of an idempotency key."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)
