"""A fixture for mirror files: a daemon, a client and a directory."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from punchlist import AsyncClient, AsyncConversation
from punchlist.taskfiles.config import Entry, FormName
from punchlist.taskfiles.report import Problem, Report, status
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_testing.daemon import Running, Spawned
from punchlistd.engine.lists import access


@contextmanager
def older_daemon() -> Generator[None]:
    """Make the daemon keep the spelling of GUIDs in list names, as in versions that didn't normalize it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "spellings", _no_spellings)
        yield


def _no_spellings(_name: str) -> tuple[str, ...]:
    return ()


class Place:
    """A daemon, a client, and a directory with the files of the conversation `web`."""

    def __init__(self, daemon: Running | Spawned, client: AsyncClient, directory: Path) -> None:
        self.daemon = daemon
        self.client = client
        self.directory = directory
        self.list: AsyncConversation = client.conversation("web", actor="ada")
        self.problems: list[Problem] = []
        self.report = Report(daemon.data_dir, self.problems.append)
        self.file = directory / ".agents" / "tasks" / "web.json"

    def mirrored(self, form: FormName = "checklist", conversation: str = "web") -> ListSync:
        return ListSync(self.client, Entry(str(self.directory), form), conversation, self.report)

    def read(self) -> Any:
        return json.loads(self.file.read_text())

    def edit(self, change: Callable[[Any], object]) -> None:
        """Apply a change to the file's JSON value."""
        value = self.read()
        change(value)
        self.write(value)

    def write(self, value: Any) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(value))

    async def titles(self) -> list[str]:
        return [task.title for task in await self.list.list()]

    async def said(self) -> list[tuple[str, str]]:
        """Return the actor and the event type of each change that came from a file."""
        changes = await self.client.read(0, "web")
        return [(change.actor, type(change.event).__name__) for change in changes if change.actor.startswith("file:")]

    @property
    def shown(self) -> list[str]:
        """The kinds of the problems in `punch mirror list`."""
        latest = status(self.daemon.data_dir)
        return [problem.kind for problem in latest.problems] if latest else []

    def kinds(self) -> list[str]:
        return [problem.kind for problem in self.problems]
