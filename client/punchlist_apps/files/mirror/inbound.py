"""Imports Claude Code's own task folders, one way: their tasks become tasks here, and nothing is written into them.

Each file is compared with what it said when it was last taken over, and what changed in the file is changed here; so
what is done here stays until the file says something new. A file that goes away deletes nothing: Claude Code removes
the files of finished lists, and a resumed session begins with none. What was taken over is kept in the data directory,
one file for each session.
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
from punchlist_apps.files.mirror.calls import PLAIN_MEMBERS, check_gate, edit_calls
from punchlist_apps.files.mirror.files import Folder, Trouble
from punchlist_apps.files.mirror.merge import Edit, reconcile
from punchlist_apps.files.mirror.sessions import Session, own_list, project_of, session_of
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

ORIGIN = "claude_code"
"""Key of a task's metadata that says which file it came from: `FOLDER/ID`."""

_FORM = Claude()
_TITLE = 500
_HIDDEN = "_internal"
"""Key of the metadata of tasks that Claude Code itself does not show."""

_SESSION = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}\Z")


_NOTHING: Fields = {}


class Seen(msgspec.Struct):
    """A file as it was last imported, and the task that it became; `gone`: the file does not exist any more."""

    task: str
    said: dict[str, Any]
    gone: bool = False


class State(msgspec.Struct):
    """Import state of one session."""

    folder: str
    conversation: str
    files: dict[str, Seen] = {}


class Inbound:
    """Imports one folder.

    Args:
        tasks_dir: Claude Code's folder of folders.
        data_dir: The data directory, which records what was imported.
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
        """Import what is new.

        Raises:
            PunchlistError: The daemon is unreachable. A retry is safe.
        """
        try:
            files = await run_sync(self._read)
            session, path, state = await run_sync(self._load)
            if not files and state is None:
                return
            if state is None:
                state = State(self._name, await self._conversation(session))
            before = msgspec.json.encode(state)
            state.folder = self._name
            try:
                await self._take_over(session, state, files)
            finally:
                if msgspec.json.encode(state) != before:
                    await run_sync(_save, path, state)
        except (Trouble, OSError) as error:
            self._report_trouble("", str(error))

    def _read(self) -> dict[str, dict[str, Any]]:
        """The contents of the files by their number, without those that can't be read (yet)."""
        found: dict[str, dict[str, Any]] = {}
        for name in sorted(self._folder.names(), key=lambda name: (len(name), name)):
            if not _FORM.is_document(name, self._name):
                continue
            data = b""
            try:
                data = self._folder.read(name) or b""
                document = _FORM.parse(name, data)
            except (Unreadable, Trouble) as error:
                if data.strip() or isinstance(error, Trouble):
                    self._report_trouble(name, f"not taken over: {error}")
                continue
            number = name.removesuffix(".json")
            fields = dict(document.tasks[number])
            if not fields["metadata"].get(_HIDDEN):
                del fields["blocks"]  # each edge stands in the other task's file as well
                title, description = _shown(fields, number)
                edges = sorted(fields["blocked_by"])
                shown = {"title": title, "description": description, "active_form": fields["active_form"][:_TITLE]}
                found[number] = {**fields, **shown, "blocked_by": edges}
        return found

    def _load(self) -> tuple[Session, str, State | None]:
        session = session_of(os.path.dirname(self._tasks_dir), self._name)
        path, state = self._state_of(session.key)
        # A founded team takes its session's folder over; a folder beside another of the same session is one of its own.
        if state and state.folder != self._name and os.path.isdir(os.path.join(self._tasks_dir, state.folder)):
            path, state = self._state_of(f"{session.key}\0{self._name}")
        return session, path, state

    def _state_of(self, key: str) -> tuple[str, State | None]:
        name = hashlib.sha256(f"{self._tasks_dir}\0{key}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        path = os.path.join(self._data_dir, "mirror", "claude", name)
        try:
            with open(path, "rb") as file:
                return path, msgspec.json.decode(file.read(), type=State)
        except FileNotFoundError:
            return path, None
        except msgspec.MsgspecError as error:
            raise Trouble(f"{path}: {error}; remove it") from error

    async def _conversation(self, session: Session) -> str:
        """The list of the project, if the project may name it; otherwise a list named after the folder."""
        meant = await run_sync(project_of, session.cwd)
        if meant is not None:
            info = await self._client.conversation(meant.conversation).info()
            used = info.conversation if info.version else None
            if await run_sync(project.may_be_taken, meant, self._data_dir, used):
                return meant.conversation
        return own_list(self._name)

    async def _take_over(self, session: Session, state: State, files: dict[str, dict[str, Any]]) -> None:
        actor = f"claude-code/{session.key[:4]}" if _SESSION.match(session.key) else "claude-code"
        common = {"conversation": state.conversation, "actor": actor}
        for number, said in files.items():
            seen = state.files.get(number)
            if seen is None or (seen.gone and seen.said["title"] != said["title"]):
                await self._add(common, state, number, said)
            else:
                seen.gone = False
        for number, seen in state.files.items():
            if number in files:
                await self._edit(common, state, number, files[number])
            else:
                seen.gone = True

    async def _add(self, common: dict[str, Any], state: State, number: str, said: dict[str, Any]) -> None:
        origin = f"{self._name}/{number}"
        params = {name: said[name] for name in PLAIN_MEMBERS} | {"metadata": {**said["metadata"], ORIGIN: origin}}
        words = msgspec.json.encode([self._tasks_dir, origin, said["title"]])
        key = f"claude:{hashlib.sha256(words).hexdigest()}"
        try:
            result = await self._client.call("task.add", {**common, **params, "key": key})
        except RequestRefused as error:
            self._report_trouble(number, f"not added: {error.message}")
            return
        self._clear(number)
        # Its state and edges follow as changes, like those of every later look.
        taken: dict[str, Any] = {**said, "status": "pending", "blocked_by": []}
        state.files[number] = Seen(result["task"]["id"], taken)

    async def _edit(self, common: dict[str, Any], state: State, number: str, said: dict[str, Any]) -> None:
        """Make the calls for what is new in the file; a refused one is tried again the next time."""
        seen = state.files[number]
        for method, params, then in _changes(state, seen.said, said, common["actor"]):
            try:
                listed = self._client.conversation(common["conversation"])
                check_gate(await listed.get(seen.task), method, params)
                await self._client.call(method, {**common, "task": seen.task, **params})
            except NotFound:
                seen.said = said  # it was deleted here, and stays so
                break
            except RequestRefused as error:
                self._report_trouble(number, f"{method.removeprefix('task.')} refused: {error.message}")
                return
            seen.said = then
        self._clear(number)

    def _report_trouble(self, number: str, text: str) -> None:
        self._report.add(Problem("", self._path(number), "trouble", text, 0))

    def _clear(self, number: str) -> None:
        self._report.clear(self._path(number), "trouble")

    def _path(self, number: str) -> str:
        name = f"/{number.removesuffix('.json')}.json" if number else ""
        return f"{self._folder.path}{name}"


def _changes(
    state: State, was: dict[str, Any], said: dict[str, Any], actor: str
) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The calls that a file asks for: method, parameters, and what of the file has been taken over with it."""
    known = {number: one.task for number, one in state.files.items()}
    edges = [number for number in said["blocked_by"] if number in known]
    before = {**was, "blocked_by": frozenset(known[number] for number in was["blocked_by"])}
    wanted = {**said, "blocked_by": frozenset(known[number] for number in edges)}
    if said["status"] == "in_progress" != was["status"] and not said["owner"]:
        wanted["owner"] = actor
    # What the file states since the last look counts, whatever the list has by now.
    found = reconcile({"": before}, {"": wanted}, {"": before})
    (edited,) = [change.fields for change in found.changes if isinstance(change, Edit)] or [_NOTHING]
    then = {**said, "blocked_by": edges}
    return [
        (method, params, {**then, "status": was["status"]} if method == "task.edit" else then)
        for method, params in edit_calls(before, edited)
    ]


def _save(path: str, state: State) -> None:
    make_directories(os.path.dirname(path))
    atomic_write(path, msgspec.json.encode(state), fsync=True)


def _shown(said: Fields, number: str) -> tuple[str, str]:
    """Title and description; what is too long for a title begins the description."""
    title, description = str(said["title"] or said["active_form"] or f"task {number}"), str(said["description"])
    if len(title) <= _TITLE:
        return title, description
    return title[: _TITLE - 1] + "…", f"{title}\n\n{description}".rstrip()
