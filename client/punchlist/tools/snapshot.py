"""The newest turn in a tool call, which answers the handler's reads of the list without further calls."""

from collections.abc import Callable
from typing import Any

import msgspec

from punchlist_schemas import params as p
from punchlist_schemas.results import EventsResult, TaskGetResult, TaskListResult, Turn
from punchlist_schemas.things import Damage, Task


class Snapshot(msgspec.Struct, frozen=True):
    """A turn, with members of the result that contained it.

    Attributes:
        since: Position after which the turn's events begin.
    """

    turn: Turn
    since: int | None
    version: int
    seq: int
    damaged: Damage | None = None

    def read_changes(self, after: int, epoch: str) -> EventsResult | None:
        """Return the events after a position that concern the agent; None if the turn doesn't contain them all."""
        if self.turn.events is None or after != self.since:
            return None
        return EventsResult(events=self.turn.events, next=self.seq, epoch=epoch)


class View(msgspec.Struct):
    """What a tool call knows about the list.

    Attributes:
        has_turns: Whether the daemon adds turns to its results.
        snapshot: The newest turn; None before the first one, and after an error.
        is_current: Whether this tool call has received a turn, and has collected the new notes in it.
        last: Position and version of the agent's last event before this tool call, (0, 0) if there was none; None if
            they are unknown.
    """

    has_turns: bool = False
    snapshot: Snapshot | None = None
    is_current: bool = False
    last: tuple[int, int] | None = None

    @property
    def turn(self) -> Turn | None:
        return None if self.snapshot is None else self.snapshot.turn


def answer(snapshot: Snapshot, params: object) -> Any:
    """Return the result of a read; None if the snapshot doesn't contain it."""
    find = _ANSWERS.get(type(params))
    return None if find is None else find(snapshot, params)


def _list(snapshot: Snapshot, params: p.TaskList) -> TaskListResult | None:
    turn, owner = snapshot.turn, params.owner if isinstance(params.owner, str) else None
    if params == p.TaskList(conversation=params.conversation, limit=1):
        tasks, total = (), turn.total
    elif turn.running is not None and params == p.TaskList(
        conversation=params.conversation, status="in_progress", owner=owner
    ):
        tasks = tuple(task for task in turn.running if owner in (None, task.owner))
        total = len(tasks)
    else:
        return None
    return TaskListResult(
        tasks=tasks,
        counts=turn.counts,
        version=snapshot.version,
        seq=snapshot.seq,
        total=total,
        damaged=snapshot.damaged,
    )


def _get(snapshot: Snapshot, params: p.TaskGet) -> TaskGetResult | None:
    turn = snapshot.turn
    shown = [*(turn.running or ()), *turn.changed, *(() if turn.next is None else (turn.next,))]
    tasks: dict[str, Task] = {task.id: task for task in shown}
    if params.task not in tasks or params.min_version is not None:
        return None
    return TaskGetResult(task=tasks[params.task], path=turn.paths.get(params.task, ()), damaged=snapshot.damaged)


_ANSWERS: dict[type, Callable[[Snapshot, Any], Any]] = {p.TaskList: _list, p.TaskGet: _get}
"""Type of the params of a read -> the function that answers it."""
