"""Hosts' files on the disk: several are replaced together or not at all, and what others write meanwhile is not lost.

Everything is written beside the files first. Then each finished file changes places with the one that it replaces,
so that what stood there at that very moment is in our hands: where it is not what the change was planned from, all
that was done is undone.
"""

import errno
import os
import stat
from typing import NamedTuple

from punchlist_apps.common.renaming import EXCHANGE, NO_REPLACE, rename_if
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import PRIVATE, write_new

MAX_BYTES = 16 << 20
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


class FileError(Exception):
    """A file that can't be used as it is; nothing was changed."""


class Raced(Exception):
    """Somebody else wrote to a file after it was read; nothing was changed."""


class Replacement(NamedTuple):
    """What a file holds, None where there is none, and what it is to hold.

    Attributes:
        path: The file.
        before: What it held when it was read.
        after: What it is to hold.
        root: The directory below which no link is followed; None follows links, as a user's own files may be links.
    """

    path: str
    before: bytes | None
    after: bytes | None
    root: str | None = None


def read(path: str, root: str | None = None) -> bytes | None:
    """What a file holds, None where there is none.

    Raises:
        FileError: It is no regular file, too large, not readable, or (with `root`) reached through a link.
    """
    try:
        folder, name, _ = _folder_of(path, root, make=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    try:
        return _read(folder, name, path)
    finally:
        os.close(folder)


def replace_all(replacements: list[Replacement]) -> dict[str, tuple[str, ...]]:
    """Replace all files, or none.

    Returns:
        The directories that were made for each path, outermost first.

    Raises:
        FileError: One of them can't be written.
        Raced: One of them changed since it was read; plan anew.
    """
    staged: list[_Staged] = []
    try:
        for one in replacements:
            staged.append(_Staged(one))
            staged[-1].write()
        for each in staged:
            each.swap()
    except BaseException as error:
        for each in reversed(staged):
            each.roll_back()
        if isinstance(error, OSError):
            raise FileError(f"{error.filename}: {error.strerror}") from error
        raise
    for each in staged:
        each.settle()
    return {one.what.path: one.made for one in staged}


class _Staged:
    """One replacement on its way."""

    def __init__(self, what: Replacement) -> None:
        self.what = what
        self._folder, self._name, self.made = _folder_of(what.path, what.root, make=True)
        self._beside = f".{self._name}.{os.getpid()}-{os.urandom(3).hex()}"
        self._is_swapped = False

    def write(self) -> None:
        if self.what.after is not None:
            self._write(self._beside, self.what.after)

    def swap(self) -> None:
        """Put the finished file in place."""
        before, after = self.what.before, self.what.after
        if before is None:
            self._rename(self._beside, self._name, NO_REPLACE)
        elif after is None:
            self._rename(self._name, self._beside, NO_REPLACE)
        else:
            self._rename(self._beside, self._name, EXCHANGE)
        self._is_swapped = True
        if before is not None and _read(self._folder, self._beside, self.what.path) != before:
            raise Raced(self.what.path)

    def roll_back(self) -> None:
        """Leave everything as it was: what stood there goes back, unless somebody wrote over ours since."""
        before, after = self.what.before, self.what.after
        if self._is_swapped and after is None:
            rename_if(self._folder, self._beside, self._name, NO_REPLACE)
        elif self._is_swapped and _read(self._folder, self._name, self.what.path) == after:
            if before is None:
                os.unlink(self._name, dir_fd=self._folder)
            else:
                os.rename(self._beside, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self.settle()
        remove_empty(self.made)

    def settle(self) -> None:
        """Delete the temporary file."""
        _unlink(self._folder, self._beside)
        os.close(self._folder)

    def _write(self, name: str, data: bytes) -> None:
        try:
            status = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
        except FileNotFoundError:
            mode = PRIVATE
        try:
            write_new(name, data, mode, folder=self._folder)
        except OSError as error:
            error.filename = self.what.path
            raise

    def _rename(self, old: str, new: str, condition: str) -> None:
        code = rename_if(self._folder, old, new, condition)
        if code in _UNSUPPORTED:
            self._rename_plainly(old, new, condition)
        elif code in (errno.EEXIST, errno.ENOENT):
            raise Raced(self.what.path)
        elif code:
            raise OSError(code, os.strerror(code), self.what.path)

    def _rename_plainly(self, old: str, new: str, condition: str) -> None:
        """The same where the file system can't exchange: what is written in this very moment can be lost."""
        folder, present = self._folder, _read(self._folder, self._name, self.what.path)
        if present != self.what.before:
            raise Raced(self.what.path)
        if condition == NO_REPLACE or present is None:
            os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder)
            os.unlink(old, dir_fd=folder)
            return
        kept = f"{self._beside}.old"
        self._write(kept, present)
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(kept, old, src_dir_fd=folder, dst_dir_fd=folder)


def remove_empty(directories: tuple[str, ...]) -> None:
    """Remove directories, innermost first, as far as they are empty."""
    for directory in reversed(directories):
        try:
            os.rmdir(directory)
        except OSError:
            return


def _folder_of(path: str, root: str | None, *, make: bool) -> tuple[int, str, tuple[str, ...]]:
    """The open directory of a file, the file's name in it, and the directories that were made for it."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if root is None:
        directory, name = os.path.split(os.path.realpath(path))
        made = make_directories(directory) if make else ()
        return os.open(directory, flags), name, made
    *parts, name = os.path.relpath(path, root).split(os.sep)
    folder, made = os.open(root, flags), ()
    for index, part in enumerate(parts):
        inner = os.path.join(root, *parts[: index + 1])
        try:
            if make and not _exists(folder, part):
                os.mkdir(part, 0o755, dir_fd=folder)
                made = (*made, inner)
            outer, folder = folder, os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            os.close(folder)
            remove_empty(made)
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise FileError(
                    f"{inner}: a link, or not a directory; punch follows no links inside a project"
                ) from error
            error.filename = inner
            raise
        os.close(outer)
    return folder, name, made


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _read(folder: int, name: str, path: str) -> bytes | None:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileError(f"{path}: a link; punch follows no links inside a project") from error
        raise FileError(f"{path}: {error.strerror}") from error
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileError(f"{path}: not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FileError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    return data


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
