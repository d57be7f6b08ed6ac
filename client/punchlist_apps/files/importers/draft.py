"""The result of parsing a file: importable tasks, and counts of everything skipped or converted."""

import json
from collections.abc import Callable, Container, Iterable
from typing import Any

import msgspec

from punchlist.base import dates
from punchlist.base.dates import When
from punchlist.base.metadata import visible_items
from punchlist.base.text import clip, one_line
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.things import MAX_INTEGER, PRIORITIES, STATUSES

MAX_TASKS = 100_000
"""Maximum number of tasks in one import."""

_MAX_TITLE, _MAX_DESCRIPTION, _MAX_SHORT, _MAX_LONG, _MAX_NOTE = 500, 65_536, 500, 8_192, 8_192
_MAX_LABEL, _MAX_LABELS, _MAX_LINK, _MAX_LINKS, _MAX_NOTES, _MAX_NOTES_CHARACTERS = 64, 32, 2_048, 64, 200, 256 << 10
_MAX_METADATA_BYTES = 128 << 10
_MAX_NAME = 128
_MAX_LENGTHS = {"active_form": _MAX_SHORT, "owner": _MAX_SHORT, "result_summary": _MAX_LONG, "fail_reason": _MAX_LONG}
_MAX_LINES = 5
_MAX_CYCLE = 12


class Note(msgspec.Struct, frozen=True):
    """A note: text, author, and time in ms since 1970. An unknown author is an empty string, an unknown time 0."""

    text: str
    author: str = ""
    at: int = 0

    def to_wire(self) -> Any:
        members = {name: value for name, value in (("author", self.author), ("at", self.at)) if value}
        return {"text": self.text, **members} if members else self.text


class Item(msgspec.Struct):
    """A task in a file.

    Attributes:
        key: Its id in the file, unique in a draft; empty if it has none.
        ref: Identifier by which other tasks of the draft refer to it. Every task has one.
        line: Its line number, counted from 1; 0 if unknown.
        members: Members of `NewTask`, except relations.
        parent: The `ref` of its parent.
        blocked_by: The `ref`s of its blockers.
        relations: Other relations, as pairs of kind and `ref`.
        notes: Its notes, oldest first.
        read_as: Member -> the time in the file, for times whose day depends on the time zone.
        whole_title: Its title with all marks, as plain Markdown; empty in other formats.
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
    whole_title: str = ""

    @property
    def title(self) -> str:
        return str(self.members["title"])


class Remark(msgspec.Struct):
    """Something that was skipped or converted, with the number of occurrences and the first lines."""

    text: str
    count: int = 0
    lines: list[int] = []


class Draft:
    """The tasks of one import."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.items: list[Item] = []
        self.skipped: dict[str, Remark] = {}
        """Parts of the file that aren't imported."""
        self.converted: dict[str, Remark] = {}
        """Parts of the file that are imported in a different form."""
        self._by_ref: dict[str, Item] = {}
        self._titles: dict[str, set[str]] = {}

    def add(  # noqa: PLR0913 - the members of tasks in files
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
        """Add a task. Members beyond the daemon's limits are truncated, with a remark.

        Args:
            exact: Whether to leave the title's spaces unchanged.
            state: The task's status and labels, mapped from its status in the file.

        Returns:
            The task; None if it has no title, or if the draft already has a task with this id and title.

        Raises:
            FormatError: There are too many tasks.
        """
        if state:
            members |= {"status": state["status"], "labels": [*members.get("labels", ()), *state.get("labels", ())]}
        if len(self.items) >= MAX_TASKS:
            raise build_too_many_error(self.name, line)
        text = replace_surrogates(title if isinstance(title, str) else str(title or ""))
        title = text if exact and len(text.splitlines()) == 1 else one_line(text)
        if not title.strip():
            self.skip("tasks without a title", line)
            return None
        ref = ref or key or f"\0{len(self.items)}"
        if ref in self._by_ref:
            if title in self._titles[ref]:
                self.skip("repetitions of a task", line)
                return None
            self._titles[ref].add(title)
            self.note_change("tasks with a duplicate id", line)
            key, ref = (f"{name}~{len(self._titles[ref])}" if name else "" for name in (key, ref))
        self._titles.setdefault(ref, {title})
        item = Item(key, ref, line, {"title": title}, parent, list(blocked_by), list(relations))
        self._set_members(item, title, members)
        self.items.append(item)
        self._by_ref[ref] = item
        return item

    def find(self, ref: str) -> Item | None:
        return self._by_ref.get(ref)

    def skip(self, text: str, line: int = 0, count: int = 1) -> None:
        _add_remark(self.skipped, text, line, count)

    def note_change(self, text: str, line: int = 0, count: int = 1) -> None:
        _add_remark(self.converted, text, line, count)

    def skip_unread(self, record: dict[str, Any], read_members: Iterable[str], line: int = 0) -> None:
        """Record a remark for each non-empty member of a record that the reader doesn't use."""
        for name in record.keys() - set(read_members):
            if record[name] not in (None, "", 0, False, [], {}):
                self.skip(f"`{clip(one_line(str(name)), 40)}`", line)

    def complete_headings(self, refs: Container[str]) -> None:
        """Complete each of the tasks `refs` whose subtasks are all completed. The file contains no status for them."""
        below: dict[str, list[Item]] = {}
        for item in self.items:
            below.setdefault(item.parent, []).append(item)
        for item in reversed(self.items):
            children = below.get(item.ref, ())
            if item.ref in refs and children and all(child.members.get("status") == "completed" for child in children):
                item.members["status"] = "completed"

    def finish(self) -> "Draft":
        """Remove relations to missing tasks and relations that close a cycle.

        Raises:
            FormatError: The file has no tasks.
        """
        if not self.items:
            skipped = ", ".join(f"{remark.count} × {remark.text}" for remark in self.skipped.values())
            raise FormatError(f"no tasks found ({self.source}){': skipped ' + skipped if skipped else ''}", self.name)
        for item in self.items:
            blockers = dict.fromkeys(blocker for blocker in item.blocked_by if blocker != item.ref)
            item.blocked_by = [blocker for blocker in blockers if blocker in self._by_ref]
            if missing := len(blockers) - len(item.blocked_by):
                self.skip("dependencies on tasks that are not in the file", item.line, missing)
            if item.parent and (item.parent == item.ref or item.parent not in self._by_ref):
                self.skip("parents that are not in the file", item.line)
                item.parent = ""
            relations = [(kind, ref) for kind, ref in item.relations if ref in self._by_ref and ref != item.ref]
            if missing := len(item.relations) - len(relations):
                self.skip("links to tasks that are not in the file", item.line, missing)
            item.relations = relations
        self._break_cycles("a dependency", lambda item: item.blocked_by, lambda item, ref: item.blocked_by.remove(ref))
        self._break_cycles("a parent", lambda item: [item.parent] if item.parent else [], _remove_parent)
        return self

    def _break_cycles(
        self, name: str, others: Callable[[Item], list[str]], remove: Callable[[Item, str], None]
    ) -> None:
        """Remove each relation that closes a cycle. Large plans often have cycles."""
        done: set[str] = set()
        for root in self.items:
            path, on_path = [root.ref], {root.ref}
            waiting = [] if root.ref in done else [iter(tuple(others(root)))]
            while waiting:
                ref = next(waiting[-1], None)
                if ref is None:
                    waiting.pop()
                    done.add(finished := path.pop())
                    on_path.discard(finished)
                elif ref in on_path:
                    cycle = [self._by_ref[member] for member in (*path[path.index(ref) :], ref)]
                    drawing = " → ".join(clip(item.key or item.title, 40) for item in cycle[:_MAX_CYCLE])
                    self.skip(f"{name} that closes a cycle: {drawing}", cycle[-2].line)
                    remove(cycle[-2], ref)
                elif ref not in done:
                    path.append(ref)
                    on_path.add(ref)
                    waiting.append(iter(tuple(others(self._by_ref[ref]))))

    def _set_members(self, item: Item, title: str, members: dict[str, Any]) -> None:
        to, line = item.members, item.line
        self._set_texts(item, title, members)
        if (status := members.get("status", "pending")) != "pending" and status in STATUSES:
            to["status"] = status
        if (priority := members.get("priority", "normal")) != "normal" and priority in PRIORITIES:
            to["priority"] = priority
        if isinstance(estimate := members.get("estimate_ms"), int) and 0 < estimate <= MAX_INTEGER:
            to["estimate_ms"] = estimate
        self._set_times(item, members)
        if labels := self._limit_labels(members.get("labels", ()), line):
            to["labels"] = labels
        if links := self._limit_links(members.get("links", ()), line):
            to["links"] = links
        own: dict[str, Any] = members.get("metadata") or {}
        if gate := members.get("gate"):
            to["gate"] = gate
        # Hidden items, such as the hashes that an earlier import left in an exported list, aren't imported.
        metadata = {key: value for key, value in visible_items(own) if value not in (None, "")}
        try:
            metadata = json.loads(replace_surrogates(json.dumps(metadata, ensure_ascii=False)))
            size = len(msgspec.json.encode(metadata))
        except (OverflowError, ValueError):  # JSON allows integers of any size
            self.skip("metadata with numbers that can't be stored", line)
            return
        if size > _MAX_METADATA_BYTES:
            self.skip("metadata of more than 128 KiB", line)
        elif metadata:
            to["metadata"] = metadata

    def _set_times(self, item: Item, members: dict[str, Any]) -> None:
        for name in ("due", "not_before"):
            time = dates.parse_day(str(members.get(f"{name}_day") or "")) or members.get(name)
            time = When(time) if isinstance(time, int) else time
            if isinstance(time, When) and 0 < time.at <= MAX_INTEGER:
                item.members |= time.members(name)
                if type(time) is not When:
                    item.read_as[name] = time.at

    def _set_texts(self, item: Item, title: str, members: dict[str, Any]) -> None:
        to, line = item.members, item.line
        description = replace_surrogates(members.get("description") or "")
        description = description if description.strip() else ""
        all_notes = (note if isinstance(note, Note) else Note(str(note)) for note in members.get("notes", ()))
        notes = [
            msgspec.structs.replace(note, text=text)
            for note in all_notes
            if (text := replace_surrogates(note.text).strip())
        ]
        if len(title) > _MAX_TITLE:
            to["title"] = clip(title, _MAX_TITLE)
            description = f"{title}\n\n{description}".rstrip()
            self.note_change(f"titles of more than {_MAX_TITLE} characters, put whole into the description", line)
        if len(description) > _MAX_DESCRIPTION:
            self.note_change(f"descriptions of more than {_MAX_DESCRIPTION:,} characters, continued in notes", line)
            notes = [Note(description[_MAX_DESCRIPTION:]), *notes]
            description = description[:_MAX_DESCRIPTION]
        if description:
            to["description"] = description
        for name, maximum in _MAX_LENGTHS.items():
            text = replace_surrogates(members.get(name) or "").strip()
            if len(text) > maximum:
                self.note_change(f"`{name}` of more than {maximum:,} characters, which was truncated", line)
            if text:
                to[name] = clip(text, maximum)
        item.notes = self._limit_notes(notes, line)

    def _limit_labels(self, labels: Iterable[Any], line: int) -> list[str]:
        texts: dict[str, None] = {}
        for label in labels:
            text = one_line(
                "".join(
                    char if char.isprintable() else " " for char in replace_surrogates(str(label)).replace(",", " ")
                )
            )
            if len(text) > _MAX_LABEL:
                self.note_change(f"labels of more than {_MAX_LABEL} characters, which were truncated", line)
                text = clip(text, _MAX_LABEL)
            if text:
                texts[text] = None
        if len(texts) > _MAX_LABELS:
            self.skip(f"labels beyond {_MAX_LABELS} of one task", line, len(texts) - _MAX_LABELS)
        return list(texts)[:_MAX_LABELS]

    def _limit_links(self, links: Iterable[tuple[str, Any]], line: int) -> list[dict[str, str]]:
        targets: dict[tuple[str, str], None] = {}
        for kind, to in links:
            text = replace_surrogates(str(to or "")).strip()
            if text and (len(text) > _MAX_LINK or not text.isprintable()):
                self.skip(f"links of more than {_MAX_LINK:,} characters, or with unprintable ones", line)
            elif text:
                targets[kind, text] = None
        if len(targets) > _MAX_LINKS:
            self.skip(f"links beyond {_MAX_LINKS} of one task", line, len(targets) - _MAX_LINKS)
        return [{"kind": kind, "to": to} for kind, to in list(targets)[:_MAX_LINKS]]

    def _limit_notes(self, notes: Iterable[Note], line: int) -> list[Note]:
        parts = [
            Note(
                part,
                clip(one_line(replace_surrogates(note.author)), _MAX_NAME),
                note.at if note.at <= MAX_INTEGER else 0,
            )
            for note in notes
            for at in range(0, len(note.text), _MAX_NOTE)
            if (part := note.text[at : at + _MAX_NOTE]).strip()
        ]
        result: list[Note] = []
        room = _MAX_NOTES_CHARACTERS
        for note in parts:
            room -= len(note.text)
            if len(result) < _MAX_NOTES and room >= 0:
                result.append(note)
        if len(result) < len(parts):
            self.skip(f"notes beyond {_MAX_NOTES}, or {_MAX_NOTES_CHARACTERS >> 10} Ki characters, of one task", line)
        return result


def _remove_parent(item: Item, _ref: str) -> None:
    item.parent = ""


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows and UTF-8 doesn't."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def build_too_many_error(name: str, line: int) -> FormatError:
    return FormatError(f"more than {MAX_TASKS:,} tasks, the limit of an import; split the file", name, line)


def join_sections(first: str, **others: Any) -> str:
    """Join the sections of a description. Each section but the first gets its name as a heading."""
    parts = [first.strip()] if first else []
    parts += [f"## {name.replace('_', ' ').capitalize()}\n\n{text.strip()}" for name, text in others.items() if text]
    return "\n\n".join(parts)


def _add_remark(table: dict[str, Remark], text: str, line: int, count: int) -> None:
    remark = table.setdefault(text, Remark(text))
    remark.count += count
    if line and len(remark.lines) < _MAX_LINES and line not in remark.lines:
        remark.lines.append(line)
