"""What is said of a list that was deleted: by whom and when, and that a change started it again.

The log of such a list begins with its deletion.
"""

from punchlist.cli.render import STARTED, moment
from punchlist.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def deletion(deleted: "Any") -> str:
    """Return what is said of a list that was deleted: when, and by whom."""
    by = f" by {safe(deleted['by'])}" if deleted.get("by") else ""
    return f"deleted{by} on {moment(deleted['at'])}"


def first_event(name: str) -> "dict[str, Any]":
    """Return the parameters of `event.read` for the event that a list begins with."""
    return {"conversation": name, "after": 0, "limit": 1}


def deletion_note(read: "Any", version: int) -> str:
    """Return when a list at this version was deleted and by whom; nothing if it was not, or began again.

    Args:
        read: The result of `event.read` for its first event.
        version: Its version.
    """
    for first in read["events"]:
        if first["event"]["type"] == "ConversationDeleted" and first["version"] == version:
            return deletion({"at": first["at"], "by": first["actor"]})
    return ""


def restart_note(read: "Any", added: "Any", name: str) -> str:
    """Return what to tell a person whose addition started a deleted list again; nothing if it did not."""
    note = deletion_note(read, added["version"] - STARTED)
    return f"punch: {name} was {note}; this started it again" if note else ""
