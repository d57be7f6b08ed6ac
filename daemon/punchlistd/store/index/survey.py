"""Whether the indexes of the table of lists find what it holds, which SQLite does not look at by itself.

An index that lost entries finds nothing, without a word: a list would not be shown, or begin anew. Looking at all of it
takes longer than the rest of a start, so it is done afterwards, in slices between which others have their turn. Until
then a name is believed where index and table agree on it; before one counts as unknown, the index of names is looked at
as a whole, and before the table is listed or changed, all of them.
"""

import sqlite3

from punchlistd.store.file.operations import Operations, Surveyed
from punchlistd.store.index.listing import is_timed
from punchlistd.store.port import Damaged, Survey

SLICE = 256
"""So many lists are looked at in one piece, which takes about two milliseconds."""

_STRANGE = " OR ".join(
    f"typeof(one.{name}) <> '{kind}'"
    for kind, names in {
        "integer": ("open", "in_progress", "updated_at", "deleted", "tombstone"),
        "text": ("search",),
        "blob": ("summary",),
    }.items()
    for name in names
)
"""What a damaged record may have made of members that no index repeats; SQLite checks their types when it writes."""

_LISTED = "{0}.deleted = 0 AND {0}.summary <> x''"
_NAMES = "INDEXED BY sqlite_autoindex_conversations_1"

# An entry that was cut short may compare as equal to an id and read as another one: ids are read (`+`), not sought.
_SLICE = f"""SELECT count(*), count(named.id), count(owned.id), coalesce(sum({_LISTED.format("one")}), 0),
        count(newest.id), coalesce(sum({_STRANGE}), 0)
    FROM conversations AS one NOT INDEXED
    LEFT JOIN conversations AS named {_NAMES} ON named.name = one.name AND +named.id = one.id
    LEFT JOIN conversations AS owned INDEXED BY users
        ON owned.user = one.user AND owned.name = one.name AND +owned.id = one.id
    LEFT JOIN conversations AS newest INDEXED BY newest
        ON newest.updated_at = one.updated_at AND newest.name = one.name AND +newest.id = one.id
        AND {_LISTED.format("newest")}
    WHERE one.id > ? AND one.id <= ?"""

_TIMED = """SELECT name, summary, open + in_progress FROM conversations NOT INDEXED
    WHERE id > ? AND id <= ? AND deleted = 0 AND (instr(summary, CAST('"wakes_at":' AS BLOB))
    OR (open = 0 AND in_progress = 0 AND instr(summary, CAST('"auto_clear":"idle"' AS BLOB))))"""

_UNERASED = "SELECT name FROM conversations NOT INDEXED WHERE id > ? AND id <= ? AND tombstone > 0"

_COUNTS = (
    f"SELECT count(*) FROM conversations {_NAMES}",
    "SELECT count(*) FROM conversations INDEXED BY users",
    f"SELECT count(*) FROM conversations INDEXED BY newest WHERE {_LISTED.format('conversations')}",
)

_ALL_NAMES = f"""SELECT count(*), count(named.id) FROM conversations AS one NOT INDEXED
    LEFT JOIN conversations AS named {_NAMES} ON named.name = one.name AND +named.id = one.id"""

_AGREE = f"""SELECT 1 FROM conversations AS named {_NAMES}
    JOIN conversations AS one NOT INDEXED ON one.id = named.id AND +one.name = named.name WHERE named.name = ?"""


def begin(log: Operations) -> None:
    """Look at all lists again, if that was done since the log was opened."""
    if log.surveyed.whole:
        log.surveyed = Surveyed()


def step(log: Operations) -> bool:
    """Look at the next slice. True once there is none.

    Raises:
        Damaged: The index does not find what the table holds. It is to be built again.
    """
    surveyed = log.surveyed
    if surveyed.whole:
        return True
    problem = ""
    try:
        last = log.connection.execute("SELECT coalesce(max(id), 0) FROM conversations NOT INDEXED").fetchone()[0]
        between = surveyed.up_to, min(surveyed.up_to + SLICE, last)
        lists, named, owned, listed, newest, strange = log.connection.execute(_SLICE, between).fetchone()
        if not (lists == named == owned and listed == newest and not strange):
            problem = f"what is kept of lists {between[0] + 1} to {between[1]} does not stand in its indexes"
        surveyed.timed += [name for name, *shown in log.connection.execute(_TIMED, between) if is_timed(*shown)]
        surveyed.unerased += [name for (name,) in log.connection.execute(_UNERASED, between)]
        surveyed.up_to, surveyed.lists, surveyed.listed = between[1], surveyed.lists + lists, surveyed.listed + listed
        if between[1] == last and not problem:
            counts = [log.connection.execute(query).fetchone()[0] for query in _COUNTS]
            if counts != [surveyed.lists, surveyed.lists, surveyed.listed]:
                problem = f"its indexes hold {counts} lists, and there are {surveyed.lists} and {surveyed.listed}"
            surveyed.whole = surveyed.names = not problem
    except sqlite3.DatabaseError as error:
        problem = str(error)
    if problem:
        log.index_error = problem
        raise Damaged("", 0, f"the index can't be read: {problem}")
    return surveyed.whole


def finish(log: Operations) -> None:
    """Look at all that is left, in one go.

    Raises:
        Damaged: The index does not find what the table holds.
    """
    while not step(log):
        pass


def names_problem(log: Operations, conversation: str) -> str:
    """Why a name can't be looked for in the index; "" where it is found in it, or none is missing there."""
    try:
        if log.surveyed.names or log.connection.execute(_AGREE, (conversation,)).fetchone():
            return ""
        lists, named = log.connection.execute(_ALL_NAMES).fetchone()
        entries = log.connection.execute(_COUNTS[0]).fetchone()[0]
    except sqlite3.DatabaseError as error:
        return str(error)
    log.surveyed.names = lists == named == entries
    return "" if log.surveyed.names else f"of {lists} lists the index names {named}, and it has {entries} entries"


def result(log: Operations) -> Survey:
    """What was found in all lists."""
    return Survey(log.surveyed.timed, log.surveyed.unerased)
