"""The board: every list in a line, those that need somebody first."""

from typing import ClassVar

from textual.worker import Worker

from punchlist.base.text import safe
from punchlist.errors import PunchlistError
from punchlist_apps.ui.dialogs import Ask
from punchlist_apps.ui.face import Face
from punchlist_apps.ui.filters import of_lists
from punchlist_apps.ui.parts import Item, Part, board_items, card_parts, section
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Conversation

_NAMES = 36


class Board(Face):
    """Every list. `cards` is kept by the program."""

    place: ClassVar[str] = "board"
    hints: ClassVar[dict[str, str]] = {
        **{"open": "open", "filter": "filter", "palette": "go to", "add": "new list", "help": "all keys"},
        "quit": "quit",
    }

    def __init__(self, cards: dict[str, Conversation]) -> None:
        super().__init__()
        self.cards = cards
        self._changed: set[str] = set()
        self._following: Worker[None] | None = None
        self._rearranged = True

    def draw(self, item: Item, width: int) -> list[Part]:
        card = self.cards.get(item.key)
        if card is None:
            return []
        called = short_name(card.conversation, self.cards)
        return card_parts(card, self.draw_context(width), min(_NAMES, max(width // 3, 8)), called)

    def items(self) -> list[Item]:
        test = of_lists(self.words)
        return board_items(card for card in self.cards.values() if test is None or test(card))

    def head(self) -> list[Part]:
        counts = [card.counts for card in self.cards.values()]
        running, failed = sum(one.in_progress for one in counts), sum(one.failed for one in counts)
        parts: list[Part] = [("title", "punchlist"), ("dim", f"   {len(counts)} lists")]
        parts += [("dim", " · "), ("in_progress", f"{running} in progress")] if running else []
        parts += [("dim", " · "), ("failed", f"{failed} failed")] if failed else []
        return parts

    def empty(self) -> str:
        if self.words:
            return "No list has these words; Esc in the filter shows all."
        return "There is no list yet.\nAn agent makes one when it plans its work, and a makes one here."

    def spins(self, key: str) -> bool:
        card = self.cards.get(key)
        return card is not None and card.counts.in_progress > 0

    def dealt(self, card: Conversation | None) -> None:
        """A card changed; None: any of them, or one went."""
        known = None if card is None else self.cards.get(card.conversation)
        if card is not None and known is not None and known.version > card.version:
            return
        if card is None or known is None or (section(known), known.title) != (section(card), card.title):
            self._rearranged = True
        if card is not None:
            self.cards[card.conversation] = card
            self._changed.add(card.conversation)
        if self.face.screen is self:
            self.soon()

    def draw_changes(self) -> None:
        """Draw the cards that changed, or all where one has another place."""
        changed = self._changed
        self._changed = set()
        if self._rearranged:
            self._rearranged = False
            self.arranged()
        else:
            self.lines.changed(changed)
            self.draw_frame()

    def on_screen_resume(self) -> None:
        self._following = self.run_worker(self.face.follow_board, group="board", exclusive=True)

    def on_screen_suspend(self) -> None:
        if self._following is not None:
            self._following.cancel()

    def do_open(self) -> None:
        if self.lines.key:
            self.face.open_list(self.lines.key)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_back(self) -> None:
        self._leave_words(keep=False)

    def do_add(self) -> None:
        """Open a list of another name; it begins with its first task."""

        def named(name: str | None) -> None:
            if not name:
                return
            try:
                self.face.open_list(name)
            except PunchlistError as error:
                self.report(safe(str(error)))

        self.face.push_screen(Ask("Name of the list (letters, digits, . _ : -)"), named)
