"""What a draft changes in a list: which tasks are there already, what of them is brought up to date, which are new.

A task is known again by where it came from (`source` in its metadata) or, without an id in its file, by the title that
it had there (`imported`); else by its title, the same parent first. Its status, owner and result stay: what was done in
the list since counts more than what the file says.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from punchlist.base.metadata import IMPORTED, SOURCE
from punchlist_apps.files.importers.draft import Draft, Item, Note
from punchlist_schemas.things import FINISHED, TASK_LINKS

CALL_BYTES = 900_000
"""How large the tasks of one call are together, in bytes: the daemon takes a MiB."""

Task = dict[str, Any]
_SET = ("title", "description", "priority", "active_form", "due", "not_before", "estimate_ms", "gate")
_MEMBERS = ("due_day", "not_before_day", *_SET)
"""Members that are compared; a day comes before its moment, which follows from it."""


_FILE = "file"
"""Key among a task's marks: the file that it came from, if it has no id there."""


class Difference(msgspec.Struct, frozen=True):
    """One member of a task that changes."""

    member: str
    old: Any
    new: Any


class Update(msgspec.Struct, frozen=True):
    """A task of the list that changes, and how."""

    task: str
    title: str
    differences: list[Difference]


class Comparison(msgspec.Struct):
    """A draft beside a list.

    Attributes:
        added: The tasks that are new.
        updates: Those of the list that change.
        unchanged: How many are there as they should be.
        kept: How many have a member that was changed here since it was imported, and that the file has otherwise.
        removed: The tasks of the list that go: only where it is made to be the file's.
        call: The tasks of the call to make.
        is_whole: Whether that call does all of it. If not, the rest follows from comparing once more.
    """

    added: list[Item] = []
    updates: list[Update] = []
    unchanged: int = 0
    kept: int = 0
    removed: list[Task] = []
    call: list[dict[str, Any]] = []
    is_whole: bool = True


def compare(
    draft: Draft, present: Sequence[Task], *, now: int, take_status: bool = False, most: int = 10_000
) -> Comparison:
    """What has to be done for a list to hold a draft, by `task.add_many`.

    Args:
        now: Milliseconds since 1970 UTC: a task is not put off until a time that is over.
        take_status: Whether a status of the file other than pending counts, too.
        most: How many tasks one call takes.
    """
    comparing = _Comparing(draft, present, now, take_status=take_status)
    wires = list(filter(None, map(comparing.wire, draft.items)))
    result = comparing.result
    result.call = _first_call(wires, most)
    result.is_whole = len(result.call) == len(wires) and all(a is b for a, b in zip(result.call, wires, strict=True))
    if not result.is_whole:
        _untie(result.call)
    return result


def _first_call(wires: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """As many as one call takes; notes of a task that is too large alone come later."""
    call: list[dict[str, Any]] = []
    room = CALL_BYTES
    for wire in wires:
        sized = wire
        size = len(msgspec.json.encode(sized))
        while size > CALL_BYTES and sized.get("notes"):
            sized = {**sized, "notes": sized["notes"][: len(sized["notes"]) // 2]}
            size = len(msgspec.json.encode(sized))
        room -= size + 1
        if call and (room < 0 or len(call) == most):
            break
        call.append(sized)
    return call


def replacement(draft: Draft, present: Sequence[Task], *, now: int, take_status: bool = False) -> Comparison:
    """As `compare`, for the list to become the file's by `list.replace`: other tasks go if they are finished.

    What was changed here since becomes the file's as well.
    """
    comparing = _Comparing(draft, present, now, take_status=take_status, file_wins=True)
    result = comparing.result
    for item in draft.items:
        known = comparing.known(item)
        wire = comparing.wire(item) or {"title": item.title, "ref": comparing.ref[item.ref]}
        if known is not None:
            wire["task"] = known["id"]
            wire.setdefault("status", known["status"])
        result.call.append(wire)
    staying = set(comparing.matched.values())
    result.removed = [task for task in present if task["id"] not in staying and task["status"] in FINISHED]
    return result


def _untie(wires: list[dict[str, Any]]) -> None:
    """Leave out what refers to tasks of a later call: comparing once more finds it missing."""
    here = {wire["ref"] for wire in wires}

    def is_later(name: str) -> bool:
        return name.startswith("n") and name not in here

    for wire in wires:
        if is_later(wire.get("parent", "")):
            del wire["parent"]
        wire["blocked_by"] = [one for one in wire.get("blocked_by", ()) if not is_later(one)]
        if "links" in wire:
            wire["links"] = [one for one in wire["links"] if one["kind"] not in TASK_LINKS or not is_later(one["to"])]


class _Comparing:
    def __init__(
        self, draft: Draft, present: Sequence[Task], now: int, *, take_status: bool, file_wins: bool = False
    ) -> None:
        self._draft = draft
        self._present = {task["id"]: task for task in present}
        self._now = now
        self._take_status = take_status
        self._file_wins = file_wins
        self.matched = _matched(draft, present)
        self.ref = {item.ref: f"n{index}" for index, item in enumerate(draft.items)}
        self.result = Comparison()

    def known(self, item: Item) -> Task | None:
        return self._present.get(self.matched.get(item.ref, ""))

    def _name(self, ref: str) -> str:
        return self.matched.get(ref) or self.ref[ref]

    def _asked(self, item: Item) -> dict[str, Any]:
        asked = dict(item.members)
        if asked.get("not_before", 0) <= self._now:
            asked.pop("not_before", None)
            asked.pop("not_before_day", None)
        if item.key:
            asked["metadata"] = {**asked.get("metadata", {}), SOURCE: f"{self._draft.source}:{item.key}"}
        if item.parent:
            asked["parent"] = self._name(item.parent)
        if item.blocked_by:
            asked["blocked_by"] = [self._name(one) for one in item.blocked_by]
        if item.relations:
            asked["links"] = [
                *asked.get("links", ()),
                *({"kind": kind, "to": self._name(one)} for kind, one in item.relations),
            ]
        if item.notes:
            asked["notes"] = [note.wire() for note in item.notes]
        return asked

    def wire(self, item: Item) -> dict[str, Any] | None:
        """What a call says of an item; None for one that is there as it should be."""
        asked = self._asked(item)
        known = self.known(item)
        if known is None:
            self.result.added.append(item)
            metadata = {**asked.get("metadata", {}), IMPORTED: self._marks(item, asked, {})}
            return {**asked, "metadata": metadata, "ref": self.ref[item.ref]}
        kept = self._kept(known, asked, item)
        self.result.kept += any(kept.values())
        asked = {name: value for name, value in asked.items() if name not in kept}
        differences = self._differences(known, asked, item)
        if not differences:
            self.result.unchanged += 1
            return None
        self.result.updates.append(Update(known["id"], known["title"], differences))
        changed = {"title": asked.get("title", known["title"])} | {one.member: one.new for one in differences}
        if "not_before_day" in changed:
            changed["not_before"] = asked["not_before"]
        marks = self._marks(item, asked, known.get("metadata", {}).get(IMPORTED))
        changed["metadata"] = {**changed.get("metadata", {}), IMPORTED: marks}
        return {**changed, "ref": self.ref[item.ref], "task": known["id"]}

    def _marks(self, item: Item, asked: dict[str, Any], old: Any) -> dict[str, str]:
        """Return the marks that a task has after the import. The file is in them if the title is all that it names."""
        marks = _marks(item, asked, cast("dict[str, str]", old) if isinstance(old, dict) else {})
        return marks if item.key else marks | {_FILE: _file(self._draft)}

    def _kept(self, known: Task, asked: dict[str, Any], item: Item) -> dict[str, bool]:
        """The members that stay though the file says otherwise, and whether they were changed here since the import.

        Those were not changed that the file has as it had them then: a time that is read otherwise in another zone.
        """
        marks = known.get("metadata", {}).get(IMPORTED)
        if not isinstance(marks, dict) or self._file_wins:
            return {}
        kept: dict[str, bool] = {}
        for member in _MEMBERS:
            if member not in asked or _is_same(known, asked, member):
                continue
            moment = member.removesuffix("_day")
            in_file, _, in_list = str(cast("dict[str, Any]", marks).get(moment, _mark(None))).partition("/")
            is_changed = _mark(_value(known, moment)) != (in_list or in_file)
            if is_changed or _mark(_said(item, asked, moment)) == in_file:
                kept |= dict.fromkeys((moment, f"{moment}_day"), is_changed)
        return kept

    def _differences(self, known: Task, asked: dict[str, Any], item: Item) -> list[Difference]:
        found = [
            Difference(member, _value(known, member.removesuffix("_day")), asked[member])
            for member in _MEMBERS
            if member in asked and not _is_same(known, asked, member)
        ]
        for member in ("labels", "links"):
            old = list(known.get(member, ()))
            if more := [one for one in asked.get(member, ()) if one not in old]:
                found.append(Difference(member, old, [*old, *more]))
        metadata = known.get("metadata", {})
        if news := {key: one for key, one in asked.get("metadata", {}).items() if metadata.get(key) != one}:
            found.append(Difference("metadata", {key: metadata[key] for key in news if key in metadata}, news))
        if "parent" in asked and asked["parent"] != known.get("parent"):
            found.append(Difference("parent", known.get("parent"), asked["parent"]))
        if more := [one for one in asked.get("blocked_by", ()) if one not in known.get("blocked_by", ())]:
            found.append(Difference("blocked_by", [], more))
        if more := [note.wire() for note in item.notes if not _is_there(note, known.get("notes", ()))]:
            found.append(Difference("notes", [], more))
        status = asked.get("status", "pending")
        if self._take_status and status not in ("pending", known["status"]):
            found += [
                Difference(member, known.get(member, ""), asked[member])
                for member in ("status", "result_summary", "fail_reason")
                if member in asked
            ]
        return found


def _is_same(known: Task, asked: dict[str, Any], member: str) -> bool:
    """Return whether a member needs no change; a moment follows from its day."""
    return asked[member] == known.get(member) or f"{member}_day" in asked


def _value(task: Task, member: str) -> Any:
    """Return a member's value, or its day if it has one."""
    return task.get(f"{member}_day") or task.get(member)


def _said(item: Item, asked: dict[str, Any], member: str) -> Any:
    """Return a member's value as the file states it, whatever the reader's time zone."""
    return item.read_as.get(member) or _value(asked, member)


def _mark(value: Any) -> str:
    """A short mark of a value, by which a change is seen; defaults have the mark of none."""
    text = msgspec.json.encode(None if value in ("", "normal", [], {}) else value)
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def _marks(item: Item, asked: dict[str, Any], old: dict[str, str]) -> dict[str, str]:
    """The marks of what the file says and, where that differs, of what the list then has; those of others stay."""
    marks = dict(old)
    for member in _SET:
        if member in asked or f"{member}_day" in asked:
            in_file, in_list = _mark(_said(item, asked, member)), _mark(_value(asked, member))
            marks[member] = in_file if in_file == in_list else f"{in_file}/{in_list}"
    return marks


def _days(at: int) -> set[str]:
    """The day of a time, in UTC and here; empty for none, and where the calendar does not go so far."""
    try:
        return {datetime.fromtimestamp(at / 1000, zone).date().isoformat() for zone in (UTC, None)} if at else {""}
    except (OverflowError, ValueError, OSError):
        return {""}


def _is_there(note: Note, known: Sequence[Any]) -> bool:
    """Return whether a task has a note already. Earlier versions put day and author in front of the text."""
    heads = {" ".join(filter(None, (day, note.author))) for day in _days(note.at)}
    spelled = {note.text} | {f"{head}: {note.text}" for head in heads if head}
    for one in known:
        there: Task = cast("Task", one) if isinstance(one, dict) else {"text": one}
        text = str(there.get("text"))
        if text != note.text and (text in spelled or note.text.endswith(f": {text}")):
            return True
        is_same_author = not note.author or note.author == there.get("actor", note.author)
        if text == note.text and is_same_author and (not note.at or note.at == there.get("at", note.at)):
            return True
    return False


def _matched(draft: Draft, present: Sequence[Task]) -> dict[str, str]:
    """The list's task of each item that it has, by the item's `ref`."""
    by_source: dict[str, str] = {}
    for task in present:
        source = task.get("metadata", {}).get(SOURCE)
        if isinstance(source, str):
            by_source.setdefault(source, task["id"])
    matched: dict[str, str] = {}
    for item in draft.items:
        if item.key and (task := by_source.get(f"{draft.source}:{item.key}")) is not None:
            matched[item.ref] = task
    file = _file(draft)
    imported = {task["id"]: title for task in present if (title := _title_in(file, task))}
    _match_titles(draft, present, matched, imported, {one.ref: _mark(one.title) for one in draft.items if not one.key})
    titles = {task["id"]: str(task["title"]) for task in present}
    _match_titles(draft, present, matched, titles, {one.ref: one.title for one in draft.items})
    return matched


def _match_titles(
    draft: Draft, present: Sequence[Task], matched: dict[str, str], titles: Mapping[str, str], asked: Mapping[str, str]
) -> None:
    """Match what is left by title: first below the same parent, then anywhere; each task of the list once."""
    taken = set(matched.values())
    there: defaultdict[str, list[Task]] = defaultdict(list)
    for task in present:
        if task["id"] not in taken and task["id"] in titles:
            there[titles[task["id"]]].append(task)
    for same_parent in (True, False):
        for item in draft.items:
            if item.ref in matched or asked.get(item.ref) not in there:
                continue
            parent = matched.get(item.parent) if item.parent else None
            waiting = there[asked[item.ref]]
            for index, task in enumerate(waiting):
                if same_parent and task.get("parent") != parent:
                    continue
                if not (item.key and _is_foreign(task, draft.source)):
                    matched[item.ref] = task["id"]
                    del waiting[index]
                    break


def _file(draft: Draft) -> str:
    """Return the mark of a draft's file; a file that has moved to another folder is the same one."""
    return _mark([draft.source, os.path.basename(draft.name)])


def _title_in(file: str, task: Task) -> str:
    """Return the mark of the title that a task had in a file without ids; empty if it did not come from there."""
    marks = task.get("metadata", {}).get(IMPORTED)
    if not isinstance(marks, dict):
        return ""
    found = cast("dict[str, str]", marks)
    return str(found.get("title", "")).partition("/")[0] if found.get(_FILE) == file else ""


def _is_foreign(task: Task, source: str) -> bool:
    """Whether a task came from another place of the same form: it is another one of the same title."""
    return str(task.get("metadata", {}).get(SOURCE, "")).startswith(f"{source}:")
