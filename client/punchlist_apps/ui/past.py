"""The past of a list: its state at a version, and the screen with its history."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec

from punchlist.calls.cursor import Change, TaskList
from punchlist.clients.aio import AsyncConversation
from punchlist_apps.common.terminal.event_lines import EventFormatter
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.parts import Item, Part
from punchlist_schemas.events import UnknownEvent
from punchlist_schemas.things import Counts, Damage, Task

_MAX_EVENTS = 500
_PAGE = 10_000
_ACTIONS = frozenset(
    "down up first last page_down page_up open undo back filter palette help quit home lists search".split()
)


class PastList(NamedTuple):
    """A list at a version. It has the members of `Rows`, and `change`, which is the event that created the version."""

    by_id: Mapping[str, Task]
    order: list[Task]
    counts: Counts
    version: int
    damaged: Damage | None
    change: str

    @classmethod
    def of(cls, tasks: TaskList, change: str) -> "PastList":
        by_id = {task.id: task for task in tasks}
        return cls(by_id, list(tasks), tasks.counts, tasks.version, tasks.damaged, change)


async def load_version(conversation: AsyncConversation, version: int) -> PastList:
    tasks = await conversation.list(at_version=version)
    events = await conversation.client.read(max(tasks.seq - 1, 0), conversation.id, limit=1)
    change = next((format_change(event) for event in events if event.version == version), "")
    return PastList.of(tasks, change)


async def read_latest(conversation: AsyncConversation, upto: int) -> list[Change]:
    """Return the last events of a list, newest first.

    Reads a window at the end of the log, and enlarges it while it contains too few events of the list.
    """
    window = _PAGE
    while True:
        after = max(upto - window, 0)
        changes: list[Change] = []
        position = after
        while page := await conversation.client.read(position, conversation.id, limit=_PAGE):
            changes += page
            position = page[-1].seq
        if len(changes) >= _MAX_EVENTS or not after:
            return changes[: -_MAX_EVENTS - 1 : -1]
        window *= 8


def format_change(change: Change, formatter: EventFormatter | None = None) -> str:
    """Format an event as one line, escaped for the terminal."""
    event = change.event
    value: Any = msgspec.json.decode(event.raw) if isinstance(event, UnknownEvent) else msgspec.to_builtins(event)
    head = {"conversation": change.conversation, "at": change.at, "actor": change.actor, "event": value}
    return (formatter or EventFormatter(Style(), dated=False)).format(head)


class History(LineScreen):
    """Screen of a list's events, newest first. Enter shows the list at that version, and `undo` undoes the change.

    Args:
        name: The list's name.
        changes: The events, newest first.
        undo: Called with the first version of the call to undo, and its actor.
    """

    screen_name: ClassVar[str] = "list"
    hints: ClassVar[dict[str, str]] = {
        "open": "view",
        "undo": "undo",
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
        self._list_name = name
        self._show_version = show_version
        self._undo_change = undo
        self._actors = {str(change.version): change.actor for change in changes}
        formatter = EventFormatter(Style())
        lines = [format_change(change, formatter) for change in reversed(changes)]
        self._lines = {str(change.version): line for change, line in zip(changes, reversed(lines), strict=True)}

    def draw(self, item: Item, width: int) -> list[Part]:
        return [("dim", f" v{item.key:<6} "), ("", self._lines[item.key])]

    def build_items(self) -> list[Item]:
        words = self.filter_text.casefold().split()
        return [Item(key) for key, line in self._lines.items() if all(word in line.casefold() for word in words)]

    def draw_bar(self) -> list[Part]:
        return [("title", self._list_name), ("dim", f"   what happened, newest first · {len(self._lines)} events")]

    def has_spinner(self, key: str) -> bool:
        return False

    def draw_changes(self) -> None:
        """Do nothing, since past events don't change."""

    async def act(self, action: str) -> None:
        if action in _ACTIONS:
            await super().act(action)

    def do_open(self) -> None:
        key = self.lines.key
        self.program.pop_screen()
        if key:
            self._show_version(int(key))

    def do_undo(self) -> None:
        key = self.lines.key
        self.program.pop_screen()
        if key:
            self._undo_change(int(key), self._actors[key])

    def do_back(self) -> None:
        self.program.pop_screen()
