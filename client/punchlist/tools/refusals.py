"""Refusals and faults as sentences that a model can act on: what was refused, why, and what would work."""

import re
from collections.abc import Callable, Collection
from typing import Any

from punchlist import errors
from punchlist.errors import PunchlistError, RequestRefused
from punchlist.tools import phrases
from punchlist.tools.budget import joined, shorten
from punchlist.tools.model import Problem
from punchlist_schemas.things import Task

_SENTENCE = 1_000
"""How many characters of a message from elsewhere are passed on."""

_PARTS = 10
"""Maximum number of open children that are named."""

_MEMBERS: dict[str, tuple[str, ...]] = {
    "task": ("taskId", "task_id", "id", "taskIds"),
    "tasks": ("tasks", "todos"),
    "title": ("title", "subject", "content"),
    "active_form": ("activeForm",),
    "metadata": ("metadata", "context"),
    "blocked_by": ("addBlockedBy", "after"),
    "add_blocked_by": ("addBlockedBy", "after"),
    "remove_blocked_by": ("removeBlockedBy", "not_after"),
    "add_blocks": ("addBlocks",),
    "remove_blocks": ("removeBlocks",),
    "result_summary": ("result_summary", "result", "note"),
    "fail_reason": ("reason", "failed", "note"),
}
"""Member of the wire → the arguments that tools take it by; the first of them that a tool has is meant."""


def problem_of(error: PunchlistError, arguments: Collection[str] = (), *, unblocks: bool = False) -> Problem:
    """What went wrong, for the model. Nothing internal is told.

    Args:
        arguments: Names of the arguments that the tool takes: a wrong one is called as the model called it.
        unblocks: Whether the dialect can remove dependencies; if so, the message suggests it.
    """
    if isinstance(error, errors.InvalidParams) and error.field and error.expected:
        return Problem(error.kind, shorten(_wrong(error, arguments), _SENTENCE), error.data)
    if isinstance(error, RequestRefused):
        tell = _TEXTS.get(error.kind)
        text = shorten(tell(error) if tell else error.message, _SENTENCE)
        if unblocks and isinstance(error, errors.Blocked) and not error.open_children:
            text += ", or remove the dependency"
        return Problem(error.kind, text, error.data)
    if isinstance(error, errors.NoConversation):
        return Problem("no_conversation", shorten(str(error), _SENTENCE))
    text = f"the task list can't be reached now ({shorten(str(error), _SENTENCE)}); nothing is lost, try again"
    return Problem("unavailable", text)


_PLAIN = (
    (r"`", ""),
    (r"\b(?:str|string) of length <= (\d+)", r"at most \1 characters"),
    (r"\b(?:str|string) of length >= 1\b", "at least 1 character"),
    (r"\b(?:int|integer) >= (\d+)", r"an integer of at least \1"),
    (r"\b(?:int|integer) <= (\d+)", r"an integer of at most \1"),
    (r"\b(?:str|string)\b", "text"),
    (r"(?<!an )\b(?:int|integer)\b", "an integer"),
    (r"\b(?:bool|boolean)\b", "true or false"),
    (r"\barray of length >= 1\b", "at least one entry"),
    (r"\barray\b", "a list"),
    (r"\bobject\b", "an object"),
    (r" (?:\||or) null\b", ""),
)


def plainly(expected: str) -> str:
    """What a decoder expected, in the words of people."""
    for pattern, words in _PLAIN:
        expected = re.sub(pattern, words, expected)
    return expected


def _wrong(error: errors.InvalidParams, arguments: Collection[str]) -> str:
    def own(match: re.Match[str]) -> str:
        return next((name for name in _MEMBERS.get(match[0], ()) if name in arguments), match[0])

    return f"{re.sub('[a-z_]+', own, error.field or '')} is wrong: expected {plainly(error.expected or '')}"


def _not_found(error: Any) -> str:
    if names := error.data.get("names"):
        return f"{error.id} is the name of {len(names)} lists: name {' or '.join(names[:_PARTS])}"
    return f"{error.what or 'task'} {str(error.id)[:60]} not found"


def _blocked(error: Any) -> str:
    if error.open_children:
        return _parts(error)
    blockers: list[dict[str, str]] = error.blockers or []
    names = _names(blockers)
    has_failed = any(one.get("status") == "failed" for one in blockers)
    advice = "complete what has failed, or delete it" if has_failed else "complete that first"
    return f"task {error.task} is blocked by {joined(names)}: {advice}"


def _names(tasks: list[dict[str, str]]) -> list[str]:
    states = {"failed": " (failed)", "paused": " (paused)"}
    return [f"#{one.get('id')} {one.get('title', '')}".strip() + states.get(one.get("status", ""), "") for one in tasks]


def _parts(error: Any) -> str:
    """Return what to do with a task that only holds others."""
    parts: list[dict[str, str]] = error.open_children
    shown = joined(_names(parts[:_PARTS])) + (", …" if len(parts) > _PARTS else "")
    count = "1 open task" if len(parts) == 1 else f"{len(parts)} open tasks"
    return f"task {error.task} has {count}: {shown}: those come first"


def _cycle(error: Any) -> str:
    return f"the dependency would close a cycle: {' -> '.join(error.path or ())}"


def _transition(error: Any) -> str:
    if error.open_children:
        return _parts(error)
    if error.data.get("heading"):
        return f"task {error.task} is a heading: work on the tasks below it"
    if error.data.get("follows"):
        return (
            f"task {error.task} is {error.from_} since all tasks below it are finished: reopen one of them, or add one"
        )
    if error.running:
        return f"task {error.running} is in progress and only one may be: that one comes first"
    if error.allowed == []:
        return error.message
    allowed = ", ".join(error.allowed or ()) or "nothing else"
    return f"task {error.task} is {error.from_} and can't become {error.to}; it can become: {allowed}"


def _held(error: Any) -> str:
    what = "reserved for" if error.reserved else "being worked on by"
    return f"task {error.task} is {what} {phrases.name_of(error.owner)}: take another one"


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
    "unreachable": lambda error: (
        "nothing was written, since this shared list's server can't be reached; reading works, and call it again later"
    ),
    "outcome_unknown": lambda error: (
        "the change may have been made or not: look at the list, and call it again if it was not made"
    ),
    "shutting_down": lambda error: "the task list's service is stopping: call it again in a moment",
    "diverged": lambda error: "nothing was written: this machine's copy of the shared list differs; ask the person",
    "upgrade_needed": lambda error: "nothing was written: this shared list needs a newer punchlist; ask the person",
    "storage_full": lambda error: "the disk is full: nothing was written; reading still works",
}


def unanswered(task: Task) -> Problem:
    """Return the rejection of a change to a task that waits for a person's yes."""
    return Problem("forbidden", phrases.unanswered(task), {"what": "gate", "task": task.id})
