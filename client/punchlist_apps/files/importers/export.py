"""punchlist's own export: `punch export --format json` and `punch list --json`."""

from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.exporters.json import EXPORT_VERSION
from punchlist_apps.files.importers.document import Document, expect_list, expect_object, parse_json, to_text
from punchlist_apps.files.importers.draft import Draft, Note
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.things import PRIORITIES, STATUSES

_MEMBERS = (
    *("description", "status", "priority", "active_form", "owner", "metadata", "result_summary", "fail_reason", "due"),
    *("not_before", "labels", "estimate_ms", "gate", "due_day", "not_before_day"),
)
_READ = frozenset((*_MEMBERS, "id", "title", "parent", "blocked_by", "links", "notes"))
_DERIVED = frozenset(
    "blocks open_blockers waits_for spent_ms"
    " attempts fence machine lease_expires_at left_at silent_at"
    " created_at updated_at status_changed_at version rank".split()
)


def read(documents: Sequence[Document]) -> Draft:
    """Parse a punchlist export."""
    document = documents[0]
    name = document.name
    value = expect_object(parse_json(document), "the file", name)
    version = value.get("format_version", EXPORT_VERSION)
    if version != EXPORT_VERSION:
        raise FormatError(f"format_version {version} is not known to this version of punchlist", name)
    draft = Draft("json", name)
    tasks = [
        expect_object(task, f"tasks[{i}]", name)
        for i, task in enumerate(expect_list(value.get("tasks"), "tasks", name))
    ]
    idents = {to_text(task.get("id")) for task in tasks}
    for index, task in enumerate(tasks):
        where = f"tasks[{index}]"
        for member, allowed in (("status", STATUSES), ("priority", PRIORITIES)):
            if task.get(member, allowed[0]) not in allowed:
                raise FormatError(f"{where}.{member}: expected one of {', '.join(allowed)}", name)
        if not isinstance(task.get("title"), str):
            raise FormatError(f"{where}.title: expected a string", name)
        blocked_by = [
            to_text(blocker) for blocker in expect_list(task.get("blocked_by", []), f"{where}.blocked_by", name)
        ]
        parent = to_text(task.get("parent"))
        if missing := [ref for ref in (*blocked_by, parent) if ref and ref not in idents]:
            raise FormatError(f"{where}: task {missing[0]} is not in this file", name)
        draft.skip_unread(task, _READ | _DERIVED)
        links = [
            expect_object(link, f"{where}.links", name)
            for link in expect_list(task.get("links", []), f"{where}.links", name)
        ]
        notes = expect_list(task.get("notes", []), f"{where}.notes", name)
        draft.add(
            task["title"],
            exact=True,
            ref=to_text(task.get("id")) or f"\0{index}",
            links=[(to_text(link.get("kind")), link.get("to")) for link in links],
            notes=[_parse_note(note) for note in notes],
            **{member: _check(task[member], member, where, name) for member in _MEMBERS if member in task},
            blocked_by=blocked_by,
            parent=parent,
        )
    return draft.finish()


_TYPES: dict[str, type] = {
    "metadata": dict,
    "gate": dict,
    "labels": list,
    "due": int,
    "not_before": int,
    "estimate_ms": int,
}


def _check(value: Any, member: str, where: str, name: str) -> Any:
    kind = _TYPES.get(member, str)
    if value is not None and not isinstance(value, kind):
        expected = {str: "a string", dict: "an object", list: "a list", int: "a number"}[kind]
        raise FormatError(f"{where}.{member}: expected {expected}", name)
    return value


def _parse_note(value: Any) -> Note:
    note: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"text": value}
    at = note.get("at")
    return Note(to_text(note.get("text")), to_text(note.get("actor")), at if type(at) is int and at > 0 else 0)
