"""The program of `punch ui`: its subscriptions and its screens."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import anyio
from textual.binding import BindingType

from punchlist.calls.cursor import BoardStart, BoardView, Cursor, EventsView
from punchlist.clients.aio import AsyncClient, AsyncConversation
from punchlist.errors import PunchlistError
from punchlist_apps.ui.board import Board
from punchlist_apps.ui.happened import Happened
from punchlist_apps.ui.keymap import load_keymap
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.list_screen import ListScreen
from punchlist_apps.ui.memory import Memory
from punchlist_apps.ui.now import Now
from punchlist_apps.ui.palette import Palette
from punchlist_apps.ui.parts import add_signs
from punchlist_apps.ui.program import Program, Setup
from punchlist_apps.ui.search import Search
from punchlist_apps.ui.theme import THEMES
from punchlist_apps.ui.who import Who
from punchlist_schemas.results import BoardPush

T = TypeVar("T")
_PAUSE_S = 1.0
_TIMEOUT_S = 3.0
"""Timeout for calls and watches if the daemon doesn't respond, in seconds."""
_PAGE = 500
_RECENT = 500
"""Number of events to read when the program starts."""


class PunchApp(Program):
    """The program.

    Args:
        setup: See `Setup`.

    Raises:
        BadKeys: The key file is invalid.
    """

    CSS_PATH = "ui.tcss"
    TITLE = "punchlist"
    COMMANDS: ClassVar[set[Any]] = {Palette}
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup = setup
        self.keys = load_keymap(setup.keys)
        self.memory = Memory(setup.memory)
        self.glyphs = add_signs(setup.glyphs)
        self.cards = {}
        self.client = AsyncClient(**{"timeout_s": _TIMEOUT_S, **setup.options})
        self.happened = Happened()
        self.now = Now(self.cards, self.happened)
        self.board = Board(self.cards)
        self._failures: dict[object, str] = {}
        self._board_cursor = Cursor(None, BoardView())
        self._pushed: set[str] = set()

    def on_mount(self) -> None:
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = self.setup.theme
        self.push_screen(self.now)
        self.run_worker(self.follow(self._board_cursor, self._take_push), group="board")
        self.run_worker(self._load_lists(), exclusive=True, group="lists")
        self.run_worker(self._follow_events(), group="events")
        if self.setup.conversation is not None:
            self.open_list(self.setup.conversation)

    async def on_unmount(self) -> None:
        await self.client.aclose()

    @property
    def actor(self) -> str:
        return self.setup.actor or self.setup.options.get("name") or "punch ui"

    def open_conversation(self, name: str) -> AsyncConversation:
        return self.client.conversation(name, actor=self.setup.actor)

    def open_now(self) -> None:
        self._close_above(Now)

    def open_board(self) -> None:
        self._close_above(Now, Board)
        if not isinstance(self.screen, Board):
            self.push_screen(self.board)

    def open_list(self, name: str, task: str = "") -> None:
        self._close_above(Now, Board)
        self.push_screen(ListScreen(self.open_conversation(name), task))

    def _close_above(self, *screens: type[LineScreen]) -> None:
        while len(self.screen_stack) > 1 and not isinstance(self.screen, screens):
            self.pop_screen()

    def open_who(self) -> None:
        self.push_screen(Who(self.client))

    def open_search(self, conversation: str = "") -> None:
        self.push_screen(Search(self.client, conversation))

    def switch_theme(self) -> None:
        self.theme = self.memory.theme = "light" if self.theme == "dark" else "dark"
        self.memory.save()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return THEMES["dark"].variables

    async def _follow_events(self) -> None:
        """Read the newest events, and follow them, forever. After an error, begin again."""
        while True:
            try:
                recent = await self.client.read(limit=_RECENT, about=True)
                self.happened.clear()
                for change in recent:
                    self.happened.take(change)
                self.now.update_cards()
                view = EventsView(about=True)
                async with self.client.follow(Cursor(None, view, recent[-1].seq if recent else 0)) as watch:
                    while True:
                        self.happened.take(await watch.next())
                        self.now.update_cards()
            except PunchlistError:
                await anyio.sleep(_PAUSE_S)

    async def follow(self, cursor: Cursor[T], take: Callable[[T], None]) -> None:
        watch = self.client.follow(cursor)
        try:
            while True:
                try:
                    item = await watch.next()
                except PunchlistError as error:
                    self._set_failure(cursor, str(error))
                    await anyio.sleep(_PAUSE_S)
                    continue
                self._set_failure(cursor, "")
                take(item)
        finally:
            self._failures.pop(cursor, None)
            await watch.aclose()

    def _set_failure(self, cursor: object, reason: str) -> None:
        """Record why a subscription fails. An empty reason clears the failure."""
        if self._failures.get(cursor, "") == reason:
            return
        self._failures[cursor] = reason
        self.connection_error = next(filter(None, self._failures.values()), "")
        if isinstance(self.screen, LineScreen) and self.screen.is_mounted:
            self.screen.report(
                *([f"This is the last picture. {self.connection_error}"] if self.connection_error else [])
            )
            self.screen.draw_frame()

    def _take_push(self, push: BoardPush | BoardStart) -> None:
        if isinstance(push, BoardStart):
            self.run_worker(self._load_lists(), exclusive=True, group="lists")
            return
        self._pushed.add(push.card.conversation)
        before = self.cards.get(push.card.conversation)
        if self.setup.bell and push.card.waiting > (before.waiting if before else 0):
            self.bell()
        if push.gone:
            self.cards.pop(push.card.conversation, None)
            self.board.update_card(None)
        else:
            self.board.update_card(push.card)
        self.now.forget_answers([push.card.conversation])
        self.now.update_cards()

    async def _load_lists(self) -> None:
        """Load all lists when the board's subscription starts. Lists that are already shown remain until the last page
        arrives."""
        cursor: str | None = None
        self._pushed.clear()
        listed: set[str] = set()
        while True:
            try:
                page = await self.client.conversations(limit=_PAGE, cursor=cursor)
            except PunchlistError:
                await anyio.sleep(_PAUSE_S)
                continue
            listed.update(card.conversation for card in page.conversations)
            for card in page.conversations:
                shown = self.cards.get(card.conversation)
                if shown is None or shown.version < card.version or card.conversation not in self._pushed:
                    self.cards[card.conversation] = card
            cursor = page.next_cursor
            if not cursor:
                for name in self.cards.keys() - listed - self._pushed:
                    del self.cards[name]
            self.board.update_card(None)
            self.now.update_cards()
            if not cursor:
                return
