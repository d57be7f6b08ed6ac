"""Keeps one conversation and its files equal: applies what others wrote, then writes the list. Goes by state alone."""

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
from punchlist_apps.files.mirror.naming import Name, copy_of
from punchlist_apps.files.mirror.proposal import Snapshot

WRITE_PAUSE_S = 0.1
"""Least time between two writes of a conversation's files, in seconds."""

UNREADABLE_S = 2.0
"""How long a file may be unreadable, in seconds, before it is reported: it may be half written."""

HALF_S = 0.05
"""When to look again, in seconds, at a file that somebody was writing as we did."""

MISSING_S = 0.5
"""How long a file may be missing, in seconds, before it is written anew: an editor may be about to put it back."""

_TOLD = 200
"""Characters of a value that a conflict's message shows."""


class Written(NamedTuple):
    """A file as it was when we last found it in order: its bytes, and a digest of its content."""

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
        taken: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.conversation = conversation
        self.is_stale = True
        """Whether the conversation may have changed since the files were written."""
        self.retry_s: float | None = None
        """When to look again, in seconds from now, if something could not be settled."""
        self._client = client
        self._list = client.conversation(conversation)
        self._form = FORMS[entry.format]
        self._folder = Folder(entry.directory, self._form.folder(self._form.stems(conversation)[-1]))
        self._name = Name(self._folder, self._form, conversation, taken)
        self._taker = ProposalApplier(client, conversation, self._form)
        self._report = report
        self._written: dict[str, Written] = {}
        self._since: dict[str, float] = {}
        self._last_write = 0.0
        self._wrote = 0
        self._is_settled = False
        self._closed: set[str] = set()
        self._late: list[tuple[str, bytes]] = []
        self._at_work = anyio.Lock()
        self._is_erased = False

    @property
    def is_erased(self) -> bool:
        return self._is_erased

    @property
    def stem(self) -> str:
        """The name of the file (without suffix) or folder; empty before the first sync."""
        return self._name.stem

    async def sync(self) -> None:
        """Apply what the files propose, then write the list; repeat until nobody interferes."""
        async with self._at_work:
            if self._is_erased:
                await self._leave_alone()
            else:
                await self._sync_or_report()

    async def _sync_or_report(self) -> None:
        try:
            await self._sync()
            self._report.clear(self._folder.path, "trouble")
            if self._folder.has_shadows:
                self.retry_s = min(LATE_S / 2, self.retry_s or LATE_S)
        except (Trouble, OSError) as error:
            self._report_problem("trouble", self._folder.path, str(error))
            self.retry_s = 5.0

    async def erase(self) -> None:
        """The conversation was erased: erase its files, as far as they are ours, and do nothing more.

        A write that is under way ends first: its file would stay, or look like a wish to have the list back.
        """
        async with self._at_work:
            self._is_erased = True
            await self._remove_written()

    async def _leave_alone(self) -> None:
        """What stands under the name now may be an editor's late save: it brings nothing back, and that is told."""
        said = f"left as it is: the list {self.conversation} was deleted; rename it, or begin the list anew: punch add"
        for name in await run_sync(self._read_disk):
            self._report_problem("foreign", self._path(name), said)

    async def _remove_written(self) -> None:
        for name, written in self._written.items():
            await run_sync(self._folder.remove, name, written.data)
        self._written = {}

    async def _sync(self) -> None:
        if not self.stem and (copy := await self._name.choose()):
            said = "what stood under its former name said something else"
            self._report_problem("conflict", self._path(f"{self.stem}.json"), said, self._path(copy))
        disk = await run_sync(self._read_disk)
        if not self._is_settled:
            self._is_settled = await self._settle()
        self._late += await run_sync(self._folder.late)
        while self._late:
            name, data = self._late[0]
            # Half of it, or nothing yet, comes again when there is more.
            await self._take_all({name: data} if self._is_readable(name, data) else {})
            del self._late[0]
        closed = await self._take_all(disk)
        self._open_up(closed)
        if not self._is_settled:
            self.retry_s = HALF_S
            return
        missing = [name for name in self._written if name not in disk]
        if not (self.is_stale or missing or disk.keys() - self._written.keys()):
            return
        if any(self._is_fresh(f"missing {name}", MISSING_S) for name in missing):
            return
        while True:
            await anyio.sleep(max(0.0, self._last_write + WRITE_PAUSE_S - time.monotonic()))
            displaced = await self._write(disk, closed)
            if not displaced:
                return
            self._is_settled = await self._settle()
            if not self._is_settled:
                self.retry_s = HALF_S
                return
            disk.update({name: self._written[name].data for name in displaced})

    def _read_disk(self) -> dict[str, bytes]:
        names = [f"{self.stem}.json"] if self._form.is_single else self._folder.names()
        found: dict[str, bytes] = {}
        for name in names:
            if self._form.is_document(name, self.stem) and (data := self._folder.read(name)) is not None:
                found[name] = data
        return found

    async def _settle(self) -> bool:
        """Apply the replaced content as a proposal too. False while somebody is still writing it."""
        names = [name for name in await run_sync(self._folder.unsettled) if self._form.is_document(name, self.stem)]
        return all([await self._settle_one(name) for name in names])

    async def _settle_one(self, name: str) -> bool:
        try:
            data = await run_sync(self._folder.displaced, name)
        except Trouble as error:
            copy = f"{name}.{time.time_ns():x}.conflict"
            await run_sync(self._folder.set_aside, name, copy)
            self._report_problem(
                "conflict", self._path(name), f"what stood here for a moment: {error}", self._path(copy)
            )
            return True
        if data is not None and self._is_readable(name, data):
            if await self._take_all({name: data}):
                await self._save_copy(name, data, "is no file of this list")
        elif data is not None and name in self._written:  # else a write of ours that was not finished
            if self._is_fresh(f"displaced {name}", UNREADABLE_S):
                return False
            if data:
                await self._save_copy(name, data, "was never written to its end")
        self._since.pop(f"displaced {name}", None)
        await run_sync(self._folder.settle, name, data)
        return True

    async def _save_copy(self, name: str, data: bytes, why: str) -> None:
        copy = copy_of(name, data)
        await run_sync(self._folder.save_copy, copy, data)
        self._report.clear(self._path(name), "foreign")
        self._report_problem("conflict", self._path(name), f"what stood here for a moment {why}", self._path(copy))

    def _is_readable(self, name: str, data: bytes) -> bool:
        try:
            self._form.parse(name, data)
        except Unreadable:
            return False
        return True

    def _open_up(self, closed: set[str]) -> None:
        """Write files again that had to be left alone before, and are in order now or gone."""
        for name in self._closed - closed:
            self._report.clear(self._path(name), "corrupt", "foreign")
            self.is_stale = True
        self._closed = closed

    async def _take_all(self, disk: dict[str, bytes]) -> set[str]:
        """Apply what the files propose. Returns the files that must be left as they are."""
        closed: set[str] = set()
        proposals: dict[str, tuple[bytes, Document]] = {}
        for name, data in disk.items():
            if name in self._written and self._written[name].data == data:
                continue
            document = self._parsed(name, data)
            if document is None:
                closed.add(name)
                continue
            self.is_stale = True  # whatever it says, it is not what we wrote
            if document.tasks and not self._is_untouched(document):
                proposals[name] = (data, document)
        outcomes = await self._pass(proposals, closed)
        if len(proposals) > 1 and any(outcome.calls for outcome in outcomes.values()):
            # Edges to tasks that a later file added are known now.
            outcomes = await self._pass(proposals, closed)
        for name, outcome in outcomes.items():
            await self._report_outcome(name, proposals[name][0], outcome)
        return closed

    async def _pass(self, proposals: dict[str, tuple[bytes, Document]], closed: set[str]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        for name, (_, document) in sorted(proposals.items(), key=lambda item: (len(item[0]), item[0])):
            try:
                outcomes[name] = await self._taker.take(name, document)
            except Foreign as error:
                self._report_problem("foreign", self._path(name), f"left as it is: {error}")
                closed.add(name)
        return outcomes

    def _is_untouched(self, document: Document) -> bool:
        origin = document.origin
        return document.is_untouched and origin is not None and origin.conversation == self.conversation

    def _parsed(self, name: str, data: bytes) -> Document | None:
        """The content of a file; None if it can't be read and must be left alone. An empty file says nothing."""
        try:
            document = self._form.parse(name, data)
        except Unreadable as error:
            if self._is_fresh(f"unreadable {name}", UNREADABLE_S):
                return None
            if not data.strip(b"\xef\xbb\xbf \t\r\n\0"):
                return Document({}, None, "")
            self._report_problem("corrupt", self._path(name), str(error))
            return None
        self._since.pop(f"unreadable {name}", None)
        self._report.clear(self._path(name), "corrupt", "foreign")
        return document

    def _is_fresh(self, what: str, patience_s: float) -> bool:
        """Whether something is too recent to be judged; if so, it is checked again later."""
        now = time.monotonic()
        left = self._since.setdefault(what, now) + patience_s - now
        if left > 0:
            self.retry_s = min(left, self.retry_s or left)
        else:
            self._since.pop(what)
        return left > 0

    async def _whole_list(self) -> TaskList:
        tasks = await self._list.list()
        if tasks.damaged is not None:
            raise Trouble(
                "the log of the list is damaged, so its files stay as they are; "
                "to repair it: punch daemon verify --repair"
            )
        return tasks

    async def _write(self, disk: dict[str, bytes], closed: set[str]) -> dict[str, bytes]:
        """Write the list. Returns contents that turned up in place of what we had read."""
        self.is_stale = False
        try:
            tasks = await self._whole_list()
            if tasks.version == 0 and not disk:
                return {}
            if not len(tasks) and self._written and not (await self._list.info()).created_at:
                await self._remove_written()  # it was erased while nobody told us
                return {}
            epoch = (await self._client.open()).epoch
            self._wrote = 0
            wanted = self._form.render(Origin(self.conversation, epoch, tasks.version), tasks, self.stem)
            displaced: dict[str, bytes] = {}
            for name, data in wanted.items():
                if name in closed:
                    continue
                if self._says(name, disk.get(name), data):
                    continue
                self._wrote = tasks.version
                last = disk.get(name) or (self._written[name].data if name in self._written else b"")
                present = await self._put(name, self._form.merge_foreign_members(data, last), disk.get(name))
                if present is not None:
                    displaced[name] = present
            for name in disk.keys() - wanted.keys() - closed:
                await run_sync(self._folder.remove, name, disk[name])
                self._written.pop(name, None)
            if self._wrote or self._taker.written_version == 0:
                self._taker.wrote(Snapshot(self._wrote or self._version_in(disk) or tasks.version, list(tasks)))
        except BaseException:
            self.is_stale = True
            raise
        return displaced

    async def _put(self, name: str, data: bytes, present: bytes | None) -> bytes | None:
        self._last_write = time.monotonic()
        # Until it has been taken over, also by a later try, what was displaced must not be overwritten.
        settled, self._is_settled = self._is_settled, False
        displaced = await run_sync(self._folder.replace, name, data, present)
        self._is_settled = settled and displaced is None
        self._written[name] = Written(data, self._form.parse(name, data).digest)
        self._since.pop(f"missing {name}", None)
        return displaced

    def _says(self, name: str, present: bytes | None, data: bytes) -> bool:
        """Whether the file on disk is a copy of ours with the same content as these bytes."""
        if present is None:
            return False
        digest = self._form.parse(name, data).digest
        known = self._written.get(name)
        if known is not None and known.data == present:
            return known.digest == digest
        if not self._is_readable(name, present):
            return False
        document = self._form.parse(name, present)
        if document.digest != digest or not self._is_untouched(document):
            return False
        self._written[name] = Written(present, digest)
        return True

    def _version_in(self, disk: dict[str, bytes]) -> int:
        """The version that the single file of a list names; 0 if the list has several files."""
        origins = [self._form.parse(name, data).origin for name, data in disk.items() if name in self._written]
        return origins[0].version if len(origins) == 1 and origins[0] else 0

    async def _report_outcome(self, name: str, data: bytes, outcome: Outcome) -> None:
        if outcome.kept:
            ids = ", ".join(f"#{task}" for task in outcome.kept[:20])
            said = "is empty or does not say that it knows them"
            self._report_problem("kept", self._path(name), f"{len(outcome.kept)} tasks stay, the file {said}: {ids}")
        if not outcome.conflicts:
            return
        copy = copy_of(name, data)
        await run_sync(self._folder.save_copy, copy, data)
        lines = [_line(conflict) for conflict in outcome.conflicts]
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


def _line(conflict: Conflict) -> str:
    what = f"#{conflict.task} {conflict.member}" if conflict.task else conflict.member
    values = (_short(conflict.proposed), _short(conflict.present))
    return f"{what}: {conflict.reason}; the file says {values[0]}, the list {values[1]}"


def _short(value: object) -> str:
    plain = {key: one for key, one in value.items() if one} if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]
    try:
        text = msgspec.json.encode(plain).decode()
    except (TypeError, ValueError, UnicodeError):
        text = repr(plain)  # pyright: ignore[reportUnknownArgumentType]
    return clip(text, _TOLD)
