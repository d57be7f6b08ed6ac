"""`queue`: a serial queue. Completing the current task starts the next one."""

from collections.abc import Generator
from typing import Annotated, Any

from msgspec import Meta

from punchlist.base.metadata import visible_items
from punchlist.base.text import joined_text, one_line
from punchlist.calls.call import Call, itself
from punchlist.calls.cursor import TaskList
from punchlist.errors import Blocked, IllegalTransition, VersionConflict
from punchlist.tools import claims, creating, notes, paths
from punchlist.tools.budget import BUDGET, MAX_IDS, MAX_TEXT, announce_omitted, fit, shorten, to_json
from punchlist.tools.current import drop_parents, explain_no_task, find_current
from punchlist.tools.history import describe_end
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
from punchlist.tools.phrases import (
    describe_departure,
    describe_gate,
    describe_setback,
    format_actor,
    format_path,
    is_open_heading,
)
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

_MAX_TITLE = 80
_MAX_DESCRIPTION = 4_000
_MAX_BRIEF = 400
"""Maximum length of secondary texts, in characters: descriptions of paused and failed tasks, reasons, earlier results.
"""
_MAX_ROWS = 20
"""Maximum number of paused tasks, and of failed tasks, in a reply."""
_TRIES = 5
TaskId = Annotated[str, Meta(description="The task's ID")]


class AddTask(Arguments, frozen=True):
    """Arguments of add_task."""

    description: Annotated[
        str, Meta(description="What is to be done; the first line is its title"), advertise_limit(Description)
    ]
    priority: Priority = "normal"
    after: tuple[str, ...] = ()
    context: Metadata = {}
    parent: str = ""


class ListTasks(Listing, frozen=True):
    """Arguments of list_tasks. `task_id` shows one task, with its description from `offset` on."""

    task_id: Annotated[str, Hidden] = ""


class CompleteTask(Arguments, frozen=True):
    """Arguments of complete_task."""

    task_id: TaskId
    result_summary: Annotated[str, Meta(description="What came of it, in a sentence or two"), advertise_limit(LongText)]


class FailTask(Arguments, frozen=True):
    """Arguments of fail_task."""

    task_id: TaskId
    reason: Annotated[str, Meta(description="Why it can't be done"), advertise_limit(LongText)]


class OneTask(Arguments, frozen=True):
    """Arguments of pause_task and resume_task."""

    task_id: TaskId


class PrioritizeTask(Arguments, frozen=True):
    """Arguments of prioritize_task."""

    task_id: TaskId
    priority: Priority = "urgent"


class DeleteTask(OneTask, frozen=True):
    """Arguments of delete_task."""

    confirm: Confirm = ""


def split(description: str) -> tuple[str, str]:
    """Split a task's text into its title (the first line, at most 80 characters) and its description.

    The description is empty if the title contains the whole text.
    """
    text = description.strip()
    first = one_line(text.splitlines()[0])
    title = first[:_MAX_TITLE].rstrip()
    return title, "" if title == text else text


def join_text(task: Task) -> str:
    """Return title and description as one text: the inverse of `split`. Works for tasks of other dialects too."""
    return joined_text(task.title, task.description, "\n")


def _to_reply(data: dict[str, Any]) -> Reply:
    return Reply(text=to_json(data), data=data)


def _build_row(
    context: ToolContext, task: Task, max_length: int = _MAX_DESCRIPTION, offset: int = 0, path: str = ""
) -> dict[str, Any]:
    call = context.format_call("list_tasks", f"task_id={task.id}")
    row: dict[str, Any] = {"id": task.id, "description": shorten(join_text(task), max_length, offset, call)}
    row |= {"status": task.status}
    row |= {"path": path} if path else {}
    row |= {"heading": True} if is_open_heading(task) else {}
    row |= {"reason": setback} if (setback := describe_setback(task)) else {}
    row |= {"priority": task.priority} if task.priority != "normal" else {}
    return row | ({"after": task.open_blockers[:MAX_IDS]} if task.open_blockers else {})


def _hand_out(context: ToolContext, task: Task, offset: int = 0) -> Generator[Call[Any], Any, dict[str, Any]]:
    """Return the full row of a task that the agent works on, and report new notes on it from now on."""
    notes.follow(context, task)
    row = _build_row(context, task, MAX_TEXT, offset)
    # JSON escapes can make text several times longer.
    if len(to_json(row)) > BUDGET // 2 + MAX_TEXT // 2:
        row = _build_row(context, task, _MAX_DESCRIPTION, offset)
    row |= notes.read_as_members(context, task)
    parents = yield from paths.get_parent_titles(context, task)
    row |= {"parent": task.parent, "path": format_path(task, parents)} if parents else {}
    metadata = dict(visible_items(task.metadata))
    text = to_json(metadata) if metadata else ""
    fits = 0 < len(text) <= min(MAX_TEXT, BUDGET - len(to_json(row)) - _MAX_BRIEF)
    return row | ({"context": metadata} if fits else {})


def _get_queue_order(task: Task) -> tuple[bool, int]:
    """Return the sort key of a task: in progress first, then by priority. Tasks with equal keys keep list order."""
    return (task.status != "in_progress", -PRIORITIES.index(task.priority))


def _reply_with_current(context: ToolContext, data: dict[str, Any], note: str = "", *, has_task: bool = True) -> Steps:
    """Return a reply with the agent's current task, or with the reason why it has none.

    Args:
        has_task: Whether to include the task.
    """
    info: Conversation = yield context.calls.info()
    current = yield from find_current(context, info)
    if has_task:
        data["nextTask"] = (yield from _hand_out(context, current.own[0])) if current.own else None
    reason = yield from explain_no_task(context, info, current)
    sentences = [sentence for sentence in (note, reason) if sentence]
    return _to_reply(data | ({"note": " ".join(sentences)} if sentences else {}))


def _prepare_list(context: ToolContext) -> Generator[Call[Any], Any, Conversation]:
    """Create the list if needed and return it. Make it serial if it has no tasks yet."""
    serial = SettingsPatch(execution="serial")
    if context.list_key not in context.memory.prepared:
        opened: ConversationResult = yield context.calls.open(settings=serial)
        info = opened.conversation
        counts = info.counts
        total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
        if info.settings.execution != "serial" and not total:
            try:
                yield context.calls.configure(settings=serial, expect_version=info.version)
            except VersionConflict:
                pass  # Another session has added a task, so the list keeps its settings.
        context.memory.prepared.add(context.list_key)
    return (yield context.calls.info())


def _add(context: ToolContext, args: AddTask) -> Steps:
    title, description = split(args.description)
    info: Conversation = yield from _prepare_list(context)
    counts, settings = info.counts, info.settings
    members: dict[str, Any] = {"description": description, "priority": args.priority, "metadata": args.context}
    members |= {"blocked_by": args.after, "parent": args.parent or None}
    # If a task is paused and none is in progress, the agent paused it for the new task, which therefore starts
    # immediately.
    interrupts = counts.paused > 0 and not counts.in_progress and settings.execution == "serial"
    if interrupts and not args.after and not (settings.on_failure == "stop" and counts.failed):
        members["status"] = "in_progress"
    try:
        result = yield from _add_or_keep(context, args, title, members)
    except (IllegalTransition, Blocked):
        members.pop("status", None)  # Another task has started since then.
        result = yield from _add_or_keep(context, args, title, members)
    data: dict[str, Any] = {"success": True, "taskId": result.task.id}
    if result.kept:
        note = creating.describe_kept(context, result.task, {"priority": args.priority}, "prioritize_task")
        return _to_reply(data | {"note": f"No task was added: {note}."})
    if counts.in_progress and settings.execution == "serial" and result.task.status != "in_progress":
        return _to_reply(data)  # The new task waits for the current one.
    return (yield from _reply_with_current(context, data))


def _add_or_keep(
    context: ToolContext, args: AddTask, title: str, members: dict[str, Any]
) -> Generator[Call[Any], Any, TaskResult]:
    """Add a task, or keep an open one with the same text."""
    result = yield from creating.add(context, title, **members)
    # The title is only the first line of the text. If the rest of the text differs, add the task anyway.
    if result.kept and one_line(join_text(result.task)) != one_line(args.description):
        call: Call[Any] = context.calls.add(title, **members)
        call.pick = itself
        result = yield call
    return result


def _list(context: ToolContext, args: ListTasks) -> Steps:
    if args.task_id:
        task: Task = yield context.calls.get(args.task_id)
        return _to_reply({"tasks": [(yield from _hand_out(context, task, args.offset))]})
    info: Conversation = yield context.calls.info()
    current = yield from find_current(context, info)
    owners = {
        task.id: {"owner": ", ".join(part for part in (format_actor(task.owner), describe_departure(task)) if part)}
        for task in current.others
        if task.owner
    }
    own: dict[str, dict[str, Any]] = {}
    for task in current.own:
        own[task.id] = yield from _hand_out(context, task)
    tasks: TaskList = yield context.calls.list(status=("pending", "in_progress", "paused", "failed"))
    path_of = yield from paths.load_paths(context, tasks)

    def build_row(task: Task) -> dict[str, Any]:
        if task.id in own:
            return own[task.id]
        return _build_row(context, task, path=path_of(task)) | owners.get(task.id, {})

    queue = [task for task in tasks if task.status in ("pending", "in_progress")]
    queue.sort(key=lambda task: (task.id not in own, _get_queue_order(task)))
    data: dict[str, Any] = {}
    for status in ("paused", "failed"):
        matches = [task for task in tasks if task.status == status]
        if matches:
            data[status] = [_build_brief_row(task) for task in matches[-_MAX_ROWS:]]
        if len(matches) > _MAX_ROWS:
            data["note"] = f"{len(matches)} have {status}; the last {_MAX_ROWS} are shown."
    shown, left_out = fit(queue[args.offset :], build_row, BUDGET - len(to_json(data)))
    if left_out:
        data |= {
            "omitted": left_out,
            "hint": announce_omitted(left_out, args.offset + len(shown), context.tool_name("list_tasks")),
        }
    if reason := (yield from explain_no_task(context, info, current)):
        data["note"] = reason
    return _to_reply({"tasks": shown, **data})


def _build_brief_row(task: Task) -> dict[str, Any]:
    row: dict[str, Any] = {"id": task.id, "description": shorten(join_text(task), _MAX_BRIEF)}
    row |= {"waits_for": task.waits_for} if task.waits_for else {}
    return row | ({"reason": shorten(task.fail_reason, _MAX_BRIEF)} if task.fail_reason else {})


def _finish(
    context: ToolContext, task_id: str, status: Status, text: str
) -> Generator[Call[Any], Any, SetStatusResult]:
    """Set a task to completed or failed, without overwriting an existing result.

    Raises:
        Problem: The task has already been completed, or has failed, with a different text.
    """
    texts: dict[str, Any] = {"result_summary" if status == "completed" else "fail_reason": text}
    for _ in range(_TRIES):
        running: TaskList = yield context.calls.list(status="in_progress", limit=1)
        task: Task = yield context.calls.get(task_id)
        existing = task.result_summary if status == "completed" else task.fail_reason
        if task.status == status and existing and existing != text:
            end = yield from describe_end(context, task.id)
            by = f" ({end})" if end else ""
            kept = f"and its text stays: {shorten(existing, _MAX_BRIEF)}"
            raise Problem("illegal_transition", f"task {task.id} is {status} already{by}, {kept}")
        try:
            return (yield context.calls.set_status(task.id, status, **texts, expect_version=running.version))
        except VersionConflict:
            continue  # The list has changed since then, and perhaps this task too.
    return (yield context.calls.set_status(task_id, status, **texts))


def _complete(context: ToolContext, args: CompleteTask) -> Steps:
    listed: TaskList = yield context.calls.list(status="in_progress")
    running = drop_parents(listed)
    result: SetStatusResult = yield from _finish(context, args.task_id, "completed", args.result_summary)
    done, note = result.task, ""
    if running and running[0].id != done.id:
        note = f"Task {running[0].id}, not {done.id}, is the current one; it is still in progress."
    gate = describe_gate(done)
    data = {"success": True, "message": f"Task {done.id}: {gate}." if gate else f"Task {done.id} marked complete."}
    return (yield from _reply_with_current(context, data, note))


def _fail(context: ToolContext, args: FailTask) -> Steps:
    result: SetStatusResult = yield from _finish(context, args.task_id, "failed", args.reason)
    task = result.task
    retry = "" if task.status == "failed" else f"Task {task.id} failed and is tried again: it is {task.status}."
    return (
        yield from _reply_with_current(context, {"success": True, "message": retry or f"Task {task.id} marked failed."})
    )


def _pause(context: ToolContext, args: OneTask) -> Steps:
    result: SetStatusResult = yield context.calls.pause(args.task_id)
    return (
        yield from _reply_with_current(
            context, {"success": True, "message": f"Task {result.task.id} paused."}, has_task=False
        )
    )


def _resume(context: ToolContext, args: OneTask) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    if task.status in FINISHED:
        text = shorten(task.result_summary or task.fail_reason, _MAX_BRIEF)
        state = f"task {task.id} {'is completed' if task.status == 'completed' else 'has failed'}"
        add_call = context.format_call("add_task", "what is to be done again; ")
        advice = f"{add_call}{context.tool_name('resume_task')} takes up paused tasks"
        raise Problem("illegal_transition", f"{state}{f' ({text})' if text else ''}: {advice}")
    running: TaskList = yield context.calls.list(status="in_progress", limit=1)
    info: Conversation = yield context.calls.info()
    if running and running[0].id != task.id and info.settings.execution == "serial":
        # A serial list runs one task at a time, so the resumed one waits for the current one.
        yield context.calls.reopen(task.id)
        message = f"Task {task.id} {'resumed' if task.status == 'paused' else 'waits already'}."
        note = f"Its turn comes after task {running[0].id}, which is current."
        return _to_reply({"success": True, "message": message, "note": note})
    if context.is_nameless:
        yield context.calls.resume(task.id)
    else:
        yield from claims.start(context, task)
    resumed: Task = yield context.calls.get(task.id)
    next_task = yield from _hand_out(context, resumed)
    return _to_reply({"success": True, "message": f"Task {task.id} resumed.", "nextTask": next_task})


def _prioritize(context: ToolContext, args: PrioritizeTask) -> Steps:
    task: Task = yield context.calls.edit(args.task_id, priority=args.priority)
    return _to_reply({"success": True, "message": f"Task {task.id} priority set to {args.priority}."})


def _delete(context: ToolContext, args: DeleteTask) -> Steps:
    (deleted,) = yield context.calls.delete(args.task_id, confirm=args.confirm or None)
    return (yield from _reply_with_current(context, {"success": True, "message": f"Task {deleted} deleted."}))


_MESSAGES = {"description is required": "Task description is required.", "task_id is required": "Task ID is required."}
"""Messages -> their established wording in this dialect, which agents may rely on."""


def _refuse(problem: Problem) -> Reply:
    data = {"success": False, "error": _MESSAGES.get(problem.text, problem.text)}
    return Reply(text=to_json(data), data=data, refused=True)


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
