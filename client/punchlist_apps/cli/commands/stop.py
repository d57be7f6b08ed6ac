"""`punch daemon stop` and `punch daemon start`."""

from punchlist.errors import TimedOut
from punchlist_apps.cli.calling import warm_process
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing.supervisor import STOP_TIMEOUT_S, start, stop
from punchlist_apps.cli.parsing.arguments import Usage
from punchlist_apps.cli.printing.exit_codes import NO_DAEMON
from punchlist_apps.cli.printing.failure import show_error
from punchlist_apps.relay import control
from punchlist_apps.relay.dialing import find_path
from punchlist_apps.relay.relay import Unavailable

COMMANDS = {
    "stop": Usage((), ("punch daemon stop",)),
    "start": Usage((), ("punch daemon start",)),
}


def run_stop(context: Context) -> int:
    """Stop the worker, whose sessions would otherwise call the daemon, and the daemon."""
    target = context.target.with_autostart(False)
    warm_process.stop()
    try:
        control.stop(find_path(target.socket, target.data_dir), STOP_TIMEOUT_S)
    except Unavailable as error:
        context.note(f"punch: {error}")
    try:
        pid = stop(target, context.options)
    except TimedOut as error:
        pid = target.pid()
        show_error(
            "timed_out", str(error), f"kill it, which loses no acknowledged change: kill -9 {pid}" if pid else ""
        )
        return NO_DAEMON
    if pid is None:
        return context.answer({"stopped": None}, ["no daemon is running"])
    line = f"stopped the daemon (process {pid}); punch daemon start or any other new command starts it again"
    return context.answer({"stopped": pid}, [line])


def run_start(context: Context) -> int:
    hello = start(context.target, context.options)
    line = f"the daemon is running: process {hello.pid}, {hello.build or hello.version}, on {context.target.socket}"
    return context.answer({"pid": hello.pid, "build": hello.build, "socket": context.target.socket}, [line])
