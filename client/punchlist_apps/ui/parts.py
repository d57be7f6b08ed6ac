"""Renders rows as parts, which are pairs of a style name and terminal-escaped text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from punchlist.base.departures import departure, facts_of
from punchlist.base.text import clip, one_line, safe
from punchlist.base.tree import as_tree
from punchlist_apps.common.terminal.render import (
    count_columns,
    format_shared_note,
    format_short_duration,
    format_time,
    get_display_state,
    truncate,
)
from punchlist_apps.common.terminal.style import FRAMES, UNICODE_GLYPHS
from punchlist_schemas.things import Conversation, Counts, Shared, Task

Part = tuple[str, str]
_BAR = 10
HUES = 6
"""Number of hues by which agents are told apart."""
_SIGNS = {"asks": "?", "open": "▾", "folded": "▸"}
_ASCII_SIGNS = {"asks": "[?]", "open": "v", "folded": ">"}
_MAX_CHARS = 600
"""Maximum length of text in a row, in characters. No terminal is wider."""


class DrawContext(NamedTuple):
    """Parameters for drawing rows.

    Attributes:
        now: The time in milliseconds; 0 for a past version of a list.
        frame: The index of the spinner frame.
        width: Width of a row in columns.
    """

    glyphs: Mapping[str, str]
    now: int
    frame: int
    width: int

    @property
    def spinner(self) -> str:
        """The glyph for tasks in progress. It is animated if the terminal shows Unicode and the list isn't a past
        version."""
        is_animated = self.now and self.glyphs["cut"] == UNICODE_GLYPHS["cut"]
        return FRAMES[self.frame % len(FRAMES)] if is_animated else self.glyphs["in_progress"]


class Item(NamedTuple):
    """A line of a screen.

    Attributes:
        key: The key of its task or list. A line without a key can't be selected.
        depth: Its indentation.
        text: Its text if it is a heading, in `style`.
        parts: Its content, if the screen doesn't draw it. Without a key, it belongs to the line above.
    """

    key: str
    depth: int = 0
    text: str = ""
    style: str = "heading"
    parts: Sequence[Part] = ()


def add_signs(glyphs: Mapping[str, str]) -> dict[str, str]:
    """Return glyphs of the terminal, and the signs that only this program has."""
    return {**glyphs, **(_SIGNS if glyphs["cut"] == UNICODE_GLYPHS["cut"] else _ASCII_SIGNS)}


def hue(name: str) -> str:
    """Return the style of an agent's name, which depends on its host, the name before `/`, as on the page."""
    number = 0
    for char in name.partition("/")[0]:
        number = (number * 31 + ord(char)) % 2**32
    return f"agent{number % HUES}"


def state(task: Task) -> str:
    """Return the state to show: `asks` for a task that waits for approval, `blocked` for one with open blockers."""
    if task.waits_for == "yes":
        return "asks"
    return get_display_state({"status": task.status, "open_blockers": task.open_blockers})


def format_date(at: int | None, day: str | None) -> str:
    """Format a task's due or not-before time, which is a day or a time; empty if the task has none."""
    return sanitize(day or "") or (format_time(at) if at else "")


def sanitize(value: str) -> str:
    """Return untrusted text as one line, escaped for the terminal."""
    return safe(one_line(clip(value, _MAX_CHARS)))


def width_of(parts: Iterable[Part]) -> int:
    return sum(count_columns(words) for _, words in parts)


def build_tree(tasks: Iterable[Task]) -> list[Item]:
    """Return tasks in tree order with their depth."""
    tasks = list(tasks)
    if not any(task.parent for task in tasks):
        return [Item(task.id) for task in tasks]
    rows = as_tree({"id": task.id, "parent": task.parent} for task in tasks)
    return [Item(row["id"], depth) for depth, row in rows]


def sort_children_first(tasks: Sequence[Task]) -> list[Task]:
    """Sort tasks for completion: subtasks before their parents."""
    by_id = {task.id: task for task in tasks}
    ordered: list[Task] = []
    ancestors: list[Task] = []
    for item in build_tree(tasks):
        while len(ancestors) > item.depth:
            ordered.append(ancestors.pop())
        ancestors.append(by_id[item.key])
    return [*ordered, *reversed(ancestors)]


def describe_gate(task: Task) -> str:
    """Describe what a completed task waits for at its gate."""
    by = task.gate.by if task.gate is not None else ""
    if task.waits_for == "yes":
        return f"{sanitize(by)}'s yes" if by else "your yes"
    return f"the check {sanitize(task.gate.check)}" if task.gate is not None else "a check"


def fit_parts(parts: Iterable[Part], width: int, mark: str = "…") -> list[Part]:
    """Truncate parts to at most `width` columns. A cut always ends in `mark`."""
    parts = list(parts)
    if width_of(parts) <= width:
        return parts
    kept: list[Part] = []
    room = width
    for style, words in parts:
        columns = count_columns(words)
        if columns >= room:
            # A part that fills the row also needs the mark, since more parts follow or it is itself too long.
            kept.append((style, truncate(words + mark, room, mark)))
            break
        kept.append((style, words))
        room -= columns
    return kept


def draw_progress(counts: Counts, width: int = _BAR) -> list[Part]:
    """Render a progress bar: completed, failed, in progress, and the rest."""
    values = {"completed": counts.completed, "failed": counts.failed, "in_progress": counts.in_progress}
    total = sum(values.values()) + counts.pending + counts.paused
    parts: list[Part] = []
    count = used = 0
    for name, value in values.items():
        count += value
        end = max(used, count * width // total) if total else 0
        if value:
            end = max(end, min(used + 1, width))
        parts.append((name, "━" * (end - used)))
        used = end
    return [*parts, ("dim", "─" * (width - used))]


def draw_counts(counts: Counts, asks: int = 0) -> list[Part]:
    """Render the counts of a list, as in `3/12 · 1 asks · 1 failed`. Tasks that wait for approval aren't paused."""
    by_status = msgspec.structs.asdict(counts) | {"asks": asks, "paused": counts.paused - asks}
    total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
    parts: list[Part] = [("title", f"{counts.completed}/{total}")]
    for name in ("asks", "failed", "in_progress", "blocked", "paused"):
        if by_status[name] > 0:
            parts += [("dim", " · "), (name, f"{by_status[name]} {name.replace('_', ' ')}")]
    return parts


def format_sharing(shared: Shared) -> str:
    """Format the note that is shown on a shared list while its latest changes may be missing."""
    return format_shared_note(msgspec.to_builtins(shared))


def draw_card(card: Conversation, context: DrawContext, name_width: int, short_name: str = "") -> list[Part]:
    """Render one list as a row. The list's name is truncated to `name_width` columns."""
    counts = card.counts
    name = sanitize(card.title) or sanitize(short_name or card.conversation)
    glyph = ("in_progress", context.spinner) if counts.in_progress else ("", " ")
    total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
    name = truncate(name, name_width, context.glyphs["cut"])
    parts: list[Part] = [("", " "), glyph, ("", " ")]
    parts += [("title" if counts.in_progress else "", name + " " * (name_width - count_columns(name) + 1))]
    parts += [*draw_progress(counts), ("dim", f" {counts.completed}/{total}".rjust(8) + "  ")]
    if card.damaged is not None:
        parts.append(("failed", "damaged: not the whole list  "))
    if card.shared is not None:
        parts.append(("paused", f"{format_sharing(card.shared)}  "))
    by_status: dict[str, Any] = msgspec.structs.asdict(counts)
    by_status["paused"] -= card.waiting
    if card.waiting:
        parts.append(("asks", f"{card.waiting} {'asks' if card.waiting == 1 else 'ask'}  "))
    for word in ("failed", "paused", "blocked"):
        if by_status[word]:
            parts.append((word, f"{by_status[word]} {word}  "))
    for task in card.running:
        doing = sanitize(task.active_form) or sanitize(task.title)
        parts += [("dim", f"{context.glyphs['dot']} "), ("in_progress", doing)]
        elapsed = f" {format_short_duration(context.now - task.since)}" if context.now else ""
        parts += [(hue(task.owner), f" @{sanitize(task.owner)}" if task.owner else ""), ("dim", f"{elapsed}  ")]
        if left := departure(facts_of(task), context.now):
            parts.append(("failed", f"{left}  "))
    return parts


SECTIONS = ("Needs you", "Being worked on", "Waiting", "Quiet")


def section_of(card: Conversation) -> str:
    """Return the section of the board that a list belongs to."""
    counts = card.counts
    if counts.failed or counts.paused or card.damaged is not None:
        return SECTIONS[0]
    if counts.in_progress:
        return SECTIONS[1]
    return SECTIONS[2] if counts.pending else SECTIONS[3]


def build_board_items(cards: Iterable[Conversation]) -> list[Item]:
    """Build the lines of the board, as sections with the newest list first.

    Lists are sorted by creation, so that changes don't move them within a section.
    """
    sections: dict[str, list[Conversation]] = {name: [] for name in SECTIONS}
    for card in cards:
        sections[section_of(card)].append(card)
    items: list[Item] = []
    for name, section in sections.items():
        if section:
            items.append(Item("", 0, f"{name} {len(section)}"))
            section.sort(key=lambda card: (-card.created_at, card.conversation))
            items += [Item(card.conversation) for card in section]
    return items
