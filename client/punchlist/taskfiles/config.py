"""The configuration of mirrors: `mirror/config.json` in the data directory."""

import os
from typing import Literal

import msgspec

from punchlist.taskfiles.checklist import Checklist
from punchlist.taskfiles.claude import Claude
from punchlist.taskfiles.file_format import Form
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

FormName = Literal["checklist", "claude"]
FORMS: dict[FormName, Form] = {"checklist": Checklist(), "claude": Claude()}


class ConfigError(Exception):
    """The configuration file can't be read."""


class Entry(msgspec.Struct, frozen=True):
    """A mirrored directory.

    Attributes:
        conversations: The mirrored conversations; None for all.
    """

    directory: str
    format: FormName = "checklist"
    conversations: tuple[str, ...] | None = None

    def holds(self, conversation: str) -> bool:
        return self.conversations is None or conversation in self.conversations


class Plan(msgspec.Struct, frozen=True):
    """A Markdown file that is synchronized with one list."""

    path: str
    conversation: str


class Mirrors(msgspec.Struct, frozen=True):
    """The contents of the file.

    Attributes:
        inbound: Directories with Claude Code's tasks, which are imported and never written.
    """

    mirrors: tuple[Entry, ...] = ()
    inbound: tuple[str, ...] = ()
    plans: tuple[Plan, ...] = ()


class Config:
    """The configuration file. Every method raises `ConfigError` if the file is unreadable or invalid."""

    def __init__(self, data_dir: str) -> None:
        self.directory = os.path.join(data_dir, "mirror")
        self.path = os.path.join(self.directory, "config.json")

    def read(self) -> Mirrors:
        try:
            with open(self.path, "rb") as file:
                return msgspec.json.decode(file.read(), type=Mirrors)
        except FileNotFoundError:
            return Mirrors()
        except (OSError, msgspec.MsgspecError, UnicodeError) as error:
            raise ConfigError(f"{self.path}: {error}") from error

    def set_inbound(self, directory: str, *, enabled: bool) -> bool:
        """Start or stop importing a directory with Claude Code's tasks. Return whether this changed anything."""
        present = self.read()
        if (directory in present.inbound) == enabled:
            return False
        others = tuple(inbound for inbound in present.inbound if inbound != directory)
        self._write(msgspec.structs.replace(present, inbound=(*others, directory) if enabled else others))
        return True

    def set_plan(self, path: str, conversation: str | None) -> bool:
        """Synchronize a Markdown file with this list, or with no list (None). Return whether this changed anything."""
        present = self.read()
        others = tuple(plan for plan in present.plans if plan.path != path)
        plans = others if conversation is None else (*others, Plan(path, conversation))
        self._write(msgspec.structs.replace(present, plans=plans))
        return plans != present.plans

    def add(self, entry: Entry) -> tuple[Entry, ...]:
        """Add a directory. If it is already configured in this format, add conversations to its entry. Return all
        entries."""
        entries = list(self.read().mirrors)
        for index, existing in enumerate(entries):
            if (existing.directory, existing.format) == (entry.directory, entry.format):
                both = (existing.conversations, entry.conversations)
                names = None if None in both else tuple(dict.fromkeys([*(both[0] or ()), *(both[1] or ())]))
                entries[index] = msgspec.structs.replace(existing, conversations=names)
                break
        else:
            entries.append(entry)
        return self._save(entries)

    def remove(self, directory: str, conversation: str | None = None) -> bool:
        """Remove a directory, or one of its conversations, but keep the files. Return whether this changed anything."""
        entries = self.read().mirrors
        remaining: list[Entry] = []
        for entry in entries:
            if entry.directory != directory:
                remaining.append(entry)
            elif conversation is not None and entry.conversations is not None:
                names = tuple(name for name in entry.conversations if name != conversation)
                remaining += [msgspec.structs.replace(entry, conversations=names)] if names else []
        self._save(remaining)
        return tuple(remaining) != entries

    def _save(self, entries: list[Entry]) -> tuple[Entry, ...]:
        self._write(msgspec.structs.replace(self.read(), mirrors=tuple(entries)))
        return tuple(entries)

    def _write(self, file: Mirrors) -> None:
        make_directories(self.directory)
        atomic_write(self.path, msgspec.json.format(msgspec.json.encode(file)) + b"\n")
