"""Syncs one conversation with its files: applies external edits, then writes the list.

Only contents are compared, so that missed or repeated events are harmless.
"""

import time
from collections.abc import Callable, Collection
from typing import NamedTuple

import anyio
import msgspec
from anyio.to_thread import run_sync

from punchlist.base.text import clip
from punchlist.calls.cursor import TaskList
from punchlist.clients.aio import AsyncClient
from punchlist.taskfiles.config import FORMS, Entry
from punchlist.taskfiles.file_format import Document, Origin, Unreadable, digest_of
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.mirror.apply import Foreign, Outcome, ProposalApplier
from punchlist_apps.files.mirror.files import LATE_S, Folder, Trouble
from punchlist_apps.files.mirror.merge import Conflict
from punchlist_apps.files.mirror.naming import FileName, build_copy_name
from punchlist_apps.files.mirror.proposal import Snapshot

WRITE_PAUSE_S = 0.1
"""Minimum time between writes of a conversation's files, in seconds."""

UNREADABLE_S = 2.0
"""Time that a file may be unreadable before it is reported, in seconds. Until then, it may be only partly written."""

RECHECK_S = 0.05
"""Time until a partly written file is checked again, in seconds."""

MISSING_S = 0.5
"""Time that a file may be missing before it is written again, in seconds. Until then, an editor may be replacing it."""

_MAX_VALUE = 200
"""Maximum length of a value in a conflict's message, in characters."""


class WrittenFile(NamedTuple):
    """A file that was in sync, as its bytes and a digest of its content."""

    data: bytes
    digest: str


class ListSync:
    """The files of one conversation in one directory."""

    def __init__(
        self,
        client: AsyncClient,
        entry: Entry,
        conversation: str,
        report: Report,
        list_used: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.conversation = conversation
        self.is_stale = True
        """Whether the conversation may have changed since the files were written."""
        self.retry_s: float | None = None
        """Seconds until the next try; None if the sync is complete."""
        self._client = client
        self._list = client.conversation(conversation)
        self._form = FORMS[entry.format]
        self._folder = Folder(entry.directory, self._form.folder(self._form.stems(conversation)[-1]))
        self._name = FileName(self._folder, self._form, conversation, list_used)
        self._applier = ProposalApplier(client, conversation, self._form)
        self._report = report
        self._written: dict[str, WrittenFile] = {}
        self._since: dict[str, float] = {}
        self._last_write = 0.0
        self._written_version = 0
        self._is_settled = False
        self._closed: set[str] = set()
        self._late: list[tuple[str, bytes]] = []
        self._lock = anyio.Lock()
        self._is_erased = False

    @property
    def is_erased(self) -> bool:
        return self._is_erased

    @property
    def stem(self) -> str:
        """The name of the file (without suffix) or folder; empty before the first sync."""
        return self._name.stem

    async def sync(self) -> None:
        """Apply the files' changes, then write the list. Repeat if a file changes in the meantime."""
        async with self._lock:
            if self._is_erased:
                await self._report_reappeared()
            else:
                await self._sync_or_report()

    async def _sync_or_report(self) -> None:
        try:
            await self._sync()
            self._report.clear(self._folder.path, "trouble")
            if self._folder.has_displaced:
                self.retry_s = min(LATE_S / 2, self.retry_s or LATE_S)
        except (Trouble, OSError) as error:
            self._report_problem("trouble", self._folder.path, str(error))
            self.retry_s = 5.0

    async def erase(self) -> None:
        """Delete the unchanged files of an erased conversation, and stop writing.

        Waits for a write in progress. Otherwise its file would be left and look like an attempt to create the list
        again.
        """
        async with self._lock:
            self._is_erased = True
            await self._remove_written()

    async def _report_reappeared(self) -> None:
        """Report files of an erased list. Such files are often late saves by an editor, so the list isn't created
        again."""
        text = (
            f"not read: the list {self.conversation} was deleted; rename the file, or create the list again: punch add"
        )
        for name in await run_sync(self._read_disk):
            self._report_problem("foreign", self._path(name), text)

    async def _remove_written(self) -> None:
        for name, written in self._written.items():
            await run_sync(self._folder.remove, name, written.data)
        self._written = {}

    async def _sync(self) -> None:
        if not self.stem and (copy := await self._name.choose()):
            text = "the file under its former name had other content"
            self._report_problem("conflict", self._path(f"{self.stem}.json"), text, self._path(copy))
        disk = await run_sync(self._read_disk)
        if not self._is_settled:
            self._is_settled = await self._apply_displaced()
        self._late += await run_sync(self._folder.read_late_writes)
        while self._late:
            name, data = self._late[0]
            # Partly written content is returned again when the program writes more.
            await self._apply_all({name: data} if self._is_readable(name, data) else {})
            del self._late[0]
        closed = await self._apply_all(disk)
        self._reopen(closed)
        if not self._is_settled:
            self.retry_s = RECHECK_S
            return
        missing = [name for name in self._written if name not in disk]
        if not (self.is_stale or missing or disk.keys() - self._written.keys()):
            return
        if any(self._is_too_recent(f"missing {name}", MISSING_S) for name in missing):
            return
        while True:
            await anyio.sleep(max(0.0, self._last_write + WRITE_PAUSE_S - time.monotonic()))
            displaced = await self._write(disk, closed)
            if not displaced:
                return
            self._is_settled = await self._apply_displaced()
            if not self._is_settled:
                self.retry_s = RECHECK_S
                return
            disk.update({name: self._written[name].data for name in displaced})

    def _read_disk(self) -> dict[str, bytes]:
        names = [f"{self.stem}.json"] if self._form.is_single else self._folder.list_names()
        disk: dict[str, bytes] = {}
        for name in names:
            if self._form.is_document(name, self.stem) and (data := self._folder.read(name)) is not None:
                disk[name] = data
        return disk

    async def _apply_displaced(self) -> bool:
        """Apply displaced contents as proposals. Return False while any of them is still being written."""
        names = [
            name for name in await run_sync(self._folder.list_displaced) if self._form.is_document(name, self.stem)
        ]
        return all([await self._apply_one_displaced(name) for name in names])

    async def _apply_one_displaced(self, name: str) -> bool:
        try:
            data = await run_sync(self._folder.read_displaced, name)
        except Trouble as error:
            copy = f"{name}.{time.time_ns():x}.conflict"
            await run_sync(self._folder.keep_displaced, name, copy)
            self._report_problem(
                "conflict", self._path(name), f"can't read the file that was replaced here: {error}", self._path(copy)
            )
            return True
        if data is not None and self._is_readable(name, data):
            if await self._apply_all({name: data}):
                await self._save_copy(name, data, "doesn't belong to this list")
        elif data is not None and name in self._written:  # Otherwise, an interrupted write by this process left it.
            if self._is_too_recent(f"displaced {name}", UNREADABLE_S):
                return False
            if data:
                await self._save_copy(name, data, "was never completed")
        self._since.pop(f"displaced {name}", None)
        await run_sync(self._folder.discard_displaced, name, data)
        return True

    async def _save_copy(self, name: str, data: bytes, why: str) -> None:
        copy = build_copy_name(name, data)
        await run_sync(self._folder.save_copy, copy, data)
        self._report.clear(self._path(name), "foreign")
        self._report_problem(
            "conflict", self._path(name), f"the version that was replaced here {why}", self._path(copy)
        )

    def _is_readable(self, name: str, data: bytes) -> bool:
        try:
            self._form.parse(name, data)
        except Unreadable:
            return False
        return True

    def _reopen(self, closed: set[str]) -> None:
        """Allow writing again to files that couldn't be read, once they are readable or gone."""
        for name in self._closed - closed:
            self._report.clear(self._path(name), "corrupt", "foreign")
            self.is_stale = True
        self._closed = closed

    async def _apply_all(self, disk: dict[str, bytes]) -> set[str]:
        """Apply the files' changes. Return the files that must not be written."""
        closed: set[str] = set()
        proposals: dict[str, tuple[bytes, Document]] = {}
        for name, data in disk.items():
            if name in self._written and self._written[name].data == data:
                continue
            document = self._parse(name, data)
            if document is None:
                closed.add(name)
                continue
            self.is_stale = True  # The file isn't the one that was written.
            if document.tasks and not self._is_untouched(document):
                proposals[name] = (data, document)
        outcomes = await self._apply_once(proposals, closed)
        if len(proposals) > 1 and any(outcome.calls for outcome in outcomes.values()):
            # Dependencies on tasks of later files can be applied now, since those tasks have been added.
            outcomes = await self._apply_once(proposals, closed)
        for name, outcome in outcomes.items():
            await self._report_outcome(name, proposals[name][0], outcome)
        return closed

    async def _apply_once(self, proposals: dict[str, tuple[bytes, Document]], closed: set[str]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        for name, (_, document) in sorted(proposals.items(), key=lambda item: (len(item[0]), item[0])):
            try:
                outcomes[name] = await self._applier.apply(name, document)
            except Foreign as error:
                self._report_problem("foreign", self._path(name), f"not read: {error}")
                closed.add(name)
        return outcomes

    def _is_untouched(self, document: Document) -> bool:
        origin = document.origin
        return document.is_untouched and origin is not None and origin.conversation == self.conversation

    def _parse(self, name: str, data: bytes) -> Document | None:
        """Return a file's content, or None if it can't be parsed and must not be overwritten. Empty files are valid."""
        try:
            document = self._form.parse(name, data)
        except Unreadable as error:
            if self._is_too_recent(f"unreadable {name}", UNREADABLE_S):
                return None
            if not data.strip(b"\xef\xbb\xbf \t\r\n\0"):
                return Document({}, None, "")
            self._report_problem("corrupt", self._path(name), str(error))
            return None
        self._since.pop(f"unreadable {name}", None)
        self._report.clear(self._path(name), "corrupt", "foreign")
        return document

    def _is_too_recent(self, condition: str, patience_s: float) -> bool:
        """Return whether a condition arose less than `patience_s` ago. If so, schedule another check."""
        now = time.monotonic()
        remaining_s = self._since.setdefault(condition, now) + patience_s - now
        if remaining_s > 0:
            self.retry_s = min(remaining_s, self.retry_s or remaining_s)
        else:
            self._since.pop(condition)
        return remaining_s > 0

    async def _load_list(self) -> TaskList:
        tasks = await self._list.list()
        if tasks.damaged is not None:
            raise Trouble(
                "the log of the list is damaged, so its files stay as they are; "
                "to repair it: punch daemon verify --repair"
            )
        return tasks

    async def _write(self, disk: dict[str, bytes], closed: set[str]) -> dict[str, bytes]:
        """Write the list. Return displaced contents that differ from the contents that were read."""
        self.is_stale = False
        try:
            tasks = await self._load_list()
            if tasks.version == 0 and not disk:
                return {}
            if not len(tasks) and self._written and not (await self._list.info()).created_at:
                await self._remove_written()  # The list was erased, and the event was lost.
                return {}
            epoch = (await self._client.open()).epoch
            self._written_version = 0
            rendered = self._form.render(Origin(self.conversation, epoch, tasks.version), tasks, self.stem)
            displaced: dict[str, bytes] = {}
            for name, data in rendered.items():
                if name in closed:
                    continue
                if self._is_current(name, disk.get(name), data):
                    continue
                self._written_version = tasks.version
                last = disk.get(name) or (self._written[name].data if name in self._written else b"")
                present = await self._replace(name, self._form.merge_foreign_members(data, last), disk.get(name))
                if present is not None:
                    displaced[name] = present
            for name in disk.keys() - rendered.keys() - closed:
                await run_sync(self._folder.remove, name, disk[name])
                self._written.pop(name, None)
            if self._written_version or self._applier.written_version == 0:
                self._applier.record_write(
                    Snapshot(self._written_version or self._get_version(disk) or tasks.version, list(tasks))
                )
        except BaseException:
            self.is_stale = True
            raise
        return displaced

    async def _replace(self, name: str, data: bytes, present: bytes | None) -> bytes | None:
        self._last_write = time.monotonic()
        # Displaced content must not be overwritten until it has been applied, possibly by a later sync.
        settled, self._is_settled = self._is_settled, False
        displaced = await run_sync(self._folder.replace, name, data, present)
        self._is_settled = settled and displaced is None
        self._written[name] = WrittenFile(data, self._form.parse(name, data).digest)
        self._since.pop(f"missing {name}", None)
        return displaced

    def _is_current(self, name: str, present: bytes | None, data: bytes) -> bool:
        """Return whether no other program has changed the file on disk, and it has the same content as `data`."""
        if present is None:
            return False
        digest = self._form.parse(name, data).digest
        written = self._written.get(name)
        if written is not None and written.data == present:
            return written.digest == digest
        if not self._is_readable(name, present):
            return False
        document = self._form.parse(name, present)
        if document.digest != digest or not self._is_untouched(document):
            return False
        self._written[name] = WrittenFile(present, digest)
        return True

    def _get_version(self, disk: dict[str, bytes]) -> int:
        """Return the version named in a list's only file; 0 if the list has several files."""
        origins = [self._form.parse(name, data).origin for name, data in disk.items() if name in self._written]
        return origins[0].version if len(origins) == 1 and origins[0] else 0

    async def _report_outcome(self, name: str, data: bytes, outcome: Outcome) -> None:
        if outcome.kept:
            ids = ", ".join(f"#{task}" for task in outcome.kept[:20])
            reason = "is empty or doesn't name a version that has them"
            self._report_problem("kept", self._path(name), f"{len(outcome.kept)} tasks stay, the file {reason}: {ids}")
        if not outcome.conflicts:
            return
        copy = build_copy_name(name, data)
        await run_sync(self._folder.save_copy, copy, data)
        lines = [_format_conflict(conflict) for conflict in outcome.conflicts]
        self._report_problem("conflict", self._path(name), "; ".join(lines[:20]), self._path(copy))
        await self._list.append_message(
            "conflict",
            {"file": self._path(name), "copy": self._path(copy), "conflicts": lines[:100]},
            actor=f"file:{name}"[:128],
            key=f"conflict:{digest_of([self._path(copy), lines])}",
        )

    def _report_problem(self, kind: str, file: str, text: str, copy: str = "") -> None:
        self._report.add(Problem(self.conversation, file, kind, text, int(time.time() * 1000), copy))

    def _path(self, name: str) -> str:
        return f"{self._folder.path}/{name}"


def _format_conflict(conflict: Conflict) -> str:
    subject = f"#{conflict.task} {conflict.member}" if conflict.task else conflict.member
    values = (_format_value(conflict.proposed), _format_value(conflict.present))
    return f"{subject}: {conflict.reason}; the file has {values[0]}, the list {values[1]}"


def _format_value(value: object) -> str:
    plain = {key: item for key, item in value.items() if item} if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]
    try:
        text = msgspec.json.encode(plain).decode()
    except (TypeError, ValueError, UnicodeError):
        text = repr(plain)  # pyright: ignore[reportUnknownArgumentType]
    return clip(text, _MAX_VALUE)
