"""`claude`: the task tools of Claude Code, with its names and texts."""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from punchlist.base.metadata import visible_items
from punchlist.base.text import one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import DependencyCycle, NotFound, RequestRefused
from punchlist.tools import claims, creating, notes, paths
from punchlist.tools.budget import LONG_TEXT, MANY_IDS, compact, fitting, joined, more, shorten
from punchlist.tools.coercion import argument_names
from punchlist.tools.history import ended_by_others
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
    limited,
)
from punchlist.tools.phrases import departed, gated, is_open_heading, name_of, place, reason_label, setback, waiting
from punchlist.tools.refusals import problem_of
from punchlist.tools.replacing import replace
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import Description, Metadata, Task, Title, names_of

Ids = tuple[str, ...]
TaskId = Annotated[str, Meta(description="The task's ID")]


class TaskCreate(Arguments, frozen=True, rename="camel"):
    """What TaskCreate takes."""

    subject: Annotated[str, Meta(description="Brief title in imperative form"), limited(Title)]
    description: Annotated[str, Meta(description="What needs to be done"), limited(Description)]
    active_form: Annotated[str, Meta(description='Shown while in progress, e.g. "Running tests"')] = ""
    metadata: Annotated[Metadata, Meta(description="Anything to keep with the task")] = {}
    add_blocked_by: Annotated[Ids, Meta(description="IDs of tasks that must be completed first")] = ()


class TaskGet(Arguments, frozen=True, rename="camel"):
    """What TaskGet takes. The description is shown from character `offset` on."""

    task_id: TaskId
    offset: Offset = 0


class TaskUpdate(Arguments, frozen=True, rename="camel"):
    """What TaskUpdate takes."""

    task_id: TaskId
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = None
    subject: Annotated[Clearable, limited(Title)] = None
    description: Annotated[Clearable, limited(Description)] = None
    active_form: Clearable = None
    owner: Annotated[Clearable, Meta(description="Who works on it")] = None
    metadata: Annotated[Metadata | None, Meta(description="Merged in; a null value deletes a key")] = None
    add_blocks: Annotated[Ids, Meta(description="IDs of tasks that wait for this one")] = ()
    add_blocked_by: Annotated[Ids, Meta(description="IDs of tasks that this one waits for")] = ()
    remove_blocks: Ids = ()
    remove_blocked_by: Ids = ()
    confirm: Confirm = ""


class Todo(Struct, frozen=True, rename="camel"):
    """One line of TodoWrite."""

    content: Annotated[str, limited(Title)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    active_form: str = ""


class TodoWrite(Arguments, frozen=True):
    """What TodoWrite takes."""

    todos: Annotated[tuple[Todo, ...], Meta(description="The whole new list")]


def _create(context: ToolContext, args: TaskCreate) -> Steps:
    members: dict[str, Any] = {
        "description": args.description,
        "active_form": args.active_form,
        "metadata": args.metadata,
    }
    subject = one_line(args.subject)
    refused: list[str] = []
    blockers = list(dict.fromkeys(args.add_blocked_by))
    while True:
        try:
            result = yield from creating.add(context, subject, blocked_by=blockers, **members)
            break
        except NotFound as error:
            if error.id not in blockers:
                raise
            blockers.remove(error.id)
            refused.append(f"not blocked by {error.id}: task {error.id} not found")
    task = result.task
    said = f"Task #{task.id} created: {task.title}"
    if result.kept:
        said = f"No task was created: {creating.kept(context, task, members, 'TaskUpdate')}"
    text = "\n".join([said, *refused])
    return Reply(text=text, data={"task": {"id": task.id, "subject": task.title}})


def _get(context: ToolContext, args: TaskGet) -> Steps:
    task: Task = yield context.calls.get(args.task_id)
    rest = context.call_of("TaskGet", f"taskId={task.id}")
    description = shorten(task.description, offset=args.offset, rest=rest)
    above = yield from paths.above(context, task)
    why = "Failed because" if task.status == "failed" else reason_label(task)
    metadata = dict(visible_items(task.metadata))
    lines = [
        f"Task #{task.id}: {task.title}",
        *_labelled("Path", place(task, above)),
        f"Status: {task.status}",
        *_labelled("Description", description),
        *_labelled("Active form", task.active_form),
        *_labelled("Owner", name_of(task.owner)),
        *_labelled("Waits", gated(task)),
        *_labelled("Blocks", joined(task.blocks)),
        *_labelled("Blocked by (open)", joined(task.open_blockers)),
        *_labelled("Metadata", shorten(compact(metadata)) if metadata else ""),
        *_labelled("Result", shorten(task.result_summary)),
        *_labelled(why, shorten(task.fail_reason)),
        *notes.labelled(notes.with_task(context, task)),
    ]
    data: dict[str, Any] = {
        "id": task.id,
        "subject": task.title,
        "description": description,
        "status": task.status,
        "blocks": task.blocks[:MANY_IDS],
        "blockedBy": task.blocked_by[:MANY_IDS],
    }
    if metadata and len(compact(metadata)) <= LONG_TEXT:
        data["metadata"] = metadata
    more = {"owner": task.owner, "activeForm": task.active_form, "waitsFor": task.waits_for}
    data |= {name: value for name, value in more.items() if value}
    return Reply(text="\n".join(lines), data={"task": data})


def _labelled(label: str, text: str) -> list[str]:
    return [f"{label}: {text}"] if text else []


def _list(context: ToolContext, args: Listing) -> Steps:
    tasks: TaskList = yield context.calls.list(offset=args.offset)
    place_of = yield from paths.places(context, tasks)
    rows, left_out = fitting(tasks, lambda task: _row(task, place_of(task)))
    lines = [list_line(task, place_of(task)) for task in tasks[: len(rows)]]
    data: dict[str, Any] = {"tasks": rows}
    if left_out:
        data["omitted"] = left_out
        lines.append(f"… {more(left_out, args.offset + len(rows), context.tool('TaskList'))}")
    return Reply(text="\n".join(lines) or "No tasks found.", data=data)


def list_line(task: Task, path: str = "") -> str:
    """A task as TaskList shows it; `path` is its title after those of its parents."""
    gone = departed(task)
    owner = f" (owner: {name_of(task.owner)}{f', {gone}' if gone else ''})" if task.owner else ""
    end = f" [blocked by: {joined(task.open_blockers)}]" if task.open_blockers else ""
    end += _again(task)
    if is_open_heading(task):
        return f"#{task.id}: {path or task.title} [heading]{end}"
    icons = {"completed": "✓", "in_progress": "⠋", "failed": "✗"}
    icon = icons.get(task.status) or ("▸" if task.open_blockers else "☐")
    return f"{icon} #{task.id}: {path or task.title} [{waiting(task) or task.status}]{owner}{end}"


def _again(task: Task) -> str:
    return f" ({told[:1].lower()}{told[1:]})" if (told := setback(task)) else ""


def _row(task: Task, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": task.id, "subject": task.title, "status": task.status}
    row |= {"path": path} if path else {}
    row |= {"heading": True} if is_open_heading(task) else {}
    row |= {"reason": told} if (told := setback(task)) else {}
    row |= {"owner": task.owner} if task.owner else {}
    row |= {"waitsFor": task.waits_for} if task.waits_for else {}
    return row | {"blockedBy": task.open_blockers[:MANY_IDS]}


_MEMBERS = {"subject": "title", "description": "description", "active_form": "active_form", "owner": "owner"}
_EDGES = {
    "remove_blocks": "removeBlocks",
    "remove_blocked_by": "removeBlockedBy",
    "add_blocks": "addBlocks",
    "add_blocked_by": "addBlockedBy",
}
_FIELDS = ("subject", "description", "activeForm", "owner", "metadata", *_EDGES.values(), "status")
"""The order in which updated fields are told."""


class _Done(Struct):
    """How far an update has come: fields, what was refused, what is left, and what else there is to say."""

    updated: set[str] = set()
    refused: list[str] = []
    left: list[str] = []
    notes: str = ""
    change: dict[str, Any] = {}


def _update(context: ToolContext, args: TaskUpdate) -> Steps:
    members: dict[str, Any] = {wire: getattr(args, name) for name, wire in _MEMBERS.items() if getattr(args, name)}
    members |= {} if args.metadata is None else {"metadata": args.metadata}
    edges = {name: getattr(args, name) for name in _EDGES if getattr(args, name)}
    if not (members or edges or args.status):
        # Some models send an empty text for each member that they leave out: it clears where only these two are empty.
        empty = {name for name in _MEMBERS if getattr(args, name) == ""}
        members = dict.fromkeys(empty, "") if empty <= {"active_form", "owner"} else {}
    if not (members or edges or args.status):
        raise Problem("invalid_arguments", "no updates specified")
    if "title" in members:
        members["title"] = one_line(members["title"])
    own = {"title": "subject", "active_form": "activeForm"}
    done = _Done(left=[] if args.status == "deleted" else [own.get(name, name) for name in members])
    try:
        if args.status == "deleted":  # wins over every other member
            yield context.calls.delete(args.task_id, confirm=args.confirm or None)
            data = {"success": True, "taskId": args.task_id, "updatedFields": ["deleted"]}
            return Reply(text=f"Task #{args.task_id} deleted", data=data)
        yield from _change(context, args, members, edges, done)
    except NotFound as error:
        by = yield from ended_by_others(context, error.id)
        done.refused.append(problem_of(error).text + (f": {by}" if by else ""))
    except Problem as problem:
        done.refused.append(problem.text)
    except RequestRefused as error:
        done.refused.append(problem_of(error, argument_names(TaskUpdate), unblocks=True).text)
    return _reply(args, done)


def _change(
    context: ToolContext, args: TaskUpdate, members: dict[str, Any], edges: dict[str, Any], done: _Done
) -> Generator[Call[Any], Any, None]:
    """Edges, status, members: what is most often refused comes before what never is, so that little is done by half."""
    before: Task = yield context.calls.get(args.task_id)
    yield from _edit_edges(context, args.task_id, edges, done)
    is_cleared = False
    is_ours = before.owner in ("", *names_of(context.actor)) or departed(before) != ""
    is_free = is_ours and not args.owner
    if args.status == "in_progress" and is_free and not context.is_nameless:
        # Claimed, so that it is this session's to finish, and nobody's once the session is gone.
        yield from claims.begin(context, before.id)
    if args.status and args.status != "deleted":
        result: SetStatusResult = yield context.calls.set_status(args.task_id, args.status)
        done.updated.add("status")
        if before.status != args.status:
            done.change = {"statusChange": {"from": before.status, "to": args.status}}
        done.notes = f" (unblocked: {joined(result.unblocked)})" if result.unblocked else ""
        done.notes += f" ({told})" if (told := gated(result.task)) else ""
        done.notes += _again(result.task) if args.status == "in_progress" else ""
        if before.status == args.status == "completed":
            by = yield from ended_by_others(context, before.id)
            done.notes += f" ({by} before)" if by else ""
        if args.status == "completed" and not result.remaining:
            rest: TaskList = yield context.calls.list(limit=1)
            is_cleared = not rest.total
    if is_cleared:
        done.notes += "\nAll tasks are completed: the list has cleared itself."
    elif members:
        yield context.calls.edit(args.task_id, **members)
    done.updated.update(done.left)
    done.left = []


def _reply(args: TaskUpdate, done: _Done) -> Reply:
    """What was done, and what was not: only all of it is a success."""
    fields = sorted(done.updated, key=_FIELDS.index)
    data = {"success": not done.refused, "taskId": args.task_id, "updatedFields": fields, **done.change}
    if not done.refused:
        return Reply(text=f"Updated task #{args.task_id}{done.notes}", data=data)
    data["error"] = "; ".join(done.refused)
    if not fields:
        return Reply(text=data["error"], data=data, refused=True)
    lines = [f"Updated task #{args.task_id} ({', '.join(fields)}){done.notes}"]
    lines += [f"Refused: {one}" for one in done.refused]
    lines += [f"Not updated: {', '.join(done.left)}"] if done.left else []
    return Reply(text="\n".join(lines), data=data, refused=True)


def _edit_edges(context: ToolContext, task: str, edges: dict[str, Any], done: _Done) -> Generator[Call[Any], Any, None]:
    if not edges:
        return
    try:
        yield context.calls.edit(task, **edges)
        done.updated.update(_EDGES[name] for name in edges)
        return
    except (NotFound, DependencyCycle):
        pass  # one edge spoils them all: each is tried by itself
    for name, others in edges.items():
        for other in others:
            try:
                one: dict[str, Any] = {name: (other,)}
                yield context.calls.edit(task, **one)
                done.updated.add(_EDGES[name])
            except (NotFound, DependencyCycle) as error:
                done.refused.append(f"{_EDGES[name]} {other}: {problem_of(error).text}")


def _write(context: ToolContext, args: TodoWrite) -> Steps:
    wanted = [
        NewTask(title=one_line(todo.content), status=todo.status, active_form=todo.active_form) for todo in args.todos
    ]
    old, _, kept = yield from replace(context, wanted)
    new: TaskList = yield context.calls.list()
    begun = {one.title for one in wanted if one.status == "in_progress"}
    for task in new:
        if task.title in begun and task.status == "in_progress" and not (task.owner or context.is_nameless):
            with suppress(Problem, RequestRefused):  # others work on it, and the reply says so
                yield from claims.take(context, task.id)
    parts: list[str] = []
    for label, tasks in (("Old", old), ("New", new)):
        lines, left_out = fitting(tasks, list_line, budget=16_000)
        note = [f"… {left_out} more"] if left_out else []
        parts += [f"{label} ({len(tasks)}):", *(lines or ["No tasks found."]), *note]
    data = {"oldTodos": _todos(old), "newTodos": _todos(new)}
    return Reply(
        text="\n".join(["Todos updated.", *parts, *(f"{one}." for one in [*kept.values()][:MANY_IDS])]), data=data
    )


def _todos(tasks: Sequence[Task]) -> list[dict[str, str]]:
    def todo(task: Task) -> dict[str, str]:
        return {"content": task.title, "status": task.status, "activeForm": task.active_form}

    return fitting(tasks, todo, budget=16_000)[0]


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
    unblocks=True,
    tools=tuple(Tool(*row) for row in _TOOLS),
    refuse=_refuse,
)
