"""Notes: what was written on a task stays as it is, up to a bound."""

from collections.abc import Sequence

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import NoteAdded
from punchlist_schemas.things import Task
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.rejections import task_not_found
from punchlistd.domain.state import State

MOST_NOTES = 200
NOTES_CHARACTERS = 256 << 10


def note(state: State, params: p.TaskNote, command: Command) -> Decision | Rejection:
    """task.note: what was written stays as it is."""
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    refusal = check_notes(task, task.id, (params.text,))
    return Decision((NoteAdded(task.id, params.text, command.actor),)) if refusal is None else refusal


def added(task: str, asked: p.NoteText | p.WrittenNote, actor: str) -> NoteAdded:
    """Return a note that comes with a task, written by the caller or by its author elsewhere."""
    if isinstance(asked, str):
        return NoteAdded(task, asked, actor)
    return NoteAdded(task, asked.text, actor, asked.author or "", asked.at or 0)


def check_notes(task: Task | None, name: str, notes: Sequence[p.NoteText | p.WrittenNote]) -> Rejection | None:
    old = () if task is None else task.notes
    texts = [one if isinstance(one, str) else one.text for one in notes]
    size = sum(len(note.text) for note in old) + sum(map(len, texts))
    limits = (("notes", len(old) + len(texts), MOST_NOTES), ("notes_characters", size, NOTES_CHARACTERS))
    for limit, value, most in limits:
        if texts and value > most:
            message = f"Task #{name} can't take this note: {limit} would be {value:,}, at most {most:,} are allowed."
            return Rejection("limit_exceeded", message, {"limit": limit, "value": value, "maximum": most})
    return None
