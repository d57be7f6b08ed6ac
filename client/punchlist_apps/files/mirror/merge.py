"""The three-way merge of a list: of a file, the list that the file came from, and the list as it is now. Pure.

Rules:
1. A member that differs from the base is proposed; one that does not is left as it is now.
2. Proposed and meanwhile changed to something else is a conflict: the present stays, the proposal is reported.
3. Sets merge by elements, objects by keys.
4. A task that the base does not know is new. One that is missing is deleted only where the file can be trusted to know
   the present list, and only if nobody changed it meanwhile.
5. A changed order is taken over if nobody else changed it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from punchlist.taskfiles.file_format import Fields

Sheet = Mapping[str, Fields]
"""Tasks by id, in the order of their list."""

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


class Merge(NamedTuple):
    """The result of a merge. `kept` are tasks that the file lacks and that stay, since it may not know them."""

    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...] = ()
    kept: tuple[str, ...] = ()


def merge(base: Sheet | None, theirs: Sheet, ours: Sheet, *, may_delete: bool = False) -> Merge:
    """The changes that bring into `ours` what `theirs` changed since `base`.

    Args:
        base: The list that the file came from; None if that is not known.
        theirs: The list in the file; what is in neither of the others is new.
        ours: The list as it is now.
        may_delete: Whether a task that is missing in the file shall be deleted.
    """
    changes: list[Change] = []
    conflicts: list[Conflict] = []
    known = base or {}
    for task, fields in theirs.items():
        if task not in ours:
            if task in known and dict(fields) != dict(known[task]):
                conflicts.append(Conflict(task, "task", dict(fields), None, "deleted meanwhile"))
            continue
        edited, clashes = _edited(task, known.get(task), fields, ours[task])
        conflicts += clashes
        if edited:
            changes.append(Edit(task, edited))
    gone, kept, clashes = _gone(known, theirs, ours, may_delete=may_delete)
    moves, order = _moved(known, theirs, ours)
    added = _added(known, theirs, ours)
    return Merge((*changes, *moves, *added, *gone), (*conflicts, *clashes, *order), kept)


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


def _edited(task: str, base: Fields | None, theirs: Fields, ours: Fields) -> tuple[Fields, list[Conflict]]:
    edited: dict[str, Any] = {}
    clashes: list[Conflict] = []
    for member, proposed in theirs.items():
        present = ours.get(member)
        before = _NOTHING if base is None else base.get(member)
        value, clash = three_way(before, proposed, present)
        if clash:
            clashes.append(Conflict(task, member, proposed, present))
        if value != present:
            edited[member] = value
    return edited, clashes


def _gone(
    base: Sheet, theirs: Sheet, ours: Sheet, *, may_delete: bool
) -> tuple[list[Change], tuple[str, ...], list[Conflict]]:
    missing = [task for task in base if task not in theirs and task in ours]
    if not may_delete:
        return [], tuple(missing), []
    changed = [task for task in missing if dict(base[task]) != dict(ours[task])]
    clashes = [Conflict(task, "task", None, dict(ours[task]), "deleted here, changed meanwhile") for task in changed]
    return [Delete(task) for task in missing if task not in changed], (), clashes


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
    staying = {wanted[index] for index in _rising([place[task] for task in wanted])}
    moves: list[Change] = []
    for index, task in enumerate(wanted):
        if task not in staying:
            moves.append(Move(task, wanted[index - 1] if index else None))
    return moves, []


def _rising(numbers: Sequence[int]) -> list[int]:
    """The indices of a longest rising subsequence: what can stay where it is."""
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        place = bisect_left(tails, number)
        before.append(at[place - 1] if place else -1)
        tails[place : place + 1] = [number]
        at[place : place + 1] = [index]
    chain: list[int] = []
    index = at[-1] if at else -1
    while index >= 0:
        chain.append(index)
        index = before[index]
    return chain


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


def apply(changes: Iterable[Change], ours: Sheet) -> dict[str, Fields]:
    """The list after the changes: what the daemon makes of them."""
    sheet = dict(ours)
    for change in changes:
        match change:
            case Edit(task, fields):
                sheet[task] = {**sheet[task], **fields}
            case Delete(task):
                del sheet[task]
            case Move(task, after):
                sheet = _placed(sheet, task, sheet[task], after)
            case Add(ref, fields, after, at_end):
                sheet = {**sheet, ref: fields} if at_end else _placed(sheet, ref, fields, after)
    return sheet


def _placed(sheet: Mapping[str, Fields], task: str, fields: Fields, after: str | None) -> dict[str, Fields]:
    others = [(one, value) for one, value in sheet.items() if one != task]
    index = next((i + 1 for i, (one, _) in enumerate(others) if one == after), 0)
    return dict([*others[:index], (task, fields), *others[index:]])
