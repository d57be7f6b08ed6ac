"""Reading a conversation through the index, without believing it: damage to it must not hide events of a sound log.

Where an answer is shorter than the conversation's own numbers say, the log is scanned once as a whole, and what was
found takes the place of the index until that has been written anew.
"""

import logging
import sqlite3
from itertools import pairwise

import msgspec

from punchlistd.store import reading
from punchlistd.store.operations import Operations
from punchlistd.store.port import Damaged, Loaded, Stored
from punchlistd.store.record import is_tombstone

logger = logging.getLogger(__name__)


class _Summary(msgspec.Struct):
    version: int


def load(log: Operations, conversation: str) -> Loaded:
    """The newest snapshot that fits the log, and everything after it."""
    try:
        loaded = reading.load(log, conversation)
    except Damaged as error:
        if error.seq in log.damage or not _scanned(log, conversation):
            raise
        return reading.load(log, conversation)
    version = loaded.tail[-1].version if loaded.tail else loaded.version
    if version < _noted_version(log, conversation) and _scanned(log, conversation):
        return reading.load(log, conversation)
    return loaded


def read(log: Operations, after: int, limit: int, conversation: str | None, max_bytes: int) -> list[Stored]:
    """Events after a position, whole groups of them, up to the first that can't be trusted."""
    taken = reading.read(log, after, limit, conversation, max_bytes)
    if conversation is None or not _has_hole(taken, after) or not _scanned(log, conversation):
        return taken
    return reading.read(log, after, limit, conversation, max_bytes)


def _has_hole(events: list[Stored], after: int) -> bool:
    """Whether versions are missing between these events of a conversation, or before the first of all."""
    if events and after == 0 and events[0].version > 1 and not is_tombstone(events[0].wire):
        return True
    return any(later.version != earlier.version + 1 for earlier, later in pairwise(events))


def _noted_version(log: Operations, conversation: str) -> int:
    """How far the conversation had come when it was last indexed, by its summary; 0 where that can't be told."""
    with reading.reading(conversation, 1):
        row = log.connection.execute("SELECT summary FROM conversations WHERE name = ?", (conversation,)).fetchone()
    try:
        return msgspec.json.decode(row[0], type=_Summary).version if row and row[0] else 0
    except msgspec.MsgspecError:
        return 0


def _scanned(log: Operations, conversation: str) -> bool:
    """Scan the log for what the index should hold, once; False if that was done already, or not all can be read."""
    if log.scanned:
        return False
    logger.error("%s: the index seems to lack events of %s; the log is scanned for them", log.path, conversation)
    log.scanned, before = True, log.tail
    try:
        reading.scan(log, 0)
    except sqlite3.DatabaseError:
        log.tail = before
        return False
    log.tail.tombstones = before.tombstones  # the others were erased long ago
    log.distrusted = True
    return True
