"""`checklist`: a plain list of things to tick off, with JSON replies."""

import os
from collections.abc import Generator, Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from punchlist.base.text import one_line
from punchlist.base.tree import find_open_parents
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import RequestRefused
from punchlist.taskfiles.report import is_corrupt
from punchlist.tools import claims, creating, notes, paths
from punchlist.tools.budget import LONG_TEXT, compact, fitting, more, shorten
from punchlist.tools.history import completed_by_others
from punchlist.tools.model import (
    Arguments,
    Confirm,
    Dialect,
    Hidden,
    Listing,
    Problem,
    Reply,
    Steps,
    Tool,
    ToolContext,
    limited,
)
from punchlist.tools.phrases import gated, is_open_heading, place, setback
from punchlist.tools.refusals import problem_of
from punchlist.tools.replacing import replace
from punchlist_schemas.params import NewTask
from punchlist_schemas.rendezvous import data_dir
from punchlist_schemas.results import ApplyResult, SetStatusResult, TaskExplainResult
from punchlist_schemas.things import FINISHED, Description, Task, Title

NO_CONVERSATION = "Error: Task list is not available (no conversation context)."
CORRUPT = "Error: Task file is corrupt or invalid."
NOT_FOUND = "Task not found"
_IN_A_LIST = 2_000
"""How many characters of a description are shown in a list."""

TaskId = Annotated[str, Meta(description="The task's id")]


class AddTask(Arguments, frozen=True):
    """What AddTask takes."""

    title: Annotated[str, Meta(description="Short title of the task"), limited(Title)]
    description: Annotated[str, limited(Description)] = ""


class OneTask(Arguments, frozen=True, rename="camel"):
    """What the tools for one task take."""

    task_id: TaskId


class ListTasks(Listing, frozen=True, rename="camel"):
    """What ListTasks takes. With `task_id` it shows this task, whose description begins at character `offset`."""

    task_id: Annotated[str, Hidden] = ""


class DeleteTask(OneTask, frozen=True, rename="camel"):
    """What DeleteTask takes."""

    confirm: Confirm = ""


class CompleteTasks(Arguments, frozen=True, rename="camel"):
    """What CompleteTasks takes."""

    task_ids: Annotated[tuple[str, ...], Meta(description="The ids of the tasks")]


class Item(Struct, frozen=True):
    """One task of SetTaskList."""

    title: Annotated[str, limited(Title)]
    description: Annotated[str, limited(Description)] = ""


class SetTaskList(Arguments, frozen=True):
    """What SetTaskList takes."""

    tasks: Annotated[tuple[Item, ...], Meta(description="The whole new list")]


class ClearTasks(Arguments, frozen=True):
    """What ClearTasks takes."""

    confirm: Confirm = ""


def item(context: ToolContext, task: Task, most: int = _IN_A_LIST, offset: int = 0, path: str = "") -> dict[str, Any]:
    """Return a task in this dialect's form; `path` is its title preceded by its parents' titles."""
    description = shorten(task.description, most, offset, context.call_of("ListTasks", f"taskId={task.id}"))
    row = {"id": task.id, "title": task.title, "description": description, "done": task.status == "completed"}
    row |= {"path": path} if path else {}
    row |= {"heading": True} if is_open_heading(task) else {}
    row |= {"reason": told} if (told := setback(task)) else {}
    return row | ({"waitsFor": task.waits_for} if task.waits_for else {})


def _noted(context: ToolContext, task: Task, path: str) -> dict[str, Any]:
    return item(context, task, path=path) | ({} if task.status in FINISHED else notes.members(context, task))


def _next(context: ToolContext, done: SetStatusResult) -> dict[str, Any] | None:
    task = done.next_task
    if task is None:
        return None
    return _noted(context, task, place(task, [one.title for one in done.next_path]))


def _json(data: dict[str, Any], *, refused: bool = False) -> Reply:
    return Reply(text=compact(data), data=data, refused=refused)


def _tasks(context: ToolContext, tasks: TaskList, offset: int = 0, note: str = "") -> Steps:
    place_of = yield from paths.places(context, tasks)
    shown, left_out = fitting(tasks, lambda task: _noted(context, task, place_of(task)))
    data: dict[str, Any] = {"tasks": shown} | ({"note": shorten(note, _IN_A_LIST)} if note else {})
    if left_out:
        data |= {"omitted": left_out, "hint": more(left_out, offset + len(shown), context.tool("ListTasks"))}
    return _json(data)


def _list(context: ToolContext, args: ListTasks) -> Steps:
    if args.task_id:
        one: Task = yield context.calls.get(args.task_id)
        above = yield from paths.above(context, one)
        return _json({"tasks": [item(context, one, LONG_TEXT, args.offset, place(one, above))]})
    tasks: TaskList = yield context.calls.list(offset=args.offset)
    return (yield from _tasks(context, tasks, args.offset))


def _add(context: ToolContext, args: AddTask) -> Steps:
    result = yield from creating.add(context, one_line(args.title), description=args.description)
    note = {"note": creating.kept(context, result.task, {"description": args.description})} if result.kept else {}
    return _json(item(context, result.task) | note)


def _complete(context: ToolContext, args: OneTask) -> Steps:
    before = yield from completed_by_others(context, args.task_id)
    result: SetStatusResult = yield context.calls.complete(args.task_id)
    following = _next(context, result)
    data = {"ok": True, "task": item(context, result.task), "nextTask": following, "remaining": result.remaining}
    note = gated(result.task) or (f"{before} before" if before else "")
    return _json(data | ({"note": note} if note else {}))


def _uncomplete(context: ToolContext, args: OneTask) -> Steps:
    result: SetStatusResult = yield context.calls.reopen(args.task_id)
    return _json({"ok": True, "task": item(context, result.task)})


def _delete(context: ToolContext, args: DeleteTask) -> Steps:
    yield context.calls.delete(args.task_id, confirm=args.confirm or None)
    return _json({"ok": True})


def _complete_all(context: ToolContext, args: CompleteTasks) -> Steps:
    wanted = list(dict.fromkeys(args.task_ids))
    if not wanted:
        raise Problem("invalid_arguments", "taskIds must be a non-empty array of task ids.")
    tasks: TaskList = yield context.calls.list()
    known = {task.id: task for task in tasks}
    errors = {one: why for one in wanted if (why := _obstacle(known.get(one)))}
    others = yield from claims.of_others(context, tasks)
    is_free = {one for one in wanted if not (one in errors or one in others or known[one].waits_for)}
    together = _free_first(known, [one for one in wanted if one in is_free])
    for one in wanted:
        if one not in errors and one not in together:  # refused with the reason, unless it has become free
            errors |= yield from _complete_one(context, one)
    while together:
        try:
            done: ApplyResult = yield context.calls.apply([context.calls.complete(one) for one in together])
        except (Problem, RequestRefused) as error:
            refused = error.data.get("change", 0)
            errors |= yield from _complete_one(context, together.pop(refused))
            continue
        errors |= {task.id: told for task in done.tasks if task.id in together and (told := gated(task))}
        break
    failed = [{"id": one, "error": errors[one]} for one in wanted if errors.get(one)]
    explained: TaskExplainResult = yield context.calls.explain(owner=context.actor)
    rest: TaskList = yield context.calls.list(limit=1)
    following = None if explained.next is None else known.get(explained.next.id)
    place_of = yield from paths.places(context, tasks)
    return _json(
        {
            "ok": not failed,
            "completed": [one for one in wanted if not errors.get(one)],
            "failed": failed,
            "nextTask": _noted(context, following, place_of(following)) if following else None,
            "remaining": rest.remaining,
        },
        refused=bool(failed),
    )


def _complete_one(context: ToolContext, task: str) -> Generator[Call[Any], Any, dict[str, str]]:
    """Complete one task; return the reason by its id if that is refused or has to pass a gate."""
    try:
        done: SetStatusResult = yield context.calls.complete(task)
    except (Problem, RequestRefused) as error:
        return {task: _sentence(error if isinstance(error, Problem) else problem_of(error))}
    return {task: gated(done.task)}


def _free_first(known: Mapping[str, Task], ids: Iterable[str]) -> list[str]:
    """Return the tasks that can be completed together, each after its children and blockers."""
    first = {one: set(known[one].open_blockers) for one in ids}
    for task in known.values():
        if task.parent in first and find_open_parents([task]):
            first[task.parent].add(task.id)
    ordered: dict[str, None] = {}
    left = list(first)
    while left:
        free = [one for one in left if ordered.keys() >= first[one]]
        if not free:
            break
        ordered |= dict.fromkeys(free)
        left = [one for one in left if one not in ordered]
    return list(ordered)


def _obstacle(task: Task | None) -> str:
    if task is None:
        return NOT_FOUND
    return "Task already done" if task.status == "completed" else ""


def _set(context: ToolContext, args: SetTaskList) -> Steps:
    if not args.tasks:
        raise Problem("invalid_arguments", "tasks must be a non-empty array of task objects.")
    new = [NewTask(title=one_line(one.title), description=one.description) for one in args.tasks]
    _, _, kept = yield from replace(context, new)
    tasks: TaskList = yield context.calls.list()
    return (yield from _tasks(context, tasks, note="; ".join(kept.values())))


def _clear(context: ToolContext, args: ClearTasks) -> Steps:
    tasks: TaskList = yield context.calls.list()
    if others := (yield from claims.of_others(context, tasks)):
        raise claims.worked_on(others)
    yield context.calls.clear(confirm=args.confirm or None, expect_version=tasks.version)
    return _json({"ok": True})


def _refuse(problem: Problem) -> Reply:
    if problem.kind == "no_conversation":
        return Reply(text=NO_CONVERSATION, refused=True)
    if problem.kind == "damaged":
        return Reply(text=CORRUPT, refused=True)
    if problem.kind == "not_found" and problem.data.get("what") == "task":
        by = problem.data.get("by")
        return _json({"ok": False, "error": NOT_FOUND, **({"note": by} if by else {})}, refused=True)
    if problem.kind in (
        "blocked",
        "illegal_transition",
        "lease_held",
        "lease_lost",
        "confirmation_required",
        "forbidden",
    ):
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

    def run(context: ToolContext, args: Any) -> Steps:
        if is_corrupt(context.conversation, data_dir(os.environ)):
            raise Problem("damaged", "the mirror file of this conversation can't be read: punch doctor names it")
        return (yield from tool.run(context, args))

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
            Tool("ListTasks", "List all tasks of this conversation.", ListTasks, _list, "reads"),
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
