"""Erasure of a deleted conversation. Its lines are removed from their rows and from the disk; the rows stay.

Freed space is overwritten (`secure_delete`), and the write-ahead log is checkpointed and truncated, so that no file
contains the bytes. The tombstone starts a new hash chain, so nothing after it has to change.
"""

from punchlistd.store.file.high_water_mark import ANY_SUM
from punchlistd.store.file.lines import SPOILED, Row, checksum, is_lost, join, parse_owner, select_conversation, split
from punchlistd.store.file.operations import Operations
from punchlistd.store.file.reading import lines_of, row_at, rows_of
from punchlistd.store.record import is_tombstone, parse


def erase(log: Operations, conversation: str) -> None:
    """Remove all of a conversation's lines before its newest tombstone, and everything derived from them."""
    _erase(log, conversation, _find_newest(log, conversation)[0])


def forget(log: Operations, conversation: str) -> None:
    """Like `erase`, but also erase the newest tombstone if no event follows it, so that the name can be used again."""
    tombstone, newest = _find_newest(log, conversation)
    if tombstone and newest == tombstone:
        _erase(log, conversation, tombstone + 1)


def _erase(log: Operations, conversation: str, tombstone: int) -> None:
    """Remove all lines before a position, and everything derived from them. 0 removes no lines."""
    emptied: list[int] = []
    if tombstone:
        with log.translate_write_errors():
            log.note_position(ANY_SUM)
        log.erase_count += 1
        with log.transaction():
            rows = [row[0] for row in rows_of(log, conversation, 0) if row[1] < tombstone]
            emptied = [row for row in rows if _rewrite(log, conversation, row, tombstone)]
        with log.translate_write_errors():
            log.note_position()
    log.checkpoint()
    # Update the index last. Until then it records the erasure as pending, and the next start would repeat it.
    log.index.forget(conversation, tombstone, emptied, log.sum_at(log.index.seq) or 0)
    log.index.checkpoint()
    _forget_unindexed(log, conversation, tombstone, emptied)


def _find_newest(log: Operations, conversation: str) -> tuple[int, int]:
    """Return the positions of the newest tombstone and the newest event; 0 if none exists."""
    tombstone = newest = 0
    for row in rows_of(log, conversation, 0):
        for stored in select_conversation(split(row) or [], conversation):
            newest = stored.seq
            tombstone = newest if is_tombstone(stored.wire) else tombstone
    return tombstone, newest


def _rewrite(log: Operations, conversation: str, seq: int, tombstone: int) -> bool:
    """Rewrite a row without the erased lines, and return whether no line of the conversation remains in it."""
    row = row_at(log, seq)
    lines = split(row)
    if lines is None:
        return _rewrite_damaged(log, conversation, row, tombstone)
    own = select_conversation(lines, conversation)
    erased = {stored.seq for stored in own if stored.seq < tombstone}
    body = join(stored.line for stored in lines if stored.seq not in erased)
    log.connection.execute("UPDATE log SET sum = ?, body = ? WHERE seq = ?", (checksum(body), body, seq))
    return len(erased) == len(own)


def _rewrite_damaged(log: Operations, conversation: str, row: Row, tombstone: int) -> bool:
    """Overwrite the lines of a damaged row that belong, or may belong, to the erased history. The row stays damaged.

    Lines that name another conversation are kept. All others are unreadable or belong to the erased conversation.

    Returns:
        Whether the row no longer contains any line of the conversation.
    """
    if is_lost(row):
        return False
    lines_of(log, row, None, 0)  # record the damage by conversation while the names are still readable
    others = log.index.all_names() | log.unindexed.rows.keys()
    others.discard(conversation)
    pieces, remaining = row[3].split(b"\n"), 0
    for index, piece in enumerate(pieces):
        if (owner := parse_owner(piece)) in others:
            continue
        if owner == conversation and _is_at_or_after(piece, tombstone):
            remaining += 1
        else:
            pieces[index] = b"?" * len(piece)
    log.connection.execute("UPDATE log SET sum = ?, body = ? WHERE seq = ?", (SPOILED, join(pieces), row[0]))
    return not remaining


def _is_at_or_after(piece: bytes, seq: int) -> bool:
    try:
        return parse(piece).seq >= seq
    except ValueError:
        return False


def _forget_unindexed(log: Operations, conversation: str, tombstone: int, emptied: list[int]) -> None:
    unindexed, erased = log.unindexed, set(emptied)
    unindexed.tombstones.pop(conversation, None)
    if rows := [row for row in unindexed.rows.get(conversation, ()) if row not in erased]:
        unindexed.rows[conversation] = rows
    else:  # don't keep an empty list: `Unindexed.add` reads its last row
        unindexed.rows.pop(conversation, None)
        unindexed.keys.pop(conversation, None)
    if conversation in unindexed.keys:
        keys = unindexed.keys[conversation]
        unindexed.keys[conversation] = {key: seq for key, seq in keys.items() if seq >= tombstone}
