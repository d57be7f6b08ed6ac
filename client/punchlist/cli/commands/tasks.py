"""Commands that change the list: add, edit, move, rm, clear, undo."""

from typing import Any

from punchlist.cli.context import Context, ids, loose_value, one_id
from punchlist.cli.exits import REFUSED
from punchlist.cli.failure import UsageError
from punchlist.cli.render import task_lines
from punchlist.text import safe

_TEXTS = ("description", "priority", "owner", "active_form")


def run_add(context: Context) -> int:
    """Add one task."""
    args = context.args
    result = context.change(
        "task.add",
        title=" ".join(args.title),
        parent=one_id(args.parent),
        metadata=_metadata(args.meta),
        blocked_by=ids(args.blocked_by),
        blocks=ids(args.blocks),
        status=args.status,
        before=one_id(args.before),
        after=one_id(args.after),
        **{name: getattr(args, name) for name in _TEXTS},
    )
    return context.answer(result, task_lines(result["task"], context.look))


def run_edit(context: Context) -> int:
    """Set or clear members of a task."""
    args = context.args
    members: dict[str, Any] = {name: getattr(args, name) or None for name in _TEXTS if getattr(args, name) is not None}
    if args.title is not None:
        members["title"] = args.title
    if args.parent is not None:
        members["parent"] = one_id(args.parent) if args.parent.strip() else None
    if args.meta:
        members["metadata"] = _metadata(args.meta)
    members |= {
        name: found
        for name, given in (("add_blocked_by", args.blocked_by), ("remove_blocked_by", args.unblock_from))
        if (found := ids(given))
    }
    if not members:
        raise UsageError("nothing to change was given")
    head = {"conversation": context.known, "task": one_id(args.task)}
    if args.actor:
        head["actor"] = args.actor
    result = context.caller.call("task.edit", {**head, **members})
    return context.answer(result, task_lines(result["task"], context.look))


def run_move(context: Context) -> int:
    """Change a task's place."""
    args = context.args
    places = {"before": one_id(args.before), "after": one_id(args.after), "to_end": args.to_end or None}
    if sum(place is not None for place in places.values()) != 1:
        raise UsageError("say where to: one of --before, --after, --to-end")
    result = context.change("task.move", task=one_id(args.task), **places)
    return context.answer(result, task_lines(result["task"], context.look))


def run_rm(context: Context) -> int:
    """Delete tasks."""
    tasks = ids(context.args.tasks) or []
    if not context.confirmed(f"Delete {', '.join(f'#{safe(one)}' for one in tasks)}?"):
        return _left_alone(context)
    result = context.change("task.delete", tasks=tasks)
    gone = ", ".join(f"#{safe(one)}" for one in result["deleted"])
    return context.answer(result, [f"deleted {gone}", context.look.paint("dim", "  back again: punch undo")])


def run_clear(context: Context) -> int:
    """Remove all tasks."""
    if not context.args.yes and not context.look.terminal:
        raise UsageError("clear empties the list: add --yes")
    if not context.confirmed(f"Remove all tasks of {safe(context.known)}?"):
        return _left_alone(context)
    result = context.change("list.clear")
    lines = [f"removed {result['cleared']} tasks", context.look.paint("dim", "  back again: punch undo")]
    return context.answer(result, lines)


def run_undo(context: Context) -> int:
    """Take back the newest calls."""
    args = context.args
    result = context.change("list.undo", count=args.count, of=args.of, preview=args.preview or None)
    lines = [safe(line) for line in result.get("undone", ())]
    head = "would take back:" if args.preview else "took back:"
    return context.answer(result, [head, *(f"  {line}" for line in lines)] if lines else ["nothing to take back"])


def _left_alone(context: Context) -> int:
    context.note("nothing was changed")
    return REFUSED


def _metadata(pairs: list[str] | None) -> dict[str, Any] | None:
    """Metadata from KEY=VALUE; an empty value is null, which deletes the key."""
    if not pairs:
        return None
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"metadata is KEY=VALUE, not {pair!r}")
        found[key] = loose_value(value) if value else None
    return found
