"""Turns a file's proposed changes into calls, each of which fails if the list has changed in the meantime."""

import hashlib
from typing import Any

import msgspec

from punchlist.calls.cursor import TaskList
from punchlist.clients.aio import AsyncClient
from punchlist.errors import Blocked, RequestRefused, VersionConflict
from punchlist.taskfiles.file_format import FOREIGN_ID, Document, Form
from punchlist_apps.files.mirror.calls import EDGES, PLAIN_MEMBERS, build_edit_calls, check_gate, get_status
from punchlist_apps.files.mirror.merge import Add, Change, Conflict, Delete, Edit, FieldsById, Move
from punchlist_apps.files.mirror.proposal import (
    NEW,
    AddedTask,
    History,
    Reading,
    Snapshot,
    find_likeliest,
    read_proposal,
)
from punchlist_schemas.things import Task

_MAX_ATTEMPTS = 1_000
"""Maximum number of times a proposal is read again because the list has changed."""

_MAX_RECENT = 16
"""Maximum number of versions to remember, and of proposals to remember per source."""
_MAX_SOURCES = 256
"""Maximum number of sources to remember. A source is a file name with a base version."""
_MAX_FOREIGN_ID = 64


class Foreign(Exception):
    """A file from another conversation or log, whose ids and versions aren't valid here."""


class Outcome(msgspec.Struct):
    """The result of a proposal: the number of calls, the failed changes, and the tasks that weren't deleted."""

    calls: int = 0
    conflicts: list[Conflict] = []
    kept: tuple[str, ...] = ()


class ProposalApplier:
    """Applies the proposals of the files of one conversation."""

    def __init__(self, client: AsyncClient, conversation: str, form: Form) -> None:
        self._client = client
        self._list = client.conversation(conversation)
        self._conversation = conversation
        self._form = form
        self._added: dict[tuple[int, str], AddedTask] = {}
        self._applied: dict[tuple[str, int], list[FieldsById]] = {}
        self._recent: list[Snapshot] = []

    def record_write(self, snapshot: Snapshot) -> None:
        """Remember a list that was written. A file without a version was probably derived from a remembered list."""
        self._recent = [*self._recent[-_MAX_RECENT:], snapshot]
        oldest = self._recent[0].version
        self._added = {key: value for key, value in self._added.items() if key[0] < 0 or key[0] >= oldest}

    @property
    def written_version(self) -> int:
        return self._recent[-1].version if self._recent else 0

    async def apply(self, name: str, document: Document) -> Outcome:
        """Apply the proposed changes of a file, as the actor `file:NAME`.

        Raises:
            Foreign: The file belongs to another list or log.
            PunchlistError: The daemon is unreachable. A retry is safe.
        """
        outcome = Outcome()
        epoch = (await self._client.open()).epoch
        for _ in range(_MAX_ATTEMPTS):
            present = await self._list.list()
            base = await self._find_base(document, epoch, present.version)
            is_newest = document.origin is not None and document.origin.version >= self.written_version > 0
            source = (name, base.version if base else -1)
            history = History(self._added, self._applied.get(source, ()), is_newest)
            reading = read_proposal(self._form, document, base, present, history)
            common = {"conversation": self._conversation, "actor": f"file:{name}"[:128]}
            run = _Run(self._client, self._form, common, present)
            origin = reading.base_version if document.origin else f"after {self.written_version}"
            run.prefix = f"{epoch}\0{self._conversation}\0{origin}"
            run.is_whole = document.is_whole
            try:
                await self._make_calls(run, reading, outcome)
            except VersionConflict:
                outcome.calls += run.calls
                continue
            outcome.calls += run.calls
            outcome.conflicts = [*reading.changes.conflicts, *run.rejections]
            outcome.kept = reading.changes.kept
            self._remember(source, run.translate(reading.theirs))
            return outcome
        raise VersionConflict("version_conflict", -32002, "The list keeps changing while its file is read.", {})

    def _remember(self, source: tuple[str, int], theirs: FieldsById) -> None:
        applied = [*self._applied.pop(source, ()), theirs]
        self._applied[source] = applied[-_MAX_RECENT:]
        while len(self._applied) > _MAX_SOURCES:
            del self._applied[next(iter(self._applied))]

    async def _make_calls(self, run: "_Run", reading: Reading, outcome: Outcome) -> None:
        waiting: list[Change] = list(reading.changes.changes)
        while waiting:
            blocked: list[Change] = []
            for change in waiting:
                try:
                    await run.apply(change)
                except VersionConflict:
                    raise
                except Blocked as error:
                    blocked.append(change)  # Another change in this file may unblock this change.
                    run.last_error = error
                except RequestRefused as error:
                    run.record_rejection(change, error)
                if isinstance(change, Add) and change.ref in run.added:
                    key = (reading.base_version, change.ref.removeprefix(NEW))
                    self._added[key] = run.added[change.ref]
            if len(blocked) == len(waiting):
                for change in blocked:
                    run.record_rejection(change, run.last_error)
                return
            waiting = blocked

    async def _find_base(self, document: Document, epoch: str, newest: int) -> Snapshot | None:
        origin = document.origin
        if origin is None:
            return find_likeliest(self._form, document, self._recent)
        if (origin.epoch, origin.conversation) != (epoch, self._conversation):
            raise Foreign(f"it belongs to {origin.conversation} in the log {origin.epoch}")
        if not 0 < origin.version <= newest:
            return None
        recent = next((snapshot for snapshot in reversed(self._recent) if snapshot.version == origin.version), None)
        if recent is not None:
            return recent
        try:
            return Snapshot(origin.version, list(await self._list.list(at_version=origin.version)))
        except RequestRefused:
            return None  # The version was erased, or never existed.


class _Run:
    """The calls of one proposal. Each call expects the version that the previous call produced."""

    def __init__(self, client: AsyncClient, form: Form, common: dict[str, Any], present: TaskList) -> None:
        self._client = client
        self._form = form
        self._common = common
        self._version = present.version
        self._tasks = {task.id: task for task in present}
        self.prefix = ""
        self.is_whole = False
        self.calls = 0
        self.added: dict[str, AddedTask] = {}
        self.rejections: list[Conflict] = []
        self.last_error: RequestRefused | None = None

    async def apply(self, change: Change) -> None:
        match change:
            case Add():
                await self._add(change)
            case Edit(task, fields):
                before = self._form.fields(self._tasks[task])
                for method, params in build_edit_calls(before, fields):
                    await self._call(method, {"task": task, **params})
            case Delete():
                await self._call("task.delete", {"task": change.task})
            case Move():
                await self._call("task.move", {"task": change.task, **self._build_position(change.after, change.task)})

    def translate(self, theirs: FieldsById) -> FieldsById:
        """Return the file's tasks with the ids of added tasks, and without tasks that were rejected."""
        names = {task: self.added[task].task if task in self.added else task for task in theirs}
        return {names[task]: fields for task, fields in theirs.items() if not names[task].startswith(NEW)}

    def record_rejection(self, change: Change, error: RequestRefused | None) -> None:
        fields = dict(change.fields) if isinstance(change, Add | Edit) else None
        task = change.ref.removeprefix(NEW).strip() if isinstance(change, Add) else change.task
        reason = f"{error.kind}: {error.message}" if error else "refused"
        self.rejections.append(Conflict(task, type(change).__name__.lower(), fields, None, reason))

    async def _call(self, method: str, params: dict[str, Any], key: str | None = None) -> Any:
        check_gate(self._tasks.get(params.get("task", "")), method, params)
        common = {**self._common, "expect_version": self._version} | ({"key": key} if key else {})
        result = await self._client.call(method, {**common, **params})
        self.calls += 1
        self._version = result["version"]
        return result

    async def _add(self, change: Add) -> None:
        fields = change.fields
        params = {name: fields[name] for name in PLAIN_MEMBERS if fields.get(name)}
        status = get_status(fields)
        if status not in ("", "pending"):
            params["status"] = status
        file_id = change.ref.removeprefix(NEW)
        metadata = dict(fields.get("metadata", {}))
        if (
            self.is_whole
            and not file_id.isdecimal()
            and not file_id.startswith(" ")
            and len(file_id) <= _MAX_FOREIGN_ID
        ):
            metadata[FOREIGN_ID] = file_id
        if metadata:
            params["metadata"] = metadata
        # Dependencies on tasks that aren't added yet are proposed again once those tasks exist.
        edges = {name: frozenset(fields[name]) & self._tasks.keys() for name, _, _ in EDGES if fields.get(name)}
        params |= {name: sorted(ids) for name, ids in edges.items()}
        if not change.at_end:
            after = self.added.get(change.after or "")
            params |= self._build_position(after.task if after else change.after, "")
        result = await self._call("task.add", {"title": "", **params}, self._build_key(change))
        task = msgspec.convert(result["task"], Task)
        self._tasks[task.id] = task
        self.added[change.ref] = AddedTask(task.id, {**fields, **edges})

    def _build_position(self, after: str | None, task: str) -> dict[str, Any]:
        if after is not None:
            return {"after": after}
        first = next((other for other in self._tasks if other != task), None)
        return {"before": first} if first else {"to_end": True} if task else {}

    def _build_key(self, change: Add) -> str:
        """Return a key that is equal for equal proposals, so that a file adds its task once, even across a crash."""
        edges = {name: sorted(change.fields[name]) for name, _, _ in EDGES if name in change.fields}
        proposal = msgspec.json.encode([self.prefix, change.ref, {**change.fields, **edges}], order="deterministic")
        return "mirror:" + hashlib.sha256(proposal).hexdigest()
