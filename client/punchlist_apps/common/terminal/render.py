"""Formats tasks as lines of text, for commands and the live view.

Works on JSON values from the wire, prints nothing, and imports little, so that a shell prompt can use it.
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
"""Maximum indentation, in levels. Deeper children are indented to this level."""
_FOLD_ABOVE = 12
"""Number of finished tasks above which old ones are hidden."""
_FOLD_KEEPS = 3
"""Number of finished tasks that are still shown when old ones are hidden."""
_MAX_FREED = 99
"""A task that frees this many tasks may free more."""
_NOTE_INDENT = 4
_PAIR = 2
_WIDE = ("W", "F")
_JOINER, _EMOJI_FORM, _TONES = "\u200d", "\ufe0f", ("\U0001f3fb", "\U0001f3ff")
"""Characters that join others into a single emoji, which takes two columns."""


def count_columns(text: str) -> int:
    """Return the number of terminal columns that `text` occupies."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width  # noqa: PLC0415 - costs 2 ms and is needed for few titles

    columns, before = 0, ""
    for char in text:
        if before == _JOINER and east_asian_width(char) in _WIDE:
            pass  # joined to the preceding emoji
        elif char == _EMOJI_FORM:
            columns += columns > 0 and before > "\xff" and east_asian_width(before) not in _WIDE
        elif not (_TONES[0] <= char <= _TONES[1] and east_asian_width(before or " ") in _WIDE):
            columns += _PAIR if east_asian_width(char) in _WIDE else category(char) not in ("Mn", "Me", "Cf")
        before = char
    return columns


def truncate(text: str, width: int, mark: str = "…") -> str:
    """Return `text` in at most `width` columns (0: no limit), ending in `mark` if it was truncated."""
    if width <= 0 or count_columns(text) <= width:
        return text
    room = width - count_columns(mark)
    if room <= 0:
        return mark[:width]
    if text.isascii():
        return text[:room] + mark
    head = ""
    for char in text:
        if count_columns(head + char) > room:
            break
        head += char
    return head.rstrip(_JOINER) + mark


def truncate_painted(text: str, width: int, mark: str = "…") -> str:
    """Truncate text with color codes, which take no columns, and reset the color at the end."""
    first, *painted = text.split("\x1b[")
    runs = [("", first), *(run.split("m", 1) for run in painted)]
    if not painted or width <= 0 or sum(count_columns(words) for _, words in runs) <= width:
        return truncate(text, width, mark) if not painted else text
    room = width - count_columns(mark)
    head = ""
    for code, words in runs:
        head += f"\x1b[{code}m" if code else ""
        if count_columns(words) > room:
            head += truncate(words, room, "") if room > 0 else ""
            break
        head += words
        room -= count_columns(words)
    return f"{head}{mark[:width]}\x1b[0m"


def get_display_state(task: Task) -> str:
    """Return the status to show: `blocked` for a pending task with open blockers."""
    status = str(task.get("status", "pending"))
    return "blocked" if status == "pending" and task.get("open_blockers") else status


def format_progress(counts: dict[str, int]) -> str:
    total = sum(counts.get(name, 0) for name in ("pending", "in_progress", "paused", "completed", "failed"))
    return f"{counts.get('completed', 0)}/{total}"


def format_status_line(counts: dict[str, int]) -> str:
    """Return the line in the status file: the number of open tasks and of tasks in progress."""
    return f"{counts.get('pending', 0) + counts.get('paused', 0)} open, {counts.get('in_progress', 0)} in progress"


def format_header(conversation: str, counts: dict[str, int], style: Style, note: str = "") -> str:
    words = ("in_progress", "in progress"), ("blocked", "blocked"), ("paused", "paused"), ("failed", "failed")
    parts = [f"{counts[name]} {word}" for name, word in words if counts.get(name)]
    if note:
        parts.append(note)
    dot = style.glyphs["dot"]
    rest = "  " + f" {dot} ".join(parts) if parts else ""
    head = f"{safe(conversation)}  {format_progress(counts)}"
    room = style.width - count_columns(head) if style.width else 0
    tail = truncate(rest, room, style.glyphs["cut"]) if not style.width or room > 0 else ""
    return style.paint("title", truncate(head, style.width, style.glyphs["cut"])) + style.paint("dim", tail)


def fold_finished(tasks: Sequence[Task]) -> tuple[list[Task], int]:
    """Hide old finished tasks of a long list. Return the visible tasks and the number of hidden ones.

    Unfinished tasks, the newest finished tasks and the ancestors of both are always shown.
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


def format_task(task: Task, style: Style, depth: int = 0, path: Sequence[dict[str, str]] = ()) -> list[str]:
    """Return a task's line, then its activity or the reason for its failure. `path` contains its ancestors."""
    state = get_display_state(task)
    indent = "  " * (1 + min(depth, _MAX_INDENT))
    lines = [indent + _format_row(task, state, style, len(indent), path)]
    below = indent + " " * (len(style.glyphs[state]) + 1)
    note = _format_note(task, state, style)
    if note:
        lines.append(below + style.paint("note", truncate(note, style.width and max(style.width - len(below), 1))))
    return lines


def format_need(need: dict[str, Any], style: Style) -> list[str]:
    """Return the line of a task that needs someone, then how many tasks it frees, and its result or reason."""
    kind, by = need["kind"], need.get("by", "")
    waits = {} if kind == "failed" else {"waits_for": kind, "gate": {"check" if kind == "check" else "by": by}}
    (line, *_) = format_task({**need, "status": "paused" if waits else "failed", **waits}, style)
    frees = f"frees {need['frees']}{'+' if need['frees'] == _MAX_FREED else ''}" if need.get("frees") else ""
    note = f" {style.glyphs['dot']} ".join(filter(None, (frees, safe(one_line(need.get("text", ""))))))
    indent = " " * _NOTE_INDENT
    note = truncate(indent + note, style.width, style.glyphs["cut"])
    return [line, style.paint("note", note)] if note.strip() else [line]


def format_path_title(task: Task, path: Sequence[dict[str, str]]) -> str:
    """Return the titles of a task's ancestors and of the task itself, safe for a terminal."""
    return safe(with_path(str(task.get("title", "")), [ancestor["title"] for ancestor in path]))


def format_step(result: Any, style: Style) -> list[str]:
    """Return a task's line after its status has changed, and a line about the effects."""
    notes: list[str] = []
    if result.get("unblocked"):
        notes.append("unblocked " + ", ".join(f"#{safe(task)}" for task in result["unblocked"]))
    if result.get("next_task"):
        next_task = result["next_task"]
        notes.append(f"next #{safe(next_task['id'])} {format_path_title(next_task, result.get('next_path', ()))}")
    failed = [result["task"]["id"]] if result["task"]["status"] == "failed" else []
    remaining = result["remaining"]
    notes.append(f"{remaining} left" if remaining else format_nothing_left(result.get("failed", 0), failed))
    line = "    " + f" {style.glyphs['dot']} ".join(notes)
    return [*format_task(result["task"], style), style.paint("dim", truncate(line, style.width, style.glyphs["cut"]))]


def format_nothing_left(failed: int, failed_ids: Sequence[str] = ()) -> str:
    """Return the last line of a finished list: the number of failed tasks and the command to retry them."""
    if not failed:
        return "all finished"
    command = f"punch reopen {safe(failed_ids[0])}" if failed == len(failed_ids) else "punch list --status failed"
    return f"nothing left: {failed} failed ({command})"


_SHARED_STATES = {"forbidden": "no longer followed here", "unreachable": "still being shared"}
"""State of a shared list -> its text, if it differs from the state's name."""


def format_shared_note(shared: Any) -> str:
    """Return the note after the name of a shared list that isn't in sync."""
    if not shared:
        return ""
    state, since = str(shared.get("state", "")), shared.get("since")
    when = f" since {format_time(since)}" if since and state == "offline" else ""
    refused = "" if state == "behind" else ", changes are refused"
    return f"{safe(str(shared.get('space', '')))}: {safe(_SHARED_STATES.get(state, state))}{when}{refused}"


def format_list(  # noqa: PLR0913 - the options of a list
    conversation: str,
    tasks: Sequence[Task],
    counts: dict[str, int],
    style: Style,
    *,
    note: str = "",
    folded: bool = False,
    flat: bool = False,
) -> list[str]:
    """Return a list's header and its tasks, as a tree unless `flat`. `folded` hides old finished tasks."""
    lines = [format_header(conversation, counts, style, note)]
    visible, hidden = fold_finished(tasks) if folded else (list(tasks), 0)
    for depth, task in ((0, task) for task in visible) if flat else as_tree(visible):
        lines.extend(format_task(task, style, depth))
    if hidden:
        dots = style.glyphs["cut"]
        lines.append(
            style.paint("dim", truncate(f"  {dots} {hidden} finished ones not shown (--all)", style.width, dots))
        )
    if not tasks:
        lines.append(style.paint("dim", "  no tasks"))
    return lines


def format_short_duration(ms: int) -> str:
    """Return a duration in its largest unit: `40s`, `12m`, `3h`, `2d`."""
    count, unit = largest_unit(ms)
    return f"{count}{unit.removesuffix('in')}"


def format_duration(ms: int) -> str:
    """Return a duration in its two largest units: `1h 30m`."""
    rest = ms % next((size for size in (86_400_000, 3_600_000, 60_000) if ms >= size), 1_000)
    return format_short_duration(ms) + (f" {format_short_duration(rest)}" if rest >= 1_000 else "")  # noqa: PLR2004 - a second


def format_details(task: Task, style: Style, path: Sequence[dict[str, str]] = ()) -> list[str]:
    lines = [_format_row(task, get_display_state(task), style, None, path)]
    for name, value in _list_facts(task, style):
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
        lines.append(style.paint("dim", f"  {safe(by)} {style.glyphs['dot']} {format_time(note['at'])}"))
        lines.extend(f"  {line}" for line in safe_block(str(note["text"])).split("\n"))
    return lines


def _format_row(task: Task, state: str, style: Style, used: int | None, path: Sequence[dict[str, str]] = ()) -> str:
    """Return a task's line, which starts after `used` columns; if `used` is None, the width isn't limited."""
    glyph = style.glyphs[state]
    number = f"#{safe(str(task['id']))}"
    priority = str(task.get("priority", "normal"))
    mark = style.glyphs.get(priority, "") if priority != "normal" and state not in FINISHED else ""
    tail = _format_annotations(task, state, style)
    title = format_path_title(task, path)
    if style.width and used is not None:
        dots = style.glyphs["cut"]
        room = max(style.width - used - len(f"{glyph} {number} ") - len(mark) - bool(mark), 1)
        tail = truncate(tail, room // _PAIR, dots)
        if path and count_columns(title) > room - count_columns(tail):
            title = format_path_title(task, ())  # the task's own title comes first
        title = truncate(title, room - count_columns(tail), dots)
    text = style.paint("dim" if state == "completed" else "title" if state == "in_progress" else "", title)
    parts = [style.paint(state, glyph), style.paint("dim", number)]
    if mark:
        parts.append(style.paint(priority, mark))
    return " ".join([*parts, text]) + style.paint("dim", tail)


def _format_annotations(task: Task, state: str, style: Style) -> str:
    tail = ""
    if state == "blocked" or (state in ("paused", "in_progress") and task.get("open_blockers")):
        tail += f"  {style.glyphs['arrow']} " + ", ".join(f"#{safe(str(blocker))}" for blocker in task["open_blockers"])
    if task.get("owner") and state != "completed":
        tail += f"  @{safe(str(task['owner']))}" + (f" on {safe(str(task['machine']))}" if task.get("machine") else "")
    if state not in FINISHED:
        tail += "".join(f"  +{safe(str(label))}" for label in task.get("labels", ()))
        tail += f"  due {format_task_time(task, 'due')}" if task.get("due") else ""
        tail += f"  not before {format_task_time(task, 'not_before')}" if task.get("not_before") else ""
        tail += f"  waits for {format_gate_wait(task)}" if task.get("waits_for") else ""
    return tail


def _format_note(task: Task, state: str, style: Style) -> str:
    if state == "failed":
        return safe(one_line(str(task.get("fail_reason", ""))))
    if absence := departure(task, style.now):
        return absence
    if state != "in_progress":
        return ""
    doing = safe(str(task.get("active_form", "")))
    changed = task.get("status_changed_at", 0)
    if style.now and changed:
        elapsed = format_short_duration(style.now - changed)
        return f"{doing} {style.glyphs['dot']} {elapsed}" if doing else elapsed
    return doing


def format_time(at: int) -> str:
    """Return milliseconds since 1970 as a local date, with the time of day unless it is midnight."""
    try:
        text = strftime("%Y-%m-%d %H:%M", localtime(at / 1000))
    except (OverflowError, ValueError, OSError):
        return str(at)
    return text.removesuffix(" 00:00")


def format_task_time(task: Mapping[str, Any], member: str) -> str:
    """Return a task's due or deferral date.

    If a day is stored, return that day, because it doesn't depend on the time zone. Otherwise return the local time.
    """
    return safe(str(task.get(f"{member}_day") or "")) or format_time(task[member])


def format_approval(gate: dict[str, Any]) -> str:
    return f"a yes of {safe(str(gate['by']))}" if gate.get("by") else "a yes"


def format_gate_wait(task: Task) -> str:
    gate: dict[str, Any] = task.get("gate") or {}
    return format_approval(gate) if task["waits_for"] == "yes" else f"the check {safe(str(gate.get('check', '')))}"


def _format_gate(gate: dict[str, Any]) -> str:
    parts = [f"the check {safe(str(gate['check']))}"] if gate.get("check") else []
    parts += [format_approval(gate)] if gate.get("yes") or gate.get("by") else []
    return " and then ".join(parts)


def _list_facts(task: Task, style: Style) -> Iterable[tuple[str, str]]:
    yield "status", str(task.get("status", "")).replace("_", " ")
    for name, member, text in FACTS:
        value = task.get(member)
        # While all blockers are open, a separate list of open blockers is redundant.
        is_redundant = member == "open_blockers" and value == task.get("blocked_by")
        if value and not is_redundant and not task.get(f"{member}_day") and (member, value) != ("priority", "normal"):
            yield name, text(value)
    if task.get("lease_expires_at"):
        yield "claim", departure(task, style.now) or f"until {clock(task['lease_expires_at'])}"
    if task.get("created_at"):
        yield "created", format_time(task["created_at"])
    if task.get("waits_for"):
        yield "waits for", format_gate_wait(task)
    if spent := _compute_spent_ms(task, style.now):
        yield "spent", format_duration(spent)
    for link in task.get("links", ()):
        yield safe(str(link["kind"])), safe(str(link["to"]))
    if style.now:
        yield "changed", f"{format_short_duration(style.now - task.get('updated_at', 0))} ago"
    yield "version", str(task.get("version", ""))


def _compute_spent_ms(task: Task, now: int) -> int:
    """Return the time that a task has been in progress until now, in milliseconds.

    If the clock was set back, nothing is added.
    """
    running = now and task.get("status") == "in_progress"
    return task.get("spent_ms", 0) + (max(now - task.get("status_changed_at", now), 0) if running else 0)


def _format_metadata(items: dict[str, Any]) -> str:
    from punchlist.base import metadata

    return ", ".join(safe(f"{key}={value}") for key, value in metadata.visible_items(items))


def _format_ids(ids: list[str]) -> str:
    return ", ".join(f"#{safe(str(task))}" for task in ids)


FACTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("priority", "priority", safe),
    ("owner", "owner", safe),
    ("on", "machine", safe),
    ("doing", "active_form", safe),
    ("attempts", "attempts", str),
    ("parent", "parent", lambda parent: _format_ids([parent])),
    ("blocked by", "blocked_by", _format_ids),
    ("waits for", "open_blockers", _format_ids),
    ("blocks", "blocks", _format_ids),
    ("due", "due", format_time),
    ("due", "due_day", safe),
    ("not before", "not_before", format_time),
    ("not before", "not_before_day", safe),
    ("labels", "labels", lambda labels: ", ".join(map(safe, labels))),
    ("estimate", "estimate_ms", format_duration),
    ("counts as done after", "gate", _format_gate),
    ("metadata", "metadata", _format_metadata),
)
"""Facts shown by `punch show` and `punch log`: name, member and formatter."""
