"""Changes made with keys: a table of actions and the calls they make for a task."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from punchlist.clients.aio import AsyncConversation
from punchlist_schemas.things import PRIORITIES, Need, Running, Task

CLAIM_MS = 3_600_000
"""Lease of claims made in `punch ui`, in milliseconds. These claims aren't renewed."""


class Request(NamedTuple):
    """Input for a change: the text that was entered, and the owner for a claim."""

    text: str
    owner: str


Target = Task | Need | Running
"""What a change can be made to: a task, or its summary on a list's card."""

Call = Callable[[AsyncConversation, Any, Request], Awaitable[Any]]


class Change(NamedTuple):
    """An action on a task.

    Attributes:
        result: Text to show when the change is done.
        question: Question to ask before the change; empty for none.
        needs_text: Whether the answer to the question must not be empty.
        leaves_gates: Whether to reject the change for a task that waits for approval.
    """

    call: Call
    result: str
    question: str = ""
    needs_text: bool = False
    leaves_gates: bool = False


# Pyright infers the types of the lambdas from this signature, but not from the constructor of a named tuple.
def _row(
    call: Call, result: str, question: str = "", *, needs_text: bool = False, leaves_gates: bool = False
) -> Change:
    return Change(call, result, question, needs_text, leaves_gates)


def _shift_priority(step: int) -> Call:
    def call(list: AsyncConversation, task: Task, request: Request) -> Awaitable[Any]:
        index = PRIORITIES.index(task.priority) + step
        return list.edit(task.id, priority=PRIORITIES[max(0, min(index, len(PRIORITIES) - 1))])

    return call


def _hand_over(list: AsyncConversation, task: Target, request: Request) -> Awaitable[Any]:
    """Set the owner of a task, and reopen it if it isn't pending."""
    calls = list.calls
    changes = [calls.set_status(task.id, "pending"), calls.edit(task.id, owner=request.text)]
    return list.apply(changes[getattr(task, "status", "") == "pending" :])


CHANGES: dict[str, Change] = {
    "start": _row(lambda list, task, request: list.start(task.id), "started", leaves_gates=True),
    "done": _row(
        lambda list, task, request: list.complete(task.id, request.text or None),
        "done",
        "Result (Enter to leave it empty)",
        leaves_gates=True,
    ),
    "fail": _row(
        lambda list, task, request: list.fail(task.id, request.text or None),
        "failed",
        "Why did it fail? (Enter to leave it empty)",
        leaves_gates=True,
    ),
    "pause": _row(lambda list, task, request: list.pause(task.id), "paused", leaves_gates=True),
    "reopen": _row(lambda list, task, request: list.reopen(task.id), "reopened", leaves_gates=True),
    "approve": _row(lambda list, task, request: list.approve(task.id, version=task.version), "approved"),
    "reject": _row(
        lambda list, task, request: list.reject(task.id, request.text, version=task.version),
        "rejected",
        "Why not? The task is reopened with this reason",
        needs_text=True,
    ),
    "hand": _row(
        _hand_over,
        "handed over",
        "Who shall do it? A name such as codex",
        needs_text=True,
        leaves_gates=True,
    ),
    "claim": _row(
        lambda list, task, request: list.take(request.owner, task.id, lease_ms=CLAIM_MS, keep=True),
        "claimed for an hour",
        leaves_gates=True,
    ),
    "release": _row(lambda list, task, request: list.release(task.id, task.owner), "released"),
    "note": _row(
        lambda list, task, request: list.note(task.id, request.text),
        "noted",
        "Note (can't be changed later)",
        needs_text=True,
    ),
    "raise": _row(_shift_priority(1), "more urgent"),
    "lower": _row(_shift_priority(-1), "less urgent"),
}
"""Action → the change it makes to each target task."""

WRITES = {*CHANGES, "add", "edit", "delete", "blockers", "move_down", "move_up", "undo", "redo", "repeat", "own"}
"""Actions that may make changes. They are disabled with `--read-only` and while the past is shown."""
