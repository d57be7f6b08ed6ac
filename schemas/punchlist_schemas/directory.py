"""Maps a directory to its list, by a project file or by the git repository. All processes use these rules.

1. The nearest project file, from the directory up to the top of its work tree. A linked worktree without a project file
uses the one in the main work tree.
2. A project file above the repository.
3. The repository's own list.

A project file can come with a cloned repository, whose author chose the list. If the file names an existing list that
was not made for this project, the user therefore has to allow that once. The permission is an empty file in the data
directory, one for each project and name. All worktrees of a repository are one project.
"""

import os
from typing import Literal

from punchlist_schemas import project_file, repository
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.repository import Repository

OUTSIDE = "default"
"""The command line's list outside of projects. A project file that names it always needs permission."""

_ALLOWED = "allowed"
"""Folder with the permission files, in the data directory."""

_UNUSED = "-unused"
"""Suffix of the file that records that the list was unused when the project named it."""


class DirectoryList:
    """The list of a directory.

    Attributes:
        conversation: Id of the list.
        root: The directory of the project file, or the top of the repository's work tree.
        file: The project file, or None if the list is the repository's own.
        project: Identifies the project: the same for all worktrees of a repository.
        own: Name of the repository's own list; None outside of a repository.
    """

    __slots__ = ("conversation", "file", "own", "project", "root")

    def __init__(self, conversation: str, root: str, file: "str | None", within: "Repository | None") -> None:
        self.conversation = conversation
        self.root = root
        self.file = file
        self.own = within and within.conversation
        self.project = root if within is None else f"{within.common}\0{os.path.relpath(root, _top_of(within, root))}"

    @property
    def source(self) -> "Literal['project_file', 'repository']":
        return "repository" if self.file is None else "project_file"

    def is_allowed(self, data_dir: str, user: "str | None" = None) -> bool:
        """Return whether this list, existing or not, needs no additional permission.

        With `user`, a permission for that user's own list of this name counts too.
        """
        if self.file is None or self.conversation == self.own or os.path.isfile(self._record_path(data_dir, None)):
            return True
        return user is not None and os.path.isfile(self._record_path(data_dir, user))

    def may_use(self, data_dir: str, used: "str | None", user: "str | None" = None) -> bool:
        """Return whether this list can be used without asking the user.

        An unused list can be. It then belongs to the project, unless its name becomes the short name of another
        repository's list.

        Args:
            data_dir: The data directory.
            used: Id of the list that the name refers to; None if the list is unused.
            user: The connection's user, if any.
        """
        if self.is_allowed(data_dir, user):
            return True
        is_short = used is not None and repository.stem_of(used) == self.conversation
        if self.conversation == OUTSIDE or is_short:
            return False
        return used is None or os.path.isfile(self._record_path(data_dir, user) + _UNUSED)

    def allow(self, data_dir: str, user: "str | None" = None, *, unused: bool = False) -> None:
        """Record that this project may name this list; with `user`, only that user's list of this name.

        With `unused`, record instead that the list was unused.

        Raises:
            OSError: The data directory can't be written.
        """
        path = self._record_path(data_dir, user) + (_UNUSED if unused else "")
        make_directories(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

    def _record_path(self, data_dir: str, user: "str | None") -> str:
        scope = "" if user is None else f"\0{user}\0"
        key = repository.digest(os.fsencode(f"{self.conversation}\0{scope}{self.project}"))
        return os.path.join(data_dir, _ALLOWED, key)


def find_list(directory: "str | None" = None) -> "DirectoryList | None":
    """Return the list of a directory (default: the working directory), or None if it belongs to no project.

    Args:
        directory: An absolute path. For a file, its directory is used.

    Raises:
        DirectoryError: The directory doesn't exist, or its project file or repository can't be used.
    """
    place = _resolve(directory)
    within = repository_error = None
    try:
        within = repository.find_repository(place)
    except DirectoryError as error:
        repository_error = error
    root = _find_project_root(place, within.root if within else None)
    # A broken repository is an error only if no project file below it determines the list.
    if root is None and repository_error is not None:
        raise repository_error
    if root is None and within is not None:
        if within.main is not None and project_file.exists(os.path.join(within.main, project_file.NAME)):
            root = within.main
        else:
            return _find_list_above(within) or DirectoryList(within.conversation, within.root, None, within)
    return None if root is None else _read_project(root, within)


def describe_project(root: str, conversation: str) -> DirectoryList:
    """Return the list that `find_list` finds in this directory once a project file there names this conversation."""
    place = os.path.realpath(root)
    return DirectoryList(conversation, place, os.path.join(place, project_file.NAME), _find_usable_repository(place))


def _find_project_root(place: str, top: "str | None" = None) -> "str | None":
    """Return the nearest directory with a project file, from `place` up to `top`."""
    while True:
        if project_file.exists(os.path.join(place, project_file.NAME)):
            return place
        parent = os.path.dirname(place)
        if place in (top, parent):
            return None
        place = parent


def _find_list_above(within: Repository) -> "DirectoryList | None":
    """Return the list of a project file above a repository, ignoring files of other users there."""
    try:
        root = _find_project_root(os.path.dirname(within.root))
    except DirectoryError:
        return None
    return None if root is None else _read_project(root, _find_usable_repository(root))


def _read_project(root: str, within: "Repository | None") -> DirectoryList:
    path = os.path.join(root, project_file.NAME)
    return DirectoryList(project_file.read(path), root, path, within)


def _find_usable_repository(place: str) -> "Repository | None":
    try:
        return repository.find_repository(place)
    except DirectoryError:
        return None


def _top_of(within: Repository, root: str) -> str:
    """Return the top of the work tree that contains `root`."""
    return within.main if within.main is not None and root == within.main else within.root


def _resolve(directory: "str | None") -> str:
    if directory is None:
        try:
            return os.getcwd()
        except OSError as error:
            raise DirectoryError(
                "The working directory no longer exists", "change to another directory: cd DIRECTORY"
            ) from error
    try:
        place = os.path.realpath(directory, strict=True)
    except (FileNotFoundError, NotADirectoryError):  # the last part may be missing
        place = os.path.realpath(directory)
    except OSError as error:  # an unreadable link, such as one in another user's /proc/PID
        raise DirectoryError(f"{directory} can't be resolved: {error.strerror}", "name another directory") from error
    if not os.path.isdir(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise DirectoryError(f"Directory {place} does not exist", "name another directory, or a list: punch -c NAME")
    return place
