"""Reading a conversation through the index, without believing it: damage to it must not hide events of a sound log.

Where the index can't be read, does not know a name that it should, or an answer is shorter than the conversation's own
numbers say, the log is scanned once as a whole, and what was found takes the place of the index until that has been
written anew.
"""

import logging
import sqlite3
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import msgspec

from punchlistd.store import index
from punchlistd.store.file import reading
from punchlistd.store.file.operations import Operations
from punchlistd.store.index.survey import finish, names_problem
from punchlistd.store.port import Damaged, Loaded, Stored

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Summary(msgspec.Struct):
    version: int


def load(log: Operations, conversation: str) -> Loaded:
    """The newest snapshot that fits the log, and everything after it."""
    try:
        loaded = through_index(log, reading.load, conversation)
    except Damaged as error:
        if error.seq in log.damage or not _scan_once(log, conversation):
            raise
        return reading.load(log, conversation)
    version = loaded.newer[-1].version if loaded.newer else loaded.version
    if version < _summary_version(log, conversation) and _scan_once(log, conversation):
        return reading.load(log, conversation)
    return loaded


def read(log: Operations, after: int, limit: int, conversation: str | None, max_bytes: int) -> list[Stored]:
    """Events after a position, whole groups of them, up to the first that can't be trusted."""
    if conversation is None:
        return reading.read(log, after, limit, max_bytes)
    found = through_index(log, reading.read_of, conversation, after, limit, max_bytes)
    short = found.last_version is not None and found.last_version < _summary_version(log, conversation)
    unexplained = found.damage is not None and found.damage.seq not in log.damage
    if (short or unexplained) and _scan_once(log, conversation):
        found = reading.read_of(log, conversation, after, limit, max_bytes)
    if found.damage is not None and not found.events:
        raise found.damage
    return found.events


def through_index(log: Operations, operation: Callable[[Operations, str, *Ts], T], conversation: str, *args: *Ts) -> T:
    """What an operation finds of a conversation with the help of the index; without it, where that can't be read."""
    if not log.index_bypassed and (problem := names_problem(log, conversation)):
        log.index_error = problem
        _scan_once(log, "some conversations")
    try:
        return operation(log, conversation, *args)
    except sqlite3.DatabaseError as error:
        log.index_error = str(error)
        if not _scan_once(log, "some conversations"):
            raise
        return operation(log, conversation, *args)


def ask(log: Operations, operation: Callable[[Operations, *Ts], T], *args: *Ts) -> T:
    """What the index says or takes; an error where it was found that it can't be read, until it was built again."""
    if log.index_error:
        raise Damaged("", 0, f"the index can't be read: {log.index_error}")
    try:
        return operation(log, *args)
    except sqlite3.DatabaseError as error:
        log.index_error = str(error)
        raise
    except Damaged as damaged:
        log.index_error = log.index_error or ("" if damaged.conversation else damaged.reason)
        raise


def ask_sound(log: Operations, operation: Callable[[Operations, *Ts], T], *args: *Ts) -> T:
    """The same, of what relies on more than one name: all of the index is looked at before."""
    ask(log, finish)
    return ask(log, operation, *args)


def owner(log: Operations, conversation: str) -> str | None:
    """The user of a conversation, None if there is none."""
    if problem := names_problem(log, conversation):
        log.index_error = problem
        raise Damaged("", 0, f"the index can't be read: {problem}")
    return index.owner(log, conversation)


def _summary_version(log: Operations, conversation: str) -> int:
    """How far the conversation had come when it was last indexed, by its summary; 0 where that can't be told."""
    try:
        row = log.connection.execute("SELECT summary FROM conversations WHERE name = ?", (conversation,)).fetchone()
        return msgspec.json.decode(row[0], type=_Summary).version if row and row[0] else 0
    except (msgspec.MsgspecError, TypeError, sqlite3.DatabaseError):
        return 0


def _scan_once(log: Operations, conversation: str) -> bool:
    """Scan the log for what the index should hold; False if the index is passed by anyway, or was before.

    Once: where it did not help then, it will not help now. An index that can't be read is scanned for each time.
    """
    if log.index_bypassed or (log.scanned and not log.index_error):
        return False
    logger.error("%s: the index seems to lack events of %s; the log is scanned for them", log.path, conversation)
    bypass_index(log)
    return True


def bypass_index(log: Operations) -> None:
    """Scan the whole log, and let what is found take the place of the index."""
    log.scanned = log.index_bypassed = True
    before = log.unindexed
    log.damage.clear()
    log.ownerless.clear()
    reading.scan(log, 0)
    log.unindexed.tombstones = before.tombstones  # the others were erased long ago
