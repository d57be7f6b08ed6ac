"""`todo`: the tools of a chat assistant that keeps a user's to-dos, in both generations."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from punchlist.cursor import TaskList
from punchlist.tools.fit import BUDGET, compact, fitting, more, one_line, shorten
from punchlist.tools.model import (
    Arguments,
    Confirm,
    Desk,
    Dialect,
    Listing,
    Offset,
    Problem,
    Question,
    Reply,
    Steps,
    Tool,
)
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Status, Task

UserId = Annotated[str, Meta(description="The user's id")]
TaskId = Annotated[int, Meta(description="The task's number", ge=1)]
_IN_A_REPLY = 20_000


class Users(Arguments, frozen=True):
    """What the first generation's tools all take."""

    user_id: UserId


class AddTask(Users, frozen=True):
    """What add_task takes."""

    title: str
    description: str = ""


class ListTasks(Users, frozen=True):
    """What list_tasks takes."""

    status: Literal["all", "pending", "completed"] = "all"
    offset: Offset = 0


class UsersTask(Users, frozen=True):
    """What complete_task takes."""

    task_id: TaskId


class DeleteTask(UsersTask, frozen=True):
    """What delete_task takes."""

    confirm: Annotated[str, Meta(description="Token from confirmation_required, once the user agreed")] = ""


class UpdateTask(DeleteTask, frozen=True):
    """What update_task takes."""

    title: str = ""
    description: str = ""


class Title(Arguments, frozen=True):
    """What create_todo_task takes."""

    title: str


class OneTask(Arguments, frozen=True):
    """What the second generation's tools for one task take."""

    task_id: TaskId


class DeleteTodo(OneTask, frozen=True):
    """What delete_todo_task takes."""

    confirm: Confirm = ""


class UpdateTodo(OneTask, frozen=True):
    """What update_todo_task takes."""

    title: str
    confirm: Confirm = ""


def _reply(data: Any) -> Reply:
    return Reply(text=compact(data), data=data)


def row(task: Task) -> dict[str, Any]:
    """A task in the form of this dialect."""
    return {"id": int(task.id), "title": task.title, "completed": task.status == "completed"}


def _full(task: Task) -> dict[str, Any]:
    description = {"description": shorten(task.description, _IN_A_REPLY)} if task.description else {}
    return row(task) | description


def _outcome(task: Task, status: str) -> Reply:
    return _reply({"task_id": int(task.id), "status": status, "title": task.title})


def _own(desk: Desk, args: Users) -> None:
    if desk.user is not None and args.user_id != desk.user:
        raise Problem("forbidden", f"user_id must be {desk.user!r}, the user of this connection")


def _add(desk: Desk, args: AddTask) -> Steps:
    _own(desk, args)
    task: Task = yield desk.calls.add(one_line(args.title), description=args.description)
    return _outcome(task, "created")


def _list(desk: Desk, args: ListTasks) -> Steps:
    _own(desk, args)
    return (yield from _rows(desk, args.status, args.offset, "list_tasks"))


def _rows(desk: Desk, status: str, offset: int, tool: str) -> Steps:
    wanted: dict[str, tuple[Status, ...]] = {
        "pending": ("pending", "in_progress", "paused"),
        "completed": ("completed",),
    }
    tasks: TaskList = yield desk.calls.list(status=wanted.get(status), offset=offset)
    shown, left_out = fitting(tasks, row, BUDGET)
    if left_out:
        shown.append({"omitted": left_out, "hint": more(left_out, offset + len(shown), tool)})
    return _reply(shown)


def _complete(desk: Desk, args: UsersTask) -> Steps:
    _own(desk, args)
    result: SetStatusResult = yield desk.calls.complete(str(args.task_id))
    return _outcome(result.task, "completed")


def _delete(desk: Desk, args: DeleteTask) -> Steps:
    _own(desk, args)
    return (yield from _delete_confirmed(desk, args.task_id, args.confirm))


def _delete_confirmed(desk: Desk, number: int, token: str) -> Steps:
    task: Task = yield desk.calls.get(str(number))
    question = f"Are you sure you want to delete task {number}? (yes/no)"
    if asked := _asked(desk, token, question, task):
        return asked
    yield desk.calls.delete(task.id)
    return _outcome(task, "deleted")


def _update(desk: Desk, args: UpdateTask) -> Steps:
    _own(desk, args)
    if not args.title and not args.description:
        raise Problem("invalid_arguments", "title or description is required")
    task: Task = yield desk.calls.get(str(args.task_id))
    title = one_line(args.title)
    if title and title != task.title and (asked := _asked(desk, args.confirm, _renaming(task, title), task)):
        return asked
    changes: dict[str, Any] = {"title": title} if title else {}
    changes |= {"description": args.description} if args.description else {}
    changed: Task = yield desk.calls.edit(task.id, **changes)
    return _outcome(changed, "updated")


def _renaming(task: Task, title: str) -> str:
    return f'Are you sure you want to rename task {task.id} to "{shorten(title, 500)}"? (yes/no)'


def _asked(desk: Desk, token: str, question: str, task: Task) -> Reply | None:
    """The question to be put to the user, unless the token shows that it was answered for this very task."""
    facts = (desk.conversation, desk.actor, question, task.id, str(task.created_at))
    if token and desk.memory.confirms(token, *facts):
        return None
    token, expires_at = desk.memory.token(*facts)
    data = {"status": "confirmation_required", "question": question, "confirm": token, "expires_at": expires_at}
    return Reply(text=compact(data), data=data, question=Question(question, token, expires_at))


def _create_todo(desk: Desk, args: Title) -> Steps:
    task: Task = yield desk.calls.add(one_line(args.title))
    return _reply(_full(task))


def _get_todo(desk: Desk, args: OneTask) -> Steps:
    task: Task = yield desk.calls.get(str(args.task_id))
    return _reply(_full(task))


def _list_todos(desk: Desk, args: Listing) -> Steps:
    return (yield from _rows(desk, "all", args.offset, "list_todo_tasks"))


def _complete_todo(desk: Desk, args: OneTask) -> Steps:
    result: SetStatusResult = yield desk.calls.complete(str(args.task_id))
    return _reply(_full(result.task))


def _delete_todo(desk: Desk, args: DeleteTodo) -> Steps:
    return (yield from _delete_confirmed(desk, args.task_id, args.confirm))


def _update_todo(desk: Desk, args: UpdateTodo) -> Steps:
    task: Task = yield desk.calls.get(str(args.task_id))
    title = one_line(args.title)
    if title != task.title and (asked := _asked(desk, args.confirm, _renaming(task, title), task)):
        return asked
    changed: Task = yield desk.calls.edit(task.id, title=title)
    return _reply(_full(changed))


def _refuse(problem: Problem) -> Reply:
    data = {"status": "error", "error": problem.text}
    return Reply(text=compact(data), data=data, refused=True)


_PROMPT = """# To-dos
You keep the user's to-dos with these tools. Never claim a change that no tool has confirmed.
- Refer to a task by its number; if the user names it by its title, look the number up with list_tasks first.
- Deleting and renaming answer confirmation_required: put the question to the user word by word. Only after a yes call \
the same tool again with the same arguments and confirm set to the token; after a no, do nothing.
- user_id is always that of the user you talk with."""

DIALECT = Dialect(
    name="todo",
    summary="A chat assistant's to-dos for a user, with deleting and renaming in two steps.",
    prompt=_PROMPT,
    refuse=_refuse,
    tools=(
        Tool("add_task", "Add a to-do for the user.", AddTask, _add, "adds"),
        Tool("list_tasks", "List the user's to-dos.", ListTasks, _list, "reads"),
        Tool("complete_task", "Mark a to-do of the user as completed.", UsersTask, _complete),
        Tool(
            "delete_task", "Delete a to-do of the user; asks for confirmation first.", DeleteTask, _delete, "destroys"
        ),
        Tool(
            "update_task",
            "Change a to-do's title or description; a new title asks for confirmation.",
            UpdateTask,
            _update,
        ),
        Tool("create_todo_task", "Create a to-do.", Title, _create_todo, "adds"),
        Tool("get_todo_task", "Get a to-do by its number.", OneTask, _get_todo, "reads"),
        Tool("list_todo_tasks", "List all to-dos.", Listing, _list_todos, "reads"),
        Tool("update_todo_task", "Rename a to-do; asks for confirmation first.", UpdateTodo, _update_todo),
        Tool("complete_todo_task", "Mark a to-do as completed.", OneTask, _complete_todo),
        Tool("delete_todo_task", "Delete a to-do; asks for confirmation first.", DeleteTodo, _delete_todo, "destroys"),
    ),
)
