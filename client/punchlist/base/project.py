"""Which list is meant where a call names none: for the command line, hooks and tools alike.

The order: the argument or option (the id of an attached session finds its list), the library's scope,
PUNCHLIST_CONVERSATION, and then what the directory means (`punchlist_schemas.directory`): its project file or its git
repository. Where nothing names a list, the command line takes `default` and agents take none. The library alone never
looks at a directory. Light on purpose: shell prompts come through here.
"""

import os
from collections.abc import Mapping

from punchlist_schemas import directory
from punchlist_schemas.directory import Meant
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.rendezvous import make_directories

_OF_HOSTS = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
"""Where hosts tell their hooks, and Claude Code its MCP servers too, which project a session is about."""

_DAY_S = 86_400


def host_directory(env: "Mapping[str, str]", otherwise: str = "") -> "str | None":
    """The project's directory by a host's variables, else `otherwise`; None: the working directory.

    It stays the same when a session changes its working directory, and also when it is gone: `of_directory` refuses it.
    """
    named = (env.get(name, "") for name in _OF_HOSTS)
    return next((path for path in (*named, otherwise) if path), None)


def of_directory(env: "Mapping[str, str]", place: "str | None" = None) -> "tuple[str, Meant | None] | None":
    """The list where nothing is named in a call: its id, and what the directory said where that decided.

    Raises:
        DirectoryError: The directory's project file or repository can't be used, or there is no such directory.
    """
    if name := env.get("PUNCHLIST_CONVERSATION"):
        return name, None
    if place is not None and not os.path.isdir(place):
        # What is around it would be somebody else's project.
        raise DirectoryError(f"The project's directory {place} is gone", "name one that exists, or a list: -c NAME")
    found = directory.meant(place)
    return None if found is None else (found.conversation, found)


def own(name: str, user: "str | None") -> str:
    """The name by which a connection of this user names a list: the user's own of that name, whoever else has one."""
    return name if user is None or name.startswith(("my:", "of:")) else f"my:{name}"


def may_be_taken(meant: "Meant | None", data_dir: str, used: "str | None", user: "str | None" = None) -> bool:
    """Return whether a project's list may be worked on, given the id that its name leads to (None: nobody used it yet).

    A list that nobody used is the project's from now on, but for `default`, which belongs to no project. With a user it
    is about the user's own list of that name.
    """
    if meant is None or meant.is_allowed(data_dir, user):
        return True
    if not meant.may_use(data_dir, used, user):
        return False
    meant.allow(data_dir, user, unused=used is None)
    return True


def not_allowed(meant: Meant) -> DirectoryError:
    """The refusal of a project file that names a list which was not made for its project."""
    return DirectoryError(
        f"{meant.file} names the list {meant.conversation}, which was not made for this project",
        f"if you trust it: punch init --trust in {meant.root}; otherwise name another list: punch -c NAME",
    )


def was_announced(data_dir: str, conversation: str, now: float) -> bool:
    """Whether somebody at the command line was told within a day that this list is taken for its repository."""
    try:
        return abs(now - os.stat(_announced(data_dir, conversation)).st_mtime) < _DAY_S
    except OSError:
        return False


def note_announced(data_dir: str, conversation: str) -> None:
    """Remember that it was told now; where nothing can be written it is told again."""
    path = _announced(data_dir, conversation)
    try:
        make_directories(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(path)
    except OSError:
        pass


def _announced(data_dir: str, conversation: str) -> str:
    return os.path.join(data_dir, "told", conversation)
