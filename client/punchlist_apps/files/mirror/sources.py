"""The three kinds of entries in the configuration of mirrors, and what each keeps equal to lists."""

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
"""Kind and place of a source, and the name of one of its members."""


class Member(Protocol):
    """What a source keeps equal: a list, a folder of Claude Code's, or a Markdown plan.

    Attributes:
        is_stale: Whether the list may have changed since the last sync.
        retry_s: Seconds until the next try, if something could not be settled.
    """

    is_stale: bool
    retry_s: float | None

    async def sync(self) -> None: ...


class Context(NamedTuple):
    """What opening a member takes; `members` are the open ones of all sources."""

    client: AsyncClient
    data_dir: str
    report: Report
    members: Mapping[Key, Member]


@dataclass(frozen=True)
class Source:
    """One entry of the configuration. `place` is its directory or file."""

    kind: str
    place: str
    is_deep: ClassVar[bool] = True
    """Whether the folders below the watched ones are watched as well."""
    at_once: ClassVar[int] = 16
    """Upper limit for members that are synced at the same time."""

    def key(self, name: str) -> Key:
        return (self.kind, self.place, name)

    def holds(self, name: str) -> bool:
        """Whether there is, or may be, a member of this name."""
        return True

    def open(self, name: str, context: Context) -> Member:
        raise NotImplementedError

    def folder(self) -> str:
        """Return the folder to watch, which may be missing."""
        return self.place

    def present(self, members: Collection[Key]) -> list[str]:
        """Return the names of the members that are open or on the disk."""
        return [key[2] for key in members if key == self.key(key[2]) and self.holds(key[2])]

    async def all(self, client: AsyncClient) -> list[str]:
        """Return the names of all members, also of those that only the daemon knows."""
        return self.present(())

    def changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        """Return the name of the member whose file or folder a changed path is in."""
        raise NotImplementedError

    def showing(self, conversation: str) -> str | None:
        """Return the name of the member that shows a list."""
        return None


@dataclass(frozen=True)
class Lists(Source):
    """Lists that are kept equal to files below a directory."""

    entry: Entry

    def holds(self, name: str) -> bool:
        return self.entry.holds(name)

    def open(self, name: str, context: Context) -> ListSync:
        def taken() -> set[str]:
            mine = (key for key in context.members if key == self.key(key[2]))
            return {one.stem for key in mine if isinstance(one := context.members[key], ListSync)}

        return ListSync(context.client, self.entry, name, context.report, taken)

    @property
    def _folder(self) -> str:
        form = FORMS[self.entry.format]
        return os.path.join(self.place, *form.folder("")) if form.is_single else self.place

    def folder(self) -> str:
        if os.path.isdir(self.place):
            make_directories(self._folder)
        return self._folder

    async def all(self, client: AsyncClient) -> list[str]:
        if self.entry.conversations is not None:
            return list(self.entry.conversations)
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = await client.conversations(limit=_PAGE, cursor=cursor)
            names += [one.conversation for one in page.conversations]
            if (cursor := page.next_cursor) is None:
                break
        form = FORMS[self.entry.format]
        known = {stem for name in names for stem in form.stems(name)}
        found = [form.conversation(stem) for stem in await run_sync(self._stems) if stem not in known]
        return [*names, *(name for name in found if name is not None)]

    def _stems(self) -> list[str]:
        if not FORMS[self.entry.format].is_single:
            return _folders_in(self._folder)
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        return [name.removesuffix(".json") for name in names if name.endswith(".json")]

    def changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        form = FORMS[self.entry.format]
        relative = os.path.relpath(path, self._folder)
        stem = relative.removesuffix(".json") if form.is_single else relative.split(os.sep)[0]
        for name in self.present(members.keys()):
            mirrored = members[self.key(name)]
            chosen = mirrored.stem if isinstance(mirrored, ListSync) else ""
            if stem in ((chosen,) if chosen else form.stems(name)):
                return name
        found = form.conversation(stem)
        return found if found is not None and self.holds(found) and path.endswith(".json") else None

    def showing(self, conversation: str) -> str | None:
        return conversation if self.holds(conversation) else None


class Inbox(Source):
    """A directory of Claude Code's task folders, which are imported."""

    # Two folders of one session share what was imported: the session's, and that of the team that it founds.
    at_once: ClassVar[int] = 1

    def open(self, name: str, context: Context) -> Inbound:
        return Inbound(context.client, self.place, name, context.data_dir, context.report)

    def present(self, members: Collection[Key]) -> list[str]:
        return sorted(_folders_in(self.place))

    def changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        name = path.removeprefix(os.path.join(self.place, "")).split(os.sep)[0]
        folder = os.path.join(self.place, name)
        is_inside = path.startswith(os.path.join(self.place, "")) and os.path.isdir(folder)
        return name if is_inside and not os.path.islink(folder) else None


@dataclass(frozen=True)
class PlanSource(Source):
    """A Markdown file that is kept in step with a list."""

    conversation: str
    is_deep: ClassVar[bool] = False

    def holds(self, name: str) -> bool:
        return name == self.conversation

    def open(self, name: str, context: Context) -> PlanFile:
        return PlanFile(context.client, self.place, name, context.data_dir, context.report)

    def folder(self) -> str:
        return os.path.dirname(self.place)

    def present(self, members: Collection[Key]) -> list[str]:
        return [self.conversation]

    def changed(self, path: str, members: Mapping[Key, Member]) -> str | None:
        return self.conversation if path == self.place else None

    def showing(self, conversation: str) -> str | None:
        return self.conversation if canonical(self.conversation) == canonical(conversation) else None


def sources_of(config: Config) -> list[Source]:
    """Return the entries of a configuration.

    Raises:
        ConfigError: It can't be read.
    """
    found = config.read()
    return [
        *(Lists(entry.format, entry.directory, entry) for entry in found.mirrors),
        *(Inbox("inbound", directory) for directory in found.inbound),
        *(PlanSource("plan", plan.path, plan.conversation) for plan in found.plans),
    ]


def _folders_in(directory: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
