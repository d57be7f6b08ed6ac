"""Formats errors for models: what failed, why, and what to do instead."""

import re
from collections.abc import Callable, Collection
from typing import Any

from punchlist import errors
from punchlist.errors import PunchlistError, RequestRefused
from punchlist.tools import phrases
from punchlist.tools.budget import join_ids, shorten
from punchlist.tools.model import Problem
from punchlist_schemas.things import Task

_MAX_MESSAGE = 1_000
"""Maximum length of a message, in characters."""

_MAX_NAMES = 10
"""Maximum number of tasks or lists named in a message."""

_ARGUMENTS: dict[str, tuple[str, ...]] = {
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
"""Protocol member -> names of this argument in the dialects. The first one that the tool has is used."""


def to_problem(error: PunchlistError, arguments: Collection[str] = (), *, can_unblock: bool = False) -> Problem:
    """Convert an error to a problem for the model, without internal details.

    Args:
        arguments: Names of the tool's arguments. Messages about invalid params use them.
        can_unblock: Whether the dialect can remove dependencies. If so, the message suggests that.
    """
    if isinstance(error, errors.InvalidParams) and error.field and error.expected:
        return Problem(error.kind, shorten(_explain_params(error, arguments), _MAX_MESSAGE), error.data)
    if isinstance(error, RequestRefused):
        explain = _EXPLANATIONS.get(error.kind)
        text = shorten(explain(error) if explain else error.message, _MAX_MESSAGE)
        if can_unblock and isinstance(error, errors.Blocked) and not error.open_children:
            text += ", or remove the dependency"
        return Problem(error.kind, text, error.data)
    if isinstance(error, errors.NoConversation):
        return Problem("no_conversation", shorten(str(error), _MAX_MESSAGE))
    text = f"the task list can't be reached now ({shorten(str(error), _MAX_MESSAGE)}); nothing is lost, try again"
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


def simplify(expected: str) -> str:
    """Return a decoder's type description in plain English."""
    for pattern, words in _PLAIN:
        expected = re.sub(pattern, words, expected)
    return expected


def _explain_params(error: errors.InvalidParams, arguments: Collection[str]) -> str:
    def find_argument(match: re.Match[str]) -> str:
        return next((name for name in _ARGUMENTS.get(match[0], ()) if name in arguments), match[0])

    return f"{re.sub('[a-z_]+', find_argument, error.field or '')} is wrong: expected {simplify(error.expected or '')}"


def _explain_not_found(error: Any) -> str:
    if names := error.data.get("names"):
        return f"{error.id} is the name of {len(names)} lists: name {' or '.join(names[:_MAX_NAMES])}"
    return f"{error.what or 'task'} {str(error.id)[:60]} not found"


def _explain_blocked(error: Any) -> str:
    if error.open_children:
        return _explain_open_children(error)
    blockers: list[dict[str, str]] = error.blockers or []
    names = _format_tasks(blockers)
    has_failed = any(blocker.get("status") == "failed" for blocker in blockers)
    advice = "complete what has failed, or delete it" if has_failed else "complete that first"
    return f"task {error.task} is blocked by {join_ids(names)}: {advice}"


def _format_tasks(tasks: list[dict[str, str]]) -> list[str]:
    states = {"failed": " (failed)", "paused": " (paused)"}
    return [
        f"#{task.get('id')} {task.get('title', '')}".strip() + states.get(task.get("status", ""), "") for task in tasks
    ]


def _explain_open_children(error: Any) -> str:
    children: list[dict[str, str]] = error.open_children
    shown = join_ids(_format_tasks(children[:_MAX_NAMES])) + (", …" if len(children) > _MAX_NAMES else "")
    count = "1 open task" if len(children) == 1 else f"{len(children)} open tasks"
    return f"task {error.task} has {count}: {shown}: those come first"


def _explain_cycle(error: Any) -> str:
    return f"the dependency would close a cycle: {' -> '.join(error.path or ())}"


def _explain_transition(error: Any) -> str:
    if error.open_children:
        return _explain_open_children(error)
    if error.data.get("heading"):
        return f"task {error.task} is a heading: work on the tasks below it"
    if error.data.get("follows"):
        return (
            f"task {error.task} is {error.from_} since all tasks below it are finished: reopen one of them, or add one"
        )
    if error.running:
        return f"only one task may be in progress: finish or pause task {error.running} first"
    if error.allowed == []:
        return error.message
    allowed = ", ".join(error.allowed or ()) or "nothing else"
    return f"task {error.task} is {error.from_} and can't become {error.to}; it can become: {allowed}"


def _explain_held(error: Any) -> str:
    state = "reserved for" if error.reserved else "being worked on by"
    return f"task {error.task} is {state} {phrases.format_actor(error.owner)}: take another one"


def _explain_lost(error: Any) -> str:
    return f"task {error.task} is no longer yours (it is {error.status}): look at the list again"


def _explain_confirmation(error: Any) -> str:
    return f"confirmation required: {error.summary} Ask the user, then repeat the call with confirm={error.token}"


_EXPLANATIONS: dict[str, Callable[[Any], str]] = {
    "not_found": _explain_not_found,
    "blocked": _explain_blocked,
    "dependency_cycle": _explain_cycle,
    "illegal_transition": _explain_transition,
    "lease_held": _explain_held,
    "lease_lost": _explain_lost,
    "confirmation_required": _explain_confirmation,
    "unreachable": lambda error: (
        "nothing was written: this shared list's server can't be reached. Reading works; call it again later"
    ),
    "outcome_unknown": lambda error: (
        "the change may or may not have been made: look at the list, and call it again if it was not"
    ),
    "shutting_down": lambda error: "the task list's service is stopping: call it again in a moment",
    "diverged": lambda error: "nothing was written: this machine's copy of the shared list differs; ask the person",
    "upgrade_needed": lambda error: "nothing was written: this shared list needs a newer punchlist; ask the person",
    # An agent chooses no keys: the key is that of a call that another process began, and that this one repeats.
    "key_conflict": lambda error: (
        "this call had been carried out before the server restarted: look at the list, and don't repeat the call"
    ),
    "storage_full": lambda error: "the disk is full: nothing was written; reading still works",
}


def reject_unanswered(task: Task) -> Problem:
    """Return the problem for a change to a task that waits for a person's approval."""
    return Problem("forbidden", phrases.explain_unanswered(task), {"what": "gate", "task": task.id})
