"""`todo`: a chat assistant's tools for the to-dos of a single user, for whom the server runs."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from punchlist.base.text import one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.tools import creating, notes, paths
from punchlist.tools.budget import BUDGET, announce_omitted, fit, shorten, to_json
from punchlist.tools.history import describe_completion_by_others
from punchlist.tools.model import (
    NUMBER,
    Arguments,
    Dialect,
    Hidden,
    Listing,
    Offset,
    Problem,
    Reply,
    Steps,
    Token,
    Tool,
    ToolContext,
    advertise_limit,
    call_with_consent,
)
from punchlist.tools.phrases import describe_gate, describe_wait, is_open_heading
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Status, Task, Title

TaskId = Annotated[str, Meta(description="The task's number", extra_json_schema={NUMBER: True, "minimum": 1})]
Also = tuple[Annotated[str, Meta(extra_json_schema={NUMBER: True})], ...]
UserWords = Annotated[str, Hidden]
_MAX_TEXT = 20_000


class CreateTodo(Arguments, frozen=True):
    """Arguments of create_todo_task."""

    title: Annotated[str, advertise_limit(Title)]


class OneTask(Arguments, frozen=True):
    """Arguments of tools for one task."""

    task_id: TaskId


class GetTodo(OneTask, frozen=True):
    """Arguments of get_todo_task. The description is shown from character `offset` on."""

    offset: Offset = 0


class DeleteTodo(OneTask, frozen=True):
    """Arguments of delete_todo_task."""

    also: Also = ()
    confirm: Token = ""
    user_words: UserWords = ""


class UpdateTodo(OneTask, frozen=True):
    """Arguments of update_todo_task."""

    title: Annotated[str, advertise_limit(Title)]
    confirm: Token = ""
    user_words: UserWords = ""


def _to_reply(data: Any) -> Reply:
    return Reply(text=to_json(data), data=data)


def build_row(task: Task, path: str = "") -> dict[str, Any]:
    """Return a task in this dialect's form. A task that has failed or waits at its gate counts as not completed.

    `path` is the task's title, preceded by those of its parents.
    """
    status = "failed" if task.status == "failed" else describe_wait(task)
    optional = {"status": status} if status else {}
    optional |= {"path": path} if path else {}
    optional |= {"heading": True} if is_open_heading(task) else {}
    return {"id": int(task.id), "title": task.title, "completed": task.status == "completed", **optional}


def _build_full_row(context: ToolContext, task: Task, offset: int = 0) -> dict[str, Any]:
    call = context.format_call("get_todo_task", f"task_id={task.id}")
    texts = {
        "description": shorten(task.description, _MAX_TEXT, offset, call),
        "result": shorten(task.result_summary, _MAX_TEXT),
        "reason": shorten(task.fail_reason, _MAX_TEXT),
    }
    newest = {"notes": notes.format_newest(task)} if task.notes else {}
    return build_row(task) | {name: text for name, text in texts.items() if text} | newest


def build_outcome(task: Task, status: str, note: str = "") -> Reply:
    data = {"task_id": int(task.id), "status": status, "title": task.title}
    return _to_reply(data | ({"note": note} if note else {}))


_STATUSES: dict[str, tuple[Status, ...]] = {
    "pending": ("pending", "in_progress", "paused", "failed"),
    "completed": ("completed",),
}
"""Filter -> the statuses that it selects. Each status belongs to only one filter, so that the counts add up."""


def list_rows(context: ToolContext, status: str, offset: int, tool: str) -> Steps:
    """Return the tasks selected by a filter. If they don't fit, a last row with id 0 counts those left out."""
    tasks: TaskList = yield context.calls.list(status=_STATUSES.get(status), offset=offset)
    path_of = yield from paths.load_paths(context, tasks)
    shown, left_out = fit(tasks, lambda task: build_row(task, path_of(task)), BUDGET)
    if left_out:
        hint = announce_omitted(left_out, offset + len(shown), context.tool_name(tool))
        shown.append({"id": 0, "title": f"… {hint}", "completed": False, "omitted": left_out})
    return _to_reply(shown)


def delete_with_consent(context: ToolContext, number: str, also: tuple[str, ...], confirm: str, words: str) -> Steps:
    """Delete tasks with the user's consent. Ask a single question about all of them."""
    task: Task = yield context.calls.get(number)
    ids = list(dict.fromkeys((task.id, *also)))
    names = f"task {task.id}" if len(ids) == 1 else f"tasks {', '.join(ids)}"
    question = f"Are you sure you want to delete {names}? (yes/no)"
    deleted = yield from call_with_consent(
        context, partial(context.calls.delete, *ids), question, confirm=confirm, quote=words
    )
    if isinstance(deleted, Reply):
        return deleted
    reply = build_outcome(task, "deleted")
    return reply if len(ids) == 1 else _to_reply({**reply.data, "deleted": [int(id) for id in deleted]})


def rename_with_consent(
    context: ToolContext, rename: Callable[..., Call[Any]], task: Task, title: str, confirm: str, words: str
) -> Generator[Call[Any], Any, Any]:
    """Rename a task with the user's consent. Return the task, or the reply with the question."""
    question = f"Are you sure you want to rename task {task.id}? (yes/no)"
    return (yield from call_with_consent(context, rename, question, confirm=confirm, quote=words, title=title))


def _create_todo(context: ToolContext, args: CreateTodo) -> Steps:
    result = yield from creating.add(context, one_line(args.title))
    return _to_reply(
        _build_full_row(context, result.task)
        | ({"note": creating.describe_kept(context, result.task, {})} if result.kept else {})
    )


def _get_todo(context: ToolContext, args: GetTodo) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    return _to_reply(_build_full_row(context, task, args.offset))


def _list_todos(context: ToolContext, args: Listing) -> Steps:
    return (yield from list_rows(context, "all", args.offset, "list_todo_tasks"))


def _complete_todo(context: ToolContext, args: OneTask) -> Steps:
    before = yield from describe_completion_by_others(context, args.task_id)
    result: SetStatusResult = yield context.calls.complete(args.task_id)
    note = describe_gate(result.task) or (f"{before} before" if before else "")
    return _to_reply(_build_full_row(context, result.task) | ({"note": note} if note else {}))


def _delete_todo(context: ToolContext, args: DeleteTodo) -> Steps:
    return (yield from delete_with_consent(context, args.task_id, args.also, args.confirm, args.user_words))


def _update_todo(context: ToolContext, args: UpdateTodo) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    title = one_line(args.title)
    rename = partial(context.calls.edit, task.id, title=title)
    if title == task.title:
        return _to_reply(_build_full_row(context, task))
    changed = yield from rename_with_consent(context, rename, task, title, args.confirm, args.user_words)
    return changed if isinstance(changed, Reply) else _to_reply(_build_full_row(context, changed))


def refuse(problem: Problem) -> Reply:
    """Return a problem in this dialect's form."""
    data = {"status": "error", "error": problem.text}
    return Reply(text=to_json(data), data=data, refused=True)


_GUIDE = """# To-dos
You keep the user's to-dos with these tools. Never claim a change that no tool has confirmed.
- Refer to a task by its number[; if the user names it by its title, look the number up with {list_todo_tasks} first].
- <{delete_todo_task} and {update_todo_task} answer|{delete_todo_task} answers|{update_todo_task} answers> \
confirmation_required: put the question to the user word by word. Only after a yes call the same tool again with the \
same arguments and confirm set to the token; after a no, do nothing. Several tasks are deleted by one call: also=[5, 6].
- If the user said yes in the same message, give their own words as user_words instead of asking."""

DIALECT = Dialect(
    name="todo",
    summary="A chat assistant's to-dos for one user, with deleting and renaming in two steps.",
    guide=_GUIDE,
    refuse=refuse,
    tools=(
        Tool("create_todo_task", "Create a to-do.", CreateTodo, _create_todo, "adds"),
        Tool("get_todo_task", "Get a to-do by its number.", GetTodo, _get_todo, "reads"),
        Tool("list_todo_tasks", "List all to-dos.", Listing, _list_todos, "reads"),
        Tool("update_todo_task", "Rename a to-do; asks for confirmation first.", UpdateTodo, _update_todo),
        Tool("complete_todo_task", "Mark a to-do as completed.", OneTask, _complete_todo),
        Tool("delete_todo_task", "Delete a to-do; asks for confirmation first.", DeleteTodo, _delete_todo, "destroys"),
    ),
)
