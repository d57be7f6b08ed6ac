"""Which list a directory means: by its project file, or else by its git repository. The one rule for all processes.

1. The nearest project file, from the directory up to the top of its work tree. A linked worktree that has none takes
   the main one's.
2. A project file above the repository.
3. The repository's own list.

A project file may come with a cloned repository, and then names a list that its author chose. So one that names a list
which exists, and which was not made for this project, has to be allowed once. Who allowed it is kept as an empty file
in the data directory, one for each project and name. The worktrees of a repository are one project.
"""

import os
from typing import Literal

from punchlist_schemas import project_file, repository
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.repository import Repository

OUTSIDE = "default"
"""The command line's list outside of any project: never a project's, so its name always has to be allowed."""

_ALLOWED, _UNUSED = "allowed", "-unused"


class Meant:
    """The list that a directory means.

    Attributes:
        conversation: Its id.
        root: The directory of the project file, or the top of the repository's work tree.
        file: The project file, or None where the list is the repository's own.
        project: What identifies the project: the same for all worktrees of a repository.
        own: The name of the repository's own list; None outside of a repository.
    """

    __slots__ = ("conversation", "file", "own", "project", "root")

    def __init__(self, conversation: str, root: str, file: "str | None", within: "Repository | None") -> None:
        self.conversation = conversation
        self.root = root
        self.file = file
        self.own = within and within.conversation
        self.project = root if within is None else f"{within.common}\0{os.path.relpath(root, _top(within, root))}"

    @property
    def source(self) -> "Literal['project_file', 'repository']":
        """What decided."""
        return "repository" if self.file is None else "project_file"

    def is_allowed(self, data_dir: str, user: "str | None" = None) -> bool:
        """Whether this list, or the user's own one of its name, may be taken unasked, whether it exists or not."""
        if self.file is None or self.conversation == self.own or os.path.isfile(self._record(data_dir, None)):
            return True
        return user is not None and os.path.isfile(self._record(data_dir, user))

    def may_use(self, data_dir: str, used: "str | None", user: "str | None" = None) -> bool:
        """Return whether this list may be taken unasked, given the id that its name leads to; None: nobody used it yet.

        A list that nobody used may be. It stays the project's, unless its name turns into the short name of another
        repository's list.
        """
        if self.is_allowed(data_dir, user):
            return True
        is_short = used is not None and repository.stem_of(used) == self.conversation
        if self.conversation == OUTSIDE or is_short:
            return False
        return used is None or os.path.isfile(self._record(data_dir, user) + _UNUSED)

    def allow(self, data_dir: str, user: "str | None" = None, *, unused: bool = False) -> None:
        """Remember that this project may name this list; with a user, the user's own one of its name alone.

        With `unused`, remember only that nobody had used the list.

        Raises:
            OSError: The data directory can't be written.
        """
        path = self._record(data_dir, user) + (_UNUSED if unused else "")
        make_directories(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

    def _record(self, data_dir: str, user: "str | None") -> str:
        whose = "" if user is None else f"\0{user}\0"
        key = repository.digest(os.fsencode(f"{self.conversation}\0{whose}{self.project}"))
        return os.path.join(data_dir, _ALLOWED, key)


def meant(directory: "str | None" = None) -> "Meant | None":
    """The list that a directory means (default: the working directory), or None where nothing names one.

    Args:
        directory: An absolute path; of a file, the directory that it is in.

    Raises:
        DirectoryError: There is a project file or a repository that can't be used, or no such directory.
    """
    place = _real(directory)
    within = refused = None
    try:
        within = repository.above(place)
    except DirectoryError as error:
        refused = error
    root = file_above(place, within.root if within else None)
    if root is None and refused is not None:
        raise refused
    if root is None and within is not None:
        if within.main is not None and project_file.exists(os.path.join(within.main, project_file.NAME)):
            root = within.main
        else:
            return _above_repository(within) or Meant(within.conversation, within.root, None, within)
    return None if root is None else _by_file(root, within)


def at(root: str, conversation: str) -> Meant:
    """What a project file in this directory means once it names this conversation."""
    place = os.path.realpath(root)
    return Meant(conversation, place, os.path.join(place, project_file.NAME), _repository_of(place))


def file_above(place: str, top: "str | None" = None) -> "str | None":
    """The nearest directory with a project file, from `place` upwards as far as `top`."""
    while True:
        if project_file.exists(os.path.join(place, project_file.NAME)):
            return place
        parent = os.path.dirname(place)
        if place in (top, parent):
            return None
        place = parent


def _above_repository(within: Repository) -> "Meant | None":
    """The list of a project file above a repository; what is not ours there is none of this repository's matter."""
    try:
        root = file_above(os.path.dirname(within.root))
    except DirectoryError:
        return None
    return None if root is None else _by_file(root, _repository_of(root))


def _by_file(root: str, within: "Repository | None") -> Meant:
    path = os.path.join(root, project_file.NAME)
    return Meant(project_file.read(path), root, path, within)


def _repository_of(place: str) -> "Repository | None":
    try:
        return repository.above(place)
    except DirectoryError:
        return None


def _top(within: Repository, root: str) -> str:
    """The top of the work tree that `root` is in."""
    return within.main if within.main is not None and root == within.main else within.root


def _real(directory: "str | None") -> str:
    if directory is None:
        try:
            return os.getcwd()
        except OSError as error:
            raise DirectoryError("The working directory is gone", "cd to one that exists") from error
    try:
        place = os.path.realpath(directory, strict=True)
    except (FileNotFoundError, NotADirectoryError):  # the last part may be missing
        place = os.path.realpath(directory)
    except OSError as error:  # a link that may not be read, as in another user's /proc/PID
        raise DirectoryError(f"{directory} can't be followed: {error.strerror}", "name another directory") from error
    if not os.path.isdir(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise DirectoryError(f"There is no directory {place}", "name one that exists, or a list: punch -c NAME")
    return place
