"""The calls by which a file changes a task, and the gate rule for them."""

from collections.abc import Mapping
from typing import Any

from punchlist.errors import Forbidden
from punchlist.taskfiles.file_format import Fields
from punchlist.tools.phrases import explain_unanswered
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.things import Task

PLAIN_MEMBERS = ("title", "description", "active_form", "owner")
EDGES = (("blocked_by", "add_blocked_by", "remove_blocked_by"), ("blocks", "add_blocks", "remove_blocks"))


def edit_calls(before: Fields, edited: Fields) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls, without the task, that set members of a task.

    Args:
        before: The task's members; of sets and objects only the difference to these is sent.
        edited: The members to set, sets and objects in full.
    """
    params = {name: edited[name] for name in PLAIN_MEMBERS if name in edited}
    if "metadata" in edited:
        was, metadata = before["metadata"], edited["metadata"]
        changed = {key: value for key, value in metadata.items() if key not in was or was[key] != value}
        params["metadata"] = {**changed, **dict.fromkeys(key for key in was if key not in metadata)}
    for name, add, remove in EDGES:
        if name in edited:
            params |= {add: sorted(edited[name] - before[name]), remove: sorted(before[name] - edited[name])}
    calls: list[tuple[str, dict[str, Any]]] = [("task.edit", params)] if params else []
    status = status_in(edited)
    if status == "deleted":
        calls.append(("task.delete", {}))
    elif status:
        calls.append(("task.set_status", {"status": status}))
    return calls


def status_in(fields: Fields) -> str:
    """Return the status that members of any form state, or an empty text."""
    if "done" in fields:
        return "completed" if fields["done"] else "pending"
    return str(fields.get("status", ""))


def check_gate(task: Task | None, method: str, params: Mapping[str, Any]) -> None:
    """Reject a call for a file that would take a task out of a person's hands: agents edit files, too.

    Raises:
        Forbidden: The task waits for a person's yes.
    """
    if task is None or task.waits_for != "yes":
        return
    is_withdrawn = method == "task.set_status" and params.get("status") != "completed"
    if is_withdrawn or method == "task.delete" or (method == "task.edit" and "owner" in params):
        raise Forbidden("forbidden", ERRORS["forbidden"].code, explain_unanswered(task), {"what": "gate"})
