"""Undo: the newest calls are taken back by new events; nothing is erased."""

from collections.abc import Generator

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.inverse import Undoing, is_undoable, take_back
from punchlistd.domain.lookback import Lookback
from punchlistd.domain.rejections import conversation_not_found
from punchlistd.domain.state import State

NO_CALL = (0,)
"""What an undo records as undone that took back nothing but parts of calls: no event has version 0."""


def undo(state: State, params: p.ListUndo, command: Command) -> Decision | Rejection:
    """list.undo. What follows was worked out from the history by `take_back_calls`."""
    if not state.exists:
        return conversation_not_found(params.conversation)
    return command.undo or Decision()


def whose(params: p.ListUndo) -> str | None:
    """Whose calls an undo takes back; None: anybody's. Before there was `of`, `actor` said it."""
    return params.actor if params.of is None else params.of


def wanted(params: p.ListUndo) -> int | None:
    """How many calls an undo takes back; None: all of them."""
    return 1 if params.count is None and whose(params) is None else params.count


def take_back_calls(past: Lookback, params: p.ListUndo, at: int) -> Generator[None, None, Decision | None]:
    """Take back the newest calls of a history, newest first, in a copy of its state.

    Calls that were undone, that undid, or that left nothing to undo are passed over. It pauses after each change, and
    in taking back a clear after each task.

    Returns:
        What follows; None if there may be further calls to take back that `past` does not hold.
    """
    run = Undoing(past.state.copy(), at, past.touched, past.returned)
    last_clear, count = past.last_clear, wanted(params)
    finished: list[int] = []
    found = 0
    for version, changes in reversed(past.calls.items()):
        if found == count:
            break
        message = len(run.lines)
        run.complete = True
        for change in reversed(changes):
            if change.version > last_clear or isinstance(change.event, ConversationConfigured):
                yield from take_back(run, change)
            elif is_undoable(change.event):
                run.skip(change, "the list was cleared since")
            yield
        if len(run.lines) > message:
            found += 1
            if run.complete:
                finished.append(version)
    if found != count and past.is_cut:
        return None
    if params.preview or not run.events:
        return Decision(lines=tuple(run.lines))
    return Decision(tuple(run.events), tuple(finished) or NO_CALL, tuple(run.lines))
