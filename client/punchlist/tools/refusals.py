"""Refusals and faults as sentences that a model can act on: what was refused, why, and what would work."""

from collections.abc import Callable
from typing import Any

from punchlist import errors
from punchlist.errors import PunchlistError, RequestRefused
from punchlist.tools.fit import joined, shorten
from punchlist.tools.model import Problem

_SENTENCE = 1_000
"""How many characters of a message from elsewhere are passed on."""


def problem_of(error: PunchlistError) -> Problem:
    """What went wrong, for the model. Nothing internal is told."""
    if isinstance(error, RequestRefused):
        tell = _TEXTS.get(error.kind)
        return Problem(error.kind, shorten(tell(error) if tell else error.message, _SENTENCE), error.data)
    if isinstance(error, errors.NoConversation):
        return Problem("no_conversation", shorten(str(error), _SENTENCE))
    text = f"the task list can't be reached now ({shorten(str(error), _SENTENCE)}); nothing is lost, try again"
    return Problem("unavailable", text)


def _not_found(error: Any) -> str:
    return f"{error.what or 'task'} {error.id} not found"


def _blocked(error: Any) -> str:
    blockers = [f"#{one.get('id')} {one.get('title', '')}".strip() for one in error.blockers or ()]
    return f"task {error.task} is blocked by {joined(blockers)}: complete that first, or remove the dependency"


def _cycle(error: Any) -> str:
    return f"the dependency would close a cycle: {' -> '.join(error.path or ())}"


def _transition(error: Any) -> str:
    if error.running:
        return f"task {error.running} is in progress and only one may be: complete, fail or pause it first"
    allowed = ", ".join(error.allowed or ()) or "nothing else"
    return f"task {error.task} is {error.from_} and can't become {error.to}; it can become: {allowed}"


def _held(error: Any) -> str:
    return f"task {error.task} is being worked on by {error.owner}: take another one"


def _lost(error: Any) -> str:
    return f"task {error.task} is not yours any more (it is {error.status}): look at the list again"


def _confirmation(error: Any) -> str:
    return f"confirmation required: {error.summary} Ask the user, then repeat the call with confirm={error.token}"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "not_found": _not_found,
    "blocked": _blocked,
    "dependency_cycle": _cycle,
    "illegal_transition": _transition,
    "lease_held": _held,
    "lease_lost": _lost,
    "confirmation_required": _confirmation,
    "storage_full": lambda error: "the disk is full: nothing was written; reading still works",
}
