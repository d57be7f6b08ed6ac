"""Compares a draft with a list: matches its tasks to existing ones, and finds updates and new tasks.

A task is matched by its id in the file (`source` in its metadata). A task without an id is matched by the title that it
had in the file (`imported`), else by its current title; matches below the same parent are tried first. Status, owner
and result aren't changed, since changes to the list take precedence over the file.
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
from punchlist_apps.files.importers.formats import FORMATS
from punchlist_schemas.things import FINISHED, TASK_LINKS

CALL_BYTES = 900_000
"""Maximum size of the tasks in one call, in bytes. Must be below the daemon's limit of 1 MiB."""

Task = dict[str, Any]
_SET = ("title", "description", "priority", "active_form", "due", "not_before", "estimate_ms", "gate")
_MEMBERS = ("due_day", "not_before_day", *_SET)
"""Members that are compared. A day precedes the time that is derived from it."""

_FILE = "file"
"""Key of the file's hash among a task's hashes. Present only if the file gives the task no id."""


class Difference(msgspec.Struct, frozen=True):
    """The change to one member."""

    member: str
    old: Any
    new: Any


class Update(msgspec.Struct, frozen=True):
    """The changes to one task of the list."""

    task: str
    title: str
    differences: list[Difference]


class Comparison(msgspec.Struct):
    """The difference between a draft and a list.

    Attributes:
        added: New tasks.
        updates: The changes to existing tasks.
        unchanged: Number of tasks without changes.
        kept: Number of tasks with a value that isn't replaced by the file's, because it was changed in the list after
            the last import.
        removed: Tasks to remove; empty unless the list is replaced.
        call: The tasks for the next call.
        is_whole: Whether this call makes all changes. If not, compare again after the call.
    """

    added: list[Item] = []
    updates: list[Update] = []
    unchanged: int = 0
    kept: int = 0
    removed: list[Task] = []
    call: list[dict[str, Any]] = []
    is_whole: bool = True


def compare(
    draft: Draft, present: Sequence[Task], *, now: int, take_status: bool = False, max_tasks: int = 10_000
) -> Comparison:
    """Find the changes that import a draft into a list with `task.add_many`.

    Args:
        now: The time in milliseconds since 1970 UTC. Earlier deferral dates are dropped.
        take_status: Whether to import statuses other than pending into existing tasks.
        max_tasks: Maximum number of tasks in one call.
    """
    comparer = _Comparer(draft, present, now, take_status=take_status)
    tasks = list(filter(None, map(comparer.build_params, draft.items)))
    result = comparer.result
    result.call = _build_first_call(tasks, max_tasks)
    result.is_whole = len(result.call) == len(tasks) and all(a is b for a, b in zip(result.call, tasks, strict=True))
    if not result.is_whole:
        _remove_later_references(result.call)
    return result


def _build_first_call(tasks: list[dict[str, Any]], max_tasks: int) -> list[dict[str, Any]]:
    """Return the tasks for the first call. If a single task is too large, some of its notes are left to later calls."""
    call: list[dict[str, Any]] = []
    room = CALL_BYTES
    for task in tasks:
        sized = task
        size = len(msgspec.json.encode(sized))
        while size > CALL_BYTES and sized.get("notes"):
            sized = {**sized, "notes": sized["notes"][: len(sized["notes"]) // 2]}
            size = len(msgspec.json.encode(sized))
        room -= size + 1
        if call and (room < 0 or len(call) == max_tasks):
            break
        call.append(sized)
    return call


def plan_replacement(draft: Draft, present: Sequence[Task], *, now: int, take_status: bool = False) -> Comparison:
    """Find the changes that replace a list with a draft through `list.replace`. Other finished tasks are removed.

    Members that were changed in the list since the import are overwritten.
    """
    comparer = _Comparer(draft, present, now, take_status=take_status, file_wins=True)
    result = comparer.result
    for item in draft.items:
        task = comparer.find_match(item)
        params = comparer.build_params(item) or {"title": item.title, "ref": comparer.ref[item.ref]}
        if task is not None:
            params["task"] = task["id"]
            params.setdefault("status", task["status"])
        result.call.append(params)
    matched = set(comparer.matched.values())
    result.removed = [task for task in present if task["id"] not in matched and task["status"] in FINISHED]
    return result


def _remove_later_references(tasks: list[dict[str, Any]]) -> None:
    """Remove references to tasks that later calls add. The next comparison restores the references."""
    refs = {task["ref"] for task in tasks}

    def is_later(name: str) -> bool:
        return name.startswith("n") and name not in refs

    for task in tasks:
        if is_later(task.get("parent", "")):
            del task["parent"]
        task["blocked_by"] = [name for name in task.get("blocked_by", ()) if not is_later(name)]
        if "links" in task:
            task["links"] = [
                link for link in task["links"] if link["kind"] not in TASK_LINKS or not is_later(link["to"])
            ]


class _Comparer:
    def __init__(
        self, draft: Draft, present: Sequence[Task], now: int, *, take_status: bool, file_wins: bool = False
    ) -> None:
        self._draft = draft
        self._present = {task["id"]: task for task in present}
        self._now = now
        self._take_status = take_status
        self._file_wins = file_wins
        self.matched = _match(draft, present)
        self.ref = {item.ref: f"n{index}" for index, item in enumerate(draft.items)}
        self.result = Comparison()

    def find_match(self, item: Item) -> Task | None:
        return self._present.get(self.matched.get(item.ref, ""))

    def _get_name(self, ref: str) -> str:
        return self.matched.get(ref) or self.ref[ref]

    def _build_target(self, item: Item) -> dict[str, Any]:
        target = dict(item.members)
        if target.get("not_before", 0) <= self._now:
            target.pop("not_before", None)
            target.pop("not_before_day", None)
        if item.key:
            target["metadata"] = {**target.get("metadata", {}), SOURCE: f"{self._draft.source}:{item.key}"}
        if item.parent:
            target["parent"] = self._get_name(item.parent)
        if item.blocked_by:
            target["blocked_by"] = [self._get_name(ref) for ref in item.blocked_by]
        if item.relations:
            target["links"] = [
                *target.get("links", ()),
                *({"kind": kind, "to": self._get_name(ref)} for kind, ref in item.relations),
            ]
        if item.notes:
            target["notes"] = [note.to_wire() for note in item.notes]
        return target

    def build_params(self, item: Item) -> dict[str, Any] | None:
        """Return the members that a call sets for an item; None if its task needs no change."""
        target = self._build_target(item)
        task = self.find_match(item)
        if task is None:
            self.result.added.append(item)
            metadata = {**target.get("metadata", {}), IMPORTED: self._update_marks(item, target, {})}
            return {**target, "metadata": metadata, "ref": self.ref[item.ref]}
        kept = self._find_kept(task, target, item)
        self.result.kept += any(kept.values())
        target = {name: value for name, value in target.items() if name not in kept}
        differences = self._find_differences(task, target, item)
        if not differences:
            self.result.unchanged += 1
            return None
        self.result.updates.append(Update(task["id"], task["title"], differences))
        changed = {"title": target.get("title", task["title"])} | {
            difference.member: difference.new for difference in differences
        }
        if "not_before_day" in changed:
            changed["not_before"] = target["not_before"]
        marks = self._update_marks(item, target, task.get("metadata", {}).get(IMPORTED))
        changed["metadata"] = {**changed.get("metadata", {}), IMPORTED: marks}
        return {**changed, "ref": self.ref[item.ref], "task": task["id"]}

    def _update_marks(self, item: Item, target: dict[str, Any], old: Any) -> dict[str, str]:
        """Return the hashes that a task has after the import, including the file's hash if the item has no id."""
        marks = _build_marks(item, target, cast("dict[str, str]", old) if isinstance(old, dict) else {})
        return marks if item.key else marks | {_FILE: _compute_file_mark(self._draft)}

    def _find_kept(self, task: Task, target: dict[str, Any], item: Item) -> dict[str, bool]:
        """Return the members that keep their value although the file has another, each with whether it was changed in
        the list.

        A member also keeps its value if the file is unchanged and the values differ only because of the local time
        zone.
        """
        marks = task.get("metadata", {}).get(IMPORTED)
        if not isinstance(marks, dict) or self._file_wins:
            return {}
        kept: dict[str, bool] = {}
        for member in _MEMBERS:
            if member not in target or _is_same(task, target, member):
                continue
            base = member.removesuffix("_day")
            in_file, _, in_list = str(cast("dict[str, Any]", marks).get(base, _compute_mark(None))).partition("/")
            is_changed = _compute_mark(_get_value(task, base)) != (in_list or in_file)
            if is_changed or _compute_mark(_get_file_value(item, target, base)) == in_file:
                kept |= dict.fromkeys((base, f"{base}_day"), is_changed)
        return kept

    def _find_differences(self, task: Task, target: dict[str, Any], item: Item) -> list[Difference]:
        differences = [
            Difference(member, _get_value(task, member.removesuffix("_day")), target[member])
            for member in _MEMBERS
            if member in target and not _is_same(task, target, member)
        ]
        for member in ("labels", "links"):
            old = list(task.get(member, ()))
            if new := [item for item in target.get(member, ()) if item not in old]:
                differences.append(Difference(member, old, [*old, *new]))
        metadata = task.get("metadata", {})
        if new := {key: value for key, value in target.get("metadata", {}).items() if metadata.get(key) != value}:
            differences.append(Difference("metadata", {key: metadata[key] for key in new if key in metadata}, new))
        if "parent" in target and target["parent"] != task.get("parent"):
            differences.append(Difference("parent", task.get("parent"), target["parent"]))
        if new := [ref for ref in target.get("blocked_by", ()) if ref not in task.get("blocked_by", ())]:
            differences.append(Difference("blocked_by", [], new))
        if new := [note.to_wire() for note in item.notes if not _has_note(note, task.get("notes", ()))]:
            differences.append(Difference("notes", [], new))
        status = target.get("status", "pending")
        if self._take_status and status not in ("pending", task["status"]):
            differences += [
                Difference(member, task.get(member, ""), target[member])
                for member in ("status", "result_summary", "fail_reason")
                if member in target
            ]
        return differences


def _is_same(task: Task, target: dict[str, Any], member: str) -> bool:
    """Return whether a member needs no change. If the target has a day, the time is derived from it and isn't
    compared."""
    return target[member] == task.get(member) or f"{member}_day" in target


def _get_value(task: Task, member: str) -> Any:
    """Return a member's value, or the day instead of the time if the task has one."""
    return task.get(f"{member}_day") or task.get(member)


def _get_file_value(item: Item, target: dict[str, Any], member: str) -> Any:
    """Return a member's value in the file, independent of the local time zone."""
    return item.read_as.get(member) or _get_value(target, member)


def _compute_mark(value: Any) -> str:
    """Return a short hash of a value, for detecting changes. Default values have the hash of None."""
    text = msgspec.json.encode(None if value in ("", "normal", [], {}) else value)
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def _build_marks(item: Item, target: dict[str, Any], old: dict[str, str]) -> dict[str, str]:
    """Return the hashes of the file's values and, where they differ, of the list's values. Other hashes are kept."""
    marks = dict(old)
    for member in _SET:
        if member in target or f"{member}_day" in target:
            in_file, in_list = (
                _compute_mark(_get_file_value(item, target, member)),
                _compute_mark(_get_value(target, member)),
            )
            marks[member] = in_file if in_file == in_list else f"{in_file}/{in_list}"
    return marks


def _get_days(at: int) -> set[str]:
    """Return a time's days in UTC and in the local zone; an empty string for 0 or times beyond the calendar."""
    try:
        return {datetime.fromtimestamp(at / 1000, zone).date().isoformat() for zone in (UTC, None)} if at else {""}
    except (OverflowError, ValueError, OSError):
        return {""}


def _has_note(note: Note, notes: Sequence[Any]) -> bool:
    """Return whether a task has the note. Earlier versions wrote the day and the author before the text."""
    heads = {" ".join(filter(None, (day, note.author))) for day in _get_days(note.at)}
    old_texts = {note.text} | {f"{head}: {note.text}" for head in heads if head}
    for value in notes:
        present: Task = cast("Task", value) if isinstance(value, dict) else {"text": value}
        text = str(present.get("text"))
        if text != note.text and (text in old_texts or note.text.endswith(f": {text}")):
            return True
        is_same_author = not note.author or note.author == present.get("actor", note.author)
        if text == note.text and is_same_author and (not note.at or note.at == present.get("at", note.at)):
            return True
    return False


def _match(draft: Draft, present: Sequence[Task]) -> dict[str, str]:
    """Match items to tasks of the list. Return the ids of the tasks by the items' `ref`."""
    by_source: dict[str, str] = {}
    for task in present:
        source = task.get("metadata", {}).get(SOURCE)
        if isinstance(source, str):
            by_source.setdefault(source, task["id"])
    matched: dict[str, str] = {}
    for item in draft.items:
        if item.key and (task := by_source.get(f"{draft.source}:{item.key}")) is not None:
            matched[item.ref] = task
    file = _compute_file_mark(draft)
    imported = {task["id"]: title for task in present if (title := _get_title_mark(file, task))}
    titles = {task["id"]: str(task["title"]) for task in present}
    # Without a form, or before versions with forms, the title contained the form's marks.
    spellings = {item.ref: item.title for item in draft.items}, {item.ref: item.whole_title for item in draft.items}
    without_key = {item.ref for item in draft.items if not item.key}
    for spelling in spellings:
        marks = {ref: _compute_mark(title) for ref, title in spelling.items() if title and ref in without_key}
        _match_titles(draft, present, matched, imported, marks)
    for spelling in spellings:
        _match_titles(draft, present, matched, titles, spelling)
    return matched


def _match_titles(
    draft: Draft,
    present: Sequence[Task],
    matched: dict[str, str],
    titles: Mapping[str, str],
    item_titles: Mapping[str, str],
) -> None:
    """Match the remaining items by title, trying tasks below the same parent first. Each task is matched once."""
    used = set(matched.values())
    by_title: defaultdict[str, list[Task]] = defaultdict(list)
    for task in present:
        if task["id"] not in used and task["id"] in titles:
            by_title[titles[task["id"]]].append(task)
    for is_same_parent in (True, False):
        for item in draft.items:
            if item.ref in matched or item_titles.get(item.ref) not in by_title:
                continue
            parent = matched.get(item.parent) if item.parent else None
            candidates = by_title[item_titles[item.ref]]
            for index, task in enumerate(candidates):
                if is_same_parent and task.get("parent") != parent:
                    continue
                if not (item.key and _is_foreign(task, draft.source)):
                    matched[item.ref] = task["id"]
                    del candidates[index]
                    break


def _compute_file_mark(draft: Draft) -> str:
    """Return the hash of a draft's file name, which doesn't depend on its folder or on the form of a plan."""
    is_plan = draft.source in FORMATS and FORMATS[draft.source].module == "markdown"
    return _compute_mark(["markdown" if is_plan else draft.source, os.path.basename(draft.name)])


def _get_title_mark(file: str, task: Task) -> str:
    """Return the hash of the title that a task had in a file without ids; empty if the task isn't from this file."""
    marks = task.get("metadata", {}).get(IMPORTED)
    if not isinstance(marks, dict):
        return ""
    texts = cast("dict[str, str]", marks)
    return str(texts.get("title", "")).partition("/")[0] if texts.get(_FILE) == file else ""


def _is_foreign(task: Task, source: str) -> bool:
    """Return whether a task has a different id of the same format, and so is a different task with the same title."""
    return str(task.get("metadata", {}).get(SOURCE, "")).startswith(f"{source}:")
