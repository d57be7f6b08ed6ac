"""The files of one conversation on disk: read without following links, replaced whole, never overwritten unread.

A file is replaced by exchanging it with a finished one, so that what stood there at that very moment is
in our hands: if it is not what we had read, it is handed back as another proposal instead of being lost. Where the file
system can't exchange, the file is compared once more and then renamed over.
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
"""Largest file that is read, in bytes."""

LATE_S = 1.0
"""How long a displaced file is kept open for whoever may still write to it, in seconds."""

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
_SUFFIX = ".mirror"


class Trouble(Exception):
    """A file or directory that can't be used as it is."""


class Shadow(NamedTuple):
    """A file that we replaced and keep open: another program may have opened it earlier and may still write to it."""

    name: str
    descriptor: int
    data: bytes
    until: float


class Folder:
    """One folder of mirror files below a directory. The directory must exist; the folder is made."""

    def __init__(self, directory: str, parts: tuple[str, ...]) -> None:
        self._directory = directory
        self._parts = parts
        self._shadows: list[Shadow] = []

    @property
    def path(self) -> str:
        return os.path.join(self._directory, *self._parts)

    def names(self) -> list[str]:
        """The names in it; none if the folder does not exist."""
        try:
            folder = self._open(make=False)
        except FileNotFoundError:
            return []
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None if there is none.

        Raises:
            Trouble: It is a link, not a regular file, or too large.
        """
        return self._in_folder(lambda folder: _read(folder, name), make=False)

    def replace(self, name: str, data: bytes, expected: bytes | None) -> bytes | None:
        """Replace a file by a whole new one, if it still holds what we `expected` (None: no file).

        Returns:
            None if it did; otherwise what the file held, which is kept beside it until `settle`.

        Raises:
            OSError: It can't be written; the old file is untouched.
            Trouble: There is something of this name that is not a file.
        """

        def replace(folder: int) -> bytes | None:
            present = _replace(folder, name, data)
            if present is None or present == expected:
                self._let_go(folder, name, present)
                return None
            return present

        return self._in_folder(replace, make=True)

    def late(self) -> list[tuple[str, bytes]]:
        """What other programs wrote into files that we had replaced already; each content once."""
        found: list[tuple[str, bytes]] = []
        kept: list[Shadow] = []
        for shadow in self._shadows:
            data = os.pread(shadow.descriptor, MAX_BYTES, 0)
            now = time.monotonic()
            if data != shadow.data:
                found.append((shadow.name, data))
                shadow = shadow._replace(data=data, until=now + LATE_S)  # noqa: PLW2901 - whoever writes may go on
            if now < shadow.until:
                kept.append(shadow)
            else:
                os.close(shadow.descriptor)
        self._shadows = kept
        return found

    def __del__(self) -> None:
        for shadow in self._shadows:
            os.close(shadow.descriptor)

    @property
    def has_shadows(self) -> bool:
        """Whether `late` may still find something."""
        return bool(self._shadows)

    def _let_go(self, folder: int, name: str, data: bytes | None) -> None:
        """Remove the copy beside the file, but keep it open for a moment."""
        if data is not None:
            descriptor = os.open(_beside(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            self._shadows.append(Shadow(name, descriptor, data, time.monotonic() + LATE_S))
        _unlink(folder, _beside(name))

    def remove(self, name: str, expected: bytes) -> None:

        def remove(folder: int) -> None:
            if _read(folder, name) == expected:
                os.unlink(name, dir_fd=folder)

        self._in_folder(remove, make=False)

    def link(self, name: str, other: str) -> None:
        """Give a file a second name.

        Raises:
            FileExistsError: The name is taken; that file is untouched.
            OSError: The file is gone, or this file system has no hard links.
        """
        self._in_folder(
            lambda folder: os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False), make=False
        )

    def unsettled(self) -> list[str]:
        """The names of files that have replaced content beside them."""
        return [name[1 : -len(_SUFFIX)] for name in self.names() if name.startswith(".") and name.endswith(_SUFFIX)]

    def displaced(self, name: str) -> bytes | None:
        return self._in_folder(lambda folder: _read(folder, _beside(name)), make=False)

    def settle(self, name: str, data: bytes | None) -> None:
        """Forget the replaced content, if it is this one; what is written to it later comes from `late`."""
        self._in_folder(lambda folder: self._let_go(folder, name, data), make=False)

    def set_aside(self, name: str, copy: str) -> None:
        """Keep the replaced content of a file under a name of its own."""
        self._in_folder(lambda folder: os.rename(_beside(name), copy, src_dir_fd=folder, dst_dir_fd=folder), make=False)

    def save_copy(self, name: str, data: bytes) -> None:
        """Write a copy under a name of its own, unless it is there already."""

        def save(folder: int) -> None:
            try:
                write_new(name, data, PRIVATE, folder=folder)
            except FileExistsError:
                return

        self._in_folder(save, make=True)

    def _in_folder(self, action: Callable[[int], T], *, make: bool) -> T | None:
        try:
            folder = self._open(make=make)
        except FileNotFoundError:
            if make:
                raise
            return None
        try:
            return action(folder)
        finally:
            os.close(folder)

    def _open(self, *, make: bool) -> int:
        try:
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Trouble(f"{self._directory}: {error.strerror}") from error
        for part in self._parts:
            outer = folder
            try:
                if make:
                    _make(outer, part)
                folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise Trouble(f"{self.path}: {part} is a link, or not a directory ({error.strerror})") from error
            finally:
                os.close(outer)
        return folder


def _make(folder: int, name: str) -> None:
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
    beside = _beside(name)
    _unlink(folder, beside)
    try:
        write_new(beside, data, _mode(folder, name), folder=folder)
        is_displaced = _exchanged(folder, beside, name)
    except BaseException:
        _unlink(folder, beside)
        raise
    return _read(folder, beside) if is_displaced else None


def _exchanged(folder: int, beside: str, name: str) -> bool:
    """Put `beside` at `name`; returns whether something stood there, which is at `beside` then."""
    for _ in range(100):
        present = _read(folder, name)
        flags = NO_REPLACE if present is None else EXCHANGE
        code = rename_if(folder, beside, name, flags)
        if code == 0:
            return present is not None
        if code in _UNSUPPORTED:
            return _renamed(folder, beside, name)
        if code not in (errno.EEXIST, errno.ENOENT):
            raise OSError(code, os.strerror(code), name)
        # It appeared or vanished at this moment: look again.
    raise OSError(errno.EAGAIN, "the file keeps appearing and disappearing", name)


def _renamed(folder: int, beside: str, name: str) -> bool:
    present = _read(folder, name)
    os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    if present is not None:
        write_new(beside, present, PRIVATE, folder=folder)
    return present is not None


def _mode(folder: int, name: str) -> int:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) & 0o777
    except FileNotFoundError:
        return 0o600


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _beside(name: str) -> str:
    return f".{name}{_SUFFIX}"
