"""The git repository that a directory belongs to, and the name of the list that is the repository's own.

Found by reading a few small files; no git process is started and the environment is not asked. The name comes from the
real path of the common directory, which all worktrees of a repository share. What points to a repository counts only
where the repository points back, so that an unpacked archive can't claim the list of another repository: a `.git` file
or link that nothing confirms stands for itself.
"""

import os
import stat
from collections.abc import Iterable

from punchlist_schemas.project_file import LETTERS, DirectoryError, is_own_file, of_another, small_file

_STEM = 40
_SUFFIX = 12
_DIGITS = frozenset("0123456789abcdef")
_KEPT = LETTERS | frozenset("._-")
_GIT = ".git"
_BRANCH = "ref: refs/heads/"
_HIDDEN = (_GIT, ".bare")
"""Common directories that are named after the directory they are in."""


class Repository:
    """A repository, seen from one of its work trees.

    Attributes:
        root: The top of the work tree; of a bare repository its directory.
        common: The real path of the common directory: what makes a repository the same one.
        git: The work tree's own git directory.
        main: The top of the main work tree, where `root` is a linked one's.
    """

    __slots__ = ("common", "git", "main", "root")

    def __init__(self, root: str, common: str, main: "str | None" = None, git: str = "") -> None:
        self.root = root
        self.common = common
        self.git = git or common
        self.main = main

    @property
    def conversation(self) -> str:
        """The id of the repository's own list: at most 53 characters, and no other repository's."""
        return fresh_name(self.common, digest(os.fsencode(self.common))[:_SUFFIX])

    @property
    def branch(self) -> str:
        """Return the checked-out branch; empty without one, or if it can't be read."""
        try:
            head = _line(os.path.join(self.git, "HEAD")) or ""
        except OSError:
            return ""
        return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else ""


def fresh_name(path: str, suffix: str) -> str:
    """A conversation's id that tells of a directory: its name as far as an id can hold it, and `suffix`."""
    name = os.path.basename(path)
    if name in _HIDDEN:
        name = os.path.basename(os.path.dirname(path))
    name = name.removesuffix(_GIT)
    stem = "".join(char if char in _KEPT else "-" for char in name)[:_STEM].strip("._-")
    return f"{stem or 'project'}-{suffix}"


def stem_of(id: str) -> str:
    """The readable part of the id of a repository's list, such as `website` of `website-8f909d367e2b`; else ""."""
    stem, dash, suffix = id[: -_SUFFIX - 1], id[-_SUFFIX - 1 : -_SUFFIX], id[-_SUFFIX:]
    is_repositorys = dash == "-" and len(suffix) == _SUFFIX and _DIGITS.issuperset(suffix) and ":" not in stem
    return stem if is_repositorys and not _begins_a_guid(stem) else ""


def _begins_a_guid(stem: str) -> bool:
    groups = stem.split("-")
    return [len(group) for group in groups] == [8, 4, 4, 4] and all(_DIGITS.issuperset(group) for group in groups)


def short_name(id: str, ids: "Iterable[str]") -> str:
    """The name that is shown for a list among all lists: the readable part, unless another list could be meant."""
    stem = stem_of(id)
    if not stem:
        return id
    prefix = f"{stem}-"
    others = (one for one in ids if one == stem or (one.startswith(prefix) and one != id and stem_of(one) == stem))
    return stem if next(iter(others), None) is None else id


def digest(data: bytes) -> str:
    """A short fingerprint in hexadecimal digits; the same for ever, since names are made of it."""
    from hashlib import blake2s  # noqa: PLC0415 - loads OpenSSL, which costs half as much as all of `punch list`

    return blake2s(data, digest_size=16).hexdigest()


def above(directory: str) -> "Repository | None":
    """The repository that a directory (a real path) is in.

    Raises:
        DirectoryError: There is one that can't be used: broken, or another user's.
    """
    while True:
        found = _at(directory)
        if found is not None:
            return found
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def _at(directory: str) -> "Repository | None":
    path = os.path.join(directory, _GIT)
    try:
        found = os.lstat(path)
    except OSError:
        return _bare(directory)
    if not is_own_file(found):
        raise of_another(path, found)
    if stat.S_ISDIR(found.st_mode):
        _check(path, path)
        return Repository(directory, path)
    try:
        git = os.path.realpath(os.path.join(directory, _target(path)) if stat.S_ISREG(found.st_mode) else path)
        _check(path, git)
        common = _line(os.path.join(git, "commondir"))
        if common is not None:
            return _worktree(directory, path, git, os.path.realpath(os.path.join(git, common)))
        inside = git.startswith(os.path.join(directory, ""))
        confirmed = inside or os.path.realpath(os.path.join(git, _configured(git))) == directory
    except OSError as error:
        raise _broken(path, error.strerror or "it can't be read") from error
    repository = Repository(directory, git if confirmed else path)
    repository.git = git
    return repository


def _bare(directory: str) -> "Repository | None":
    if not _is_git_directory(directory):
        return None
    head = os.path.join(directory, "HEAD")
    if not is_own_file(found := os.lstat(head)):
        raise of_another(head, found)
    return Repository(directory, directory)


def _worktree(directory: str, path: str, git: str, common: str) -> Repository:
    """A linked worktree: its repository must know it, and know it at this place."""
    known = os.path.dirname(git) == os.path.join(common, "worktrees")
    back = _line(os.path.join(git, "gitdir")) or ""
    if not known or os.path.realpath(os.path.join(git, back)) != path:
        raise DirectoryError(
            f"{directory} is a worktree that its repository does not know at this place",
            "run git worktree repair there, or name a list: punch -c NAME",
        )
    _check(path, common)
    main = os.path.dirname(common) if os.path.basename(common) == _GIT else None
    return Repository(directory, common, main, git)


def _target(path: str) -> str:
    """What a `.git` file points to."""
    key, colon, target = small_file(path).partition(b":")
    if key != b"gitdir" or not colon or not target.strip() or b"\0" in target:
        raise _broken(path, "it names no directory")
    return os.fsdecode(target.strip(b" \t").rstrip(b"\r\n"))


def _check(path: str, git: str) -> None:
    try:
        found = os.stat(git)
    except OSError as error:
        raise _broken(path, f"{git}: {error.strerror}") from error
    if not is_own_file(found):
        raise of_another(git, found)
    if not os.path.isfile(os.path.join(git, "commondir")) and not _is_git_directory(git):
        raise _broken(path, f"{git} is no git directory")


def _is_git_directory(path: str) -> bool:
    """What git itself looks for."""
    return (
        os.path.lexists(os.path.join(path, "HEAD"))
        and os.path.isdir(os.path.join(path, "objects"))
        and os.path.isdir(os.path.join(path, "refs"))
    )


def _line(path: str) -> "str | None":
    try:
        text = small_file(path)
    except FileNotFoundError:
        return None
    return os.fsdecode(text.rstrip(b"\r\n").partition(b"\0")[0])


def _configured(git: str) -> str:
    """`core.worktree` of a repository's configuration, as submodules have it; else the git directory itself."""
    section, found = "", "."
    try:
        text = os.fsdecode(small_file(os.path.join(git, "config"))).replace("\0", "")
    except FileNotFoundError:
        return found
    for line in text.split("\n"):
        words = line.strip()
        if words.startswith("["):
            section = words.strip("[]").strip().lower()
            continue
        key, equals, value = words.partition("=")
        if section == "core" and equals and key.strip().lower() == "worktree":
            found = value.strip().strip('"')
    return found


def _broken(path: str, reason: str) -> DirectoryError:
    return DirectoryError(
        f"{path} leads to no repository: {reason}",
        "repair it, write a project file with punch init, or name a list: punch -c NAME",
    )
