"""A scrollable list of lines. Only visible lines are drawn, and after a change only those that changed."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from punchlist_apps.ui.parts import Item, Part, fit_parts, width_of

STYLE_NAMES = (
    "title dim completed in_progress blocked pending paused failed urgent high normal low"
    " note label marked cursor heading asks"
    " agent0 agent1 agent2 agent3 agent4 agent5"
)

Draw = Callable[[Item, int], list[Part]]
"""Renders the parts of a line for a width in columns."""


class Lines(ScrollView, can_focus=True):
    """Lines with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"lines--{name}" for name in STYLE_NAMES.split()}

    class Selected(Message):
        """Posted when the selected line or the visible lines have changed."""

    class Opened(Message):
        """Posted when the selected line was clicked."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.items: Sequence[Item] = ()
        self.index: dict[str, int] = {}
        self.cursor = 0
        self.is_active = True
        """Whether the cursor is shown."""
        self.leaving: set[str] = set()
        """Keys of lines that the user has changed, so that they may disappear."""
        self.jumped_at = 0.0
        """When the cursor left a line that someone else made disappear; 0 if the user has pressed a key since."""
        self._draw = draw
        self._styles_by_name = {"": Style.null()}

    @property
    def key(self) -> str:
        return self.items[self.cursor].key if self.cursor < len(self.items) else ""

    @property
    def row_width(self) -> int:
        """Columns of a row, without the scroll bar."""
        return self.size.width - (self.scrollbar_size_vertical if self.show_vertical_scrollbar else 0)

    @property
    def visible_items(self) -> Sequence[Item]:
        top = self.scroll_offset.y
        return self.items[top : top + max(self.size.height, 1)]

    def set_items(self, items: Sequence[Item]) -> None:
        """Replace the lines. If the selected line still exists, it remains selected, and at the same place on
        the screen unless the first line is shown."""
        key, height = self.key, self.cursor - self.scroll_offset.y
        self.items = items
        self.index = {item.key: position for position, item in enumerate(items) if item.key}
        self.virtual_size = Size(0, len(items))
        if key in self.index:
            self.cursor = self.index[key]
            # Without a visible cursor, the lines stay where they are.
            # What runs is at the top, and stays on the screen if the selected line does too.
            if self.is_active and (self.scroll_offset.y or self.cursor >= self.size.height):
                self.scroll_to(y=self.cursor - height, animate=False, immediate=True)
        else:
            if key and key not in self.leaving:
                self.jumped_at = time.monotonic()
            self.select(min(self.cursor, len(items) - 1))
        self.refresh()
        self.post_message(self.Selected())

    def refresh_keys(self, keys: set[str]) -> None:
        for item in self.visible_items:
            if item.key in keys:
                self.refresh_line(self.index[item.key])

    def select(self, position: int, step: int = 1) -> None:
        """Select the line at a position, or the next one in the direction of `step` if it is a heading."""
        if not self.items:
            self.cursor = 0
            return
        start = max(0, min(position, len(self.items) - 1))
        for candidate in (*range(start, len(self.items) if step > 0 else -1, step), *range(start, -1, -1)):
            if self.items[candidate].key:
                start = candidate
                break
        else:
            start = next((n for n, item in enumerate(self.items) if item.key), 0)
        if any(item.parts and not item.key for item in self.items[start : start + 2]):
            self.refresh()
        self.refresh_line(self.cursor)
        self.cursor = start
        self.refresh_line(start)
        self._scroll_into_view()
        self.post_message(self.Selected())

    def move_cursor(self, by: int) -> None:
        """Move the cursor down by a number of lines, or up if the number is negative."""
        self.select(self.cursor + by, 1 if by > 0 else -1)

    def select_key(self, key: str) -> None:
        if key in self.index:
            self.select(self.index[key])

    def _scroll_into_view(self) -> None:
        top, height = self.scroll_offset.y, self.size.height
        above = self.cursor - 1 if self.cursor and not self.items[self.cursor - 1].key else self.cursor
        if above < top:
            self.scroll_to(y=above, animate=False, immediate=True)
        elif height and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Selected())

    def on_resize(self) -> None:
        self._scroll_into_view()
        self.post_message(self.Selected())

    def on_click(self, event: events.Click) -> None:
        """Select the line; a double click opens it."""
        position = int(event.y) + self.scroll_offset.y
        if position < len(self.items) and self.items[position].key:
            self.select(position)
            if event.chain > 1:
                self.post_message(self.Opened())

    def line_style(self, name: str) -> Style:
        if name not in self._styles_by_name:
            self._styles_by_name[name] = self.get_component_rich_style(f"lines--{name}", partial=True)
        return self._styles_by_name[name]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles_by_name = {"": Style.null()}

    def _find_head(self, position: int) -> int:
        """Return the position of the selectable line that a line belongs to, or of the line itself."""
        while position and self.items[position].parts and not self.items[position].key:
            position -= 1
        return position

    def render_line(self, y: int) -> Strip:
        width, position, background = self.row_width, y + self.scroll_offset.y, self.rich_style
        if position >= len(self.items):
            return Strip.blank(width, background)
        item = self.items[position]
        parts = item.parts or ([(item.style, f" {item.text}")] if item.text else self._draw(item, width))
        if self.is_active and self._find_head(position) == self.cursor and self.items[self.cursor].key:
            background += self.line_style("cursor")
        parts = fit_parts(parts, width)
        used = width_of(parts)
        segments = [Segment(words, background + self.line_style(name)) for name, words in parts if words]
        # Pass the known width, because textual would otherwise measure each word again.
        return Strip([*segments, Segment(" " * (width - used), background)], width)
