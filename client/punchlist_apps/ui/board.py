"""The board: one line per list, with lists that need attention first."""

from typing import ClassVar

from punchlist_apps.ui.filters import build_list_test
from punchlist_apps.ui.line_screen import LineScreen
from punchlist_apps.ui.parts import Item, Part, build_board_items, draw_card, section_of
from punchlist_schemas.repository import short_name
from punchlist_schemas.things import Conversation

_MAX_NAME_WIDTH = 36


class Board(LineScreen):
    """Screen of all lists.

    Args:
        cards: The lists by id, updated by the program.
    """

    screen_name: ClassVar[str] = "board"
    hints: ClassVar[dict[str, str]] = {
        **{"open": "open", "filter": "filter", "palette": "go to", "add": "new list", "help": "all keys"},
        "quit": "quit",
    }

    def __init__(self, cards: dict[str, Conversation]) -> None:
        super().__init__()
        self.cards = cards
        self._changed: set[str] = set()
        self._needs_rearrange = True

    def draw(self, item: Item, width: int) -> list[Part]:
        card = self.cards.get(item.key)
        if card is None:
            return []
        name = short_name(card.conversation, self.cards)
        return draw_card(card, self.draw_context(width), min(_MAX_NAME_WIDTH, max(width // 3, 8)), name)

    def build_items(self) -> list[Item]:
        test = build_list_test(self.filter_text)
        return build_board_items(card for card in self.cards.values() if test is None or test(card))

    def draw_bar(self) -> list[Part]:
        counts = [card.counts for card in self.cards.values()]
        running, failed = sum(count.in_progress for count in counts), sum(count.failed for count in counts)
        parts: list[Part] = [("title", "punchlist"), ("dim", f"   {len(counts)} lists")]
        parts += [("dim", " · "), ("in_progress", f"{running} in progress")] if running else []
        parts += [("dim", " · "), ("failed", f"{failed} failed")] if failed else []
        return parts

    def describe_empty(self) -> str:
        if self.filter_text:
            return "No list matches the filter; Esc in the filter shows all."
        return "No lists yet.\nAgents create lists when they plan their work; press a to create one here."

    def has_spinner(self, key: str) -> bool:
        card = self.cards.get(key)
        return card is not None and card.counts.in_progress > 0

    def update_card(self, card: Conversation | None) -> None:
        """Update the card of one list, or all cards if `card` is None. Cards older than the one shown are ignored."""
        shown = None if card is None else self.cards.get(card.conversation)
        if card is not None and shown is not None and shown.version > card.version:
            return
        if card is None or shown is None or (section_of(shown), shown.title) != (section_of(card), card.title):
            self._needs_rearrange = True
        if card is not None:
            self.cards[card.conversation] = card
            self._changed.add(card.conversation)
        if self.program.screen is self:
            self.schedule_draw()

    def draw_changes(self) -> None:
        changed = self._changed
        self._changed = set()
        if self._needs_rearrange:
            self._needs_rearrange = False
            self.rearrange()
        else:
            self.lines.refresh_keys(changed)
            self.draw_frame()

    def do_open(self) -> None:
        if self.lines.key:
            self.program.open_list(self.lines.key)

    def on_lines_opened(self) -> None:
        self.do_open()

    def do_back(self) -> None:
        """Clear the filter, else close the board."""
        if self.filter_text:
            self._close_filter(keep=False)
        else:
            self.program.pop_screen()
