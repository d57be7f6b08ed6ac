"""Texts about a deleted list: who deleted it and when, and that a change started it again.

The log of such a list begins with its deletion.
"""

from typing import Any

from punchlist.base.text import safe
from punchlist_apps.common.terminal.render import format_time
from punchlist_apps.common.wire import EVENTS_OF_FIRST_TASK


def describe_deletion(deleted: Any) -> str:
    by = f" by {safe(deleted['by'])}" if deleted.get("by") else ""
    return f"deleted{by} on {format_time(deleted['at'])}"


def first_event(name: str) -> dict[str, Any]:
    """Return the parameters of `event.read` for the event that a list begins with."""
    return {"conversation": name, "after": 0, "limit": 1}


def find_deletion(read: Any, version: int) -> str:
    """Return who deleted a list at this version and when; nothing if it was not deleted, or began again.

    Args:
        read: The result of `event.read` for its first event.
        version: Its version.
    """
    for first in read["events"]:
        if first["event"]["type"] == "ConversationDeleted" and first["version"] == version:
            return describe_deletion({"at": first["at"], "by": first["actor"]})
    return ""


def describe_restart(read: Any, added: Any, name: str) -> str:
    """Return a note for a person whose addition started a deleted list again; nothing if it did not."""
    note = find_deletion(read, added["version"] - EVENTS_OF_FIRST_TASK)
    return f"punch: {name} was {note}; this started it again" if note else ""
