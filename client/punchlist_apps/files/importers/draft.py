"""What a reader makes of a file: tasks that the daemon takes, and a count of everything that was passed over."""

from collections.abc import Callable, Container, Iterable
from typing import Any

import msgspec

from punchlist.base import dates
from punchlist.base.dates import When
from punchlist.base.metadata import visible_items
from punchlist.base.text import clip, one_line
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.things import MAX_INTEGER, PRIORITIES, STATUSES

MOST_TASKS = 100_000
"""How many tasks one import takes."""

_TITLE, _DESCRIPTION, _SHORT, _LONG, _NOTE = 500, 65_536, 500, 8_192, 8_192
_LABEL, _LABELS, _LINK, _LINKS, _NOTES, _NOTES_CHARACTERS = 64, 32, 2_048, 64, 200, 256 << 10
_METADATA_BYTES = 128 << 10
_NAME = 128
_SHORTER = {"active_form": _SHORT, "owner": _SHORT, "result_summary": _LONG, "fail_reason": _LONG}
_SHOWN_LINES = 5
_DRAWN = 12


class Note(msgspec.Struct, frozen=True):
    """A note of a file: its text, author and time in milliseconds since 1970; empty and 0 where they are not known."""

    text: str
    author: str = ""
    at: int = 0

    def wire(self) -> Any:
        told = {name: value for name, value in (("author", self.author), ("at", self.at)) if value}
        return {"text": self.text, **told} if told else self.text


class Item(msgspec.Struct):
    """A task of a file.

    Attributes:
        key: The id that the file gives it; empty if it gives none. Unique in a draft once it is finished.
        ref: What other tasks of the draft call it, whether or not it has a key.
        line: Where it stands, from 1; 0 if that is not known.
        members: Of `NewTask`, without relations.
        parent: The `ref` of the task it is a part of.
        blocked_by: The `ref`s of the tasks it waits for.
        relations: Links to other tasks: kind and `ref`.
        notes: What was written on it, the oldest first.
        read_as: What the file says of a date that another zone reads otherwise, by member.
    """

    key: str
    ref: str
    line: int
    members: dict[str, Any]
    parent: str = ""
    blocked_by: list[str] = []
    relations: list[tuple[str, str]] = []
    notes: list[Note] = []
    read_as: dict[str, Any] = {}

    @property
    def title(self) -> str:
        return str(self.members["title"])


class Remark(msgspec.Struct):
    """Something that was passed over or read in another way: how often, and in which lines (the first few)."""

    text: str
    count: int = 0
    lines: list[int] = []


class Draft:
    """The tasks of one import."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.items: list[Item] = []
        self.passed: dict[str, Remark] = {}
        """What is not taken over."""
        self.changed: dict[str, Remark] = {}
        """What is taken over in another form."""
        self._by_ref: dict[str, Item] = {}
        self._titles: dict[str, set[str]] = {}

    def add(  # noqa: PLR0913 - what tasks have in files
        self,
        title: Any,
        *,
        key: str = "",
        ref: str = "",
        line: int = 0,
        exact: bool = False,
        parent: str = "",
        blocked_by: Iterable[str] = (),
        relations: Iterable[tuple[str, str]] = (),
        state: dict[str, Any] | None = None,
        **members: Any,
    ) -> Item | None:
        """Add a task; its members are cut to what the daemon takes, which is noted.

        Args:
            exact: Whether the title's spaces are kept.
            state: The status and the labels that a word for a status means.

        Returns:
            None for a task without a title, and for one that is there already under its key.

        Raises:
            FormatError: Too many tasks.
        """
        if state:
            members |= {"status": state["status"], "labels": [*members.get("labels", ()), *state.get("labels", ())]}
        if len(self.items) >= MOST_TASKS:
            raise too_many(self.name, line)
        text = clean(title if isinstance(title, str) else str(title or ""))
        title = text if exact and len(text.splitlines()) == 1 else one_line(text)
        if not title.strip():
            self.pass_over("tasks without a title", line)
            return None
        found = ref or key or f"\0{len(self.items)}"
        if found in self._by_ref:
            if title in self._titles[found]:
                self.pass_over("repetitions of a task", line)
                return None
            self._titles[found].add(title)
            self.change("tasks with an id that another one has", line)
            key, found = (f"{one}~{len(self._titles[found])}" if one else "" for one in (key, found))
        self._titles.setdefault(found, {title})
        item = Item(key, found, line, {"title": title}, parent, list(blocked_by), list(relations))
        self._give(item, title, members)
        self.items.append(item)
        self._by_ref[found] = item
        return item

    def find(self, ref: str) -> Item | None:
        return self._by_ref.get(ref)

    def pass_over(self, text: str, line: int = 0, count: int = 1) -> None:
        _note(self.passed, text, line, count)

    def change(self, text: str, line: int = 0, count: int = 1) -> None:
        _note(self.changed, text, line, count)

    def pass_over_rest(self, record: dict[str, Any], known: Iterable[str], line: int = 0) -> None:
        """Note the members of a record that have something to say and that nobody reads."""
        for name in record.keys() - set(known):
            if record[name] not in (None, "", 0, False, [], {}):
                self.pass_over(f"`{clip(one_line(str(name)), 40)}`", line)

    def finish_headings(self, refs: Container[str]) -> None:
        """Complete those of the tasks whose status their file leaves open, if all tasks below are completed."""
        below: dict[str, list[Item]] = {}
        for item in self.items:
            below.setdefault(item.parent, []).append(item)
        for item in reversed(self.items):
            parts = below.get(item.ref, ())
            if item.ref in refs and parts and all(one.members.get("status") == "completed" for one in parts):
                item.members["status"] = "completed"

    def finish(self) -> "Draft":
        """Leave out relations to what is not there, and those that close a circle.

        Raises:
            FormatError: There are no tasks.
        """
        if not self.items:
            passed = ", ".join(f"{one.count} × {one.text}" for one in self.passed.values())
            raise FormatError(f"no tasks found ({self.source}){': skipped ' + passed if passed else ''}", self.name)
        for item in self.items:
            wanted = dict.fromkeys(one for one in item.blocked_by if one != item.ref)
            item.blocked_by = [one for one in wanted if one in self._by_ref]
            if len(item.blocked_by) < len(wanted):
                self.pass_over("dependencies on what is not in the file", item.line, len(wanted) - len(item.blocked_by))
            if item.parent and (item.parent == item.ref or item.parent not in self._by_ref):
                self.pass_over("parents that are not in the file", item.line)
                item.parent = ""
            there = [one for one in item.relations if one[1] in self._by_ref and one[1] != item.ref]
            if len(there) < len(item.relations):
                self.pass_over("links to what is not in the file", item.line, len(item.relations) - len(there))
            item.relations = there
        self._open_circles("a dependency", lambda item: item.blocked_by, lambda item, ref: item.blocked_by.remove(ref))
        self._open_circles("a parent", lambda item: [item.parent] if item.parent else [], _without_parent)
        return self

    def _open_circles(
        self, what: str, others: Callable[[Item], list[str]], leave_out: Callable[[Item, str], None]
    ) -> None:
        """Leave out each relation that closes a circle: a real plan of some size often has one."""
        done: set[str] = set()
        for root in self.items:
            path, on_path = [root.ref], {root.ref}
            waiting = [] if root.ref in done else [iter(tuple(others(root)))]
            while waiting:
                ref = next(waiting[-1], None)
                if ref is None:
                    waiting.pop()
                    done.add(left := path.pop())
                    on_path.discard(left)
                elif ref in on_path:
                    circle = [self._by_ref[one] for one in (*path[path.index(ref) :], ref)]
                    drawn = " → ".join(clip(one.key or one.title, 40) for one in circle[:_DRAWN])
                    self.pass_over(f"{what} that closes a circle: {drawn}", circle[-2].line)
                    leave_out(circle[-2], ref)
                elif ref not in done:
                    path.append(ref)
                    on_path.add(ref)
                    waiting.append(iter(tuple(others(self._by_ref[ref]))))

    def _give(self, item: Item, title: str, members: dict[str, Any]) -> None:
        to, line = item.members, item.line
        self._give_texts(item, title, members)
        if (status := members.get("status", "pending")) != "pending" and status in STATUSES:
            to["status"] = status
        if (priority := members.get("priority", "normal")) != "normal" and priority in PRIORITIES:
            to["priority"] = priority
        if isinstance(estimate := members.get("estimate_ms"), int) and 0 < estimate <= MAX_INTEGER:
            to["estimate_ms"] = estimate
        self._give_times(item, members)
        if labels := self._labels(members.get("labels", ()), line):
            to["labels"] = labels
        if links := self._links(members.get("links", ()), line):
            to["links"] = links
        asked: dict[str, Any] = members.get("metadata") or {}
        if gate := members.get("gate"):
            to["gate"] = gate
        # An exported list has the marks of its own last import, which say nothing about this one.
        metadata = {key: value for key, value in visible_items(asked) if value not in (None, "")}
        if len(msgspec.json.encode(metadata)) > _METADATA_BYTES:
            self.pass_over("metadata of more than 128 KiB", line)
        elif metadata:
            to["metadata"] = metadata

    def _give_times(self, item: Item, members: dict[str, Any]) -> None:
        for name in ("due", "not_before"):
            found = dates.parse_day(str(members.get(f"{name}_day") or "")) or members.get(name)
            found = When(found) if isinstance(found, int) else found
            if isinstance(found, When) and 0 < found.at <= MAX_INTEGER:
                item.members |= found.members(name)
                if type(found) is not When:
                    item.read_as[name] = found.at

    def _give_texts(self, item: Item, title: str, members: dict[str, Any]) -> None:
        to, line = item.members, item.line
        description = clean(members.get("description") or "")
        description = description if description.strip() else ""
        written = (one if isinstance(one, Note) else Note(str(one)) for one in members.get("notes", ()))
        notes = [msgspec.structs.replace(one, text=text) for one in written if (text := clean(one.text).strip())]
        if len(title) > _TITLE:
            to["title"] = clip(title, _TITLE)
            description = f"{title}\n\n{description}".rstrip()
            self.change(f"titles of more than {_TITLE} characters, which stand whole in the description", line)
        if len(description) > _DESCRIPTION:
            self.change(f"descriptions of more than {_DESCRIPTION:,} characters, which go on in notes", line)
            notes = [Note(description[_DESCRIPTION:]), *notes]
            description = description[:_DESCRIPTION]
        if description:
            to["description"] = description
        for name, most in _SHORTER.items():
            text = clean(members.get(name) or "").strip()
            if len(text) > most:
                self.change(f"`{name}` of more than {most:,} characters, which was cut", line)
            if text:
                to[name] = clip(text, most)
        item.notes = self._notes(notes, line)

    def _labels(self, labels: Iterable[Any], line: int) -> list[str]:
        found: dict[str, None] = {}
        for one in labels:
            text = one_line("".join(char if char.isprintable() else " " for char in clean(str(one)).replace(",", " ")))
            if len(text) > _LABEL:
                self.change(f"labels of more than {_LABEL} characters, which were cut", line)
                text = clip(text, _LABEL)
            if text:
                found[text] = None
        if len(found) > _LABELS:
            self.pass_over(f"labels beyond {_LABELS} of one task", line, len(found) - _LABELS)
        return list(found)[:_LABELS]

    def _links(self, links: Iterable[tuple[str, Any]], line: int) -> list[dict[str, str]]:
        found: dict[tuple[str, str], None] = {}
        for kind, to in links:
            text = clean(str(to or "")).strip()
            if text and (len(text) > _LINK or not text.isprintable()):
                self.pass_over(f"links of more than {_LINK:,} characters, or with unprintable ones", line)
            elif text:
                found[kind, text] = None
        if len(found) > _LINKS:
            self.pass_over(f"links beyond {_LINKS} of one task", line, len(found) - _LINKS)
        return [{"kind": kind, "to": to} for kind, to in list(found)[:_LINKS]]

    def _notes(self, notes: Iterable[Note], line: int) -> list[Note]:
        cut = [
            Note(part, clip(one_line(clean(note.author)), _NAME), note.at if note.at <= MAX_INTEGER else 0)
            for note in notes
            for at in range(0, len(note.text), _NOTE)
            if (part := note.text[at : at + _NOTE]).strip()
        ]
        kept: list[Note] = []
        room = _NOTES_CHARACTERS
        for note in cut:
            room -= len(note.text)
            if len(kept) < _NOTES and room >= 0:
                kept.append(note)
        if len(kept) < len(cut):
            self.pass_over(f"notes beyond {_NOTES}, or {_NOTES_CHARACTERS >> 10} Ki characters, of one task", line)
        return kept


def _without_parent(item: Item, _ref: str) -> None:
    item.parent = ""


def clean(text: str) -> str:
    """The text with halves of characters, which JSON can hold and UTF-8 can't, replaced."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def too_many(name: str, line: int) -> FormatError:
    return FormatError(
        f"more than {MOST_TASKS:,} tasks, which is the most that one import takes; split the file", name, line
    )


def sections(first: str, **others: Any) -> str:
    """A description of several parts, each later one under its name as a heading."""
    parts = [first.strip()] if first else []
    parts += [f"## {name.replace('_', ' ').capitalize()}\n\n{text.strip()}" for name, text in others.items() if text]
    return "\n\n".join(parts)


def _note(table: dict[str, Remark], text: str, line: int, count: int) -> None:
    remark = table.setdefault(text, Remark(text))
    remark.count += count
    if line and len(remark.lines) < _SHOWN_LINES and line not in remark.lines:
        remark.lines.append(line)
