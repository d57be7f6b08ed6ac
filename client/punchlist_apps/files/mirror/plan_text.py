"""Compares a Markdown plan with a list and rewrites its lines. Pure functions.

The file determines prose, headings and order. A line changes only if the task's title or status changed in the list.
"""

import re
from collections import defaultdict, deque
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from punchlist.base.dates import When
from punchlist.base.text import clip, one_line
from punchlist.taskfiles.file_format import Fields
from punchlist_apps.files.importers import logseq
from punchlist_apps.files.importers.markdown import remove_extras
from punchlist_apps.files.importers.markdown_forms import (
    MARKDOWN,
    MarkdownForm,
    format_status,
    get_members,
    get_status,
    read_outline,
    write_status,
)
from punchlist_apps.files.importers.outline import BOX_LINE, Entry, Outline
from punchlist_apps.files.mirror.merge import Delete, Edit, FieldsById, reconcile

_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]")
_MAX_TITLE = 500
_MAX_LABEL, _MAX_LABELS = 64, 32


class SyncedEntry(msgspec.Struct):
    """An entry of the file as of the last sync.

    Attributes:
        task: The list's task; empty for a line without a task.
        title: The title in the file.
        box: The character in the checkbox; None if it has no checkbox.
        description: The text below the entry.
        list_title: The task's title in the list.
        list_status: The task's status in the list.
        status: The status in the file.
        marks: Other members that the file's marks set, as on the wire; None in states of earlier versions.
        blockers: The tasks that it waits for according to the file.
    """

    task: str
    title: str
    box: str | None
    description: str
    list_title: str = ""
    list_status: str = ""
    status: str = ""
    marks: dict[str, Any] | None = None
    blockers: list[str] = []


class Proposal(msgspec.Struct):
    """The changes that a file proposes.

    Attributes:
        tasks: The task of each entry, which may be a deleted one; empty if the entry is new or has no task.
        new: The indexes of entries that are new tasks.
        edits: Members to set, as task, member and value.
        deleted: Tasks whose lines were removed.
        conflicts: A sentence for each member that both sides changed. The list's values are kept.
    """

    tasks: list[str] = []
    new: list[int] = []
    edits: list[tuple[str, str, str]] = []
    deleted: list[str] = []
    conflicts: list[str] = []


def parse_entries(text: str, form: MarkdownForm = MARKDOWN) -> Outline:
    """Return the entries of a plan, all of which have checkboxes or markers."""
    return read_outline(text, form, boxes_only=True)


def is_same_reading(text: str, form: MarkdownForm, other: MarkdownForm) -> bool:
    """Return whether a text has the same tasks with the same statuses in both forms."""

    def read(chosen: MarkdownForm) -> list[tuple[str, str, int]]:
        entries = parse_entries(text, chosen).entries
        return [(get_title(entry), get_status(entry, chosen), entry.above) for entry in entries]

    return form is other or read(form) == read(other)


def get_title(entry: Entry | SyncedEntry) -> str:
    return clip(one_line(remove_extras(entry.title)), _MAX_TITLE)


def get_marks(entry: Entry, form: MarkdownForm) -> dict[str, Any]:
    """Return the members that an entry's marks set, as on the wire."""
    members = get_members(entry, form)
    labels = [label for label in members.get("labels", ()) if 0 < len(label) <= _MAX_LABEL][:_MAX_LABELS]
    # A checkbox's own priority is left out: completing an important task keeps its priority.
    marks = {name: entry.members[name] for name in ("priority", "metadata") if name in entry.members}
    for name in ("due", "not_before"):
        if isinstance(when := members.get(name), When):
            marks |= when.members(name)
    return marks | ({"labels": list(dict.fromkeys(labels))} if labels else {})


def build_mark_edit(
    old: SyncedEntry, marks: Mapping[str, Any], blockers: Sequence[str], present: Container[str]
) -> dict[str, Any]:
    """Return the params of `task.edit` for marks that changed in the file; empty if none did.

    Args:
        present: The tasks in the list. Dependencies on other tasks are already removed.
    """
    if old.marks is None:
        return {}
    edit: dict[str, Any] = {}
    for name, names in (("priority", ()), ("due", ("due_day",)), ("not_before", ("not_before_day",))):
        if any(old.marks.get(part) != marks.get(part) for part in (name, *names)):
            edit |= {part: marks[part] for part in (name, *names) if part in marks} or {name: None}
    before, after = old.marks.get("metadata", {}), marks.get("metadata", {})
    if before != after:
        edit["metadata"] = {key: after.get(key) for key in {**before, **after}}
    for name, was, now in (
        ("labels", old.marks.get("labels", ()), marks.get("labels", ())),
        ("blocked_by", [blocker for blocker in old.blockers if blocker in present], blockers),
    ):
        edit |= {f"add_{name}": added} if (added := [one for one in now if one not in was]) else {}
        edit |= {f"remove_{name}": removed} if (removed := [one for one in was if one not in now]) else {}
    return edit


def build_proposal(
    synced: Sequence[SyncedEntry], entries: Sequence[Entry], present: FieldsById, form: MarkdownForm = MARKDOWN
) -> Proposal:
    """Return the file's changes since the last sync."""
    proposal = Proposal()
    base: dict[str, Fields] = {}
    theirs: dict[str, Fields] = {}
    matched = _align(synced, entries)
    for index, entry in enumerate(entries):
        old = synced[matched[index]] if matched[index] >= 0 else None
        proposal.tasks.append(old.task if old is not None else "")
        if old is not None and old.task in present:
            base[old.task], theirs[old.task] = _build_sides(old, entry, present[old.task], form)
        elif old is None and get_title(entry):
            proposal.new.append(index)
    for index in sorted(set(range(len(synced))) - set(matched)):
        old = synced[index]
        if old.task in present:
            base[old.task] = {**present[old.task], "title": old.list_title, "status": old.list_status}
    changes = reconcile(base, theirs, present, may_delete=True)
    for change in changes.changes:
        if isinstance(change, Edit):
            proposal.edits += [(change.task, member, value) for member, value in change.fields.items()]
        elif isinstance(change, Delete):
            proposal.deleted.append(change.task)
    for task, member, proposed, current, _ in changes.conflicts:
        differs = f"#{task} {member}: the file has {clip(str(proposed), 80)!r}, the list {clip(str(current), 80)!r}"
        removed = f"#{task}: its line was removed from the file, but the list has changed the task"
        proposal.conflicts.append(removed if member == "task" else differs)
    return proposal


def _build_sides(old: SyncedEntry, entry: Entry, current: Fields, form: MarkdownForm) -> tuple[Fields, Fields]:
    """Return a task's members as of the last sync, and the same members with the file's changes since then."""
    # If the list's description never came from the file, the two have no common base.
    description = current["description"] if current["description"] in ("", old.description) else "\0"
    base = {**current, "title": old.list_title, "status": old.list_status, "description": description}
    return base, {**base, **find_changes(old, entry, form)}


def find_changes(old: SyncedEntry, entry: Entry, form: MarkdownForm) -> dict[str, str]:
    """Return the title, status and description if they changed in the file since the last sync."""
    changed: dict[str, str] = {}
    if get_title(entry) not in ("", get_title(old)):
        changed["title"] = get_title(entry)
    status = get_status(entry, form)
    # States of earlier versions contain only the checkbox.
    if entry.kind == "task" and status != (old.status or get_status(Entry("task", 0, 0, 1, "", old.box), form)):
        changed["status"] = status
    if entry.description != old.description:
        changed["description"] = entry.description
    return changed


def _align(synced: Sequence[SyncedEntry], entries: Sequence[Entry]) -> list[int]:
    """Match each entry to a synced entry, by title in order, else by its id or the entry above; -1 for no match."""
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for index, old in enumerate(synced):
        waiting[old.title].append(index)
    matched = [waiting[entry.title].popleft() if waiting[entry.title] else -1 for entry in entries]
    used = set(matched)
    leads = {entry.lead: index for index, entry in enumerate(entries) if entry.lead and matched[index] < 0}
    lengths = {len(lead) for lead in leads}
    for number, old in enumerate(synced):
        lead = next((old.title[:end] for end in lengths if old.title[:end] in leads), "")
        if lead and number not in used and (old.box is None) == (entries[leads[lead]].box is None):
            matched[leads.pop(lead)] = number
            used.add(number)
    for index, entry in enumerate(entries):
        before = matched[index - 1] if index else -1
        candidate = before + 1
        if matched[index] < 0 and candidate < len(synced) and candidate not in used:
            is_same_kind = (synced[candidate].box is None) == (entry.box is None)
            if is_same_kind and (not index or before >= 0):
                matched[index] = candidate
                used.add(candidate)
    return matched


class NewLine(NamedTuple):
    """A line of a rewritten text: the index of its line in the old text, or -1, and its task, if it has one."""

    text: str
    source: int
    task: str


def rewrite_text(
    text: str,
    tasks: Sequence[str],
    synced: Mapping[str, SyncedEntry],
    present: FieldsById,
    form: MarkdownForm = MARKDOWN,
) -> list[NewLine]:
    """Return the lines of the text with the list's changes.

    Args:
        tasks: The task of each entry; empty if the entry has no task.
        synced: The entries as of the last sync, by task.
    """
    plan = parse_entries(text, form)
    lines = text.split("\n")
    dropped: set[int] = set()
    for entry, task in zip(plan.entries, tasks, strict=True):
        current, old = present.get(task), synced.get(task)
        if current is not None and old is not None:
            _rewrite(lines, entry, old, current, dropped, form)
        elif task and current is None and entry.kind == "task" and get_status(entry, form) != "completed":
            # Lines of deleted tasks are removed. Lines of completed tasks are kept as history.
            dropped |= set(range(entry.line, entry.line + entry.titled))
    inserted = _insert(lines, plan, tasks, present, form)
    owners = {entry.line: task for entry, task in zip(plan.entries, tasks, strict=True)}
    new_lines: list[NewLine] = []
    for index, line in enumerate(lines):
        new_lines += [] if index in dropped else [NewLine(line, index, owners.get(index, ""))]
        new_lines += [NewLine(new_line, -1, task) for new_line, task in inserted.get(index, ())]
    return new_lines


def _rewrite(  # noqa: PLR0913
    lines: list[str], entry: Entry, old: SyncedEntry, current: Fields, dropped: set[int], form: MarkdownForm
) -> None:
    line = lines[entry.line]
    title = str(current["title"])
    if title != old.list_title and get_title(entry) != title:
        first = remove_extras(entry.words or entry.title).split("\n", 1)[0]
        at = _find_words(line, first[:20] if entry.titled > 1 else first, entry.lead, form)
        if at >= 0 and first:
            rest = line[at + len(first) :]
            if entry.titled > 1:  # The title is wrapped.
                dropped |= set(range(entry.line + 1, entry.line + entry.titled))
                rest = ""
            line = f"{line[:at]}{one_line(title.removeprefix(entry.lead))}{rest}"
    if current["status"] != old.list_status and get_status(entry, form) != current["status"]:
        line = write_status(line, str(current["status"]), form)
    lines[entry.line] = line


def _find_words(line: str, words: str, lead: str, form: MarkdownForm) -> int:
    """Return the position of a title in its line, after the bullet, box or marker and the other marks, or -1."""
    head = (logseq.MARKER if form.has_markers else BOX_LINE).match(line)
    bullet = _BULLET.match(line)
    start = head.start("rest") if head else bullet.end() if bullet else 0
    start = max(start, line.find(lead, start) + len(lead))
    match = re.compile(rf"(?<!\S){re.escape(words)}").search(line, start)
    return match.start() if match else line.find(words, start)


def _insert(
    lines: list[str], plan: Outline, tasks: Sequence[str], present: FieldsById, form: MarkdownForm
) -> defaultdict[int, list[tuple[str, str]]]:
    """Return lines for tasks that aren't in the file, by the line to insert them after: the parent's or last task's."""
    positions = {task: index for index, task in enumerate(tasks) if task}
    depth: dict[str, tuple[int, int]] = {}
    inserted: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for task, current in present.items():
        if task in positions:
            continue
        parent = str(current.get("parent") or "")
        if parent in depth:
            line, indent = depth[parent][0], depth[parent][1] + 2
        elif parent in positions:
            line, indent = _find_line_below(lines, plan.entries, positions[parent])
        else:
            line, indent = _find_last_line(lines, plan, str(current["status"]))
        new_line = f"{' ' * indent}- {format_status(str(current['status']), form)} {one_line(str(current['title']))}"
        inserted[line].append((new_line, task))
        depth[task] = (line, indent)
    return inserted


def _find_line_below(lines: list[str], entries: Sequence[Entry], index: int) -> tuple[int, int]:
    """Return the line after which to insert a subtask of an entry, and the subtask's indentation."""
    entry = entries[index]
    if entry.kind != "heading":
        return _skip_blank_lines(lines, max(entry.line, entry.end - 1)), entry.indent + 2
    last = entry.line + entry.titled - 1
    for other in entries[index + 1 :]:
        if other.kind == "heading":
            break
        last = max(last, other.end - 1)
    return _skip_blank_lines(lines, last), 0


def _find_last_line(lines: list[str], plan: Outline, status: str) -> tuple[int, int]:
    """Return the line after which to insert a task: the last one of its lane on a board, else of the file."""
    items = [entry for entry in plan.entries if entry.kind != "heading"]
    if plan.lanes:
        # A lane that names no status is better than one that names another.
        others = (plan.lanes[name] for name in (status, "pending", "") if name in plan.lanes)
        lane = next(others, min(plan.lanes.values()))
        end = next((number for number in range(lane + 1, len(lines)) if lines[number].startswith("## ")), len(lines))
        items = [entry for entry in items if lane < entry.line < end]
        if not items:
            return lane, 0
    if items:
        return _skip_blank_lines(lines, max(items[-1].line, items[-1].end - 1)), 0
    return _skip_blank_lines(lines, len(lines) - 1), 0


def _skip_blank_lines(lines: list[str], line: int) -> int:
    while line > 0 and not lines[line].strip():
        line -= 1
    return line
