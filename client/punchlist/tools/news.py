"""Lines about changes by others: each change if they are few and short, else counts.

Only changes that a reply tells count as seen; `tasks since=last` shows the others.
"""

from collections.abc import Collection, Container, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from punchlist.base.text import clip, one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import NotFound
from punchlist.tools import changes, notes, paths, phrases
from punchlist.tools.budget import joined
from punchlist.tools.model import ToolContext
from punchlist_schemas.things import Task

ROOM = 480
"""Maximum length of a reply with its news, in characters, without notes on the agent's task."""

_TITLE = 100
_NAME = 30
"""Maximum length of a title where tasks are only named, in characters."""


class News(NamedTuple):
    """Lines for a reply, and the changes that are told by it; the reply marks those that its own lines show."""

    lines: list[str] = []
    changed: Mapping[str, changes.Touched] = {}


def others(
    context: ToolContext, last: int | None, room: int = ROOM, beside: Collection[str] = ()
) -> Generator[Call[Any], Any, News]:
    """Return changes by others since the agent last looked: in full if they fit.

    Otherwise a line counts them, and `tasks since=last` still shows them. The reply shows the tasks `beside` itself.
    """
    if last is None:
        tasks: TaskList = yield context.calls.list(limit=1)
        changes.note_seen(context, tasks.seq, tasks.version)
        return News()
    told = yield from changes.since(context, last)
    if told.everything:
        return News([f"Others cleared the list, or changed much of it: {context.tool('tasks')} shows it."])
    room -= sum(len(mark(told.changed[one])) for one in beside if one in told.changed)
    lines, are_all_told = yield from unshown(context, told, room=room, beside=beside)
    return News(lines, told.changed if are_all_told else {})


def unshown(
    context: ToolContext, told: changes.Changes, *, room: int = ROOM, beside: Container[str] = ()
) -> Generator[Call[Any], Any, tuple[list[str], bool]]:
    """Return lines for changes that the reply does not show `beside` them, and whether all are told by that.

    If they are, they are not told again. If not, a line counts them, and `tasks since=last` still shows them.
    """
    touched = [one for one in (*told.changed, *told.gone) if one not in beside]
    if len(touched) <= phrases.SOME:
        lines = yield from _lines(context, told, touched)
        lines = [f"Others changed {phrases.some(touched)}:", *lines] if lines else []
        if not lines or sum(len(one) + 1 for one in lines) <= room:
            note_told(context, told, told.changed)
            changes.note_seen(context, told.seq, told.version)
            return lines, True
    counted = f"Others changed {phrases.some(touched)}"
    if "tasks" in context.names:
        return [f"{counted}: {context.tool('tasks')} since=last tells."], False
    changes.note_seen(context, told.seq, told.version)  # no tool of this agent tells more
    return [f"{counted}."], False


def _lines(context: ToolContext, told: changes.Changes, ids: Iterable[str]) -> Generator[Call[Any], Any, list[str]]:
    """Return what others did to these tasks, a line for each that is there."""
    lines: list[str] = []
    gone: list[str] = []
    for one in ids:
        if one in told.gone or (task := (yield from _present(context, one))) is None:
            gone.append(one)
            continue
        above = yield from paths.above(context, task)
        lines.append(line(structs.replace(task, title=clip(task.title, _TITLE)), told.changed[one], above))
    return lines + ([f"gone: {joined(gone, '#')}"] if gone else [])


def _present(context: ToolContext, task: str) -> Generator[Call[Any], Any, Task | None]:
    try:
        return (yield context.calls.get(task))
    except NotFound:
        return None


def line(task: Task, touched: changes.Touched, above: Sequence[str] = ()) -> str:
    """Return a task that others changed, with what they did."""
    return phrases.line(task, above) + mark(touched)


def mark(touched: changes.Touched) -> str:
    """Return the end of a line about a task: who changed it, their notes, and edited members that the line lacks."""
    said = [f'note "{clip(one_line(text), notes.TEXT)}"' for text in touched.notes]
    said += [", ".join(touched.members)] if touched.members else []
    what = f": {'; '.join(said)}" if said else ""
    return f" — by {phrases.name_of(touched.by)}{what}"


def note_told(context: ToolContext, told: changes.Changes, shown: Iterable[str]) -> None:
    """Record that the notes on these tasks were told with their lines."""
    for one in shown:
        notes.mark(context, one, told.changed[one].noted)


def also_open(context: ToolContext, planned: Container[str], *, is_first: bool) -> Generator[Call[Any], Any, list[str]]:
    """Return a line about what others and sub-agents work on; for an agent that never looked, about all open tasks."""
    tasks: TaskList = yield context.calls.list(
        status=("in_progress", "pending", "paused") if is_first else "in_progress"
    )
    own = [task.id for task in tasks if task.status == "in_progress" and task.owner == context.actor]
    others = [task for task in tasks if task.id not in planned and task.id not in own]
    others.sort(key=lambda task: task.status != "in_progress")
    named = [structs.replace(task, title=clip(task.title, _NAME)) for task in others[: phrases.SOME]]
    more = [f"{len(others) - phrases.SOME} more"] if len(others) > phrases.SOME else []
    return [f"Also open: {', '.join([*map(phrases.line, named), *more])}."] if named else []
