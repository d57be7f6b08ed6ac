"""`punch daemon stop`: ends the daemon."""

import os
import time

from punchlist.cli.arguments import Usage
from punchlist.cli.context import Context
from punchlist.cli.exit_codes import NO_DAEMON
from punchlist.cli.failure import tell
from punchlist.errors import DaemonUnavailable
from punchlist.sync_link import Caller

COMMANDS = {"stop": Usage((), ("punch daemon stop",))}

_LEAVE_S = 30.0
_PAUSE_S = 0.02


def run_stop(context: Context) -> int:
    """Ask the daemon to answer what it was asked and to end, and see that it does."""
    target = context.target
    try:
        with Caller(**{**context.options, "autostart": False}) as caller:
            pid = caller.open().pid
            caller.call("daemon.shutdown")
    except DaemonUnavailable as error:
        if not error.temporary:
            raise  # somebody listens there: another user, or a daemon of another data directory
        return context.answer({"stopped": None}, ["no daemon runs"])
    deadline = time.monotonic() + _LEAVE_S
    while os.path.exists(target.socket):
        if time.monotonic() > deadline:
            tell("timed_out", f"the daemon (process {pid}) still works on what it was asked", "see: punch doctor")
            return NO_DAEMON
        time.sleep(_PAUSE_S)
    return context.answer({"stopped": pid}, [f"stopped the daemon (process {pid})"])
