"""`native`: few tools, small replies, deltas. The recommended dialect."""

import time
from collections.abc import Collection, Generator, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from punchlist.base.departures import ago
from punchlist.base.text import clip, one_line
from punchlist.calls.call import Call
from punchlist.calls.cursor import TaskList
from punchlist.errors import Gap, NotFound, WrongEpoch
from punchlist.tools import changes, claims, creating, current, fates, listing, news, notes, paths, phrases
from punchlist.tools.budget import join_ids
from punchlist.tools.history import describe_completion_by_others
from punchlist.tools.model import (
    Arguments,
    Confirm,
    Dialect,
    Hidden,
    Offset,
    Problem,
    Reply,
    Steps,
    Tool,
    ToolContext,
    advertise_limit,
)
from punchlist.tools.replacing import replace
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import ClaimResult, EventsResult
from punchlist_schemas.things import FINISHED, Description, LongText, Priority, Status, Task, Title

Ids = tuple[str, ...]
Agent = Annotated[str, Hidden]
_MAX_TITLE = 100
_MAX_KEPT = 50
_MAX_DIGITS = 15
_MAX_NAMED, _MAX_NAME = 8, 60
"""Maximum number of tasks named in the question about dropping tasks, and maximum length of their titles, in
characters.
"""


class Step(Struct, frozen=True):
    """One task of a plan."""

    title: Annotated[str, advertise_limit(Title)]
    description: Annotated[str, advertise_limit(Description)] = ""
    ref: str = ""
    after: Ids = ()
    parent: str = ""
    priority: Priority = "normal"


class Plan(Arguments, frozen=True):
    """Arguments of plan."""

    tasks: Annotated[
        tuple[Step, ...],
        Meta(description="ref: temporary name; after: refs or ids to be done before; parent: ref or id"),
    ]
    replace: Annotated[bool, Meta(description="Drop all tasks that are not among these")] = False
    agent: Agent = ""
    confirm: Confirm = ""


class Next(Arguments, frozen=True):
    """Arguments of next."""

    result: Annotated[
        str, Meta(description="What came of the current task; completes it"), advertise_limit(LongText)
    ] = ""
    failed: Annotated[str, Meta(description="Instead of result: why it can't be done"), advertise_limit(LongText)] = ""
    id: Annotated[str, Meta(description="The task to finish, if not your current one")] = ""
    agent: Annotated[str, Meta(description="Sub-agents: your own name, in each call")] = ""


class Update(Arguments, frozen=True):
    """Arguments of update."""

    id: str
    status: Literal["pending", "in_progress", "paused", "completed", "failed", "deleted"] | None = None
    note: Annotated[str, Meta(description="Result or reason that goes with the status"), advertise_limit(LongText)] = ""
    title: Annotated[str, advertise_limit(Title)] = ""
    description: Annotated[str, advertise_limit(Description)] = ""
    priority: Priority | None = None
    owner: str = ""
    after: Annotated[Ids, Meta(description="Wait for these ids")] = ()
    not_after: Annotated[Ids, Meta(description="No longer wait for these ids")] = ()
    agent: str = ""
    confirm: Confirm = ""


class Tasks(Arguments, frozen=True):
    """Arguments of tasks."""

    since: Annotated[str, Meta(description='"last", or a version: only what others changed since')] = ""
    ids: Annotated[Ids, Meta(description="Full details of these")] = ()
    all: Annotated[bool, Meta(description="Finished ones too")] = False
    agent: Agent = ""
    offset: Offset = 0


class Wait(Arguments, frozen=True):
    """Arguments of wait."""

    # Many hosts cancel calls after 60 s, so the default is well below that.
    seconds: Annotated[int, Meta(ge=1, le=600)] = 45
    agent: Agent = ""


def _plan(context: ToolContext, args: Plan) -> Steps:
    if not args.tasks:
        raise Problem("invalid_arguments", "tasks is required: at least one task with a title")
    new = [
        NewTask(
            title=one_line(step.title),
            description=step.description,
            ref=step.ref or None,
            blocked_by=step.after,
            parent=step.parent or None,
            priority=step.priority,
        )
        for step in args.tasks
    ]
    last = yield from changes.find_seen(context)
    kept_lines: list[str] = []
    kept: Collection[str] = ()
    if args.replace:
        old, listed, others = yield from replace(context, new, confirm=args.confirm, has_statuses=False)
        if isinstance(listed, Reply):
            titles = {task.title for task in new}
            dropped = [task for task in old if task.title not in titles and task.id not in others]
            return _build_question(listed, [task for task in dropped if task.status not in FINISHED])
        kept_lines = [f"{sentence}." for sentence in [*others.values()][:_MAX_KEPT]]
    else:
        try:
            listed, kept = yield from creating.add_many(context, new)
        except NotFound as error:
            text = f"task {str(error.id)[:60]} not found; after and parent take ids, or refs of tasks in the same call"
            raise Problem("not_found", text) from None
        same = [(task, structs.asdict(step)) for step, task in zip(new, listed, strict=True) if task.id in kept]
        # List the tasks that differ first, because the others may only be counted.
        same.sort(key=lambda pair: not creating.find_differences(*pair))
        kept_lines = [f"{creating.describe_kept(context, task, step, 'update')}." for task, step in same]
        if len(kept_lines) > _MAX_NAMED:
            more = len(kept_lines) - _MAX_NAMED
            kept_lines = [*kept_lines[:_MAX_NAMED], f"{more} more are on the list already: kept."]
    added = [task.id for task in listed if task.id not in kept]
    ready = yield from claims.find_ready(context, listed)
    verb = "The list is" if args.replace else "Added"
    ranges, ready_ids = phrases.format_ranges(added) or "nothing", phrases.format_some(ready) or "none"
    lines = [f"{verb} {ranges}. Ready: {ready_ids}. Call next to begin.", *kept_lines]
    others_changes = yield from news.report_changes(context, last)
    if not args.replace:
        shown = {*others_changes.changed, *(task.id for task in listed)}
        lines += yield from news.report_open_tasks(context, shown, is_first=last is None)
    lines += others_changes.lines
    data = {"added": added[:1_000], "ready": ready[:1_000]} | ({"kept": [*kept][:1_000]} if kept else {})
    return Reply(text="\n".join(lines), data=data)


def _build_question(reply: Reply, dropped: list[Task]) -> Reply:
    """Add the question whether to drop unfinished tasks to a reply that needs confirmation."""
    assert reply.question is not None, "the reply asks for confirmation"
    names = [f"#{task.id} {clip(one_line(task.title), _MAX_NAME)}" for task in dropped[:_MAX_NAMED]]
    names += [f"{len(dropped) - _MAX_NAMED} more"] if len(dropped) > _MAX_NAMED else []
    count = "1 unfinished task" if len(dropped) == 1 else f"{len(dropped)} unfinished tasks"
    question = f"Replace the list and drop {count} ({', '.join(names)})? (yes/no)"
    note = f" {reply.data['note']}" if "note" in reply.data else ""
    token = reply.question.token
    advice = f"To do it, repeat the call with confirm={token}; or leave replace out."
    text = f"Confirmation required: {question}{note} {advice}"
    return structs.replace(
        reply,
        text=text,
        data={**reply.data, "question": question},
        question=structs.replace(reply.question, text=question),
    )


def _next(context: ToolContext, args: Next) -> Steps:
    finishes = bool(args.result or args.failed)
    if args.result and args.failed:
        raise Problem("invalid_arguments", "give result or failed, not both: nothing was changed")
    if args.id and not finishes:
        text = f"id needs result or failed; to take task {args.id}: update with status in_progress"
        raise Problem("invalid_arguments", text)
    last = yield from changes.find_seen(context)
    if not finishes:
        if (claim := (yield from claims.take_next_known(context))) is not None:
            return (yield from _reply_to_claim(context, last, [], {}, claim))
        if own := (yield from claims.find_current_tasks(context)):
            return (yield from _reply_with_own_task(context, last, ["You are at it already."], {}, own[0]))
        return (yield from _take_next(context, last, [], {}))
    status: Status = "failed" if args.failed else "completed"
    done = yield from claims.settle_known(context, args.id, status, args.failed or args.result)
    if done is None:
        task_id = args.id or (yield from _find_own_task(context)).id
        yield from _check_not_completed(context, task_id, args.result)
        done = yield from claims.settle(context, task_id, status, args.failed or args.result)
    lines, data = [phrases.format_finished(done)], {"finished": done.task.id, "unblocked": done.unblocked[:100]}
    own = (yield from claims.find_current_tasks(context)) if done.task.parent else []
    # An agent that has split a task finishes the parent after the children, before it claims another task.
    if parents := [task for task in own if task.id == done.task.parent]:
        return (yield from _reply_with_own_task(context, last, lines, data, parents[0]))
    return (yield from _take_next(context, last, lines, data))


def _find_own_task(context: ToolContext) -> Generator[Call[Any], Any, Task]:
    """Return the task that the agent works on.

    Raises:
        Problem: It works on none, or on several.
    """
    # If all of the agent's tasks have open children, the daemon rejects the completion and names the children.
    own = (yield from claims.find_current_tasks(context)) or (yield from claims.find_own_tasks(context))
    if len(own) > 1:
        ids = join_ids([task.id for task in own], "#")
        raise Problem("invalid_arguments", f"you are working on {ids}: give the id of the one that this is about")
    if not own:
        raise (yield from fates.explain_missing_task(context))
    return own[0]


def _take_next(context: ToolContext, last: int | None, lines: list[str], data: dict[str, Any]) -> Steps:
    """Claim the next task, and return the reply of `next`."""
    claim = yield from claims.take(context)
    return (yield from _reply_to_claim(context, last, lines, data, claim))


def _reply_to_claim(
    context: ToolContext, last: int | None, lines: list[str], data: dict[str, Any], claim: ClaimResult
) -> Steps:
    if claim.task is None and (own := (yield from claims.find_current_tasks(context))):
        return (yield from _reply_with_own_task(context, last, lines, data, own[0]))
    return (yield from _reply_to_next(context, last, lines, data, claim.task, [task.title for task in claim.path]))


def _reply_with_own_task(
    context: ToolContext, last: int | None, lines: list[str], data: dict[str, Any], own: Task
) -> Steps:
    """Return the reply of `next` with a task that the agent already has in progress."""
    parents = yield from paths.get_parent_titles(context, own)
    return (yield from _reply_to_next(context, last, lines, data, own, parents))


def _check_not_completed(context: ToolContext, task_id: str, result: str) -> Generator[Call[Any], Any, None]:
    """Reject a result for a task that another actor has completed. The first result stays."""
    if (
        result
        and task_id not in context.state.claims
        and (by := (yield from describe_completion_by_others(context, task_id)))
    ):
        text = f"task {task_id} is completed already ({by}): its result stays, and yours was not recorded"
        raise Problem("illegal_transition", text)


def _reply_to_next(  # noqa: PLR0913 - the parts of a reply
    context: ToolContext,
    last: int | None,
    lines: list[str],
    data: dict[str, Any],
    task: Task | None,
    parents: Sequence[str] = (),
) -> Steps:
    """Return the reply of `next`: the task with its notes, the number of tasks left, and changes by others."""
    tasks: TaskList = yield context.calls.list(limit=1)
    note_lines: list[str] = []
    task_line = len(lines)
    if task is not None:
        lines += phrases.format_current(task, _MAX_TITLE, parents)
        data["next"] = {"id": task.id, "title": task.title, "description": clip(task.description, phrases.BRIEF)}
        notes.follow(context, task)
        note_lines = notes.read_notes(context, task, f"… {{}} older: {context.tool_name('tasks')} ids={task.id}")
        data["next"] |= {"path": list(parents)} if parents else {}
        data["next"] |= {"notes": note_lines} if note_lines else {}
    else:
        reasons = yield from claims.explain_empty_claim(context)
        lines.append(phrases.explain_no_task(tasks.counts, reasons, context.names.get("plan", "")))
        lines += yield from claims.offer_abandoned(context)
    lines.append(f"{tasks.remaining} left, version {tasks.version}.")
    shown = [] if task is None else [task.id]
    others_changes = yield from news.report_changes(
        context, last, news.ROOM - sum(len(line) + 1 for line in lines), shown
    )
    if task is not None and task.id in others_changes.changed:
        lines[task_line] += news.format_mark(others_changes.changed[task.id])
    setbacks = [setback] if task is not None and (setback := phrases.describe_setback(task)) else []
    text = [*lines[:-1], *setbacks, *notes.label_lines(note_lines), lines[-1], *others_changes.lines]
    return Reply(text="\n".join(text), data={"next": None, **data, "remaining": tasks.remaining})


def _update(context: ToolContext, args: Update) -> Steps:
    last = yield from changes.find_seen(context)
    members: dict[str, Any] = {
        "title": one_line(args.title),
        "description": args.description,
        "priority": args.priority,
        "owner": args.owner,
        "add_blocked_by": args.after,
        "remove_blocked_by": args.not_after,
    }
    edits = {name: value for name, value in members.items() if value}
    if args.note and not args.status:
        raise Problem("invalid_arguments", "nothing was changed: a note goes with a status; give status too")
    if not edits and not args.status:
        raise Problem("invalid_arguments", "nothing to update: give a status, a title or another change")
    text = f"#{args.id} updated."
    if args.status == "deleted":
        yield context.calls.delete(args.id, confirm=args.confirm or None)
        context.state.claims.pop(args.id, None)
        text = f"#{args.id} deleted."
    else:
        if edits:
            yield context.calls.edit(args.id, **edits)
        if args.status:
            text = yield from _set_status(context, args, args.status)
    others_changes = yield from news.report_changes(context, last)
    names = ("status", "title", "description", "priority", "owner", "after", "not_after")
    updated = [name for name in names if getattr(args, name)]
    return Reply(text="\n".join([text, *others_changes.lines]), data={"id": args.id, "updated": updated})


def _set_status(context: ToolContext, args: Update, status: Status) -> Generator[Call[Any], Any, str]:
    if status == "in_progress":
        return (yield from _start(context, args.id))
    done = yield from claims.settle_known(context, args.id, status, args.note)
    if done is None:
        yield from _check_not_completed(context, args.id, args.note if status == "completed" else "")
        before: Task = yield context.calls.get(args.id)
        is_completed = before.status == status == "completed"
        if is_completed and (by := (yield from describe_completion_by_others(context, args.id))):
            passed = ago(before.status_changed_at, int(time.time() * 1000))
            return f"#{args.id} was completed already ({by}, {passed} ago)."
        done = yield from claims.settle(context, args.id, status, args.note)
    return phrases.format_finished(done) if status in FINISHED else f"#{args.id} {done.task.status}."


def _start(context: ToolContext, task_id: str) -> Generator[Call[Any], Any, str]:
    # A claimed task isn't returned by another agent's `next`.
    claim = yield from claims.take_free(context, task_id)
    is_own, task = False, None if claim is None else claim.task
    if task is None:
        before: Task = yield context.calls.get(task_id)
        is_own = yield from claims.start(context, before)
        task = yield context.calls.get(task_id)
    setback = phrases.describe_setback(task)
    return f"#{task_id} is yours{' already' if is_own else ''}.{f' {setback}' if setback else ''}"


def _tasks(context: ToolContext, args: Tasks) -> Steps:
    if args.ids:
        return (yield from listing.show_details(context, args.ids, args.offset))
    last = yield from changes.find_seen(context)
    if args.since and (after := (yield from _parse_since(context, args.since, last))) is not None:
        delta = yield from changes.read_changes(context, after)
        if not delta.is_incomplete:
            return (yield from listing.show_changes(context, delta, after))
    return (yield from listing.show_list(context, last, args.offset, is_all=args.all))


def _parse_since(context: ToolContext, text: str, last: int | None) -> Generator[Call[Any], Any, int | None]:
    if text == "last":
        return last
    if not text.isdecimal():
        raise Problem("invalid_arguments", 'since must be "last" or the version of an earlier reply')
    return (yield from changes.find_position(context, int(text[:_MAX_DIGITS])))


def _wait(context: ToolContext, args: Wait) -> Steps:
    after = yield from changes.find_seen(context)
    tasks: TaskList = yield context.calls.list(limit=1)
    after, version = tasks.seq if after is None else after, tasks.version
    if own := (yield from current.find_resumable(context, tasks.counts)):
        reply = yield from listing.show_changes_since(context, after)
        title = clip(one_line(own.title), _MAX_NAME)
        text = f"Nothing to wait for: #{own.id} {title} is yours; call {context.tool_name('next')}."
        return structs.replace(reply, text=f"{text}\n{reply.text}")
    position, deadline = after, time.monotonic() + args.seconds
    while (left_ms := int((deadline - time.monotonic()) * 1_000)) > 0:
        try:
            result: EventsResult = yield changes.wait_for_events(context, position, left_ms)
        except (Gap, WrongEpoch):
            return (yield from _tasks(context, Tasks()))
        if changes.is_by_others(context, result):
            return (yield from listing.show_changes_since(context, after))
        position = max(position, result.next)
        version = max([version, *(event.version for event in result.events)])
    changes.mark_seen(context, position, version)
    return listing.show_no_changes(f"Nothing changed within {args.seconds} s", version)


def _refuse(problem: Problem) -> Reply:
    text = f"Refused: {problem.text}"
    return Reply(text=text, data={"refused": problem.kind, "why": problem.text}, refused=True)


_GUIDE = """# Task list
Work of three or more steps goes on the task list.
- {plan} once, with all tasks and what each has to come after[; then {next} to get the first].
- When a task is fully done, call {next} with its result: it is completed and you get the next one. If it can't be \
done: {next} with failed and the reason. Never leave a task behind without either.
- New work that turns up: {plan} it.[ Others may work on the same list: replies tell what they changed, {tasks} \
since=last shows it, and {wait} waits for it.| Others may work on the same list: {tasks} since=last shows what they \
changed.]"""

_NUMBER = {"type": "integer"}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_ROWS_OUTPUT = {"tasks": {"type": "array", "items": {"type": "object"}}, "gone": _TEXTS, "version": _NUMBER}
_NEXT_OUTPUT = {"next": {"type": ["object", "null"]}, "finished": {"type": "string"}, "remaining": _NUMBER}

DIALECT = Dialect(
    name="native",
    summary="Ours, the recommended one: plan, next, update, tasks, wait; small replies and deltas.",
    guide=_GUIDE,
    can_unblock=True,
    refuse=_refuse,
    tools=(
        Tool(
            "plan",
            "Add tasks to the task list, with their order, all in one call.",
            Plan,
            _plan,
            "destroys",
            {"added": _TEXTS, "ready": _TEXTS},
        ),
        Tool(
            "next",
            "Finish your current task with its result, and take the next ready one. Without arguments: only take one.",
            Next,
            _next,
            "advances",
            _NEXT_OUTPUT,
        ),
        Tool("update", "Change a task: status, title, owner, order.", Update, _update, "destroys", {"updated": _TEXTS}),
        Tool(
            "tasks",
            "Show the task list, what others changed since you last looked, or details.",
            Tasks,
            _tasks,
            "reads",
            _ROWS_OUTPUT,
        ),
        Tool("wait", "Wait until others change the task list.", Wait, _wait, "reads", _ROWS_OUTPUT),
    ),
)
