"""Adds our entries to the configuration of a host, and removes them: all planned first, with a backup, undone exactly.

A record beside the backup holds what we wrote. If a file is still as we wrote it, a removal restores the backup;
otherwise it removes our members and leaves what others wrote since. Setups take turns (a lock), and the change of a
file that its host writes at the same moment is planned again.
"""

import contextlib
import difflib
import fcntl
import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from punchlist_apps.hosts import jsonc, tomltable
from punchlist_apps.hosts.catalog import Edit, FileEdits, Host, Place
from punchlist_apps.hosts.files import FileError, Raced, Replacement, read, remove_empty, replace_all
from punchlist_apps.hosts.host_command import OwnCommand
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

_ROUNDS = 20
"""How often a change is planned anew because a host wrote to its file meanwhile."""


class SetupError(Exception):
    """A file that can't be changed. Nothing has been written."""


class Record(msgspec.Struct, frozen=True):
    """What we know of a file that we changed; `made` are directories that were not there before."""

    path: str
    existed: bool
    left: str
    made: tuple[str, ...] = ()


class Change(NamedTuple):
    """One file; None: it is not there.

    Attributes:
        path: The file.
        root: The directory below which no link is followed, if there is one.
        before: What it holds.
        after: What it is to hold.
        without_us: What a removal would leave of `first`.
        first: What it held before the host's own command, if one was run; else the same as `before`.
    """

    path: str
    root: str | None
    before: bytes | None
    after: bytes | None
    without_us: bytes | None
    first: bytes | None

    @property
    def is_change(self) -> bool:
        """Whether the file is, or was, changed at all."""
        return self.first != self.after

    def diff(self) -> list[str]:
        old, new = ((data or b"").decode().splitlines() for data in (self.first, self.after))
        names = ("/dev/null" if data is None else self.path for data in (self.first, self.after))
        return list(difflib.unified_diff(old, new, *names, n=2, lineterm=""))


class Configurator:
    """Changes hosts' files.

    Args:
        data_dir: Where records and backups are stored.
        note: Called with what a person should know.
    """

    def __init__(self, data_dir: str, note: Callable[[str], None] = lambda text: None) -> None:
        self._directory = os.path.join(data_dir, "setup")
        self._note = note

    def change(self, host: Host, place: Place, *, remove: bool = False) -> list[Change]:
        """Set a host up, or undo that: by its own command if it has one, and by editing its files.

        Raises:
            SetupError: A file can't be read or written; every file is as it was.
        """
        wanted = host.files(place)
        with self._locked():
            servers, *others = planned = self._plan_all(wanted, remove=remove)
            own = OwnCommand(host, place)
            # A file that the host made for its command holds more than our server, and stays.
            is_exact = remove and self._is_as_we_left_it(servers)
            if not servers.is_change or is_exact or not own.can_change(servers.before, remove=remove):
                return self._write_all(wanted, [None] * len(planned), remove=remove)
            trouble = own.run(is_there=self._names_us(wanted[0], servers.before), remove=remove)
            if trouble:
                self._note(f"{trouble}; {servers.path} is edited instead")
            try:
                return self._write_all(wanted, [servers, *(None for _ in others)], remove=remove)
            except SetupError:
                self._put_back(servers, own)
                raise

    def edit(self, wanted: Sequence[FileEdits], *, remove: bool = False) -> list[Change]:
        """Edit all files, or none.

        Raises:
            SetupError: A file can't be read or written; every file is as it was.
        """
        with self._locked():
            return self._write_all(wanted, [None] * len(wanted), remove=remove)

    def plan(self, wanted: FileEdits, *, remove: bool = False) -> Change:
        """What a file has to become; with `remove`, for us to be gone.

        Raises:
            SetupError: It can't be read; names the line.
        """
        try:
            before = read(wanted.path, wanted.root)
        except FileError as error:
            raise SetupError(str(error)) from error
        without_us = self._without_us(wanted, before) if remove or self._record(wanted.path) else before
        after = without_us
        if not remove:
            text = _text(wanted.path, before)
            for edit in wanted.edits:
                text = text if edit.only_removed else _guarded(wanted, text, edit, remove=False)
            after = before if before is not None and text == before.decode() else text.encode()
        return Change(wanted.path, wanted.root, before, after, without_us, before)

    def backup_of(self, path: str) -> str:
        return self._place(path, "backup")

    def _plan_all(self, wanted: Sequence[FileEdits], *, remove: bool) -> list[Change]:
        return [self.plan(one, remove=remove) for one in wanted]

    def _write_all(
        self, wanted: Sequence[FileEdits], earlier: Sequence[Change | None], *, remove: bool
    ) -> list[Change]:
        for _ in range(_ROUNDS):
            changes = self._plan_all(wanted, remove=remove)
            changes = [
                change if was is None else change._replace(without_us=was.without_us, first=was.first)
                for change, was in zip(changes, earlier, strict=True)
            ]
            try:
                self._commit(changes, remove=remove)
            except Raced:
                continue
            except (FileError, OSError) as error:
                raise SetupError(str(error)) from error
            return changes
        raise SetupError(f"{wanted[0].path}: another program keeps writing to it; stop that program and try again")

    def _commit(self, changes: Sequence[Change], *, remove: bool) -> None:
        todo = [one for one in changes if one.before != one.after]
        if not remove:
            for one in changes:
                if one.is_change and self._needs_backup(one) and one.without_us is not None:
                    make_directories(self._directory)
                    atomic_write(self.backup_of(one.path), one.without_us, fsync=True)
        made = replace_all([Replacement(one.path, one.before, one.after, one.root) for one in todo])
        for one in changes:
            if remove:
                self._forget(one)
            elif one.is_change:
                self._remember(one, made.get(one.path, ()))

    def _remember(self, change: Change, made: tuple[str, ...]) -> None:
        record = self._record(change.path)
        if record is None or self._needs_backup(change):
            known = record.made if record else ()
            made = (*known, *(one for one in made if one not in known))
            record = Record(change.path, change.without_us is not None, "", made)
        kept = msgspec.structs.replace(record, left=_digest(change.after or b""))
        make_directories(self._directory)
        atomic_write(self._place(change.path, "json"), msgspec.json.encode(kept), fsync=True)

    def _forget(self, change: Change) -> None:
        record = self._record(change.path)
        if change.after is None:
            remove_empty(record.made if record else ())
        for path in (self._place(change.path, "json"), self.backup_of(change.path)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _needs_backup(self, change: Change) -> bool:
        """Whether others wrote since: what goes back is what they left, and never what we wrote the last time."""
        record = self._record(change.path)
        return record is None or change.first is None or record.left != _digest(change.first)

    def _is_as_we_left_it(self, change: Change) -> bool:
        record = self._record(change.path)
        return bool(record and record.existed and change.before and record.left == _digest(change.before))

    def _names_us(self, wanted: FileEdits, data: bytes | None) -> bool:
        text = _text(wanted.path, data)
        return any(_guarded(wanted, text, edit, remove=True) != text for edit in wanted.edits)

    def _put_back(self, first: Change, own: OwnCommand) -> None:
        """Undo what the host's own command did: byte for byte, or by the command itself if others wrote since."""
        try:
            now = read(first.path, first.root)
            if now != first.before:
                replace_all([Replacement(first.path, now, first.before, first.root)])
        except (FileError, Raced):
            own.run(is_there=True, remove=True)

    def _without_us(self, wanted: FileEdits, before: bytes | None) -> bytes | None:
        if before is None:
            return None
        record = self._record(wanted.path)
        original = read(self.backup_of(wanted.path)) if record and record.existed else None
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

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        """One setup at a time; the directory that is locked goes away again if nothing is kept in it."""
        made = make_directories(self._directory)
        folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)
            remove_empty(made)

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


def _text(path: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SetupError(f"{path}:{line}: not UTF-8") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
