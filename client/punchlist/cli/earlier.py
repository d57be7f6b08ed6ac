"""What had been done before a command was run. Light: every `punch done` loads it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SKEW_MS = 2_000
"""How much earlier than this command its own completion may seem, by the clock of another machine or a slow start."""


def is_old_completion(result: "Any", began: int) -> bool:
    """Return whether a task that was to be completed had been before the command began, in milliseconds since 1970."""
    task = result["task"]
    return task["status"] == "completed" and task["status_changed_at"] < began - _SKEW_MS
