"""Writes and takes back what a host's configuration says of us: planned in full first, with a backup, undone exactly.

A record beside the backup tells what we left behind. As long as a file is still as we left it, a removal puts the
backup in its place; else it takes out our members and leaves what others wrote since.
"""

import difflib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from punchlist.hosts import jsonc, tomltable
from punchlist.hosts.catalog import Edit, FileEdits

_MAX_BYTES = 16 << 20


class SetupError(Exception):
    """A file that can't be changed. Nothing has been written."""


class Record(msgspec.Struct, frozen=True):
    """What we know of a file that we changed; `made` are directories that were not there before."""

    path: str
    existed: bool
    left: str
    made: tuple[str, ...] = ()


class Change(NamedTuple):
    """One file before, after, and as a removal would leave it; None: it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    without_us: bytes | None

    def diff(self) -> list[str]:
        """The change as people read it."""
        old, new = ((data or b"").decode().splitlines() for data in (self.before, self.after))
        names = ("/dev/null" if data is None else self.path for data in (self.before, self.after))
        return list(difflib.unified_diff(old, new, *names, n=2, lineterm=""))


class Configurator:
    """Changes hosts' files.

    Args:
        data_dir: Where records and backups are kept.
    """

    def __init__(self, data_dir: str) -> None:
        self._directory = os.path.join(data_dir, "setup")

    def plan(self, wanted: FileEdits) -> Change:
        """What a file has to become.

        Raises:
            SetupError: It can't be read; names the line.
        """
        before = _read(wanted.path)
        record = self._record(wanted.path)
        text = _text(wanted.path, before)
        for edit in wanted.edits:
            text = _guarded(wanted, text, edit, remove=False)
        after = before if before is not None and text == before.decode() else text.encode()
        return Change(wanted.path, before, after, self._without_us(wanted, before) if record else before)

    def plan_removal(self, wanted: FileEdits) -> Change:
        """What a file has to become for us to be gone.

        Raises:
            SetupError: It can't be read; names the line.
        """
        before = _read(wanted.path)
        after = self._without_us(wanted, before)
        return Change(wanted.path, before, after, after)

    def _without_us(self, wanted: FileEdits, before: bytes | None) -> bytes | None:
        if before is None:
            return None
        record = self._record(wanted.path)
        original = _read(self.backup_of(wanted.path)) if record and record.existed else None
        if record and record.left == _digest(before) and (original is not None or not record.existed):
            return original
        text = _text(wanted.path, before)
        kept = _text(wanted.path, original)
        for edit in wanted.edits:
            text = _guarded(wanted, text, edit, remove=True)
            if wanted.form == "json":
                text = _without_empty(text, edit.path if edit.ours else edit.path[:-1], kept)
        ours_alone = record is not None and not record.existed and "".join(text.split()) in ("", "{}")
        return None if ours_alone else text.encode()

    def apply(self, change: Change) -> None:
        """Write a planned change of the first kind, keeping a backup."""
        if change.after is None or change.after == change.before:
            return
        record = self._record(change.path)
        if record is None or change.before is None or record.left != _digest(change.before):
            # Others wrote since: what goes back is what they left, and never what we wrote the last time.
            known = record.made if record else ()
            made = (*known, *(one for one in _make_directories(os.path.dirname(change.path)) if one not in known))
            os.makedirs(self._directory, 0o700, exist_ok=True)
            if change.without_us is not None:
                _write(self.backup_of(change.path), change.without_us)
            record = Record(change.path, change.without_us is not None, "", made)
        _write(os.path.realpath(change.path), change.after)
        kept = msgspec.structs.replace(record, left=_digest(change.after))
        _write(self._place(change.path, "json"), msgspec.json.encode(kept))

    def apply_removal(self, change: Change) -> None:
        """Write a planned change of the second kind."""
        record = self._record(change.path)
        if change.after is not None and change.after != change.before:
            _write(os.path.realpath(change.path), change.after)
        elif change.after is None and change.before is not None:
            os.unlink(change.path)
            for directory in reversed(record.made if record else ()):
                _remove_if_empty(directory)
        for path in (self._place(change.path, "json"), self.backup_of(change.path)):
            if os.path.exists(path):
                os.unlink(path)

    def backup_of(self, path: str) -> str:
        """Where the bytes from before our change are kept."""
        return self._place(path, "backup")

    def _record(self, path: str) -> Record | None:
        try:
            with open(self._place(path, "json"), "rb") as file:
                return msgspec.json.decode(file.read(), type=Record)
        except (OSError, msgspec.MsgspecError):
            return None

    def _place(self, path: str, kind: str) -> str:
        name = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]
        return os.path.join(self._directory, f"{name}.{kind}")


def _guarded(wanted: FileEdits, text: str, edit: Edit, *, remove: bool) -> str:
    try:
        return _edited(wanted.form, text, edit, remove=remove)
    except (jsonc.JsoncError, tomltable.TomlError) as error:
        place = f"{wanted.path}:{error.line}" if error.line else wanted.path
        raise SetupError(f"{place}: {error}") from error


def _edited(form: str, text: str, edit: Edit, *, remove: bool) -> str:
    if form == "toml":
        return tomltable.remove(text, edit.path) if remove else tomltable.put(text, edit.path, edit.value)
    if edit.ours is not None:
        return _edited_items(text, edit, edit.ours, remove=remove)
    return jsonc.remove(text, edit.path) if remove else jsonc.put(text, edit.path, edit.value)


def _edited_items(text: str, edit: Edit, ours: Callable[[Any], bool], *, remove: bool) -> str:
    """The text with exactly one item of ours at the edit's path, or with none."""
    found = jsonc.find(text, edit.path)
    present = [item for item in cast("list[Any]", found) if ours(item)] if isinstance(found, list) else []
    if present == [edit.value] and not remove:
        return text
    text = jsonc.remove_items(text, edit.path, ours)
    return text if remove else jsonc.append(text, edit.path, edit.value)


def _without_empty(text: str, path: tuple[str, ...], kept: str) -> str:
    """The text without the containers at `path` that are empty now and were not there before us."""
    while path and jsonc.find(text, path) in ({}, []) and jsonc.find(kept, path) is None:
        text = jsonc.remove(text, path)
        path = path[:-1]
    return text


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SetupError(f"{path}: not a regular file")
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise SetupError(f"{path}: larger than {_MAX_BYTES >> 20} MiB")
    return data


def _text(path: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SetupError(f"{path}:{line}: not UTF-8") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _make_directories(directory: str) -> tuple[str, ...]:
    """Make a directory and its parents; returns those that were not there, outermost first."""
    missing: list[str] = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for one in reversed(missing):
        os.mkdir(one, 0o755)
    return tuple(reversed(missing))


def _remove_if_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return


def _write(path: str, data: bytes) -> None:
    """The whole file or nothing, with the mode that it has."""
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o600
    descriptor, beside = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
