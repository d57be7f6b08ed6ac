"""Everything about one task, for people, and what its dependencies look like."""

from collections.abc import Mapping

from punchlist.base.departures import departure, facts_of
from punchlist.base.metadata import visible_items
from punchlist.base.text import safe_block
from punchlist_apps.common.terminal.render import format_time
from punchlist_apps.ui.members import duration_text
from punchlist_apps.ui.parts import DrawContext, Part, gate_wait, state, text, time_text
from punchlist_schemas.things import Task

_MOST = 40
_DEEPEST = 6
_OF_TASKS = ("discovered-from", "relates-to")


def detail(task: Task, by_id: Mapping[str, Task], context: DrawContext) -> list[Part]:
    shown = state(task)
    parts: list[Part] = [("dim", f"#{text(task.id)} · "), (shown, shown.replace("_", " "))]
    facts = (
        (task.priority, task.priority if task.priority != "normal" else ""),
        ("owner", f"@{text(task.owner)}" if task.owner else ""),
        ("dim", f"attempt {task.attempts}" if task.attempts > 1 else ""),
        ("failed", departure(facts_of(task), context.now)),
    )
    for style, fact in facts:
        parts += [("dim", " · "), (style, fact)] if fact else []
    parts.append(("title", f"\n\n{text(task.title)}\n"))
    parts += _plans(task)
    if task.waits_for is not None:
        parts.append(("paused", f"\nDone, and waits for {gate_wait(task)}\n"))
    doing = task.active_form if shown == "in_progress" else ""
    bodies = (("Doing", doing), ("", task.description), ("Result", task.result_summary), ("Failed", task.fail_reason))
    for heading, body in bodies:
        if body:
            parts += [("heading", f"\n{heading}\n" if heading else "\n"), ("", f"{safe_block(body)}\n")]
    edges = (("Waits for", task.blocked_by), ("Frees", task.blocks), ("Part of", (task.parent,) if task.parent else ()))
    for heading, names in edges:
        if names:
            parts.append(("heading", f"\n{heading}\n"))
            for name in names[:_MOST]:
                parts += _named(name, by_id, context)
            parts += [("dim", f"  and {len(names) - _MOST} more\n")] if len(names) > _MOST else []
    parts += [*_leads(task, by_id), *_notes(task)]
    since = f"{shown.replace('_', ' ')} {format_time(task.status_changed_at)}"
    parts.append(("dim", f"\nadded {format_time(task.created_at)}, {since}"))
    return parts


def _plans(task: Task) -> list[Part]:
    labels = " ".join(f"+{text(label)}" for label in task.labels)
    plans = (
        ("due", time_text(task.due, task.due_day)),
        ("not before", time_text(task.not_before, task.not_before_day)),
        ("estimate", duration_text(task.estimate_ms)),
    )
    planned = " · ".join(f"{name} {value}" for name, value in plans if value)
    return [(style, f"{line}\n") for style, line in (("label", labels), ("note", planned)) if line]


def _leads(task: Task, by_id: Mapping[str, Task]) -> list[Part]:
    parts: list[Part] = [("heading", "\nLeads to\n")] if task.links else []
    for link in task.links:
        found = by_id.get(link.to) if link.kind in _OF_TASKS else None
        to = f"#{text(link.to)} {text(found.title)}" if found else text(link.to)
        parts += [("dim", f"  {text(link.kind)}: "), ("", f"{to}\n")]
    return parts


def _notes(task: Task) -> list[Part]:
    parts: list[Part] = [("heading", "\nNotes\n")] if task.notes else []
    for note in task.notes:
        brought = f" (imported by {text(note.imported_by)})" if note.imported_by else ""
        parts += [("owner", f"  {text(note.actor)}"), ("dim", f"{brought} · {format_time(note.at)}\n")]
        parts.append(("", "".join(f"  {line}\n" for line in safe_block(note.text).split("\n"))))
    if task.metadata:
        parts.append(("heading", "\nMetadata\n"))
        parts += [("dim", f"  {text(str(name))}: {text(str(value))}\n") for name, value in visible_items(task.metadata)]
    return parts


def dependencies(task: Task, by_id: Mapping[str, Task], context: DrawContext) -> list[Part]:
    """What a task waits for, as a tree, and what waits for it."""
    parts: list[Part] = []
    for heading, member in (("Waits for", "blocked_by"), ("Frees, when it is done", "blocks")):
        parts += [("heading", f"{heading}\n"), *_branch(task, member, by_id, context), ("", "\n")]
    return parts


def _branch(task: Task, member: str, by_id: Mapping[str, Task], context: DrawContext) -> list[Part]:
    parts: list[Part] = []
    seen: set[str] = set()
    stack = [(1, name) for name in reversed(getattr(task, member))]
    while stack:
        depth, name = stack.pop()
        again = name in seen
        seen.add(name)
        parts += _named(name, by_id, context, depth, " (see above)" if again else "")
        found = by_id.get(name)
        if found is not None and not again and depth < _DEEPEST:
            stack += [(depth + 1, one) for one in reversed(getattr(found, member))]
    return parts or [("dim", "  nothing\n")]


def _named(name: str, by_id: Mapping[str, Task], context: DrawContext, depth: int = 1, note: str = "") -> list[Part]:
    found = by_id.get(name)
    if found is None:
        return [("dim", f"{'  ' * depth}#{text(name)}\n")]
    shown = state(found)
    title = "dim" if shown == "completed" else ""
    glyph = context.glyphs[shown]
    return [(shown, f"{'  ' * depth}{glyph} "), ("dim", f"#{text(name)} "), (title, f"{text(found.title)}{note}\n")]
