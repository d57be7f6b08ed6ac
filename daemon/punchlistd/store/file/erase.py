"""Erasing a deleted conversation: rows stay, the lines of what was deleted vanish from them and from the disk.

Freed space is overwritten (`secure_delete`), and what was written ahead is moved into the database and cut off, so that
the bytes are in none of the files. The tombstone starts a chain of its own, so nothing after it has to change.
"""

from punchlistd.store.file.high_water_mark import ANY_SUM
from punchlistd.store.file.lines import SPOILED, Row, checksum, is_lost, join, of_conversation, owner_of, split
from punchlistd.store.file.operations import Operations
from punchlistd.store.file.reading import lines_of, row_at, rows_of
from punchlistd.store.record import is_tombstone, parse


def erase(log: Operations, conversation: str) -> None:
    """Take the lines before the newest tombstone out of every row, and everything that was derived from them."""
    _erase(log, conversation, _newest(log, conversation)[0])


def forget(log: Operations, conversation: str) -> None:
    """Erase the newest tombstone, too, if nothing stands behind it: a list of this name begins anew."""
    tombstone, newest = _newest(log, conversation)
    if tombstone and newest == tombstone:
        _erase(log, conversation, tombstone + 1)


def _erase(log: Operations, conversation: str, tombstone: int) -> None:
    """Take the lines before a position out of every row, and everything that was derived from them; 0: none."""
    emptied: list[int] = []
    if tombstone:
        with log.writing():
            log.note_position(ANY_SUM)
        log.erased += 1
        with log.transaction():
            rows = [row[0] for row in rows_of(log, conversation, 0) if row[1] < tombstone]
            emptied = [row for row in rows if _rewrite(log, conversation, row, tombstone)]
        with log.writing():
            log.note_position()
    log.checkpoint()
    # After the log: until then the index tells the next start that there is something to be erased.
    log.index.forget(conversation, tombstone, emptied, log.sum_at(log.index.seq) or 0)
    log.index.checkpoint()
    _clean_unindexed(log, conversation, tombstone, emptied)


def _newest(log: Operations, conversation: str) -> tuple[int, int]:
    """The positions of the newest tombstone and the newest event, 0 for none."""
    tombstone = newest = 0
    for row in rows_of(log, conversation, 0):
        for stored in of_conversation(split(row) or [], conversation):
            newest = stored.seq
            tombstone = newest if is_tombstone(stored.wire) else tombstone
    return tombstone, newest


def _rewrite(log: Operations, conversation: str, seq: int, tombstone: int) -> bool:
    """Write a row anew without the erased lines. Whether none of the conversation's is left in it."""
    row = row_at(log, seq)
    lines = split(row)
    if lines is None:
        return _rewrite_spoiled(log, conversation, row, tombstone)
    mine = of_conversation(lines, conversation)
    gone = {stored.seq for stored in mine if stored.seq < tombstone}
    body = join(stored.line for stored in lines if stored.seq not in gone)
    log.connection.execute("UPDATE log SET sum = ?, body = ? WHERE seq = ?", (checksum(body), body, seq))
    return len(gone) == len(mine)


def _rewrite_spoiled(log: Operations, conversation: str, row: Row, tombstone: int) -> bool:
    """Blot out the lines in a damaged row which are, or may be, of what is erased; the row stays damaged.

    What begins as a line of another conversation is left, whatever became of it. Nobody can read the rest.
    """
    if is_lost(row):
        return False
    lines_of(log, row, None, 0)  # so that whose they are is known before they are gone
    others = log.index.all_names() | log.unindexed.rows.keys()
    others.discard(conversation)
    pieces, mine = row[3].split(b"\n"), 0
    for at, piece in enumerate(pieces):
        if (owner := owner_of(piece)) in others:
            continue
        if owner == conversation and _stands_behind(piece, tombstone):
            mine += 1
        else:
            pieces[at] = b"?" * len(piece)
    log.connection.execute("UPDATE log SET sum = ?, body = ? WHERE seq = ?", (SPOILED, join(pieces), row[0]))
    return not mine


def _stands_behind(piece: bytes, seq: int) -> bool:
    try:
        return parse(piece).seq >= seq
    except ValueError:
        return False


def _clean_unindexed(log: Operations, conversation: str, tombstone: int, emptied: list[int]) -> None:
    unindexed, gone = log.unindexed, set(emptied)
    unindexed.tombstones.pop(conversation, None)
    if rows := [row for row in unindexed.rows.get(conversation, ()) if row not in gone]:
        unindexed.rows[conversation] = rows
    else:  # an entry has a last row, which whoever appends looks at
        unindexed.rows.pop(conversation, None)
        unindexed.keys.pop(conversation, None)
    if conversation in unindexed.keys:
        keys = unindexed.keys[conversation]
        unindexed.keys[conversation] = {key: seq for key, seq in keys.items() if seq >= tombstone}
