"""Commands that run until something happens: live view, event stream, wait.

They receive pushes, and the library reconnects if the connection is lost.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from punchlist.calls.call import ClientCalls
from punchlist.calls.cursor import BoardStart, BoardView, Cursor, TaskList, Until
from punchlist.errors import TimedOut
from punchlist_apps.cli.calling.context import Context, parse_task_ids
from punchlist_apps.cli.calling.events import stream_events
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED, TIME_UP
from punchlist_apps.cli.printing.failure import show_error
from punchlist_apps.cli.printing.incoming import handle_input
from punchlist_apps.cli.printing.screen import Screen
from punchlist_apps.common.terminal.argument_types import parse_duration, parse_positive
from punchlist_apps.common.terminal.render import FINISHED, format_header, format_list, format_shared_note, format_task
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.ui.parts import DrawContext, Part, build_board_items, draw_card, fit_parts
from punchlist_schemas.repository import short_name
from punchlist_schemas.results import BoardPush
from punchlist_schemas.things import Conversation, Task, is_heading

if TYPE_CHECKING:
    from punchlist.clients.sync import Watch

T = TypeVar("T")
_PAGE = 500
_NAMES = 36
_UNBOUNDED = 200
"""Width of the overview if the output has no width of its own, in columns."""

COMMANDS = {
    "watch": Usage(
        (
            flag("--all-conversations", text="show all lists"),
            value(
                "--inline",
                text="copy standard input to the output, with N lines of the list below it",
                metavar="N",
                type=parse_positive,
            ),
        ),
        ("punch watch", "punch watch -c website | jq .event.type", "make 2>&1 | punch watch --inline 6"),
    ),
    "wait": Usage(
        (
            Argument(("tasks",), "the tasks to wait for (default: all)", {"metavar": "ID", "nargs": "*"}),
            flag("--any-change", text="wait for the next change of any kind"),
            value("--timeout", text="give up after this time, such as 90s or 10m", metavar="TIME", type=parse_duration),
        ),
        ("punch wait 3 && make deploy", "punch wait --timeout 10m"),
    ),
}


def run_watch(context: Context) -> int:
    """On a terminal, redraw one list or all lists. In a pipe or with --json, print each event as a line of JSON."""
    args = context.args
    if args.json or not context.style.terminal:
        for event in stream_events(context, everywhere=args.all_conversations):
            context.print_json(event)
        return 0
    context.style.now = 0
    if args.all_conversations:
        overview = Overview(context)
        follow = context.client.follow(Cursor(None, BoardView()))
        return _show_live(context, follow, overview.apply, overview.format_lines)
    latest: TaskList | None = None

    def apply(tasks: TaskList) -> None:
        nonlocal latest
        latest = tasks
        if tasks.damaged is not None:
            context.note_truncation(tasks.damaged.seq, tasks.damaged.reason)

    lists = context.client.conversation(context.existing_conversation).watch(view="list")
    return _show_live(context, lists, apply, lambda height: _format_list(context, latest, height))


def _show_live(
    context: Context, watch: "Watch[T]", apply: Callable[[T], None], format_lines: Callable[[int | None], list[str]]
) -> int:
    with watch:
        if not context.style.moves:
            for item in watch:
                apply(item)
                context.print_lines([*format_lines(None), ""])
            return 0
        max_lines = context.args.inline
        context.style.spin()
        screen = Screen(context.style, format_lines, max_lines)
        with screen, handle_input(screen, watch.close, above=max_lines is not None):
            for item in watch:
                apply(item)
                screen.draw()
    return 0


def run_wait(context: Context) -> int:
    args = context.args
    targets = parse_task_ids(args.tasks)
    conversation = context.client.conversation(context.existing_conversation)
    # Reject unknown tasks, because a task that isn't in the list would count as finished.
    for task in targets or ():
        conversation.get(task)
    until, missing = _build_condition(targets, args.any_change)
    timeout_s = None if args.timeout is None else args.timeout / 1000
    started = time.monotonic()
    try:
        tasks = conversation.wait(until, timeout_s=timeout_s)
    except TimedOut:
        if timeout_s is None or time.monotonic() - started < timeout_s:
            raise  # the daemon did not respond
        show_error("timed_out", f"{missing} within {timeout_s:g} s", "see the list: punch list")
        return TIME_UP
    if not args.any_change and is_stuck(tasks) and (targets is None or _find_unfinished(tasks, targets)):
        causes = [f"#{task.id}, which failed" for task in tasks if task.status == "failed"]
        causes += [f"#{task.id}, which was rejected" for task in tasks if _is_rejected_heading(task)]
        message = f"{missing}: the remaining tasks wait for {' and '.join(causes)}"
        show_error("stuck", message, "see why a task waits: punch why ID")
        return REFUSED
    value = {"version": tasks.version, "seq": tasks.seq, "counts": tasks.counts}
    code = context.answer(value, [])
    failed = [task for task in tasks if targets and task.id in targets and task.status == "failed"]
    for task in failed:
        show_error("task_failed", f"#{task.id} {task.title} failed", task.fail_reason)
    return REFUSED if failed else code


def _build_condition(targets: list[str] | None, any_change: bool) -> tuple[Until, str]:
    """Return the condition to wait for, and the message to print if it isn't met."""
    if any_change:
        return "change", "nothing changed"
    if targets is None:
        return lambda tasks: not tasks.remaining or is_stuck(tasks), "not all tasks were finished"
    names = ", ".join(f"#{task}" for task in targets)
    missing = f"{names} {'was not' if len(targets) == 1 else 'were not all'} finished"
    return lambda tasks: not _find_unfinished(tasks, targets) or is_stuck(tasks), missing


def is_stuck(tasks: TaskList) -> bool:
    """Return whether all remaining tasks wait for failed tasks or rejected headings."""
    counts = tasks.counts
    startable = counts.in_progress + counts.paused + counts.ready
    if not tasks.remaining or startable or any(task.not_before for task in tasks):
        return False
    return bool(counts.failed) or any(map(_is_rejected_heading, tasks))


def _is_rejected_heading(task: Task) -> bool:
    return task.status == "pending" and task.fail_reason != "" and is_heading(task.metadata)


def _find_unfinished(tasks: TaskList, targets: list[str]) -> list[str]:
    return [task.id for task in tasks if task.id in targets and task.status not in FINISHED]


def _format_list(context: Context, latest: TaskList | None, height: int | None = None) -> list[str]:
    """Format the list. If the list exceeds the height, put tasks in progress first, so that they stay visible."""
    if latest is None:
        return []
    counts: dict[str, int] = msgspec.to_builtins(latest.counts)
    tasks: list[dict[str, Any]] = msgspec.to_builtins(list(latest))
    note = format_shared_note(msgspec.to_builtins(latest.shared))
    if latest.damaged is not None:
        note = "damaged: not the whole list"
    if height is not None and not tasks and not note:
        return [] if context.args.inline else [format_header(context.name, counts, context.style, "no tasks")]
    lines = format_list(context.name, tasks, counts, context.style, note=note, folded=True)
    if height is None or len(lines) <= height:
        return lines
    running = [task for task in tasks if task["status"] == "in_progress"]
    others = [task for task in tasks if task["status"] != "in_progress"]
    first = [line for task in running for line in format_task(task, context.style)]
    rest = format_list(context.name, others, counts, context.style, folded=True) if others else lines[:1]
    return [lines[0], *first, *rest[1:]]


class Overview:
    """All lists, with one line for each. Lists that need attention come first.

    Args:
        context: Fetches the lists.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._cards: dict[str, Conversation] = {}

    def apply(self, push: BoardPush | BoardStart) -> None:
        if isinstance(push, BoardStart):
            self._cards = {}
            cursor: str | None = None
            while True:
                page = self._context.client.run(ClientCalls().conversations(limit=_PAGE, cursor=cursor))
                self._cards |= {card.conversation: card for card in page.conversations}
                cursor = page.next_cursor
                if not cursor:
                    return
        card = push.card
        if push.gone:
            self._cards.pop(card.conversation, None)
        elif (current := self._cards.get(card.conversation)) is None or current.version <= card.version:
            self._cards[card.conversation] = card

    def format_lines(self, height: int | None = None) -> list[str]:
        """Return a heading and a line for each list."""
        style = self._context.style
        width = style.width or _UNBOUNDED
        context = DrawContext(style.glyphs, 0, 0, width)
        counts = [card.counts for card in self._cards.values()]
        running = sum(count.in_progress for count in counts)
        heading: list[Part] = [
            ("title", f"{len(counts)} lists"),
            ("dim", f"  {running} in progress" if running else ""),
        ]
        rows = [heading]
        for item in build_board_items(self._cards.values()):
            card = self._cards.get(item.key)
            name = short_name(item.key, self._cards)
            name_width = min(_NAMES, width // 3)
            rows.append(draw_card(card, context, name_width, name) if card else [("dim", f" {item.text}")])
        return [_paint(fit_parts(parts, width), style) for parts in rows]


def _paint(parts: list[Part], style: Style) -> str:
    return "".join(style.paint(name, words) for name, words in parts)
