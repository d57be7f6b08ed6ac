"""Commands that move tasks through their life, by one table."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from punchlist.base.text import safe
from punchlist.errors import IllegalTransition, LeaseHeld, RequestRefused
from punchlist_apps.cli.calling.claims import STARTED_MS
from punchlist_apps.cli.calling.context import Context, ids
from punchlist_apps.cli.parsing.arguments import TASKS, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import show_error, show_held, show_refusal
from punchlist_apps.common.terminal.render import FINISHED, format_short_duration, format_step, format_task

_GO_ON = ("paused", "completed", "failed")
"""From these a task has to be put back to work before it can be claimed."""

Changes = dict[str, list[dict[str, Any]]]
"""Task → the changes of one `list.apply` that it gets."""

_SKEW_MS = 2_000
"""Tolerance for clocks of other machines and slow starts, in milliseconds."""

_FORCE = flag("--force", text="also change tasks that somebody else has claimed")
_FORCE_DONE = flag("--force", text="also complete tasks that somebody else has claimed, or that have open tasks")

COMMANDS = {
    "start": Usage(
        (
            TASKS,
            value(
                "-o",
                "--owner",
                text="who works on them (default: PUNCHLIST_OWNER, else the actor)",
                metavar="NAME",
                complete="name",
            ),
        ),
        ("punch start 3", "punch start 3 4 --owner ann"),
    ),
    "done": Usage(
        (TASKS, value("-r", "--result", text="what came of it, in a sentence"), _FORCE_DONE),
        ("punch done 1 2 3", 'punch done 3 --result "in docs/copy.md"'),
    ),
    "fail": Usage(
        (TASKS, value("-r", "--reason", text="why it failed"), _FORCE), ('punch fail 3 --reason "no credentials"',)
    ),
    "pause": Usage((TASKS,), ("punch pause 3",)),
    "resume": Usage((TASKS,), ("punch resume 3",)),
    "reopen": Usage((TASKS,), ("punch reopen 3",)),
}


class _Step(NamedTuple):
    """The status to set, the option whose text goes with it, and where alone the word makes sense (anywhere)."""

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
    """Set the status of each task, several in one call. A rejected one doesn't stop the others."""
    step = _STEPS[context.args.command]
    text = getattr(context.args, step.option) if step.option else None
    status: dict[str, Any] = {"status": step.status} | ({step.member: text} if text is not None else {})
    status |= {"force": True} if context.args.command == "done" and context.args.force else {}
    tasks = ids(context.args.tasks) or []
    if len(tasks) > 1 or step.only_from:
        wanted, code = _changes(context, tasks, step, status)
        return _run_many(context, wanted) or code
    began = int(time.time() * 1000)
    try:
        result = _set(context, tasks[0], status)
    except RequestRefused as error:
        return _show(context, tasks[0], error)
    return context.answer(result, [*format_step(result, context.style), *_completed_before(context, result, began)])


def _changes(context: Context, tasks: list[str], step: _Step, status: dict[str, Any]) -> tuple[Changes, int]:
    """Return the changes that take tasks to a status, and the exit code if one of them can't go there."""
    wanted: Changes = {}
    code = 0
    for task in tasks:
        changes = [{"method": "task.set_status", "task": task, **status}]
        if step.only_from:
            if (now := _now(context, task)) is None:
                code = REFUSED
                continue
            if now["status"] not in step.only_from:
                code = _not_from(context.args.command, task, now["status"])
                continue
            if now.get("owner", context.owner) == context.owner and not now.get("fence"):
                # The claim ended with the pause: who goes on with a task of theirs has it for themselves again.
                changes.append({"method": "task.claim", **_claim(context, task)})
        wanted[task] = changes
    return wanted, code


def _completed_before(context: Context, result: dict[str, Any], began: int) -> list[str]:
    """Return a line with who completed a task before this command, and when; none if the command did."""
    task = result["task"]
    if task["status"] != "completed" or task["status_changed_at"] >= began - _SKEW_MS:
        return []
    from punchlist_apps.cli.calling.events import events

    who = ""
    for recorded in events(context):
        event = recorded["event"]
        if event.get("task") == task["id"] and event.get("to") == "completed":
            who = f" by {safe(recorded['actor'])}"
    ago = format_short_duration(began - task["status_changed_at"])
    return [context.style.paint("dim", f"    was completed already{who} {ago} ago")]


def run_start(context: Context) -> int:
    """Claim each task for this owner, several in one call. Paused and finished tasks are reopened."""
    tasks = ids(context.args.tasks) or []
    wanted: Changes = {}
    code = 0
    if len(tasks) == 1:
        try:
            result = context.change("task.claim", **_claim(context, tasks[0]))
            return context.answer(result, format_task(result["task"], context.style, path=result.get("path", ())))
        except RequestRefused as error:
            if isinstance(error, LeaseHeld) and error.owner == context.owner:
                result = context.ask("task.get", task=tasks[0])
                return context.answer(result, format_task(result["task"], context.style))
            if not isinstance(error, IllegalTransition) or error.from_ not in _GO_ON:
                return _show(context, tasks[0], error)
    for task in tasks:
        if (changes := _changes_to_start(context, task)) is None:
            code = REFUSED
        else:
            wanted[task] = changes
    done, refused = _apply(context, wanted)
    for task in done:
        context.answer({"task": task, "fence": task.get("fence")}, format_task(task, context.style))
    return refused or code


def _changes_to_start(context: Context, task: str) -> list[dict[str, Any]] | None:
    """Return the changes that give a task in any state to this owner; None after showing a refusal."""
    if (now := _now(context, task)) is None:
        return None
    owner = now.get("owner", "")
    if now["status"] == "completed" and owner not in ("", context.owner):
        way = f"punch reopen {task} makes it pending again"
        show_error("illegal_transition", f"#{task} was completed by {safe(owner)}", way)
        return None
    changes: list[dict[str, Any]] = []
    if now["status"] in _GO_ON:
        changes.append({"method": "task.set_status", "task": task, "status": "in_progress"})
        if owner not in ("", context.owner):
            # The claim ended when the task was paused or failed: who starts it now has it.
            changes.append({"method": "task.edit", "task": task, "owner": context.owner})
    if owner != context.owner or not now.get("fence"):
        changes.append({"method": "task.claim", **_claim(context, task)})
    return changes


def _now(context: Context, task: str) -> dict[str, Any] | None:
    try:
        return context.ask("task.get", task=task)["task"]
    except RequestRefused as error:
        show_refusal(error, context.args.command)
        return None


def _claim(context: Context, task: str) -> dict[str, Any]:
    return {"task": task, "owner": context.owner, "lease_ms": STARTED_MS, "keep": True}


def _run_many(context: Context, wanted: Changes) -> int:
    """Change several tasks, and report the consequences for the others once."""
    done, code = _apply(context, wanted)
    if not done:
        return code
    counts = context.ask("conversation.get")["conversation"]["counts"]
    remaining = sum(counts.get(name, 0) for name in ("pending", "in_progress", "paused"))
    if context.args.json:
        for task in done:
            context.json({"task": task, "remaining": remaining})
        return code
    rest = {"unblocked": _unblocked(context, done), "next_task": None, "remaining": remaining}
    if done[-1]["status"] not in ("pending", "in_progress"):
        rest["next_task"] = context.ask("task.explain").get("next")
    *_, closing = format_step({"task": done[-1], **rest}, context.style)
    context.lines([*(line for task in done for line in _lines(context, task)), closing])
    return code


def _lines(context: Context, task: dict[str, Any]) -> list[str]:
    lines = format_task(task, context.style)
    if context.args.command == "resume" and task["status"] == "pending" and task.get("attempts"):
        lines.append(context.style.paint("dim", "    the session that had it has left: it is free for all"))
    return lines


def _unblocked(context: Context, done: list[dict[str, Any]]) -> list[str]:
    ids = {task["id"] for task in done}
    waited = dict.fromkeys(one for task in done if task["status"] == "completed" for one in task.get("blocks", ()))
    tasks = [context.ask("task.get", task=one)["task"] for one in waited if one not in ids]
    return [task["id"] for task in tasks if not task.get("open_blockers") and task["status"] not in FINISHED]


def _apply(context: Context, wanted: Changes) -> tuple[list[dict[str, Any]], int]:
    """Make the changes of tasks in one call, without those of tasks for which they are refused.

    Returns:
        The tasks as they are now, and the exit code.
    """
    code = 0
    while wanted:
        flat: list[tuple[str, dict[str, Any]]] = [(task, one) for task, changes in wanted.items() for one in changes]
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
                # The number of the claim shows the daemon that this person knows who has the task.
                change["fence"] = context.ask("task.get", task=task)["task"].get("fence")
                continue
            children = {one["id"] for one in error.data.get("open_children", ())}
            if children and change["method"] == "task.claim" and len(wanted[task]) > 1:
                wanted[task].remove(change)  # what holds open tasks goes on without a claim
                continue
            if children and children <= wanted.keys():
                wanted[task] = wanted.pop(task)  # once those are done
                continue
            del wanted[task]
            message = error.message.partition("): ")[2].removesuffix(" Nothing was changed.")
            code = _show(context, task, type(error)(error.kind, error.code, message, error.data))
    return [now for task in wanted if (now := _now(context, task)) is not None], code


def _may_finish(context: Context, error: LeaseHeld) -> bool:
    """Return whether this person may finish what the owner in a refusal has claimed."""
    return context.args.command != "start" and (error.owner == context.owner or getattr(context.args, "force", False))


def _show(context: Context, task: str, error: RequestRefused) -> int:
    if not isinstance(error, LeaseHeld):
        return show_refusal(error, context.args.command)
    way = f"punch {context.args.command} {task} --force does it all the same, in your name"
    if context.args.command == "start":
        way = f"punch reopen {task} frees it for others"
        if error.data.get("reserved"):
            way = f"punch assign {task} --nobody frees it for all"
        elif not error.data.get("expires_at"):  # it was put back to work in their name, and nobody claimed it
            way = f"punch pause {task} takes it away from {error.owner}; punch start {task} takes it then"
    show_held(error, way)
    return REFUSED


run_done = run_fail = run_pause = run_resume = run_reopen = _run


def _set(context: Context, task: str, members: dict[str, Any]) -> dict[str, Any]:
    """Set the status. What somebody else has claimed needs `--force`; what this person has claimed does not."""
    try:
        return context.change("task.set_status", task=task, **members)
    except LeaseHeld as error:
        if not _may_finish(context, error):
            raise
        # The number of the claim shows the daemon that this person knows who has the task.
        fence = context.ask("task.get", task=task)["task"].get("fence")
        return context.ask("task.set_status", task=task, fence=fence, actor=context.actor, **members)


def _not_from(command: str, task: str, state: str) -> int:
    shown = state.replace("_", " ")
    show_error(
        "illegal_transition", f"#{task} is {shown}, there is nothing to {command}", f"begin it: punch start {task}"
    )
    return REFUSED
