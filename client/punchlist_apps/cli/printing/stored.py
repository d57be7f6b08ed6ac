"""Lists the changes that a command has already made, for the message of an error that occurs afterwards.

An example is a full disk that loses the command's output.
"""

from collections.abc import Iterable
from typing import Any

from punchlist_schemas.methods import METHODS

CHANGING = frozenset(
    {"daemon.backup", "space.add", "space.remove", "space.repair", "list.share", "list.join", "list.leave"}
)
"""Methods that change something although the method table lists them as reads or session calls."""

_MAY_CHANGE_NOTHING = {"task.claim": "task", "space.repair": "removed"}
"""Method that may change nothing → the member of its result that is empty in that case."""

_LIST_CHANGES = {
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
"""Method whose result contains no tasks → text about its change; the name of the list follows the text."""

_OTHER_CHANGES = {
    "daemon.backup": ("the backup", "path"),
    "space.add": ("the space", "space"),
    "space.remove": ("the removal of the space", "space"),
}
"""Method without a `conversation` parameter → text about its change, and the member that names the changed object."""

_MAX_NAMES = 20
"""Maximum number of task ids per list, and of other changes, in a message."""


_calls: list[tuple[str, dict[str, Any], Any]] = []
_local_changes: list[str] = []


def record_call(method: str, params: dict[str, Any], result: Any) -> None:
    """Record a call that this command made, with its result."""
    _calls.append((method, params, result))


def forget() -> None:
    """Forget the changes of an earlier command."""
    _calls.clear()
    _local_changes.clear()


def record(change: str) -> None:
    """Record a change that was made without a call, such as `the file /home/ann/.punchlist.toml`."""
    _local_changes.append(change)


def record_tasks(conversation: str, ids: Iterable[str]) -> None:
    """Record changes to these tasks that this command made over another connection."""
    record_call("list.apply", {"conversation": conversation}, {"tasks": [{"id": task} for task in ids]})


def advise_stored() -> str:
    tasks: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for method, params, result in _calls:
        if _is_change(method, params, result):
            if ids := _collect_task_ids(result):
                tasks.setdefault(params["conversation"], {}).update(dict.fromkeys(f"#{task}" for task in ids))
            else:
                others[_describe(method, result | params)] = None
    others |= dict.fromkeys(_local_changes)
    changes = [f"{_shorten(list(ids))} of {place}" for place, ids in tasks.items()]
    summary = "; ".join([*changes, *([_shorten(list(others))] if others else [])])
    return f"the change is stored ({summary}), so don't repeat it" if summary else ""


def _is_change(method: str, params: dict[str, Any], result: dict[str, Any]) -> bool:
    if params.get("preview") or (method in _MAY_CHANGE_NOTHING and not result.get(_MAY_CHANGE_NOTHING[method])):
        return False
    return method in CHANGING or (method in METHODS and METHODS[method].kind == "write")


def _describe(method: str, members: dict[str, Any]) -> str:
    words, member = _OTHER_CHANGES.get(method, (_LIST_CHANGES.get(method, method), "conversation"))
    return f"{words} {members[member]}"


def _collect_task_ids(result: dict[str, Any]) -> list[str]:
    tasks = [task["id"] for task in (result.get("task"), *result.get("tasks", ())) if task]
    deleted = result.get("deleted", ())
    return [*tasks, *result.get("added", ()), *(() if isinstance(deleted, str) else deleted)]  # str: a conversation


def _shorten(names: list[str]) -> str:
    return ", ".join(names[:_MAX_NAMES]) + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
