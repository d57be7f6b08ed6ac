"""Commands that move tasks through their life, by one table."""

from __future__ import annotations

import time

from punchlist.cli.arguments import TASKS, Usage, flag, value
from punchlist.cli.context import Context, ids
from punchlist.cli.earlier import is_old_completion
from punchlist.cli.exit_codes import REFUSED
from punchlist.cli.failure import show_error, show_refusal
from punchlist.cli.person import STARTED_MS
from punchlist.cli.render import since, step_lines, task_lines
from punchlist.errors import IllegalTransition, LeaseHeld, RequestRefused
from punchlist.text import safe

_GO_ON = ("paused", "completed", "failed")
"""From these a task has to be put back to work before it can be claimed."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORCE = flag("--force", text="also change tasks that somebody else has claimed")

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
        (TASKS, value("-r", "--result", text="what came of it, in a sentence"), _FORCE),
        ("punch done 1 2 3", 'punch done 3 --result "in docs/copy.md"'),
    ),
    "fail": Usage(
        (TASKS, value("-r", "--reason", text="why it failed"), _FORCE), ('punch fail 3 --reason "no credentials"',)
    ),
    "pause": Usage((TASKS,), ("punch pause 3",)),
    "resume": Usage((TASKS,), ("punch resume 3",)),
    "reopen": Usage((TASKS,), ("punch reopen 3",)),
}


class _Step:
    """The status to set, the option whose text goes with it, and where alone the word makes sense (anywhere)."""

    def __init__(self, status: str, option: str = "", member: str = "", only_from: tuple[str, ...] = ()) -> None:
        self.status = status
        self.option = option
        self.member = member
        self.only_from = only_from


_STEPS = {
    "done": _Step("completed", "result", "result_summary"),
    "fail": _Step("failed", "reason", "fail_reason"),
    "pause": _Step("paused"),
    "resume": _Step("in_progress", only_from=("paused", "in_progress")),
    "reopen": _Step("pending"),
}


def _run(context: Context) -> int:
    """Set the status of each task; one that is refused does not keep the others from being tried."""
    step = _STEPS[context.args.command]
    extra = {step.member: getattr(context.args, step.option)} if step.option else {}
    code = 0
    began = int(time.time() * 1000)
    for task in ids(context.args.tasks) or ():
        try:
            if step.only_from and (state := context.ask("task.get", task=task)["task"]["status"]) not in step.only_from:
                code = _not_from(context.args.command, task, state)
                continue
            result = _set(context, task, {"status": step.status, **extra})
            if context.args.command == "resume" and result["task"].get("owner", context.owner) == context.owner:
                # The claim ended with the pause: who goes on with a task of theirs has it for themselves again.
                result["task"] = _claimed(context, task)["task"]
        except LeaseHeld as error:
            code = REFUSED
            way = f"punch {context.args.command} {task} --force does it all the same, in your name"
            show_error(error.kind, error.message, way)
        except RequestRefused as error:
            code = show_refusal(error, context.args.command)
        else:
            context.answer(result, [*step_lines(result, context.style), *_completed_before(context, result, began)])
    return code


def _completed_before(context: Context, result: dict[str, Any], began: int) -> list[str]:
    """Who completed a task before this command, and when; nothing if the command did."""
    task = result["task"]
    if not is_old_completion(result, began):
        return []
    from punchlist.cli.events import events

    who = ""
    for recorded in events(context):
        event = recorded["event"]
        if event.get("task") == task["id"] and event.get("to") == "completed":
            who = f" by {safe(recorded['actor'])}"
    ago = since(began - task["status_changed_at"])
    return [context.style.paint("dim", f"    was completed already{who} {ago} ago")]


def run_start(context: Context) -> int:
    """Claim each task for this owner; what is paused or finished is put back to work."""
    code = 0
    for task in ids(context.args.tasks) or ():
        try:
            result = _claimed(context, task)
        except LeaseHeld as error:
            code = REFUSED
            way = f"punch queue release {task} --owner {error.owner} gives it back in their name"
            if error.data.get("reserved"):
                way = f"punch assign {task} --nobody frees it for all"
            elif not error.data.get("expires_at"):  # it was put back to work in their name, and nobody claimed it
                way = f"punch pause {task} takes it away from {error.owner}; punch start {task} takes it then"
            show_error(error.kind, error.message, way)
        except RequestRefused as error:
            code = show_refusal(error, "start")
        else:
            context.answer(result, task_lines(result["task"], context.style))
    return code


def _claimed(context: Context, task: str) -> dict[str, Any]:
    """Claim a task; one that this owner has already is answered as it is."""
    how = {"owner": context.owner, "lease_ms": STARTED_MS, "keep": True}
    try:
        return context.change("task.claim", task=task, **how)
    except IllegalTransition as error:
        if error.from_ not in _GO_ON:
            raise
        now = context.change("task.set_status", task=task, status="in_progress")["task"]
        if now.get("owner", context.owner) != context.owner:
            # The claim ended when the task was paused or finished: who starts it now has it.
            context.change("task.edit", task=task, owner=context.owner)
        return context.change("task.claim", task=task, **how)
    except LeaseHeld as error:
        if error.owner != context.owner:
            raise
        return context.ask("task.get", task=task)


run_done = run_fail = run_pause = run_resume = run_reopen = _run


def _set(context: Context, task: str, members: dict[str, Any]) -> dict[str, Any]:
    """Set the status. What somebody else has claimed needs `--force`; what this person has claimed does not.

    Raises:
        LeaseHeld: Somebody else has the task.
    """
    try:
        return context.change("task.set_status", task=task, **members)
    except LeaseHeld as error:
        person = context.owner
        if error.owner != person and not getattr(context.args, "force", False):
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
