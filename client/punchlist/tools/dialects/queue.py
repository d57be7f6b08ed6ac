"""`queue`: one task after the other; completing the current one starts the next."""

from typing import Annotated, Any

from msgspec import Meta

from punchlist.cursor import TaskList
from punchlist.tools.fit import compact, fitting, more, shorten
from punchlist.tools.model import Arguments, Confirm, Desk, Dialect, Listing, Problem, Reply, Steps, Tool
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Priority, SettingsPatch, Status, Task

_TITLE = 80
_IN_A_LIST = 4_000
TaskId = Annotated[str, Meta(description="The task's ID")]


class AddTask(Arguments, frozen=True):
    """What add_task takes."""

    description: Annotated[str, Meta(description="What is to be done; the first line is its title")]


class CompleteTask(Arguments, frozen=True):
    """What complete_task takes."""

    task_id: TaskId
    result_summary: Annotated[str, Meta(description="What came of it, in a sentence or two")]


class FailTask(Arguments, frozen=True):
    """What fail_task takes."""

    task_id: TaskId
    reason: Annotated[str, Meta(description="Why it can't be done")]


class OneTask(Arguments, frozen=True):
    """What pause_task and resume_task take."""

    task_id: TaskId


class PrioritizeTask(Arguments, frozen=True):
    """What prioritize_task takes."""

    task_id: TaskId
    priority: Priority = "urgent"


class DeleteTask(OneTask, frozen=True):
    """What delete_task takes."""

    confirm: Confirm = ""


def split(description: str) -> tuple[str, str]:
    """Title and description of a task described in one text: the title is the first line, cut at 80 characters."""
    text = description.strip()
    first = " ".join(text.splitlines()[0].split())
    title = first[:_TITLE].rstrip()
    return title, "" if title == text else text


def joint(task: Task) -> str:
    """The one text of a task: the opposite of `split`, for tasks from anywhere."""
    if not task.description:
        return task.title
    first = " ".join(task.description.splitlines()[0].split()) if task.description.strip() else ""
    return task.description if first.startswith(task.title) else f"{task.title}\n{task.description}"


def _done(message: str, note: str = "") -> Reply:
    data: dict[str, Any] = {"success": True, "message": message}
    if note:
        data["note"] = note
    return Reply(text=compact(data), data=data)


def _add(desk: Desk, args: AddTask) -> Steps:
    title, description = split(args.description)
    if desk.conversation not in desk.memory.prepared:
        # Only a new conversation becomes serial by this: one that others work on already keeps its ways.
        yield desk.calls.open(settings=SettingsPatch(execution="serial"))
        desk.memory.prepared.add(desk.conversation)
    task: Task = yield desk.calls.add(title, description=description)
    data = {"success": True, "taskId": task.id}
    return Reply(text=compact(data), data=data)


def _list(desk: Desk, args: Listing) -> Steps:
    tasks: TaskList = yield desk.calls.list(status=("pending", "in_progress"), offset=args.offset)

    def row(task: Task) -> dict[str, str]:
        return {"id": task.id, "description": shorten(joint(task), _IN_A_LIST), "status": task.status}

    shown, left_out = fitting(tasks, row)
    data: dict[str, Any] = {"tasks": shown}
    if left_out:
        data |= {"omitted": left_out, "hint": more(left_out, args.offset + len(shown), desk.tool("list_tasks"))}
    return Reply(text=compact(data), data=data)


def _complete(desk: Desk, args: CompleteTask) -> Steps:
    running: TaskList = yield desk.calls.list(status="in_progress")
    result: SetStatusResult = yield desk.calls.complete(args.task_id, args.result_summary)
    others = [task.id for task in running]
    note = ""
    if others and args.task_id not in others and result.task.status == "completed":
        note = f"Task {others[0]}, not {args.task_id}, is the current one; it is still in progress."
    return _done(f"Task {args.task_id} marked complete.", note)


def _fail(desk: Desk, args: FailTask) -> Steps:
    result: SetStatusResult = yield desk.calls.fail(args.task_id, args.reason)
    again = "" if result.task.status == "failed" else f"It will be tried again: it is {result.task.status}."
    return _done(f"Task {args.task_id} marked failed.", again)


def _to(status: Status, word: str) -> Any:
    def run(desk: Desk, args: OneTask) -> Steps:
        yield desk.calls.set_status(args.task_id, status)
        return _done(f"Task {args.task_id} {word}.")

    return run


def _resume(desk: Desk, args: OneTask) -> Steps:
    running: TaskList = yield desk.calls.list(status="in_progress")
    if running and running[0].id != args.task_id:
        # One at a time: it waits for its turn, and the current one goes on.
        yield desk.calls.reopen(args.task_id)
        return _done(f"Task {args.task_id} resumed.", f"Its turn comes after task {running[0].id}, which is current.")
    yield desk.calls.resume(args.task_id)
    return _done(f"Task {args.task_id} resumed.")


def _prioritize(desk: Desk, args: PrioritizeTask) -> Steps:
    yield desk.calls.edit(args.task_id, priority=args.priority)
    return _done(f"Task {args.task_id} priority set to {args.priority}.")


def _delete(desk: Desk, args: DeleteTask) -> Steps:
    yield desk.calls.delete(args.task_id, confirm=args.confirm or None)
    return _done(f"Task {args.task_id} deleted.")


def _refuse(problem: Problem) -> Reply:
    data = {"success": False, "error": problem.text}
    return Reply(text=compact(data), data=data, refused=True)


_GUIDE = """# Task queue
You work through a queue, one task at a time. The first pending task starts by itself as soon as nothing is in progress.
- A new instruction that arrives while a task is in progress: {add_task} it and go on with the current one.[ If the \
user wants it at once: {pause_task} the current one first, and {resume_task} it afterwards.]
- When the current task is done you must signal it with {complete_task} and a result_summary. Only this starts the \
next one; saying so in text does nothing.
- [If it can't be done: {fail_task} with the reason. ]Do not begin a task that is not the current one.
- {list_tasks} tells what is current and what waits."""

DIALECT = Dialect(
    name="queue",
    summary="A strictly serial queue: add_task, list_tasks, complete_task and what else a queue needs.",
    guide=_GUIDE,
    refuse=_refuse,
    tools=(
        Tool("add_task", "Add a task to the end of the queue; it starts by itself in its turn.", AddTask, _add, "adds"),
        Tool("list_tasks", "List the current task and those waiting in the queue.", Listing, _list, "reads"),
        Tool("complete_task", "Complete a task of the queue; the next one starts.", CompleteTask, _complete),
        Tool("fail_task", "Give a task of the queue up as failed.", FailTask, _fail),
        Tool("pause_task", "Put a task of the queue aside until it is resumed.", OneTask, _to("paused", "paused")),
        Tool("resume_task", "Take a paused task up again.", OneTask, _resume),
        Tool("prioritize_task", "Change a task's priority in the queue.", PrioritizeTask, _prioritize),
        Tool("delete_task", "Delete a task from the queue.", DeleteTask, _delete, "destroys"),
    ),
)
