"""Phrases for replies: tasks, gates, owners and counts in a few words."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from punchlist.base.departures import ago
from punchlist.base.text import clip, one_line, safe
from punchlist.base.tree import with_path
from punchlist.tools.budget import fit, join_ids, shorten
from punchlist_schemas.results import SetStatusResult
from punchlist_schemas.things import FINISHED, Counts, Gate, Note, Reason, Task, Waits, is_heading

BRIEF = 140
"""Maximum length of a description in the reply of `next`, in characters."""
REASON = 300
"""Maximum length of the reason why a task has to be done again, in characters."""
_NAME = 60
"""Maximum length of a name, in characters."""
SOME = 4
"""Maximum number of ids in a summary; the others are counted."""
_RANGES = 20
_LINKS = 10
_NOTES = 5
"""Number of notes of maximum length that fit in a task's details."""


def format_ranges(ids: Sequence[str]) -> str:
    """Return ids, with three or more consecutive ones as a range: `#1-#7, #9, #10`."""
    ranges: list[list[int]] = []
    for number in sorted(int(id) for id in ids):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [_format_range(low, high) for low, high in ranges[:_RANGES]]
    return ", ".join(shown) + (" …" if len(ranges) > _RANGES else "")


def _format_range(low: int, high: int) -> str:
    if high - low > 1:
        return f"#{low}-#{high}"
    return f"#{low}" if low == high else f"#{low}, #{high}"


def format_some(ids: Sequence[str]) -> str:
    return join_ids(ids[:SOME], "#") + (f" and {len(ids) - SOME} more" if len(ids) > SOME else "")


def format_line(task: Task, parents: Sequence[str] = ()) -> str:
    """Return a task as a line of `tasks`, with the titles of its parents."""
    state = [describe_wait(task)] if task.waits_for else [] if task.status == "pending" else [task.status]
    state = ["heading"] if is_open_heading(task) else state
    state += [task.priority] if task.priority != "normal" else []
    state += (
        [format_actor(task.owner) + (f", {gone}" if (gone := describe_departure(task)) else "")] if task.owner else []
    )
    mark = f" [{' '.join(state)}]" if state else ""
    waits = f" (after {format_some(task.open_blockers)})" if task.open_blockers else ""
    return f"#{task.id}{mark} {with_path(task.title, parents)}{waits}"


def build_row(task: Task) -> dict[str, Any]:
    value: dict[str, Any] = {"id": task.id, "title": task.title, "status": task.status}
    value |= {"owner": task.owner} if task.owner else {}
    value |= {"waits_for": task.waits_for} if task.waits_for else {}
    return value | ({"after": task.open_blockers[:100]} if task.open_blockers else {})


def format_details(task: Task, share: int, parents: Sequence[str] = (), offset: int = 0, call: str = "") -> list[str]:
    """Return the details of a task as lines.

    Args:
        share: Maximum length of each text, and the total length of the notes, in characters.
        offset: First character of the description to show.
        call: The tool call that returns the rest of the description, without its offset.
    """
    parts = [format_line(task, parents), shorten(task.description, share, offset, call)]
    parts += [f"Result: {shorten(task.result_summary, share)}"] if task.result_summary else []
    parts += [f"{label_reason(task)}: {shorten(task.fail_reason, share)}"] if task.fail_reason else []
    parts += [f"Before: {join_ids(task.blocks[:100], '#')}"] if task.blocks else []
    parts += [f"Labels: {', '.join(task.labels)}"] if task.labels else []
    times = (("Due", task.due_day, task.due), ("Not before", task.not_before_day, task.not_before))
    parts += [f"{name}: {day or _format_time(at)}" for name, day, at in times if at]
    parts += [f"Waits: {describe_gate(task)}"] if task.waits_for else []
    parts += [f"{link.kind}: {clip(one_line(link.to), BRIEF)}" for link in task.links[:_LINKS]]
    notes, older = fit(reversed(task.notes), partial(_format_note, max_length=share // (2 * _NOTES)), share // 2)
    parts += [f"… {older} older notes"] if older else []
    return [part for part in [*parts, *reversed(notes)] if part]


def _format_note(note: Note, max_length: int) -> str:
    return f"Note by {one_line(get_author(note))}: {shorten(note.text, max_length)}"


def get_author(note: Note) -> str:
    return f"{note.actor}, imported by {note.imported_by}" if note.imported_by else note.actor


def _format_time(at: int) -> str:
    try:
        return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return str(at)


def format_brief(task: Task) -> str:
    text = one_line(task.description)
    return text if len(text) <= BRIEF else f"{clip(text, BRIEF)} (all of it: tasks ids={task.id})"


def format_current(task: Task, max_title: int, parents: Sequence[str] = ()) -> list[str]:
    """Return, as lines, the task that an agent works on next, with a title of at most `max_title` characters."""
    priority = f" [{task.priority}]" if task.priority != "normal" else ""
    lines = [f"Now #{task.id}: {with_path(clip(task.title, max_title), parents)}{priority}"]
    lines += [format_brief(task)] if task.description else []
    has_hint = len(one_line(task.description)) > BRIEF
    return lines + ([f"(all of it: tasks ids={task.id})"] if len(task.title) > max_title and not has_hint else [])


def format_finished(done: SetStatusResult) -> str:
    """Return a line about a task that was completed or set to failed."""
    task = done.task
    unblocked = f"; unblocked {format_some(done.unblocked)}" if done.unblocked else ""
    if gate := describe_gate(task):
        return f"#{task.id}: {gate}."
    word = {"completed": "done", "failed": "failed"}.get(task.status, f"{task.status} again")
    return f"#{task.id} {word}{unblocked}."


def describe_gate(task: Task) -> str:
    """Return when a task that waits at its gate will count as completed; "" if it doesn't wait."""
    if task.waits_for is None:
        return ""
    check = f"the check {task.gate.check} passes" if task.gate is not None else "a check passes"
    return f"recorded; it counts as completed once {check if task.waits_for == 'check' else 'a person says yes'}"


def name_gate(waits_for: Waits, gate: Gate | None) -> str:
    """Return the name of a gate: a check, or a person's approval."""
    if waits_for == "check":
        return f"the check {gate.check}" if gate is not None else "a check"
    return f"{one_line(gate.by)}'s yes" if gate is not None and gate.by else "a person's yes"


def format_actor(actor: str) -> str:
    """Return an actor's name for a reply, shortened and on one line."""
    return clip(safe(one_line(actor)), _NAME)


def describe_departure(task: Task) -> str:
    """Return when the owner of a task left, or since when its machine has sent no heartbeats; "" if it is present."""
    now = int(time.time() * 1000)
    if task.left_at is not None:
        return f"session ended {ago(task.left_at, now)} ago"
    if task.silent_at is not None:
        return (
            f"machine {clip(one_line(task.machine), BRIEF // 2)} has not been heard of for {ago(task.silent_at, now)}"
        )
    return ""


def describe_wait(task: Task) -> str:
    """Return the state of a task that waits at its gate; "" if it doesn't wait."""
    return "" if task.waits_for is None else f"waits for {name_gate(task.waits_for, task.gate)}"


def format_path(task: Task, parents: Sequence[str]) -> str:
    """Return a task's title preceded by those of its parents; "" for a task without a parent."""
    return with_path(task.title, parents) if parents else ""


def label_reason(task: Task) -> str:
    """Return the label for a task's failure reason: the task failed, is retried, or was rejected at its gate."""
    if task.status == "failed":
        return "Failed"
    return "Failed before" if task.gate is None else "Rejected"


def describe_setback(task: Task) -> str:
    """Return why an open task has to be done again; "" if this is the first attempt."""
    if not task.fail_reason or task.status in FINISHED or task.waits_for:
        return ""
    return f"{label_reason(task)}: {clip(one_line(task.fail_reason), REASON)}"


def is_open_heading(task: Task) -> bool:
    """Return whether a task is an unfinished heading, for which agents work only on the children."""
    return is_heading(task.metadata) and task.status not in FINISHED


def advise_leaving(task: str, gate: str) -> str:
    """Return advice about a task that waits at its gate."""
    return f"task {task} waits for {gate}: leave it"


def explain_unanswered(task: Task) -> str:
    """Return advice to leave a task that waits for a person's approval, and how the person can give it."""
    return f"{advise_leaving(task.id, name_gate('yes', task.gate))}. They answer with: punch approve {task.id}"


def format_counts(counts: Counts) -> str:
    names = ("in_progress", "pending", "paused", "failed", "completed")
    parts = [f"{getattr(counts, name)} {name}" for name in names if getattr(counts, name)]
    return ", ".join(parts) or "No tasks"


def explain_no_task(counts: Counts, reasons: Sequence[Reason] = (), adder: str = "") -> str:
    """Return why no task is ready.

    Args:
        adder: Name of the tool that adds tasks; "" if none is offered.
    """
    gates = [reason for reason in reasons if reason.kind in ("check", "yes")]
    notes = [f" {capitalize(advise_leaving(reason.by, name_reason_gate(reason)))}." for reason in gates[:SOME]]
    notes += [
        f" #{reason.by} {clip(reason.title, BRIEF // 2)} was rejected: {clip(one_line(reason.fail_reason), REASON)};"
        " add a task below it, or set one below it to pending."
        for reason in reasons
        if reason.kind == "heading" and reason.fail_reason
    ][:SOME]
    return _explain_counts(counts, reasons, adder) + "".join(notes)


def capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def name_reason_gate(reason: Reason) -> str:
    """Return the name of the gate in a reason."""
    return name_gate("check" if reason.kind == "check" else "yes", reason.gate)


def _explain_counts(counts: Counts, reasons: Sequence[Reason], adder: str) -> str:
    if not any(msgspec.structs.astuple(counts)):
        return "The list is empty" + (f": add tasks with {adder}." if adder else ".")
    if not counts.pending + counts.in_progress + counts.paused:
        return "Nothing left: all tasks are finished."
    reserved = [reason for reason in reasons if reason.kind == "reserved"]
    is_stopped = any(reason.kind == "stopped" for reason in reasons) or not reserved
    if counts.ready and counts.failed and not counts.in_progress and is_stopped:
        return "The queue has stopped at a failed task: set it to pending, or delete it."
    failed = [reason for reason in reasons if reason.kind == "failed"]
    if failed:
        names = ", ".join(f"#{reason.by} {clip(reason.title, BRIEF // 2)}" for reason in failed[:SOME])
        more = f" and {len(failed) - SOME} more" if len(failed) > SOME else ""
        if counts.blocked:
            advice = " To go on without it: update the task that waits with not_after."
            cause = f"{counts.blocked} blocked, since {names}{more} failed"
        else:
            advice, cause = "", f"{names}{more} failed, and the tasks below wait"
        return f"Nothing ready: {cause}. To retry: update with status pending.{advice}"
    if reserved:
        owners = [(reason.by, clip(format_actor(reason.owner), BRIEF // 2)) for reason in reserved[:SOME]]
        names = ", ".join(f"#{task} is reserved for {owner}" for task, owner in owners)
        more = f" and {len(reserved) - SOME} more" if len(reserved) > SOME else ""
        return f"Nothing ready for you: {names}{more}. Call wait, or tasks to see the list."
    paused = [f"#{reason.by} {clip(reason.title, BRIEF // 2)}" for reason in reasons if reason.kind == "paused"][:SOME]
    names = f" ({', '.join(paused)})" if paused and not counts.in_progress else ""
    return (
        f"Nothing ready: {counts.in_progress} in progress, {counts.blocked} blocked, {counts.paused} paused{names}."
        " Call wait, or tasks to see why."
    )
