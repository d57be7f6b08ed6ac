"""Texts about a deleted list. The log of such a list begins with the deletion."""

from typing import Any

from punchlist.base.text import safe
from punchlist_apps.common.terminal.render import format_time

_EVENTS_OF_FIRST_TASK = 2
"""Number of events that the first `task.add` in a new list produces: one opens the list, and one adds the task."""


def describe_deletion(deleted: Any) -> str:
    by = f" by {safe(deleted['by'])}" if deleted.get("by") else ""
    return f"deleted{by} on {format_time(deleted['at'])}"


def build_first_event_params(name: str) -> dict[str, Any]:
    """Return the parameters of `event.read` for the first event of a list."""
    return {"conversation": name, "after": 0, "limit": 1}


def find_deletion(page: Any, version: int) -> str:
    """Return who deleted a list and when; empty if the list wasn't deleted, or was started again.

    Args:
        page: The result of `event.read` for the first event of the list.
        version: The version of the list.
    """
    for first in page["events"]:
        if first["event"]["type"] == "ConversationDeleted" and first["version"] == version:
            return describe_deletion({"at": first["at"], "by": first["actor"]})
    return ""


def may_have_restarted(added: Any) -> bool:
    """Return whether the `task.add` call with the result `added` may have started a deleted list again."""
    return added["task"]["id"] == "1" and added["version"] > _EVENTS_OF_FIRST_TASK


def describe_restart(page: Any, added: Any, name: str) -> str:
    """Return a note if the `task.add` call with the result `added` started a deleted list again; empty if it didn't."""
    deletion = find_deletion(page, added["version"] - _EVENTS_OF_FIRST_TASK)
    return f"punch: {name} was {deletion}; this started it again" if deletion else ""
