"""Undo: the newest calls are taken back by new events; nothing is erased."""

from collections.abc import Sequence

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationConfigured, ListCleared, TaskAdded
from punchlistd.domain.commands import Command, Decision, Group
from punchlistd.domain.inverse import Undoing, is_undoable, take_back
from punchlistd.domain.refusals import conversation_not_found
from punchlistd.domain.state import State
from punchlistd.domain.trace import named, trace

NO_CALL = (0,)
"""What an undo records as undone that took back nothing but parts of calls: no event has version 0."""


def undo(state: State, params: p.ListUndo, command: Command) -> Decision | Rejection:
    """list.undo. Calls that were undone, that undid, or that left nothing to undo are passed over."""
    if not state.exists:
        return conversation_not_found(params.conversation)
    history = command.history
    undone = {version for group in history for version in group.undoes}
    passed: set[int] = set()
    while True:
        chosen = _chosen(history, params, undone, passed)
        run, idle, finished = _taken_back(params, command, undone, chosen, passed)
        if not idle:
            break
        passed.update(idle)
    if params.preview or not run.events:
        return Decision(lines=tuple(run.lines))
    return Decision(tuple(run.events), tuple(finished) or NO_CALL, tuple(run.lines))


def _taken_back(
    params: p.ListUndo, command: Command, undone: set[int], chosen: Sequence[int], passed: set[int]
) -> tuple[Undoing, list[int], list[int]]:
    """The run over the chosen calls, those of them that it said nothing about, and the versions of the undone ones."""
    history = command.history
    last_clear = _last_standing_clear(history, undone, passed.union(chosen))
    state, changes = trace(params.conversation, history, chosen)
    run = Undoing(state, command.at, _touched_by_others(history, params, undone), _returned(history))
    idle: list[int] = []
    finished: list[int] = []
    for index, group in zip(reversed(chosen), reversed(changes), strict=True):
        said = len(run.lines)
        run.complete = True
        for change in reversed(group):
            if change.version > last_clear or isinstance(change.event, ConversationConfigured):
                take_back(run, change)
            elif is_undoable(change.event):
                run.skip(change, "the list was cleared since")
        if len(run.lines) == said:
            idle.append(index)
        elif run.complete:
            finished.append(history[index].facts[0].version)
    return run, idle, finished


def _last_standing_clear(history: Sequence[Group], undone: set[int], going: set[int]) -> int:
    """The version of the newest clear that stays, or 0: what was before it can't come back."""
    for index in range(len(history) - 1, -1, -1):
        group = history[index]
        if index in going or group.facts[0].version in undone:
            continue
        for fact in reversed(group.facts):
            if isinstance(fact.event, ListCleared):
                return fact.version
    return 0


def _touched_by_others(history: Sequence[Group], params: p.ListUndo, undone: set[int]) -> dict[str, int]:
    """For each task that a call of another actor touched and that stands: at which version it last did."""
    touched: dict[str, int] = {}
    for group in history:
        first = group.facts[0]
        if params.actor in (None, first.actor) or group.undoes or first.version in undone:
            continue
        touched.update((named(fact.event), fact.version) for fact in group.facts)
    return touched


def _returned(history: Sequence[Group]) -> dict[tuple[str, int], int]:
    """For each task that was ever brought back: at which version it last was."""
    return {
        (fact.event.task.id, fact.event.task.created_at): fact.version
        for group in history
        if group.undoes
        for fact in group.facts
        if isinstance(fact.event, TaskAdded)
    }


def _chosen(history: Sequence[Group], params: p.ListUndo, undone: set[int], passed: set[int]) -> list[int]:
    """The indexes of the calls to take back, oldest first: the newest ones, as many as asked for."""
    count = params.count if params.count is not None else (len(history) if params.actor is not None else 1)
    chosen: list[int] = []
    for index in range(len(history) - 1, -1, -1):
        if len(chosen) == count:
            break
        group = history[index]
        first = group.facts[0]
        if index in passed or group.undoes or first.version in undone or params.actor not in (None, first.actor):
            continue
        if any(is_undoable(fact.event) for fact in group.facts):
            chosen.append(index)
    return chosen[::-1]
