"""Turns the changes that a file proposes into calls, each of which fails if the list has changed meanwhile."""

import hashlib
from typing import Any

import msgspec

from punchlist.calls.cursor import TaskList
from punchlist.clients.aio import AsyncClient
from punchlist.errors import Blocked, RequestRefused, VersionConflict
from punchlist.taskfiles.file_format import FOREIGN_ID, Document, Form
from punchlist_apps.files.mirror.calls import EDGES, PLAIN_MEMBERS, check_gate, edit_calls, status_in
from punchlist_apps.files.mirror.merge import Add, Change, Conflict, Delete, Edit, Move, Sheet
from punchlist_apps.files.mirror.proposal import NEW, Adopted, Past, Reading, Snapshot, likeliest, read
from punchlist_schemas.things import Task

_ROUNDS = 1_000
"""How often a proposal is read anew because the list changed under it."""

_RECENT = 16
_SOURCES = 256
_MAX_FOREIGN_ID = 64


class Foreign(Exception):
    """A file that belongs to another conversation or another log, so its ids and versions mean nothing here."""


class Outcome(msgspec.Struct):
    """The result of a proposal: how many calls were made, which changes failed, which tasks were kept."""

    calls: int = 0
    conflicts: list[Conflict] = []
    kept: tuple[str, ...] = ()


class ProposalApplier:
    """Applies the changes that files of one conversation propose."""

    def __init__(self, client: AsyncClient, conversation: str, form: Form) -> None:
        self._client = client
        self._list = client.conversation(conversation)
        self._conversation = conversation
        self._form = form
        self._adopted: dict[tuple[int, str], Adopted] = {}
        self._absorbed: dict[tuple[str, int], list[Sheet]] = {}
        self._recent: list[Snapshot] = []

    def wrote(self, snapshot: Snapshot) -> None:
        """Remember what we wrote: a file that does not name its version most likely came from one of these."""
        self._recent = [*self._recent[-_RECENT:], snapshot]
        oldest = self._recent[0].version
        self._adopted = {key: value for key, value in self._adopted.items() if key[0] < 0 or key[0] >= oldest}

    @property
    def written_version(self) -> int:
        return self._recent[-1].version if self._recent else 0

    async def take(self, name: str, document: Document) -> Outcome:
        """Apply the changes that a file proposes, as the actor `file:NAME`.

        Raises:
            Foreign: The file belongs to another list or log.
            PunchlistError: The daemon is out of reach; trying again is safe.
        """
        outcome = Outcome()
        epoch = (await self._client.open()).epoch
        for _ in range(_ROUNDS):
            present = await self._list.list()
            base = await self._base(document, epoch, present.version)
            is_newest = document.origin is not None and document.origin.version >= self.written_version > 0
            source = (name, base.version if base else -1)
            past = Past(self._adopted, self._absorbed.get(source, ()), is_newest)
            reading = read(self._form, document, base, present, past)
            common = {"conversation": self._conversation, "actor": f"file:{name}"[:128]}
            run = _Run(self._client, self._form, common, present)
            came_from = reading.base_version if document.origin else f"after {self.written_version}"
            run.prefix = f"{epoch}\0{self._conversation}\0{came_from}"
            run.whole = document.is_whole
            try:
                await self._carry_out(run, reading, outcome)
            except VersionConflict:
                outcome.calls += run.calls
                continue
            outcome.calls += run.calls
            outcome.conflicts = [*reading.found.conflicts, *run.refused]
            outcome.kept = reading.found.kept
            self._absorb(source, run.renamed(reading.theirs))
            return outcome
        raise VersionConflict("version_conflict", -32002, "The list keeps changing while its file is read.", {})

    def _absorb(self, source: tuple[str, int], theirs: Sheet) -> None:
        absorbed = [*self._absorbed.pop(source, ()), theirs]
        self._absorbed[source] = absorbed[-_RECENT:]
        while len(self._absorbed) > _SOURCES:
            del self._absorbed[next(iter(self._absorbed))]

    async def _carry_out(self, run: "_Run", reading: Reading, outcome: Outcome) -> None:
        waiting: list[Change] = list(reading.found.changes)
        while waiting:
            blocked: list[Change] = []
            for change in waiting:
                try:
                    await run.do(change)
                except VersionConflict:
                    raise
                except Blocked as error:
                    blocked.append(change)  # another change of this file may free it
                    run.last = error
                except RequestRefused as error:
                    run.refuse(change, error)
                if isinstance(change, Add) and change.ref in run.added:
                    key = (reading.base_version, change.ref.removeprefix(NEW))
                    self._adopted[key] = run.added[change.ref]
            if len(blocked) == len(waiting):
                for change in blocked:
                    run.refuse(change, run.last)
                return
            waiting = blocked

    async def _base(self, document: Document, epoch: str, newest: int) -> Snapshot | None:
        origin = document.origin
        if origin is None:
            return likeliest(self._form, document, self._recent)
        if (origin.epoch, origin.conversation) != (epoch, self._conversation):
            raise Foreign(f"it is of {origin.conversation} in the log {origin.epoch}")
        if not 0 < origin.version <= newest:
            return None
        known = next((one for one in reversed(self._recent) if one.version == origin.version), None)
        if known is not None:
            return known
        try:
            return Snapshot(origin.version, list(await self._list.list(at_version=origin.version)))
        except RequestRefused:
            return None  # erased, or never there


class _Run:
    """The calls of one proposal; each expects the version that the call before it made."""

    def __init__(self, client: AsyncClient, form: Form, common: dict[str, Any], present: TaskList) -> None:
        self._client = client
        self._form = form
        self._common = common
        self._version = present.version
        self._tasks = {task.id: task for task in present}
        self.prefix = ""
        self.whole = False
        self.calls = 0
        self.added: dict[str, Adopted] = {}
        self.refused: list[Conflict] = []
        self.last: RequestRefused | None = None

    async def do(self, change: Change) -> None:
        match change:
            case Add():
                await self._add(change)
            case Edit(task, fields):
                before = self._form.fields(self._tasks[task])
                for method, params in edit_calls(before, fields):
                    await self._call(method, {"task": task, **params})
            case Delete():
                await self._call("task.delete", {"task": change.task})
            case Move():
                await self._call("task.move", {"task": change.task, **self._place(change.after, change.task)})

    def renamed(self, theirs: Sheet) -> Sheet:
        """The content of a file, with its new tasks under the ids that they got, and without the refused ones."""
        names = {task: self.added[task].task if task in self.added else task for task in theirs}
        return {names[task]: fields for task, fields in theirs.items() if not names[task].startswith(NEW)}

    def refuse(self, change: Change, error: RequestRefused | None) -> None:
        fields = dict(change.fields) if isinstance(change, Add | Edit) else None
        task = change.ref.removeprefix(NEW).strip() if isinstance(change, Add) else change.task
        said = f"{error.kind}: {error.message}" if error else "refused"
        self.refused.append(Conflict(task, type(change).__name__.lower(), fields, None, said))

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
        status = status_in(fields)
        if status not in ("", "pending"):
            params["status"] = status
        outside = change.ref.removeprefix(NEW)
        metadata = dict(fields.get("metadata", {}))
        if self.whole and not outside.isdecimal() and not outside.startswith(" ") and len(outside) <= _MAX_FOREIGN_ID:
            metadata[FOREIGN_ID] = outside
        if metadata:
            params["metadata"] = metadata
        # An edge to a task that is still to be added is proposed anew once it is there.
        edges = {name: frozenset(fields[name]) & self._tasks.keys() for name, _, _ in EDGES if fields.get(name)}
        params |= {name: sorted(ids) for name, ids in edges.items()}
        if not change.at_end:
            behind = self.added.get(change.after or "")
            params |= self._place(behind.task if behind else change.after, "")
        result = await self._call("task.add", {"title": "", **params}, self._key(change))
        task = msgspec.convert(result["task"], Task)
        self._tasks[task.id] = task
        self.added[change.ref] = Adopted(task.id, {**fields, **edges})

    def _place(self, after: str | None, task: str) -> dict[str, Any]:
        if after is not None:
            return {"after": after}
        first = next((one for one in self._tasks if one != task), None)
        return {"before": first} if first else {"to_end": True} if task else {}

    def _key(self, change: Add) -> str:
        """The same key for the same proposal: a file that is read twice, even across a crash, adds its task once."""
        edges = {name: sorted(change.fields[name]) for name, _, _ in EDGES if name in change.fields}
        said = msgspec.json.encode([self.prefix, change.ref, {**change.fields, **edges}], order="deterministic")
        return "mirror:" + hashlib.sha256(said).hexdigest()
