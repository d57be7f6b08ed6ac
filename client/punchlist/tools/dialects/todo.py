"""`todo`: the tools of a chat assistant that keeps the to-dos of the user whom its server is for."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from punchlist.base.text import one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.tools import creating, notes, paths
from punchlist.tools.budget import BUDGET, compact, fitting, more, shorten
from punchlist.tools.history import completed_by_others
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
    confirmed,
    limited,
)
from punchlist.tools.phrases import gated, is_open_heading, waiting
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Status, Task, Title

TaskId = Annotated[str, Meta(description="The task's number", extra_json_schema={NUMBER: True, "minimum": 1})]
Also = tuple[Annotated[str, Meta(extra_json_schema={NUMBER: True})], ...]
UserWords = Annotated[str, Hidden]
_IN_A_REPLY = 20_000


class CreateTodo(Arguments, frozen=True):
    """What create_todo_task takes."""

    title: Annotated[str, limited(Title)]


class OneTask(Arguments, frozen=True):
    """What the tools for one task take."""

    task_id: TaskId


class GetTodo(OneTask, frozen=True):
    """What get_todo_task takes. The description is shown from character `offset` on."""

    offset: Offset = 0


class DeleteTodo(OneTask, frozen=True):
    """What delete_todo_task takes."""

    also: Also = ()
    confirm: Token = ""
    user_words: UserWords = ""


class UpdateTodo(OneTask, frozen=True):
    """What update_todo_task takes."""

    title: Annotated[str, limited(Title)]
    confirm: Token = ""
    user_words: UserWords = ""


def _reply(data: Any) -> Reply:
    return Reply(text=compact(data), data=data)


def row(task: Task, path: str = "") -> dict[str, Any]:
    """Return a task in this dialect's form. One that has failed or waits at its gate counts as not completed.

    `path` is its title after those of its parents.
    """
    state = "failed" if task.status == "failed" else waiting(task)
    stated = {"status": state} if state else {}
    stated |= {"path": path} if path else {}
    stated |= {"heading": True} if is_open_heading(task) else {}
    return {"id": int(task.id), "title": task.title, "completed": task.status == "completed", **stated}


def _full(context: ToolContext, task: Task, offset: int = 0) -> dict[str, Any]:
    rest = context.call_of("get_todo_task", f"task_id={task.id}")
    texts = {
        "description": shorten(task.description, _IN_A_REPLY, offset, rest),
        "result": shorten(task.result_summary, _IN_A_REPLY),
        "reason": shorten(task.fail_reason, _IN_A_REPLY),
    }
    noted = {"notes": notes.newest(task)} if task.notes else {}
    return row(task) | {name: text for name, text in texts.items() if text} | noted


def outcome(task: Task, status: str, note: str = "") -> Reply:
    data = {"task_id": int(task.id), "status": status, "title": task.title}
    return _reply(data | ({"note": note} if note else {}))


_WANTED: dict[str, tuple[Status, ...]] = {
    "pending": ("pending", "in_progress", "paused", "failed"),
    "completed": ("completed",),
}
"""Filter → the statuses that it keeps: each task is either pending or completed, so that the counts add up."""


def rows(context: ToolContext, status: str, offset: int, tool: str) -> Steps:
    """The tasks that a filter keeps. Where they don't fit, a last row of the same form tells how many are left out."""
    tasks: TaskList = yield context.calls.list(status=_WANTED.get(status), offset=offset)
    place_of = yield from paths.places(context, tasks)
    shown, left_out = fitting(tasks, lambda task: row(task, place_of(task)), BUDGET)
    if left_out:
        rest = more(left_out, offset + len(shown), context.tool(tool))
        shown.append({"id": 0, "title": f"… {rest}", "completed": False, "omitted": left_out})
    return _reply(shown)


def delete_confirmed(context: ToolContext, number: str, also: tuple[str, ...], confirm: str, words: str) -> Steps:
    """Deletes tasks once the user has agreed, with one question for all of them."""
    task: Task = yield context.calls.get(number)
    ids = list(dict.fromkeys((task.id, *also)))
    named = f"task {task.id}" if len(ids) == 1 else f"tasks {', '.join(ids)}"
    question = f"Are you sure you want to delete {named}? (yes/no)"
    gone = yield from confirmed(context, partial(context.calls.delete, *ids), question, confirm=confirm, quote=words)
    if isinstance(gone, Reply):
        return gone
    reply = outcome(task, "deleted")
    return reply if len(ids) == 1 else _reply({**reply.data, "deleted": [int(each) for each in gone]})


def renamed(
    context: ToolContext, rename: Callable[..., Call[Any]], task: Task, title: str, confirm: str, words: str
) -> Generator[Call[Any], Any, Any]:
    """Changes a task's title once the user has agreed: the task, or the reply that puts the question."""
    question = f"Are you sure you want to rename task {task.id}? (yes/no)"
    return (yield from confirmed(context, rename, question, confirm=confirm, quote=words, title=title))


def _create_todo(context: ToolContext, args: CreateTodo) -> Steps:
    result = yield from creating.add(context, one_line(args.title))
    return _reply(
        _full(context, result.task) | ({"note": creating.kept(context, result.task, {})} if result.kept else {})
    )


def _get_todo(context: ToolContext, args: GetTodo) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    return _reply(_full(context, task, args.offset))


def _list_todos(context: ToolContext, args: Listing) -> Steps:
    return (yield from rows(context, "all", args.offset, "list_todo_tasks"))


def _complete_todo(context: ToolContext, args: OneTask) -> Steps:
    before = yield from completed_by_others(context, args.task_id)
    result: SetStatusResult = yield context.calls.complete(args.task_id)
    note = gated(result.task) or (f"{before} before" if before else "")
    return _reply(_full(context, result.task) | ({"note": note} if note else {}))


def _delete_todo(context: ToolContext, args: DeleteTodo) -> Steps:
    return (yield from delete_confirmed(context, args.task_id, args.also, args.confirm, args.user_words))


def _update_todo(context: ToolContext, args: UpdateTodo) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    title = one_line(args.title)
    rename = partial(context.calls.edit, task.id, title=title)
    if title == task.title:
        return _reply(_full(context, task))
    changed = yield from renamed(context, rename, task, title, args.confirm, args.user_words)
    return changed if isinstance(changed, Reply) else _reply(_full(context, changed))


def refuse(problem: Problem) -> Reply:
    """A problem in the form of this dialect."""
    data = {"status": "error", "error": problem.text}
    return Reply(text=compact(data), data=data, refused=True)


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
