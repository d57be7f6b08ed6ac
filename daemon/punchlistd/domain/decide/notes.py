"""Notes on tasks, which can't be edited and are limited in number and size."""

from collections.abc import Sequence

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import NoteAdded
from punchlist_schemas.things import Task
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.rejections import task_not_found
from punchlistd.domain.state import State

MAX_NOTES = 200
MAX_NOTES_CHARACTERS = 256 << 10


def note(state: State, params: p.TaskNote, command: Command) -> Decision | Rejection:
    task = state.tasks.get(params.task)
    if task is None:
        return task_not_found(params.task, state.next_task)
    rejection = check_notes(task, task.id, (params.text,))
    return Decision((NoteAdded(task.id, params.text, command.actor),)) if rejection is None else rejection


def build_note(task: str, text: p.NoteText | p.WrittenNote, actor: str) -> NoteAdded:
    """Return the event for a note in a call, written by the caller or imported from another author."""
    if isinstance(text, str):
        return NoteAdded(task, text, actor)
    return NoteAdded(task, text.text, actor, text.author or "", text.at or 0)


def check_notes(task: Task | None, name: str, notes: Sequence[p.NoteText | p.WrittenNote]) -> Rejection | None:
    old = () if task is None else task.notes
    texts = [note if isinstance(note, str) else note.text for note in notes]
    size = sum(len(note.text) for note in old) + sum(map(len, texts))
    limits = (("notes", len(old) + len(texts), MAX_NOTES), ("notes_characters", size, MAX_NOTES_CHARACTERS))
    for limit, value, maximum in limits:
        if texts and value > maximum:
            message = f"Task #{name} can't take this note: {limit} would be {value:,}, at most {maximum:,} are allowed."
            return Rejection("limit_exceeded", message, {"limit": limit, "value": value, "maximum": maximum})
    return None
