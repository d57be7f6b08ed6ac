"""Reads a changed file: maps its tasks to those of the list, finds its base version and merges. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from punchlist.taskfiles.checklist import file_ids
from punchlist.taskfiles.file_format import Document, Fields, Form
from punchlist_apps.files.mirror.merge import Changes, Conflict, Delete, FieldsById, reconcile
from punchlist_schemas.things import Task

NEW = "+"
"""Prefix of the id of a task that exists only in the file."""

Tasks = Sequence[Task]


class Snapshot(NamedTuple):
    """The list at a version."""

    version: int
    tasks: Tasks


class AddedTask(NamedTuple):
    """A task that a file added: its id in the list, and its members in the file."""

    task: str
    fields: Fields


AddedTasks = Mapping[tuple[int, str], AddedTask]
"""(base version of the file, the task's id in it) → the added task."""


class Reading(NamedTuple):
    """The proposal of a file.

    Attributes:
        changes: The changes and conflicts.
        base_version: The version that the file is based on; -1 if unknown.
        theirs: The file's tasks by their ids in the list. New tasks have `NEW` and their id in the file as the key.
    """

    changes: Changes
    base_version: int
    theirs: FieldsById


class History(NamedTuple):
    """Earlier proposals.

    Attributes:
        added: The tasks that files have added.
        applied: Applied contents of files with the same base. The next file may be an edited version of one of them.
        is_newest: Whether the file's base is the newest version that was written.
    """

    added: AddedTasks
    applied: Sequence[FieldsById]
    is_newest: bool


def read_proposal(form: Form, document: Document, base: Snapshot | None, present: Tasks, history: History) -> Reading:
    """Return the proposal of a file. `base` is the list that the file is based on; None if unknown."""
    base_version = base.version if base else -1
    ours = {task.id: form.fields(task) for task in present}
    base_fields: FieldsById = {task.id: form.fields(task) for task in base.tasks} if base else {}
    theirs, added, gone = _translate(document, base, present, history.added)
    base_fields = {**base_fields, **added}
    base_fields = min([*reversed(history.applied), base_fields], key=lambda sheet: _count_differences(sheet, theirs))
    if not document.is_whole:
        base_fields = {task: fields for task, fields in base_fields.items() if task in theirs}
    is_current = history.is_newest or (base is not None and _to_plain(base_fields) == _to_plain(ours))
    proposed = {task: fields for task, fields in theirs.items() if task not in document.deleted}
    has_base = base is not None or bool(base_fields)
    may_delete = document.is_whole and bool(document.tasks) and base is not None and is_current
    merged = reconcile(base_fields if has_base else None, proposed, ours, may_delete=may_delete)
    changes, conflicts = [*merged.changes], [*merged.conflicts, *gone]
    for task in sorted(document.deleted & ours.keys()):
        if task in base_fields and dict(base_fields[task]) == dict(ours[task]):
            changes.append(Delete(task))
        else:
            conflicts.append(Conflict(task, "task", "deleted", dict(ours[task]), "changed in the list too"))
    kept = merged.kept if document.is_whole else ()
    return Reading(Changes(tuple(changes), tuple(conflicts), kept), base_version, theirs)


def find_likeliest(form: Form, document: Document, recent: Sequence[Snapshot]) -> Snapshot | None:
    """Return the recently written list with the fewest differences from a file that doesn't name its version."""
    return min(reversed(recent), key=lambda snapshot: _compute_distance(form, document, snapshot), default=None)


def _count_differences(sheet: FieldsById, theirs: FieldsById) -> int:
    """Count the members that differ between two lists. If a task is missing, all of its members count as different."""
    distance = sum(len(fields) for task, fields in sheet.items() if task not in theirs)
    for task, fields in theirs.items():
        other = sheet.get(task)
        distance += len(fields) if other is None else sum(other.get(name) != value for name, value in fields.items())
    return distance


def _compute_distance(form: Form, document: Document, snapshot: Snapshot) -> int:
    ids = file_ids(snapshot.tasks) if document.is_whole else {task.id: task.id for task in snapshot.tasks}
    written = {ids[task.id]: form.fields(task) for task in snapshot.tasks}
    distance = sum(task not in document.tasks for task in written) if document.is_whole else 0
    for task, fields in document.tasks.items():
        before = written.get(task)
        distance += len(fields) if before is None else sum(before.get(name) != value for name, value in fields.items())
    return distance


def _translate(
    document: Document, base: Snapshot | None, present: Tasks, added_tasks: AddedTasks
) -> tuple[dict[str, Fields], dict[str, Fields], list[Conflict]]:
    """Return the file's tasks by their ids in the list, those already added, and conflicts for deleted ones."""
    base_ids = _map_ids(document, base.tasks if base else ())
    present_ids = _map_ids(document, present)
    newest = max((int(task.id) for task in present), default=0)
    theirs: dict[str, Fields] = {}
    added: dict[str, Fields] = {}
    gone: list[Conflict] = []
    version = base.version if base else -1
    for file_id, file_fields in document.tasks.items():
        earlier = added_tasks.get((version, file_id))
        edges = file_fields.get("blocked_by", frozenset[str]()) | file_fields.get("blocks", frozenset[str]())
        fields = _translate_edges(
            file_fields, {edge: added_tasks[version, edge].task for edge in edges if (version, edge) in added_tasks}
        )
        if file_id in base_ids:
            theirs[base_ids[file_id]] = fields
        elif earlier is not None:
            theirs[earlier.task] = fields
            added[earlier.task] = earlier.fields
        elif file_id in present_ids and (base is None or not file_id.isdecimal()):
            theirs[present_ids[file_id]] = fields
        elif base is None and file_id.isdecimal() and int(file_id) <= newest:
            gone.append(Conflict(file_id, "task", dict(fields), None, "no such task any more"))
        else:
            theirs[NEW + file_id] = fields
    return theirs, added, gone


def _translate_edges(fields: Fields, names: Mapping[str, str]) -> Fields:
    """Return the fields. In `blocks` and `blocked_by`, replace the file's ids of added tasks with the list's ids."""
    if not names:
        return fields
    return {
        **fields,
        **{name: frozenset(names.get(edge, edge) for edge in fields[name]) for name in ("blocks", "blocked_by")},
    }


def _map_ids(document: Document, tasks: Tasks) -> dict[str, str]:
    if not document.is_whole:
        return {task.id: task.id for task in tasks}
    return {file_id: task for task, file_id in file_ids(tasks).items()}


def _to_plain(sheet: FieldsById) -> dict[str, dict[str, Any]]:
    return {task: dict(fields) for task, fields in sheet.items()}
