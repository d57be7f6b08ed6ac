"""Imports Claude Code's own task folders into lists, in one direction: the folders are never written to.

Each file is compared with its content at the last import, and the differences are applied to the list. A change to the
list is therefore kept until the file changes again. A missing file doesn't delete its task, since Claude Code removes
the files of finished lists, and a resumed session starts without files. The imported contents are stored in the data
directory, one file for each session.
"""

import hashlib
import os
import re
from typing import Any

import msgspec
from anyio.to_thread import run_sync

from punchlist.base import project
from punchlist.clients.aio import AsyncClient
from punchlist.errors import NotFound, RequestRefused
from punchlist.taskfiles.claude import Claude
from punchlist.taskfiles.file_format import Fields, Unreadable
from punchlist.taskfiles.report import Problem, Report
from punchlist_apps.files.mirror.calls import PLAIN_MEMBERS, build_edit_calls, check_gate
from punchlist_apps.files.mirror.files import Folder, Trouble
from punchlist_apps.files.mirror.merge import Edit, reconcile
from punchlist_apps.files.mirror.sessions import Session, build_list_name, find_project, find_session
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

ORIGIN = "claude_code"
"""Metadata key for the file of a task, as `FOLDER/ID`."""

_FORMAT = Claude()
_MAX_TITLE = 500
_HIDDEN = "_internal"
"""Metadata key of tasks that Claude Code hides."""

_SESSION = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}\Z")

_EMPTY: Fields = {}


class ImportedFile(msgspec.Struct):
    """A file as of its last import.

    Attributes:
        task: The id of the task that it was imported as.
        said: Its content.
        gone: Whether the file no longer exists.
    """

    task: str
    said: dict[str, Any]
    gone: bool = False


class ImportState(msgspec.Struct):
    """Import state of one session."""

    folder: str
    conversation: str
    files: dict[str, ImportedFile] = {}


class Inbound:
    """Imports one folder.

    Args:
        tasks_dir: Claude Code's directory of task folders.
        data_dir: The data directory, in which the imported contents are stored.
    """

    is_stale = False
    retry_s: float | None = None

    def __init__(self, client: AsyncClient, tasks_dir: str, folder: str, data_dir: str, report: Report) -> None:
        self._client = client
        self._tasks_dir = tasks_dir
        self._name = folder
        self._folder = Folder(tasks_dir, (folder,))
        self._data_dir = data_dir
        self._report = report

    async def sync(self) -> None:
        """Import the changes to the files.

        Raises:
            PunchlistError: The daemon is unreachable. A retry is safe.
        """
        try:
            files = await run_sync(self._read_files)
            session, path, state = await run_sync(self._load)
            if not files and state is None:
                return
            if state is None:
                state = ImportState(self._name, await self._choose_list(session))
            before = msgspec.json.encode(state)
            state.folder = self._name
            try:
                await self._apply(session, state, files)
            finally:
                if msgspec.json.encode(state) != before:
                    await run_sync(_save_state, path, state)
        except (Trouble, OSError) as error:
            self._report_problem("", str(error))

    def _read_files(self) -> dict[str, dict[str, Any]]:
        """Return the contents of the files by number. Files that can't be parsed yet are left out."""
        contents: dict[str, dict[str, Any]] = {}
        for name in sorted(self._folder.list_names(), key=lambda name: (len(name), name)):
            if not _FORMAT.is_document(name, self._name):
                continue
            data = b""
            try:
                data = self._folder.read(name) or b""
                document = _FORMAT.parse(name, data)
            except (Unreadable, Trouble) as error:
                if data.strip() or isinstance(error, Trouble):
                    self._report_problem(name, f"not imported: {error}")
                continue
            number = name.removesuffix(".json")
            fields = dict(document.tasks[number])
            if not fields["metadata"].get(_HIDDEN):
                del fields["blocks"]  # The other task's file has the same dependency.
                title, description = _split_title(fields, number)
                edges = sorted(fields["blocked_by"])
                texts = {"title": title, "description": description, "active_form": fields["active_form"][:_MAX_TITLE]}
                contents[number] = {**fields, **texts, "blocked_by": edges}
        return contents

    def _load(self) -> tuple[Session, str, ImportState | None]:
        session = find_session(os.path.dirname(self._tasks_dir), self._name)
        path, state = self._load_state(session.key)
        # Creating a team renames the session's folder, and the state moves with the folder. If the old folder still
        # exists, the session has two folders.
        if state and state.folder != self._name and os.path.isdir(os.path.join(self._tasks_dir, state.folder)):
            path, state = self._load_state(f"{session.key}\0{self._name}")
        return session, path, state

    def _load_state(self, key: str) -> tuple[str, ImportState | None]:
        name = hashlib.sha256(f"{self._tasks_dir}\0{key}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        path = os.path.join(self._data_dir, "mirror", "claude", name)
        try:
            with open(path, "rb") as file:
                return path, msgspec.json.decode(file.read(), type=ImportState)
        except FileNotFoundError:
            return path, None
        except msgspec.MsgspecError as error:
            raise Trouble(f"{path}: {error}; remove it") from error

    async def _choose_list(self, session: Session) -> str:
        """Return the project's list if the project may choose it, else a list named after the folder."""
        target = await run_sync(find_project, session.cwd)
        if target is not None:
            info = await self._client.conversation(target.conversation).info()
            existing = info.conversation if info.version else None
            if await run_sync(project.may_be_taken, target, self._data_dir, existing):
                return target.conversation
        return build_list_name(self._name)

    async def _apply(self, session: Session, state: ImportState, files: dict[str, dict[str, Any]]) -> None:
        actor = f"claude-code/{session.key[:4]}" if _SESSION.match(session.key) else "claude-code"
        common = {"conversation": state.conversation, "actor": actor}
        for number, content in files.items():
            imported = state.files.get(number)
            # A file that disappeared and returned with a different title is a new task with a reused number.
            if imported is None or (imported.gone and imported.said["title"] != content["title"]):
                await self._add(common, state, number, content)
            else:
                imported.gone = False
        for number, imported in state.files.items():
            if number in files:
                await self._edit(common, state, number, files[number])
            else:
                imported.gone = True

    async def _add(self, common: dict[str, Any], state: ImportState, number: str, content: dict[str, Any]) -> None:
        origin = f"{self._name}/{number}"
        params = {name: content[name] for name in PLAIN_MEMBERS} | {"metadata": {**content["metadata"], ORIGIN: origin}}
        identity = msgspec.json.encode([self._tasks_dir, origin, content["title"]])
        key = f"claude:{hashlib.sha256(identity).hexdigest()}"
        try:
            result = await self._client.call("task.add", {**common, **params, "key": key})
        except RequestRefused as error:
            self._report_problem(number, f"not added: {error.message}")
            return
        self._clear_problem(number)
        # Status and dependencies follow as changes, as they do in later imports.
        imported: dict[str, Any] = {**content, "status": "pending", "blocked_by": []}
        state.files[number] = ImportedFile(result["task"]["id"], imported)

    async def _edit(self, common: dict[str, Any], state: ImportState, number: str, content: dict[str, Any]) -> None:
        """Make the calls for the changes to a file. A rejected call is tried again during the next sync."""
        imported = state.files[number]
        for method, params, after in _build_calls(state, imported.said, content, common["actor"]):
            try:
                tasks = self._client.conversation(common["conversation"])
                check_gate(await tasks.get(imported.task), method, params)
                await self._client.call(method, {**common, "task": imported.task, **params})
            except NotFound:
                imported.said = content  # The task was deleted from the list and isn't added again.
                break
            except RequestRefused as error:
                self._report_problem(number, f"{method.removeprefix('task.')} refused: {error.message}")
                return
            imported.said = after
        self._clear_problem(number)

    def _report_problem(self, number: str, text: str) -> None:
        self._report.add(Problem("", self._get_path(number), "trouble", text, 0))

    def _clear_problem(self, number: str) -> None:
        self._report.clear(self._get_path(number), "trouble")

    def _get_path(self, number: str) -> str:
        name = f"/{number.removesuffix('.json')}.json" if number else ""
        return f"{self._folder.path}{name}"


def _build_calls(
    state: ImportState, before: dict[str, Any], content: dict[str, Any], actor: str
) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the calls for a file's changes: method, params, and the content to record as imported after the call."""
    tasks = {number: imported.task for number, imported in state.files.items()}
    edges = [number for number in content["blocked_by"] if number in tasks]
    base = {**before, "blocked_by": frozenset(tasks[number] for number in before["blocked_by"])}
    target = {**content, "blocked_by": frozenset(tasks[number] for number in edges)}
    if content["status"] == "in_progress" != before["status"] and not content["owner"]:
        target["owner"] = actor
    # The base is also passed as the present list, so that the file's changes win over the list's.
    result = reconcile({"": base}, {"": target}, {"": base})
    (edited,) = [change.fields for change in result.changes if isinstance(change, Edit)] or [_EMPTY]
    after = {**content, "blocked_by": edges}
    return [
        (method, params, {**after, "status": before["status"]} if method == "task.edit" else after)
        for method, params in build_edit_calls(base, edited)
    ]


def _save_state(path: str, state: ImportState) -> None:
    make_directories(os.path.dirname(path))
    atomic_write(path, msgspec.json.encode(state), fsync=True)


def _split_title(content: Fields, number: str) -> tuple[str, str]:
    """Return the title and the description. A title that is too long is truncated, and put before the description in
    full."""
    title, description = (
        str(content["title"] or content["active_form"] or f"task {number}"),
        str(content["description"]),
    )
    if len(title) <= _MAX_TITLE:
        return title, description
    return title[: _MAX_TITLE - 1] + "…", f"{title}\n\n{description}".rstrip()
