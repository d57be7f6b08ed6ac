"""`checklist`: a simple list to tick off, with JSON replies."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from punchlist.base.text import one_line
from punchlist.base.tree import find_open_parents
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import Blocked, IllegalTransition, LeaseHeld, NotFound, RequestRefused
from punchlist.taskfiles.report import is_corrupt
from punchlist.tools import claims, creating, notes, paths, turns
from punchlist.tools.budget import MAX_TEXT, announce_omitted, fit, shorten, to_json
from punchlist.tools.history import describe_completion_by_others
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
    advertise_limit,
)
from punchlist.tools.phrases import capitalize, describe_gate, describe_setback, format_path, is_open_heading
from punchlist.tools.refusals import to_problem
from punchlist.tools.replacing import replace
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import ApplyResult, SetStatusResult, TaskExplainResult
from punchlist_schemas.things import FINISHED, Description, Task, Title

NO_CONVERSATION = "Error: Task list is not available (no conversation context)."
CORRUPT = "Error: Task file is corrupt or invalid."
NOT_FOUND = "Task not found"
_MAX_DESCRIPTION = 2_000
"""Maximum length of a description in a list, in characters."""

TaskId = Annotated[str, Meta(description="The task's id")]


class AddTask(Arguments, frozen=True):
    """Arguments of AddTask."""

    title: Annotated[str, Meta(description="Short title of the task"), advertise_limit(Title)]
    description: Annotated[str, advertise_limit(Description)] = ""


class OneTask(Arguments, frozen=True, rename="camel"):
    """Arguments of tools for one task."""

    task_id: TaskId


class ListTasks(Listing, frozen=True, rename="camel"):
    """Arguments of ListTasks. `task_id` shows one task, with its description from `offset` on."""

    task_id: Annotated[str, Hidden] = ""


class DeleteTask(OneTask, frozen=True, rename="camel"):
    """Arguments of DeleteTask."""

    confirm: Confirm = ""


class CompleteTasks(Arguments, frozen=True, rename="camel"):
    """Arguments of CompleteTasks."""

    task_ids: Annotated[tuple[str, ...], Meta(description="The ids of the tasks")]


class Item(Struct, frozen=True):
    """One task of SetTaskList."""

    title: Annotated[str, advertise_limit(Title)]
    description: Annotated[str, advertise_limit(Description)] = ""


class SetTaskList(Arguments, frozen=True):
    """Arguments of SetTaskList."""

    tasks: Annotated[tuple[Item, ...], Meta(description="The whole new list")]


class ClearTasks(Arguments, frozen=True):
    """Arguments of ClearTasks."""

    confirm: Confirm = ""


def build_item(
    context: ToolContext, task: Task, max_length: int = _MAX_DESCRIPTION, offset: int = 0, path: str = ""
) -> dict[str, Any]:
    """Return a task in this dialect's form. `path` is its title, preceded by those of its parents."""
    call = context.format_call("ListTasks", f"taskId={task.id}")
    description = shorten(task.description, max_length, offset, call)
    row = {"id": task.id, "title": task.title, "description": description, "done": task.status == "completed"}
    row |= {"path": path} if path else {}
    row |= {"heading": True} if is_open_heading(task) else {}
    row |= {"reason": setback} if (setback := describe_setback(task)) else {}
    return row | ({"waitsFor": task.waits_for} if task.waits_for else {})


def _build_item_with_notes(context: ToolContext, task: Task, path: str) -> dict[str, Any]:
    return build_item(context, task, path=path) | (
        {} if task.status in FINISHED else notes.read_as_members(context, task)
    )


def _build_next(context: ToolContext, done: SetStatusResult) -> dict[str, Any] | None:
    task = done.next_task
    if task is None:
        return None
    return _build_item_with_notes(context, task, format_path(task, [parent.title for parent in done.next_path]))


def _to_reply(data: dict[str, Any], *, refused: bool = False) -> Reply:
    return Reply(text=to_json(data), data=data, refused=refused)


def _build_list(context: ToolContext, tasks: TaskList, offset: int = 0, note: str = "") -> Steps:
    path_of = yield from paths.load_paths(context, tasks)
    shown, left_out = fit(tasks, lambda task: _build_item_with_notes(context, task, path_of(task)))
    data: dict[str, Any] = {"tasks": shown} | ({"note": shorten(note, _MAX_DESCRIPTION)} if note else {})
    if left_out:
        data |= {
            "omitted": left_out,
            "hint": announce_omitted(left_out, offset + len(shown), context.tool_name("ListTasks")),
        }
    return _to_reply(data)


def _list(context: ToolContext, args: ListTasks) -> Steps:
    if args.task_id:
        task, parents = yield from paths.get_with_parents(context, args.task_id)
        return _to_reply({"tasks": [build_item(context, task, MAX_TEXT, args.offset, format_path(task, parents))]})
    tasks: TaskList = yield context.calls.list(offset=args.offset)
    return (yield from _build_list(context, tasks, args.offset))


def _add(context: ToolContext, args: AddTask) -> Steps:
    result = yield from creating.add(context, one_line(args.title), description=args.description)
    note = (
        {"note": creating.describe_kept(context, result.task, {"description": args.description})} if result.kept else {}
    )
    return _to_reply(build_item(context, result.task) | note)


def _complete(context: ToolContext, args: OneTask) -> Steps:
    before = yield from describe_completion_by_others(context, args.task_id)
    result: SetStatusResult = yield context.calls.complete(args.task_id)
    next_task = _build_next(context, result)
    data = {"ok": True, "task": build_item(context, result.task), "nextTask": next_task, "remaining": result.remaining}
    note = describe_gate(result.task) or (f"{before} before" if before else "")
    return _to_reply(data | ({"note": note} if note else {}))


def _uncomplete(context: ToolContext, args: OneTask) -> Steps:
    result: SetStatusResult = yield context.calls.reopen(args.task_id)
    return _to_reply({"ok": True, "task": build_item(context, result.task)})


def _delete(context: ToolContext, args: DeleteTask) -> Steps:
    yield context.calls.delete(args.task_id, confirm=args.confirm or None)
    return _to_reply({"ok": True})


def _complete_all(context: ToolContext, args: CompleteTasks) -> Steps:
    ids = list(dict.fromkeys(args.task_ids))
    if not ids:
        raise Problem("invalid_arguments", "taskIds must be a non-empty array of task ids.")
    errors = yield from _complete_free(context, ids)
    if errors is None:
        errors = yield from _complete_each(context, ids)
    failed = [{"id": id, "error": errors[id]} for id in ids if errors.get(id)]
    page: TaskList = yield context.calls.list(limit=1)
    return _to_reply(
        {
            "ok": not failed,
            "completed": [id for id in ids if not errors.get(id)],
            "failed": failed,
            "nextTask": (yield from _find_next(context)),
            "remaining": page.remaining,
        },
        refused=bool(failed),
    )


def _find_next(context: ToolContext) -> Generator[Call[Any], Any, dict[str, Any] | None]:
    """Return the task that the agent gets next."""
    turn = context.view.turn
    if turn is not None and turn.reasons is not None:
        task = turn.next
    else:
        explained: TaskExplainResult = yield context.calls.explain(owner=context.actor)
        task = None if explained.next is None else (yield context.calls.get(explained.next.id))
    if task is None:
        return None
    parents = yield from paths.get_parent_titles(context, task)
    return _build_item_with_notes(context, task, format_path(task, parents))


def _complete_free(context: ToolContext, ids: Sequence[str]) -> Generator[Call[Any], Any, dict[str, str] | None]:
    """Complete tasks in one call, in this order. Return None if one of them can't be completed."""
    if not context.view.has_turns:
        return None
    call = context.calls.apply([context.calls.complete(id) for id in ids])
    try:
        done: ApplyResult = yield turns.require(context, call, free=True)
    except _REJECTED:
        return None
    named = set(ids)
    return {task.id: gate for task in done.tasks if task.id in named and (gate := describe_gate(task))}


_REJECTED = (Blocked, IllegalTransition, LeaseHeld, NotFound)
"""Errors of a task that can't be completed, or not before another task."""


def _complete_each(context: ToolContext, ids: Sequence[str]) -> Generator[Call[Any], Any, dict[str, str]]:
    """Complete as many of these tasks as possible. Return, by id, why a task isn't completed; "" if it is completed."""
    tasks: TaskList = yield context.calls.list()
    by_id = {task.id: task for task in tasks}
    errors = {id: obstacle for id in ids if (obstacle := _find_obstacle(by_id.get(id)))}
    others = yield from claims.find_others_tasks(context, tasks)
    free = [id for id in ids if not (id in errors or id in others or by_id[id].waits_for)]
    batch = _order_completions(by_id, free)
    for id in ids:
        # The daemon rejects these tasks with the reason, unless they have become free since.
        if id not in errors and id not in batch:
            errors |= yield from _complete_one(context, id)
    while batch:
        try:
            done: ApplyResult = yield context.calls.apply([context.calls.complete(id) for id in batch])
        except (Problem, RequestRefused) as error:
            # Complete the rejected task in a separate call, and the others without it.
            rejected = error.data.get("change", 0)
            errors |= yield from _complete_one(context, batch.pop(rejected))
            continue
        errors |= {task.id: gate for task in done.tasks if task.id in batch and (gate := describe_gate(task))}
        break
    return errors


def _complete_one(context: ToolContext, task: str) -> Generator[Call[Any], Any, dict[str, str]]:
    """Complete one task. Return, by id, why a task isn't completed: the error, or its gate; "" if it is completed."""
    try:
        done: SetStatusResult = yield context.calls.complete(task)
    except (Problem, RequestRefused) as error:
        return {task: capitalize((error if isinstance(error, Problem) else to_problem(error)).text)}
    return {task: describe_gate(done.task)}


def _order_completions(tasks: Mapping[str, Task], ids: Iterable[str]) -> list[str]:
    """Return the tasks that can be completed in one call: in this order, but each after its children and blockers."""
    required = {id: set(tasks[id].open_blockers) for id in ids}
    for task in tasks.values():
        if task.parent in required and find_open_parents([task]):
            required[task.parent].add(task.id)
    ordered: dict[str, None] = {}
    rest = list(required)
    while (id := next((id for id in rest if ordered.keys() >= required[id]), None)) is not None:
        ordered[id] = None
        rest.remove(id)
    return list(ordered)


def _find_obstacle(task: Task | None) -> str:
    if task is None:
        return NOT_FOUND
    return "Task already done" if task.status == "completed" else ""


def _set(context: ToolContext, args: SetTaskList) -> Steps:
    if not args.tasks:
        raise Problem("invalid_arguments", "tasks must be a non-empty array of task objects.")
    new = [NewTask(title=one_line(item.title), description=item.description) for item in args.tasks]
    _, _, kept = yield from replace(context, new, has_statuses=False)
    tasks: TaskList = yield context.calls.list()
    return (yield from _build_list(context, tasks, note="; ".join(kept.values())))


def _clear(context: ToolContext, args: ClearTasks) -> Steps:
    tasks: TaskList = yield context.calls.list()
    if others := (yield from claims.find_others_tasks(context, tasks)):
        raise claims.reject_drop(others)
    yield context.calls.clear(confirm=args.confirm or None, expect_version=tasks.version)
    return _to_reply({"ok": True})


def _refuse(problem: Problem) -> Reply:
    if problem.kind == "no_conversation":
        return Reply(text=NO_CONVERSATION, refused=True)
    if problem.kind == "damaged":
        return Reply(text=CORRUPT, refused=True)
    if problem.kind == "not_found" and problem.data.get("what") == "task":
        by = problem.data.get("by")
        return _to_reply({"ok": False, "error": NOT_FOUND, **({"note": by} if by else {})}, refused=True)
    if problem.kind in (
        "blocked",
        "illegal_transition",
        "lease_held",
        "lease_lost",
        "confirmation_required",
        "forbidden",
    ):
        return _to_reply({"ok": False, "error": capitalize(problem.text)}, refused=True)
    return Reply(text=f"Error: {problem.text}", refused=True)


_GUIDE = """# Task list
Keep the conversation's task list current with these tools.
- For work of several steps call <{SetTaskList} once, or {AddTask} for each step,|{SetTaskList} once|{AddTask} \
for each step> before you begin.
- Call {CompleteTask} as soon as a task is done; its reply names the next one, so there is no need to list again.
- A task that turns out not to be done: {UncompleteTask}.[ One that is no longer needed: {DeleteTask}.]
- [Ask {ListTasks} what is there. ]Ids come from the replies; never invent one."""


def _require_readable_mirror(tool: Tool) -> Tool:
    """Make a tool fail while the list's mirror file can't be read, because changes in the file are unknown."""

    def run(context: ToolContext, args: Any) -> Steps:
        if is_corrupt(context.conversation, context.data_dir):
            raise Problem("damaged", "the mirror file of this conversation can't be read: punch doctor names it")
        return (yield from tool.run(context, args))

    return structs.replace(tool, run=run)


DIALECT = Dialect(
    name="checklist",
    summary="A plain list to tick off: ListTasks, AddTask, CompleteTask, UncompleteTask, DeleteTask, and three more.",
    guide=_GUIDE,
    refuse=_refuse,
    names_list=False,
    tools=tuple(
        _require_readable_mirror(tool)
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
