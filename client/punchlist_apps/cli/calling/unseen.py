"""The list of an agent host's session, and the changes that the session hasn't seen."""

import os
from collections.abc import Container
from typing import Any

from punchlist.base import project
from punchlist.errors import WrongEpoch
from punchlist_apps.cli.calling.context import Context
from punchlist_schemas.project_file import DirectoryError, is_conversation_id

_MAX_CHANGES = 1_000


def resolve_list(context: Context, session: str, cwd: str) -> str:
    """Return the list named by `-c`, else the one that the session is attached to, else the project's.

    The host's project directory takes precedence over `cwd`, the session's current directory.

    Raises:
        DirectoryError: No list was found, or using the list isn't allowed.
    """
    if context.args.conversation:
        return str(context.args.conversation)
    if session and is_conversation_id(session):
        attached: dict[str, Any] = context.call("conversation.get", conversation=session)["conversation"]
        if session in attached.get("sessions", ()):
            return str(attached["conversation"])
    match = project.of_directory(os.environ, project.host_directory(os.environ, cwd))
    if match is None:
        raise DirectoryError("No task list for this directory", "run punch init in the project's directory")
    name, meant = match
    if not project.may_be_taken(meant, context.target.data_dir, context.find_list_id(name)):
        assert meant is not None, "only lists named by a project file or repository are rejected"
        raise project.not_allowed(meant)
    return name


def read_changes(
    context: Context, name: str, epoch: str, after: int | None, told: Container[int]
) -> tuple[str, list[dict[str, Any]], int | None]:
    """Return the current epoch, the list's events after a position except those told, and the position of the last one.

    The last position is None if no events can be read after the given position: on the first read, or in a new epoch.
    """
    if after is None:
        return context.call("daemon.status")["epoch"], [], None
    try:
        page = context.call("event.read", conversation=name, after=after, limit=_MAX_CHANGES, epoch=epoch)
    except WrongEpoch as error:
        return error.expected or "", [], None
    return page["epoch"], [change for change in page["events"] if change["seq"] not in told], page["next"]
