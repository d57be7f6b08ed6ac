"""The one rule by which files change lists: a three-way merge of a file, its base, and the present list. Pure.

Rules:
1. A member that differs from the base is proposed; one that does not is left as it is now.
2. Proposed and meanwhile changed to something else is a conflict: the present stays, the proposal is reported.
3. Sets merge by elements, objects by keys.
4. A task that the base does not know is new. One that is missing is deleted only where the file can be trusted to know
   the present list, and only if nobody changed it meanwhile.
5. A changed order is taken over if nobody else changed it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, cast

from punchlist.taskfiles.file_format import Fields
from punchlist_schemas.order import longest_rise

Sheet = Mapping[str, Fields]
"""Tasks by id, in the order of their list."""

T = TypeVar("T")

_NOTHING: Any = object()


class Add(NamedTuple):
    """A new task; `ref` is its id in the file. It goes behind `after`, or first, or with `at_end` to the end."""

    ref: str
    fields: Fields
    after: str | None = None
    at_end: bool = True


class Edit(NamedTuple):
    """Members to set; sets and objects are given in full."""

    task: str
    fields: Fields


class Delete(NamedTuple):
    """A task to delete."""

    task: str


class Move(NamedTuple):
    """A task to put behind another one, or first."""

    task: str
    after: str | None


Change = Add | Edit | Delete | Move


class Conflict(NamedTuple):
    """A change that can't be applied. `member` is the name of a member, `task` (all of it) or `order`."""

    task: str
    member: str
    proposed: Any = None
    present: Any = None
    reason: str = "changed meanwhile"


class Changes(NamedTuple):
    """What a file changes. `kept` are tasks that the file lacks and that stay, since it may not know them."""

    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...] = ()
    kept: tuple[str, ...] = ()


def reconcile(base: Sheet | None, theirs: Sheet, present: Sheet, *, may_delete: bool = False) -> Changes:
    """Return the changes that bring into `present` what `theirs` changed since `base`.

    Args:
        base: The list that the file came from; None if that is not known.
        theirs: The list in the file; what is in neither of the others is new.
        present: The list as it is now.
        may_delete: Whether a task that is missing in the file shall be deleted.
    """
    changes: list[Change] = []
    conflicts: list[Conflict] = []
    known = base or {}
    for task, fields in theirs.items():
        if task not in present:
            if task in known and dict(fields) != dict(known[task]):
                conflicts.append(Conflict(task, "task", dict(fields), None, "deleted meanwhile"))
            continue
        edited: dict[str, Any] = {}
        for member, proposed in fields.items():
            now = present[task].get(member)
            before = known[task].get(member) if task in known else _NOTHING
            value, is_clash = three_way(before, proposed, now)
            if is_clash:
                conflicts.append(Conflict(task, member, proposed, now))
            if value != now:
                edited[member] = value
        if edited:
            changes.append(Edit(task, edited))
    missing = [task for task in known if task not in theirs and task in present]
    deleted: list[Change] = []
    for task in missing if may_delete else ():
        if dict(known[task]) == dict(present[task]):
            deleted.append(Delete(task))
        else:
            conflicts.append(Conflict(task, "task", None, dict(present[task]), "deleted here, changed meanwhile"))
    moves, order = _moved(known, theirs, present)
    added = _added(known, theirs, present)
    return Changes((*changes, *moves, *added, *deleted), (*conflicts, *order), () if may_delete else tuple(missing))


def three_way(base: Any, theirs: Any, ours: Any) -> tuple[Any, bool]:
    """The merged value, and whether it is a conflict (where it is, the value is `ours`)."""
    if theirs in (ours, base):
        return ours, False
    if ours == base:
        return theirs, False
    if all(isinstance(value, frozenset) for value in (base, theirs, ours)):
        return (ours | (theirs - base)) - (base - theirs), False
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return _objects(_object(base), _object(theirs), _object(ours))
    return ours, True


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _objects(base: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    merged: dict[str, Any] = {}
    clash = False
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        sides = (side.get(key, _NOTHING) for side in (base, theirs, ours))
        value, clashed = three_way(*sides)
        clash = clash or clashed
        if value is not _NOTHING:
            merged[key] = value
    return merged, clash


def _moved(base: Sheet, theirs: Sheet, ours: Sheet) -> tuple[list[Change], list[Conflict]]:
    wanted = [task for task in theirs if task in base and task in ours]
    shared = set(wanted)
    before = [task for task in base if task in shared]
    present = [task for task in ours if task in shared]
    if wanted in (before, present):
        return [], []
    if present != before:
        return [], [Conflict("", "order", wanted, present)]
    place = {task: index for index, task in enumerate(present)}
    staying = longest_rise([place[task] for task in wanted])
    return [
        Move(task, wanted[index - 1] if index else None) for index, task in enumerate(wanted) if index not in staying
    ], []


def _added(base: Sheet, theirs: Sheet, ours: Sheet) -> list[Change]:
    added: list[Change] = []
    last_known = next((task for task in reversed(list(theirs)) if task in ours), None)
    behind = last_known is None
    previous: str | None = None
    for task, fields in theirs.items():
        if task not in ours and task not in base:
            added.append(Add(task, fields, previous, behind))
        if task in ours or task not in base:
            previous = task
        behind = behind or task == last_known
    return added
