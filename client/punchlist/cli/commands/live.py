"""Commands that go on: the live view, the stream of events, waiting. All by push; restarts are the library's matter."""

import time
from typing import Any

import msgspec

from punchlist.cli.context import Context, ids
from punchlist.cli.events import stream
from punchlist.cli.exits import REFUSED, TIME_UP
from punchlist.cli.failure import UsageError, tell
from punchlist.cli.render import FINISHED, list_lines, task_lines
from punchlist.cli.screen import Screen
from punchlist.cursor import TaskList, Until
from punchlist.errors import TimedOut


def run_watch(context: Context) -> int:
    """Redraw the list on a terminal; in a pipe (or with --json) print each event as a line of JSON."""
    if context.args.json or not context.look.terminal:
        for event in stream(context, everywhere=context.args.all_conversations):
            context.json(event)
        return 0
    if context.args.all_conversations:
        raise UsageError("the live view shows one list; of all: punch log --follow --all-conversations")
    context.look.now = 0
    newest: list[TaskList] = []
    with context.client.conversation(context.known).watch(view="list") as lists:
        if not context.look.moves:
            for tasks in lists:
                context.lines([*_lines(context, [tasks]), ""])
                _note_cut(context, tasks)
        with Screen(context.look, lambda room: _lines(context, newest, room)) as screen:
            for tasks in lists:
                newest[:] = [tasks]
                _note_cut(context, tasks)
                screen.draw()
    return 0


def run_wait(context: Context) -> int:
    """Wait for tasks, for all tasks, or for any change."""
    args = context.args
    wanted = ids(args.tasks)
    conversation = context.client.conversation(context.known)
    for task in wanted or ():
        conversation.get(task)  # a task that never was would count as gone
    until, missing = _awaited(wanted, args.any_change)
    timeout_s = None if args.timeout is None else args.timeout / 1000
    began = time.monotonic()
    try:
        tasks = conversation.wait(until, timeout_s=timeout_s)
    except TimedOut:
        if timeout_s is None or time.monotonic() - began < timeout_s:
            raise  # the daemon is who did not answer
        tell("timed_out", f"{missing} within {timeout_s:g} s", "punch list shows how it stands")
        return TIME_UP
    value = {"version": tasks.version, "seq": tasks.seq, "counts": tasks.counts}
    code = context.answer(value, [])
    failed = [task for task in tasks if wanted and task.id in wanted and task.status == "failed"]
    for task in failed:
        tell("task_failed", f"#{task.id} {task.title}", task.fail_reason)
    return REFUSED if failed else code


def _awaited(wanted: list[str] | None, any_change: bool) -> tuple[Until, str]:
    """What is waited for, and what to say when it has not come."""
    if any_change:
        return "change", "nothing changed"
    if wanted is None:
        return "done", "not all tasks were finished"
    names = ", ".join(f"#{task}" for task in wanted)
    missing = f"{names} {'was not' if len(wanted) == 1 else 'were not all'} finished"
    return lambda tasks: not _unfinished(tasks, wanted), missing


def _unfinished(tasks: TaskList, wanted: list[str]) -> list[str]:
    return [task.id for task in tasks if task.id in wanted and task.status not in FINISHED]


def _lines(context: Context, newest: list[TaskList], room: int | None = None) -> list[str]:
    """The newest list. Where it is longer than there is room for, what is in progress comes first, to stay in view."""
    if not newest:
        return []
    counts: dict[str, int] = msgspec.to_builtins(newest[0].counts)
    tasks: list[dict[str, Any]] = msgspec.to_builtins(list(newest[0]))
    note = "damaged: not the whole list" if newest[0].damaged is not None else ""
    lines = list_lines(context.conversation, tasks, counts, context.look, note=note, folded=True)
    if room is None or len(lines) <= room:
        return lines
    running = [task for task in tasks if task["status"] == "in_progress"]
    others = [task for task in tasks if task["status"] != "in_progress"]
    first = [line for task in running for line in task_lines(task, context.look)]
    rest = list_lines(context.conversation, others, counts, context.look, folded=True) if others else lines[:1]
    return [lines[0], *first, *rest[1:]]


def _note_cut(context: Context, tasks: TaskList) -> None:
    if tasks.damaged is not None:
        context.note_cut(tasks.damaged.seq, tasks.damaged.reason)
