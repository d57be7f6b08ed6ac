"""The door into the engine: stamps a typed call with time, actor and ids. The only user of the clock and of ids."""

import os
import time

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import MessageAppend, Mutation
from punchlistd.domain.commands import Command
from punchlistd.engine.access import foreign_owner
from punchlistd.engine.calls import Caller


def now_ms() -> int:
    """The wall clock in milliseconds; only a label, never what decides an order."""
    return time.time_ns() // 1_000_000


def stamp(caller: Caller, params: Mutation) -> Command | Rejection:
    """Turn a mutation into a command, or refuse one that reaches outside the caller's user scope."""
    if caller.user is not None and (refused := foreign_owner(caller.user, params)) is not None:
        return refused
    message = f"m{os.urandom(12).hex()}" if type(params) is MessageAppend and params.message is None else ""
    return Command(params, now_ms(), params.actor or caller.actor, caller.user, message)
