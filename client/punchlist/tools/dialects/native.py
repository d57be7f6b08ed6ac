"""`native`: few tools, small replies, deltas. The dialect to prefer where there is a choice."""

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
from punchlist.tools.budget import joined
from punchlist.tools.history import completed_by_others
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
    limited,
)
from punchlist.tools.replacing import replace
from punchlist_schemas.params import NewTask
from punchlist_schemas.results import EventsResult, TaskExplainResult
from punchlist_schemas.things import FINISHED, Description, LongText, Priority, Status, Task, Title

Ids = tuple[str, ...]
Agent = Annotated[str, Hidden]
_TITLE = 100
_ROWS = 50
_DIGITS = 15
_NAMED, _NAME = 8, 60
"""How many tasks the question before they are dropped names, and how many characters of each title."""


class Step(Struct, frozen=True):
    """One task of a plan."""

    title: Annotated[str, limited(Title)]
    description: Annotated[str, limited(Description)] = ""
    ref: str = ""
    after: Ids = ()
    parent: str = ""
    priority: Priority = "normal"


class Plan(Arguments, frozen=True):
    """What plan takes."""

    tasks: Annotated[
        tuple[Step, ...],
        Meta(description="ref: temporary name; after: refs or ids to be done before; parent: ref or id"),
    ]
    replace: Annotated[bool, Meta(description="Drop all tasks that are not among these")] = False
    agent: Agent = ""
    confirm: Confirm = ""


class Next(Arguments, frozen=True):
    """What next takes."""

    result: Annotated[str, Meta(description="What came of the current task; completes it"), limited(LongText)] = ""
    failed: Annotated[str, Meta(description="Instead of result: why it can't be done"), limited(LongText)] = ""
    id: Annotated[str, Meta(description="The task to finish, if not your current one")] = ""
    agent: Annotated[str, Meta(description="Sub-agents: your own name, in each call")] = ""


class Update(Arguments, frozen=True):
    """What update takes."""

    id: str
    status: Literal["pending", "in_progress", "paused", "completed", "failed", "deleted"] | None = None
    note: Annotated[str, Meta(description="Result or reason that goes with the status"), limited(LongText)] = ""
    title: Annotated[str, limited(Title)] = ""
    description: Annotated[str, limited(Description)] = ""
    priority: Priority | None = None
    owner: str = ""
    after: Annotated[Ids, Meta(description="Wait for these ids")] = ()
    not_after: Annotated[Ids, Meta(description="No longer wait for these ids")] = ()
    agent: str = ""
    confirm: Confirm = ""


class Tasks(Arguments, frozen=True):
    """What tasks takes."""

    since: Annotated[str, Meta(description='"last", or a version: only what others changed since')] = ""
    ids: Annotated[Ids, Meta(description="Full details of these")] = ()
    all: Annotated[bool, Meta(description="Finished ones too")] = False
    agent: Agent = ""
    offset: Offset = 0


class Wait(Arguments, frozen=True):
    """What wait takes. Many hosts end a call after 60 s, so the default is well below that."""

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
    last = yield from changes.seen(context)
    stays: list[str] = []
    kept: Collection[str] = ()
    if args.replace:
        old, listed, theirs = yield from replace(context, new, confirm=args.confirm)
        if isinstance(listed, Reply):
            titles = {task.title for task in new}
            dropped = [task for task in old if task.title not in titles and task.id not in theirs]
            return _asked(listed, [task for task in dropped if task.status not in FINISHED])
        stays = [f"{one}." for one in [*theirs.values()][:_ROWS]]
    else:
        try:
            listed, kept = yield from creating.add_many(context, new)
        except NotFound as error:
            text = f"task {str(error.id)[:60]} not found; after and parent take ids, or refs of tasks in the same call"
            raise Problem("not_found", text) from None
        same = [(task, structs.asdict(asked)) for asked, task in zip(new, listed, strict=True) if task.id in kept]
        same.sort(key=lambda pair: not creating.differences(*pair))  # Differences first: the rest is only counted.
        stays = [f"{creating.kept(context, task, asked, 'update')}." for task, asked in same]
        if len(stays) > _NAMED:
            more = len(stays) - _NAMED
            stays = [*stays[:_NAMED], f"{more} more are on the list already: kept."]
    added = [task.id for task in listed if task.id not in kept]
    ready = yield from claims.ready_for_me(context, {task.id for task in listed})
    verb = "The list is" if args.replace else "Added"
    text = f"{verb} {phrases.span(added) or 'nothing'}. Ready: {phrases.some(ready) or 'none'}. Call next to begin."
    lines = [text, *stays]
    told = yield from news.others(context, last)
    if not args.replace:
        shown = {*told.changed, *(task.id for task in listed)}
        lines += yield from news.also_open(context, shown, is_first=last is None)
    lines += told.lines
    data = {"added": added[:1_000], "ready": ready[:1_000]} | ({"kept": [*kept][:1_000]} if kept else {})
    return Reply(text="\n".join(lines), data=data)


def _asked(reply: Reply, dropped: list[Task]) -> Reply:
    """The question before unfinished tasks are dropped."""
    assert reply.question is not None, "it was asked"
    names = [f"#{task.id} {clip(one_line(task.title), _NAME)}" for task in dropped[:_NAMED]]
    names += [f"{len(dropped) - _NAMED} more"] if len(dropped) > _NAMED else []
    what = "1 unfinished task" if len(dropped) == 1 else f"{len(dropped)} unfinished tasks"
    question = f"Replace the list and drop {what} ({', '.join(names)})? (yes/no)"
    note = f" {reply.data['note']}" if "note" in reply.data else ""
    token = reply.question.token
    how = f"To do it, repeat the call with confirm={token}; or leave replace out."
    text = f"Confirmation required: {question}{note} {how}"
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
    last = yield from changes.seen(context)
    own = yield from claims.at_work(context)
    if own and not finishes:
        return (yield from _go_on(context, last, ["You are at it already."], {}, own[0]))
    lines: list[str] = []
    data: dict[str, Any] = {}
    if finishes:
        own = own or (yield from claims.mine(context))  # a task with open parts: the daemon's refusal names them
        if not args.id and len(own) > 1:
            ids = joined([task.id for task in own], "#")
            raise Problem("invalid_arguments", f"you are working on {ids}: give the id of the one that this is about")
        if not args.id and not own:
            raise (yield from fates.missing(context))
        task_id = args.id or own[0].id
        yield from _refuse_second(context, task_id, args.result)
        status: Status = "failed" if args.failed else "completed"
        done = yield from claims.settle(context, task_id, status, args.failed or args.result)
        lines.append(phrases.finished(done))
        data |= {"finished": task_id, "unblocked": done.unblocked[:100]}
        own = (yield from claims.at_work(context)) if done.task.parent else []
        # The whole before anything new: whoever has split a task finishes it when its parts are finished.
        if whole := [task for task in own if task.id == done.task.parent]:
            return (yield from _go_on(context, last, lines, data, whole[0]))
    claim = yield from claims.take(context)
    if claim.task is None and (own := (yield from claims.at_work(context))):
        return (yield from _go_on(context, last, lines, data, own[0]))
    return (yield from _answer(context, last, lines, data, claim.task, [one.title for one in claim.path]))


def _go_on(context: ToolContext, last: int | None, lines: list[str], data: dict[str, Any], own: Task) -> Steps:
    """Answer `next` with a task that the agent has in progress."""
    above = yield from paths.above(context, own)
    return (yield from _answer(context, last, lines, data, own, above))


def _refuse_second(context: ToolContext, task_id: str, result: str) -> Generator[Call[Any], Any, None]:
    """Raise a problem if somebody else has completed the task already: their result stays."""
    if result and task_id not in context.mind.claims and (by := (yield from completed_by_others(context, task_id))):
        text = f"task {task_id} is completed already ({by}): its result stays, and yours was not recorded"
        raise Problem("illegal_transition", text)


def _answer(  # noqa: PLR0913 - what a reply of next is made of
    context: ToolContext,
    last: int | None,
    lines: list[str],
    data: dict[str, Any],
    task: Task | None,
    above: Sequence[str] = (),
) -> Steps:
    """The reply of `next`: the task with its notes, how many remain, and what others have changed."""
    tasks: TaskList = yield context.calls.list(limit=1)
    noted: list[str] = []
    now = len(lines)
    if task is not None:
        lines += phrases.current(task, _TITLE, above)
        data["next"] = {"id": task.id, "title": task.title, "description": clip(task.description, phrases.BRIEF)}
        notes.follow(context, task)
        noted = notes.with_task(context, task, f"… {{}} older: {context.tool('tasks')} ids={task.id}")
        data["next"] |= {"path": list(above)} if above else {}
        data["next"] |= {"notes": noted} if noted else {}
    else:
        explained: TaskExplainResult = yield context.calls.explain(owner=context.actor)
        lines.append(phrases.nothing(tasks.counts, explained.reasons, context.names.get("plan", "")))
        lines += yield from claims.offers(context)
    lines.append(f"{tasks.remaining} left, version {tasks.version}.")
    beside = [] if task is None else [task.id]
    told = yield from news.others(context, last, news.ROOM - sum(len(line) + 1 for line in lines), beside)
    if task is not None and task.id in told.changed:
        lines[now] += news.mark(told.changed[task.id])
    again = [setback] if task is not None and (setback := phrases.setback(task)) else []
    text = [*lines[:-1], *again, *notes.labelled(noted), lines[-1], *told.lines]
    return Reply(text="\n".join(text), data={"next": None, **data, "remaining": tasks.remaining})


def _update(context: ToolContext, args: Update) -> Steps:
    last = yield from changes.seen(context)
    members: dict[str, Any] = {
        "title": one_line(args.title),
        "description": args.description,
        "priority": args.priority,
        "owner": args.owner,
        "add_blocked_by": args.after,
        "remove_blocked_by": args.not_after,
    }
    given = {name: value for name, value in members.items() if value}
    if args.note and not args.status:
        raise Problem("invalid_arguments", "nothing was changed: a note goes with a status; give status too")
    if not given and not args.status:
        raise Problem("invalid_arguments", "nothing to update: give a status, a title or what else is to change")
    text = f"#{args.id} updated."
    if args.status == "deleted":
        yield context.calls.delete(args.id, confirm=args.confirm or None)
        context.mind.claims.pop(args.id, None)
        text = f"#{args.id} deleted."
    else:
        if given:
            yield context.calls.edit(args.id, **given)
        if args.status:
            text = yield from _set_status(context, args, args.status)
    told = yield from news.others(context, last)
    names = ("status", "title", "description", "priority", "owner", "after", "not_after")
    updated = [name for name in names if getattr(args, name)]
    return Reply(text="\n".join([text, *told.lines]), data={"id": args.id, "updated": updated})


def _set_status(context: ToolContext, args: Update, status: Status) -> Generator[Call[Any], Any, str]:
    if status == "in_progress":
        # Claimed, so that nobody else's `next` hands it out.
        is_own = yield from claims.begin(context, args.id)
        task: Task = yield context.calls.get(args.id)
        setback = phrases.setback(task)
        return f"#{args.id} is yours{' already' if is_own else ''}.{f' {setback}' if setback else ''}"
    yield from _refuse_second(context, args.id, args.note if status == "completed" else "")
    before: Task = yield context.calls.get(args.id)
    if before.status == status == "completed" and (by := (yield from completed_by_others(context, args.id))):
        return f"#{args.id} was completed already ({by}, {ago(before.status_changed_at, int(time.time() * 1000))} ago)."
    done = yield from claims.settle(context, args.id, status, args.note)
    return phrases.finished(done) if status in FINISHED else f"#{args.id} {done.task.status}."


def _tasks(context: ToolContext, args: Tasks) -> Steps:
    if args.ids:
        return (yield from listing.details(context, args.ids, args.offset))
    last = yield from changes.seen(context)
    if args.since and (after := (yield from _after(context, args.since, last))) is not None:
        told = yield from changes.since(context, after)
        if not told.everything:
            return (yield from listing.changed(context, told, after))
    return (yield from listing.whole(context, last, args.offset, is_all=args.all))


def _after(context: ToolContext, text: str, last: int | None) -> Generator[Call[Any], Any, int | None]:
    if text == "last":
        return last
    if not text.isdecimal():
        raise Problem("invalid_arguments", 'since must be "last" or the version of an earlier reply')
    return (yield from changes.position_of(context, int(text[:_DIGITS])))


def _wait(context: ToolContext, args: Wait) -> Steps:
    after = yield from changes.seen(context)
    tasks: TaskList = yield context.calls.list(limit=1)
    after, version = tasks.seq if after is None else after, tasks.version
    if own := (yield from current.left_to_itself(context, tasks.counts)):
        reply = yield from listing.changed_since(context, after)
        text = (
            f"Nothing to wait for: #{own.id} {clip(one_line(own.title), _NAME)} is yours; call {context.tool('next')}."
        )
        return structs.replace(reply, text=f"{text}\n{reply.text}")
    position, deadline = after, time.monotonic() + args.seconds
    while (left_ms := int((deadline - time.monotonic()) * 1_000)) > 0:
        try:
            result: EventsResult = yield changes.wait(context, position, left_ms)
        except (Gap, WrongEpoch):
            return (yield from _tasks(context, Tasks()))
        if changes.is_others(context, result):
            return (yield from listing.changed_since(context, after))
        position = max(position, result.next)
        version = max([version, *(event.version for event in result.events)])
    changes.note_seen(context, position, version)
    return listing.unchanged(f"Nothing changed within {args.seconds} s", version)


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
_ROWS_OUT = {"tasks": {"type": "array", "items": {"type": "object"}}, "gone": _TEXTS, "version": _NUMBER}
_NEXT_OUT = {"next": {"type": ["object", "null"]}, "finished": {"type": "string"}, "remaining": _NUMBER}

DIALECT = Dialect(
    name="native",
    summary="Ours, the recommended one: plan, next, update, tasks, wait; small replies and deltas.",
    guide=_GUIDE,
    unblocks=True,
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
            _NEXT_OUT,
        ),
        Tool("update", "Change a task: status, title, owner, order.", Update, _update, "destroys", {"updated": _TEXTS}),
        Tool(
            "tasks",
            "Show the task list, what others changed since you last looked, or details.",
            Tasks,
            _tasks,
            "reads",
            _ROWS_OUT,
        ),
        Tool("wait", "Wait until others change the task list.", Wait, _wait, "reads", _ROWS_OUT),
    ),
)
