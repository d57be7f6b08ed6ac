"""Rejections of calls on shared lists. Each message says whether anything was written and what to do."""

import re

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import ID_PATTERN, machine_of
from punchlistd.replication.port import Forbidden, Link, SharedLogError, TooLarge
from punchlistd.replication.posts.posts import TooNew, Unreadable


class Rejected(Exception):
    """Raised to reject a command with `why`."""

    def __init__(self, why: Rejection) -> None:
        super().__init__(why.message)
        self.why = why


def unreachable(space: str, link: Link) -> Rejection:
    reason = link.reason or f"The space {space} can't be reached."
    message = f"{reason} Nothing was written; the list can be read. Repeat the call once it is back."
    return Rejection("unreachable", message, {"space": space, "since": link.since})


def unknown(space: str, reason: str) -> Rejection:
    message = (
        f"{reason} The space {space} may or may not have accepted the change: look at the list before you repeat it. A"
        " call repeated with its key is executed only once."
    )
    return Rejection("outcome_unknown", message, {"space": space})


def stored_elsewhere(space: str, why: Rejection) -> Rejection:
    message = f"The space {space} has the change, but it could not be stored here: {why.message}"
    return Rejection("outcome_unknown", message)


def forbidden(space: str, reason: str) -> Rejection:
    message = f"{reason} Nothing was written; a keeper of the space {space} can let this machine write."
    return Rejection("forbidden", message, {"what": "space"})


def not_a_keeper(space: str) -> Rejection:
    message = (
        f"The creds of this machine may not remove posts from the space {space}: nothing was removed. Use those of a"
        f" keeper, which punch space server {space} --keeper NAME writes: punch space add {space} URL --creds FILE"
    )
    return Rejection("forbidden", message, {"what": "space"})


def partial(space: str, link: Link) -> Rejection:
    message = "The list is still being shared: nothing was written. Repeat the call in a moment."
    return Rejection("unreachable", message, {"space": space, "since": link.since})


def too_large(error: TooLarge) -> Rejection:
    return Rejection("limit_exceeded", str(error), {"limit": "post", "value": error.size, "maximum": error.maximum})


def unreadable(conversation: str, space: str, error: Unreadable) -> Rejection:
    facts = {"conversation": conversation, "space": space}
    repair = f"punch space repair {space} {conversation}"
    if isinstance(error, TooNew):
        message = f"{error} Until then the list can be read here, not written. If no machine has that version: {repair}"
        return Rejection("upgrade_needed", message, facts)
    message = f"{error} The list can be read here, not written. A keeper of the space can remove the post: {repair}"
    return Rejection("diverged", message, facts)


def lost(conversation: str, space: str, ends_at: int, *, deleted: bool = False) -> Rejection:
    """Build the rejection for a list if the space only has an earlier version of it."""
    if deleted:
        return _lost_deletion(conversation, space, ends_at)
    message = (
        f"The space {space} has lost changes of {conversation}: it ends with version {ends_at}. The list can be read"
        f" here, not written. To put them back: punch share {conversation} --repair"
    )
    return Rejection("diverged", message, {"conversation": conversation, "space": space})


def _lost_deletion(conversation: str, space: str, ends_at: int) -> Rejection:
    message = f"{conversation} was deleted, and the space {space} has lost that: it "
    if ends_at:
        message += f"ends with version {ends_at}. To delete it there again: punch share {conversation} --repair"
    else:
        message += f"no longer has any of the list. To use the name again: punch leave {conversation}"
    return Rejection("diverged", message, {"conversation": conversation, "space": space})


def other_history(conversation: str, space: str) -> Rejection:
    message = (
        f"The space {space} has changes to {conversation} that differ from those here, for example because it was"
        " restored from a backup and written to. The list can be read here, not written. To keep this copy: punch"
        f" leave {conversation} --keep-as NAME"
    )
    return Rejection("diverged", message, {"conversation": conversation, "space": space})


def counted_otherwise(conversation: str, space: str, version: int, there: int) -> Rejection:
    message = (
        f"{conversation} has version {version} here, and the space {space} has {there} for the same state, for example"
        " because an earlier punchlist shared the list after it had been deleted once. The list can be read here, not"
        f" written. To follow it with the versions of the space: punch leave {conversation}, then punch list rm"
        f" {conversation}, then punch join {conversation} --space {space}"
    )
    return Rejection("diverged", message, {"conversation": conversation, "space": space})


def longer_elsewhere(conversation: str, version: int, keeper: str, own: int) -> Rejection:
    message = (
        f"{machine_of(keeper)} has {conversation} up to version {version}, and it ends here with {own}: nothing"
        f" was restored. Run it there: punch share {conversation} --repair"
    )
    return Rejection("forbidden", message, {"what": "space"})


def altered(conversation: str) -> Rejection:
    message = (
        f"The history of {conversation} here no longer produces the posts that the space had, for example "
        "because this machine"
        f" had another name then: nothing was restored. Try another machine, or keep the tasks: punch"
        f" leave {conversation} --keep-as NAME"
    )
    return Rejection("forbidden", message, {"what": "space"})


def of(error: SharedLogError, space: str, link: Link) -> Rejection:
    """Convert an error of the shared log to the rejection of a command that changed nothing on this machine."""
    if isinstance(error, Forbidden):
        return forbidden(space, str(error))
    message = f"{error} Nothing was changed here; repeat the command once the space is back."
    return Rejection("unreachable", message, {"space": space, "since": link.since})


def no_space(space: str) -> Rejection:
    message = f"This machine has no space {space}. Add it: punch space add {space} tls://HOST --creds FILE"
    return Rejection("not_found", message, {"what": "space", "id": space})


def configured_elsewhere(space: str) -> Rejection:
    message = f"The variable PUNCHLIST_SPACE configures the space {space}: change it there, and restart the daemon."
    return Rejection("forbidden", message, {"what": "space"})


def still_shared(space: str, name: str) -> Rejection:
    message = f"The list {name} is in the space {space}, and this machine follows it. First: punch leave {name}"
    return Rejection("forbidden", message, {"what": "space"})


def shared_elsewhere(name: str, space: str) -> Rejection:
    return Rejection("forbidden", f"The list {name} is shared in the space {space}.", {"what": "space"})


def taken(name: str, space: str) -> Rejection:
    message = (
        f"The space {space} has another list {name} already. Share this one under another name (punch export, then"
        f" punch import -c NAME), or get that one on a machine that has no list {name}: punch join {name}"
    )
    return Rejection("forbidden", message, {"what": "space"})


def not_empty(name: str, *, deleted: bool = False) -> Rejection:
    """Build the rejection for a name that already has a history on this machine, which can't be replaced."""
    found = f"A list {name} already exists here, and it is not empty."
    if deleted:
        found = f"A list {name} was deleted here, and its version numbers continue."
    message = f"{found} Nothing was changed. Choose another name."
    return Rejection("forbidden", message, {"what": "conversation"})


def not_there(name: str, space: str, lists: list[str]) -> Rejection:
    # Members may create logs with any name, so the message only includes valid list names.
    names = [other for other in lists if re.match(ID_PATTERN, other)]
    there = f"It has: {', '.join(names[:20])}." if names else "It has none yet."
    message = f"The space {space} has no list {name}. {there} To share one: punch share LIST --space {space}"
    return Rejection("not_found", message, {"what": "space", "id": name})


def not_shared(name: str) -> Rejection:
    message = f"The list {name} is not shared: punch space list shows what is."
    return Rejection("not_found", message, {"what": "space", "id": name})


def left(name: str, space: str) -> Rejection:
    message = (
        f"This machine has left the list {name}: it is shown as it was then and takes no changes. To follow it again:"
        f" punch join {name} --space {space} (to delete it for all, too, then delete it); to erase the copy on this"
        f" machine alone: punch list rm {name}"
    )
    return Rejection("forbidden", message, {"what": "space"})


def joined_later(space: str, link: Link) -> Rejection:
    message = f"{link.reason or f'The space {space} does not answer.'} The list is followed as soon as it is back."
    return Rejection("unreachable", message, {"space": space, "since": link.since})


def not_written(data_dir: str, error: OSError) -> Rejection:
    reason = error.strerror or "it failed"
    return Rejection("storage_full", f"spaces.json in {data_dir} can't be written ({reason}). Nothing was changed.")
