"""What a draft changes in a list: which tasks are there already, what of them is brought up to date, which are new.

A task is known again by where it came from (`source` in its metadata), else by its title, the same parent first. Its
status, owner and result stay: what was done in the list since counts more than what the file says.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from punchlist.importers.draft import Draft, Item
from punchlist_schemas.things import FINISHED, TASK_LINKS

SOURCE = "source"
"""Key of a task's metadata that says where it came from: `beads:bd-12`."""

CALL_BYTES = 900_000
"""How large the tasks of one call are together, in bytes: the daemon takes a MiB."""

Task = dict[str, Any]
_SET = ("title", "description", "priority", "active_form", "due", "not_before", "estimate_ms", "gate")


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
        removed: The tasks of the list that go: only where it is made to be the file's.
        call: The tasks of the call to make.
        is_whole: Whether that call does all of it. If not, the rest follows from comparing once more.
    """

    added: list[Item] = []
    updates: list[Update] = []
    unchanged: int = 0
    removed: list[Task] = []
    call: list[dict[str, Any]] = []
    is_whole: bool = True


def compare(
    draft: Draft, present: Sequence[Task], *, now: int, take_status: bool = False, most: int = 10_000
) -> Comparison:
    """What has to be done for a list to hold a draft, by `task.add_many`.

    Args:
        draft: The tasks of the file.
        present: The list's tasks, in its order.
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
    """As `compare`, for the list to become the file's by `list.replace`: other tasks go if they are finished."""
    comparing = _Comparing(draft, present, now, take_status=take_status)
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
    def __init__(self, draft: Draft, present: Sequence[Task], now: int, *, take_status: bool) -> None:
        self._draft = draft
        self._present = {task["id"]: task for task in present}
        self._now = now
        self._take_status = take_status
        self.matched = _matched(draft, present)
        self.ref = {item.ref: f"n{index}" for index, item in enumerate(draft.items)}
        self.result = Comparison()

    def known(self, item: Item) -> Task | None:
        """The list's task that an item is."""
        return self._present.get(self.matched.get(item.ref, ""))

    def _name(self, ref: str) -> str:
        """What a call names a task of the draft by: its id in the list, or its temporary name."""
        return self.matched.get(ref) or self.ref[ref]

    def _asked(self, item: Item) -> dict[str, Any]:
        """The members of an item, with its relations."""
        asked = dict(item.members)
        if asked.get("not_before", 0) <= self._now:
            asked.pop("not_before", None)
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
            asked["notes"] = item.notes
        return asked

    def wire(self, item: Item) -> dict[str, Any] | None:
        """What a call says of an item; None for one that is there as it should be."""
        asked = self._asked(item)
        known = self.known(item)
        if known is None:
            self.result.added.append(item)
            return {**asked, "ref": self.ref[item.ref]}
        differences = self._differences(known, asked)
        if not differences:
            self.result.unchanged += 1
            return None
        self.result.updates.append(Update(known["id"], known["title"], differences))
        changed = {"title": asked["title"]} | {one.member: one.new for one in differences}
        return {**changed, "ref": self.ref[item.ref], "task": known["id"]}

    def _differences(self, known: Task, asked: dict[str, Any]) -> list[Difference]:
        found = [
            Difference(member, known.get(member), asked[member])
            for member in _SET
            if member in asked and asked[member] != known.get(member)
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
        for member in ("blocked_by", "notes"):
            old = _texts(known.get(member, ()))
            if more := [one for one in asked.get(member, ()) if not _is_there(one, old)]:
                found.append(Difference(member, [], more))
        status = asked.get("status", "pending")
        if self._take_status and status not in ("pending", known["status"]):
            found += [
                Difference(member, known.get(member, ""), asked[member])
                for member in ("status", "result_summary", "fail_reason")
                if member in asked
            ]
        return found


def _texts(values: Iterable[Any]) -> list[str]:
    return [str(cast("Task", one)["text"]) if isinstance(one, dict) else str(one) for one in values]


def _is_there(text: str, old: list[str]) -> bool:
    """A note that comes back from an export has its day and author before it."""
    return text in old or any(text.endswith(f": {one}") for one in old)


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
    _match_titles(draft, present, matched)
    return matched


def _match_titles(draft: Draft, present: Sequence[Task], matched: dict[str, str]) -> None:
    """Match what is left by title: first below the same parent, then anywhere; each task of the list once."""
    taken = set(matched.values())
    titles: defaultdict[str, list[Task]] = defaultdict(list)
    for task in present:
        if task["id"] not in taken:
            titles[task["title"]].append(task)
    for same_parent in (True, False):
        for item in draft.items:
            if item.ref in matched or item.title not in titles:
                continue
            parent = matched.get(item.parent) if item.parent else None
            waiting = titles[item.title]
            for index, task in enumerate(waiting):
                if same_parent and task.get("parent") != parent:
                    continue
                if not (item.key and _is_foreign(task, draft.source)):
                    matched[item.ref] = task["id"]
                    del waiting[index]
                    break


def _is_foreign(task: Task, source: str) -> bool:
    """Whether a task came from another place of the same form: it is another one of the same title."""
    return str(task.get("metadata", {}).get(SOURCE, "")).startswith(f"{source}:")
