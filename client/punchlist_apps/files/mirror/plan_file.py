"""Syncs a Markdown file with a list, both ways: `punch mirror add PLAN.md`.

The contents of the file and the list at the last sync are stored in the data directory. Only checkboxes, titles and
lines for new tasks are written to the file. Changes to the file since the last sync become ordinary calls. If both
sides have changed a member, the list's value is kept, and the conflict is reported.
"""

import hashlib
import os
import shlex
import time
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from anyio.to_thread import run_sync

from punchlist.clients.aio import AsyncClient
from punchlist.errors import RequestRefused
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.importers import markdown
from punchlist_apps.files.importers.document import Document, decode, read_file
from punchlist_apps.files.importers.markdown_forms import BY_NAME, MARKDOWN, MarkdownForm, detect_form, get_status
from punchlist_apps.files.importers.matching import compare
from punchlist_apps.files.importers.outline import Entry
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_apps.files.mirror.calls import build_edit_calls, check_gate
from punchlist_apps.files.mirror.plan_bytes import check_encoding, replace_lines
from punchlist_apps.files.mirror.plan_text import (
    NewLine,
    Proposal,
    SyncedEntry,
    build_mark_edit,
    build_proposal,
    find_changes,
    get_marks,
    get_title,
    is_same_reading,
    parse_entries,
    rewrite_text,
)
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write
from punchlist_schemas.things import Task

SETTLED_S = 0.3
"""Time without writes before a file is read, in seconds."""

MAX_BYTES = 1 << 20
"""Maximum size of a plan, in bytes. Parsing a plan of this size takes about 2 s and delays the mirror's shutdown."""

_MAX_ATTEMPTS = 20
_MAX_DELETED = 3
"""Maximum number of missing tasks to delete at a time if more than half of a file's tasks are missing."""


class _State(msgspec.Struct):
    """The file and the list as of the last sync."""

    conversation: str
    epoch: str
    entries: list[SyncedEntry]
    form: str = MARKDOWN.name


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
        self._state_path = _get_state_path(path, conversation, data_dir)

    async def sync(self) -> None:
        """Apply the file's changes, then write the list's changes to the file. Retry if either changes in the meantime.

        Raises:
            PunchlistError: The daemon is unreachable. A retry is safe.
        """
        for _ in range(_MAX_ATTEMPTS):
            try:
                if await self._sync_once():
                    return
            except (FormatError, OSError) as error:
                self._report_problem("unread" if isinstance(error, FormatError) else "trouble", _format_error(error))
                return
            except RequestRefused as error:
                if error.kind != "version_conflict":
                    self._report_problem("trouble", f"{error.kind}: {error.message}")
                    return
        self._report_problem("trouble", "file and list change faster than they can be synced")

    async def _sync_once(self) -> bool:
        """Sync once. Return whether the file and the list are now equal."""
        # Long texts are parsed and written in threads, so that the event loop stays responsive.
        epoch = (await self._client.open()).epoch
        state = await run_sync(self._load, epoch)
        data, document = await run_sync(_read_plan, self._path)
        form = await run_sync(self._choose_form, document, state)
        entries = (await run_sync(parse_entries, document.text, form)).entries
        if state is None:
            await self._import(document, entries, form)
            tasks = list(await self._list.list())
            state = await run_sync(_build_first_state, self._conversation, epoch, entries, tasks, form)
        tasks = list(await self._list.list())
        present = {task.id: _to_plain(task) for task in tasks}
        proposal = await run_sync(build_proposal, state.entries, entries, present, form)
        count = sum(1 for entry in state.entries if entry.task)
        if len(proposal.deleted) > _MAX_DELETED and len(proposal.deleted) * 2 > count:
            missing = f"{len(proposal.deleted)} of {count} tasks are missing in the file, so it is left alone"
            self._report_problem("kept", f"{missing}: put their lines back, or delete the tasks: punch rm")
            return True
        waiting = {task.id: task for task in tasks if task.waits_for == "yes"}
        added = await self._apply(proposal, entries, present, waiting, form)
        names = [added.get(index, task) for index, task in enumerate(proposal.tasks)]
        tasks = list(await self._list.list())
        present = {task.id: _to_plain(task) for task in tasks}
        await self._edit_marks(state.entries, proposal, entries, names, present, form)
        read = await run_sync(_build_read, state.entries, entries, names, form)
        if read != state.entries:
            # If the write fails or is retried, the changes above must not be made again.
            await run_sync(self._save, _State(self._conversation, epoch, read, form.name))
            self._report.clear(self._path, *(() if proposal.conflicts else ("conflict",)))
        if proposal.conflicts:
            self._report_problem("conflict", "; ".join(proposal.conflicts[:20]))
        by_task = {entry.task: entry for entry in read if entry.task}
        lines = await run_sync(rewrite_text, document.text, names, by_task, present, form)
        if not await run_sync(self._write, data, document, lines):
            return False
        written = await run_sync(_parse_synced, lines, present, form)
        await run_sync(self._save, _State(self._conversation, epoch, written, form.name))
        self._report.clear(self._path, "trouble", "unread", "kept")
        return True

    def _choose_form(self, document: Document, state: _State | None) -> MarkdownForm:
        """Return the form of the last sync if another form would change tasks, else the detected one."""
        detected = detect_form(document)
        last = detected if state is None else BY_NAME.get(state.form, detected)
        if is_same_reading(document.text, last, detected):
            self._report.clear(self._path, "form")
            return detected
        path = shlex.quote(self._path)
        self._report_problem(
            "form",
            f"it is still read as {last.name}; as {detected.name}, which it looks like, its tasks would change. "
            f"To read it again: punch mirror remove {path}, then punch mirror add {path}",
        )
        return last

    async def _import(self, document: Document, entries: Sequence[Entry], form: MarkdownForm) -> None:
        """Import the file's tasks during the first sync. Tasks that are already in the list keep their status."""
        if not entries:
            return
        draft = await run_sync(markdown.read_form, document, form)
        for _ in range(_MAX_ATTEMPTS):
            listed = await self._list.list()
            present = [msgspec.to_builtins(task) for task in listed]
            comparison = await run_sync(partial(compare, draft, present, now=round(time.time() * 1000)))
            if not comparison.call:
                return
            await self._call("task.add_many", tasks=comparison.call, expect_version=listed.version)
            if comparison.is_whole:
                return

    async def _apply(  # noqa: PLR0913
        self,
        proposal: Proposal,
        entries: Sequence[Entry],
        present: dict[str, dict[str, Any]],
        waiting: dict[str, Task],
        form: MarkdownForm,
    ) -> dict[int, str]:
        """Make the calls for the file's changes. Return the ids of its new tasks by the index of their entries."""
        added = await self._add(proposal, entries, present, form)
        for task, member, value in proposal.edits:
            try:
                for method, params in build_edit_calls(present[task], {member: value}):
                    check_gate(waiting.get(task), method, params)
                    # A checked box completes the task even if it has open subtasks, since no user is there to confirm.
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
            await self._try(proposal, f"#{', #'.join(deleted)}", "task.delete", tasks=deleted)
        return added

    async def _edit_marks(
        self,
        synced: Sequence[SyncedEntry],
        proposal: Proposal,
        entries: Sequence[Entry],
        names: Sequence[str],
        present: Container[str],
        form: MarkdownForm,
    ) -> None:
        """Apply dates, priorities, labels and dependencies that changed in the file since the last sync."""
        olds = {old.task: old for old in synced if old.task in present}
        edits: list[tuple[str, dict[str, Any]]] = []
        added: list[tuple[str, dict[str, Any]]] = []
        for entry, task in zip(entries, proposal.tasks, strict=True):
            if (old := olds.get(task)) is None:
                continue
            blockers = [names[other] for other in entry.blockers if names[other] in present]
            edit = build_mark_edit(old, get_marks(entry, form), blockers, present)
            added += [(task, {"add_blocked_by": edit.pop("add_blocked_by")})] if "add_blocked_by" in edit else []
            edits += [(task, edit)] if edit else []
        # Dependencies are added last, since they may form a cycle with the removed ones, which rejects the whole call.
        for task, edit in (*edits, *added):
            await self._try(proposal, f"#{task} {', '.join(edit)}", "task.edit", task=task, **edit)

    async def _add(
        self,
        proposal: Proposal,
        entries: Sequence[Entry],
        present: dict[str, dict[str, Any]],
        form: MarkdownForm,
    ) -> dict[int, str]:
        present_tasks = [task if task in present else "" for task in proposal.tasks]
        new: list[dict[str, Any]] = []
        refs = {index: f"n{index}" for index in proposal.new}
        for index in proposal.new:
            entry = entries[index]
            members: dict[str, Any] = {"title": get_title(entry), "ref": refs[index], "status": get_status(entry, form)}
            members |= {"description": entry.description} if entry.description else {}
            members |= {"metadata": markdown.get_heading_metadata(entry)} if entry.kind != "task" else {}
            members |= get_marks(entry, form)
            parent = refs.get(entry.above) or (present_tasks[entry.above] if entry.above >= 0 else "")
            members |= {"parent": parent} if parent else {}
            blockers = filter(None, (refs.get(other) or present_tasks[other] for other in entry.blockers))
            new.append({**members, "blocked_by": list(blockers)})
        if not new:
            return {}
        result = await self._call("task.add_many", tasks=new)
        added = dict(zip(proposal.new, (task["id"] for task in result["tasks"]), strict=True))
        names = [added.get(index, task) for index, task in enumerate(present_tasks)]
        for index, task in added.items():
            before = next((name for name in reversed(names[:index]) if name), "")
            if before and any(name and number not in added for number, name in enumerate(names[index:], index)):
                await self._try(proposal, f"#{task} order", "task.move", task=task, after=before)
        return added

    async def _call(self, method: str, **params: Any) -> Any:
        actor = f"file:{os.path.basename(self._path)}"[:128]
        return await self._client.call(method, {"conversation": self._conversation, "actor": actor, **params})

    async def _try(self, proposal: Proposal, name: str, method: str, **params: Any) -> None:
        """Make a call. If it is rejected, add a conflict."""
        try:
            await self._call(method, **params)
        except RequestRefused as error:
            proposal.conflicts.append(f"{name}: {error.message}")

    def _write(self, data: bytes, document: Document, lines: Sequence[NewLine]) -> bool:
        """Write the lines. Return False if the file has changed since it was read."""
        with open(self._path, "rb") as file:
            if file.read() != data:
                return False
        old = document.text.split("\n")
        if [line.text for line in lines] != old:
            new = replace_lines(data, old, lines, self._path)
            atomic_write(os.path.realpath(self._path), new, mode=None)
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


def check_plan(path: str) -> None:
    """Reject a file whose form can't be mirrored.

    Raises:
        FormatError: The file isn't text, is too large, or is a task of Backlog.md.
    """
    detect_form(read_file(path))


def forget_plan(path: str, conversation: str, data_dir: str) -> None:
    """Delete the state of the last sync. The next sync imports the file again, in the form that it then has."""
    with suppress(FileNotFoundError):
        os.unlink(_get_state_path(path, conversation, data_dir))


def read_form_name(path: str, conversation: str, data_dir: str) -> str:
    """Return the form in which a plan was read during its last sync, or `markdown` before the first one."""
    try:
        with open(_get_state_path(path, conversation, data_dir), "rb") as file:
            return msgspec.json.decode(file.read(), type=_State).form
    except (OSError, msgspec.MsgspecError):
        return MARKDOWN.name


def _get_state_path(path: str, conversation: str, data_dir: str) -> str:
    digest = hashlib.sha256(f"{path}\0{conversation}".encode()).hexdigest()[:32]
    return os.path.join(data_dir, "mirror", "plans", f"{digest}.json")


def _format_error(error: FormatError | OSError) -> str:
    """Format the error without the file's name, which the report already shows, and add advice for a missing file."""
    if isinstance(error, FileNotFoundError):
        return f"file not found; restore it, or end its mirror: punch mirror remove {shlex.quote(str(error.filename))}"
    return str(error) if isinstance(error, FormatError) else error.strerror or str(error)


def _read_plan(path: str) -> tuple[bytes, Document]:
    data = _read_when_settled(path)
    check_encoding(data, path)
    return data, decode(data, path)


def _read_when_settled(path: str) -> bytes:
    """Read the file once it hasn't been written to for `SETTLED_S`.

    Raises:
        FormatError: The file is larger than `MAX_BYTES`.
    """
    deadline = time.monotonic() + 5
    while True:
        status = os.stat(path)
        if status.st_size > MAX_BYTES:
            raise FormatError(
                f"it has {status.st_size:,} bytes, a mirrored plan at most {MAX_BYTES:,}; "
                f"split it, or import it once: punch import {shlex.quote(path)}",
                path,
            )
        age = time.time() - status.st_mtime
        if not -1 < age < SETTLED_S or time.monotonic() > deadline:
            with open(path, "rb") as file:
                return file.read()
        time.sleep(SETTLED_S - age if age > 0 else SETTLED_S)


def _to_plain(task: Task) -> dict[str, Any]:
    return {"title": task.title, "status": task.status, "description": task.description, "parent": task.parent}


def _build_synced(entry: Entry, task: str, form: MarkdownForm, title: str = "", status: str = "") -> SyncedEntry:
    """Return an entry as of this sync, with the title and status of its task in the list."""
    marks = get_marks(entry, form)
    return SyncedEntry(task, entry.title, entry.box, entry.description, title, status, get_status(entry, form), marks)


def _set_blockers(synced: Sequence[SyncedEntry], entries: Sequence[Entry]) -> None:
    for old, entry in zip(synced, entries, strict=True):
        old.blockers = [synced[other].task for other in entry.blockers if synced[other].task]


def _build_first_state(
    conversation: str, epoch: str, entries: Sequence[Entry], tasks: Sequence[Task], form: MarkdownForm
) -> _State:
    """Match each entry to a task by title, after the import. The statuses in the file count as already synced."""
    titles: dict[tuple[str, str], list[str]] = {}
    by_id = {task.id: task for task in tasks}
    for task in tasks:
        titles.setdefault((task.title, by_id[task.parent].title if task.parent in by_id else ""), []).append(task.id)
        titles.setdefault((task.title, "\0"), []).append(task.id)
    used: set[str] = set()
    synced: list[SyncedEntry] = []
    for entry in entries:
        above = get_title(entries[entry.above]) if entry.above >= 0 else ""
        candidates = [*titles.get((get_title(entry), above), ()), *titles.get((get_title(entry), "\0"), ())]
        task = next((candidate for candidate in candidates if candidate not in used), "")
        used.add(task)
        title = by_id[task].title if task else ""
        synced.append(_build_synced(entry, task, form, title, get_status(entry, form)))
    _set_blockers(synced, entries)
    return _State(conversation, epoch, synced, form.name)


def _build_read(
    synced: Sequence[SyncedEntry], entries: Sequence[Entry], names: Sequence[str], form: MarkdownForm
) -> list[SyncedEntry]:
    """Return the entries as read. The list counts as having accepted each change in the file.

    If the list has another value, it is written to the file as a later change.
    """
    olds = {old.task: old for old in synced if old.task}
    read: list[SyncedEntry] = []
    for entry, task in zip(entries, names, strict=True):
        old = olds.get(task)
        changed = find_changes(old, entry, form) if old else {}
        title = changed.get("title", old.list_title if old else get_title(entry))
        status = changed.get("status", old.list_status if old else get_status(entry, form))
        read.append(_build_synced(entry, task, form, title, status))
    _set_blockers(read, entries)
    return read


def _parse_synced(
    lines: Sequence[NewLine], present: dict[str, dict[str, Any]], form: MarkdownForm
) -> list[SyncedEntry]:
    """Return the synced entries of the lines that were written."""
    synced: list[SyncedEntry] = []
    entries = parse_entries("\n".join(line.text for line in lines), form).entries
    for entry in entries:
        task = lines[entry.line].task
        current = present.get(task, {"title": "", "status": ""})
        name = task if task in present else ""
        synced.append(_build_synced(entry, name, form, current["title"], current["status"]))
    _set_blockers(synced, entries)
    return synced
