"""Names the changes of this command in an error that follows them: a full disk loses its output, not its changes."""

from typing import Any

from punchlist import plain_json
from punchlist.cli import wire
from punchlist_schemas.methods import METHODS

_CHANGING = frozenset(
    {"daemon.backup", "space.add", "space.remove", "space.repair", "list.share", "list.join", "list.leave"}
)
"""Methods that change something and are not mutations of the contract."""

_PERHAPS = {"task.claim": "task", "space.repair": "removed"}
"""Methods that may change nothing, and the member of their result that is empty then."""

_NAMED = 20
"""Upper limit for the ids in a message."""


def record_task(method: str, conversation: str, task: str) -> None:
    """Record the change of a task that another connection of this command made."""
    wire.completed.append((method, {"conversation": conversation}, {"task": {"id": task}}))


def advice() -> str:
    """Return which changes are stored; empty without any."""
    changes: dict[str, dict[str, None]] = {}
    for method, params, result in wire.completed:
        known = plain_json.decode(result) if isinstance(result, str) else result
        if _is_change(method, params, known):
            place = f" of {params['conversation']}" if "conversation" in params else ""
            changes.setdefault(place, {}).update(dict.fromkeys(f"#{one}" for one in _ids(known)) or {method: None})
    named = "; ".join(f"{_shorten(list(names))}{place}" for place, names in changes.items())
    return f"the change is stored ({named}), so don't repeat it" if named else ""


def _is_change(method: str, params: dict[str, Any], result: dict[str, Any]) -> bool:
    if params.get("preview") or (method in _PERHAPS and not result.get(_PERHAPS[method])):
        return False
    return method in _CHANGING or (method in METHODS and METHODS[method].kind == "write")


def _ids(result: dict[str, Any]) -> list[str]:
    """The ids of the tasks in the result of a change."""
    tasks = [task["id"] for task in (result.get("task"), *result.get("tasks", ())) if task]
    deleted = result.get("deleted", ())
    return [*tasks, *result.get("added", ()), *(() if isinstance(deleted, str) else deleted)]  # str: a conversation


def _shorten(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
