"""Reads a file that others changed: which of its tasks are ours, and which version of the list it came from. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from punchlist.taskfiles.checklist import file_ids
from punchlist.taskfiles.file_format import Document, Fields, Form
from punchlist_apps.files.mirror.merge import Changes, Conflict, Delete, Sheet, reconcile
from punchlist_schemas.things import Task

NEW = "+"
"""Begins the id of a task that the file alone knows."""

Tasks = Sequence[Task]


class Snapshot(NamedTuple):
    """The list at a version."""

    version: int
    tasks: Tasks


class Adopted(NamedTuple):
    """A task that a file added: its id here, and what the file said then."""

    task: str
    fields: Fields


Memory = Mapping[tuple[int, str], Adopted]
"""(version that the file came from, its id for the task) → what became of it."""


class Reading(NamedTuple):
    """What a file proposes.

    Attributes:
        found: The changes and conflicts.
        base_version: The version of the base, -1 where none is known.
        theirs: What the file says, by our ids; new tasks by theirs behind `NEW`.
    """

    found: Changes
    base_version: int
    theirs: Sheet


class Past(NamedTuple):
    """What we remember of earlier proposals.

    Attributes:
        memory: The tasks that files have added.
        absorbed: What files of the same origin said that have been taken over: the next one may be an edit of theirs.
        is_newest: Whether the file says itself that it came from the newest version that we wrote.
    """

    memory: Memory
    absorbed: Sequence[Sheet]
    is_newest: bool


def read(form: Form, document: Document, base: Snapshot | None, present: Tasks, past: Past) -> Reading:
    """Return what a file proposes. `base` is the list that it came from, None if that is not known."""
    base_version = base.version if base else -1
    ours = {task.id: form.fields(task) for task in present}
    known: Sheet = {task.id: form.fields(task) for task in base.tasks} if base else {}
    theirs, adopted, gone = _translated(document, base, present, past.memory)
    known = {**known, **adopted}
    known = min([*reversed(past.absorbed), known], key=lambda sheet: _between(sheet, theirs))
    if not document.is_whole:
        known = {task: fields for task, fields in known.items() if task in theirs}
    is_current = past.is_newest or (base is not None and _plain(known) == _plain(ours))
    wanted = {task: fields for task, fields in theirs.items() if task not in document.deleted}
    has_base = base is not None or bool(known)
    may_delete = document.is_whole and bool(document.tasks) and base is not None and is_current
    found = reconcile(known if has_base else None, wanted, ours, may_delete=may_delete)
    changes, conflicts = [*found.changes], [*found.conflicts, *gone]
    for task in sorted(document.deleted & ours.keys()):
        if task in known and dict(known[task]) == dict(ours[task]):
            changes.append(Delete(task))
        else:
            conflicts.append(Conflict(task, "task", "deleted", dict(ours[task]), "changed meanwhile"))
    kept = found.kept if document.is_whole else ()
    return Reading(Changes(tuple(changes), tuple(conflicts), kept), base_version, theirs)


def likeliest(form: Form, document: Document, recent: Sequence[Snapshot]) -> Snapshot | None:
    """The recently written list that a file most likely came from, if the file itself does not say."""
    return min(reversed(recent), key=lambda snapshot: _distance(form, document, snapshot), default=None)


def _between(sheet: Sheet, theirs: Sheet) -> int:
    """In how many members two lists differ; a task that one of them lacks counts as all of its members."""
    distance = sum(len(fields) for task, fields in sheet.items() if task not in theirs)
    for task, fields in theirs.items():
        other = sheet.get(task)
        distance += len(fields) if other is None else sum(other.get(name) != value for name, value in fields.items())
    return distance


def _distance(form: Form, document: Document, snapshot: Snapshot) -> int:
    ids = file_ids(snapshot.tasks) if document.is_whole else {task.id: task.id for task in snapshot.tasks}
    known = {ids[task.id]: form.fields(task) for task in snapshot.tasks}
    distance = sum(task not in document.tasks for task in known) if document.is_whole else 0
    for task, fields in document.tasks.items():
        before = known.get(task)
        distance += len(fields) if before is None else sum(before.get(name) != value for name, value in fields.items())
    return distance


def _translated(
    document: Document, base: Snapshot | None, present: Tasks, memory: Memory
) -> tuple[dict[str, Fields], dict[str, Fields], list[Conflict]]:
    """The file's tasks by our ids (new ones by theirs behind `NEW`), those adopted before, and those that are gone."""
    was = _inside_ids(document, base.tasks if base else ())
    now = _inside_ids(document, present)
    newest = max((int(task.id) for task in present), default=0)
    theirs: dict[str, Fields] = {}
    adopted: dict[str, Fields] = {}
    gone: list[Conflict] = []
    version = base.version if base else -1
    for outside, said in document.tasks.items():
        found = memory.get((version, outside))
        edges = said.get("blocked_by", frozenset[str]()) | said.get("blocks", frozenset[str]())
        fields = _with_our_edges(said, {one: memory[version, one].task for one in edges if (version, one) in memory})
        if outside in was:
            theirs[was[outside]] = fields
        elif found is not None:
            theirs[found.task] = fields
            adopted[found.task] = found.fields
        elif outside in now and (base is None or not outside.isdecimal()):
            theirs[now[outside]] = fields
        elif base is None and outside.isdecimal() and int(outside) <= newest:
            gone.append(Conflict(outside, "task", dict(fields), None, "no such task any more"))
        else:
            theirs[NEW + outside] = fields
    return theirs, adopted, gone


def _with_our_edges(fields: Fields, names: Mapping[str, str]) -> Fields:
    """The members, with dependencies on tasks that files added given by our ids."""
    if not names:
        return fields
    return {
        **fields,
        **{name: frozenset(names.get(one, one) for one in fields[name]) for name in ("blocks", "blocked_by")},
    }


def _inside_ids(document: Document, tasks: Tasks) -> dict[str, str]:
    if not document.is_whole:
        return {task.id: task.id for task in tasks}
    return {outside: task for task, outside in file_ids(tasks).items()}


def _plain(sheet: Sheet) -> dict[str, dict[str, Any]]:
    return {task: dict(fields) for task, fields in sheet.items()}
