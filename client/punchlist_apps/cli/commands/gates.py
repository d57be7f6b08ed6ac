"""`punch approve` and `punch gate`: a person's yes, and the checks that a task needs before it counts as completed."""

import asyncio
import os
import signal
from typing import Any

from punchlist.base.text import safe
from punchlist.errors import RequestRefused
from punchlist_apps.cli.calling.context import Context, ids
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
                "the tasks to answer for (default: show those that wait)",
                {"metavar": "ID", "nargs": "*"},
                "task",
            ),
            value("-n", "--note", text="add this note to the task"),
            value("-r", "--reject", text="say no: the task becomes pending again, with this reason", metavar="WHY"),
            YES,
        ),
        ("punch approve", "punch approve 3", 'punch approve 3 --reject "the tests are missing"'),
    ),
    "gate": Usage(
        (
            Argument(("check",), "the name of the check, as in --gate check:NAME", {"metavar": "CHECK"}),
            Argument(
                ("argv",),
                "the command; it gets the task as a command of punch run does, and exit code 0 passes it",
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
            flag("--once", text="check the tasks that wait now, and end"),
        ),
        ("punch gate tests -- make test", "punch gate tests --once -- ./check.sh"),
    ),
}


def run_approve(context: Context) -> int:
    """Say yes or no to tasks that wait for it; without tasks show which do."""
    args = context.args
    wanted = ids(args.tasks)
    if wanted is None:
        result = context.ask("task.list", waits_for="yes")
        lines = [line for task in result["tasks"] for line in format_task(task, context.style)]
        return context.answer(result, lines or ["nothing waits for a yes"])
    code = 0
    for name in wanted:
        try:
            task = context.ask("task.get", task=name)["task"]
            if not _agreed(context, task):
                context.note(f"#{safe(name)} still waits")
                code = REFUSED
                continue
            how = {"accept": False, "text": args.reject} if args.reject is not None else {"text": args.note}
            result = context.change("task.approve", task=name, version=task["version"], **how)
        except RequestRefused as error:
            code = show_refusal(error, "approve")
        else:
            was = (
                [f"#{safe(name)} was completed already: it waited for no yes"] if task["status"] == "completed" else []
            )
            context.answer(result, was or format_step(result, context.style))
    return code


def _agreed(context: Context, task: dict[str, Any]) -> bool:
    """Whoever says yes at a terminal has seen what came of the task."""
    if context.args.reject is not None or context.args.yes or task.get("waits_for") != "yes":
        return True
    if not context.can_ask:
        raise UsageError("approve is for a person at a terminal: add --yes if you are one")
    context.lines(format_details(task, context.style))
    return context.confirmed(f"Does #{safe(task['id'])} count as completed?")


def run_gate(context: Context) -> int:
    """Run a check for each task that waits for it; exit code 1 if one of them did not pass."""
    from punchlist_apps.cli.running.guard import guarded

    _ = context.caller
    with guarded():
        return asyncio.run(_gate(context))


async def _gate(context: Context) -> int:
    from punchlist.clients.aio import connect_async
    from punchlist_apps.cli.running import orphans
    from punchlist_apps.cli.running.checks import Checks
    from punchlist_apps.cli.running.command import Command
    from punchlist_apps.cli.running.display import Show

    args = context.args
    show = Show(context.style)
    command = Command(args.argv)
    actor = args.actor or f"check:{args.check}"
    orphans.adopt()
    async with connect_async(**context.options_of("punch gate")) as client:
        conversation = client.conversation(context.conversation, actor=actor)
        env = {**os.environ, "PUNCHLIST_CONVERSATION": context.conversation}
        checks = Checks(conversation, args.check, command, env=env, timeout_ms=args.timeout, show=show)
        show.on_lost = checks.stop
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, checks.stop)
        try:
            await checks.run(once=args.once)
        finally:
            show.close()
    if show.lost is not None:
        raise show.lost
    if args.json:
        context.json({"passed": checks.passed, "failed": checks.failed})
    return REFUSED if checks.failed and args.once else 0
