"""`checklist`: a plain list of things to tick off, with JSON replies."""

import os
from collections.abc import Generator, Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from punchlist.calls import Call
from punchlist.cursor import TaskList
from punchlist.errors import Blocked, IllegalTransition, RequestRefused
from punchlist.taskfiles.report import is_corrupt
from punchlist.text import one_line
from punchlist.tools import claims
from punchlist.tools.budget import compact, fitting, more, shorten
from punchlist.tools.history import completed_by_others
from punchlist.tools.model import Arguments, Confirm, Dialect, Listing, Problem, Reply, Steps, Tool, ToolContext
from punchlist.tools.phrases import gated
from punchlist.tools.refusals import problem_of
from punchlist.tools.replacing import replace
from punchlist_schemas.params import NewTask
from punchlist_schemas.rendezvous import data_dir
from punchlist_schemas.results import SetStatusResult, TaskExplainResult
from punchlist_schemas.things import Task

NO_CONVERSATION = "Error: Task list is not available (no conversation context)."
CORRUPT = "Error: Task file is corrupt or invalid."
NOT_FOUND = "Task not found"
_IN_A_LIST = 2_000
"""How many characters of a description are shown in a list."""

TaskId = Annotated[str, Meta(description="The task's id")]


class AddTask(Arguments, frozen=True):
    """What AddTask takes."""

    title: Annotated[str, Meta(description="Short title of the task")]
    description: str = ""


class OneTask(Arguments, frozen=True, rename="camel"):
    """What the tools for one task take."""

    task_id: TaskId


class DeleteTask(OneTask, frozen=True, rename="camel"):
    """What DeleteTask takes."""

    confirm: Confirm = ""


class CompleteTasks(Arguments, frozen=True, rename="camel"):
    """What CompleteTasks takes."""

    task_ids: Annotated[tuple[str, ...], Meta(description="The ids of the tasks")]


class Item(Struct, frozen=True):
    """One task of SetTaskList."""

    title: str
    description: str = ""


class SetTaskList(Arguments, frozen=True):
    """What SetTaskList takes."""

    tasks: Annotated[tuple[Item, ...], Meta(description="The whole new list")]


class ClearTasks(Arguments, frozen=True):
    """What ClearTasks takes."""

    confirm: Confirm = ""


def item(task: Task, most: int = _IN_A_LIST) -> dict[str, Any]:
    """A task in the form of this dialect."""
    description = shorten(task.description, most)
    return {"id": task.id, "title": task.title, "description": description, "done": task.status == "completed"}


def _json(data: dict[str, Any], *, refused: bool = False) -> Reply:
    return Reply(text=compact(data), data=data, refused=refused)


def _tasks(desk: ToolContext, tasks: Iterable[Task], offset: int = 0, note: str = "") -> Reply:
    shown, left_out = fitting(tasks, item)
    data: dict[str, Any] = {"tasks": shown} | ({"note": shorten(note, _IN_A_LIST)} if note else {})
    if left_out:
        data |= {"omitted": left_out, "hint": more(left_out, offset + len(shown), desk.tool("ListTasks"))}
    return _json(data)


def _list(desk: ToolContext, args: Listing) -> Steps:
    tasks: TaskList = yield desk.calls.list(offset=args.offset)
    return _tasks(desk, tasks, args.offset)


def _add(desk: ToolContext, args: AddTask) -> Steps:
    task: Task = yield desk.calls.add(one_line(args.title), description=args.description)
    return _json(item(task))


def _complete(desk: ToolContext, args: OneTask) -> Steps:
    before = yield from completed_by_others(desk, args.task_id)
    result: SetStatusResult = yield desk.calls.complete(args.task_id)
    following = None if result.next_task is None else item(result.next_task)
    data = {"ok": True, "task": item(result.task), "nextTask": following, "remaining": result.remaining}
    note = gated(result.task) or (f"{before} before" if before else "")
    return _json(data | ({"note": note} if note else {}))


def _uncomplete(desk: ToolContext, args: OneTask) -> Steps:
    result: SetStatusResult = yield desk.calls.reopen(args.task_id)
    return _json({"ok": True, "task": item(result.task)})


def _delete(desk: ToolContext, args: DeleteTask) -> Steps:
    yield desk.calls.delete(args.task_id, confirm=args.confirm or None)
    return _json({"ok": True})


def _complete_all(desk: ToolContext, args: CompleteTasks) -> Steps:
    wanted = list(dict.fromkeys(args.task_ids))
    if not wanted:
        raise Problem("invalid_arguments", "taskIds must be a non-empty array of task ids.")
    tasks: TaskList = yield desk.calls.list()
    known = {task.id: task for task in tasks}
    errors = {one: _obstacle(known.get(one)) for one in wanted}
    waiting = [one for one in wanted if not errors[one]]
    completed: list[str] = []
    last: SetStatusResult | None = None
    while waiting:
        blocked: list[str] = []
        for one in waiting:
            try:
                done: SetStatusResult = yield desk.calls.complete(one)
                last = done
                if told := gated(done.task):
                    errors[one] = told
                else:
                    completed.append(one)
            except (Problem, RequestRefused) as error:
                errors[one] = _sentence(error if isinstance(error, Problem) else problem_of(error))
                if isinstance(error, Blocked) or (isinstance(error, IllegalTransition) and error.open_children):
                    blocked.append(one)  # others of them may be what it waits for
        waiting = blocked if len(blocked) < len(waiting) else []
    failed = [{"id": one, "error": errors[one]} for one in wanted if one not in completed]
    return _json(
        {
            "ok": not failed,
            "completed": completed,
            "failed": failed,
            "nextTask": (yield from _following(desk, last, tasks)),
            "remaining": tasks.remaining if last is None else last.remaining,
        },
        refused=bool(failed),
    )


def _obstacle(task: Task | None) -> str:
    if task is None:
        return NOT_FOUND
    return "Task already done" if task.status == "completed" else ""


def _following(
    desk: ToolContext, last: SetStatusResult | None, tasks: TaskList
) -> Generator[Call[Any], Any, dict[str, Any] | None]:
    """The task that comes next: what the last completion answered or, if nothing was completed, what the list says."""
    if last is not None:
        return item(last.next_task) if last.next_task else None
    explained: TaskExplainResult = yield desk.calls.explain()
    following = None if explained.next is None else explained.next.id
    return next((item(task) for task in tasks if task.id == following), None)


def _set(desk: ToolContext, args: SetTaskList) -> Steps:
    if not args.tasks:
        raise Problem("invalid_arguments", "tasks must be a non-empty array of task objects.")
    new = [NewTask(title=one_line(one.title), description=one.description) for one in args.tasks]
    _, _, kept = yield from replace(desk, new)
    tasks: TaskList = yield desk.calls.list()
    return _tasks(desk, tasks, note="; ".join(kept.values()))


def _clear(desk: ToolContext, args: ClearTasks) -> Steps:
    tasks: TaskList = yield desk.calls.list()
    if others := (yield from claims.of_others(desk, tasks)):
        raise claims.worked_on(others)
    yield desk.calls.clear(confirm=args.confirm or None, expect_version=tasks.version)
    return _json({"ok": True})


def _refuse(problem: Problem) -> Reply:
    if problem.kind == "no_conversation":
        return Reply(text=NO_CONVERSATION, refused=True)
    if problem.kind == "damaged":
        return Reply(text=CORRUPT, refused=True)
    if problem.kind == "not_found" and problem.data.get("what") == "task":
        by = problem.data.get("by")
        return _json({"ok": False, "error": NOT_FOUND, **({"note": by} if by else {})}, refused=True)
    if problem.kind in ("blocked", "illegal_transition", "lease_held", "lease_lost", "confirmation_required"):
        return _json({"ok": False, "error": _sentence(problem)}, refused=True)
    return Reply(text=f"Error: {problem.text}", refused=True)


def _sentence(problem: Problem) -> str:
    return problem.text[:1].upper() + problem.text[1:]


_GUIDE = """# Task list
Keep the conversation's task list current with these tools.
- For work of several steps call <{SetTaskList} once, or {AddTask} for each step,|{SetTaskList} once|{AddTask} \
for each step> before you begin.
- Call {CompleteTask} as soon as a task is done; its reply names the next one, so there is no need to list again.
- A task that turns out not to be done: {UncompleteTask}.[ One that is no longer needed: {DeleteTask}.]
- [Ask {ListTasks} what is there. ]Ids come from the replies; never invent one."""


def _with_readable_mirror(tool: Tool) -> Tool:
    """The tool, refused as long as the conversation's mirror file can't be read: what it proposes is not known."""

    def run(desk: ToolContext, args: Any) -> Steps:
        if is_corrupt(desk.conversation, data_dir(os.environ)):
            raise Problem("damaged", "the mirror file of this conversation can't be read: punch doctor names it")
        return (yield from tool.run(desk, args))

    return structs.replace(tool, run=run)


DIALECT = Dialect(
    name="checklist",
    summary="A plain list to tick off: ListTasks, AddTask, CompleteTask, UncompleteTask, DeleteTask, and three more.",
    guide=_GUIDE,
    refuse=_refuse,
    tells_list=False,
    tools=tuple(
        _with_readable_mirror(tool)
        for tool in (
            Tool("ListTasks", "List all tasks of this conversation.", Listing, _list, "reads"),
            Tool("AddTask", "Add a task to the list.", AddTask, _add, "adds"),
            Tool("CompleteTask", "Mark a task as done; the reply names the next one.", OneTask, _complete),
            Tool("UncompleteTask", "Mark a task as not done.", OneTask, _uncomplete),
            Tool("DeleteTask", "Delete a task.", DeleteTask, _delete, "destroys"),
            Tool("CompleteTasks", "Mark several tasks as done.", CompleteTasks, _complete_all),
            Tool("SetTaskList", "Replace the whole task list.", SetTaskList, _set, "destroys"),
            Tool("ClearTasks", "Remove all tasks.", ClearTasks, _clear, "destroys"),
        )
    ),
)
