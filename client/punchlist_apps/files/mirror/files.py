"""Reads and replaces the files of one conversation, without following links or losing concurrent writes.

A file is replaced by exchanging it with a temporary file. If the displaced content isn't the content that was read, it
is returned as another proposal. On file systems that can't exchange files, the file is read again before it is
overwritten by a rename.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from punchlist_apps.common.renaming import EXCHANGE, NO_REPLACE, rename_if
from punchlist_schemas.system.atomic import PRIVATE, write_new

T = TypeVar("T")

MAX_BYTES = 16 << 20
"""Maximum size of a file, in bytes."""

LATE_S = 1.0
"""Time that a displaced file is kept open, in seconds, since programs may still write to it."""

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
_SUFFIX = ".mirror"


class Trouble(Exception):
    """A file or directory that can't be used."""


class DisplacedFile(NamedTuple):
    """A replaced file that is kept open, since another program may have it open and still write to it."""

    name: str
    descriptor: int
    data: bytes
    until: float


class Folder:
    """A folder of mirror files in a directory. The directory must exist; the folder is created."""

    def __init__(self, directory: str, parts: tuple[str, ...]) -> None:
        self._directory = directory
        self._parts = parts
        self._displaced: list[DisplacedFile] = []

    @property
    def path(self) -> str:
        return os.path.join(self._directory, *self._parts)

    def list_names(self) -> list[str]:
        """Return the names in the folder; empty if it doesn't exist."""
        try:
            folder = self._open(create=False)
        except FileNotFoundError:
            return []
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None if it doesn't exist.

        Raises:
            Trouble: The file is a link, isn't a regular file, or is too large.
        """
        return self._in_folder(lambda folder: _read(folder, name), create=False)

    def replace(self, name: str, data: bytes, expected: bytes | None) -> bytes | None:
        """Replace a file atomically. `expected` is the content that was read; None if the file didn't exist.

        Returns:
            None if the file had the expected content. Otherwise its actual content, which is kept until
            `discard_displaced` is called.

        Raises:
            OSError: The file can't be written; the old file is unchanged.
            Trouble: Something other than a file has this name.
        """

        def replace(folder: int) -> bytes | None:
            present = _replace(folder, name, data)
            if present is None or present == expected:
                self._unlink_displaced(folder, name, present)
                return None
            return present

        return self._in_folder(replace, create=True)

    def read_late_writes(self) -> list[tuple[str, bytes]]:
        """Return the contents that other programs have written to displaced files, each only once."""
        writes: list[tuple[str, bytes]] = []
        still_open: list[DisplacedFile] = []
        for file in self._displaced:
            data = os.pread(file.descriptor, MAX_BYTES, 0)
            now = time.monotonic()
            if data != file.data:
                writes.append((file.name, data))
                file = file._replace(data=data, until=now + LATE_S)  # noqa: PLW2901 - the program may write again
            if now < file.until:
                still_open.append(file)
            else:
                os.close(file.descriptor)
        self._displaced = still_open
        return writes

    def __del__(self) -> None:
        for file in self._displaced:
            os.close(file.descriptor)

    @property
    def has_displaced(self) -> bool:
        """Whether `read_late_writes` may still find writes."""
        return bool(self._displaced)

    def _unlink_displaced(self, folder: int, name: str, data: bytes | None) -> None:
        """Delete the displaced file, but keep it open for `LATE_S`."""
        if data is not None:
            descriptor = os.open(_get_temporary_name(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            self._displaced.append(DisplacedFile(name, descriptor, data, time.monotonic() + LATE_S))
        _unlink(folder, _get_temporary_name(name))

    def remove(self, name: str, expected: bytes) -> None:
        """Delete a file if it has the expected content."""

        def remove(folder: int) -> None:
            if _read(folder, name) == expected:
                os.unlink(name, dir_fd=folder)

        self._in_folder(remove, create=False)

    def link(self, name: str, other: str) -> None:
        """Give a file a second name.

        Raises:
            FileExistsError: A file with this name already exists. That file is unchanged.
            OSError: The file is missing, or the file system has no hard links.
        """
        self._in_folder(
            lambda folder: os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False),
            create=False,
        )

    def list_displaced(self) -> list[str]:
        """Return the names of files with displaced content."""
        return [
            name[1 : -len(_SUFFIX)] for name in self.list_names() if name.startswith(".") and name.endswith(_SUFFIX)
        ]

    def read_displaced(self, name: str) -> bytes | None:
        return self._in_folder(lambda folder: _read(folder, _get_temporary_name(name)), create=False)

    def discard_displaced(self, name: str, data: bytes | None) -> None:
        """Delete the displaced content `data`. Later writes to it are returned by `read_late_writes`."""
        self._in_folder(lambda folder: self._unlink_displaced(folder, name, data), create=False)

    def keep_displaced(self, name: str, copy: str) -> None:
        """Keep the displaced content of a file under the name `copy`."""
        self._in_folder(
            lambda folder: os.rename(_get_temporary_name(name), copy, src_dir_fd=folder, dst_dir_fd=folder),
            create=False,
        )

    def save_copy(self, name: str, data: bytes) -> None:
        """Write a copy, unless a file with this name exists."""

        def save(folder: int) -> None:
            try:
                write_new(name, data, PRIVATE, folder=folder)
            except FileExistsError:
                return

        self._in_folder(save, create=True)

    def _in_folder(self, action: Callable[[int], T], *, create: bool) -> T | None:
        try:
            folder = self._open(create=create)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            return action(folder)
        finally:
            os.close(folder)

    def _open(self, *, create: bool) -> int:
        try:
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Trouble(f"{self._directory}: {error.strerror}") from error
        for part in self._parts:
            outer = folder
            try:
                if create:
                    _make_directory(outer, part)
                folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise Trouble(f"{self.path}: {part} is a link, or not a directory ({error.strerror})") from error
            finally:
                os.close(outer)
        return folder


def _make_directory(folder: int, name: str) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        return


def _read(folder: int, name: str) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Trouble(f"{name} is a link or can't be opened ({error.strerror})") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Trouble(f"{name} is not a regular file")
    with open(descriptor, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Trouble(f"{name} is larger than {MAX_BYTES >> 20} MiB")
    return data


def _replace(folder: int, name: str, data: bytes) -> bytes | None:
    temporary = _get_temporary_name(name)
    _unlink(folder, temporary)
    try:
        write_new(temporary, data, _get_mode(folder, name), folder=folder)
        is_displaced = _exchange(folder, temporary, name)
    except BaseException:
        _unlink(folder, temporary)
        raise
    return _read(folder, temporary) if is_displaced else None


def _exchange(folder: int, temporary: str, name: str) -> bool:
    """Move `temporary` to `name`. Return whether this displaced a file; the displaced file is then at `temporary`."""
    for _ in range(100):
        present = _read(folder, name)
        flags = NO_REPLACE if present is None else EXCHANGE
        code = rename_if(folder, temporary, name, flags)
        if code == 0:
            return present is not None
        if code in _UNSUPPORTED:
            return _rename_over(folder, temporary, name)
        if code not in (errno.EEXIST, errno.ENOENT):
            raise OSError(code, os.strerror(code), name)
        # The file appeared or vanished between the check and the rename: try again.
    raise OSError(errno.EAGAIN, "the file keeps appearing and disappearing", name)


def _rename_over(folder: int, temporary: str, name: str) -> bool:
    present = _read(folder, name)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    if present is not None:
        write_new(temporary, present, PRIVATE, folder=folder)
    return present is not None


def _get_mode(folder: int, name: str) -> int:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777
    except FileNotFoundError:
        return 0o600


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _get_temporary_name(name: str) -> str:
    return f".{name}{_SUFFIX}"
