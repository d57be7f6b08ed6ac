"""What the keys change: one table from an action to the call that it makes for a task."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from punchlist.clients.aio import AsyncConversation
from punchlist_schemas.things import PRIORITIES, Task

CLAIM_MS = 3_600_000
"""How long a claim made here lasts: nobody renews it."""


class Wish(NamedTuple):
    """A change as it is asked for: the text that came with it, and who claims."""

    text: str
    owner: str


Call = Callable[[AsyncConversation, Task, Wish], Awaitable[Any]]


class Change(NamedTuple):
    """One action: the call for a task, what is said when it is done, and what is asked for before.

    `needs_text` tells whether the question has to be answered; `leaves_gates` whether the change is one that would take
    back what waits for a person's yes.
    """

    call: Call
    said: str
    asks: str = ""
    needs_text: bool = False
    leaves_gates: bool = False


def _change(call: Call, said: str, asks: str = "", *, needs_text: bool = False, leaves_gates: bool = False) -> Change:
    """A row of the table. From this signature pyright infers the types in the lambdas, from a named tuple's not."""
    return Change(call, said, asks, needs_text, leaves_gates)


def _urgency(step: int) -> Call:
    def call(plan: AsyncConversation, task: Task, wish: Wish) -> Awaitable[Any]:
        at = PRIORITIES.index(task.priority) + step
        return plan.edit(task.id, priority=PRIORITIES[max(0, min(at, len(PRIORITIES) - 1))])

    return call


CHANGES: dict[str, Change] = {
    "start": _change(lambda plan, task, wish: plan.start(task.id), "started", leaves_gates=True),
    "done": _change(
        lambda plan, task, wish: plan.complete(task.id, wish.text or None),
        "done",
        "What came of it? Enter for nothing",
        leaves_gates=True,
    ),
    "fail": _change(
        lambda plan, task, wish: plan.fail(task.id, wish.text or None),
        "failed",
        "Why did it fail? Enter for nothing",
        leaves_gates=True,
    ),
    "pause": _change(lambda plan, task, wish: plan.pause(task.id), "paused", leaves_gates=True),
    "reopen": _change(lambda plan, task, wish: plan.reopen(task.id), "open again", leaves_gates=True),
    "approve": _change(lambda plan, task, wish: plan.approve(task.id, version=task.version), "approved"),
    "reject": _change(
        lambda plan, task, wish: plan.reject(task.id, wish.text, version=task.version),
        "rejected",
        "Why not? The task is open again with this reason",
        needs_text=True,
    ),
    "claim": _change(
        lambda plan, task, wish: plan.take(wish.owner, task.id, lease_ms=CLAIM_MS, keep=True),
        "claimed for an hour",
        leaves_gates=True,
    ),
    "release": _change(lambda plan, task, wish: plan.release(task.id, task.owner), "given back"),
    "note": _change(
        lambda plan, task, wish: plan.note(task.id, wish.text), "noted", "Note, which stays as it is", needs_text=True
    ),
    "raise": _change(_urgency(1), "more urgent"),
    "lower": _change(_urgency(-1), "less urgent"),
}
"""Action → what it does to each task that is meant."""

WRITES = {*CHANGES, "add", "edit", "delete", "move_down", "move_up", "undo", "redo", "repeat", "own"}
"""Actions that change something, or may: none of them works with `--read-only` or in the past."""
