"""`punch ui` as a program: what it follows, and which screen shows it."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import anyio
from textual.binding import BindingType
from textual.theme import Theme

from punchlist.calls.cursor import BoardStart, BoardView, Cursor
from punchlist.clients.aio import AsyncClient
from punchlist.errors import PunchlistError
from punchlist_apps.ui.board import Board
from punchlist_apps.ui.face import Face
from punchlist_apps.ui.keymap import load
from punchlist_apps.ui.one import OneList
from punchlist_apps.ui.palette import Everything
from punchlist_apps.ui.program import Program, Setup
from punchlist_apps.ui.who import Who
from punchlist_schemas.results import BoardPush

T = TypeVar("T")
_PAUSE_S = 1.0
_PATIENCE_S = 3.0
"""How long a call or a watch waits for a daemon that went away before it says so."""
_PAGE = 500
_THEME = Theme(
    "punchlist",
    primary="#2f81b7",
    secondary="#c792ea",
    accent="#56c8e8",
    warning="#e0a144",
    error="#ef6675",
    success="#6cc070",
    foreground="#e3e6e8",
    background="#121517",
    surface="#1a1f22",
    panel="#22292e",
)
"""In progress is blue-green, blocked amber, failed red; every other theme of textual can be chosen in the palette."""


class PunchApp(Program):
    """The program.

    Args:
        setup: See `Setup`.

    Raises:
        BadKeys: The file of keys can't be used.
    """

    CSS_PATH = "ui.tcss"
    TITLE = "punchlist"
    COMMANDS: ClassVar[set[Any]] = {Everything}
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup = setup
        self.keys = load(setup.keys)
        self.cards = {}
        self.client = AsyncClient(**{"timeout_s": _PATIENCE_S, **setup.options})
        self.board = Board(self.cards)
        self._absent: dict[object, str] = {}
        self._place = Cursor(None, BoardView())
        self._pushed: set[str] = set()

    def on_mount(self) -> None:
        self.register_theme(_THEME)
        self.theme = _THEME.name
        self.push_screen(self.board)
        self.run_worker(self._known(), exclusive=True, group="known")
        if self.setup.conversation is not None:
            self.open_list(self.setup.conversation)

    async def on_unmount(self) -> None:
        await self.client.aclose()

    def open_list(self, name: str) -> None:
        while len(self.screen_stack) > 1 and not isinstance(self.screen, Board):
            self.pop_screen()
        self.push_screen(OneList(self.client.conversation(name, actor=self.setup.actor)))

    def open_who(self) -> None:
        self.push_screen(Who(self.client))

    async def follow_board(self) -> None:
        await self.follow(self._place, self._dealt)

    async def follow(self, cursor: Cursor[T], take: Callable[[T], None]) -> None:
        watch = self.client.follow(cursor)
        try:
            while True:
                try:
                    item = await watch.next()
                except PunchlistError as error:
                    self._is_away(cursor, str(error))
                    await anyio.sleep(_PAUSE_S)
                    continue
                self._is_away(cursor, "")
                take(item)
        finally:
            self._absent.pop(cursor, None)
            await watch.aclose()

    def _is_away(self, whom: object, why: str) -> None:
        if self._absent.get(whom, "") == why:
            return
        self._absent[whom] = why
        self.away = next(filter(None, self._absent.values()), "")
        if isinstance(self.screen, Face) and self.screen.is_mounted:
            self.screen.report(*([f"This is the last picture. {self.away}"] if self.away else []))
            self.screen.draw_frame()

    def _dealt(self, push: BoardPush | BoardStart) -> None:
        if isinstance(push, BoardStart):
            self.run_worker(self._known(), exclusive=True, group="known")
            return
        self._pushed.add(push.card.conversation)
        if push.gone:
            self.cards.pop(push.card.conversation, None)
            self.board.dealt(None)
        else:
            self.board.dealt(push.card)

    async def _known(self) -> None:
        """The lists that there are when the board begins. What was shown before stays until they are known."""
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
                known = self.cards.get(card.conversation)
                if known is None or known.version < card.version or card.conversation not in self._pushed:
                    self.cards[card.conversation] = card
            cursor = page.next_cursor
            if not cursor:
                for name in self.cards.keys() - listed - self._pushed:
                    del self.cards[name]
            self.board.dealt(None)
            if not cursor:
                return
