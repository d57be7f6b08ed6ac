"""What a row shows, as parts: pairs of a colour's name and a text that is harmless for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from punchlist.base.dates import is_late
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
from punchlist_schemas.things import FINISHED, Conversation, Counts, Shared, Task

Part = tuple[str, str]
_BAR = 10
_MOST = 600
"""No line is wider than so many characters of one text."""


class DrawContext(NamedTuple):
    """How rows are drawn: the signs, the time in milliseconds (0 in the past), the spinner's frame, the columns."""

    glyphs: Mapping[str, str]
    now: int
    frame: int
    width: int

    @property
    def spinner(self) -> str:
        """The sign of what is in progress: it turns where the terminal shows it, and stands in the past."""
        turns = self.now and self.glyphs is UNICODE_GLYPHS
        return FRAMES[self.frame % len(FRAMES)] if turns else self.glyphs["in_progress"]


class Item(NamedTuple):
    """A line of a list: the key of what it shows (empty: a heading), its indentation, and a heading's text."""

    key: str
    depth: int = 0
    text: str = ""


def state(task: Task) -> str:
    return get_display_state({"status": task.status, "open_blockers": task.open_blockers})


def time_text(at: int | None, day: str | None) -> str:
    """When a task is due or deferred until, a day or a moment; empty for never."""
    return text(day or "") or (format_time(at) if at else "")


def text(value: str) -> str:
    """A text of somebody else's on one line."""
    return safe(one_line(clip(value, _MOST)))


def width_of(parts: Iterable[Part]) -> int:
    return sum(count_columns(words) for _, words in parts)


def tree(tasks: Iterable[Task]) -> list[Item]:
    """Return tasks in tree order with their depth."""
    given = list(tasks)
    if not any(task.parent for task in given):
        return [Item(task.id) for task in given]
    rows = as_tree({"id": task.id, "parent": task.parent} for task in given)
    return [Item(row["id"], depth) for depth, row in rows]


def below_first(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks in the order in which they can be completed: those below a task before it."""
    by_id = {task.id: task for task in tasks}
    done: list[Task] = []
    above: list[Task] = []
    for item in tree(tasks):
        while len(above) > item.depth:
            done.append(above.pop())
        above.append(by_id[item.key])
    return [*done, *reversed(above)]


def task_parts(
    task: Task, context: DrawContext, *, depth: int = 0, numbers: int = 0, marked: bool = False
) -> list[Part]:
    shown = state(task)
    glyph = context.spinner if shown == "in_progress" else context.glyphs[shown]
    urgency = "" if task.priority == "normal" or shown in FINISHED else context.glyphs[task.priority]
    head: list[Part] = [("marked", "▎" if marked else " "), (shown, f"{glyph} ")]
    head.append(("dim", f"#{text(task.id)}".ljust(numbers + 1) + " "))
    head += [(task.priority, f"{urgency:<2}"), ("", "  " * min(depth, 8))]
    tail = _annotations(task, shown, context)
    room = max(context.width - width_of(head), 8)
    title = text(task.title)
    if count_columns(title) + width_of(tail) > room:
        tail = fitted(tail, max(room - count_columns(title), room // 2))
        title = truncate(title, room - width_of(tail), context.glyphs["cut"])
    style = {"completed": "dim", "in_progress": "title"}.get(shown, "")
    return [*head, (style, title), *tail]


def _annotations(task: Task, shown: str, context: DrawContext) -> list[Part]:
    tail: list[Part] = []
    if shown == "in_progress":
        doing = text(task.active_form)
        elapsed = format_short_duration(context.now - task.status_changed_at) if context.now else ""
        tail += [("note", f"  {doing}")] if doing else []
        tail += [("note", f" {context.glyphs['dot']} {elapsed}" if doing else f"  {elapsed}")] if elapsed else []
    if shown == "failed" and task.fail_reason:
        tail.append(("failed", f"  {text(task.fail_reason)}"))
    if shown not in FINISHED and task.open_blockers:
        names = ", ".join(f"#{text(one)}" for one in task.open_blockers)
        tail.append(("blocked", f"  {context.glyphs['arrow']} {names}"))
    if task.waits_for is not None:
        tail.append(("paused", f"  waits for {gate_wait(task)}"))
    if task.owner and shown != "completed":
        tail.append(("owner", f"  @{text(task.owner)}"))
    if gone := departure(facts_of(task), context.now):
        tail.append(("failed", f"  {gone}"))
    if shown in FINISHED:
        return tail
    tail += [("label", f"  +{text(label)}") for label in task.labels]
    if task.due:
        late = context.now and is_late(task.due, task.due_day, context.now)
        tail.append(("failed" if late else "note", f"  due {time_text(task.due, task.due_day)}"))
    if task.not_before:
        tail.append(("note", f"  not before {time_text(task.not_before, task.not_before_day)}"))
    return tail


def gate_wait(task: Task) -> str:
    """Return what a completed task waits for at its gate, for people."""
    by = task.gate.by if task.gate is not None else ""
    if task.waits_for == "yes":
        return f"{text(by)}'s yes" if by else "your yes"
    return f"the check {text(task.gate.check)}" if task.gate is not None else "a check"


def fitted(parts: Iterable[Part], width: int) -> list[Part]:
    """Parts in at most `width` columns."""
    kept: list[Part] = []
    for style, words in parts:
        room = width - width_of(kept)
        if room <= 0:
            break
        kept.append((style, truncate(words, room)))
    return kept


def bar(counts: Counts, width: int = _BAR) -> list[Part]:
    """How far a list is: what is done, failed, in progress, and left."""
    values = {"completed": counts.completed, "failed": counts.failed, "in_progress": counts.in_progress}
    total = sum(values.values()) + counts.pending + counts.paused
    parts: list[Part] = []
    passed = used = 0
    for name, value in values.items():
        passed += value
        upto = max(used, passed * width // total) if total else 0
        if value:
            upto = max(upto, min(used + 1, width))
        parts.append((name, "━" * (upto - used)))
        used = upto
    return [*parts, ("dim", "─" * (width - used))]


def tally(counts: Counts) -> list[Part]:
    """`3/12 · 1 failed · 2 in progress`: how a list stands, in words."""
    numbered = msgspec.structs.asdict(counts)
    total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
    parts: list[Part] = [("title", f"{counts.completed}/{total}")]
    for name in ("failed", "in_progress", "blocked", "paused"):
        if numbered[name]:
            parts += [("dim", " · "), (name, f"{numbered[name]} {name.replace('_', ' ')}")]
    return parts


def shared_text(shared: Shared) -> str:
    """What is said of a list of a space while its newest changes may be missing."""
    return format_shared_note(msgspec.to_builtins(shared))


def card_parts(card: Conversation, context: DrawContext, names: int, called: str = "") -> list[Part]:
    """One list in a line. `names` is how many columns its name may take, `called` its short name."""
    counts = card.counts
    name = text(card.title) or text(called or card.conversation)
    glyph = ("in_progress", context.spinner) if counts.in_progress else ("", " ")
    total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
    name = truncate(name, names, context.glyphs["cut"])
    parts: list[Part] = [("", " "), glyph, ("", " ")]
    parts += [("title" if counts.in_progress else "", name + " " * (names - count_columns(name) + 1))]
    parts += [*bar(counts), ("dim", f" {counts.completed}/{total}".rjust(8) + "  ")]
    if card.damaged is not None:
        parts.append(("failed", "damaged: not the whole list  "))
    if card.shared is not None:
        parts.append(("paused", f"{shared_text(card.shared)}  "))
    numbered: dict[str, Any] = msgspec.structs.asdict(counts)
    numbered["paused"] -= card.waiting
    if card.waiting:
        parts.append(("paused", f"{card.waiting} {'waits' if card.waiting == 1 else 'wait'} for a yes  "))
    for word in ("failed", "paused", "blocked"):
        if numbered[word]:
            parts.append((word, f"{numbered[word]} {word}  "))
    for one in card.running:
        doing = text(one.active_form) or text(one.title)
        parts += [("dim", f"{context.glyphs['dot']} "), ("in_progress", doing)]
        elapsed = f" {format_short_duration(context.now - one.since)}" if context.now else ""
        parts += [("owner", f" @{text(one.owner)}" if one.owner else ""), ("dim", f"{elapsed}  ")]
        if gone := departure(facts_of(one), context.now):
            parts.append(("failed", f"{gone}  "))
    return parts


SECTIONS = ("Needs you", "Being worked on", "Waiting", "Quiet")


def section(card: Conversation) -> str:
    """The part of the board that a list belongs to."""
    counts = card.counts
    if counts.failed or counts.paused or card.damaged is not None:
        return SECTIONS[0]
    if counts.in_progress:
        return SECTIONS[1]
    return SECTIONS[2] if counts.pending else SECTIONS[3]


def board_items(cards: Iterable[Conversation]) -> list[Item]:
    """The lines of the board: sections, in each the newest list first; a list keeps its place while it is used."""
    found: dict[str, list[Conversation]] = {name: [] for name in SECTIONS}
    for card in cards:
        found[section(card)].append(card)
    items: list[Item] = []
    for name, mine in found.items():
        if mine:
            items.append(Item("", 0, f"{name} {len(mine)}"))
            mine.sort(key=lambda card: (-card.created_at, card.conversation))
            items += [Item(card.conversation) for card in mine]
    return items
