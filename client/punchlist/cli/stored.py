"""Names the changes that this command has made, for an error that follows them: a full disk takes its output alone."""

from typing import Any

from punchlist import plain_json
from punchlist.cli import wire
from punchlist_schemas.methods import METHODS

_CHANGING = frozenset({"daemon.backup", "space.add", "space.remove", "list.share", "list.join", "list.leave"})
"""Methods that change something and are no mutations of the contract."""

_NAMED = 20
"""The most ids that are named."""


def advice() -> str:
    """Say which changes are stored; empty if there are none."""
    changes: dict[str, dict[str, None]] = {}
    for method, params, result in wire.made:
        known = plain_json.decode(result) if isinstance(result, str) else result
        if _is_change(method, params, known):
            place = f" of {params['conversation']}" if "conversation" in params else ""
            changes.setdefault(place, {}).update(dict.fromkeys(f"#{one}" for one in _ids(known)) or {method: None})
    told = "; ".join(f"{_shorten(list(names))}{place}" for place, names in changes.items())
    return f"the change is stored ({told}), so don't repeat it" if told else ""


def _is_change(method: str, params: dict[str, Any], result: dict[str, Any]) -> bool:
    if params.get("preview") or (method == "task.claim" and not result.get("task")):
        return False
    return method in _CHANGING or (method in METHODS and METHODS[method].kind == "write")


def _ids(result: dict[str, Any]) -> list[str]:
    """The ids of the tasks in the result of a change."""
    tasks = [task["id"] for task in (result.get("task"), *result.get("tasks", ())) if task]
    deleted = result.get("deleted", ())
    return [*tasks, *result.get("added", ()), *(() if isinstance(deleted, str) else deleted)]  # str: a conversation


def _shorten(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
