"""What a list was: the list as it stood at a version, who made that version, and what happened, newest first."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec

from punchlist.calls.cursor import Change, TaskList
from punchlist.clients.aio import AsyncConversation
from punchlist_apps.common.terminal.event_lines import EventFormatter
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.ui.face import Face
from punchlist_apps.ui.parts import Item, Part
from punchlist_schemas.events import UnknownEvent
from punchlist_schemas.things import Counts, Damage, Task

_EVENTS = 500
_PAGE = 10_000


class Picture(NamedTuple):
    """A list as it is drawn; `Rows` has the same members."""

    by_id: Mapping[str, Task]
    order: list[Task]
    counts: Counts
    version: int
    damaged: Damage | None
    made: str

    @classmethod
    def of(cls, tasks: TaskList, made: str) -> "Picture":
        """The list as it was; `made` says who made it so."""
        by_id = {task.id: task for task in tasks}
        return cls(by_id, list(tasks), tasks.counts, tasks.version, tasks.damaged, made)


async def at_version(plan: AsyncConversation, version: int) -> Picture:
    tasks = await plan.list(at_version=version)
    events = await plan.client.read(max(tasks.seq - 1, 0), plan.id, limit=1)
    made = [sentence(event) for event in events if event.version == version]
    return Picture.of(tasks, made[0] if made else "")


async def latest(plan: AsyncConversation, upto: int) -> list[Change]:
    """The last events of a list, newest first, as far as they are found without reading the whole log."""
    window = _PAGE
    while True:
        after = max(upto - window, 0)
        found: list[Change] = []
        position = after
        while page := await plan.client.read(position, plan.id, limit=_PAGE):
            found += page
            position = page[-1].seq
        if len(found) >= _EVENTS or not after:
            return found[: -_EVENTS - 1 : -1]
        window *= 8


def sentence(change: Change, formatter: EventFormatter | None = None) -> str:
    """One event as a line, harmless for a terminal."""
    event = change.event
    value: Any = msgspec.json.decode(event.raw) if isinstance(event, UnknownEvent) else msgspec.to_builtins(event)
    head = {"conversation": change.conversation, "at": change.at, "actor": change.actor, "event": value}
    return (formatter or EventFormatter(Style(), dated=False)).format(head)


class History(Face):
    """What happened to a list, newest first; Enter looks at the list as it was then, `undo` undoes a change.

    Args:
        name: What the list is called.
        changes: The events, newest first.
        show_version: Shows the list at a version.
        undo: Asks whether to undo the call that begins with a version, and its actor.
    """

    place: ClassVar[str] = "list"
    hints: ClassVar[dict[str, str]] = {
        "open": "look at it",
        "undo": "undo it",
        "back": "back",
        "filter": "filter",
        "help": "all keys",
    }

    def __init__(
        self,
        name: str,
        changes: list[Change],
        show_version: Callable[[int], None],
        undo: Callable[[int, str], None],
    ) -> None:
        super().__init__()
        self._whose = name
        self._show_version = show_version
        self._undo = undo
        self._actors = {str(change.version): change.actor for change in changes}
        formatter = EventFormatter(Style())
        lines = [sentence(change, formatter) for change in reversed(changes)]
        self._lines = {str(change.version): line for change, line in zip(changes, reversed(lines), strict=True)}

    def draw(self, item: Item, width: int) -> list[Part]:
        return [("dim", f" v{item.key:<6} "), ("", self._lines[item.key])]

    def items(self) -> list[Item]:
        words = self.words.casefold().split()
        return [Item(key) for key, line in self._lines.items() if all(word in line.casefold() for word in words)]

    def head(self) -> list[Part]:
        return [("title", self._whose), ("dim", f"   what happened, newest first · {len(self._lines)} events")]

    def spins(self, key: str) -> bool:
        return False

    def draw_changes(self) -> None:
        """What happened stays so."""

    async def act(self, action: str) -> None:
        known = "down up first last page_down page_up open undo back filter palette help quit".split()
        if action in known:
            await super().act(action)

    def do_open(self) -> None:
        key = self.lines.key
        self.face.pop_screen()
        if key:
            self._show_version(int(key))

    def do_undo(self) -> None:
        key = self.lines.key
        self.face.pop_screen()
        if key:
            self._undo(int(key), self._actors[key])

    def do_back(self) -> None:
        self.face.pop_screen()
