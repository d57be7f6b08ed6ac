"""What `tasks` of `native` shows: the list as a tree, what others changed, or everything about some tasks."""

from collections.abc import Sequence
from typing import Any

from punchlist.base.tree import as_tree, titles_above
from punchlist.calls.cursor import TaskList
from punchlist.tools import changes, news, paths, phrases
from punchlist.tools.budget import fitting, joined, shorten
from punchlist.tools.model import Reply, Steps, ToolContext
from punchlist_schemas.things import Task

ROWS = 50
"""Maximum number of tasks in a list."""
_DETAILS = 20
_DEPTH = 8
"""Levels of nesting that are shown by indentation."""


def whole(context: ToolContext, last: int | None, offset: int, *, is_all: bool) -> Steps:
    """Return the list with children under their parents; what others changed since the agent looked is marked."""
    fresh = None if last is None else (yield from changes.since(context, last))
    statuses = None if is_all else ("pending", "in_progress", "paused")
    tasks: TaskList = yield context.calls.list(status=statuses)
    by_id = {task.id: task for task in tasks}
    rows = as_tree({"id": task.id, "parent": task.parent} for task in tasks)[offset:]
    page = {row["id"] for _, row in rows[:ROWS]}
    changed: dict[str, changes.Touched] = {}
    foot: list[str] = []
    if fresh is None or fresh.everything:
        changes.note_seen(context, tasks.seq, tasks.version)
    else:
        foot, is_all_told = yield from news.unshown(context, fresh, beside=page)
        changed = fresh.changed if is_all_told else {}

    def render(row: tuple[int, dict[str, Any]]) -> str:
        task = by_id[row[1]["id"]]
        text = news.line(task, changed[task.id]) if task.id in changed else phrases.line(task)
        return "  " * min(row[0], _DEPTH) + text

    shown, _ = fitting(rows[:ROWS], render)
    listed = [by_id[row["id"]] for _, row in rows[: len(shown)]]
    head = f"{phrases.summary(tasks.counts)}, version {tasks.version}"
    left_out = len(rows) - len(shown)
    more = [f"… {left_out} more: tasks offset={offset + len(shown)}"] if left_out else []
    data = {"tasks": [phrases.row(task) for task in listed], "left_out": left_out, "version": tasks.version}
    return Reply(text="\n".join([head, *shown, *more, *foot]), data=data)


def changed_since(context: ToolContext, after: int) -> Steps:
    """Return what others changed behind a position; the whole list if the log doesn't tell."""
    told = yield from changes.since(context, after)
    if not told.everything:
        return (yield from changed(context, told, after))
    last = yield from changes.seen(context)
    return (yield from whole(context, last, 0, is_all=False))


def changed(context: ToolContext, told: changes.Changes, after: int) -> Steps:
    """Return what others changed behind a position, the first changes first. The agent knows what is told."""
    tasks: TaskList = yield context.calls.list()
    by_id = {task.id: task for task in tasks}
    by_name = {task.id: {"id": task.id, "title": task.title, "parent": task.parent} for task in tasks}
    touched = [by_id[one] for one in sorted(told.changed, key=told.before) if one in by_id]
    gone = [one for one in told.gone if one not in by_id]

    def render(task: Task) -> str:
        return news.line(task, told.changed[task.id], titles_above(by_name[task.id], by_name))

    shown, _ = fitting(touched[:ROWS], render)
    rest = touched[len(shown) :]
    seq, version = told.before(rest[0].id) if rest else (told.seq, told.version)
    news.note_told(context, told, [task.id for task in touched[: len(shown)]])
    if context.mind.seen is None or after <= context.mind.seen:  # else there is more before that was not told
        changes.note_seen(context, *max((seq, version), (context.mind.seen or 0, context.mind.version)))
    if not touched and not gone:
        return unchanged("Nothing changed", version)
    foot = [f"gone: {joined(gone, '#')}"] if gone else []
    foot += [f"… {len(rest)} more: tasks since={version}"] if rest else []
    data = {"tasks": [phrases.row(task) for task in touched[: len(shown)]], "gone": gone[:1_000], "version": version}
    return Reply(text="\n".join([f"{len(touched)} changed, version {version}", *shown, *foot]), data=data)


def unchanged(text: str, version: int) -> Reply:
    return Reply(text=f"{text}, version {version}.", data={"tasks": [], "gone": [], "version": version})


def details(context: ToolContext, ids: Sequence[str], offset: int) -> Steps:
    """Return everything about some tasks, descriptions from `offset` on; the notes on them are read by that."""
    tasks: list[Task] = []
    parents: list[list[str]] = []
    for one in ids[:_DETAILS]:
        tasks.append((yield context.calls.get(one)))
        parents.append((yield from paths.above(context, tasks[-1])))
    share = 30_000 // len(tasks)
    calls = [context.call_of("tasks", f"ids={task.id}") for task in tasks]
    blocks = [
        "\n".join(phrases.detail(task, share, above, offset, rest))
        for task, above, rest in zip(tasks, parents, calls, strict=True)
    ]
    for task in tasks:
        context.mind.unread.pop(task.id, None)
    note = [f"… {len(ids) - _DETAILS} more: at most {_DETAILS} at once"] if len(ids) > _DETAILS else []
    data = [phrases.row(task) | {"description": shorten(task.description, share, offset)} for task in tasks]
    return Reply(text="\n\n".join([*blocks, *note]), data={"tasks": data})
