"""Replies of the tool `tasks` in `native`: the list as a tree, changes by others, or details of some tasks."""

from collections.abc import Sequence
from typing import Any

from punchlist.base.tree import as_tree, titles_above
from punchlist.calls.cursor import TaskList
from punchlist.tools import changes, news, paths, phrases
from punchlist.tools.budget import fit, join_ids, shorten
from punchlist.tools.model import Reply, Steps, ToolContext
from punchlist_schemas.things import Task

ROWS = 50
"""Maximum number of tasks in a list."""
_DETAILS = 20
_DEPTH = 8
"""Maximum depth of nesting that is shown by indentation."""


def show_list(context: ToolContext, last: int | None, offset: int, *, is_all: bool) -> Steps:
    """Return the list as a tree, with marks on tasks that others changed since the agent last looked.

    Args:
        last: Position up to which changes were reported to the agent; None if it has not looked yet.
        offset: Number of tasks to skip.
    """
    delta = None if last is None else (yield from changes.read_changes(context, last))
    statuses = None if is_all else ("pending", "in_progress", "paused")
    tasks: TaskList = yield context.calls.list(status=statuses)
    by_id = {task.id: task for task in tasks}
    rows = as_tree({"id": task.id, "parent": task.parent} for task in tasks)[offset:]
    page = {row["id"] for _, row in rows[:ROWS]}
    changed: dict[str, changes.TaskChanges] = {}
    foot: list[str] = []
    if delta is None or delta.is_incomplete:
        changes.mark_seen(context, tasks.seq, tasks.version)
    else:
        foot, is_all_reported = yield from news.report_unshown(context, delta, shown=page)
        changed = delta.changed if is_all_reported else {}

    def render(row: tuple[int, dict[str, Any]]) -> str:
        task = by_id[row[1]["id"]]
        text = news.format_line(task, changed[task.id]) if task.id in changed else phrases.format_line(task)
        return "  " * min(row[0], _DEPTH) + text

    shown, _ = fit(rows[:ROWS], render)
    listed = [by_id[row["id"]] for _, row in rows[: len(shown)]]
    head = f"{phrases.format_counts(tasks.counts)}, version {tasks.version}"
    left_out = len(rows) - len(shown)
    more = [f"… {left_out} more: tasks offset={offset + len(shown)}"] if left_out else []
    data = {"tasks": [phrases.build_row(task) for task in listed], "left_out": left_out, "version": tasks.version}
    return Reply(text="\n".join([head, *shown, *more, *foot]), data=data)


def show_changes_since(context: ToolContext, after: int) -> Steps:
    """Return the changes by others after a position, or the whole list if the log is incomplete after it."""
    delta = yield from changes.read_changes(context, after)
    if not delta.is_incomplete:
        return (yield from show_changes(context, delta, after))
    last = yield from changes.find_seen(context)
    return (yield from show_list(context, last, 0, is_all=False))


def show_changes(context: ToolContext, delta: changes.Changes, after: int) -> Steps:
    """Return the changes by others after a position, oldest first, and mark them as seen."""
    tasks: TaskList = yield context.calls.list()
    by_id = {task.id: task for task in tasks}
    by_name = {task.id: {"id": task.id, "title": task.title, "parent": task.parent} for task in tasks}
    changed_tasks = [by_id[id] for id in sorted(delta.changed, key=delta.get_position_before) if id in by_id]
    deleted = [id for id in delta.deleted if id not in by_id]

    def render(task: Task) -> str:
        return news.format_line(task, delta.changed[task.id], titles_above(by_name[task.id], by_name))

    shown, _ = fit(changed_tasks[:ROWS], render)
    rest = changed_tasks[len(shown) :]
    seq, version = delta.get_position_before(rest[0].id) if rest else (delta.seq, delta.version)
    news.mark_notes_read(context, delta, [task.id for task in changed_tasks[: len(shown)]])
    # If the agent requested only changes after a later position, the changes before that position have not been
    # reported yet.
    if context.state.seen is None or after <= context.state.seen:
        changes.mark_seen(context, *max((seq, version), (context.state.seen or 0, context.state.version)))
    if not changed_tasks and not deleted:
        return show_no_changes("Nothing changed", version)
    foot = [f"gone: {join_ids(deleted, '#')}"] if deleted else []
    foot += [f"… {len(rest)} more: tasks since={version}"] if rest else []
    data = {
        "tasks": [phrases.build_row(task) for task in changed_tasks[: len(shown)]],
        "gone": deleted[:1_000],
        "version": version,
    }
    return Reply(text="\n".join([f"{len(changed_tasks)} changed, version {version}", *shown, *foot]), data=data)


def show_no_changes(text: str, version: int) -> Reply:
    return Reply(text=f"{text}, version {version}.", data={"tasks": [], "gone": [], "version": version})


def show_details(context: ToolContext, ids: Sequence[str], offset: int) -> Steps:
    """Return the details of some tasks, with descriptions from character `offset` on, and mark their notes as read."""
    tasks: list[Task] = []
    parents: list[list[str]] = []
    for id in ids[:_DETAILS]:
        task, titles = yield from paths.get_with_parents(context, id)
        tasks.append(task)
        parents.append(titles)
    share = 30_000 // len(tasks)
    calls = [context.format_call("tasks", f"ids={task.id}") for task in tasks]
    blocks = [
        "\n".join(phrases.format_details(task, share, titles, offset, call))
        for task, titles, call in zip(tasks, parents, calls, strict=True)
    ]
    for task in tasks:
        context.state.unread_notes.pop(task.id, None)
    note = [f"… {len(ids) - _DETAILS} more: at most {_DETAILS} at once"] if len(ids) > _DETAILS else []
    data = [phrases.build_row(task) | {"description": shorten(task.description, share, offset)} for task in tasks]
    return Reply(text="\n\n".join([*blocks, *note]), data={"tasks": data})
