"""`queue`: one task after the other; completing the current one starts the next."""

from collections.abc import Generator
from typing import Annotated, Any

from msgspec import Meta

from punchlist.base.metadata import visible_items
from punchlist.base.text import joined_text, one_line
from punchlist.calls.call import Call, itself
from punchlist.calls.cursor import TaskList
from punchlist.errors import Blocked, IllegalTransition, VersionConflict
from punchlist.tools import claims, creating, notes, paths
from punchlist.tools.budget import BUDGET, LONG_TEXT, MANY_IDS, compact, fitting, more, shorten
from punchlist.tools.current import current_tasks, inner, why_none
from punchlist.tools.history import ended
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
from punchlist.tools.phrases import departed, gated, is_open_heading, name_of, place, setback
from punchlist_schemas.results import ConversationResult, SetStatusResult, TaskResult
from punchlist_schemas.things import (
    FINISHED,
    PRIORITIES,
    Conversation,
    Description,
    LongText,
    Metadata,
    Priority,
    SettingsPatch,
    Status,
    Task,
)

_TITLE = 80
_IN_A_LIST = 4_000
_BESIDE = 400
"""How many characters of a description are shown of tasks that are told beside the queue."""
_SOME = 20
"""How many paused and how many failed tasks are told."""
_TRIES = 5
TaskId = Annotated[str, Meta(description="The task's ID")]


class AddTask(Arguments, frozen=True):
    """What add_task takes."""

    description: Annotated[
        str, Meta(description="What is to be done; the first line is its title"), limited(Description)
    ]
    priority: Priority = "normal"
    after: tuple[str, ...] = ()
    context: Metadata = {}
    parent: str = ""


class ListTasks(Listing, frozen=True):
    """What list_tasks takes. With `task_id` it shows this task, whose description begins at character `offset`."""

    task_id: Annotated[str, Hidden] = ""


class CompleteTask(Arguments, frozen=True):
    """What complete_task takes."""

    task_id: TaskId
    result_summary: Annotated[str, Meta(description="What came of it, in a sentence or two"), limited(LongText)]


class FailTask(Arguments, frozen=True):
    """What fail_task takes."""

    task_id: TaskId
    reason: Annotated[str, Meta(description="Why it can't be done"), limited(LongText)]


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
    first = one_line(text.splitlines()[0])
    title = first[:_TITLE].rstrip()
    return title, "" if title == text else text


def joint(task: Task) -> str:
    """The one text of a task: the opposite of `split`, for tasks from anywhere."""
    return joined_text(task.title, task.description, "\n")


def _json(data: dict[str, Any]) -> Reply:
    return Reply(text=compact(data), data=data)


def _row(context: ToolContext, task: Task, most: int = _IN_A_LIST, offset: int = 0, path: str = "") -> dict[str, Any]:
    rest = context.call_of("list_tasks", f"task_id={task.id}")
    row: dict[str, Any] = {"id": task.id, "description": shorten(joint(task), most, offset, rest)}
    row |= {"status": task.status}
    row |= {"path": path} if path else {}
    row |= {"heading": True} if is_open_heading(task) else {}
    row |= {"reason": told} if (told := setback(task)) else {}
    row |= {"priority": task.priority} if task.priority != "normal" else {}
    return row | ({"after": task.open_blockers[:MANY_IDS]} if task.open_blockers else {})


def _handed(context: ToolContext, task: Task, offset: int = 0) -> Generator[Call[Any], Any, dict[str, Any]]:
    notes.follow(context, task)
    row = _row(context, task, LONG_TEXT, offset)
    if len(compact(row)) > BUDGET // 2 + LONG_TEXT // 2:  # a text of characters that JSON escapes
        row = _row(context, task, _IN_A_LIST, offset)
    row |= notes.members(context, task)
    above = yield from paths.above(context, task)
    row |= {"parent": task.parent, "path": place(task, above)} if above else {}
    metadata = dict(visible_items(task.metadata))
    text = compact(metadata) if metadata else ""
    fits = 0 < len(text) <= min(LONG_TEXT, BUDGET - len(compact(row)) - _BESIDE)
    return row | ({"context": metadata} if fits else {})


def _place(task: Task) -> tuple[bool, int]:
    """Where a task stands in the order of execution; of equals the first in the list comes first."""
    return (task.status != "in_progress", -PRIORITIES.index(task.priority))


def _now(context: ToolContext, data: dict[str, Any], note: str = "", *, handed: bool = True) -> Steps:
    """A reply with the task that is to be worked on now, and where there is none, why."""
    info: Conversation = yield context.calls.info()
    current = yield from current_tasks(context, info)
    if handed:
        data["nextTask"] = (yield from _handed(context, current.own[0])) if current.own else None
    why = yield from why_none(context, info, current)
    said = [one for one in (note, why) if one]
    return _json(data | ({"note": " ".join(said)} if said else {}))


def _prepared(context: ToolContext) -> Generator[Call[Any], Any, Conversation]:
    """The list, serial if it is new or nobody has put a task on it yet: one that is worked on keeps its ways."""
    serial = SettingsPatch(execution="serial")
    if context.place not in context.memory.prepared:
        opened: ConversationResult = yield context.calls.open(settings=serial)
        info = opened.conversation
        counts = info.counts
        total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
        if info.settings.execution != "serial" and not total:
            try:
                yield context.calls.configure(settings=serial, expect_version=info.version)
            except VersionConflict:
                pass  # somebody else has begun with it meanwhile
        context.memory.prepared.add(context.place)
    return (yield context.calls.info())


def _add(context: ToolContext, args: AddTask) -> Steps:
    title, description = split(args.description)
    info: Conversation = yield from _prepared(context)
    counts, settings = info.counts, info.settings
    members: dict[str, Any] = {"description": description, "priority": args.priority, "metadata": args.context}
    members |= {"blocked_by": args.after, "parent": args.parent or None}
    # Nothing runs and one is paused: this is what it was interrupted for, so it comes before all that waits.
    interrupts = counts.paused > 0 and not counts.in_progress and settings.execution == "serial"
    if interrupts and not args.after and not (settings.on_failure == "stop" and counts.failed):
        members["status"] = "in_progress"
    try:
        result = yield from _created(context, args, title, members)
    except (IllegalTransition, Blocked):
        members.pop("status", None)  # something has started meanwhile
        result = yield from _created(context, args, title, members)
    data: dict[str, Any] = {"success": True, "taskId": result.task.id}
    if result.kept:
        note = creating.kept(context, result.task, {"priority": args.priority}, "prioritize_task")
        return _json(data | {"note": f"No task was added: {note}."})
    if counts.in_progress and settings.execution == "serial" and result.task.status != "in_progress":
        return _json(data)  # it waits behind the current one
    return (yield from _now(context, data))


def _created(
    context: ToolContext, args: AddTask, title: str, members: dict[str, Any]
) -> Generator[Call[Any], Any, TaskResult]:
    """Add a task, or keep one with the same whole text: its title is only the beginning."""
    result = yield from creating.add(context, title, **members)
    if result.kept and one_line(joint(result.task)) != one_line(args.description):
        call: Call[Any] = context.calls.add(title, **members)
        call.pick = itself
        result = yield call
    return result


def _list(context: ToolContext, args: ListTasks) -> Steps:
    if args.task_id:
        one: Task = yield context.calls.get(args.task_id)
        return _json({"tasks": [(yield from _handed(context, one, args.offset))]})
    info: Conversation = yield context.calls.info()
    current = yield from current_tasks(context, info)
    whose = {
        task.id: {"owner": ", ".join(one for one in (name_of(task.owner), departed(task)) if one)}
        for task in current.others
        if task.owner
    }
    own: dict[str, dict[str, Any]] = {}
    for task in current.own:
        own[task.id] = yield from _handed(context, task)
    tasks: TaskList = yield context.calls.list(status=("pending", "in_progress", "paused", "failed"))
    place_of = yield from paths.places(context, tasks)

    def row(task: Task) -> dict[str, Any]:
        return own[task.id] if task.id in own else _row(context, task, path=place_of(task)) | whose.get(task.id, {})

    queue = [task for task in tasks if task.status in ("pending", "in_progress")]
    queue.sort(key=lambda task: (task.id not in own, _place(task)))
    data: dict[str, Any] = {}
    for status in ("paused", "failed"):
        found = [task for task in tasks if task.status == status]
        if found:
            data[status] = [_beside(task) for task in found[-_SOME:]]
        if len(found) > _SOME:
            data["note"] = f"{len(found)} have {status}; the last {_SOME} are shown."
    shown, left_out = fitting(queue[args.offset :], row, BUDGET - len(compact(data)))
    if left_out:
        data |= {"omitted": left_out, "hint": more(left_out, args.offset + len(shown), context.tool("list_tasks"))}
    if why := (yield from why_none(context, info, current)):
        data["note"] = why
    return _json({"tasks": shown, **data})


def _beside(task: Task) -> dict[str, Any]:
    row: dict[str, Any] = {"id": task.id, "description": shorten(joint(task), _BESIDE)}
    row |= {"waits_for": task.waits_for} if task.waits_for else {}
    return row | ({"reason": shorten(task.fail_reason, _BESIDE)} if task.fail_reason else {})


def _finish(
    context: ToolContext, task_id: str, status: Status, text: str
) -> Generator[Call[Any], Any, SetStatusResult]:
    """Complete or fail a task that isn't finished yet. Never overwrite an existing result.

    Raises:
        Problem: It was completed, or has failed, with another text.
    """
    texts: dict[str, Any] = {"result_summary" if status == "completed" else "fail_reason": text}
    for _ in range(_TRIES):
        running: TaskList = yield context.calls.list(status="in_progress", limit=1)
        task: Task = yield context.calls.get(task_id)
        said = task.result_summary if status == "completed" else task.fail_reason
        if task.status == status and said and said != text:
            by = yield from ended(context, task.id)
            who = f" ({by})" if by else ""
            raise Problem(
                "illegal_transition",
                f"task {task.id} is {status} already{who}, and what was said then stays: {shorten(said, _BESIDE)}",
            )
        try:
            return (yield context.calls.set_status(task.id, status, **texts, expect_version=running.version))
        except VersionConflict:
            continue  # the list has changed between looking and writing
    return (yield context.calls.set_status(task_id, status, **texts))


def _complete(context: ToolContext, args: CompleteTask) -> Steps:
    listed: TaskList = yield context.calls.list(status="in_progress")
    running = inner(listed)
    result: SetStatusResult = yield from _finish(context, args.task_id, "completed", args.result_summary)
    done, note = result.task, ""
    if running and running[0].id != done.id:
        note = f"Task {running[0].id}, not {done.id}, is the current one; it is still in progress."
    told = gated(done)
    data = {"success": True, "message": f"Task {done.id}: {told}." if told else f"Task {done.id} marked complete."}
    return (yield from _now(context, data, note))


def _fail(context: ToolContext, args: FailTask) -> Steps:
    result: SetStatusResult = yield from _finish(context, args.task_id, "failed", args.reason)
    task = result.task
    again = "" if task.status == "failed" else f"Task {task.id} failed and is tried again: it is {task.status}."
    return (yield from _now(context, {"success": True, "message": again or f"Task {task.id} marked failed."}))


def _pause(context: ToolContext, args: OneTask) -> Steps:
    result: SetStatusResult = yield context.calls.pause(args.task_id)
    return (yield from _now(context, {"success": True, "message": f"Task {result.task.id} paused."}, handed=False))


def _resume(context: ToolContext, args: OneTask) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    if task.status in FINISHED:
        why = shorten(task.result_summary or task.fail_reason, _BESIDE)
        what = f"task {task.id} {'is completed' if task.status == 'completed' else 'has failed'}"
        again = context.call_of("add_task", "what is to be done again; ")
        advice = f"{again}{context.tool('resume_task')} takes up paused tasks"
        raise Problem("illegal_transition", f"{what}{f' ({why})' if why else ''}: {advice}")
    running: TaskList = yield context.calls.list(status="in_progress", limit=1)
    info: Conversation = yield context.calls.info()
    if running and running[0].id != task.id and info.settings.execution == "serial":
        # One at a time: it waits for its turn, and the current one goes on.
        yield context.calls.reopen(task.id)
        message = f"Task {task.id} {'resumed' if task.status == 'paused' else 'waits already'}."
        note = f"Its turn comes after task {running[0].id}, which is current."
        return _json({"success": True, "message": message, "note": note})
    if context.is_nameless:
        yield context.calls.resume(task.id)
    else:
        yield from claims.begin(context, task.id)
    resumed: Task = yield context.calls.get(task.id)
    following = yield from _handed(context, resumed)
    return _json({"success": True, "message": f"Task {task.id} resumed.", "nextTask": following})


def _prioritize(context: ToolContext, args: PrioritizeTask) -> Steps:
    task: Task = yield context.calls.edit(args.task_id, priority=args.priority)
    return _json({"success": True, "message": f"Task {task.id} priority set to {args.priority}."})


def _delete(context: ToolContext, args: DeleteTask) -> Steps:
    (deleted,) = yield context.calls.delete(args.task_id, confirm=args.confirm or None)
    return (yield from _now(context, {"success": True, "message": f"Task {deleted} deleted."}))


_MISSING = {"description is required": "Task description is required.", "task_id is required": "Task ID is required."}
"""What agents that know these tools expect to be told instead."""


def _refuse(problem: Problem) -> Reply:
    data = {"success": False, "error": _MISSING.get(problem.text, problem.text)}
    return Reply(text=compact(data), data=data, refused=True)


_GUIDE = """# Task queue
You work through a queue, one task at a time. What is in progress is yours to do; replies hand it out as nextTask. A \
task with an owner is another session's, and one that waits for a yes is the user's: leave both.
- {add_task} each step of a request that takes several, and what is to be done later.
- A new instruction that arrives while a task is in progress: {add_task} it, tell the user so, and go on with the \
current one.[ If the \
user wants it at once: {pause_task} the current one, {add_task} the new one, then {resume_task} the paused one: it \
goes on after the new one.]
- When the current task is done you must signal it with {complete_task} and a result_summary. Only this starts the \
next one; saying so in text does nothing.
- [If it can't be done: {fail_task} with the reason. ]Do not begin a task that is not the current one.
- {list_tasks} tells what is current, what waits, is paused or has failed."""

DIALECT = Dialect(
    name="queue",
    summary="A strictly serial queue: add_task, list_tasks, complete_task and related tools.",
    guide=_GUIDE,
    refuse=_refuse,
    tools=(
        Tool(
            "add_task",
            "Add a task to the end of the queue; it starts by itself in its turn. For requests of several steps and"
            " for what is to be done later.",
            AddTask,
            _add,
            "adds",
        ),
        Tool("list_tasks", "List the current task, which is then yours, and those waiting.", ListTasks, _list),
        Tool("complete_task", "Complete a task of the queue; the next one starts.", CompleteTask, _complete),
        Tool("fail_task", "Give a task of the queue up as failed.", FailTask, _fail),
        Tool("pause_task", "Put a task of the queue aside until it is resumed.", OneTask, _pause),
        Tool("resume_task", "Take a paused task up again.", OneTask, _resume),
        Tool("prioritize_task", "Change a task's priority in the queue.", PrioritizeTask, _prioritize),
        Tool("delete_task", "Delete a task from the queue.", DeleteTask, _delete, "destroys"),
    ),
)
