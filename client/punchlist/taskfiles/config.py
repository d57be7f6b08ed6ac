"""Which directories mirror what: one small file in the data directory, `mirror/config.json`."""

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
    """The file can't be read."""


class Entry(msgspec.Struct, frozen=True):
    """One directory. `conversations` None: all there are."""

    directory: str
    format: FormName = "checklist"
    conversations: tuple[str, ...] | None = None

    def holds(self, conversation: str) -> bool:
        return self.conversations is None or conversation in self.conversations


class Plan(msgspec.Struct, frozen=True):
    """A Markdown file that is kept in step with one list."""

    path: str
    conversation: str


class Mirrors(msgspec.Struct, frozen=True):
    """What the file holds; `inbound` are directories of Claude Code's tasks, imported and never written to."""

    mirrors: tuple[Entry, ...] = ()
    inbound: tuple[str, ...] = ()
    plans: tuple[Plan, ...] = ()


class Config:
    """The file. Every method raises `ConfigError` if it is not what `punch mirror add` writes."""

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
        """Take a directory of Claude Code's tasks over from now on, or no longer; whether that is new."""
        present = self.read()
        if (directory in present.inbound) == enabled:
            return False
        kept = tuple(one for one in present.inbound if one != directory)
        self._write(msgspec.structs.replace(present, inbound=(*kept, directory) if enabled else kept))
        return True

    def set_plan(self, path: str, conversation: str | None) -> bool:
        """Keep a Markdown file in step with this list from now on, or (None) with none; whether that is new."""
        present = self.read()
        kept = tuple(one for one in present.plans if one.path != path)
        plans = kept if conversation is None else (*kept, Plan(path, conversation))
        self._write(msgspec.structs.replace(present, plans=plans))
        return plans != present.plans

    def add(self, entry: Entry) -> tuple[Entry, ...]:
        """Add a directory, or conversations to one that is there in the same format; returns all entries."""
        entries = list(self.read().mirrors)
        for index, known in enumerate(entries):
            if (known.directory, known.format) == (entry.directory, entry.format):
                both = (known.conversations, entry.conversations)
                names = None if None in both else tuple(dict.fromkeys([*(both[0] or ()), *(both[1] or ())]))
                entries[index] = msgspec.structs.replace(known, conversations=names)
                break
        else:
            entries.append(entry)
        return self._save(entries)

    def remove(self, directory: str, conversation: str | None = None) -> bool:
        """Forget a directory, or one conversation of it; whether it was there. Its files stay."""
        entries = self.read().mirrors
        kept: list[Entry] = []
        for known in entries:
            if known.directory != directory:
                kept.append(known)
            elif conversation is not None and known.conversations is not None:
                names = tuple(name for name in known.conversations if name != conversation)
                kept += [msgspec.structs.replace(known, conversations=names)] if names else []
        self._save(kept)
        return tuple(kept) != entries

    def _save(self, entries: list[Entry]) -> tuple[Entry, ...]:
        self._write(msgspec.structs.replace(self.read(), mirrors=tuple(entries)))
        return tuple(entries)

    def _write(self, file: Mirrors) -> None:
        make_directories(self.directory)
        atomic_write(self.path, msgspec.json.format(msgspec.json.encode(file)) + b"\n")
