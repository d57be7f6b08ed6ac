"""Commands that change the status of tasks: start, done, fail, pause, resume, reopen."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from punchlist.base.text import safe
from punchlist.errors import IllegalTransition, KeyConflict, LeaseHeld, RequestRefused
from punchlist_apps.cli.calling.claims import MAX_LEASE_MS
from punchlist_apps.cli.calling.commits import Commit, read_commit
from punchlist_apps.cli.calling.context import Context, parse_task_ids
from punchlist_apps.cli.parsing.arguments import TASKS, Argument, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED, USAGE
from punchlist_apps.cli.printing.failure import UsageError, show_error, show_lease_held, show_refusal
from punchlist_apps.common.terminal.render import FINISHED, format_short_duration, format_step, format_task

_RESTARTABLE = ("paused", "completed", "failed")
"""Statuses from which a task must be set in progress before it can be claimed."""

Changes = dict[str, list[dict[str, Any]]]
"""Task → its changes in a `list.apply` call."""

_SKEW_MS = 2_000
"""Tolerance for clock skew between machines and for slow starts, in milliseconds."""

_FORCE = flag("--force", text="also change tasks that are claimed by another owner")
_FORCE_DONE = flag("--force", text="also complete tasks that are claimed by another owner or have open subtasks")

COMMANDS = {
    "start": Usage(
        (
            TASKS,
            value(
                "-o",
                "--owner",
                text="claim them for this owner (default: PUNCHLIST_OWNER, else the actor)",
                metavar="NAME",
                complete="name",
            ),
        ),
        ("punch start 3", "punch start 3 4 --owner ann"),
    ),
    "done": Usage(
        (
            Argument(TASKS.flags, TASKS.help, {"metavar": "ID", "nargs": "*"}, "task"),
            value("-r", "--result", text="record the result, in a sentence"),
            value(
                "--commit",
                text="complete the tasks that this git commit names, as Closes-Task: #3, 4; the commit is the result",
                metavar="COMMIT",
            ),
            _FORCE_DONE,
        ),
        ("punch done 1 2 3", 'punch done 3 --result "in docs/copy.md"', "punch done --commit HEAD"),
    ),
    "fail": Usage(
        (TASKS, value("-r", "--reason", text="record why it failed"), _FORCE),
        ('punch fail 3 --reason "no credentials"',),
    ),
    "pause": Usage((TASKS,), ("punch pause 3",)),
    "resume": Usage((TASKS,), ("punch resume 3",)),
    "reopen": Usage((TASKS,), ("punch reopen 3",)),
}


class _Step(NamedTuple):
    """One of the commands in this module.

    Attributes:
        status: The tasks' new status.
        option: Option that provides text to store.
        member: Parameter of the call that receives this text.
        only_from: Statuses in which the task must be; empty for any.
    """

    status: str
    option: str = ""
    member: str = ""
    only_from: tuple[str, ...] = ()


_STEPS = {
    "done": _Step("completed", "result", "result_summary"),
    "fail": _Step("failed", "reason", "fail_reason"),
    "pause": _Step("paused"),
    "resume": _Step("in_progress", only_from=("paused", "in_progress")),
    "reopen": _Step("pending"),
}


def _run(context: Context) -> int:
    """Set the status of tasks, several in one call. If one task is rejected, the others are still changed."""
    step = _STEPS[context.args.command]
    text = getattr(context.args, step.option) if step.option else None
    status: dict[str, Any] = {"status": step.status} | ({step.member: text} if text is not None else {})
    status |= {"force": True} if context.args.command == "done" and context.args.force else {}
    tasks = parse_task_ids(context.args.tasks) or []
    if len(tasks) > 1 or step.only_from:
        changes, code = _build_changes(context, tasks, step, status)
        return _run_many(context, changes) or code
    began = int(time.time() * 1000)
    try:
        result = _set_status(context, tasks[0], status)
    except RequestRefused as error:
        return _show_rejection(context, tasks[0], error)
    lines = [*format_step(result, context.style), *_format_earlier_completion(context, result, began)]
    return context.answer(result, lines)


def _build_changes(context: Context, tasks: list[str], step: _Step, status: dict[str, Any]) -> tuple[Changes, int]:
    """Return the changes that set the status, except for tasks that can't change to it, and the exit code."""
    changes: Changes = {}
    code = 0
    for task in tasks:
        task_changes = [{"method": "task.set_status", "task": task, **status}]
        if step.only_from:
            if (current := _fetch_task(context, task)) is None:
                code = REFUSED
                continue
            if current["status"] not in step.only_from:
                code = _reject_status(context.args.command, task, current["status"])
                continue
            if current.get("owner", context.owner) == context.owner and not current.get("fence"):
                # The claim ended when the task was paused, so an owner who resumes a task claims it again.
                task_changes.append({"method": "task.claim", **_build_claim(context, task)})
        changes[task] = task_changes
    return changes, code


def _format_earlier_completion(context: Context, result: dict[str, Any], began: int) -> list[str]:
    """Return a line with the actor and age of an earlier completion; no lines if this command completed the task."""
    task = result["task"]
    if task["status"] != "completed" or task["status_changed_at"] >= began - _SKEW_MS:
        return []
    from punchlist_apps.cli.calling.events import read_events

    by = ""
    for recorded in read_events(context):
        event = recorded["event"]
        if event.get("task") == task["id"] and event.get("to") == "completed":
            by = f" by {safe(recorded['actor'])}"
    age = format_short_duration(began - task["status_changed_at"])
    return [context.style.paint("dim", f"    was already completed{by} {age} ago")]


def run_done(context: Context) -> int:
    args = context.args
    if args.commit is not None:
        if args.tasks or args.result is not None:
            raise UsageError("--commit takes tasks and result from the commit; leave them out")
        return _complete_by_commit(context)
    if not args.tasks:
        raise UsageError("name a task, or a commit: punch done 3, punch done --commit HEAD")
    return _run(context)


def _complete_by_commit(context: Context) -> int:
    """Complete the tasks that a commit names, except those that can't be completed.

    Tasks that an agent has claimed are completed too, because agents commit as their user.
    """
    commit = read_commit(context.args.commit)
    code = 0
    for word in commit.tasks:
        try:
            for task in parse_task_ids([word]) or ():
                _complete(context, commit, task)
        except UsageError as error:
            show_error("usage", str(error))
            code = USAGE
        except RequestRefused as error:
            code = _show_rejection(context, word.removeprefix("#"), error)
    return code


def _complete(context: Context, commit: Commit, task: str) -> None:
    """Complete a task, unless this commit or a copy of it has done so before.

    A copy completes it again if the gate rejected the first one.
    """
    before = context.read("task.get", task=task)
    old = before["task"]
    if old["status"] == "completed":
        context.answer(before, [f"#{safe(task)} was already completed"])
        return
    members = {"status": "completed", "result_summary": commit.summary, "key": commit.build_key(task)}
    members |= {"force": True} if context.args.force else {}
    try:
        result = _set_status(context, task, members)
    except KeyConflict:  # the key of a copy, with another result
        result = {"version": 0}
        if old["status"] == "pending" and old.get("gate") and old.get("fail_reason"):
            members["key"] = commit.build_key(task, is_copy_new=True)
            result = _set_status(context, task, members)
    if result["version"] > old["version"]:
        context.answer(result, format_step(result, context.style))
    elif old.get("waits_for"):
        context.answer(before, format_task(old, context.style))
    else:
        reopened = f"#{safe(task)} was reopened after this commit had completed it: punch done {safe(task)}"
        context.answer(before, [reopened])


def run_start(context: Context) -> int:
    """Claim tasks for this owner, several in one call. Paused and finished tasks are reopened."""
    tasks = parse_task_ids(context.args.tasks) or []
    if len(tasks) == 1:
        try:
            result = context.change("task.claim", **_build_claim(context, tasks[0]))
            return context.answer(result, format_task(result["task"], context.style, path=result.get("path", ())))
        except RequestRefused as error:
            if isinstance(error, LeaseHeld) and error.owner == context.owner:
                result = context.read("task.get", task=tasks[0])
                return context.answer(result, format_task(result["task"], context.style))
            if not isinstance(error, IllegalTransition) or error.from_ not in _RESTARTABLE:
                return _show_rejection(context, tasks[0], error)
    changes: Changes = {}
    code = 0
    for task in tasks:
        if (task_changes := _build_start(context, task)) is None:
            code = REFUSED
        else:
            changes[task] = task_changes
    started, apply_code = _apply(context, changes)
    for task in started:
        context.answer({"task": task, "fence": task.get("fence")}, format_task(task, context.style))
    return apply_code or code


def _build_start(context: Context, task: str) -> list[dict[str, Any]] | None:
    """Return the changes that claim a task in any status for this owner.

    If it can't be claimed, show an error and return None.
    """
    if (current := _fetch_task(context, task)) is None:
        return None
    owner = current.get("owner", "")
    if current["status"] == "completed" and owner not in ("", context.owner):
        advice = f"make it pending again: punch reopen {task}"
        show_error("illegal_transition", f"#{task} was completed by {safe(owner)}", advice)
        return None
    changes: list[dict[str, Any]] = []
    if current["status"] in _RESTARTABLE:
        changes.append({"method": "task.set_status", "task": task, "status": "in_progress"})
        if owner not in ("", context.owner):
            # The claim ended when the task was paused or failed, but the owner remained.
            changes.append({"method": "task.edit", "task": task, "owner": context.owner})
    if owner != context.owner or not current.get("fence"):
        changes.append({"method": "task.claim", **_build_claim(context, task)})
    return changes


def _fetch_task(context: Context, task: str) -> dict[str, Any] | None:
    try:
        return context.read("task.get", task=task)["task"]
    except RequestRefused as error:
        show_refusal(error, context.args.command)
        return None


def _build_claim(context: Context, task: str) -> dict[str, Any]:
    return {"task": task, "owner": context.owner, "lease_ms": MAX_LEASE_MS, "keep": True}


def _run_many(context: Context, changes: Changes) -> int:
    """Change several tasks, then report unblocked and remaining tasks once for all."""
    done, code = _apply(context, changes)
    if not done:
        return code
    counts = context.read("conversation.get")["conversation"]["counts"]
    remaining = sum(counts.get(name, 0) for name in ("pending", "in_progress", "paused"))
    if context.args.json:
        for task in done:
            context.print_json({"task": task, "remaining": remaining})
        return code
    rest = {"unblocked": _find_unblocked(context, done), "next_task": None, "remaining": remaining}
    if done[-1]["status"] not in ("pending", "in_progress"):
        rest["next_task"] = context.read("task.explain").get("next")
    *_, closing = format_step({"task": done[-1], **rest}, context.style)
    context.print_lines([*(line for task in done for line in _format_task(context, task)), closing])
    return code


def _format_task(context: Context, task: dict[str, Any]) -> list[str]:
    lines = format_task(task, context.style)
    if context.args.command == "resume" and task["status"] == "pending" and task.get("attempts"):
        lines.append(context.style.paint("dim", "    its session has left: anyone can claim it"))
    return lines


def _find_unblocked(context: Context, done: list[dict[str, Any]]) -> list[str]:
    done_ids = {task["id"] for task in done}
    blocked = dict.fromkeys(id for task in done if task["status"] == "completed" for id in task.get("blocks", ()))
    tasks = [context.read("task.get", task=id)["task"] for id in blocked if id not in done_ids]
    return [task["id"] for task in tasks if not task.get("open_blockers") and task["status"] not in FINISHED]


def _apply(context: Context, changes: Changes) -> tuple[list[dict[str, Any]], int]:
    """Apply the changes in one call. If the daemon rejects a task's changes, repeat the call without that task.

    Returns:
        The changed tasks, and the exit code.
    """
    code = 0
    while changes:
        flat = [(task, change) for task, task_changes in changes.items() for change in task_changes]
        if not flat:
            break
        try:
            context.change("list.apply", changes=[change for _, change in flat])
            break
        except RequestRefused as error:
            if "change" not in error.data:
                raise
            task, change = flat[int(error.data["change"])]
            if isinstance(error, LeaseHeld) and "fence" not in change and _may_finish(context, error):
                # The fence shows the daemon that the user knows who has claimed the task.
                change["fence"] = context.read("task.get", task=task)["task"].get("fence")
                continue
            children = {child["id"] for child in error.data.get("open_children", ())}
            # A task with open subtasks can be in progress, but it can't be claimed.
            if children and change["method"] == "task.claim" and len(changes[task]) > 1:
                changes[task].remove(change)
                continue
            # If this call also changes subtasks, they must change before their parent.
            if children and children <= changes.keys():
                changes[task] = changes.pop(task)
                continue
            del changes[task]
            message = error.message.partition("): ")[2].removesuffix(" Nothing was changed.")
            code = _show_rejection(context, task, type(error)(error.kind, error.code, message, error.data))
    return [current for task in changes if (current := _fetch_task(context, task)) is not None], code


def _may_finish(context: Context, error: LeaseHeld) -> bool:
    """Return whether the user may change a task despite the claim in `error`."""
    return context.args.command != "start" and (
        error.owner == context.owner or any(getattr(context.args, name, None) for name in ("force", "commit"))
    )


def _show_rejection(context: Context, task: str, error: RequestRefused) -> int:
    if not isinstance(error, LeaseHeld):
        return show_refusal(error, context.args.command)
    advice = f"change it anyway, in your name: punch {context.args.command} {task} --force"
    if context.args.command == "start":
        advice = f"free it for others: punch reopen {task}"
        if error.data.get("reserved"):
            advice = f"free it for all: punch assign {task} --nobody"
        # The task is in progress and has an owner, but no claim.
        elif not error.data.get("expires_at"):
            advice = f"take it from {error.owner}: punch pause {task}, then punch start {task}"
    show_lease_held(error, advice)
    return REFUSED


run_fail = run_pause = run_resume = run_reopen = _run


def _set_status(context: Context, task: str, members: dict[str, Any]) -> dict[str, Any]:
    """Set the status. Tasks claimed by another owner need `--force`."""
    try:
        return context.change("task.set_status", task=task, **members)
    except LeaseHeld as error:
        if not _may_finish(context, error):
            raise
        # The fence shows the daemon that the user knows who has claimed the task.
        fence = context.read("task.get", task=task)["task"].get("fence")
        return context.read("task.set_status", task=task, fence=fence, actor=context.actor, **members)


def _reject_status(command: str, task: str, status: str) -> int:
    message = f"can't {command} #{task}, which is {status.replace('_', ' ')}"
    show_error("illegal_transition", message, f"start it: punch start {task}")
    return REFUSED
