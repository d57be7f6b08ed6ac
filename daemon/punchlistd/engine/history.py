"""A conversation's events out of the log: all that were asked for, or word of what is missing."""

from punchlistd.store.port import Damaged, EventLog, Stored


async def history(log: EventLog, conversation: str, until: int, after: int = 0) -> list[Stored]:
    """All events of a conversation behind one position and up to another, which is that of an event of it.

    What the log answers may end early, before an event that can't be had: then it is asked for that one.

    Raises:
        Damaged: One of them can't be had.
    """
    found: list[Stored] = []
    while after < until:
        stored = await log.read(after, 1 << 60, conversation=conversation, max_bytes=1 << 60)
        if not stored:
            raise Damaged(conversation, until, f"the events behind {after} are missing")
        found += stored
        after = stored[-1].seq
    return found
