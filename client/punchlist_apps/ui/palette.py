"""The palette: every list and every command by a few letters of its name."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Provider

from punchlist_apps.ui.face import Face
from punchlist_apps.ui.parts import text
from punchlist_apps.ui.program import Program
from punchlist_schemas.repository import short_name

_FIRST = 8


class Everything(Provider):
    """Lists and commands of the screen below."""

    async def search(self, query: str) -> AsyncGenerator[Hit]:
        matcher = self.matcher(query)
        for name, does, run in self._found():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), run, help=does)

    async def discover(self) -> AsyncGenerator[DiscoveryHit]:
        for name, does, run in self._found()[:_FIRST]:
            yield DiscoveryHit(name, run, help=does)

    def _found(self) -> list[tuple[str, str, Callable[[], Awaitable[None] | None]]]:
        app = cast(Program, self.app)
        found: list[tuple[str, str, Callable[[], Awaitable[None] | None]]] = []
        for card in app.cards.values():
            called = text(short_name(card.conversation, app.cards))
            name = text(card.title) or called
            counts = card.counts
            does = f"list {called} · {counts.completed} done, {counts.in_progress} in progress"
            found.append((name, does, partial(app.open_list, card.conversation)))
        screen = self.screen
        if isinstance(screen, Face):
            for key in app.keys.keys.values():
                if screen.place in key.screens:
                    found.append((f"{key.does}", f"key {key.shown}", partial(screen.act, key.name)))
        return found
