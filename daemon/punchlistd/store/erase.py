"""Erasing a deleted conversation: rows stay, the lines of what was deleted vanish from them and from the disk.

Freed space is overwritten (`secure_delete`), and what was written ahead is moved into the database and cut off, so that
the bytes are in none of the files. The tombstone starts a chain of its own, so nothing after it has to change.
"""

from punchlistd.store.lines import ROW, checksum, join, of_conversation, split
from punchlistd.store.mark import ANY_SUM
from punchlistd.store.operations import Operations
from punchlistd.store.port import Damaged
from punchlistd.store.reading import rows_of
from punchlistd.store.record import is_tombstone


def erase(log: Operations, conversation: str) -> None:
    """Take the lines before the newest tombstone out of every row, and everything that was derived from them."""
    tombstone = _newest_tombstone(log, conversation)
    if tombstone:
        with log.writing():
            log.mark.write(log.epoch, log.head, ANY_SUM)
        log.erased += 1
        with log.transaction():
            rows = [row[0] for row in rows_of(log, conversation, 0) if row[1] < tombstone]
            emptied = [row for row in rows if _rewrite(log, conversation, row, tombstone)]
            _clean_index(log, conversation, tombstone, emptied)
        _clean_tail(log, conversation, tombstone, emptied)
        with log.writing():
            log.note_position()
    log.checkpoint()
    with log.transaction():
        log.connection.execute("UPDATE conversations SET tombstone = 0 WHERE name = ?", (conversation,))
    log.tail.tombstones.pop(conversation, None)


def _newest_tombstone(log: Operations, conversation: str) -> int:
    newest = 0
    for row in rows_of(log, conversation, 0):
        for stored in of_conversation(split(row) or [], conversation):
            if is_tombstone(stored.wire):
                newest = stored.seq
    return newest


def _rewrite(log: Operations, conversation: str, seq: int, tombstone: int) -> bool:
    """Write a row anew without the erased lines. Whether none of the conversation's is left in it."""
    row = log.connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (seq,)).fetchone()
    lines = split(row)
    if lines is None:
        raise Damaged(conversation, row[1], "a damaged row is not rewritten")
    mine = of_conversation(lines, conversation)
    gone = {stored.seq for stored in mine if stored.seq < tombstone}
    body = join(stored.line for stored in lines if stored.seq not in gone)
    log.connection.execute("UPDATE log SET sum = ?, body = ? WHERE seq = ?", (checksum(body), body, seq))
    return len(gone) == len(mine)


def _clean_index(log: Operations, conversation: str, tombstone: int, emptied: list[int]) -> None:
    execute = log.connection.execute
    found = execute("SELECT id FROM conversations WHERE name = ?", (conversation,)).fetchone()
    if found is None:
        return
    number = found[0]
    log.connection.executemany(
        "DELETE FROM parts WHERE conversation = ? AND seq = ?", [(number, row) for row in emptied]
    )
    execute("DELETE FROM keys WHERE conversation = ? AND seq < ?", (number, tombstone))
    execute("DELETE FROM snapshots WHERE conversation = ? AND seq < ?", (number, tombstone))
    if execute("SELECT 1 FROM snapshots WHERE conversation = ?", (number,)).fetchone() is None:
        execute("DELETE FROM sessions WHERE conversation = ?", (number,))
        execute(
            """UPDATE conversations SET user = '', open = 0, in_progress = 0, updated_at = 0, search = '', summary = x''
            WHERE id = ?""",
            (number,),
        )


def _clean_tail(log: Operations, conversation: str, tombstone: int, emptied: list[int]) -> None:
    tail = log.tail
    if conversation in tail.rows:
        gone = set(emptied)
        tail.rows[conversation] = [row for row in tail.rows[conversation] if row not in gone]
    if conversation in tail.keys:
        keys = tail.keys[conversation]
        tail.keys[conversation] = {key: seq for key, seq in keys.items() if seq >= tombstone}
