"""The three kinds of entries in the mirror configuration, and their members."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from anyio.to_thread import run_sync

from punchlist.clients.aio import AsyncClient
from punchlist.taskfiles.config import FORMS, Config, Entry
from punchlist.taskfiles.report import Report
from punchlist_apps.files.mirror.inbound import Inbound
from punchlist_apps.files.mirror.plan_file import PlanFile
from punchlist_apps.files.mirror.sync import ListSync
from punchlist_schemas.guid import canonical
from punchlist_schemas.rendezvous import make_directories

_PAGE = 1_000

Key = tuple[str, str, str]
"""Kind of a source, its path, and the name of a member."""


class Member(Protocol):
    """A synced part of a source: a list, one of Claude Code's folders, or a Markdown plan.

    Attributes:
        is_stale: Whether the list may have changed since the last sync.
        retry_s: Seconds until the next try; None if the sync is complete.
    """

    is_stale: bool
    retry_s: float | None

    async def sync(self) -> None: ...


class Context(NamedTuple):
    """Shared parameters for opening members. `members` are the open members of all sources."""

    client: AsyncClient
    data_dir: str
    report: Report
    members: Mapping[Key, Member]


@dataclass(frozen=True)
class Source:
    """An entry of the configuration. `place` is its directory or file."""

    kind: str
    place: str
    is_deep: ClassVar[bool] = True
    """Whether subfolders are watched too."""
    max_parallel: ClassVar[int] = 16
    """Maximum number of members that are synced at the same time."""

    def key(self, name: str) -> Key:
        return (self.kind, self.place, name)

    def covers(self, name: str) -> bool:
        """Return whether the source has, or may have, a member with this name."""
        return True

    def open(self, name: str, context: Context) -> Member:
        raise NotImplementedError

    def get_folder(self) -> str:
        """Return the folder to watch, which may be missing."""
        return self.place

    def list_present(self, members: Collection[Key]) -> list[str]:
        """Return the names of members that are open or on disk."""
        return [key[2] for key in members if key == self.key(key[2]) and self.covers(key[2])]

    async def list_all(self, client: AsyncClient) -> list[str]:
        """Return the names of all members, including those that only the daemon knows about."""
        return self.list_present(())

    def find_changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        """Return the name of the member that a changed path belongs to."""
        raise NotImplementedError

    def find_showing(self, conversation: str) -> str | None:
        """Return the name of the member that shows a list."""
        return None


@dataclass(frozen=True)
class Lists(Source):
    """Lists that are mirrored to files in a directory."""

    entry: Entry

    def covers(self, name: str) -> bool:
        return self.entry.holds(name)

    def open(self, name: str, context: Context) -> ListSync:
        def list_used() -> set[str]:
            keys = (key for key in context.members if key == self.key(key[2]))
            return {member.stem for key in keys if isinstance(member := context.members[key], ListSync)}

        return ListSync(context.client, self.entry, name, context.report, list_used)

    @property
    def _folder(self) -> str:
        form = FORMS[self.entry.format]
        return os.path.join(self.place, *form.folder("")) if form.is_single else self.place

    def get_folder(self) -> str:
        if os.path.isdir(self.place):
            make_directories(self._folder)
        return self._folder

    async def list_all(self, client: AsyncClient) -> list[str]:
        if self.entry.conversations is not None:
            return list(self.entry.conversations)
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = await client.conversations(limit=_PAGE, cursor=cursor)
            names += [info.conversation for info in page.conversations]
            if (cursor := page.next_cursor) is None:
                break
        form = FORMS[self.entry.format]
        stems = {stem for name in names for stem in form.stems(name)}
        others = [form.conversation(stem) for stem in await run_sync(self._list_stems) if stem not in stems]
        return [*names, *(name for name in others if name is not None)]

    def _list_stems(self) -> list[str]:
        if not FORMS[self.entry.format].is_single:
            return _list_folders(self._folder)
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]

    def find_changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        form = FORMS[self.entry.format]
        relative = os.path.relpath(path, self._folder)
        stem = relative.removesuffix(".json") if form.is_single else relative.split(os.sep)[0]
        for name in self.list_present(members.keys()):
            member = members[self.key(name)]
            chosen = member.stem if isinstance(member, ListSync) else ""
            if stem in ((chosen,) if chosen else form.stems(name)):
                return name
        conversation = form.conversation(stem)
        is_covered = conversation is not None and self.covers(conversation)
        return conversation if is_covered and path.endswith(".json") else None

    def find_showing(self, conversation: str) -> str | None:
        return conversation if self.covers(conversation) else None


class Inbox(Source):
    """A directory with Claude Code's task folders, which are imported."""

    # A session's own folder and the folder of a team that it creates share the session's import state.
    max_parallel: ClassVar[int] = 1

    def open(self, name: str, context: Context) -> Inbound:
        return Inbound(context.client, self.place, name, context.data_dir, context.report)

    def list_present(self, members: Collection[Key]) -> list[str]:
        return sorted(_list_folders(self.place))

    def find_changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        name = path.removeprefix(os.path.join(self.place, "")).split(os.sep)[0]
        folder = os.path.join(self.place, name)
        is_inside = path.startswith(os.path.join(self.place, "")) and os.path.isdir(folder)
        return name if is_inside and not os.path.islink(folder) else None


@dataclass(frozen=True)
class PlanSource(Source):
    """A Markdown file that is synced with a list."""

    conversation: str
    is_deep: ClassVar[bool] = False

    def covers(self, name: str) -> bool:
        return name == self.conversation

    def open(self, name: str, context: Context) -> PlanFile:
        return PlanFile(context.client, self.place, name, context.data_dir, context.report)

    def get_folder(self) -> str:
        return os.path.dirname(self.place)

    def list_present(self, members: Collection[Key]) -> list[str]:
        return [self.conversation]

    def find_changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        return self.conversation if path == self.place else None

    def find_showing(self, conversation: str) -> str | None:
        return self.conversation if canonical(self.conversation) == canonical(conversation) else None


def load_sources(config: Config) -> list[Source]:
    """Return the sources of a configuration.

    Raises:
        ConfigError: The configuration can't be read.
    """
    entries = config.read()
    return [
        *(Lists(entry.format, entry.directory, entry) for entry in entries.mirrors),
        *(Inbox("inbound", directory) for directory in entries.inbound),
        *(PlanSource("plan", plan.path, plan.conversation) for plan in entries.plans),
    ]


def _list_folders(directory: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
