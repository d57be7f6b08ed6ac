"""The members of a task as one table, which adding, editing, replacing, the fold, undo and snapshots walk.

The structs of the contract declare a member; the table follows from which of them carry it. So a new member is a line
in each of `Task`, `AddedTask`, `TaskEdited`, `TaskAdd`, `NewTask` and `TaskEdit`, with a default that is false, and
nothing in the domain. In `Task` it comes last, because a snapshot holds the members in that order.
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

    `default` is what a new task has of itself, or NODEFAULT. `editable`: a call can set it, undo puts it back, and
    `list.replace` brings it up to date. `restorable`: a new task can have it, and a deleted one comes back with it.
    `stored`: the state and its snapshots hold it; else only answers show it.
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
"""What is set as a whole by an edit. Metadata is not: keys of it are merged."""

DAYS = (("due", "due_day"), ("not_before", "not_before_day"))
"""The moments that can have a day beside them: a date without a time. They change together."""

RESTORABLE = tuple(row.name for row in MEMBERS.values() if row.restorable)
STORED = tuple(row.name for row in MEMBERS.values() if row.stored)

RARE = AddedTask.__struct_fields__[AddedTask.__struct_fields__.index("status_changed_at") + 1 :]
"""What most tasks do not have."""

rare_of = attrgetter(*RARE)
"""Returns the values of these members of a task."""


def add_days(task: Task, changes: dict[str, Any], asked: Any) -> None:
    """Add to the changes of a task the day, as `asked` has it, of each moment that changes: alone it means no day."""
    for moment, day in DAYS:
        value = getattr(asked, day) or None
        if moment in changes and (value is not None or getattr(task, day) is not None):
            changes.setdefault(day, value)


def describe_members(members: Iterable[str]) -> str:
    """Name members as people read them: a day and the moment that follows from it are one date."""
    return ", ".join(dict.fromkeys(_WORDS.get(name, name.replace("_", " ")) for name in members))


_WORDS = {
    **dict.fromkeys(("due", "due_day"), "due date"),
    **dict.fromkeys(("not_before", "not_before_day"), "not before"),
    "estimate_ms": "estimate",
}
