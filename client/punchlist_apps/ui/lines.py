"""A list of lines on the screen: draws those in view alone, and one of them alone where one has changed."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from punchlist_apps.ui.parts import Item, Part, width_of

COLOURS = (
    "title dim completed in_progress blocked pending paused failed urgent high normal low"
    " note owner label marked cursor heading"
)

Draw = Callable[[Item, int], list[Part]]
"""The parts of a line, in the columns there are."""


class Lines(ScrollView, can_focus=True):
    """Lines with one of them chosen.

    Args:
        draw: Makes the parts of a line.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"lines--{name}" for name in COLOURS.split()}

    class Chosen(Message):
        """Another line is chosen, or other lines are in view."""

    class Opened(Message):
        """The chosen line was clicked."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.items: Sequence[Item] = ()
        self.index: dict[str, int] = {}
        self.cursor = 0
        self._draw = draw
        self._colours = {"": Style.null()}

    @property
    def key(self) -> str:
        return self.items[self.cursor].key if self.cursor < len(self.items) else ""

    @property
    def in_view(self) -> Sequence[Item]:
        top = self.scroll_offset.y
        return self.items[top : top + max(self.size.height, 1)]

    def show(self, items: Sequence[Item]) -> None:
        """Show other lines; what was chosen stays so if it is among them, at the same height of the screen."""
        key, height = self.key, self.cursor - self.scroll_offset.y
        self.items = items
        self.index = {item.key: at for at, item in enumerate(items) if item.key}
        self.virtual_size = Size(0, len(items))
        if key in self.index:
            self.cursor = self.index[key]
            self.scroll_to(y=self.cursor - height, animate=False, immediate=True)
        else:
            self.choose(min(self.cursor, len(items) - 1))
        self.refresh()
        self.post_message(self.Chosen())

    def changed(self, keys: set[str]) -> None:
        for item in self.in_view:
            if item.key in keys:
                self.refresh_line(self.index[item.key])

    def choose(self, at: int, step: int = 1) -> None:
        """Choose the line at a position, or the next one in the direction of `step` that is no heading."""
        if not self.items:
            self.cursor = 0
            return
        at = max(0, min(at, len(self.items) - 1))
        for position in (*range(at, len(self.items) if step > 0 else -1, step), *range(at, -1, -1)):
            if self.items[position].key:
                at = position
                break
        else:
            at = next((n for n, item in enumerate(self.items) if item.key), 0)
        self.refresh_line(self.cursor)
        self.cursor = at
        self.refresh_line(at)
        self._scroll_into_view()
        self.post_message(self.Chosen())

    def move(self, by: int) -> None:
        """Choose another line so many further down, or up."""
        self.choose(self.cursor + by, 1 if by > 0 else -1)

    def find(self, key: str) -> None:
        if key in self.index:
            self.choose(self.index[key])

    def _scroll_into_view(self) -> None:
        top, height = self.scroll_offset.y, self.size.height
        above = self.cursor - 1 if self.cursor and not self.items[self.cursor - 1].key else self.cursor
        if above < top:
            self.scroll_to(y=above, animate=False, immediate=True)
        elif height and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Chosen())

    def on_resize(self) -> None:
        self._scroll_into_view()
        self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Choose the line; a second click opens it."""
        at = int(event.y) + self.scroll_offset.y
        if at < len(self.items) and self.items[at].key:
            self.choose(at)
            if event.chain > 1:
                self.post_message(self.Opened())

    def colour(self, name: str) -> Style:
        if name not in self._colours:
            self._colours[name] = self.get_component_rich_style(f"lines--{name}", partial=True)
        return self._colours[name]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._colours = {"": Style.null()}

    def render_line(self, y: int) -> Strip:
        width, at, ground = self.size.width, y + self.scroll_offset.y, self.rich_style
        if at >= len(self.items):
            return Strip.blank(width, ground)
        item = self.items[at]
        parts = self._draw(item, width) if item.key else [("heading", f" {item.text}")]
        if at == self.cursor and item.key:
            ground += self.colour("cursor")
        used = width_of(parts)
        segments = [Segment(words, ground + self.colour(name)) for name, words in parts if words]
        if used <= width:  # its width is known: textual would measure each word of it again
            return Strip([*segments, Segment(" " * (width - used), ground)], width)
        return Strip(segments, used).adjust_cell_length(width)
