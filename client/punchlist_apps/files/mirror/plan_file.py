"""A Markdown file that is kept in step with a list, both ways: `punch mirror add PLAN.md`.

What file and list said when they were last the same stands in the data directory, so that nothing of ours is written
into the file but boxes, titles and the lines of new tasks. What the file changed since becomes ordinary calls; of what
both changed the list's value stays, and that is reported.
"""

import hashlib
import os
import shlex
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from anyio.to_thread import run_sync

from punchlist.clients.aio import AsyncClient
from punchlist.errors import RequestRefused
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.importers import markdown
from punchlist_apps.files.importers.document import Document, decoded
from punchlist_apps.files.importers.matching import compare
from punchlist_apps.files.importers.outline import Entry
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_apps.files.mirror.calls import check_gate, edit_calls
from punchlist_apps.files.mirror.plan_text import Known, Proposal, entries_of, proposed, rewritten, status_of, title_of
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write
from punchlist_schemas.things import Task

SETTLED_S = 0.3
"""A file that was written to is read once it has been left alone for this long, in seconds."""

MAX_BYTES = 1 << 20
"""Largest plan, in bytes. Parsing that many takes about two seconds, for which the end of the mirror waits."""

_ROUNDS = 20
_MOST_DELETED = 3
"""A file that lacks more of its tasks than this, and more than half of them, is half a file."""


class _State(msgspec.Struct):
    """What file and list said when they were last the same."""

    conversation: str
    epoch: str
    text: str
    entries: list[Known]


class PlanFile:
    """One file and its list."""

    is_stale = False
    retry_s: float | None = None

    def __init__(self, client: AsyncClient, path: str, conversation: str, data_dir: str, report: Report) -> None:
        self._client = client
        self._path = path
        self._conversation = conversation
        self._list = client.conversation(conversation, actor=f"file:{os.path.basename(path)}"[:128])
        self._report = report
        digest = hashlib.sha256(f"{path}\0{conversation}".encode()).hexdigest()[:32]
        self._state_path = os.path.join(data_dir, "mirror", "plans", f"{digest}.json")

    async def sync(self) -> None:
        """Take over what the file asks for, then let its boxes follow the list; repeated until nobody interferes.

        Raises:
            PunchlistError: The daemon is out of reach; nothing is lost by trying again.
        """
        for _ in range(_ROUNDS):
            try:
                if await self._sync_once():
                    return
            except (FormatError, OSError) as error:
                self._report_problem("corrupt" if isinstance(error, FormatError) else "trouble", _trouble_text(error))
                return
            except RequestRefused as error:
                if error.kind != "version_conflict":
                    self._report_problem("conflict", f"{error.kind}: {error.message}")
                    return
        self._report_problem("trouble", "file and list change faster than they can be made the same")

    async def _sync_once(self) -> bool:
        """One try; whether file and list are the same now."""
        # What reads or writes a long text is done in a thread: the loop has signals and other files to see to.
        data, document, entries = await run_sync(_read, self._path)
        epoch = (await self._client.open()).epoch
        state = await run_sync(self._load, epoch)
        if state is None:
            await self._begin(document, entries)
            tasks = list(await self._list.list())
            state = await run_sync(_first_state, self._conversation, epoch, document.text, entries, tasks)
        tasks = list(await self._list.list())
        present = {task.id: _plain(task) for task in tasks}
        proposal = await run_sync(proposed, state.entries, entries, present)
        held = sum(1 for one in state.entries if one.task)
        if len(proposal.deleted) > _MOST_DELETED and len(proposal.deleted) * 2 > held:
            missing = f"{len(proposal.deleted)} of {held} tasks are missing in the file, so it is left alone"
            self._report_problem("kept", f"{missing}: put their lines back, or delete the tasks: punch rm")
            return True
        waiting = {task.id: task for task in tasks if task.waits_for == "yes"}
        added = await self._carry_out(proposal, entries, present, waiting)
        tasks = list(await self._list.list())
        present = {task.id: _plain(task) for task in tasks}
        names = [added.get(index, task) for index, task in enumerate(proposal.tasks)]
        known = _by_task(state.entries, names, entries, added)
        text, shown = await run_sync(rewritten, document.text, names, known, present)
        if not await run_sync(self._write, data, document, text):
            return False
        fresh = await run_sync(_known_in, text, shown, present)
        await run_sync(self._save, _State(self._conversation, epoch, text, fresh))
        self._report.clear(self._path, "trouble", "corrupt", "kept", *(() if proposal.conflicts else ("conflict",)))
        if proposal.conflicts:
            self._report_problem("conflict", "; ".join(proposal.conflicts[:20]))
        return True

    async def _begin(self, document: Document, entries: Sequence[Entry]) -> None:
        """The first time, the file's tasks are imported: those that the list has keep their status."""
        if not entries:
            return
        draft = await run_sync(markdown.read, [document])
        for _ in range(_ROUNDS):
            listed = await self._list.list()
            present = [msgspec.to_builtins(task) for task in listed]
            found = await run_sync(partial(compare, draft, present, now=round(time.time() * 1000)))
            if not found.call:
                return
            await self._call("task.add_many", tasks=found.call, expect_version=listed.version)
            if found.is_whole:
                return

    async def _carry_out(
        self, proposal: Proposal, entries: Sequence[Entry], present: dict[str, dict[str, Any]], waiting: dict[str, Task]
    ) -> dict[int, str]:
        """Make the calls that a file asks for; the ids of its new tasks by their entries."""
        added = await self._add(proposal, entries, present)
        for task, member, value in proposal.edits:
            try:
                for method, params in edit_calls(present[task], {member: value}):
                    check_gate(waiting.get(task), method, params)
                    # A box that was ticked counts whatever is open below it: there is nobody to ask.
                    force = {"force": True} if value == "completed" and member == "status" else {}
                    await self._call(method, task=task, **params, **force)
            except RequestRefused as error:
                proposal.conflicts.append(f"#{task} {member}: {error.message}")
        deleted: list[str] = []
        for task in proposal.deleted:
            try:
                check_gate(waiting.get(task), "task.delete", {})
                deleted.append(task)
            except RequestRefused as error:
                proposal.conflicts.append(error.message)
        if deleted:
            await self._call("task.delete", tasks=deleted)
        return added

    async def _add(
        self, proposal: Proposal, entries: Sequence[Entry], present: dict[str, dict[str, Any]]
    ) -> dict[int, str]:
        there = [task if task in present else "" for task in proposal.tasks]
        new: list[dict[str, Any]] = []
        refs = {index: f"n{index}" for index in proposal.new}
        for index in proposal.new:
            entry = entries[index]
            members: dict[str, Any] = {"title": title_of(entry), "ref": refs[index], "status": status_of(entry.box)}
            above = refs.get(entry.above) or (there[entry.above] if entry.above >= 0 else "")
            members |= {"parent": above} if above else {}
            members |= {"description": entry.description} if entry.description else {}
            members |= {"metadata": markdown.heading_of(entry)} if entry.kind != "task" else {}
            new.append(members)
        if not new:
            return {}
        result = await self._call("task.add_many", tasks=new)
        added = dict(zip(proposal.new, (task["id"] for task in result["tasks"]), strict=True))
        names = [added.get(index, task) for index, task in enumerate(there)]
        for index, task in added.items():
            before = next((name for name in reversed(names[:index]) if name), "")
            if before and any(name and number not in added for number, name in enumerate(names[index:], index)):
                await self._call("task.move", task=task, after=before)
        return added

    async def _call(self, method: str, **params: Any) -> Any:
        actor = f"file:{os.path.basename(self._path)}"[:128]
        return await self._client.call(method, {"conversation": self._conversation, "actor": actor, **params})

    def _write(self, data: bytes, document: Document, text: str) -> bool:
        """Write the text unless the file has been changed since it was read."""
        with open(self._path, "rb") as file:
            if file.read() != data:
                return False
        if text == document.text:
            return True
        encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
        if document.encoding.startswith("utf-16"):
            encoding = "utf-16"
        ends = text.replace("\n", "\r\n") if b"\r\n" in data else text
        atomic_write(os.path.realpath(self._path), ends.encode(encoding), mode=None)
        return True

    def _load(self, epoch: str) -> _State | None:
        try:
            with open(self._state_path, "rb") as file:
                state = msgspec.json.decode(file.read(), type=_State)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        return state if (state.epoch, state.conversation) == (epoch, self._conversation) else None

    def _save(self, state: _State) -> None:
        make_directories(os.path.dirname(self._state_path))
        atomic_write(self._state_path, msgspec.json.encode(state))

    def _report_problem(self, kind: str, text: str) -> None:
        self._report.add(Problem(self._conversation, self._path, kind, text, int(time.time() * 1000)))


def _trouble_text(error: FormatError | OSError) -> str:
    """What is wrong with the file, which is named beside it, and the way out where it does not pass by itself."""
    if isinstance(error, FileNotFoundError):
        return f"it is not there; put it back, or give it up: punch mirror remove {shlex.quote(str(error.filename))}"
    return str(error) if isinstance(error, FormatError) else error.strerror or str(error)


def _read(path: str) -> tuple[bytes, Document, list[Entry]]:
    data = _settled(path)
    document = decoded(data, path)
    return data, document, entries_of(document.text).entries


def _settled(path: str) -> bytes:
    """The file's bytes once nobody has been writing to it for a moment.

    Raises:
        FormatError: It is longer than `MAX_BYTES`.
    """
    deadline = time.monotonic() + 5
    while True:
        found = os.stat(path)
        if found.st_size > MAX_BYTES:
            raise FormatError(
                f"it has {found.st_size:,} bytes, a mirrored plan at most {MAX_BYTES:,}; "
                f"split it, or import it once: punch import {shlex.quote(path)}",
                path,
            )
        age = time.time() - found.st_mtime
        if not -1 < age < SETTLED_S or time.monotonic() > deadline:
            with open(path, "rb") as file:
                return file.read()
        time.sleep(SETTLED_S - age if age > 0 else SETTLED_S)


def _plain(task: Task) -> dict[str, Any]:
    return {"title": task.title, "status": task.status, "description": task.description, "parent": task.parent}


def _known(entry: Entry, task: str, present: dict[str, dict[str, Any]]) -> Known:
    now = present.get(task, {"title": "", "status": ""})
    return Known(
        task if task in present else "", entry.title, entry.box, entry.description, now["title"], now["status"]
    )


def _first_state(conversation: str, epoch: str, text: str, entries: Sequence[Entry], tasks: Sequence[Task]) -> _State:
    """Which task each entry is, once all of them are in the list; what the file says of a status is nobody's yet."""
    titles: dict[tuple[str, str], list[str]] = {}
    by_id = {task.id: task for task in tasks}
    for task in tasks:
        titles.setdefault((task.title, by_id[task.parent].title if task.parent in by_id else ""), []).append(task.id)
        titles.setdefault((task.title, "\0"), []).append(task.id)
    taken: set[str] = set()
    known: list[Known] = []
    for entry in entries:
        above = title_of(entries[entry.above]) if entry.above >= 0 else ""
        found = [*titles.get((title_of(entry), above), ()), *titles.get((title_of(entry), "\0"), ())]
        task = next((one for one in found if one not in taken), "")
        taken.add(task)
        status = status_of(entry.box)
        title = by_id[task].title if task else ""
        known.append(Known(task, entry.title, entry.box, entry.description, title, status))
    return _State(conversation, epoch, text, known)


def _by_task(
    known: Sequence[Known], names: Sequence[str], entries: Sequence[Entry], added: dict[int, str]
) -> dict[str, Known]:
    """What is known of each task, the new ones as the file has just said them."""
    found = {one.task: one for one in known if one.task}
    for index, task in added.items():
        entry = entries[index]
        found[task] = Known(task, entry.title, entry.box, entry.description, title_of(entry), status_of(entry.box))
    wanted = set(names)
    return {task: one for task, one in found.items() if task in wanted}


def _known_in(text: str, shown: dict[int, str], present: dict[str, dict[str, Any]]) -> list[Known]:
    """Return the entries of the text that was written; `shown` has the tasks of its lines."""
    return [_known(entry, shown.get(entry.line, ""), present) for entry in entries_of(text).entries]
