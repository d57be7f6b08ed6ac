"""Renders the details of one task, and its dependencies as trees."""

from collections.abc import Mapping

from punchlist.base.departures import departure, facts_of
from punchlist.base.metadata import visible_items
from punchlist.base.text import safe_block
from punchlist_apps.common.terminal.render import format_time
from punchlist_apps.ui.markdown import MARKDOWN
from punchlist_apps.ui.members import format_duration
from punchlist_apps.ui.parts import DrawContext, Part, describe_gate, format_date, hue, sanitize, state
from punchlist_schemas.things import Task

_MAX_EDGES = 40
_MAX_DEPTH = 6
_TASK_LINKS = ("discovered-from", "relates-to")


def draw_detail(task: Task, by_id: Mapping[str, Task], context: DrawContext) -> list[Part]:
    shown = state(task)
    parts: list[Part] = [("dim", f"#{sanitize(task.id)} · "), (shown, shown.replace("_", " "))]
    facts = (
        (task.priority, task.priority if task.priority != "normal" else ""),
        (hue(task.owner), f"@{sanitize(task.owner)}" if task.owner else ""),
        ("dim", f"attempt {task.attempts}" if task.attempts > 1 else ""),
        ("failed", departure(facts_of(task), context.now)),
    )
    for style, fact in facts:
        parts += [("dim", " · "), (style, fact)] if fact else []
    parts.append(("title", f"\n\n{sanitize(task.title)}\n"))
    parts += _draw_schedule(task)
    if task.waits_for is not None:
        parts.append(("asks", f"\nDone, and waits for {describe_gate(task)}\n"))
    doing = task.active_form if shown == "in_progress" else ""
    bodies = [("Doing", doing), ("", task.description), ("Result", task.result_summary), ("Failed", task.fail_reason)]
    if task.waits_for is not None:
        # The result is what the question is about.
        bodies.insert(1, bodies.pop(2))
    for heading, body in bodies:
        if body:
            parts += [("heading", f"\n{heading}\n" if heading else "\n"), (MARKDOWN, f"{safe_block(body)}\n")]
    edges = (("Waits for", task.blocked_by), ("Frees", task.blocks), ("Part of", (task.parent,) if task.parent else ()))
    for heading, names in edges:
        if names:
            parts.append(("heading", f"\n{heading}\n"))
            for name in names[:_MAX_EDGES]:
                parts += _draw_reference(name, by_id, context)
            parts += [("dim", f"  and {len(names) - _MAX_EDGES} more\n")] if len(names) > _MAX_EDGES else []
    parts += [*_draw_links(task, by_id), *_draw_notes(task)]
    since = f"{shown.replace('_', ' ')} {format_time(task.status_changed_at)}"
    parts.append(("dim", f"\nadded {format_time(task.created_at)}, {since}"))
    return parts


def _draw_schedule(task: Task) -> list[Part]:
    labels = " ".join(f"+{sanitize(label)}" for label in task.labels)
    plans = (
        ("due", format_date(task.due, task.due_day)),
        ("not before", format_date(task.not_before, task.not_before_day)),
        ("estimate", format_duration(task.estimate_ms)),
    )
    schedule = " · ".join(f"{name} {value}" for name, value in plans if value)
    return [(style, f"{line}\n") for style, line in (("label", labels), ("note", schedule)) if line]


def _draw_links(task: Task, by_id: Mapping[str, Task]) -> list[Part]:
    parts: list[Part] = [("heading", "\nLeads to\n")] if task.links else []
    for link in task.links:
        target = by_id.get(link.to) if link.kind in _TASK_LINKS else None
        to = f"#{sanitize(link.to)} {sanitize(target.title)}" if target else sanitize(link.to)
        parts += [("dim", f"  {sanitize(link.kind)}: "), ("", f"{to}\n")]
    return parts


def _draw_notes(task: Task) -> list[Part]:
    parts: list[Part] = [("heading", "\nNotes\n")] if task.notes else []
    for note in task.notes:
        origin = f" (imported by {sanitize(note.imported_by)})" if note.imported_by else ""
        parts += [(hue(note.actor), f"  {sanitize(note.actor)}"), ("dim", f"{origin} · {format_time(note.at)}\n")]
        parts.append((MARKDOWN, f"{safe_block(note.text)}\n"))
    if task.metadata:
        parts.append(("heading", "\nMetadata\n"))
        parts += [
            ("dim", f"  {sanitize(str(name))}: {sanitize(str(value))}\n")
            for name, value in visible_items(task.metadata)
        ]
    return parts


def draw_dependencies(task: Task, by_id: Mapping[str, Task], context: DrawContext) -> list[Part]:
    """Render two trees: the tasks that a task waits for, and those that wait for it."""
    parts: list[Part] = []
    for heading, member in (("Waits for", "blocked_by"), ("Frees, when it is done", "blocks")):
        parts += [("heading", f"{heading}\n"), *_draw_branch(task, member, by_id, context), ("", "\n")]
    return parts


def _draw_branch(task: Task, member: str, by_id: Mapping[str, Task], context: DrawContext) -> list[Part]:
    parts: list[Part] = []
    seen: set[str] = set()
    stack = [(1, name) for name in reversed(getattr(task, member))]
    while stack:
        depth, name = stack.pop()
        is_repeated = name in seen
        seen.add(name)
        parts += _draw_reference(name, by_id, context, depth, " (see above)" if is_repeated else "")
        other = by_id.get(name)
        if other is not None and not is_repeated and depth < _MAX_DEPTH:
            stack += [(depth + 1, neighbor) for neighbor in reversed(getattr(other, member))]
    return parts or [("dim", "  nothing\n")]


def _draw_reference(
    name: str, by_id: Mapping[str, Task], context: DrawContext, depth: int = 1, note: str = ""
) -> list[Part]:
    task = by_id.get(name)
    if task is None:
        return [("dim", f"{'  ' * depth}#{sanitize(name)}\n")]
    shown = state(task)
    title = "dim" if shown == "completed" else ""
    glyph = context.glyphs[shown]
    return [
        (shown, f"{'  ' * depth}{glyph} "),
        ("dim", f"#{sanitize(name)} "),
        (title, f"{sanitize(task.title)}{note}\n"),
    ]
