"""The columns of a list: which of them fit into a width, and the row of each task."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Literal, NamedTuple

from punchlist.base.dates import is_late
from punchlist.base.departures import departure, facts_of
from punchlist_apps.common.terminal.render import count_columns, format_short_duration, truncate
from punchlist_apps.ui.parts import DrawContext, Part, describe_gate, fit_parts, hue, sanitize, state, width_of
from punchlist_schemas.things import FINISHED, Task

MIN_TITLE = 24
"""Columns that the title has before any other column is drawn."""
_EASY_TITLE = 40
"""Columns that the title has before other columns become wider than their minimum."""
_MIN_REASON = 8
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_WEEK_DAYS, _YEAR_DAYS = 7, 365
Fits = Mapping[str, int]
"""Width of each column that fits, by name, from left to right."""


class Column(NamedTuple):
    """A column on the right of the title.

    Attributes:
        least: Minimum width.
        most: Maximum width.
        measure: Returns an upper bound of a task's width in the column, without formatting it.
        draw: Returns the style and the text of a task in the column, which may be longer than its width.
    """

    least: int
    most: int
    measure: Callable[[Task], int]
    draw: Callable[[Task, DrawContext, int], Part]
    align: Literal["<", ">"] = "<"


def _draw_waits(task: Task, context: DrawContext, width: int) -> Part:
    ids = " ".join(f"#{sanitize(id)}" for id in task.open_blockers)
    return "blocked", f"{context.glyphs['arrow']} {ids}" if ids and task.status not in FINISHED else ""


def _draw_due(task: Task, context: DrawContext, width: int) -> Part:
    if not task.due or task.status in FINISHED:
        return "", ""
    late = context.now and is_late(task.due, task.due_day, context.now)
    return "failed" if late else "note", format_when(task.due, task.due_day, context.now)


def _draw_age(task: Task, context: DrawContext, width: int) -> Part:
    ms = context.now - task.status_changed_at
    if not context.now or (ms < _MINUTE_MS and task.status != "in_progress"):
        return "note", "now" if context.now else ""
    return "note", format_short_duration(ms)


def _draw_owner(task: Task, context: DrawContext, width: int) -> Part:
    """Return the owner, without its session if there is no room for it."""
    words = f"@{sanitize(task.owner)}" if task.owner else ""
    return hue(task.owner), words if count_columns(words) <= width else words.partition("/")[0]


# Pyright infers the types of the lambdas from this signature, but not from the constructor of a named tuple.
def _column(
    least: int,
    most: int,
    measure: Callable[[Task], int],
    draw: Callable[[Task, DrawContext, int], Part],
    align: Literal["<", ">"] = "<",
) -> Column:
    return Column(least, most, measure, draw, align)


COLUMNS: dict[str, Column] = {
    "labels": _column(
        8,
        20,
        lambda task: sum(map(len, task.labels)) + 2 * len(task.labels) - 1 if task.labels else 0,
        lambda task, context, width: ("label", " ".join(f"+{sanitize(label)}" for label in task.labels)),
    ),
    "waits": _column(
        7,
        14,
        lambda task: (
            sum(map(len, task.open_blockers), 1 + 2 * len(task.open_blockers))
            if task.open_blockers and task.status not in FINISHED
            else 0
        ),
        _draw_waits,
    ),
    "due": _column(8, 9, lambda task: 9 if task.due and task.status not in FINISHED else 0, _draw_due),
    "owner": _column(
        8,
        20,
        lambda task: len(task.owner) + 1 if task.owner else 0,
        _draw_owner,
    ),
    "age": _column(4, 4, lambda task: 4, _draw_age, ">"),
}
"""The columns by name, from left to right."""

DROPS = ("age", "labels", "due", "waits", "owner")
"""Columns that a narrow window leaves out, the first one first."""


def measure(tasks: Iterable[Task]) -> dict[str, int]:
    """Return the width that each column needs for some tasks: 0 for one that they leave empty."""
    widths = dict.fromkeys(COLUMNS, 0)
    for task in tasks:
        for name, column in COLUMNS.items():
            if widths[name] < column.most and (needed := column.measure(task)) > widths[name]:
                widths[name] = min(max(needed, column.least), column.most)
    return widths


def fit_columns(room: int, needed: Mapping[str, int]) -> Fits:
    """Return the widths of the columns that fit.

    Args:
        room: Columns of a row without its sign, number and priority.
        needed: See `measure`.
    """
    names = [name for name in COLUMNS if needed[name]]
    for name in DROPS:
        if room - sum(COLUMNS[name].least + 1 for name in names) >= MIN_TITLE:
            break
        names = [kept for kept in names if kept != name]
    widths = {name: COLUMNS[name].least for name in names}
    spare = room - sum(width + 1 for width in widths.values()) - _EASY_TITLE
    for name in (name for name in reversed(DROPS) if name in widths):
        more = max(min(needed[name] - widths[name], spare), 0)
        widths[name] += more
        spare -= more
    return widths


def draw_head(fits: Fits, head: int, width: int, sort: str) -> list[Part]:
    """Return the line with the names of the columns. The column that the list is sorted by has a mark.

    Args:
        head: Columns of a row before its title.
    """
    names = {"task": max(width - head - sum(size + 1 for size in fits.values()), 1), **fits}
    lead = f"{'!▾' if sort == 'priority' else ''}".rjust(head)
    parts: list[Part] = [("dim", lead)]
    for name, size in names.items():
        mark = "▾" if name == sort else ""
        align = COLUMNS[name].align if name in COLUMNS else "<"
        parts.append(("title" if mark else "dim", f"{truncate(name + mark, size):{align}{size}}"))
        parts.append(("", " "))
    return parts[:-1]


def draw_task(  # noqa: PLR0913 - where and how a row is drawn
    task: Task,
    context: DrawContext,
    fits: Fits,
    *,
    depth: int = 0,
    parent: str = "",
    id_width: int = 0,
    marked: bool = False,
) -> list[Part]:
    """Return the row of a task.

    Args:
        depth: Levels of indentation.
        parent: Title of its parent, to show before its own; empty for none.
    """
    shown = state(task)
    glyph = context.spinner if shown == "in_progress" else context.glyphs[shown]
    urgency = "" if task.priority == "normal" or shown in FINISHED else context.glyphs[task.priority]
    cut = context.glyphs["cut"]
    row: list[Part] = [("marked", "▎" if marked else " "), (shown, f"{glyph} ")]
    row.append(("dim", f"#{sanitize(task.id)}".ljust(id_width + 1) + " "))
    row.append((task.priority, f"{urgency:<2}"))
    room = max(context.width - width_of(row) - sum(size + 1 for size in fits.values()), 8)
    title_style = {"completed": "dim", "in_progress": "title"}.get(shown, "")
    lead = "  " * min(depth, 8, room // 4) + (f"{truncate(sanitize(parent), room // 3, cut)} › " if parent else "")
    cell: list[Part] = [("dim", lead), (title_style, truncate(sanitize(task.title), room - count_columns(lead), cut))]
    reason_room = room - width_of(cell) - 2
    style, reason = describe_reason(task, context)
    if reason and reason_room >= min(_MIN_REASON, count_columns(reason)):
        cell.append((style, f"  {truncate(reason, reason_room, cut)}"))
    row += [*cell, ("", " " * (room - width_of(cell)))]
    for name, size in fits.items():
        style, words = COLUMNS[name].draw(task, context, size)
        words = truncate(words, size, cut)
        blank = " " * (size - count_columns(words))
        row += [("", " "), (style, f"{blank}{words}" if COLUMNS[name].align == ">" else f"{words}{blank}")]
    return fit_parts(row, context.width, cut)


def describe_reason(task: Task, context: DrawContext) -> Part:
    """Return the one thing to know about a task after its title: the most urgent one."""
    if left := departure(facts_of(task), context.now):
        return "failed", left
    if task.waits_for is not None:
        return state(task), f"waits for {describe_gate(task)}"
    if task.status == "failed":
        return "failed", sanitize(task.fail_reason)
    if task.status == "in_progress":
        return "in_progress", sanitize(task.active_form)
    if task.not_before and task.status not in FINISHED:
        return "note", f"from {format_when(task.not_before, task.not_before_day, context.now)}"
    return "", ""


def format_when(at: int, day: str | None, now: int) -> str:
    """Return a day or time in at most 9 columns, relative to now if it is near: `tomorrow`, `Fri`, `3d late`.

    Args:
        now: Milliseconds since 1970; 0 for a text that doesn't depend on it.
    """
    try:
        then = datetime.fromtimestamp(at / 1000)
        that_day = date.fromisoformat(day) if day else then.date()
        today = datetime.fromtimestamp(now / 1000).date()
    except (ValueError, OverflowError, OSError):
        return sanitize(day or str(at))
    days = (that_day - today).days
    if not now or abs(days) >= _YEAR_DAYS:
        return that_day.isoformat()[:7] if now else f"{that_day:%d %b}"
    if is_late(at, day, now):
        return f"{format_short_duration(max(now - at, _DAY_MS * -days))} late"
    if days == 0:
        return "today" if day else f"{then:%H:%M}"
    if days == 1:
        return "tomorrow"
    return f"{that_day:%a}" if 0 < days < _WEEK_DAYS else f"{that_day:%d %b}"
