"""Adds punchlist's entries to a host's configuration files, and can later remove exactly these entries.

All changes are planned before the first is written. Each file has a backup, and a record with a digest of the written
content. If a file still has this content, a removal restores the backup; otherwise it removes only punchlist's entries.
A lock serializes setups. If a host writes to its file at the same time, the change is planned again.
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
from punchlist_apps.hosts.catalog import PLUGIN_MARK, Edit, FileEdits, Host, Place
from punchlist_apps.hosts.files import FileError, Raced, Replacement, read, remove_empty, replace_all
from punchlist_apps.hosts.host_command import HostCommand
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

_MAX_ATTEMPTS = 20
"""Maximum number of times a change is planned if the host keeps writing to its file."""


class SetupError(Exception):
    """A file can't be changed. Nothing was written."""


class Record(msgspec.Struct, frozen=True):
    """Stored facts about a file that a setup changed.

    Attributes:
        path: The file.
        existed: Whether the file existed before the first setup.
        left: Digest of the content written by the last setup.
        made: Directories that the setups created.
    """

    path: str
    existed: bool
    left: str
    made: tuple[str, ...] = ()


class Change(NamedTuple):
    """The planned change to one file. A content of None means that the file doesn't exist.

    Attributes:
        path: The file.
        root: Directory below which links are not followed.
        before: The current content.
        after: The new content.
        without_us: `original` without punchlist's entries.
        original: The content before the host's own command was run; `before` if that command wasn't run.
    """

    path: str
    root: str | None
    before: bytes | None
    after: bytes | None
    without_us: bytes | None
    original: bytes | None

    @property
    def is_change(self) -> bool:
        """Whether the setup changes the file, including changes made by the host's own command."""
        return self.original != self.after

    def diff(self) -> list[str]:
        old, new = ((data or b"").decode().splitlines() for data in (self.original, self.after))
        names = ("/dev/null" if data is None else self.path for data in (self.original, self.after))
        return list(difflib.unified_diff(old, new, *names, n=2, lineterm=""))


class Configurator:
    """Changes hosts' files.

    Args:
        data_dir: The directory for records and backups.
        note: Called with messages for the user.
    """

    def __init__(self, data_dir: str, note: Callable[[str], None] = lambda text: None) -> None:
        self._directory = os.path.join(data_dir, "setup")
        self._note = note

    def change(self, host: Host, place: Place, *, remove: bool = False) -> list[Change]:
        """Set up a host or undo its setup. Run the host's own command if possible, and edit its files.

        Raises:
            SetupError: A file can't be read or written; no file was changed.
        """
        files = host.list_edits(place)
        with self._lock():
            servers, *others = planned = self._plan_all(files, remove=remove)
            command = HostCommand(host, place)
            # A file that the host's command created also has other members. It must not be deleted as a whole, so the
            # command removes the server from it.
            is_exact = remove and self._can_restore(servers)
            if not servers.is_change or is_exact or not command.can_change(servers.before, remove=remove):
                return self._write_all(files, [None] * len(planned), remove=remove)
            problem = command.run(is_present=self._has_entry(files[0], servers.before), remove=remove)
            if problem:
                self._note(f"{problem}; {servers.path} is edited instead")
            try:
                return self._write_all(files, [servers, *(None for _ in others)], remove=remove)
            except SetupError:
                self._undo_command(servers, command)
                raise

    def edit(self, files: Sequence[FileEdits], *, remove: bool = False) -> list[Change]:
        """Edit either all files or none.

        Raises:
            SetupError: A file can't be read or written; no file was changed.
        """
        with self._lock():
            return self._write_all(files, [None] * len(files), remove=remove)

    def plan(self, target: FileEdits, *, remove: bool = False) -> Change:
        """Plan the change to a file: add punchlist's entries, or remove them.

        Raises:
            SetupError: The file can't be read; the message names the line.
        """
        try:
            before = read(target.path, target.root)
        except FileError as error:
            raise SetupError(str(error)) from error
        without_us = self._remove_ours(target, before)
        after = without_us
        if not remove:
            text = _decode(target.path, before)
            for edit in target.edits:
                text = text if edit.only_removed else _apply_to_file(target, text, edit, remove=False)
            after = before if before is not None and text == before.decode() else text.encode()
        return Change(target.path, target.root, before, after, without_us, before)

    def get_backup_path(self, path: str) -> str:
        return self._get_path(path, "backup")

    def _plan_all(self, files: Sequence[FileEdits], *, remove: bool) -> list[Change]:
        return [self.plan(target, remove=remove) for target in files]

    def _write_all(self, files: Sequence[FileEdits], earlier: Sequence[Change | None], *, remove: bool) -> list[Change]:
        for _ in range(_MAX_ATTEMPTS):
            changes = self._plan_all(files, remove=remove)
            changes = [
                change if was is None else change._replace(without_us=was.without_us, original=was.original)
                for change, was in zip(changes, earlier, strict=True)
            ]
            try:
                self._commit(changes, remove=remove)
            except Raced:
                continue
            except (FileError, OSError) as error:
                raise SetupError(str(error)) from error
            return changes
        raise SetupError(f"{files[0].path}: another program keeps writing to it; stop that program and try again")

    def _commit(self, changes: Sequence[Change], *, remove: bool) -> None:
        if not remove:
            for change in changes:
                if change.is_change and self._needs_backup(change) and change.without_us is not None:
                    make_directories(self._directory)
                    atomic_write(self.get_backup_path(change.path), change.without_us, fsync=True)
        created = replace_all(
            [
                Replacement(change.path, change.before, change.after, change.root)
                for change in changes
                if change.before != change.after
            ]
        )
        if remove:
            for change in reversed(changes):  # a later file may be below a directory that an earlier one created
                self._delete_record(change)
            return
        for change in changes:
            if change.is_change:
                self._save_record(change, created.get(change.path, ()))

    def _save_record(self, change: Change, created: tuple[str, ...]) -> None:
        record = self._load_record(change.path)
        if record is None or self._needs_backup(change):
            earlier = record.made if record else ()
            made = (*earlier, *(directory for directory in created if directory not in earlier))
            record = Record(change.path, change.without_us is not None, "", made)
        record = msgspec.structs.replace(record, left=_compute_digest(change.after or b""))
        make_directories(self._directory)
        atomic_write(self._get_path(change.path, "json"), msgspec.json.encode(record), fsync=True)

    def _delete_record(self, change: Change) -> None:
        record = self._load_record(change.path)
        if change.after is None:
            remove_empty(record.made if record else ())
        for path in (self._get_path(change.path, "json"), self.get_backup_path(change.path)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _needs_backup(self, change: Change) -> bool:
        """Return whether other programs have changed the file since the last setup.

        The backup must contain their changes.
        """
        record = self._load_record(change.path)
        return record is None or change.original is None or record.left != _compute_digest(change.original)

    def _can_restore(self, change: Change) -> bool:
        record = self._load_record(change.path)
        return bool(record and record.existed and change.before and record.left == _compute_digest(change.before))

    def _has_entry(self, target: FileEdits, data: bytes | None) -> bool:
        text = _decode(target.path, data)
        return _apply_to_file(target, text, target.edits[0], remove=True) != text

    def _undo_command(self, change: Change, command: HostCommand) -> None:
        """Restore the file as it was before the host's command. If that fails, run the host's remove command."""
        try:
            current = read(change.path, change.root)
            if current != change.before:
                replace_all([Replacement(change.path, current, change.before, change.root)])
        except (FileError, Raced):
            command.run(is_present=True, remove=True)

    def _remove_ours(self, target: FileEdits, before: bytes | None) -> bytes | None:
        if before is None:
            return None
        record = self._load_record(target.path)
        original = read(self.get_backup_path(target.path)) if record and record.existed else None
        if record and record.left == _compute_digest(before) and (original is not None or not record.existed):
            return original
        text = _decode(target.path, before)
        original_text = _decode(target.path, original)
        for edit in target.edits:
            with_ours, text = text, _apply_to_file(target, text, edit, remove=True)
            # Without a record, an empty container is the user's, unless it contained only punchlist's entries.
            if target.form == "json" and (record or text != with_ours):
                text = _remove_empty_containers(text, edit.path if edit.is_ours else edit.path[:-1], original_text)
        was_created = target.form == "plugin" or (record is not None and not record.existed)
        return None if was_created and "".join(text.split()) in ("", "{}") else text.encode()

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """Serialize setups with a lock on the directory of records, which is removed again if it is still empty."""
        created = make_directories(self._directory)
        folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)
            remove_empty(created)

    def _load_record(self, path: str) -> Record | None:
        try:
            with open(self._get_path(path, "json"), "rb") as file:
                return msgspec.json.decode(file.read(), type=Record)
        except (OSError, msgspec.MsgspecError):
            return None

    def _get_path(self, path: str, kind: str) -> str:
        name = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]
        return os.path.join(self._directory, f"{name}.{kind}")


def _apply_to_file(target: FileEdits, text: str, edit: Edit, *, remove: bool) -> str:
    try:
        return _apply_edit(target.form, text, edit, remove=remove)
    except (jsonc.JsoncError, tomltable.TomlError) as error:
        place = f"{target.path}:{error.line}" if error.line else target.path
        raise SetupError(f"{place}: {error}") from error


def _apply_edit(form: str, text: str, edit: Edit, *, remove: bool) -> str:
    if form == "plugin":
        is_foreign = text.strip() != "" and not text.startswith(PLUGIN_MARK)
        if is_foreign and not remove:
            raise jsonc.JsoncError("not written by punch setup; move it away")
        return text if is_foreign else "" if remove else edit.value
    if edit.is_shared:
        return text if remove or jsonc.find(text, edit.path) is not None else jsonc.put(text, edit.path, edit.value)
    if form == "toml":
        return tomltable.remove(text, edit.path) if remove else tomltable.put(text, edit.path, edit.value)
    if edit.is_ours is not None:
        return _apply_item_edit(text, edit, edit.is_ours, remove=remove)
    return jsonc.remove(text, edit.path) if remove else jsonc.put(text, edit.path, edit.value)


def _apply_item_edit(text: str, edit: Edit, is_ours: Callable[[Any], bool], *, remove: bool) -> str:
    """Return the text with exactly one of punchlist's items at the edit's path, or with none."""
    items = jsonc.find(text, edit.path)
    present = [item for item in cast("list[Any]", items) if is_ours(item)] if isinstance(items, list) else []
    if present == [edit.value] and not remove:
        return text
    text = jsonc.remove_items(text, edit.path, is_ours)
    return text if remove else jsonc.append(text, edit.path, edit.value)


def _remove_empty_containers(text: str, path: tuple[str, ...], original: str) -> str:
    """Return the text without empty containers at `path` that weren't in the original text."""
    while path and jsonc.find(text, path) in ({}, []) and jsonc.find(original, path) is None:
        text = jsonc.remove(text, path)
        path = path[:-1]
    return text


def _decode(path: str, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SetupError(f"{path}:{line}: not UTF-8") from error


def _compute_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
