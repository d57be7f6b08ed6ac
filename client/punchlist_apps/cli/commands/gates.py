"""`punch approve` and `punch gate`: the approvals and checks that a task needs before it counts as completed."""

import asyncio
import os
import signal
from typing import Any

from punchlist.base.text import safe
from punchlist.errors import RequestRefused
from punchlist_apps.cli.calling.context import Context, parse_task_ids
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_refusal
from punchlist_apps.common.terminal.argument_types import parse_duration
from punchlist_apps.common.terminal.render import format_details, format_step, format_task

COMMANDS = {
    "approve": Usage(
        (
            Argument(
                ("tasks",),
                "the tasks to approve or reject (default: list those that wait)",
                {"metavar": "ID", "nargs": "*"},
                "task",
            ),
            value("-n", "--note", text="add this note to the task"),
            value("-r", "--reject", text="reject: make the task pending again, with this reason", metavar="WHY"),
            YES,
        ),
        ("punch approve", "punch approve 3", 'punch approve 3 --reject "the tests are missing"'),
    ),
    "gate": Usage(
        (
            Argument(("check",), "the name of the check, as in --gate check:NAME", {"metavar": "CHECK"}),
            Argument(
                ("argv",),
                "the command; it gets the task like a command of punch run, and passes it with exit code 0",
                {"metavar": "COMMAND", "nargs": "+"},
                "command",
            ),
            value(
                "--timeout",
                text="fail a check that takes longer (default: 10m)",
                metavar="TIME",
                type=parse_duration,
                default=600_000,
            ),
            flag("--once", text="check the tasks that wait now, and exit"),
            value("--task", text="check only these tasks: 3, 1,2 or 3-7 (default: all that wait)", metavar="ID"),
        ),
        (
            "punch gate tests -- make test",
            "punch gate tests --once -- ./check.sh",
            "punch gate tests --once --task 3 -- true",
        ),
    ),
}


def run_approve(context: Context) -> int:
    """Approve or reject tasks. If none are named, list the tasks that are waiting for approval."""
    args = context.args
    tasks = parse_task_ids(args.tasks)
    if tasks is None:
        result = context.read("task.list", waits_for="yes")
        lines = [line for task in result["tasks"] for line in format_task(task, context.style)]
        return context.answer(result, lines or ["no task waits for approval"])
    code = 0
    for id in tasks:
        try:
            task = context.read("task.get", task=id)["task"]
            if not _confirm_approval(context, task):
                context.note(f"#{safe(id)} still waits for approval")
                code = REFUSED
                continue
            verdict = {"accept": False, "text": args.reject} if args.reject is not None else {"text": args.note}
            result = context.change("task.approve", task=id, version=task["version"], **verdict)
        except RequestRefused as error:
            code = show_refusal(error, "approve")
        else:
            was_completed = task["status"] == "completed"
            lines = [f"#{safe(id)} was already completed"] if was_completed else format_step(result, context.style)
            context.answer(result, lines)
    return code


def _confirm_approval(context: Context, task: dict[str, Any]) -> bool:
    """Show a task's result and ask for approval."""
    if context.args.reject is not None or context.args.yes or task.get("waits_for") != "yes":
        return True
    if not context.can_ask:
        raise UsageError("approve needs a person at a terminal; if you are one, add --yes")
    context.print_lines(format_details(task, context.style))
    return context.confirm(f"Does #{safe(task['id'])} count as completed?")


def run_gate(context: Context) -> int:
    """Run a check for each task that waits for it. With `--once`, return exit code 1 if a check failed."""
    from punchlist_apps.cli.running.guard import start_guard

    _ = context.caller
    with start_guard():
        return asyncio.run(_run_gate(context))


async def _run_gate(context: Context) -> int:
    from punchlist.clients.aio import connect_async
    from punchlist_apps.cli.running import orphans
    from punchlist_apps.cli.running.checks import Checks
    from punchlist_apps.cli.running.command import Command
    from punchlist_apps.cli.running.display import Display

    args = context.args
    show = Display(context.style)
    command = Command(args.argv)
    tasks = None if args.task is None else parse_task_ids([args.task])
    actor = args.actor or f"check:{args.check}"
    orphans.adopt()
    async with connect_async(**context.options_of("punch gate")) as client:
        conversation = client.conversation(context.conversation, actor=actor)
        env = {**os.environ, "PUNCHLIST_CONVERSATION": context.conversation}
        checks = Checks(conversation, args.check, command, env=env, timeout_ms=args.timeout, display=show, tasks=tasks)
        show.on_write_error = checks.stop
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, checks.stop)
        try:
            await checks.run(once=args.once)
        finally:
            show.close()
    if show.write_error is not None:
        raise show.write_error
    if args.json:
        context.print_json({"passed": checks.passed, "failed": checks.failed})
    return REFUSED if checks.failed and args.once else 0
