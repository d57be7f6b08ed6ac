"""Adds the titles of tasks and lists to events, for readers that show events of many lists.

An event names its task only by id. While an event is in memory its titles are stored with it; here they are found for
events that were read from the log.
"""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from punchlist_schemas.events import About, ListCleared, TaskAdded, TaskEdited
from punchlistd.domain.commands import Fact
from punchlistd.domain.state import State
from punchlistd.domain.undo.trace import task_id_of
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.history import History, fact_of
from punchlistd.store.port import Damaged, Stored
from punchlistd.store.record import is_tombstone


class Titles:
    """Finds the titles of past events."""

    def __init__(self, conversations: Conversations, history: History) -> None:
        self._conversations = conversations
        self._history = history

    async def add(self, events: Sequence[Stored]) -> list[bytes]:
        """Return the JSON of events with their `about`.

        A title is the one after the event, or a later one. If the task was deleted since, its last title before the
        deletion is read from the log, and left out if the log is damaged there.
        """
        facts: dict[str, list[Fact]] = {}

        def decode(stored: Stored) -> bool:
            facts.setdefault(stored.conversation, []).append(fact_of(stored))
            return True

        await self._history.each(events, decode)
        titles: dict[int, str] = {}
        lists: dict[str, str] = {}
        for name, group in facts.items():
            loaded = await self._conversations.durable(name)
            lists[name], state, end = loaded.shown_name, loaded.state, loaded.seq
            unknown = _find_titles(state, group, titles)
            if unknown:
                try:
                    tasks = await self._history.at(name, group[0].version - 1, end, lambda state, _: dict(state.tasks))
                except Damaged as damaged:
                    self._conversations.record_damage(damaged)
                    continue
                titles |= {seq: tasks[task].title for seq, task in unknown.items() if task in tasks}
        # An erased list's title is gone, and a list that has its name now may belong to someone else.
        return [
            add_about(
                event.wire,
                titles.get(event.seq, ""),
                event.conversation if is_tombstone(event.wire) else lists[event.conversation],
            )
            for event in events
        ]


def _find_titles(state: State, facts: Sequence[Fact], titles: dict[int, str]) -> dict[int, str]:
    """Add the titles of events to `titles`, by position. Return the tasks of those whose title is not known."""
    known: dict[str, str] = {}
    unknown: dict[int, str] = {}
    for fact in facts:
        event, task = fact.event, task_id_of(fact.event)
        if isinstance(event, TaskAdded):
            known[task] = event.task.title
        elif isinstance(event, TaskEdited) and event.title is not UNSET:
            known[task] = event.title
        elif isinstance(event, ListCleared):
            known.clear()
        # After a clear, another task may have the same id, even within a millisecond.
        elif task not in known and (now := state.tasks.get(task)) is not None and now.created_at < fact.at:
            known[task] = now.title
        if task in known:
            titles[fact.seq] = known[task]
        elif task:
            unknown[fact.seq] = task
    return unknown


def add_about(wire: bytes, title: str, name: str) -> bytes:
    """Return the JSON of an event with the member `about`."""
    return b'%b,"about":%b}' % (wire[:-1], _encode(About(title=title, list=name)))


_encode = msgspec.json.Encoder().encode
