"""Tasks as lines of text: the one renderer of commands and the live view.

Works on the plain JSON values of the wire contract, prints nothing, and is light enough for a shell prompt.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import localtime, strftime
from typing import Any

from punchlist.base.departures import clock, departure, largest_unit
from punchlist.base.text import one_line, safe, safe_block
from punchlist.base.tree import as_tree, with_path
from punchlist_apps.common.terminal.style import Style

Task = dict[str, Any]


FINISHED = ("completed", "failed")
_MAX_INDENT = 8
"""Levels of nesting that are shown by indentation; deeper children stay at this one."""
_FOLD_ABOVE = 12
_FOLD_KEEPS = 3
_PAIR = 2
_WIDE = ("W", "F")
_JOINER, _EMOJI_FORM, _TONES = "\u200d", "\ufe0f", ("\U0001f3fb", "\U0001f3ff")
"""What makes one picture of several characters: terminals that know it show two columns, as for a single one."""


def cells(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width  # noqa: PLC0415 - costs 2 ms and is needed for few titles

    taken, before = 0, ""
    for char in text:
        if before == _JOINER and east_asian_width(char) in _WIDE:
            pass  # one picture with the one before
        elif char == _EMOJI_FORM:
            taken += taken > 0 and before > "\xff" and east_asian_width(before) not in _WIDE
        elif not (_TONES[0] <= char <= _TONES[1] and east_asian_width(before or " ") in _WIDE):
            taken += _PAIR if east_asian_width(char) in _WIDE else category(char) not in ("Mn", "Me", "Cf")
        before = char
    return taken


def cut(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` columns; `mark` shows that something is missing. 0 means no limit."""
    if width <= 0 or cells(text) <= width:
        return text
    room = width - cells(mark)
    if room <= 0:
        return mark[:width]
    if text.isascii():
        return text[:room] + mark
    kept = ""
    for char in text:
        if cells(kept + char) > room:
            break
        kept += char
    return kept.rstrip(_JOINER) + mark


def cut_painted(text: str, width: int, mark: str = "…") -> str:
    """As `cut`, for a text with colours in it, which take no columns; they end where it is cut."""
    first, *painted = text.split("\x1b[")
    runs = [("", first), *(run.split("m", 1) for run in painted)]
    if not painted or width <= 0 or sum(cells(words) for _, words in runs) <= width:
        return cut(text, width, mark) if not painted else text
    room = width - cells(mark)
    kept = ""
    for code, words in runs:
        kept += f"\x1b[{code}m" if code else ""
        if cells(words) > room:
            kept += cut(words, room, "") if room > 0 else ""
            break
        kept += words
        room -= cells(words)
    return f"{kept}{mark[:width]}\x1b[0m"


def state_of(task: Task) -> str:
    """The status as shown: an unfinished task with open blockers is `blocked`."""
    status = str(task.get("status", "pending"))
    return "blocked" if status == "pending" and task.get("open_blockers") else status


def progress(counts: dict[str, int]) -> str:
    total = sum(counts.get(name, 0) for name in ("pending", "in_progress", "paused", "completed", "failed"))
    return f"{counts.get('completed', 0)}/{total}"


def status_line(counts: dict[str, int]) -> str:
    """The line of the status file: what is open and what is being worked on."""
    return f"{counts.get('pending', 0) + counts.get('paused', 0)} open, {counts.get('in_progress', 0)} in progress"


def header(conversation: str, counts: dict[str, int], style: Style, note: str = "") -> str:
    words = ("in_progress", "in progress"), ("blocked", "blocked"), ("paused", "paused"), ("failed", "failed")
    parts = [f"{counts[name]} {word}" for name, word in words if counts.get(name)]
    if note:
        parts.append(note)
    dot = style.glyphs["dot"]
    rest = "  " + f" {dot} ".join(parts) if parts else ""
    head = f"{safe(conversation)}  {progress(counts)}"
    room = style.width - cells(head) if style.width else 0
    tail = cut(rest, room, style.glyphs["cut"]) if not style.width or room > 0 else ""
    return style.paint("title", cut(head, style.width, style.glyphs["cut"])) + style.paint("dim", tail)


def fold(tasks: Sequence[Task]) -> tuple[list[Task], int]:
    """Leave out old finished tasks of a long list; returns the rest and how many were left out.

    What is unfinished stays, with all its ancestors, and so do the newest finished ones.
    """
    finished = [task for task in tasks if task.get("status") in FINISHED]
    if len(finished) <= _FOLD_ABOVE:
        return list(tasks), 0
    by_id = {task["id"]: task for task in tasks}
    newest = sorted(finished, key=lambda task: task.get("status_changed_at", 0))[-_FOLD_KEEPS:]
    keep: set[str] = set()
    for task in [*(task for task in tasks if task.get("status") not in FINISHED), *newest]:
        current: Task | None = task
        while current is not None and current["id"] not in keep:
            keep.add(current["id"])
            current = by_id.get(current.get("parent") or "")
    return [task for task in tasks if task["id"] in keep], len(tasks) - len(keep)


def task_lines(task: Task, style: Style, depth: int = 0, path: Sequence[dict[str, str]] = ()) -> list[str]:
    """Return a task's line, and below it its activity or why it failed. `path` has its ancestors."""
    state = state_of(task)
    indent = "  " * (1 + min(depth, _MAX_INDENT))
    lines = [indent + _row(task, state, style, len(indent), path)]
    below = indent + " " * (len(style.glyphs[state]) + 1)
    note = _note(task, state, style)
    if note:
        lines.append(below + style.paint("note", cut(note, style.width and max(style.width - len(below), 1))))
    return lines


def path_title(task: Task, path: Sequence[dict[str, str]]) -> str:
    """Return a task's title after its ancestors', safe for a terminal."""
    return safe(with_path(str(task.get("title", "")), [one["title"] for one in path]))


def step_lines(result: Any, style: Style) -> list[str]:
    """A task whose status was set, and what comes of it."""
    notes: list[str] = []
    if result.get("unblocked"):
        notes.append("unblocked " + ", ".join(f"#{safe(one)}" for one in result["unblocked"]))
    if result.get("next_task"):
        following = result["next_task"]
        notes.append(f"next #{safe(following['id'])} {path_title(following, result.get('next_path', ()))}")
    failed = [result["task"]["id"]] if result["task"]["status"] == "failed" else []
    left = result["remaining"]
    notes.append(f"{left} left" if left else nothing_left(result.get("failed", 0), failed))
    line = "    " + f" {style.glyphs['dot']} ".join(notes)
    return [*task_lines(result["task"], style), style.paint("dim", cut(line, style.width, style.glyphs["cut"]))]


def nothing_left(failed: int, known: Sequence[str] = ()) -> str:
    """Return the closing line of a finished list: how many tasks failed, and how to retry them."""
    if not failed:
        return "all finished"
    way = f"punch reopen {safe(known[0])}" if failed == len(known) else "punch list --status failed"
    return f"nothing left: {failed} failed ({way})"


_SHARED_STATES = {"forbidden": "no longer followed here", "unreachable": "still being shared"}
"""What is said of a list whose changes are refused with a kind that names no state."""


def shared_note(shared: Any) -> str:
    """What is said behind the name of a shared list whose newest changes may be missing here."""
    if not shared:
        return ""
    state, since = str(shared.get("state", "")), shared.get("since")
    when = f" since {moment(since)}" if since and state == "offline" else ""
    refused = "" if state == "behind" else ", changes are refused"
    told = _SHARED_STATES.get(state, state)
    return f"{safe(str(shared.get('space', '')))}: {safe(told)}{when}{refused}"


def list_lines(  # noqa: PLR0913 - what a list can be shown with
    conversation: str,
    tasks: Sequence[Task],
    counts: dict[str, int],
    style: Style,
    *,
    note: str = "",
    folded: bool = False,
    flat: bool = False,
) -> list[str]:
    """A whole list: header, tasks as a tree unless `flat`; `folded` tells how many old finished ones are left out."""
    lines = [header(conversation, counts, style, note)]
    shown, hidden = fold(tasks) if folded else (list(tasks), 0)
    for depth, task in ((0, task) for task in shown) if flat else as_tree(shown):
        lines.extend(task_lines(task, style, depth))
    if hidden:
        dots = style.glyphs["cut"]
        lines.append(style.paint("dim", cut(f"  {dots} {hidden} finished ones not shown (--all)", style.width, dots)))
    if not tasks:
        lines.append(style.paint("dim", "  no tasks"))
    return lines


def since(ms: int) -> str:
    """A duration in its largest unit: `40s`, `12m`, `3h`, `2d`."""
    count, unit = largest_unit(ms)
    return f"{count}{unit.removesuffix('in')}"


def duration(ms: int) -> str:
    """A duration in its two largest units: `1h 30m`."""
    rest = ms % next((size for size in (86_400_000, 3_600_000, 60_000) if ms >= size), 1_000)
    return since(ms) + (f" {since(rest)}" if rest >= 1_000 else "")  # noqa: PLR2004 - a second


def detail_lines(task: Task, style: Style, path: Sequence[dict[str, str]] = ()) -> list[str]:
    lines = [_row(task, state_of(task), style, None, path)]
    for name, value in _facts(task, style):
        lines.append(f"  {style.paint('dim', name + ':')} {value}")
    for label, text in (("", "description"), ("result", "result_summary"), ("reason", "fail_reason")):
        if task.get(text):
            lines.append("")
            block = safe_block(str(task[text])).split("\n")
            block[0] = f"{label}: {block[0]}" if label else block[0]
            lines.extend(f"  {line}" for line in block)
    for note in task.get("notes", ()):
        lines.append("")
        by = str(note["actor"]) + (f" (imported by {note['imported_by']})" if note.get("imported_by") else "")
        lines.append(style.paint("dim", f"  {safe(by)} {style.glyphs['dot']} {moment(note['at'])}"))
        lines.extend(f"  {line}" for line in safe_block(str(note["text"])).split("\n"))
    return lines


def _row(task: Task, state: str, style: Style, used: int | None, path: Sequence[dict[str, str]] = ()) -> str:
    """`width`: what is left behind `used` columns; None: whole."""
    glyph = style.glyphs[state]
    number = f"#{safe(str(task['id']))}"
    priority = str(task.get("priority", "normal"))
    mark = style.glyphs.get(priority, "") if priority != "normal" and state not in FINISHED else ""
    tail = _annotations(task, state, style)
    title = path_title(task, path)
    if style.width and used is not None:
        dots = style.glyphs["cut"]
        room = max(style.width - used - len(f"{glyph} {number} ") - len(mark) - bool(mark), 1)
        tail = cut(tail, room // _PAIR, dots)
        if path and cells(title) > room - cells(tail):
            title = path_title(task, ())  # the task's own title comes first
        title = cut(title, room - cells(tail), dots)
    text = style.paint("dim" if state == "completed" else "title" if state == "in_progress" else "", title)
    parts = [style.paint(state, glyph), style.paint("dim", number)]
    if mark:
        parts.append(style.paint(priority, mark))
    return " ".join([*parts, text]) + style.paint("dim", tail)


def _annotations(task: Task, state: str, style: Style) -> str:
    tail = ""
    if state == "blocked" or (state in ("paused", "in_progress") and task.get("open_blockers")):
        tail += f"  {style.glyphs['arrow']} " + ", ".join(f"#{safe(str(one))}" for one in task["open_blockers"])
    if task.get("owner") and state != "completed":
        tail += f"  @{safe(str(task['owner']))}" + (f" on {safe(str(task['machine']))}" if task.get("machine") else "")
    if state not in FINISHED:
        tail += "".join(f"  +{safe(str(label))}" for label in task.get("labels", ()))
        tail += f"  due {shown_time(task, 'due')}" if task.get("due") else ""
        tail += f"  not before {shown_time(task, 'not_before')}" if task.get("not_before") else ""
        tail += f"  waits for {gate_wait(task)}" if task.get("waits_for") else ""
    return tail


def _note(task: Task, state: str, style: Style) -> str:
    if state == "failed":
        return safe(one_line(str(task.get("fail_reason", ""))))
    if gone := departure(task, style.now):
        return gone
    if state != "in_progress":
        return ""
    doing = safe(str(task.get("active_form", "")))
    changed = task.get("status_changed_at", 0)
    if style.now and changed:
        elapsed = since(style.now - changed)
        return f"{doing} {style.glyphs['dot']} {elapsed}" if doing else elapsed
    return doing


def moment(at: int) -> str:
    """A time in milliseconds since 1970 as a local date, with the time of day where there is one."""
    try:
        text = strftime("%Y-%m-%d %H:%M", localtime(at / 1000))
    except (OverflowError, ValueError, OSError):
        return str(at)
    return text.removesuffix(" 00:00")


def shown_time(task: Mapping[str, Any], member: str) -> str:
    """Return a task's due or deferral date: its day in every time zone, else the local time."""
    return safe(str(task.get(f"{member}_day") or "")) or moment(task[member])


def gate_yes(gate: dict[str, Any]) -> str:
    return f"a yes of {safe(str(gate['by']))}" if gate.get("by") else "a yes"


def gate_wait(task: Task) -> str:
    gate: dict[str, Any] = task.get("gate") or {}
    return gate_yes(gate) if task["waits_for"] == "yes" else f"the check {safe(str(gate.get('check', '')))}"


def _gate(gate: dict[str, Any]) -> str:
    parts = [f"the check {safe(str(gate['check']))}"] if gate.get("check") else []
    parts += [gate_yes(gate)] if gate.get("yes") or gate.get("by") else []
    return " and then ".join(parts)


def _facts(task: Task, style: Style) -> Iterable[tuple[str, str]]:
    yield "status", str(task.get("status", "")).replace("_", " ")
    for name, member, text in FACTS:
        value = task.get(member)
        is_said = member == "open_blockers" and value == task.get("blocked_by")  # all of them are still open
        if value and not is_said and not task.get(f"{member}_day") and (member, value) != ("priority", "normal"):
            yield name, text(value)
    if task.get("lease_expires_at"):
        yield "claim", departure(task, style.now) or f"until {clock(task['lease_expires_at'])}"
    if task.get("created_at"):
        yield "created", moment(task["created_at"])
    if task.get("waits_for"):
        yield "waits for", gate_wait(task)
    if spent := _spent_ms(task, style.now):
        yield "spent", duration(spent)
    for link in task.get("links", ()):
        yield safe(str(link["kind"])), safe(str(link["to"]))
    if style.now:
        yield "changed", f"{since(style.now - task.get('updated_at', 0))} ago"
    yield "version", str(task.get("version", ""))


def _spent_ms(task: Task, now: int) -> int:
    """How long a task was in progress until now, in milliseconds; a clock that was set back adds nothing."""
    running = now and task.get("status") == "in_progress"
    return task.get("spent_ms", 0) + (max(now - task.get("status_changed_at", now), 0) if running else 0)


def _metadata(given: dict[str, Any]) -> str:
    from punchlist.base import metadata

    return ", ".join(safe(f"{key}={value}") for key, value in metadata.visible_items(given))


def _ids(ids: list[str]) -> str:
    return ", ".join(f"#{safe(str(one))}" for one in ids)


FACTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("priority", "priority", safe),
    ("owner", "owner", safe),
    ("on", "machine", safe),
    ("doing", "active_form", safe),
    ("attempts", "attempts", str),
    ("parent", "parent", lambda parent: _ids([parent])),
    ("blocked by", "blocked_by", _ids),
    ("waits for", "open_blockers", _ids),
    ("blocks", "blocks", _ids),
    ("due", "due", moment),
    ("due", "due_day", safe),
    ("not before", "not_before", moment),
    ("not before", "not_before_day", safe),
    ("labels", "labels", lambda labels: ", ".join(map(safe, labels))),
    ("estimate", "estimate_ms", duration),
    ("counts as done after", "gate", _gate),
    ("metadata", "metadata", _metadata),
)
"""What `punch show` and `punch log` tell of a task: name, member and form."""
