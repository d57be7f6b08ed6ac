"""A Markdown plan beside a list: which line is which task, what the file changed, the text as the list wants it. Pure.

Prose, headings and the order of the file are the file's. A line changes only where the list changed what it says.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from punchlist.base.text import clip, one_line
from punchlist.taskfiles.file_format import Fields
from punchlist_apps.files.importers.markdown import BOX_OF, BOXES, without_extras
from punchlist_apps.files.importers.outline import BOX_LINE, Entry, Outline, outline
from punchlist_apps.files.mirror.merge import Delete, Edit, Sheet, reconcile

_TITLE = 500


class Known(msgspec.Struct):
    """An entry of the file as it was when file and list were last the same.

    Attributes:
        task: The list's task; empty for a line that is nobody's any more.
        title: What the file said.
        box: What was in its box; None without one.
        description: What the file said below it.
        list_title: The task's title then.
        list_status: The task's status then.
    """

    task: str
    title: str
    box: str | None
    description: str
    list_title: str = ""
    list_status: str = ""


class Proposal(msgspec.Struct):
    """What a file asks for.

    Attributes:
        tasks: The list's task of each entry of the file, also one that is gone; empty for one that is new, or nobody's.
        new: The entries that are new tasks, by their index.
        edits: Members to set: task, member, value.
        deleted: Tasks whose lines are gone.
        conflicts: Sentences about what both sides changed; the list's value stays.
    """

    tasks: list[str] = []
    new: list[int] = []
    edits: list[tuple[str, str, str]] = []
    deleted: list[str] = []
    conflicts: list[str] = []


def entries_of(text: str) -> Outline:
    """The entries of a plan: without boxes it has none, and a list's tasks come to it with theirs."""
    return outline(text, boxes_only=True)


def title_of(entry: Entry | Known) -> str:
    return clip(one_line(without_extras(entry.title)), _TITLE)


def status_of(box: str | None) -> str:
    return str(BOXES.get(box or "", {}).get("status", "pending"))


def proposed(known: Sequence[Known], entries: Sequence[Entry], present: Sheet) -> Proposal:
    """What a file asks for since it was last the same as the list."""
    found = Proposal()
    base: dict[str, Fields] = {}
    theirs: dict[str, Fields] = {}
    matched = _aligned(known, entries)
    for index, entry in enumerate(entries):
        old = known[matched[index]] if matched[index] >= 0 else None
        found.tasks.append(old.task if old is not None else "")
        if old is not None and old.task in present:
            base[old.task], theirs[old.task] = _sides(old, entry, present[old.task])
        elif old is None and title_of(entry):
            found.new.append(index)
    for index in sorted(set(range(len(known))) - set(matched)):
        old = known[index]
        if old.task in present:
            base[old.task] = {**present[old.task], "title": old.list_title, "status": old.list_status}
    changes = reconcile(base, theirs, present, may_delete=True)
    for change in changes.changes:
        if isinstance(change, Edit):
            found.edits += [(change.task, member, value) for member, value in change.fields.items()]
        elif isinstance(change, Delete):
            found.deleted.append(change.task)
    for task, member, wanted, now, _ in changes.conflicts:
        said = f"#{task} {member}: the file says {clip(str(wanted), 80)!r}, the list {clip(str(now), 80)!r}"
        gone = f"#{task}: its line is gone from the file, and the list changed it meanwhile"
        found.conflicts.append(gone if member == "task" else said)
    return found


def _sides(old: Known, entry: Entry, now: Fields) -> tuple[Fields, Fields]:
    """Return a task as list and file last agreed on, and with what the file has changed since."""
    # A description that the list never took over from the file has no common past.
    described = now["description"] if now["description"] in ("", old.description) else "\0"
    base = {**now, "title": old.list_title, "status": old.list_status, "description": described}
    changed: dict[str, Any] = {}
    if title_of(entry) not in ("", title_of(old)):
        changed["title"] = title_of(entry)
    if entry.kind == "task" and entry.box != old.box and status_of(entry.box) != status_of(old.box):
        changed["status"] = status_of(entry.box)
    if entry.description != old.description:
        changed["description"] = entry.description
    return base, {**base, **changed}


def _aligned(known: Sequence[Known], entries: Sequence[Entry]) -> list[int]:
    """The known entry that each entry is, or -1: by its title in order, or else by its neighbour above."""
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for index, old in enumerate(known):
        waiting[old.title].append(index)
    matched = [waiting[entry.title].popleft() if waiting[entry.title] else -1 for entry in entries]
    taken = set(matched)
    for index, entry in enumerate(entries):
        before = matched[index - 1] if index else -1
        candidate = before + 1
        if matched[index] < 0 and candidate < len(known) and candidate not in taken:
            is_same_kind = (known[candidate].box is None) == (entry.box is None)
            if is_same_kind and (not index or before >= 0):
                matched[index] = candidate
                taken.add(candidate)
    return matched


def rewritten(
    text: str, tasks: Sequence[str], known: Mapping[str, Known], present: Sheet
) -> tuple[str, dict[int, str]]:
    """Return the text as the list wants it, and the task of each of its lines that is one's.

    Args:
        tasks: The task of each of its entries; empty for none.
        known: By task, what the file and the list said when they were last the same.
    """
    found = entries_of(text)
    lines = text.split("\n")
    dropped: set[int] = set()
    for entry, task in zip(found.entries, tasks, strict=True):
        now, then = present.get(task), known.get(task)
        if now is not None and then is not None:
            _rewrite(lines, entry, then, now, dropped)
        elif task and now is None and entry.kind == "task" and status_of(entry.box) != "completed":
            dropped |= set(range(entry.line, entry.line + entry.titled))  # a finished one stays, as history
    inserted = _insert(lines, found, tasks, present)
    owners = {entry.line: task for entry, task in zip(found.entries, tasks, strict=True)}
    written: list[str] = []
    shown: dict[int, str] = {}
    for index, line in enumerate(lines):
        kept = [] if index in dropped else [(line, owners.get(index, ""))]
        for shown_line, task in (*kept, *inserted.get(index, ())):
            shown[len(written)] = task
            written.append(shown_line)
    return "\n".join(written), shown


def _rewrite(lines: list[str], entry: Entry, then: Known, now: Fields, dropped: set[int]) -> None:
    line = lines[entry.line]
    if now["title"] != then.list_title and title_of(entry) != now["title"]:
        first = without_extras(entry.title).split("\n", 1)[0]
        if entry.titled > 1:  # its title was wrapped
            dropped |= set(range(entry.line + 1, entry.line + entry.titled))
            first = line[line.find(first[:20]) :]
        at = line.find(first)
        line = f"{line[:at]}{one_line(str(now['title']))}{line[at + len(first) :]}" if at >= 0 and first else line
    match = BOX_LINE.match(line)
    if match and now["status"] != then.list_status and status_of(entry.box) != now["status"]:
        line = f"{match['head']}{BOX_OF[str(now['status'])]}{match['rest']}"
    lines[entry.line] = line


def _insert(
    lines: list[str], found: Outline, tasks: Sequence[str], present: Sheet
) -> defaultdict[int, list[tuple[str, str]]]:
    """Return the lines of tasks that the file lacks, below their parents or its last task: by the line before them."""
    place = {task: index for index, task in enumerate(tasks) if task}
    depth: dict[str, tuple[int, int]] = {}
    inserted: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for task, now in present.items():
        if task in place:
            continue
        parent = str(now.get("parent") or "")
        if parent in depth:
            line, indent = depth[parent][0], depth[parent][1] + 2
        elif parent in place:
            line, indent = _below(lines, found.entries, place[parent])
        else:
            line, indent = _at_end(lines, found.entries)
        written = f"{' ' * indent}- [{BOX_OF[str(now['status'])]}] {one_line(str(now['title']))}"
        inserted[line].append((written, task))
        depth[task] = (line, indent)
    return inserted


def _below(lines: list[str], entries: Sequence[Entry], index: int) -> tuple[int, int]:
    """The line behind which a part of an entry goes, and its column."""
    entry = entries[index]
    if entry.kind != "heading":
        return _filled(lines, max(entry.line, entry.end - 1)), entry.indent + 2
    last = entry.line + entry.titled - 1
    for other in entries[index + 1 :]:
        if other.kind == "heading":
            break
        last = max(last, other.end - 1)
    return _filled(lines, last), 0


def _at_end(lines: list[str], entries: Sequence[Entry]) -> tuple[int, int]:
    items = [entry for entry in entries if entry.kind != "heading"]
    if items:
        return _filled(lines, max(items[-1].line, items[-1].end - 1)), 0
    return _filled(lines, len(lines) - 1), 0


def _filled(lines: list[str], line: int) -> int:
    while line > 0 and not lines[line].strip():
        line -= 1
    return line
