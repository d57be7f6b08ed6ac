"""Finds the list to use if a call names no list, for the command line, hooks and tools.

The order is: the argument or option (an attached session's id stands for its list), the library's scope,
PUNCHLIST_CONVERSATION, and then the directory's list according to its project file or git repository
(`punchlist_schemas.directory`). If none of these names a list, the command line uses `default`, and agents use no list.
The clients of the library never look at directories. Imports little, because shell prompts load this module.
"""

import os
from collections.abc import Mapping

from punchlist.base import host_variables
from punchlist_schemas import directory
from punchlist_schemas.directory import DirectoryList
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.rendezvous import make_directories

_DAY_S = 86_400


def host_directory(env: "Mapping[str, str]", otherwise: str = "") -> "str | None":
    """Return the project directory from a host's variables, else `otherwise`, else None for the working directory.

    The result does not depend on a session's working directory. If the directory no longer exists, `of_directory`
    rejects it.
    """
    candidates = (env.get(name, "") for name in host_variables.PROJECT)
    return next((path for path in (*candidates, otherwise) if path), None)


def of_directory(env: "Mapping[str, str]", place: "str | None" = None) -> "tuple[str, DirectoryList | None] | None":
    """Return the id of the list for calls that name none, and the directory's list if the directory determined it.

    Args:
        place: The directory; None for the working directory, "" if it is unknown.

    Raises:
        DirectoryError: The project file or repository can't be used, or the directory does not exist.
    """
    if name := env.get("PUNCHLIST_CONVERSATION"):
        return name, None
    if place == "":
        raise DirectoryError(
            "The host names no project for this server", "start it with a list: punch agent mcp -c NAME"
        )
    if place is not None and not os.path.isdir(place):
        # Its parent directories may belong to another project.
        raise DirectoryError(f"The project's directory {place} is gone", "name one that exists, or a list: -c NAME")
    meant = directory.find_list(place)
    return None if meant is None else (meant.conversation, meant)


def own(name: str, user: "str | None") -> str:
    """Return the name with the `my:` prefix if the connection is bound to a user."""
    return name if user is None or name.startswith(("my:", "of:")) else f"my:{name}"


def may_be_taken(meant: "DirectoryList | None", data_dir: str, used: "str | None", user: "str | None" = None) -> bool:
    """Return whether a project may use its list. An unused list other than `default` is recorded as the project's.

    Args:
        meant: The list of the directory; None if the list was not determined by a directory.
        data_dir: Data directory of the daemon.
        used: Id of the existing list with this name; None if the name is unused.
        user: The user who owns the list, if any.
    """
    if meant is None or meant.is_allowed(data_dir, user):
        return True
    if not meant.may_use(data_dir, used, user):
        return False
    meant.allow(data_dir, user, unused=used is None)
    return True


def not_allowed(meant: DirectoryList) -> DirectoryError:
    """Return the error for a project file that names a list of another project."""
    return DirectoryError(
        f"{meant.file} names the list {meant.conversation}, which was not made for this project",
        f"if you trust it: punch init --trust in {meant.root}; otherwise name another list: punch -c NAME",
    )


def was_announced(data_dir: str, conversation: str, now: float) -> bool:
    """Return whether the command line announced within the last day that it uses this list for its repository."""
    try:
        return abs(now - os.stat(_announcement_path(data_dir, conversation)).st_mtime) < _DAY_S
    except OSError:
        return False


def note_announced(data_dir: str, conversation: str) -> None:
    """Record that the list was announced now."""
    path = _announcement_path(data_dir, conversation)
    try:
        make_directories(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(path)
    except OSError:
        pass  # the list is announced again next time


def _announcement_path(data_dir: str, conversation: str) -> str:
    return os.path.join(data_dir, "told", conversation)
