"""Detects tasks that were completed before this command ran. Imports little: every `punch done` loads it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SKEW_MS = 2_000
"""Tolerance for clocks of other machines and slow starts, in milliseconds."""


def is_old_completion(result: "Any", began: int) -> bool:
    """Return whether a task had been completed before the command began, in milliseconds since 1970."""
    task = result["task"]
    return task["status"] == "completed" and task["status_changed_at"] < began - _SKEW_MS
