"""Screen of agents and people with the tasks they hold. Enter opens the list of a task."""

import time
from typing import ClassVar

from textual.worker import Worker

from punchlist.base.agents import NO_AGENTS, HeldTask, Participant, Roster, build_roster
from punchlist.base.text import safe
from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.ui.face import Face
from punchlist_apps.ui.parts import Item, Part

_EVERY_S = 2.0
"""Interval of requests while the screen is shown, in seconds. Arrivals and departures aren't pushed."""
_KNOWN = frozenset("down up first last page_down page_up open back filter palette help quit".split())


class Who(Face):
    """Shows agents and people.

    Args:
        client: Asks for them.
    """

    place: ClassVar[str] = "board"
    hints: ClassVar[dict[str, str]] = {"open": "open list", "back": "back", "filter": "filter", "help": "all keys"}

    def __init__(self, client: AsyncClient) -> None:
        super().__init__()
        self._client = client
        self._told: Roster | None = None
        self._shown: dict[str, Participant | HeldTask] = {}
        self._reading: Worker[None] | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(_EVERY_S, self._ask)
        self._ask()

    def _ask(self) -> None:
        if self.face.screen is self and (self._reading is None or self._reading.is_finished):
            self._reading = self.run_worker(self._read(), "who")

    async def _read(self) -> None:
        try:
            found = await self._client.call("agent.list")
        except PunchlistError as error:
            self.report(f"This is the last picture. {error}")
            return
        self.report()
        self._told = build_roster(found, int(time.time() * 1000))
        self.soon()

    def draw(self, item: Item, width: int) -> list[Part]:
        one = self._shown.get(item.key)
        if isinstance(one, HeldTask):
            return [("", f"     {one.line}")]
        if one is None:
            return []
        glyphs = self.face.setup.glyphs
        state = "in_progress" if one.is_here else "pending"
        return [(state, f" {glyphs[state]} "), ("title", safe(one.name)), ("dim", f"  {one.details(glyphs['dot'])}")]

    def items(self) -> list[Item]:
        self._shown = {}
        items: list[Item] = []
        words = self.words.casefold().split()
        for one in self._told.agents if self._told else ():
            lines: list[tuple[str, Participant | HeldTask]] = [(one.name, one)]
            lines += [(f"{one.name} {task.conversation} {task.id}", task) for task in one.tasks]
            text = " ".join([safe(one.name), one.details(""), *(task.line for task in one.tasks)]).casefold()
            if all(word in text for word in words):
                self._shown |= dict(lines)
                items += [Item(key) for key, _ in lines]
        return [*items, Item("", 0, self._told.others)] if self._told and self._told.others else items

    def head(self) -> list[Part]:
        here = sum(one.is_here for one in self._told.agents) if self._told else 0
        return [("title", "who is there"), ("dim", f"   {here} connected")]

    def empty(self) -> str:
        return NO_AGENTS if self._told and not self.words else ""

    def spins(self, key: str) -> bool:
        return False

    def draw_changes(self) -> None:
        self.arranged()

    async def act(self, action: str) -> None:
        if action in _KNOWN:
            await super().act(action)

    def do_open(self) -> None:
        one = self._shown.get(self.lines.key)
        if isinstance(one, HeldTask):
            self.face.open_list(one.conversation)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_back(self) -> None:
        if self.words:
            self._leave_words(keep=False)
        else:
            self.face.pop_screen()
