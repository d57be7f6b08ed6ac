"""The gate rule for files: agents edit them too, so no file takes back what waits for a person's yes."""

from collections.abc import Mapping
from typing import Any

from punchlist.errors import Forbidden
from punchlist.tools.phrases import unanswered
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.things import Task


def check_gate(task: Task | None, method: str, params: Mapping[str, Any]) -> None:
    """Reject a call for a file that would take a task out of a person's hands.

    Raises:
        Forbidden: The task waits for a person's yes.
    """
    if task is None or task.waits_for != "yes":
        return
    is_withdrawn = method == "task.set_status" and params.get("status") != "completed"
    if is_withdrawn or method == "task.delete" or (method == "task.edit" and "owner" in params):
        raise Forbidden("forbidden", ERRORS["forbidden"].code, unanswered(task), {"what": "gate"})
