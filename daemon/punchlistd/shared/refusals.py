"""What a change of a shared list is told that could not be made: whether anything was written, and what to do."""

from punchlist_schemas.errors import Rejection
from punchlistd.shared.port import Link, TooLarge
from punchlistd.shared.posts import TooNew, Unreadable


def unreachable(space: str, link: Link) -> Rejection:
    """The space can't be asked, and nothing was written."""
    reason = link.reason or f"The space {space} can't be reached."
    message = f"{reason} Nothing was written; the list can be read. Retry with the same key once it is back."
    return Rejection("unreachable", message, {"space": space, "since": link.since})


def unknown(space: str, reason: str) -> Rejection:
    """The change may be in."""
    message = f"{reason} The space {space} may have taken the change or not. Retry with the same key: it is done once."
    return Rejection("outcome_unknown", message)


def stored_elsewhere(space: str, why: Rejection) -> Rejection:
    """The change is in the space, and could not be stored here."""
    message = f"The space {space} has the change, but it could not be stored here: {why.message}"
    return Rejection("outcome_unknown", message)


def forbidden(space: str, reason: str) -> Rejection:
    """This machine may not write."""
    message = f"{reason} Nothing was written; whoever runs the space {space} can let this machine write."
    return Rejection("forbidden", message, {"what": "space"})


def partial(space: str, link: Link) -> Rejection:
    """The list is not wholly shared yet."""
    message = "The list is still being shared: nothing was written. Retry with the same key in a moment."
    return Rejection("unreachable", message, {"space": space, "since": link.since})


def too_large(error: TooLarge) -> Rejection:
    """A change is larger than a post may be."""
    return Rejection("limit_exceeded", str(error), {"limit": "post", "value": error.size, "maximum": error.maximum})


def unreadable(conversation: str, space: str, error: Unreadable) -> Rejection:
    """The list can't be followed any more."""
    facts = {"conversation": conversation, "space": space}
    if isinstance(error, TooNew):
        return Rejection("upgrade_needed", f"{error} Until then the list can be read here, not written.", facts)
    message = f"{error} The list can be read here as it was before, not written: `punch doctor` says how to go on."
    return Rejection("diverged", message, facts)
