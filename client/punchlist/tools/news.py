"""Lines of a reply about changes by others: each change if the changes are few and short, otherwise only their number.

Only changes that a reply shows count as seen. `tasks since=last` shows the others.
"""

from collections.abc import Collection, Container, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from punchlist.base.text import clip, one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import NotFound
from punchlist.tools import changes, notes, paths, phrases
from punchlist.tools.budget import join_ids
from punchlist.tools.model import ToolContext
from punchlist_schemas.things import Task

ROOM = 480
"""Maximum length of a reply with these lines, in characters, excluding notes on the agent's task."""

_TITLE = 100
_NAME = 30
"""Maximum length of a title in a one-line list of tasks, in characters."""


class News(NamedTuple):
    """Changes by others for a reply.

    Attributes:
        lines: Lines to append to the reply.
        changed: The reported changes, by task. The reply marks them on the tasks that it shows.
    """

    lines: list[str] = []
    changed: Mapping[str, changes.TaskChanges] = {}


def report_changes(
    context: ToolContext, last: int | None, room: int = ROOM, shown: Collection[str] = ()
) -> Generator[Call[Any], Any, News]:
    """Return changes by others since the agent last looked: in full if they fit, otherwise only their number.

    Changes that are only counted are not marked as seen.

    Args:
        last: Position up to which changes were reported to the agent; None if it has not looked yet.
        room: Maximum length of the lines, in characters.
        shown: Tasks that the reply itself shows.
    """
    if last is None:
        tasks: TaskList = yield context.calls.list(limit=1)
        changes.mark_seen(context, tasks.seq, tasks.version)
        return News()
    delta = yield from changes.read_changes(context, last)
    if delta.is_incomplete:
        return News([f"Others cleared the list, or changed much of it: {context.tool_name('tasks')} shows it."])
    room -= sum(len(format_mark(delta.changed[id])) for id in shown if id in delta.changed)
    lines, are_all_reported = yield from report_unshown(context, delta, room=room, shown=shown)
    return News(lines, delta.changed if are_all_reported else {})


def report_unshown(
    context: ToolContext, delta: changes.Changes, *, room: int = ROOM, shown: Container[str] = ()
) -> Generator[Call[Any], Any, tuple[list[str], bool]]:
    """Return lines for changes to tasks that the reply doesn't show, and whether these report all changes.

    If so, the changes are marked as seen. If not, the line only counts them.
    """
    unshown = [id for id in (*delta.changed, *delta.deleted) if id not in shown]
    if len(unshown) <= phrases.SOME:
        lines = yield from _format_changes(context, delta, unshown)
        lines = [f"Others changed {phrases.format_some(unshown)}:", *lines] if lines else []
        if not lines or sum(len(line) + 1 for line in lines) <= room:
            mark_notes_read(context, delta, delta.changed)
            changes.mark_seen(context, delta.seq, delta.version)
            return lines, True
    count = f"Others changed {phrases.format_some(unshown)}"
    if "tasks" in context.names:
        return [f"{count}: {context.tool_name('tasks')} since=last shows them."], False
    changes.mark_seen(context, delta.seq, delta.version)  # This agent has no tool that could show them later.
    return [f"{count}."], False


def _format_changes(
    context: ToolContext, delta: changes.Changes, ids: Iterable[str]
) -> Generator[Call[Any], Any, list[str]]:
    """Return a line for each existing task with its changes, and one with the ids of deleted tasks."""
    lines: list[str] = []
    deleted: list[str] = []
    for id in ids:
        if id in delta.deleted or (task := (yield from _find_task(context, id))) is None:
            deleted.append(id)
            continue
        parents = yield from paths.get_parent_titles(context, task)
        lines.append(format_line(structs.replace(task, title=clip(task.title, _TITLE)), delta.changed[id], parents))
    return lines + ([f"gone: {join_ids(deleted, '#')}"] if deleted else [])


def _find_task(context: ToolContext, task: str) -> Generator[Call[Any], Any, Task | None]:
    try:
        return (yield context.calls.get(task))
    except NotFound:
        return None


def format_line(task: Task, update: changes.TaskChanges, parents: Sequence[str] = ()) -> str:
    """Return the line for a task that others changed."""
    return phrases.format_line(task, parents) + format_mark(update)


def format_mark(update: changes.TaskChanges) -> str:
    """Return the end of a task's line: who changed the task, new notes, and edited members that the line does not
    show."""
    details = [f'note "{clip(one_line(text), notes.MAX_TEXT)}"' for text in update.notes]
    details += [", ".join(update.members)] if update.members else []
    suffix = f": {'; '.join(details)}" if details else ""
    return f" — by {phrases.format_actor(update.by)}{suffix}"


def mark_notes_read(context: ToolContext, delta: changes.Changes, ids: Iterable[str]) -> None:
    """Record that the lines for these tasks showed the new notes on them."""
    for id in ids:
        notes.mark_read(context, id, delta.changed[id].notes_version)


def report_open_tasks(
    context: ToolContext, planned: Collection[str], *, is_first: bool
) -> Generator[Call[Any], Any, list[str]]:
    """Return a line with the tasks that others and sub-agents have in progress.

    Args:
        planned: Tasks that the reply itself shows.
        is_first: Whether the agent has not looked at the list yet. If it has not, the line contains all open tasks.
    """
    if (turn := context.view.turn) is not None and turn.total == len(planned):
        return []
    tasks: TaskList = yield context.calls.list(
        status=("in_progress", "pending", "paused") if is_first else "in_progress"
    )
    own = [task.id for task in tasks if task.status == "in_progress" and task.owner == context.actor]
    others = [task for task in tasks if task.id not in planned and task.id not in own]
    others.sort(key=lambda task: task.status != "in_progress")
    named = [structs.replace(task, title=clip(task.title, _NAME)) for task in others[: phrases.SOME]]
    more = [f"{len(others) - phrases.SOME} more"] if len(others) > phrases.SOME else []
    return [f"Also open: {', '.join([*map(phrases.format_line, named), *more])}."] if named else []
