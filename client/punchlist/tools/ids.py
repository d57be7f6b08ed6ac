"""Task ids as models bring them: the list's own, what a mirror file calls a task by, and what no list can have.

A file that others wrote names its tasks as it likes (a GUID, say), and its mirror keeps these names. So a model that
reads the file may use them in any tool; the list is only asked for them when an id is none of its own.
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

_OWN = re.compile(r"[1-9][0-9]{0,19}")
_ONE = ("task", "parent", "before", "after")
_SEVERAL = ("tasks", "blocked_by", "blocks", "add_blocked_by", "remove_blocked_by", "add_blocks", "remove_blocks")


def resolved(context: ToolContext, call: Call[Any]) -> Generator[Call[Any], Any, Call[Any]]:
    """A call with the ids in it made the list's own.

    Raises:
        NotFound: One is no task's.
    """
    params = call.request.params
    if not isinstance(params, Params):
        return call
    strange = {one for one in _named(params) if not _OWN.fullmatch(one)}
    if not strange:
        return call
    tasks: TaskList = yield context.calls.list()
    own = {outside: task for task, outside in file_ids(tasks).items()}
    for one in sorted(strange - own.keys()):
        text = f"There is no task {one[:60]!r}; list the tasks for their ids."
        raise NotFound("not_found", ERRORS["not_found"].code, text, {"what": "task", "id": one})
    return Call(call.method, _renamed(params, own), call.pick)


def _named(params: Params) -> list[str]:
    """The ids of tasks that a call names. Names that tasks give each other within one call are none."""
    if isinstance(params, TaskAddMany):
        refs = {task.ref for task in params.tasks}
        return [one for task in params.tasks for one in _named(task) if one not in refs]
    found = [one for name in _ONE if isinstance(one := getattr(params, name, None), str)]
    return found + [one for name in _SEVERAL for one in getattr(params, name, ()) if isinstance(one, str)]


def _renamed(params: Any, own: Mapping[str, str]) -> Any:
    if isinstance(params, TaskAddMany):
        refs = {task.ref for task in params.tasks}
        known = {one: task for one, task in own.items() if one not in refs}
        return msgspec.structs.replace(params, tasks=tuple(_renamed(task, known) for task in params.tasks))
    changes: dict[str, Any] = {}
    for name in _ONE:
        if isinstance(one := getattr(params, name, None), str):
            changes[name] = own.get(one, one)
    for name in _SEVERAL:
        several = getattr(params, name, ())
        if several and isinstance(several[0], str):
            changes[name] = tuple(own.get(one, one) for one in several)
    return msgspec.structs.replace(params, **changes)
