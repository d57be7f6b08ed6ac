"""Screen of agents and people, with the tasks they hold. Enter opens the list of a task."""

import time
from typing import ClassVar

from textual.worker import Worker

from punchlist.base.agents import NO_AGENTS, HeldTask, Participant, Roster, build_roster
from punchlist.base.text import safe
from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.parts import Item, Part

_INTERVAL_S = 2.0
"""Polling interval while the screen is shown, in seconds. The daemon doesn't push arrivals and departures."""
_ACTIONS = frozenset(
    "down up first last page_down page_up open back filter palette help quit home lists search".split()
)


class Who(LineScreen):
    """Screen of agents and people."""

    screen_name: ClassVar[str] = "board"
    hints: ClassVar[dict[str, str]] = {"open": "open list", "back": "back", "filter": "filter", "help": "all keys"}

    def __init__(self, client: AsyncClient) -> None:
        super().__init__()
        self._client = client
        self._roster: Roster | None = None
        self._entries: dict[str, Participant | HeldTask] = {}
        self._reading: Worker[None] | None = None

    def on_mount(self) -> None:
        self.set_interval(_INTERVAL_S, self._start_reading)
        self._start_reading()

    def _start_reading(self) -> None:
        if self.program.screen is self and (self._reading is None or self._reading.is_finished):
            self._reading = self.run_worker(self._read(), "who")

    async def _read(self) -> None:
        try:
            response = await self._client.call("agent.list")
        except PunchlistError as error:
            self.report(f"This is the last picture. {error}")
            return
        self.report()
        self._roster = build_roster(response, int(time.time() * 1000))
        self.schedule_draw()

    def draw(self, item: Item, width: int) -> list[Part]:
        entry = self._entries.get(item.key)
        if isinstance(entry, HeldTask):
            return [("", f"     {entry.line}")]
        if entry is None:
            return []
        glyphs = self.program.setup.glyphs
        state = "in_progress" if entry.is_here else "pending"
        details = entry.details(glyphs["dot"])
        return [(state, f" {glyphs[state]} "), ("title", safe(entry.name)), ("dim", f"  {details}")]

    def build_items(self) -> list[Item]:
        self._entries = {}
        items: list[Item] = []
        words = self.filter_text.casefold().split()
        for agent in self._roster.agents if self._roster else ():
            entries: list[tuple[str, Participant | HeldTask]] = [(agent.name, agent)]
            entries += [(f"{agent.name} {task.conversation} {task.id}", task) for task in agent.tasks]
            text = " ".join([safe(agent.name), agent.details(""), *(task.line for task in agent.tasks)]).casefold()
            if all(word in text for word in words):
                self._entries |= dict(entries)
                items += [Item(key) for key, _ in entries]
        return [*items, Item("", 0, self._roster.others)] if self._roster and self._roster.others else items

    def draw_bar(self) -> list[Part]:
        connected = sum(agent.is_here for agent in self._roster.agents) if self._roster else 0
        return [("title", "who is there"), ("dim", f"   {connected} connected")]

    def describe_empty(self) -> str:
        return NO_AGENTS if self._roster and not self.filter_text else ""

    def has_spinner(self, key: str) -> bool:
        return False

    def draw_changes(self) -> None:
        self.rearrange()

    async def act(self, action: str) -> None:
        if action in _ACTIONS:
            await super().act(action)

    def do_open(self) -> None:
        entry = self._entries.get(self.lines.key)
        if isinstance(entry, HeldTask):
            self.program.open_list(entry.conversation)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_back(self) -> None:
        if self.filter_text:
            self._close_filter(keep=False)
        else:
            self.program.pop_screen()
