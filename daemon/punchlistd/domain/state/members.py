"""Table of a task's members, used by add, edit, replace, `evolve`, undo and snapshots.

Each row is derived from the schema structs that contain the member. To add a member, add a line with a falsy default to
each of `Task`, `AddedTask`, `TaskEdited`, `TaskAdd`, `NewTask` and `TaskEdit`. This needs no code in the domain. In
`Task`, the member must come last, because a snapshot stores the members in that order.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import fields

from punchlist_schemas.events import AddedTask, TaskEdited
from punchlist_schemas.things import Task


class Member(msgspec.Struct, frozen=True):
    """A row of the table.

    Attributes:
        default: Value in a new task, or NODEFAULT.
        editable: Whether calls can set the member. If so, undo restores it, and `list.replace` updates it.
        restorable: Whether a new task can have the member. If so, a deleted task is restored with it.
        stored: Whether states and snapshots contain the member. If not, only responses contain it.
    """

    name: str
    default: Any
    editable: bool
    restorable: bool
    stored: bool


_SHOWN_ONLY = frozenset({"fence", "machine", "left_at", "silent_at"})
_BEGINS_WITH = {
    field.name: field.default if field.default_factory is NODEFAULT else field.default_factory()
    for field in fields(AddedTask)
}

MEMBERS: dict[str, Member] = {
    name: Member(
        name,
        _BEGINS_WITH.get(name, NODEFAULT),
        editable=name in TaskEdited.__struct_fields__,
        restorable=name in AddedTask.__struct_fields__,
        stored=name not in _SHOWN_ONLY,
    )
    for name in Task.__struct_fields__
}
"""The table, in the order of `Task`."""

EDITABLE = tuple(row.name for row in MEMBERS.values() if row.editable and row.name != "metadata")
"""Members that an edit replaces. Metadata is not included, since an edit merges its keys."""

DAYS = (("due", "due_day"), ("not_before", "not_before_day"))
"""Pairs of a moment and its day, which is a date without a time. The two change together."""

RESTORABLE = tuple(row.name for row in MEMBERS.values() if row.restorable)
STORED = tuple(row.name for row in MEMBERS.values() if row.stored)

RARE = AddedTask.__struct_fields__[AddedTask.__struct_fields__.index("status_changed_at") + 1 :]
"""Members that most tasks don't have."""

rare_of = attrgetter(*RARE)
"""Returns the values of a task's rare members."""


def add_days(task: Task, changes: dict[str, Any], request: Any) -> None:
    """Add the requested days to a task's changes. A moment that changes without its day clears the day."""
    for moment, day in DAYS:
        value = getattr(request, day) or None
        if moment in changes and (value is not None or getattr(task, day) is not None):
            changes.setdefault(day, value)


def describe_members(members: Iterable[str]) -> str:
    """Return the members' names for users. A day and its moment count as one date."""
    return ", ".join(dict.fromkeys(_WORDS.get(name, name.replace("_", " ")) for name in members))


_WORDS = {
    **dict.fromkeys(("due", "due_day"), "due date"),
    **dict.fromkeys(("not_before", "not_before_day"), "not before"),
    "estimate_ms": "estimate",
}
