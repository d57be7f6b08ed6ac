"""Reads of an open log: rows, their intact lines, and lookups by conversation or idempotency key.

Indexed rows are found through the index, later rows through `unindexed`. If a conversation's events are missing and no
damage to the log explains it, the index is assumed to be wrong and is rebuilt.
"""

import logging
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from heapq import merge
from itertools import chain, groupby, pairwise
from typing import Protocol, TypeVar, TypeVarTuple

from punchlistd.store.file.index import IndexDoubted
from punchlistd.store.file.lines import (
    ROW,
    SPOILED,
    Row,
    Salvage,
    is_lost,
    is_sparse,
    lost_row,
    may_belong_to,
    salvage,
    select_conversation,
    split,
)
from punchlistd.store.file.operations import Operations
from punchlistd.store.file.unindexed import Unindexed
from punchlistd.store.port import Damaged, Gap, Loaded, Stored, side_of
from punchlistd.store.record import is_tombstone, key_hash, take_groups, verify_chain

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ANY_CONVERSATION = ""
"""Placeholder in a set of conversations that may have lost an event: represents all conversations without a later
event."""


class Readable(Protocol):
    """A log that rows can be read from."""

    connection: sqlite3.Connection
    head: int


def scan(log: Operations, after: int) -> None:
    """Build the in-memory index of the rows after a position."""
    log.unindexed = Unindexed()
    damaged: list[tuple[Row, Salvage]] = []
    for row in rows(log, after):
        lines = split(row)
        if lines is None:
            salvaged = _salvage_row(log, row)
            damaged.append((row, salvaged))
            lines = salvaged.good
        log.unindexed.add_stored(lines, row[0], is_first=after == 0)
    if not damaged:
        return
    names = {*log.unindexed.rows}
    with suppress(IndexDoubted):
        names |= log.index.all_names()
    for row, salvaged in damaged:
        with suppress(IndexDoubted):
            for name, seq in log.index.parts_between(row[1], row[0]):
                log.unindexed.add_row(name, seq)
        for damage in _record_damage(log, salvaged, names, _row_conversations(log, row) | {ANY_CONVERSATION}):
            if damage.conversation:
                log.unindexed.add_row(damage.conversation, row[0])


def rebuild_index(log: Operations, reason: str) -> None:
    """Discard the contents of the index and scan the whole log. All events are unindexed afterwards."""
    logger.error("%s: the index is rebuilt from the log (%s)", log.path, reason)
    log.index_lost = reason
    try:
        scan(log, 0)  # scan before the reset: the old index may still map damaged rows to conversations
        log.index.reset(log.epoch)
    except IndexDoubted:
        log.index.reset(log.epoch)
        scan(log, 0)
    log.indexed = 0


def with_rebuild(log: Operations, operation: Callable[[Operations, *Ts], T], *args: *Ts) -> T:
    """Run an operation that finds events through the index. If the index is wrong, rebuild it and retry once.

    Raises:
        Damaged: The rebuilt index can't be read either.
    """
    try:
        return operation(log, *args)
    except IndexDoubted as doubt:
        rebuild_index(log, str(doubt))
    try:
        return operation(log, *args)
    except IndexDoubted as doubt:
        raise Damaged("", 0, f"the index can't be read: {doubt}") from doubt


def query_index(log: Operations, operation: Callable[[Operations], T]) -> T:
    """Run an operation on data that is only in the index.

    Raises:
        Damaged: The index was rebuilt and is empty. `index_lost` contains the reason until it is cleared.
    """
    if not log.index_lost:
        try:
            return operation(log)
        except IndexDoubted as doubt:
            rebuild_index(log, str(doubt))
    raise Damaged("", 0, f"the index can't be read: {log.index_lost}")


def rows(log: Readable, after: int) -> Generator[Row]:
    """Yield the rows that end after a position, without gaps. A lost row replaces missing or unreadable rows."""
    due = after + 1
    for row, following in pairwise(chain(_stored_rows(log, due), [lost_row(log.head + 1, log.head + 1)])):
        if following[1] <= row[0]:  # the rows overlap, so the position of one of them is damaged
            if following[1] > row[1]:
                row = (following[1] - 1, *row[1:]) if is_sparse(row) else row  # noqa: PLW2901
            elif row[1] != due:
                row = lost_row(due, following[1] - 1)  # noqa: PLW2901
        if row[0] < due:
            continue  # its position is damaged; a lost row was yielded at its true position
        if is_lost(row):
            row = lost_row(due, row[0])  # noqa: PLW2901 - its first position is unreadable
        elif row[1] > due:
            yield lost_row(due, row[1] - 1)
        yield row
        due = row[0] + 1
    if due <= log.head:
        yield lost_row(due, log.head)


def _stored_rows(log: Readable, due: int) -> Generator[Row]:
    """Yield the rows starting at a position, in file order, without checking their positions."""
    limit = -1
    while due <= log.head:
        start = due
        try:
            selected = _select(log, f"SELECT {ROW} FROM log WHERE seq >= ? ORDER BY seq LIMIT ?", (due, limit))
            with closing(selected):
                for row in selected:
                    if limit > 0 and is_lost(row):
                        raise sqlite3.DatabaseError("nothing is left of it, nor of its position")
                    yield row
                    due = max(due, row[0] + 1)
            if limit < 0 or due == start:
                break
        except sqlite3.DatabaseError:
            if limit < 0:
                # The sqlite3 module fetches one row ahead, so the error may have hidden a readable row before the
                # unreadable one. Read row by row from here.
                limit = 1
            else:
                first = _find_readable(log, due)
                yield lost_row(due, first - 1)
                due, limit = first, -1


def _find_readable(log: Readable, due: int) -> int:
    """Return the first position after the unreadable row that contains `due`."""

    def is_readable(after: int) -> bool:
        try:
            row = log.connection.execute(
                f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1", (after,)
            ).fetchone()
        except sqlite3.DatabaseError:
            return False
        return row is None or not is_lost(row)

    return bisect_left(range(log.head), True, lo=due, key=is_readable) + 1


def rows_of(log: Operations, conversation: str, after: int) -> Generator[Row]:
    """Yield the rows after a position that contain lines of a conversation, with lost rows for unreadable ones.

    Raises:
        IndexDoubted: The index contains a position at which no row ends.
    """
    unindexed = [seq for seq in log.unindexed.rows.get(conversation, ()) if seq > after]
    for seq, _ in groupby(merge(log.index.rows_of(conversation, after), unindexed)):
        row = row_at(log, seq)
        if is_lost(row) and _has_other_row(log, seq):
            raise IndexDoubted(f"no row ends at {seq}, where {conversation} should have one")
        yield row


def _has_other_row(log: Operations, seq: int) -> bool:
    """Whether an intact row contains a position but doesn't end there."""
    if not 0 < seq <= log.head:
        return True
    with suppress(sqlite3.DatabaseError):
        query = f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1"
        row = log.connection.execute(query, (seq,)).fetchone()
        return row is not None and row[1] <= seq and split(row) is not None
    return False


def row_at(log: Operations, seq: int) -> Row:
    """Return the row that ends at a position, or a lost row if it can't be read."""
    with suppress(sqlite3.DatabaseError):
        row = log.connection.execute(f"SELECT {ROW} FROM log WHERE seq = ?", (seq,)).fetchone()
        if row is not None:
            return _check_position(log, row)
    return lost_row(seq, seq)


def _check_position(log: Operations, row: Row) -> Row:
    """Return the row, or a lost row if the next one doesn't start right after it.

    The checksum doesn't cover a row's position, so a damaged position may be that of another row. Only sparse rows need
    this check. All others have as many lines as positions.
    """
    if is_sparse(row):
        query = f"SELECT {ROW} FROM log WHERE seq > ? ORDER BY seq LIMIT 1"
        following = log.connection.execute(query, (row[0],)).fetchone()
        if following is not None and following[1] != row[0] + 1 and (following[0] <= row[0] or following[2] != SPOILED):
            return lost_row(row[0], row[0])
    return row


def _select(log: Readable, query: str, parameters: tuple[object, ...]) -> Generator[Row]:
    cursor = log.connection.execute(query, parameters)
    try:
        yield from cursor
    finally:
        cursor.close()  # an open statement would block every checkpoint


def lines_of(log: Operations, row: Row, conversation: str | None, after: int) -> tuple[list[Stored], Damaged | None]:
    """Return the lines of a row after a position, up to the first damaged line, and that damage if any.

    Args:
        log: The log.
        row: The row.
        conversation: Only include lines and damage of this conversation; None includes all conversations.
        after: The position.
    """
    lines, damage = split(row), None
    if lines is None:
        salvaged = _salvage_row(log, row)
        names = _row_conversations(log, row)
        losers = names if names and row[0] <= log.indexed else {ANY_CONVERSATION}
        recorded = _record_damage(log, salvaged, names, losers)
        relevant = [entry for entry in recorded if conversation in (None, entry.conversation) and entry.seq > after]
        lines, damage = salvaged.good, relevant[0] if relevant else None
    if conversation is not None:
        lines = select_conversation(lines, conversation)
    if after >= row[1]:
        lines = [stored for stored in lines if stored.seq > after]
    if damage is not None:
        lines = [stored for stored in lines if stored.seq < damage.seq]
    return lines, damage


def _salvage_row(log: Operations, row: Row) -> Salvage:
    return salvage(row, lambda name, seq: _previous_check(log, name, seq))


def _record_damage(log: Operations, salvaged: Salvage, names: set[str], losers: set[str]) -> list[Damaged]:
    """Record the damaged events of a row.

    Args:
        log: The log.
        salvaged: The contents of the row.
        names: Conversations that the events may belong to.
        losers: Conversations that may have lost an event that resembles none of `names`.
    """
    recorded: list[Damaged] = []
    for seq, named, line in salvaged.bad:
        # This may be a conversation's first event, whose name is not in `names` yet.
        is_new = named and b'","version":1,' in line[:200]
        candidates = [named] if named in names or is_new else [name for name in names if may_belong_to(name, seq, line)]
        owner = candidates[0] if len(candidates) == 1 else ""
        if not owner:
            log.damage.ownerless[seq] = frozenset(candidates or losers)
        recorded.append(log.damage.record(Damaged(owner, seq, "its checksum does not match")))
    return recorded


def read(log: Operations, after: int, limit: int, max_bytes: int) -> list[Stored]:
    """Read whole groups of events of all conversations after a position, up to the first unreadable event.

    Raises:
        Gap: The next event is unreadable.
    """
    events: list[Stored] = []
    size = next_readable = 0
    with closing(rows(log, after)) as log_rows:
        for row in log_rows:
            lines, damage = lines_of(log, row, None, after)
            if damage is not None:
                next_readable = row[0] + 1 if is_lost(row) else _next_undamaged(log, damage.seq)
            length = len(row[3]) if lines else 0
            if len(events) + len(lines) > limit or size + length > max_bytes:
                events += take_groups(lines, limit - len(events), max_bytes - size)
                break
            events += lines
            size += length
            if next_readable or len(events) >= limit or size >= max_bytes:
                break
    if next_readable and not events:
        raise Gap(after, next_readable)
    return events


def _next_undamaged(log: Operations, seq: int) -> int:
    while seq in log.damage.events:
        seq += 1
    return seq


def read_conversation(log: Operations, conversation: str, after: int, limit: int, max_bytes: int) -> list[Stored]:
    """Read whole groups of events of one conversation after a position, up to the first unreadable event.

    Raises:
        Damaged: The next event is unreadable.
    """
    events: list[Stored] = []
    size, missing, is_torn = 0, None, False
    version = _version_at(log, conversation, after)
    with closing(rows_of(log, conversation, after)) as conversation_rows:
        for row in conversation_rows:
            if is_lost(row):  # later versions may prove that the row contained none of the conversation's events
                missing, is_torn = missing or row, True
                continue
            lines, damage = _conversation_lines(log, row, conversation, after)
            lines, gap = _cut_at_gap(lines, version)
            if gap and is_torn:
                log.damage.record(gap)
            length = sum(len(stored.line) for stored in lines)
            if len(events) + len(lines) > limit or size + length > max_bytes:
                # If only part of the row was returned, end here, or its other lines would be skipped.
                return events + take_groups(lines, limit - len(events), max_bytes - size)
            events += lines
            size += length
            if damage := gap or damage:
                damage = _confirm_loss(log, damage)
                if events:
                    return events
                raise damage
            if lines:
                version, missing = lines[-1].version, None
            elif row[1] > after:
                missing = missing or row
            if len(events) >= limit or size >= max_bytes:
                return events
    if damage := _find_loss(log, conversation, missing, events[-1].seq if events else after):
        if events:
            return events
        raise damage
    return events


def _conversation_lines(
    log: Operations, row: Row, conversation: str, after: int
) -> tuple[list[Stored], Damaged | None]:
    """Like `lines_of`, for a row that should contain events of the conversation.

    Raises:
        IndexDoubted: The row is intact but contains none.
    """
    lines, damage = lines_of(log, row, conversation, after)
    if not lines and damage is None and row[1] > after and split(row) is not None:
        raise IndexDoubted(f"the row at {row[0]} has no lines of {conversation}")
    return lines, damage


def _confirm_loss(log: Operations, damage: Damaged) -> Damaged:
    """Return the damage, unless a wrong index may be the cause.

    Raises:
        IndexDoubted: The log is not damaged at this position, and the index was not just rebuilt.
    """
    if damage.seq not in log.damage.events and not log.index.is_new:
        raise IndexDoubted(str(damage))
    return damage


def _version_at(log: Operations, conversation: str, after: int) -> int | None:
    """Return the version of a conversation's last event up to a position: 0 if none exists, None if unreadable."""
    if after == 0:
        return 0
    with closing(rows_of(log, conversation, after)) as conversation_rows:
        next_row = next(conversation_rows, None)  # it may start at or before `after`
    for row in (next_row, previous_row(log, conversation, after + 1)):
        if row is not None and row[1] <= after:
            lines, last_damaged = split(row), 0
            if lines is None:
                salvaged = _salvage_row(log, row)
                lines = salvaged.good
                last_damaged = max((seq for seq, _, _ in salvaged.bad if seq <= after), default=0)
            earlier = [stored for stored in select_conversation(lines, conversation) if stored.seq <= after]
            if last_damaged > (earlier[-1].seq if earlier else 0):
                return None
            if earlier:
                return earlier[-1].version
    return 0


def _cut_at_gap(lines: list[Stored], version: int | None) -> tuple[list[Stored], Damaged | None]:
    """Return the lines before the first missing version, and the damage if one is missing."""
    for index, stored in enumerate(lines):
        is_next = version is None or stored.version == version + 1
        if not is_next and not (is_tombstone(stored.wire) and stored.version > (version or 0)):
            return lines[:index], Damaged(stored.conversation, stored.seq, f"version {(version or 0) + 1} is missing")
        version = stored.version
    return lines, None


def _find_loss(log: Operations, conversation: str, missing: Row | None, last: int) -> Damaged | None:
    """Return a damaged event that follows a conversation's last readable event and belongs, or may belong, to it.

    Earlier damage is excluded by the versions of the events that follow it.

    Args:
        log: The log.
        conversation: The conversation.
        missing: A row after `last` that should contain events of the conversation but doesn't.
        last: The position of the conversation's last readable event.
    """
    if missing is not None:
        reason = "the index refers to it, but it is missing"
        return log.damage.record(Damaged(conversation, missing[1], reason))
    for seq, losers in sorted(log.damage.ownerless.items()):
        if seq > last and (conversation in losers or (last and ANY_CONVERSATION in losers)):
            return Damaged(conversation, seq, "it is damaged and may belong to this conversation")
    return None


def load(log: Operations, conversation: str) -> Loaded:
    """Load a conversation's newest snapshot and all later events. If they don't match, load all its events instead."""
    if saved := log.index.snapshot(conversation):
        with suppress(Damaged):  # a snapshot is only an optimization: load all events from the log instead
            return _load_after(log, conversation, saved)
    try:
        return _load_after(log, conversation, Loaded())
    except Damaged as damage:
        raise _confirm_loss(log, damage) from None


def _load_after(log: Operations, conversation: str, saved: Loaded) -> Loaded:
    newer: list[Stored] = []
    missing, is_torn = None, False
    with closing(rows_of(log, conversation, saved.seq)) as conversation_rows:
        for row in conversation_rows:
            if is_lost(row):
                missing, is_torn = missing or row, True
                continue
            lines, damage = _conversation_lines(log, row, conversation, saved.seq)
            if damage is not None:
                raise damage
            newer += lines
            if lines:
                missing = None
            elif row[1] > saved.seq:
                missing = missing or row
    try:
        verify_chain(conversation, saved.version, saved.check, newer)
    except Damaged as damage:
        raise log.damage.record(damage) if is_torn else damage from None
    if damage := _find_loss(log, conversation, missing, newer[-1].seq if newer else saved.seq):
        raise damage
    return Loaded(saved.state, saved.version, saved.seq, saved.check, newer)


def keys(log: Operations, conversation: str) -> list[int]:
    return log.index.keys(conversation) + [key_hash(key) for key in log.unindexed.keys.get(conversation, ())]


def find_key(log: Operations, conversation: str, key: str) -> list[Stored]:
    """Return the newest group of events that used a key, or an empty list."""
    indexed = log.index.find_key(conversation, key)
    recent = log.unindexed.keys.get(conversation, {}).get(key)
    for seq in ([recent] if recent else []) + indexed:
        group = _group_at(log, conversation, seq)
        if side_of(group[0]).key == key:
            return group
    if indexed and not log.index.is_new:
        raise IndexDoubted(f"the events indexed under a key of {conversation} do not have that key")
    return []


def _group_at(log: Operations, conversation: str, seq: int) -> list[Stored]:
    with closing(rows(log, seq - 1)) as log_rows:
        for row in log_rows:
            lines, damage = lines_of(log, row, conversation, seq - 1)
            if lines:
                return take_groups(lines, 1, 1)
            if damage is not None:
                raise damage
    raise _confirm_loss(log, Damaged(conversation, seq, "the event is missing"))


def _row_conversations(log: Operations, row: Row) -> set[str]:
    """Return the conversations that, according to both indexes, have a row that ends within this row."""
    names = {name for name, ends in log.unindexed.rows.items() if any(row[1] <= seq <= row[0] for seq in ends)}
    with suppress(IndexDoubted):
        names |= {name for name, _ in log.index.parts_between(row[1], row[0])}
    return names


def previous_row(log: Operations, conversation: str, seq: int) -> Row | None:
    """Return the conversation's newest row that ends before a position, or None."""
    unindexed = [row for row in log.unindexed.rows.get(conversation, ()) if row < seq]
    previous = max([log.index.last_row(conversation, seq), *unindexed])
    return row_at(log, previous) if previous else None


def _previous_check(log: Operations, conversation: str, seq: int) -> str:
    """Return the check of a conversation's last event before a position, or "". Its row is not verified."""
    row = previous_row(log, conversation, seq)
    marker = b',"conversation":"%s","' % conversation.encode()
    lines = [line for line in row[3].split(b"\n") if marker in line[:200]] if row else []
    return lines[-1].rpartition(b"\t")[2].decode("ascii", "replace") if lines else ""
