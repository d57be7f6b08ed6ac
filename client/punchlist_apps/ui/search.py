"""The screen that searches the tasks in all lists."""

from typing import ClassVar

import anyio
from textual import events
from textual.widgets import Input

from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.common.terminal.render import truncate
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.parts import Item, Part, hue, sanitize, state, width_of
from punchlist_schemas.repository import short_name
from punchlist_schemas.results import Hit
from punchlist_schemas.things import FINISHED

_PAUSE_S = 0.12
"""Pause in typing after which the daemon searches, in seconds."""
_LIMIT = 50
_MAX_CHARS = 500


class Search(LineScreen):
    """Screen with the tasks that have all words. Unfinished tasks and those of the open list come first.

    Args:
        conversation: The open list; empty for none.
    """

    screen_name: ClassVar[str] = "search"
    hints: ClassVar[dict[str, str]] = {"open": "open", "back": "back"}

    def __init__(self, client: AsyncClient, conversation: str = "") -> None:
        super().__init__()
        self._client = client
        self._open_list = conversation
        self._hits: dict[str, Hit] = {}
        self._words = ""
        self._total = 0

    def focus_start(self) -> None:
        self.query_one("#filter", Input).placeholder = "search the tasks of all lists"
        self.do_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.prevent_default()
        self.run_worker(self._search(event.value.strip()), group="search", exclusive=True)

    async def _search(self, words: str) -> None:
        await anyio.sleep(_PAUSE_S)
        if len(words) > _MAX_CHARS:
            self.report(f"A search has at most {_MAX_CHARS} characters.")
            return
        hits: tuple[Hit, ...] = ()
        try:
            if words:
                result = await self._client.search(words, limit=_LIMIT)
                hits, self._total = result.hits, result.total
        except PunchlistError as error:
            self.report(str(error))
            return
        self.report()
        self._words = words
        ordered = sorted(
            hits, key=lambda hit: (hit.task.status in FINISHED, hit.conversation != self._open_list)
        )  # Stable, so that the best match stays first.
        self._hits = {f"{hit.conversation} {hit.task.id}": hit for hit in ordered}
        self.rearrange()
        self.lines.select(0)

    def build_items(self) -> list[Item]:
        items: list[Item] = []
        for key, hit in self._hits.items():
            items.append(Item(key))
            excerpt = sanitize(hit.excerpt)
            if excerpt and excerpt.strip("…") not in sanitize(hit.task.title):
                items.append(Item("", parts=(("dim", f"     {excerpt}"),)))
        if self._total > len(self._hits) > 0:
            items.append(Item("", 0, f"and {self._total - len(self._hits)} more", "dim"))
        return items

    def describe_empty(self) -> str:
        if self._words:
            return f"No task has “{sanitize(self._words)}”."
        return "Words of titles, descriptions, notes and results, in any order; a beginning of a word is enough."

    def draw(self, item: Item, width: int) -> list[Part]:
        hit = self._hits.get(item.key)
        if hit is None:
            return []
        task, glyphs = hit.task, self.program.glyphs
        shown = state(task)
        where = truncate(sanitize(hit.title) or sanitize(short_name(hit.conversation, self.program.cards)), width // 3)
        parts: list[Part] = [(shown, f" {glyphs[shown]} "), ("dim", f"#{sanitize(task.id)} ")]
        owner = f"  @{sanitize(task.owner)}" if task.owner else ""
        room = max(width - width_of([*parts, ("", where)]) - 2, 8)
        title = truncate(sanitize(task.title), room, glyphs["cut"])
        parts.append(("dim" if task.status in FINISHED else "title", title))
        parts.append((hue(task.owner), truncate(owner, room - width_of([("", title)]), glyphs["cut"]) if owner else ""))
        return [*parts, ("", " " * max(width - width_of([*parts, ("", where)]) - 1, 1)), ("dim", where)]

    def draw_bar(self) -> list[Part]:
        found = f"   {self._total} tasks" if self._words else ""
        return [("title", "search"), ("dim", found)]

    def has_spinner(self, key: str) -> bool:
        return False

    def draw_changes(self) -> None:
        """Do nothing, since results don't follow changes."""

    async def on_key(self, event: events.Key) -> None:
        keys = {
            "down": self.do_down,
            "up": self.do_up,
            "pagedown": self.do_page_down,
            "pageup": self.do_page_up,
            "enter": self.do_open,
            "escape": self.do_back,
        }
        event.prevent_default()
        if (act := keys.get(event.key)) is not None:
            event.stop()
            act()

    def do_open(self) -> None:
        if (hit := self._hits.get(self.lines.key)) is not None:
            self.program.open_list(hit.conversation, hit.task.id)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_back(self) -> None:
        self.program.pop_screen()
