"""`todo-v1`: a chat assistant's tools for the to-dos of many users. Each call names its user."""

from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta

from punchlist.base.text import one_line
from punchlist.tools import creating
from punchlist.tools.dialects.todo import (
    Also,
    TaskId,
    UserWords,
    build_outcome,
    delete_with_consent,
    list_rows,
    refuse,
    rename_with_consent,
)
from punchlist.tools.history import describe_completion_by_others
from punchlist.tools.model import (
    Arguments,
    Dialect,
    Offset,
    Problem,
    Reply,
    Steps,
    Token,
    Tool,
    ToolContext,
    advertise_limit,
)
from punchlist.tools.phrases import describe_gate
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Description, Task, Title

UserId = Annotated[str, Meta(description="The user's id")]


class UserArguments(Arguments, frozen=True):
    """Arguments of all tools."""

    user_id: UserId


class AddTask(UserArguments, frozen=True):
    """Arguments of add_task."""

    title: Annotated[str, advertise_limit(Title)]
    description: Annotated[str, advertise_limit(Description)] = ""


class ListTasks(UserArguments, frozen=True):
    """Arguments of list_tasks."""

    status: Literal["all", "pending", "completed"] = "all"
    offset: Offset = 0


class UserTask(UserArguments, frozen=True):
    """Arguments of complete_task."""

    task_id: TaskId


class DeleteTask(UserTask, frozen=True):
    """Arguments of delete_task."""

    also: Also = ()
    confirm: Token = ""
    user_words: UserWords = ""


class UpdateTask(UserTask, frozen=True):
    """Arguments of update_task."""

    title: Annotated[str, advertise_limit(Title)] = ""
    description: Annotated[str, advertise_limit(Description)] = ""
    confirm: Token = ""
    user_words: UserWords = ""


def _check_user(context: ToolContext, args: UserArguments) -> None:
    if context.user is not None and args.user_id != context.user:
        raise Problem("forbidden", f"user_id must be {context.user!r}, the user of this connection")


def _add(context: ToolContext, args: AddTask) -> Steps:
    _check_user(context, args)
    result = yield from creating.add(context, one_line(args.title), description=args.description)
    if result.kept:
        return build_outcome(
            result.task,
            "kept",
            creating.describe_kept(context, result.task, {"description": args.description}, "update_task"),
        )
    return build_outcome(result.task, "created")


def _list(context: ToolContext, args: ListTasks) -> Steps:
    _check_user(context, args)
    return (yield from list_rows(context, args.status, args.offset, "list_tasks"))


def _complete(context: ToolContext, args: UserTask) -> Steps:
    _check_user(context, args)
    before = yield from describe_completion_by_others(context, args.task_id)
    result: SetStatusResult = yield context.calls.complete(args.task_id)
    gate = describe_gate(result.task)
    return build_outcome(
        result.task, "pending" if gate else "completed", gate or (f"{before} before" if before else "")
    )


def _delete(context: ToolContext, args: DeleteTask) -> Steps:
    _check_user(context, args)
    return (yield from delete_with_consent(context, args.task_id, args.also, args.confirm, args.user_words))


def _update(context: ToolContext, args: UpdateTask) -> Steps:
    _check_user(context, args)
    if not args.title and not args.description:
        raise Problem("invalid_arguments", "title or description is required")
    task: Task = yield context.calls.get(args.task_id)
    title = one_line(args.title)
    changes: dict[str, Any] = {"title": title} if title else {}
    changes |= {"description": args.description} if args.description else {}
    edit = partial(context.calls.edit, task.id, **changes)
    if title and title != task.title:
        changed = yield from rename_with_consent(context, edit, task, title, args.confirm, args.user_words)
    else:
        changed = yield edit()
    return changed if isinstance(changed, Reply) else build_outcome(changed, "updated")


_GUIDE = """# To-dos
You keep the user's to-dos with these tools. Never claim a change that no tool has confirmed.
- Refer to a task by its number[; if the user names it by its title, look the number up with {list_tasks} first].
- <{delete_task}, and {update_task} with a title, answer|{delete_task} answers|{update_task} with a title answers> \
confirmation_required: put the question to the user word by word. Only after a yes call the same tool again with the \
same arguments and confirm set to the token; after a no, do nothing. Several tasks are deleted by one call: also=[5, 6].
- If the user said yes in the same message, give their own words as user_words instead of asking.
- user_id is always that of the user you talk with."""

DIALECT = Dialect(
    name="todo-v1",
    summary="A chat assistant's to-dos for many users: each call names its user; deleting and renaming in two steps.",
    guide=_GUIDE,
    refuse=refuse,
    tools=(
        Tool("add_task", "Add a to-do for the user.", AddTask, _add, "adds"),
        Tool("list_tasks", "List the user's to-dos.", ListTasks, _list, "reads"),
        Tool("complete_task", "Mark a to-do of the user as completed.", UserTask, _complete),
        Tool(
            "delete_task", "Delete a to-do of the user; asks for confirmation first.", DeleteTask, _delete, "destroys"
        ),
        Tool(
            "update_task",
            "Change a to-do's title or description; a new title asks for confirmation.",
            UpdateTask,
            _update,
        ),
    ),
)
