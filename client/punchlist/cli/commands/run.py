"""`punch run`: claims tasks one by one and runs a command for each."""

import asyncio
import os
import signal

from punchlist.aio import connect_async
from punchlist.cli.argument_types import milliseconds, positive
from punchlist.cli.arguments import Argument, Usage, flag, value
from punchlist.cli.context import Context
from punchlist.cli.exit_codes import INTERRUPTED, REFUSED
from punchlist.cli.runner.command import Command
from punchlist.cli.runner.display import Show
from punchlist.cli.runner.lanes import Lanes, Plan
from punchlist.options import Options
from punchlist_schemas.rendezvous import data_dir, socket_path

COMMANDS = {
    "run": Usage(
        (
            Argument(
                ("argv",),
                "the command; it reads the task as JSON from its standard input and its text from PUNCHLIST_TITLE and "
                "PUNCHLIST_DESCRIPTION; {title}, {description}, {prompt} (both) and {id} are filled into its words",
                {"metavar": "COMMAND", "nargs": "+"},
                "command",
            ),
            value(
                "-j", "--jobs", text="number of commands at a time (default: 1)", metavar="N", type=positive, default=1
            ),
            flag("-k", "--keep-going", text="go on after a failure, also where the list stops"),
            value("--timeout", text="stop a command after this time: 90s, 10m", metavar="TIME", type=milliseconds),
            flag("-f", "--follow", text="wait for new tasks"),
            value("-o", "--owner", text="who takes the tasks (PUNCHLIST_OWNER, else: punch-run-PID)", metavar="NAME"),
            Argument(("--log-dir",), "where the output of each task is kept", {"metavar": "DIR"}, "file"),
        ),
        (
            "punch run -- ./do.sh",
            'punch run --timeout 10m -- claude -p "Do the task that standard input describes"',
            "punch run -j 4 --follow -- ./do.sh",
        ),
    ),
}


def run_run(context: Context) -> int:
    """Run the command for each task; exit code 1 if one of them failed."""
    return asyncio.run(_run(context))


async def _run(context: Context) -> int:
    target, args = context.target, context.args
    show = Show(context.style)
    options: Options = {"name": "punch run", "autostart": target.autostart}
    async with connect_async(**options | target.options) as client:
        conversation = client.conversation(context.conversation if args.follow else context.known, actor=args.actor)
        lanes = Lanes(conversation, _plan(context), show)
        _heed_signals(lanes, show)
        try:
            await lanes.run()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None  # whatever stopped one lane has stopped them all
        finally:
            show.close()
    if args.json:
        context.json({"completed": lanes.done, "failed": lanes.failed})
    if lanes.was_stopped:
        return INTERRUPTED
    return REFUSED if lanes.failed else 0


def _plan(context: Context) -> Plan:
    args = context.args
    data = data_dir(os.environ, args.data_dir)
    known = {
        "PUNCHLIST_CONVERSATION": context.conversation,
        "PUNCHLIST_SOCKET": socket_path(os.environ, args.socket, args.data_dir),
        "PUNCHLIST_DATA_DIR": data,
    }
    return Plan(
        command=Command(args.argv),
        owner=args.owner or os.environ.get("PUNCHLIST_OWNER") or f"punch-run-{os.getpid()}",
        log_dir=args.log_dir or os.path.join(data, "runs", context.conversation),
        env=known,
        jobs=args.jobs,
        keep_going=args.keep_going,
        follow=args.follow,
        timeout_ms=args.timeout,
    )


def _heed_signals(lanes: Lanes, show: Show) -> None:
    """The first interrupt lets what runs come to its end, the second one stops it; SIGTERM stops at once."""
    interrupts = 0

    def on_interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1:
            show.note("finishing what runs; once more stops it and gives it back")
            lanes.finish()
        else:
            lanes.stop()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    loop.add_signal_handler(signal.SIGTERM, lanes.stop)
