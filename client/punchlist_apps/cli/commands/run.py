"""`punch run`: claim ready tasks and run a command for each."""

import asyncio
import os
import signal

from punchlist.clients.aio import connect_async
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag, owner_option, value
from punchlist_apps.cli.printing.exit_codes import INTERRUPTED, REFUSED
from punchlist_apps.cli.running import orphans
from punchlist_apps.cli.running.command import Command
from punchlist_apps.cli.running.display import Display
from punchlist_apps.cli.running.guard import start_guard
from punchlist_apps.cli.running.lanes import Lanes, Plan
from punchlist_apps.cli.running.notify import Notifier
from punchlist_apps.common.terminal.argument_types import (
    parse_duration,
    parse_group_limit,
    parse_positive,
    parse_whole_number,
)
from punchlist_schemas.rendezvous import data_dir, socket_path

COMMANDS = {
    "run": Usage(
        (
            Argument(
                ("argv",),
                "the command; it reads the task as JSON; {title}, {description}, {prompt} and {id} are filled in",
                {"metavar": "COMMAND", "nargs": "+"},
                "command",
            ),
            value(
                "-j",
                "--jobs",
                text="run N commands at a time (default: 1)",
                metavar="N",
                type=parse_positive,
                default=1,
            ),
            flag("-k", "--keep-going", text="continue after a failure, even if the list stops at failures"),
            value(
                "--timeout",
                text="stop a command after this time, such as 90s or 10m",
                metavar="TIME",
                type=parse_duration,
            ),
            flag("-f", "--follow", text="wait for new tasks when none is left"),
            value(
                "--group",
                text="run N more commands at a time for tasks with this label only; repeatable",
                metavar="LABEL=N",
                type=parse_group_limit,
                action="append",
            ),
            value(
                "--retries",
                text="retry a task up to N times when its command fails (default: 0)",
                metavar="N",
                type=parse_whole_number,
            ),
            value(
                "--retry-delay",
                text="wait this long before the first retry, then double it up to 1h (default: 10s)",
                metavar="TIME",
                type=parse_duration,
                default=10_000,
            ),
            flag("--restart-failed", text="first make all failed tasks pending again"),
            value(
                "--notify",
                text="run this command, with JSON, when a task fails or waits for approval, and at the end",
            ),
            value("--notify-url", text="post the same JSON to this address", metavar="URL"),
            owner_option("claim tasks for this owner (default: PUNCHLIST_OWNER, else punch-run-PID)"),
            Argument(
                ("--log-dir",), "write the output of each task to a file in this directory", {"metavar": "DIR"}, "file"
            ),
        ),
        (
            "punch run -- ./do.sh",
            'punch run --timeout 10m -- claude -p "Do the task that standard input describes"',
            "punch run -j 4 --follow -- ./do.sh",
            "punch run --retries 3 --retry-delay 30s --restart-failed -- ./flaky.sh",
            "punch run -j 8 --group gpu=1 --notify ./tell-me.sh -- ./train.sh",
        ),
    ),
}


def run_run(context: Context) -> int:
    """Run the command for each task. Return exit code 1 if a task failed."""
    _ = context.caller
    with start_guard():
        return asyncio.run(_run(context))


async def _run(context: Context) -> int:
    args = context.args
    show = Display(context.style)
    async with connect_async(**context.options_of("punch run")) as client:
        conversation = client.conversation(
            context.conversation if args.follow else context.existing_conversation, actor=args.actor
        )
        plan = _build_plan(context)
        notifier = Notifier(args.notify, args.notify_url, {**os.environ, **plan.env}, show)
        orphans.adopt()
        lanes = Lanes(conversation, plan, show, notifier)
        show.on_write_error = lanes.finish
        _handle_signals(lanes, show)
        try:
            await lanes.run()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None  # all lanes were stopped by the same cause
        finally:
            show.close()
    if show.write_error is not None:
        raise show.write_error
    if args.json:
        context.print_json({"completed": lanes.done, "failed": len(lanes.failed), "waiting": lanes.waiting})
    if lanes.is_stopped:
        return INTERRUPTED
    return REFUSED if lanes.failed else 0


def _build_plan(context: Context) -> Plan:
    args = context.args
    data = data_dir(os.environ, args.data_dir)
    env = {
        "PUNCHLIST_CONVERSATION": context.conversation,
        "PUNCHLIST_SOCKET": socket_path(os.environ, args.socket, args.data_dir),
        "PUNCHLIST_DATA_DIR": data,
    }
    return Plan(
        command=Command(args.argv),
        owner=args.owner or os.environ.get("PUNCHLIST_OWNER") or f"punch-run-{os.getpid()}",
        log_dir=args.log_dir or os.path.join(data, "runs", context.conversation),
        env=env,
        jobs=args.jobs,
        keep_going=args.keep_going,
        follow=args.follow,
        timeout_ms=args.timeout,
        groups=dict(args.group or ()),
        retries=args.retries or 0,
        retry_ms=args.retry_delay,
        restart_failed=args.restart_failed,
    )


def _handle_signals(lanes: Lanes, show: Display) -> None:
    """Drain on the first interrupt. Stop on the second, or on SIGTERM."""
    interrupts = 0

    def on_interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1:
            show.note("waiting for running commands; Ctrl-C again stops them and releases their tasks")
            lanes.finish()
        else:
            lanes.stop()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    loop.add_signal_handler(signal.SIGTERM, lanes.stop)
