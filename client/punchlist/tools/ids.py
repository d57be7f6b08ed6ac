"""Resolves the task ids that models send: ids of the list, and names from mirror files.

A file written by another program may use different ids for its tasks (such as GUIDs), and its mirror keeps these ids. A
model that reads the file may pass them to any tool. The list is loaded only if an id does not have the form of the
list's own ids.
"""

import re
from collections.abc import Generator, Mapping
from typing import Any

import msgspec

from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import NotFound
from punchlist.taskfiles.checklist import file_ids
from punchlist.tools.model import ToolContext
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.params import Params, TaskAddMany

_LIST_ID = re.compile(r"[1-9][0-9]{0,19}")
_SINGLE_ID = ("task", "parent", "before", "after")
_ID_LISTS = ("tasks", "blocked_by", "blocks", "add_blocked_by", "remove_blocked_by", "add_blocks", "remove_blocks")


def resolve_ids(context: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, Call[Any]]:
    """Return the call with names from mirror files replaced by task ids.

    Raises:
        NotFound: No task has one of the names.
    """
    params = call.request.params
    if not isinstance(params, Params):
        return call
    names = {id for id in _collect_ids(params) if not _LIST_ID.fullmatch(id)}
    if not names:
        return call
    tasks: TaskList = yield context.calls.list()
    ids = {name: task for task, name in file_ids(tasks).items()}
    for name in sorted(names - ids.keys()):
        text = f"There is no task {name[:60]!r}; list the tasks for their ids."
        raise NotFound("not_found", ERRORS["not_found"].code, text, {"what": "task", "id": name})
    return Call(call.method, _replace_ids(params, ids), call.pick)


def _collect_ids(params: Params) -> list[str]:
    """Return the task ids in a call, excluding refs to other tasks of the same call."""
    if isinstance(params, TaskAddMany):
        refs = {task.ref for task in params.tasks}
        return [id for task in params.tasks for id in _collect_ids(task) if id not in refs]
    ids = [id for member in _SINGLE_ID if isinstance(id := getattr(params, member, None), str)]
    return ids + [id for member in _ID_LISTS for id in getattr(params, member, ()) if isinstance(id, str)]


def _replace_ids(params: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(params, TaskAddMany):
        refs = {task.ref for task in params.tasks}
        outside = {name: id for name, id in ids.items() if name not in refs}
        return msgspec.structs.replace(params, tasks=tuple(_replace_ids(task, outside) for task in params.tasks))
    changes: dict[str, Any] = {}
    for member in _SINGLE_ID:
        if isinstance(id := getattr(params, member, None), str):
            changes[member] = ids.get(id, id)
    for member in _ID_LISTS:
        values = getattr(params, member, ())
        if values and isinstance(values[0], str):
            changes[member] = tuple(ids.get(id, id) for id in values)
    return msgspec.structs.replace(params, **changes)
