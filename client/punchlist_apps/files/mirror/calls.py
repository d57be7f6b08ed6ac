"""Builds the calls that apply a file's changes to a task, and checks them against the task's gate."""

from collections.abc import Mapping
from typing import Any

from punchlist.errors import Forbidden
from punchlist.taskfiles.file_format import Fields
from punchlist.tools.phrases import explain_unanswered
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.things import Task

PLAIN_MEMBERS = ("title", "description", "active_form", "owner")
EDGES = (("blocked_by", "add_blocked_by", "remove_blocked_by"), ("blocks", "add_blocks", "remove_blocks"))


def build_edit_calls(before: Fields, edited: Fields) -> list[tuple[str, dict[str, Any]]]:
    """Return the methods that set members of a task, with their params except the task's id.

    Args:
        before: The task's members. For sets and objects, only the differences are sent.
        edited: The members to set. Sets and objects are given in full.
    """
    params = {name: edited[name] for name in PLAIN_MEMBERS if name in edited}
    if "metadata" in edited:
        old, metadata = before["metadata"], edited["metadata"]
        changed = {key: value for key, value in metadata.items() if key not in old or old[key] != value}
        params["metadata"] = {**changed, **dict.fromkeys(key for key in old if key not in metadata)}
    for name, add, remove in EDGES:
        if name in edited:
            params |= {add: sorted(edited[name] - before[name]), remove: sorted(before[name] - edited[name])}
    calls: list[tuple[str, dict[str, Any]]] = [("task.edit", params)] if params else []
    status = get_status(edited)
    if status == "deleted":
        calls.append(("task.delete", {}))
    elif status:
        calls.append(("task.set_status", {"status": status}))
    return calls


def get_status(fields: Fields) -> str:
    """Return the status from the members of a task in any format, or an empty string."""
    if "done" in fields:
        return "completed" if fields["done"] else "pending"
    return str(fields.get("status", ""))


def check_gate(task: Task | None, method: str, params: Mapping[str, Any]) -> None:
    """Reject a file's call that would let a task bypass its approval, since agents also edit files.

    Raises:
        Forbidden: The task waits for a person's approval.
    """
    if task is None or task.waits_for != "yes":
        return
    is_withdrawn = method == "task.set_status" and params.get("status") != "completed"
    if is_withdrawn or method == "task.delete" or (method == "task.edit" and "owner" in params):
        raise Forbidden("forbidden", ERRORS["forbidden"].code, explain_unanswered(task), {"what": "gate"})
