"""Finds the git repository of a directory, and the id of the repository's own list.

It reads only a few small files. It neither runs git nor uses environment variables. The id is derived from the real
path of the common directory, which all worktrees of a repository share. A `.git` file or link counts only if the
repository refers back to it, so that an unpacked archive can't claim the list of another repository. Otherwise it is
treated as a separate repository.
"""

import os
import stat
from collections.abc import Iterable

from punchlist_schemas.project_file import LETTERS, DirectoryError, check_owner, read_small_file

_STEM = 40
_SUFFIX = 12
_DIGITS = frozenset("0123456789abcdef")
_KEPT = LETTERS | frozenset("._-")
_GIT = ".git"
_BRANCH = "ref: refs/heads/"
_HIDDEN = (_GIT, ".bare")
"""Names of common directories whose list is named after their parent directory."""


class Repository:
    """A repository, seen from one of its work trees.

    Attributes:
        root: The top of the work tree, or the directory of a bare repository.
        common: The real path of the common directory, which identifies the repository.
        git: The work tree's own git directory.
        main: The top of the main work tree if this is a linked worktree, else None.
    """

    __slots__ = ("common", "git", "main", "root")

    def __init__(self, root: str, common: str, main: "str | None" = None, git: str = "") -> None:
        self.root = root
        self.common = common
        self.git = git or common
        self.main = main

    @property
    def conversation(self) -> str:
        """Id of the repository's own list: unique, and at most 53 characters."""
        return build_list_id(self.common, digest(os.fsencode(self.common))[:_SUFFIX])

    @property
    def branch(self) -> str:
        """The checked-out branch; empty if no branch is checked out, or it can't be read."""
        try:
            head = _read_line(os.path.join(self.git, "HEAD")) or ""
        except OSError:
            return ""
        return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else ""


def build_list_id(path: str, suffix: str) -> str:
    """Return an id for a directory's list: the directory's name, a dash and `suffix`.

    Characters of the name that ids don't allow become dashes.
    """
    name = os.path.basename(path)
    if name in _HIDDEN:
        name = os.path.basename(os.path.dirname(path))
    name = name.removesuffix(_GIT)
    stem = "".join(char if char in _KEPT else "-" for char in name)[:_STEM].strip("._-")
    return f"{stem or 'project'}-{suffix}"


def stem_of(id: str) -> str:
    """Return the readable part of the id of a repository's list (`website` of `website-8f909d367e2b`), else ""."""
    stem, dash, suffix = id[: -_SUFFIX - 1], id[-_SUFFIX - 1 : -_SUFFIX], id[-_SUFFIX:]
    is_repository_list = dash == "-" and len(suffix) == _SUFFIX and _DIGITS.issuperset(suffix) and ":" not in stem
    return stem if is_repository_list and not _begins_a_guid(stem) else ""


def _begins_a_guid(stem: str) -> bool:
    groups = stem.split("-")
    return [len(group) for group in groups] == [8, 4, 4, 4] and all(_DIGITS.issuperset(group) for group in groups)


def short_name(id: str, ids: "Iterable[str]") -> str:
    """Return the name to show for a list: its readable part, or its id if that part is ambiguous among `ids`."""
    stem = stem_of(id)
    if not stem:
        return id
    prefix = f"{stem}-"
    others = (
        other for other in ids if other == stem or (other.startswith(prefix) and other != id and stem_of(other) == stem)
    )
    return stem if next(iter(others), None) is None else id


def digest(data: bytes) -> str:
    """Return a fingerprint in hexadecimal digits. It must never change, because list ids contain it."""
    from hashlib import blake2s  # noqa: PLC0415 - loads OpenSSL, half the time of `punch list`

    return blake2s(data, digest_size=16).hexdigest()


def find_repository(directory: str) -> "Repository | None":
    """Return the repository that contains a directory (a real path), or None.

    Raises:
        DirectoryError: The repository is broken, or belongs to another user.
    """
    while True:
        repository = _open_work_tree(directory)
        if repository is not None:
            return repository
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def _open_work_tree(directory: str) -> "Repository | None":
    """Return the repository whose work tree has this directory as its top, or None."""
    path = os.path.join(directory, _GIT)
    try:
        status = os.lstat(path)
    except OSError:
        return _open_bare(directory)
    check_owner(path, status)
    if stat.S_ISDIR(status.st_mode):
        _check_git_directory(path, path)
        return Repository(directory, path)
    try:
        git = os.path.realpath(os.path.join(directory, _read_git_file(path)) if stat.S_ISREG(status.st_mode) else path)
        _check_git_directory(path, git)
        common = _read_line(os.path.join(git, "commondir"))
        if common is not None:
            return _open_linked(directory, path, git, os.path.realpath(os.path.join(git, common)))
        inside = git.startswith(os.path.join(directory, ""))
        confirmed = inside or os.path.realpath(os.path.join(git, _read_core_worktree(git))) == directory
    except OSError as error:
        raise _broken(path, error.strerror or "it can't be read") from error
    repository = Repository(directory, git if confirmed else path)
    repository.git = git
    return repository


def _open_bare(directory: str) -> "Repository | None":
    if not _is_git_directory(directory):
        return None
    head = os.path.join(directory, "HEAD")
    check_owner(head, os.lstat(head))
    return Repository(directory, directory)


def _open_linked(directory: str, path: str, git: str, common: str) -> Repository:
    """Return the repository of a linked worktree, if the worktree is registered there with this path."""
    is_registered = os.path.dirname(git) == os.path.join(common, "worktrees")
    back = _read_line(os.path.join(git, "gitdir")) or ""
    if not is_registered or os.path.realpath(os.path.join(git, back)) != path:
        raise DirectoryError(
            f"{directory} is a worktree that is not registered in its repository",
            "run git worktree repair there, or name a list: punch -c NAME",
        )
    _check_git_directory(path, common)
    main = os.path.dirname(common) if os.path.basename(common) == _GIT else None
    return Repository(directory, common, main, git)


def _read_git_file(path: str) -> str:
    """Return the target of a `.git` file."""
    key, colon, target = read_small_file(path).partition(b":")
    if key != b"gitdir" or not colon or not target.strip() or b"\0" in target:
        raise _broken(path, "it names no directory")
    return os.fsdecode(target.strip(b" \t").rstrip(b"\r\n"))


def _check_git_directory(path: str, git: str) -> None:
    try:
        status = os.stat(git)
    except OSError as error:
        raise _broken(path, f"{git}: {error.strerror}") from error
    check_owner(git, status)
    if not os.path.isfile(os.path.join(git, "commondir")) and not _is_git_directory(git):
        raise _broken(path, f"{git} is not a git directory")


def _is_git_directory(path: str) -> bool:
    # The same check as in git.
    return (
        os.path.lexists(os.path.join(path, "HEAD"))
        and os.path.isdir(os.path.join(path, "objects"))
        and os.path.isdir(os.path.join(path, "refs"))
    )


def _read_line(path: str) -> "str | None":
    try:
        text = read_small_file(path)
    except FileNotFoundError:
        return None
    return os.fsdecode(text.rstrip(b"\r\n").partition(b"\0")[0])


def _read_core_worktree(git: str) -> str:
    """Return `core.worktree` of a git directory's configuration, as submodules set it; default: `.`."""
    section, work_tree = "", "."
    try:
        text = os.fsdecode(read_small_file(os.path.join(git, "config"))).replace("\0", "")
    except FileNotFoundError:
        return work_tree
    for line in text.split("\n"):
        words = line.strip()
        if words.startswith("["):
            section = words.strip("[]").strip().lower()
            continue
        key, equals, value = words.partition("=")
        if section == "core" and equals and key.strip().lower() == "worktree":
            work_tree = value.strip().strip('"')
    return work_tree


def _broken(path: str, reason: str) -> DirectoryError:
    return DirectoryError(
        f"{path} does not lead to a repository: {reason}",
        "repair it, write a project file with punch init, or name a list: punch -c NAME",
    )
