"""Names the changes of this command in an error that follows them: a full disk loses its output, not its changes."""

from collections.abc import Iterable
from typing import Any

from punchlist_apps.common import wire
from punchlist_schemas.methods import METHODS

CHANGING = frozenset(
    {"daemon.backup", "space.add", "space.remove", "space.repair", "list.share", "list.join", "list.leave"}
)
"""Methods that change something although the method table lists them as reads or session calls."""

_PERHAPS = {"task.claim": "task", "space.repair": "removed"}
"""Methods that may change nothing, and the member of their result that is empty then."""

_OF_LIST = {
    "conversation.attach": "the session of",
    "conversation.configure": "the settings of",
    "conversation.delete": "the deletion of",
    "conversation.detach": "the end of a session of",
    "conversation.open": "the opening of",
    "list.apply": "the changes of",
    "list.clear": "the clearing of",
    "list.join": "the joining of",
    "list.leave": "the leaving of",
    "list.replace": "the new tasks of",
    "list.share": "the sharing of",
    "list.undo": "the undo in",
    "message.append": "the message in",
    "message.retract": "the retraction of a message in",
    "space.repair": "the repair of",
    "turn.end": "the end of a turn in",
}
"""Method that names no task → the change to its list."""

_OF_OTHERS = {
    "daemon.backup": ("the backup", "path"),
    "space.add": ("the space", "space"),
    "space.remove": ("the removal of the space", "space"),
}
"""Method that concerns no list → the change, and the member that names its object."""

_NAMED = 20
"""Upper limit for the ids of a list, and for the other changes, in a message."""


def record(change: str) -> None:
    """Record a change that was made without a call, such as `the file /home/ann/.punchlist.toml`."""
    wire.local_changes.append(change)


def record_tasks(conversation: str, ids: Iterable[str]) -> None:
    """Record changes of a list, and of these tasks, that another connection of this command made."""
    wire.completed_calls.append(("list.apply", {"conversation": conversation}, {"tasks": [{"id": one} for one in ids]}))


def advice() -> str:
    tasks: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for method, params, result in wire.completed_calls:
        if _is_change(method, params, result):
            if ids := _ids(result):
                tasks.setdefault(params["conversation"], {}).update(dict.fromkeys(f"#{one}" for one in ids))
            else:
                others[_describe(method, result | params)] = None
    others |= dict.fromkeys(wire.local_changes)
    changes = [f"{_shorten(list(ids))} of {place}" for place, ids in tasks.items()]
    named = "; ".join([*changes, *([_shorten(list(others))] if others else [])])
    return f"the change is stored ({named}), so don't repeat it" if named else ""


def _is_change(method: str, params: dict[str, Any], result: dict[str, Any]) -> bool:
    if params.get("preview") or (method in _PERHAPS and not result.get(_PERHAPS[method])):
        return False
    return method in CHANGING or (method in METHODS and METHODS[method].kind == "write")


def _describe(method: str, members: dict[str, Any]) -> str:
    """Name a change that concerns no task."""
    words, member = _OF_OTHERS.get(method, (_OF_LIST.get(method, method), "conversation"))
    return f"{words} {members[member]}"


def _ids(result: dict[str, Any]) -> list[str]:
    """The ids of the tasks in the result of a change."""
    tasks = [task["id"] for task in (result.get("task"), *result.get("tasks", ())) if task]
    deleted = result.get("deleted", ())
    return [*tasks, *result.get("added", ()), *(() if isinstance(deleted, str) else deleted)]  # str: a conversation


def _shorten(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
