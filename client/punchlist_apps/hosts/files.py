"""Replaces either all of several files or none, without losing concurrent writes.

All new contents are written to temporary files first. Then each temporary file is exchanged with its target, and the
displaced content is compared with the content from which the change was planned. If the two differ, everything is
rolled back.
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
    """A file that can't be read or written; nothing was changed."""


class Raced(Exception):
    """Another program wrote to a file after it was read; nothing was changed."""


class Replacement(NamedTuple):
    """The replacement for one file. A content of None means that the file doesn't exist.

    Attributes:
        path: The file.
        before: The content when it was read.
        after: The new content.
        root: Directory below which links are not followed. If it is None, all links are followed, because a user's own
            files may be links.
    """

    path: str
    before: bytes | None
    after: bytes | None
    root: str | None = None


def read(path: str, root: str | None = None) -> bytes | None:
    """Return the content of a file, or None if it doesn't exist.

    Raises:
        FileError: The file isn't a regular file, is too large, can't be read, or is reached through a link below
            `root`.
    """
    try:
        folder, name, _ = _open_folder(path, root, create=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    try:
        return _read(folder, name, path)
    finally:
        os.close(folder)


def replace_all(replacements: list[Replacement]) -> dict[str, tuple[str, ...]]:
    """Replace either all files or none.

    Returns:
        The directories that were created for each path, outermost first.

    Raises:
        FileError: A file can't be written.
        Raced: A file has changed since it was read; plan the change again.
    """
    staged: list[_Staged] = []
    try:
        for replacement in replacements:
            staged.append(_Staged(replacement))
            staged[-1].write()
        for item in staged:
            item.swap()
    except BaseException as error:
        for item in reversed(staged):
            item.roll_back()
        if isinstance(error, OSError):
            raise FileError(f"{error.filename}: {error.strerror}") from error
        raise
    for item in staged:
        item.clean_up()
    return {item.target.path: item.created for item in staged}


class _Staged:
    """One replacement in progress."""

    def __init__(self, target: Replacement) -> None:
        self.target = target
        self._folder, self._name, self.created = _open_folder(target.path, target.root, create=True)
        self._temporary = f".{self._name}.{os.getpid()}-{os.urandom(3).hex()}"
        self._is_swapped = False

    def write(self) -> None:
        if self.target.after is not None:
            self._write(self._temporary, self.target.after)

    def swap(self) -> None:
        """Put the finished file in place."""
        before, after = self.target.before, self.target.after
        if before is None:
            self._rename(self._temporary, self._name, NO_REPLACE)
        elif after is None:
            self._rename(self._name, self._temporary, NO_REPLACE)
        else:
            self._rename(self._temporary, self._name, EXCHANGE)
        self._is_swapped = True
        if before is not None and _read(self._folder, self._temporary, self.target.path) != before:
            raise Raced(self.target.path)

    def roll_back(self) -> None:
        """Restore the old file, unless another program has replaced the new one since."""
        before, after = self.target.before, self.target.after
        if self._is_swapped and after is None:
            rename_if(self._folder, self._temporary, self._name, NO_REPLACE)
        elif self._is_swapped and _read(self._folder, self._name, self.target.path) == after:
            if before is None:
                os.unlink(self._name, dir_fd=self._folder)
            else:
                os.rename(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self.clean_up()
        remove_empty(self.created)

    def clean_up(self) -> None:
        """Delete the temporary file."""
        _unlink(self._folder, self._temporary)
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
            error.filename = self.target.path
            raise

    def _rename(self, old: str, new: str, condition: str) -> None:
        code = rename_if(self._folder, old, new, condition)
        if code in _UNSUPPORTED:
            self._rename_without_exchange(old, new, condition)
        elif code in (errno.EEXIST, errno.ENOENT):
            raise Raced(self.target.path)
        elif code:
            raise OSError(code, os.strerror(code), self.target.path)

    def _rename_without_exchange(self, old: str, new: str, condition: str) -> None:
        """Rename without an exchange, for file systems that don't support it. A concurrent write may be lost."""
        folder, present = self._folder, _read(self._folder, self._name, self.target.path)
        if present != self.target.before:
            raise Raced(self.target.path)
        if condition == NO_REPLACE or present is None:
            os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder)
            os.unlink(old, dir_fd=folder)
            return
        copy = f"{self._temporary}.old"
        self._write(copy, present)
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(copy, old, src_dir_fd=folder, dst_dir_fd=folder)


def remove_empty(directories: tuple[str, ...]) -> None:
    """Remove empty directories, innermost first, up to the first that isn't empty."""
    for directory in reversed(directories):
        try:
            os.rmdir(directory)
        except OSError:
            return


def _open_folder(path: str, root: str | None, *, create: bool) -> tuple[int, str, tuple[str, ...]]:
    """Return the open directory of a file, the file's name in it, and the directories that were created."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if root is None:
        directory, name = os.path.split(os.path.realpath(path))
        created = make_directories(directory) if create else ()
        return os.open(directory, flags), name, created
    *parts, name = os.path.relpath(path, root).split(os.sep)
    folder, created = os.open(root, flags), ()
    for index, part in enumerate(parts):
        inner = os.path.join(root, *parts[: index + 1])
        try:
            if create and not _exists(folder, part):
                os.mkdir(part, 0o755, dir_fd=folder)
                created = (*created, inner)
            outer, folder = folder, os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            os.close(folder)
            remove_empty(created)
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise FileError(
                    f"{inner}: a link, or not a directory; punch follows no links inside a project"
                ) from error
            error.filename = inner
            raise
        os.close(outer)
    return folder, name, created


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
