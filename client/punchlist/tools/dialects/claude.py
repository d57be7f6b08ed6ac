"""`claude`: the task tools of Claude Code, with the same names and texts."""

from collections.abc import Callable, Generator, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from punchlist.base.metadata import visible_items
from punchlist.base.text import one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import DependencyCycle, NotFound, RequestRefused
from punchlist.tools import claims, creating, notes, paths
from punchlist.tools.budget import MAX_IDS, MAX_TEXT, announce_omitted, fit, join_ids, shorten, to_json
from punchlist.tools.coercion import list_argument_names
from punchlist.tools.history import describe_end_by_others
from punchlist.tools.model import (
    Arguments,
    Clearable,
    Confirm,
    Dialect,
    Listing,
    Offset,
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
    describe_wait,
    format_actor,
    format_path,
    is_open_heading,
    label_reason,
)
from punchlist.tools.refusals import to_problem
from punchlist.tools.replacing import replace_and_claim
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Description, Metadata, Task, Title, names_of

Ids = tuple[str, ...]
TaskId = Annotated[str, Meta(description="The task's ID")]


class TaskCreate(Arguments, frozen=True, rename="camel"):
    """Arguments of TaskCreate."""

    subject: Annotated[str, Meta(description="Brief title in imperative form"), advertise_limit(Title)]
    description: Annotated[str, Meta(description="What needs to be done"), advertise_limit(Description)]
    active_form: Annotated[str, Meta(description='Shown while in progress, e.g. "Running tests"')] = ""
    metadata: Annotated[Metadata, Meta(description="Anything to keep with the task")] = {}
    add_blocked_by: Annotated[Ids, Meta(description="IDs of tasks that must be completed first")] = ()


class TaskGet(Arguments, frozen=True, rename="camel"):
    """Arguments of TaskGet. The description is shown from character `offset` on."""

    task_id: TaskId
    offset: Offset = 0


class TaskUpdate(Arguments, frozen=True, rename="camel"):
    """Arguments of TaskUpdate."""

    task_id: TaskId
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = None
    subject: Annotated[Clearable, advertise_limit(Title)] = None
    description: Annotated[Clearable, advertise_limit(Description)] = None
    active_form: Clearable = None
    owner: Annotated[Clearable, Meta(description="Who works on it")] = None
    metadata: Annotated[Metadata | None, Meta(description="Merged in; a null value deletes a key")] = None
    add_blocks: Annotated[Ids, Meta(description="IDs of tasks that wait for this one")] = ()
    add_blocked_by: Annotated[Ids, Meta(description="IDs of tasks that this one waits for")] = ()
    remove_blocks: Ids = ()
    remove_blocked_by: Ids = ()
    confirm: Confirm = ""


class Todo(Struct, frozen=True, rename="camel"):
    """One todo of TodoWrite."""

    content: Annotated[str, advertise_limit(Title)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    active_form: str = ""


class TodoWrite(Arguments, frozen=True):
    """Arguments of TodoWrite."""

    todos: Annotated[tuple[Todo, ...], Meta(description="The whole new list")]


def _create(context: ToolContext, args: TaskCreate) -> Steps:
    members: dict[str, Any] = {
        "description": args.description,
        "active_form": args.active_form,
        "metadata": args.metadata,
    }
    subject = one_line(args.subject)
    errors: list[str] = []
    blockers = list(dict.fromkeys(args.add_blocked_by))
    while True:
        try:
            result = yield from creating.add(context, subject, blocked_by=blockers, **members)
            break
        except NotFound as error:
            if error.id not in blockers:
                raise
            blockers.remove(error.id)
            errors.append(f"not blocked by {error.id}: task {error.id} not found")
    task = result.task
    first = f"Task #{task.id} created: {task.title}"
    if result.kept:
        first = f"No task was created: {creating.describe_kept(context, task, members, 'TaskUpdate')}"
    text = "\n".join([first, *errors])
    return Reply(text=text, data={"task": {"id": task.id, "subject": task.title}})


def _get(context: ToolContext, args: TaskGet) -> Steps:
    task, parents = yield from paths.get_with_parents(context, args.task_id)
    call = context.format_call("TaskGet", f"taskId={task.id}")
    description = shorten(task.description, offset=args.offset, call=call)
    reason = "Failed because" if task.status == "failed" else label_reason(task)
    metadata = dict(visible_items(task.metadata))
    lines = [
        f"Task #{task.id}: {task.title}",
        *_label("Path", format_path(task, parents)),
        f"Status: {task.status}",
        *_label("Description", description),
        *_label("Active form", task.active_form),
        *_label("Owner", format_actor(task.owner)),
        *_label("Waits", describe_gate(task)),
        *_label("Blocks", join_ids(task.blocks)),
        *_label("Blocked by (open)", join_ids(task.open_blockers)),
        *_label("Metadata", shorten(to_json(metadata)) if metadata else ""),
        *_label("Result", shorten(task.result_summary)),
        *_label(reason, shorten(task.fail_reason)),
        *notes.label_lines(notes.read_notes(context, task)),
    ]
    data: dict[str, Any] = {
        "id": task.id,
        "subject": task.title,
        "description": description,
        "status": task.status,
        "blocks": task.blocks[:MAX_IDS],
        "blockedBy": task.blocked_by[:MAX_IDS],
    }
    if metadata and len(to_json(metadata)) <= MAX_TEXT:
        data["metadata"] = metadata
    optional = {"owner": task.owner, "activeForm": task.active_form, "waitsFor": task.waits_for}
    data |= {name: value for name, value in optional.items() if value}
    return Reply(text="\n".join(lines), data={"task": data})


def _label(label: str, text: str) -> list[str]:
    return [f"{label}: {text}"] if text else []


def _list(context: ToolContext, args: Listing) -> Steps:
    tasks: TaskList = yield context.calls.list(offset=args.offset)
    path_of = yield from paths.load_paths(context, tasks)
    rows, left_out = fit(tasks, lambda task: _build_row(task, path_of(task)))
    lines = [format_line(task, path_of(task)) for task in tasks[: len(rows)]]
    data: dict[str, Any] = {"tasks": rows}
    if left_out:
        data["omitted"] = left_out
        lines.append(f"… {announce_omitted(left_out, args.offset + len(rows), context.tool_name('TaskList'))}")
    return Reply(text="\n".join(lines) or "No tasks found.", data=data)


def format_line(task: Task, path: str = "") -> str:
    """Return a task as a line of TaskList. `path` is its title, preceded by those of its parents."""
    gone = describe_departure(task)
    owner = f" (owner: {format_actor(task.owner)}{f', {gone}' if gone else ''})" if task.owner else ""
    end = f" [blocked by: {join_ids(task.open_blockers)}]" if task.open_blockers else ""
    end += _format_setback(task)
    if is_open_heading(task):
        return f"#{task.id}: {path or task.title} [heading]{end}"
    icons = {"completed": "✓", "in_progress": "⠋", "failed": "✗"}
    icon = icons.get(task.status) or ("▸" if task.open_blockers else "☐")
    return f"{icon} #{task.id}: {path or task.title} [{describe_wait(task) or task.status}]{owner}{end}"


def _format_setback(task: Task) -> str:
    return f" ({setback[:1].lower()}{setback[1:]})" if (setback := describe_setback(task)) else ""


def _build_row(task: Task, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": task.id, "subject": task.title, "status": task.status}
    row |= {"path": path} if path else {}
    row |= {"heading": True} if is_open_heading(task) else {}
    row |= {"reason": setback} if (setback := describe_setback(task)) else {}
    row |= {"owner": task.owner} if task.owner else {}
    row |= {"waitsFor": task.waits_for} if task.waits_for else {}
    return row | {"blockedBy": task.open_blockers[:MAX_IDS]}


_MEMBERS = {"subject": "title", "description": "description", "active_form": "active_form", "owner": "owner"}
_EDGES = {
    "remove_blocks": "removeBlocks",
    "remove_blocked_by": "removeBlockedBy",
    "add_blocks": "addBlocks",
    "add_blocked_by": "addBlockedBy",
}
_FIELDS = ("subject", "description", "activeForm", "owner", "metadata", *_EDGES.values(), "status")
"""Fields in the order in which a reply lists them."""


class _Progress(Struct):
    """Partial result of a `TaskUpdate`, reported even if a later change is rejected.

    Attributes:
        updated: The updated fields.
        errors: Messages about rejected changes.
        pending: Fields that haven't been updated yet.
        notes: Text to append to the reply.
        change: The status change, for the reply's data.
    """

    updated: set[str] = set()
    errors: list[str] = []
    pending: list[str] = []
    notes: str = ""
    change: dict[str, Any] = {}


def _update(context: ToolContext, args: TaskUpdate) -> Steps:
    members: dict[str, Any] = {wire: getattr(args, name) for name, wire in _MEMBERS.items() if getattr(args, name)}
    members |= {} if args.metadata is None else {"metadata": args.metadata}
    edges = {name: getattr(args, name) for name in _EDGES if getattr(args, name)}
    if not (members or edges or args.status):
        # Some models send empty text for each omitted member. Clear `active_form` and `owner` only if no other member
        # is empty.
        empty = {name for name in _MEMBERS if getattr(args, name) == ""}
        members = dict.fromkeys(empty, "") if empty <= {"active_form", "owner"} else {}
    if not (members or edges or args.status):
        raise Problem("invalid_arguments", "no updates specified")
    if "title" in members:
        members["title"] = one_line(members["title"])
    own = {"title": "subject", "active_form": "activeForm"}
    progress = _Progress(pending=[] if args.status == "deleted" else [own.get(name, name) for name in members])
    try:
        if args.status == "deleted":  # overrides every other member
            yield context.calls.delete(args.task_id, confirm=args.confirm or None)
            data = {"success": True, "taskId": args.task_id, "updatedFields": ["deleted"]}
            return Reply(text=f"Task #{args.task_id} deleted", data=data)
        yield from _apply(context, args, members, edges, progress)
    except NotFound as error:
        by = yield from describe_end_by_others(context, error.id)
        progress.errors.append(to_problem(error).text + (f": {by}" if by else ""))
    except Problem as problem:
        progress.errors.append(problem.text)
    except RequestRefused as error:
        progress.errors.append(to_problem(error, list_argument_names(TaskUpdate), can_unblock=True).text)
    return _build_reply(args, progress)


def _apply(
    context: ToolContext, args: TaskUpdate, members: dict[str, Any], edges: dict[str, Any], progress: _Progress
) -> Generator[Call[Any], Any, None]:
    """Update dependencies, then the status, then other members."""
    # Changes that may be rejected come first, so that an update is rarely made only in part.
    before: Task = yield context.calls.get(args.task_id)
    yield from _edit_edges(context, args.task_id, edges, progress)
    if args.status and args.status != "deleted":
        yield from _set_status(context, args, before, progress)
    is_cleared = False
    if args.status == "completed":
        remaining: TaskList = yield context.calls.list(limit=1)
        is_cleared = not remaining.total
    if is_cleared:
        progress.notes += "\nAll tasks are completed: the list has cleared itself."
    elif members:
        yield context.calls.edit(args.task_id, **members)
    progress.updated.update(progress.pending)
    progress.pending = []


def _set_status(
    context: ToolContext, args: TaskUpdate, before: Task, progress: _Progress
) -> Generator[Call[Any], Any, None]:
    assert args.status is not None and args.status != "deleted", "the status changes"
    may_claim = before.owner in ("", *names_of(context.actor)) or describe_departure(before) != ""
    if args.status == "in_progress" and may_claim and not args.owner and not context.is_nameless:
        # With a claim, only this session can finish the task, and others can take it over once the session has ended.
        yield from claims.start(context, before)
        task: Task = yield context.calls.get(before.id)
        unblocked: tuple[str, ...] = ()
    else:
        result: SetStatusResult = yield context.calls.set_status(args.task_id, args.status)
        task, unblocked = result.task, result.unblocked
    progress.updated.add("status")
    if before.status != args.status:
        progress.change = {"statusChange": {"from": before.status, "to": args.status}}
    progress.notes = f" (unblocked: {join_ids(unblocked)})" if unblocked else ""
    progress.notes += f" ({gate})" if (gate := describe_gate(task)) else ""
    progress.notes += _format_setback(task) if args.status == "in_progress" else ""
    if before.status == args.status == "completed":
        by = yield from describe_end_by_others(context, before.id)
        progress.notes += f" ({by} before)" if by else ""


def _build_reply(args: TaskUpdate, progress: _Progress) -> Reply:
    """Build the reply. The update is a success only if nothing was rejected."""
    fields = sorted(progress.updated, key=_FIELDS.index)
    data = {"success": not progress.errors, "taskId": args.task_id, "updatedFields": fields, **progress.change}
    if not progress.errors:
        return Reply(text=f"Updated task #{args.task_id}{progress.notes}", data=data)
    data["error"] = "; ".join(progress.errors)
    if not fields:
        return Reply(text=data["error"], data=data, refused=True)
    lines = [f"Updated task #{args.task_id} ({', '.join(fields)}){progress.notes}"]
    lines += [f"Refused: {error}" for error in progress.errors]
    lines += [f"Not updated: {', '.join(progress.pending)}"] if progress.pending else []
    return Reply(text="\n".join(lines), data=data, refused=True)


def _edit_edges(
    context: ToolContext, task: str, edges: dict[str, Any], progress: _Progress
) -> Generator[Call[Any], Any, None]:
    if not edges:
        return
    try:
        yield context.calls.edit(task, **edges)
        progress.updated.update(_EDGES[name] for name in edges)
        return
    except (NotFound, DependencyCycle):
        pass  # A single invalid edge makes the whole call fail, so try each edge separately.
    for name, others in edges.items():
        for other in others:
            try:
                edge: dict[str, Any] = {name: (other,)}
                yield context.calls.edit(task, **edge)
                progress.updated.add(_EDGES[name])
            except (NotFound, DependencyCycle) as error:
                progress.errors.append(f"{_EDGES[name]} {other}: {to_problem(error).text}")


def _write(context: ToolContext, args: TodoWrite) -> Steps:
    todos = [
        NewTask(title=one_line(todo.content), status=todo.status, active_form=todo.active_form) for todo in args.todos
    ]
    old, new, kept = yield from replace_and_claim(context, todos)
    parts: list[str] = []
    for label, tasks in (("Old", old), ("New", new)):
        lines, left_out = fit(tasks, format_line, budget=16_000)
        note = [f"… {left_out} more"] if left_out else []
        parts += [f"{label} ({len(tasks)}):", *(lines or ["No tasks found."]), *note]
    data = {"oldTodos": _build_todos(old), "newTodos": _build_todos(new)}
    return Reply(
        text="\n".join(["Todos updated.", *parts, *(f"{sentence}." for sentence in [*kept.values()][:MAX_IDS])]),
        data=data,
    )


def _build_todos(tasks: Sequence[Task]) -> list[dict[str, str]]:
    def build_todo(task: Task) -> dict[str, str]:
        return {"content": task.title, "status": task.status, "activeForm": task.active_form}

    return fit(tasks, build_todo, budget=16_000)[0]


def _refuse(problem: Problem) -> Reply:
    if problem.kind == "not_found" and problem.data.get("what") == "task":
        return Reply(text=problem.text, data={"task": None}, refused=True)
    return Reply(text=problem.text, refused=True)


_GUIDE = """# Tasks
Use the task tools for work of three or more steps, or when the user gives you a list; never for a single trivial step.
- Create all tasks up front with {TaskCreate}, in the order in which they should be done; wire what depends on what \
with addBlockedBy.
- {TaskUpdate} to in_progress before you begin a task, to completed as soon as it is fully done, never before.
- After completing one, take the lowest pending task that is not blocked.[ {TaskList} shows what others have changed.]
- Keep a task in_progress if you are stuck[, and {TaskCreate} one that describes what has to be resolved]."""

_TOOLS: tuple[tuple[str, str, type[Arguments], Callable[[ToolContext, Any], Steps], Any], ...] = (
    (
        "TaskCreate",
        "Create a task in the task list. It starts pending; its ID is in the reply.",
        TaskCreate,
        _create,
        "adds",
    ),
    (
        "TaskUpdate",
        "Update a task: its status, details, owner or dependencies. Set in_progress before starting, completed when"
        " fully done; deleted removes it.",
        TaskUpdate,
        _update,
        "destroys",
    ),
    ("TaskGet", "Get a task's full description and dependencies by ID.", TaskGet, _get, "reads"),
    ("TaskList", "List all tasks with status, owner and open blockers.", Listing, _list, "reads"),
    ("TodoWrite", "Replace the whole task list by these todos.", TodoWrite, _write, "destroys"),
)

DIALECT = Dialect(
    name="claude",
    summary="The task tools of Claude Code: TaskCreate, TaskUpdate, TaskGet, TaskList, TodoWrite.",
    guide=_GUIDE,
    can_unblock=True,
    tools=tuple(Tool(*row) for row in _TOOLS),
    refuse=_refuse,
)
