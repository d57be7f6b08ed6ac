"""How `native` puts tasks into few words."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from punchlist.base.departures import ago
from punchlist.base.text import clip, one_line, safe
from punchlist.base.tree import with_path
from punchlist.tools.budget import fitting, joined, shorten
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import FINISHED, Counts, Gate, Note, Reason, Task, Waits, is_heading

BRIEF = 140
"""How many characters of a description `next` shows."""
REASON = 300
"""Maximum length of the reason why a task has to be done again, in characters."""
_NAME = 60
"""Maximum length of a name, in characters."""
SOME = 4
"""How many ids are named where the number is what counts."""
_RANGES = 20
_LINKS = 10
_NOTES = 5
"""Number of notes of maximum length for which a task's details have room."""


def span(ids: Sequence[str]) -> str:
    """Ids, of which three or more in a row make a range: `#1-#7, #9, #10`."""
    parts: list[list[int]] = []
    for number in sorted(int(one) for one in ids):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = [_row(low, high) for low, high in parts[:_RANGES]]
    return ", ".join(shown) + (" …" if len(parts) > _RANGES else "")


def _row(low: int, high: int) -> str:
    if high - low > 1:
        return f"#{low}-#{high}"
    return f"#{low}" if low == high else f"#{low}, #{high}"


def some(ids: Sequence[str]) -> str:
    return joined(ids[:SOME], "#") + (f" and {len(ids) - SOME} more" if len(ids) > SOME else "")


def line(task: Task, above: Sequence[str] = ()) -> str:
    """A task as `tasks` shows it, after the titles of the parents `above` it."""
    state = [waiting(task)] if task.waits_for else [] if task.status == "pending" else [task.status]
    state = ["heading"] if is_open_heading(task) else state
    state += [task.priority] if task.priority != "normal" else []
    state += [name_of(task.owner) + (f", {gone}" if (gone := departed(task)) else "")] if task.owner else []
    mark = f" [{' '.join(state)}]" if state else ""
    waits = f" (after {some(task.open_blockers)})" if task.open_blockers else ""
    return f"#{task.id}{mark} {with_path(task.title, above)}{waits}"


def row(task: Task) -> dict[str, Any]:
    value: dict[str, Any] = {"id": task.id, "title": task.title, "status": task.status}
    value |= {"owner": task.owner} if task.owner else {}
    value |= {"waits_for": task.waits_for} if task.waits_for else {}
    return value | ({"after": task.open_blockers[:100]} if task.open_blockers else {})


def detail(task: Task, share: int, above: Sequence[str] = (), offset: int = 0, rest: str = "") -> list[str]:
    """Everything about a task, in lines; each text, and all notes together, take at most `share` characters.

    The description begins at character `offset`; `rest` is the call that reads on, without its offset.
    """
    parts = [line(task, above), shorten(task.description, share, offset, rest)]
    parts += [f"Result: {shorten(task.result_summary, share)}"] if task.result_summary else []
    parts += [f"{reason_label(task)}: {shorten(task.fail_reason, share)}"] if task.fail_reason else []
    parts += [f"Before: {joined(task.blocks[:100], '#')}"] if task.blocks else []
    parts += [f"Labels: {', '.join(task.labels)}"] if task.labels else []
    times = (("Due", task.due_day, task.due), ("Not before", task.not_before_day, task.not_before))
    parts += [f"{name}: {day or _minute(at)}" for name, day, at in times if at]
    parts += [f"Waits: {gated(task)}"] if task.waits_for else []
    parts += [f"{link.kind}: {clip(one_line(link.to), BRIEF)}" for link in task.links[:_LINKS]]
    told, older = fitting(reversed(task.notes), partial(_note, most=share // (2 * _NOTES)), share // 2)
    parts += [f"… {older} older notes"] if older else []
    return [part for part in [*parts, *reversed(told)] if part]


def _note(note: Note, most: int) -> str:
    return f"Note by {one_line(author(note))}: {shorten(note.text, most)}"


def author(note: Note) -> str:
    return f"{note.actor}, imported by {note.imported_by}" if note.imported_by else note.actor


def _minute(at: int) -> str:
    try:
        return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return str(at)


def brief(task: Task) -> str:
    text = one_line(task.description)
    return text if len(text) <= BRIEF else f"{clip(text, BRIEF)} (all of it: tasks ids={task.id})"


def current(task: Task, most: int, above: Sequence[str] = ()) -> list[str]:
    """The task that an agent is to work on, in lines; its title takes at most `most` characters."""
    urgent = f" [{task.priority}]" if task.priority != "normal" else ""
    lines = [f"Now #{task.id}: {with_path(clip(task.title, most), above)}{urgent}"]
    lines += [brief(task)] if task.description else []
    is_told = len(one_line(task.description)) > BRIEF
    return lines + ([f"(all of it: tasks ids={task.id})"] if len(task.title) > most and not is_told else [])


def finished(done: SetStatusResult) -> str:
    """What finishing a task did."""
    task = done.task
    freed = f"; unblocked {some(done.unblocked)}" if done.unblocked else ""
    if told := gated(task):
        return f"#{task.id}: {told}."
    word = {"completed": "done", "failed": "failed"}.get(task.status, f"{task.status} again")
    return f"#{task.id} {word}{freed}."


def gated(task: Task) -> str:
    """Return the gate that a completed task waits for, as text, or ""."""
    if task.waits_for is None:
        return ""
    check = f"the check {task.gate.check} passes" if task.gate is not None else "a check passes"
    return f"recorded; it counts as completed once {check if task.waits_for == 'check' else 'a person says yes'}"


def awaited(waits_for: Waits, gate: Gate | None) -> str:
    """Return what a completed task waits for: a person's yes, or a check."""
    if waits_for == "check":
        return f"the check {gate.check}" if gate is not None else "a check"
    return f"{one_line(gate.by)}'s yes" if gate is not None and gate.by else "a person's yes"


def name_of(actor: str) -> str:
    """Return an actor's name for a reply: on one line, shortened."""
    return clip(safe(one_line(actor)), _NAME)


def departed(task: Task) -> str:
    """Return when the owner of a task left; empty if it is present."""
    now = int(time.time() * 1000)
    if task.left_at is not None:
        return f"session ended {ago(task.left_at, now)} ago"
    if task.silent_at is not None:
        return (
            f"machine {clip(one_line(task.machine), BRIEF // 2)} has not been heard of for {ago(task.silent_at, now)}"
        )
    return ""


def waiting(task: Task) -> str:
    """Return what a completed task waits for as its state; empty if nothing."""
    return "" if task.waits_for is None else f"waits for {awaited(task.waits_for, task.gate)}"


def place(task: Task, above: Sequence[str]) -> str:
    """Return a task's title after those of its parents; empty for a task without a parent."""
    return with_path(task.title, above) if above else ""


def reason_label(task: Task) -> str:
    """Return the label of a task's reason: it failed, is retried, or was rejected at its gate."""
    if task.status == "failed":
        return "Failed"
    return "Failed before" if task.gate is None else "Rejected"


def setback(task: Task) -> str:
    if not task.fail_reason or task.status in FINISHED or task.waits_for:
        return ""
    return f"{reason_label(task)}: {clip(one_line(task.fail_reason), REASON)}"


def is_open_heading(task: Task) -> bool:
    """Return whether a task is an unfinished heading: only the tasks below it can be worked on."""
    return is_heading(task.metadata) and task.status not in FINISHED


def left_alone(task: str, awaits: str) -> str:
    """Return the note about a task that waits at its gate."""
    return f"task {task} waits for {awaits}: leave it"


def unanswered(task: Task) -> str:
    """Return why no agent may change a task that waits for a person's yes, and how a person answers."""
    return f"{left_alone(task.id, awaited('yes', task.gate))}. They answer with: punch approve {task.id}"


def summary(counts: Counts) -> str:
    names = ("in_progress", "pending", "paused", "failed", "completed")
    parts = [f"{getattr(counts, name)} {name}" for name in names if getattr(counts, name)]
    return ", ".join(parts) or "No tasks"


def nothing(counts: Counts, reasons: Sequence[Reason] = (), adder: str = "") -> str:
    """Why there is no task to be had."""
    gated = [reason for reason in reasons if reason.kind in ("check", "yes")]
    notes = [f" {_capital(left_alone(one.by, of_reason(one)))}." for one in gated[:SOME]]
    notes += [
        f" #{one.by} {clip(one.title, BRIEF // 2)} was rejected: {clip(one_line(one.fail_reason), REASON)};"
        " add a task below it, or set one below it to pending."
        for one in reasons
        if one.kind == "heading" and one.fail_reason
    ][:SOME]
    return _nothing(counts, reasons, adder) + "".join(notes)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def of_reason(reason: Reason) -> str:
    """Return what the task of a reason waits for at its gate."""
    return awaited("check" if reason.kind == "check" else "yes", reason.gate)


def _nothing(counts: Counts, reasons: Sequence[Reason], adder: str) -> str:
    if not any(msgspec.structs.astuple(counts)):
        return "The list is empty" + (f": add tasks with {adder}." if adder else ".")
    if not counts.pending + counts.in_progress + counts.paused:
        return "Nothing left: all tasks are finished."
    reserved = [one for one in reasons if one.kind == "reserved"]
    is_stopped = any(one.kind == "stopped" for one in reasons) or not reserved
    if counts.ready and counts.failed and not counts.in_progress and is_stopped:
        return "The queue has stopped at a failed task: set it to pending, or delete it."
    failed = [one for one in reasons if one.kind == "failed"]
    if failed:
        names = ", ".join(f"#{one.by} {clip(one.title, BRIEF // 2)}" for one in failed[:SOME])
        more = f" and {len(failed) - SOME} more" if len(failed) > SOME else ""
        if counts.blocked:
            how = " To go on without it: update the task that waits with not_after."
            what = f"{counts.blocked} blocked, since {names}{more} failed"
        else:
            how, what = "", f"{names}{more} failed, and the tasks below wait"
        return f"Nothing ready: {what}. To retry: update with status pending.{how}"
    if reserved:
        whose = [(one.by, clip(name_of(one.owner), BRIEF // 2)) for one in reserved[:SOME]]
        names = ", ".join(f"#{task} is reserved for {owner}" for task, owner in whose)
        more = f" and {len(reserved) - SOME} more" if len(reserved) > SOME else ""
        return f"Nothing ready for you: {names}{more}. Call wait, or tasks to see the list."
    paused = [f"#{one.by} {clip(one.title, BRIEF // 2)}" for one in reasons if one.kind == "paused"][:SOME]
    which = f" ({', '.join(paused)})" if paused and not counts.in_progress else ""
    return (
        f"Nothing ready: {counts.in_progress} in progress, {counts.blocked} blocked, {counts.paused} paused{which}."
        " Call wait, or tasks to see why."
    )
