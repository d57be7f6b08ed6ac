"""The palette: finds lists and commands by a few letters of their names."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Provider

from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.parts import sanitize
from punchlist_apps.ui.program import Program
from punchlist_schemas.repository import short_name

_SUGGESTIONS = 8


class Palette(Provider):
    """Provides all lists, and the commands of the screen under the palette."""

    async def search(self, query: str) -> AsyncGenerator[Hit]:
        matcher = self.matcher(query)
        for name, description, run in self._list_commands():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), run, help=description)

    async def discover(self) -> AsyncGenerator[DiscoveryHit]:
        for name, description, run in self._list_commands()[:_SUGGESTIONS]:
            yield DiscoveryHit(name, run, help=description)

    def _list_commands(self) -> list[tuple[str, str, Callable[[], Awaitable[None] | None]]]:
        app = cast(Program, self.app)
        commands: list[tuple[str, str, Callable[[], Awaitable[None] | None]]] = []
        for card in app.cards.values():
            short = sanitize(short_name(card.conversation, app.cards))
            name = sanitize(card.title) or short
            counts = card.counts
            description = f"list {short} · {counts.completed} done, {counts.in_progress} in progress"
            commands.append((name, description, partial(app.open_list, card.conversation)))
        screen = self.screen
        if isinstance(screen, LineScreen):
            for key in app.keys.keys.values():
                if screen.screen_name in key.screens:
                    commands.append((key.does, f"key {key.shown}", partial(screen.act, key.name)))
        commands.append(("dark or light", "theme", app.switch_theme))
        return commands
