"""Reads of one conversation's state: functions of the params, the loaded conversation and the log's head."""

from collections.abc import Callable
from typing import Any

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas import results as r
from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import MAX_INTEGER, PRIORITIES, Task
from punchlistd.domain.explain import explain
from punchlistd.domain.rejections import task_not_found
from punchlistd.domain.state import State
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.lists.turns import build_turn
from punchlistd.engine.replies import LONG_BYTES, Outcome, Pieces, Reply

LIST_END = b',"version":%d,"seq":%d,"total":%d}'
"""The last members of a listing: the list's version, the log's head, and the number of tasks."""


def get_conversation(_params: p.ConversationParams, loaded: LoadedConversation, _head: int) -> Outcome:
    return _encode(r.ConversationGetResult(conversation=loaded.view(), name=loaded.short_name))


def get_task(params: p.TaskGet, loaded: LoadedConversation, _head: int) -> Outcome:
    task = loaded.state.tasks.get(params.task)
    if task is None:
        return loaded.reject_missing(task_not_found(params.task, loaded.state.next_task))
    path = b"" if task.parent is None else b',"path":%b' % _encode(loaded.state.path(task))
    if loaded.state.running or loaded.state.reserved:
        (task,) = loaded.add_claim_details([task])
    return b'{"task":%b%b%b}' % (_encode(task), path, loaded.damaged_member)


def explain_task(params: p.TaskExplain, loaded: LoadedConversation, head: int) -> Outcome:
    state = loaded.state
    task = None if params.task is None else state.tasks.get(params.task)
    if params.task is not None and task is None:
        return loaded.reject_missing(task_not_found(params.task, loaded.state.next_task))
    explained = explain(state, task, params.owner)
    return _encode(
        r.TaskExplainResult(
            task=None if task is None else loaded.add_claim_details([task])[0],
            path=() if task is None else state.path(task),
            ready=explained.ready,
            startable=explained.startable,
            completable=explained.completable,
            ahead=explained.ahead,
            next=explained.next,
            reasons=loaded.add_lease_times(explained.reasons),
            more=explained.more,
            version=state.version,
            seq=head,
            damaged=loaded.cut,
        )
    )


def needs_log(params: p.TaskList) -> bool:
    """Return True if `task.list` requests an older version or the changes since a position."""
    return params.at_version is not None or params.since is not None


def list_tasks(params: p.TaskList, loaded: LoadedConversation, head: int) -> Outcome:
    """Answer `task.list` from the current state."""
    if params == p.TaskList(conversation=params.conversation, turn=params.turn):
        state = loaded.state
        turn = b"" if params.turn is None else _encode_turn(params.turn, loaded, head)
        return loaded.build_list_reply(b"{", turn + LIST_END % (state.version, head, len(state.tasks)))
    return filter_tasks(params, loaded.state, head, loaded)


def filter_tasks(params: p.TaskList, state: State, head: int, loaded: LoadedConversation | None = None) -> Outcome:
    """Return the selected tasks of a state. `loaded` is set if the state is the current one."""
    matches = build_filter(params)
    end = None if params.limit is None else params.offset + params.limit
    if matches is not None or params.sort is not None:
        tasks = [task for task in state.ordered() if matches is None or matches(task, state)]
        if params.sort is not None:
            tasks.sort(key=SORTS[params.sort])
        total, page = len(tasks), tasks[params.offset : end]
    else:
        # Slice the ids first, so that the cost depends on the page, not on the length of the list.
        total, page = len(state.tasks), [state.tasks[name] for name in state.ids()[params.offset : end]]
    page = page if loaded is None else loaded.add_claim_details(page)
    more = b"" if loaded is None else loaded.damaged_member + loaded.shared_member + loaded.name_member
    if loaded is not None and params.turn is not None:
        more += _encode_turn(params.turn, loaded, head)
    if params.fields is None:
        return _list_result(_encode(page), state, head, total, more)
    unknown = [name for name in params.fields if name not in Task.__struct_fields__]
    if unknown:
        members = ", ".join(Task.__struct_fields__)
        return Rejection(
            "invalid_params",
            f"A task has no member {unknown[0]}. It has: {members}.",
            {"field": "fields", "expected": members},
        )
    keep = {"id", *params.fields}
    partial = [{name: value for name, value in msgspec.to_builtins(task).items() if name in keep} for task in page]
    return _list_result(_encode(partial), state, head, total, more)


def build_filter(params: p.TaskList | p.TaskSearch) -> Callable[[Task, State], bool] | None:
    """Return whether a task matches all filters of a call, as a function; None if the call has no filter."""
    due = getattr(params, "due_before", None), getattr(params, "due_by", None)
    filters = [
        (matches, value) for name, matches in _FILTERS.items() if (value := getattr(params, name, None)) is not None
    ]
    if due != (None, None):
        filters.append((_is_due, due))
    return (lambda task, state: all(matches(task, value, state) for matches, value in filters)) if filters else None


_FILTERS: dict[str, Callable[[Task, Any, State], bool]] = {
    "status": lambda task, value, _state: task.status == value or (value.__class__ is tuple and task.status in value),
    "owner": lambda task, value, _state: task.owner == value or (value.__class__ is tuple and task.owner in value),
    "ready": lambda task, value, state: state.is_ready(task) == value,
    "parent": lambda task, value, _state: task.parent == value,
    "label": lambda task, value, _state: {*((value,) if isinstance(value, str) else value)}.issubset(task.labels),
    "waits_for": lambda task, value, _state: task.waits_for == value,
    "text": lambda task, value, _state: value.casefold() in _words(task),
}
"""For each filter in the params, a test of whether a task matches the filter's value."""


def _is_due(task: Task, limits: tuple[int | None, str | None], _state: State) -> bool:
    """Return whether a task is due before the moment in `limits`.

    If `limits` contains a day, a task with a due day is compared with that day instead.
    """
    before, by = limits
    if task.due_day is not None and by is not None:
        return task.due_day <= by
    return task.due is not None and before is not None and task.due < before


SORTS: dict[p.Sort, Callable[[Task], Any]] = {
    "due": lambda task: task.due or MAX_INTEGER,
    "priority": lambda task: -PRIORITIES.index(task.priority),
    "created": lambda task: task.created_at,
    "updated": lambda task: -task.updated_at,
    "title": lambda task: task.title.casefold(),
}
"""Sort keys. Tasks with equal keys keep the order of the list."""


def _words(task: Task) -> str:
    return "\n".join((task.title, task.description, *task.labels, *(note.text for note in task.notes))).casefold()


def _encode_turn(query: p.TurnQuery, loaded: LoadedConversation, head: int) -> bytes:
    """Return a turn as an additional member of a JSON object."""
    return b',"turn":' + _encode(build_turn(query, loaded, head))


def _list_result(tasks: bytes, state: State, head: int, total: int, more: bytes) -> Reply:
    end = b',"counts":%b%b%b' % (_encode(state.counts()), more, LIST_END % (state.version, head, total))
    return Pieces((b'{"tasks":', tasks, end)) if len(tasks) > LONG_BYTES else b'{"tasks":%b%b' % (tasks, end)


_encode = msgspec.json.Encoder().encode
