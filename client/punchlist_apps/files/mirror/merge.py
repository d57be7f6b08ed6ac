"""Three-way merge of a file, its base and the present list. Pure functions.

Rules:
1. A member that differs from the base is a proposed change; other members keep the list's values.
2. A proposed change to a member that was changed differently in the list is a conflict: the list's value is kept, and
   the proposal is reported.
3. Sets are merged by element, objects by key.
4. A task that isn't in the base is new. A missing task is deleted only if the file came from the present list, and only
   if the task hasn't changed in the list.
5. A changed order is applied if the list's order hasn't changed.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, cast

from punchlist.taskfiles.file_format import Fields
from punchlist_schemas.order import longest_rise

FieldsById = Mapping[str, Fields]
"""Members of tasks by id, in the order of their list."""

T = TypeVar("T")

_MISSING: Any = object()


class Add(NamedTuple):
    """A new task with the id `ref` in the file. It is added after the task `after`, first if that is None, or last with
    `at_end`."""

    ref: str
    fields: Fields
    after: str | None = None
    at_end: bool = True


class Edit(NamedTuple):
    """Members to set. Sets and objects are given in full."""

    task: str
    fields: Fields


class Delete(NamedTuple):
    """A task to delete."""

    task: str


class Move(NamedTuple):
    """A task to move after another one, or to the start of the list."""

    task: str
    after: str | None


Change = Add | Edit | Delete | Move


class Conflict(NamedTuple):
    """A change that can't be applied. `member` is the name of a member, or `task` for the whole task, or `order`."""

    task: str
    member: str
    proposed: Any = None
    present: Any = None
    reason: str = "changed in the list too"


class Changes(NamedTuple):
    """The changes in a file. `kept` are missing tasks that aren't deleted, since they may be newer than the file."""

    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...] = ()
    kept: tuple[str, ...] = ()


def reconcile(base: FieldsById | None, theirs: FieldsById, present: FieldsById, *, may_delete: bool = False) -> Changes:
    """Return the changes that apply the differences between `base` and `theirs` to `present`.

    Args:
        base: The list that the file came from; None if unknown.
        theirs: The list in the file.
        present: The current list.
        may_delete: Whether to delete tasks that are missing from the file.
    """
    changes: list[Change] = []
    conflicts: list[Conflict] = []
    base = base or {}
    for task, fields in theirs.items():
        if task not in present:
            if task in base and dict(fields) != dict(base[task]):
                conflicts.append(Conflict(task, "task", dict(fields), None, "deleted in the list"))
            continue
        edited: dict[str, Any] = {}
        for member, proposed in fields.items():
            current = present[task].get(member)
            before = base[task].get(member) if task in base else _MISSING
            value, is_conflict = merge_values(before, proposed, current)
            if is_conflict:
                conflicts.append(Conflict(task, member, proposed, current))
            if value != current:
                edited[member] = value
        if edited:
            changes.append(Edit(task, edited))
    missing = [task for task in base if task not in theirs and task in present]
    deleted: list[Change] = []
    for task in missing if may_delete else ():
        if dict(base[task]) == dict(present[task]):
            deleted.append(Delete(task))
        else:
            conflicts.append(
                Conflict(task, "task", None, dict(present[task]), "deleted in the file, changed in the list")
            )
    moves, order = _find_moves(base, theirs, present)
    added = _find_added(base, theirs, present)
    return Changes((*changes, *moves, *added, *deleted), (*conflicts, *order), () if may_delete else tuple(missing))


def merge_values(base: Any, theirs: Any, ours: Any) -> tuple[Any, bool]:
    """Return the merged value, and whether there is a conflict. In a conflict, the value is `ours`."""
    if theirs in (ours, base):
        return ours, False
    if ours == base:
        return theirs, False
    if all(isinstance(value, frozenset) for value in (base, theirs, ours)):
        return (ours | (theirs - base)) - (base - theirs), False
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return _merge_objects(_as_object(base), _as_object(theirs), _as_object(ours))
    return ours, True


def _as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _merge_objects(base: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    merged: dict[str, Any] = {}
    has_conflict = False
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        sides = (side.get(key, _MISSING) for side in (base, theirs, ours))
        value, is_conflict = merge_values(*sides)
        has_conflict = has_conflict or is_conflict
        if value is not _MISSING:
            merged[key] = value
    return merged, has_conflict


def _find_moves(base: FieldsById, theirs: FieldsById, ours: FieldsById) -> tuple[list[Change], list[Conflict]]:
    target = [task for task in theirs if task in base and task in ours]
    shared = set(target)
    before = [task for task in base if task in shared]
    present = [task for task in ours if task in shared]
    if target in (before, present):
        return [], []
    if present != before:
        return [], [Conflict("", "order", target, present)]
    positions = {task: index for index, task in enumerate(present)}
    unmoved = longest_rise([positions[task] for task in target])
    return [
        Move(task, target[index - 1] if index else None) for index, task in enumerate(target) if index not in unmoved
    ], []


def _find_added(base: FieldsById, theirs: FieldsById, ours: FieldsById) -> list[Change]:
    added: list[Change] = []
    last_shared = next((task for task in reversed(list(theirs)) if task in ours), None)
    is_after_last = last_shared is None
    previous: str | None = None
    for task, fields in theirs.items():
        if task not in ours and task not in base:
            added.append(Add(task, fields, previous, is_after_last))
        if task in ours or task not in base:
            previous = task
        is_after_last = is_after_last or task == last_shared
    return added
