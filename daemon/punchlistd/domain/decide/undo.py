"""Undo: the newest calls are taken back by new events; nothing is erased."""

from collections.abc import Sequence

from punchlist_schemas import params as p
from punchlist_schemas.events import ListCleared
from punchlistd.domain.commands import Command, Decision, Group
from punchlistd.domain.inverse import Undoing, is_undoable, take_back
from punchlistd.domain.state import State
from punchlistd.domain.trace import named, trace


def undo(_state: State, params: p.ListUndo, command: Command) -> Decision:
    """list.undo. Calls that were undone, that undid, or that hold nothing to undo are passed over."""
    history = command.history
    undone = {version for group in history for version in group.undoes}
    chosen = _chosen(history, params, undone)
    clears = [
        fact.version
        for index, group in enumerate(history)
        if index not in chosen and group.facts[0].version not in undone
        for fact in group.facts
        if isinstance(fact.event, ListCleared)
    ]
    last_clear = max(clears, default=0)
    state, changes = trace(params.conversation, history, chosen)
    run = Undoing(state, command.at, _touched_by_others(history, params, undone))
    for group in reversed(changes):
        for change in reversed(group):
            if change.version > last_clear:
                take_back(run, change)
            elif is_undoable(change.event):
                run.skip(change, "the list was cleared since")
    if params.preview or not run.events:
        return Decision(lines=tuple(run.lines))
    versions = tuple(history[index].facts[0].version for index in sorted(chosen, reverse=True))
    return Decision(tuple(run.events), versions, tuple(run.lines))


def _touched_by_others(history: Sequence[Group], params: p.ListUndo, undone: set[int]) -> dict[str, int]:
    """For each task that a call of another actor touched and that stands: at which version it last did."""
    touched: dict[str, int] = {}
    for group in history:
        first = group.facts[0]
        if params.actor in (None, first.actor) or group.undoes or first.version in undone:
            continue
        touched.update((named(fact.event), fact.version) for fact in group.facts)
    return touched


def _chosen(history: Sequence[Group], params: p.ListUndo, undone: set[int]) -> set[int]:
    """The indexes of the calls to take back: the newest first, as many as asked for."""
    count = params.count if params.count is not None else (len(history) if params.actor is not None else 1)
    chosen: set[int] = set()
    for index in range(len(history) - 1, -1, -1):
        if len(chosen) == count:
            break
        group = history[index]
        if group.undoes or group.facts[0].version in undone:
            continue
        if params.actor is not None and group.facts[0].actor != params.actor:
            continue
        if any(is_undoable(fact.event) for fact in group.facts):
            chosen.add(index)
    return chosen
