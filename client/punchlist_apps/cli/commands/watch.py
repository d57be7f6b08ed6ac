"""Commands that go on: the live view, the stream of events, waiting. All by push; restarts are the library's matter."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from punchlist.calls.call import ClientCalls
from punchlist.calls.cursor import BoardStart, BoardView, Cursor, TaskList, Until
from punchlist.errors import TimedOut
from punchlist_apps.cli.calling.context import Context, ids
from punchlist_apps.cli.calling.events import stream
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED, TIME_UP
from punchlist_apps.cli.printing.failure import show_error
from punchlist_apps.cli.printing.incoming import incoming
from punchlist_apps.cli.printing.screen import Screen
from punchlist_apps.common.terminal.argument_types import parse_duration, parse_positive
from punchlist_apps.common.terminal.render import FINISHED, format_header, format_list, format_shared_note, format_task
from punchlist_apps.common.terminal.style import Style
from punchlist_apps.ui.parts import DrawContext, Part, board_items, card_parts, fitted
from punchlist_schemas.repository import short_name
from punchlist_schemas.results import BoardPush
from punchlist_schemas.things import Conversation, Task, is_heading

if TYPE_CHECKING:
    from punchlist.clients.sync import Watch

T = TypeVar("T")
_PAGE = 500
_NAMES = 36
_UNBOUNDED = 200
"""Columns for all lists where nothing limits them."""

COMMANDS = {
    "watch": Usage(
        (
            flag("--all-conversations", text="show all lists"),
            value(
                "--inline",
                text="copy standard input to the output, and show N lines of the list below it",
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
            value(
                "--timeout",
                text="stop waiting after this time, such as 90s or 10m",
                metavar="TIME",
                type=parse_duration,
            ),
        ),
        ("punch wait 3 && make deploy", "punch wait --timeout 10m"),
    ),
}


def run_watch(context: Context) -> int:
    """Redraw the list, or all lists, on a terminal; in a pipe (or with --json) print each event as a line of JSON."""
    args = context.args
    if args.json or not context.style.terminal:
        for event in stream(context, everywhere=args.all_conversations):
            context.json(event)
        return 0
    context.style.now = 0
    if args.all_conversations:
        overview = Overview(context)
        return _live(context, context.client.follow(Cursor(None, BoardView())), overview.take, overview.lines)
    newest: list[TaskList] = []

    def take(tasks: TaskList) -> None:
        newest[:] = [tasks]
        _note_cut(context, tasks)

    lists = context.client.conversation(context.known).watch(view="list")
    return _live(context, lists, take, lambda room: _lines(context, newest, room))


def _live(
    context: Context, watch: "Watch[T]", take: Callable[[T], None], lines: Callable[[int | None], list[str]]
) -> int:
    with watch:
        if not context.style.moves:
            for item in watch:
                take(item)
                context.lines([*lines(None), ""])
            return 0
        most = context.args.inline
        context.style.spin()
        screen = Screen(context.style, lines, most)
        with screen, incoming(screen, watch.close, above=most is not None):
            for item in watch:
                take(item)
                screen.draw()
    return 0


def run_wait(context: Context) -> int:
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
        show_error("timed_out", f"{missing} within {timeout_s:g} s", "punch list shows how it stands")
        return TIME_UP
    if not args.any_change and is_stuck(tasks) and (wanted is None or _unfinished(tasks, wanted)):
        failed = [f"#{task.id}, which failed" for task in tasks if task.status == "failed"]
        failed += [f"#{task.id}, which was rejected" for task in tasks if _is_rejected_heading(task)]
        cause = " and ".join(failed)
        show_error("stuck", f"{missing}, and what is left waits for {cause}", "punch why ID tells more")
        return REFUSED
    value = {"version": tasks.version, "seq": tasks.seq, "counts": tasks.counts}
    code = context.answer(value, [])
    failed = [task for task in tasks if wanted and task.id in wanted and task.status == "failed"]
    for task in failed:
        show_error("task_failed", f"#{task.id} {task.title} failed", task.fail_reason)
    return REFUSED if failed else code


def _awaited(wanted: list[str] | None, any_change: bool) -> tuple[Until, str]:
    if any_change:
        return "change", "nothing changed"
    if wanted is None:
        return lambda tasks: not tasks.remaining or is_stuck(tasks), "not all tasks were finished"
    names = ", ".join(f"#{task}" for task in wanted)
    missing = f"{names} {'was not' if len(wanted) == 1 else 'were not all'} finished"
    return lambda tasks: not _unfinished(tasks, wanted) or is_stuck(tasks), missing


def is_stuck(tasks: TaskList) -> bool:
    """Return whether the list is stuck: all that is left waits for failed tasks or rejected headings."""
    counts = tasks.counts
    moves = counts.in_progress + counts.paused + counts.ready
    if not tasks.remaining or moves or any(task.not_before for task in tasks):
        return False
    return bool(counts.failed) or any(map(_is_rejected_heading, tasks))


def _is_rejected_heading(task: Task) -> bool:
    return task.status == "pending" and task.fail_reason != "" and is_heading(task.metadata)


def _unfinished(tasks: TaskList, wanted: list[str]) -> list[str]:
    return [task.id for task in tasks if task.id in wanted and task.status not in FINISHED]


def _lines(context: Context, newest: list[TaskList], room: int | None = None) -> list[str]:
    """The newest list. Where it is longer than there is room for, what is in progress comes first, to stay in view."""
    if not newest:
        return []
    counts: dict[str, int] = msgspec.to_builtins(newest[0].counts)
    tasks: list[dict[str, Any]] = msgspec.to_builtins(list(newest[0]))
    note = format_shared_note(msgspec.to_builtins(newest[0].shared))
    if newest[0].damaged is not None:
        note = "damaged: not the whole list"
    if room is not None and not tasks and not note:
        return [] if context.args.inline else [format_header(context.name, counts, context.style, "no tasks")]
    lines = format_list(context.name, tasks, counts, context.style, note=note, folded=True)
    if room is None or len(lines) <= room:
        return lines
    running = [task for task in tasks if task["status"] == "in_progress"]
    others = [task for task in tasks if task["status"] != "in_progress"]
    first = [line for task in running for line in format_task(task, context.style)]
    rest = format_list(context.name, others, counts, context.style, folded=True) if others else lines[:1]
    return [lines[0], *first, *rest[1:]]


def _note_cut(context: Context, tasks: TaskList) -> None:
    if tasks.damaged is not None:
        context.note_cut(tasks.damaged.seq, tasks.damaged.reason)


class Overview:
    """All lists, a line each: those that need somebody first.

    Args:
        context: Asks for those that there are.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._cards: dict[str, Conversation] = {}

    def take(self, push: BoardPush | BoardStart) -> None:
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
        elif (known := self._cards.get(card.conversation)) is None or known.version <= card.version:
            self._cards[card.conversation] = card

    def lines(self, room: int | None = None) -> list[str]:
        """The board as lines; where it is longer than there is room for, without the lists where nothing is to do."""
        style = self._context.style
        width = style.width or _UNBOUNDED
        context = DrawContext(style.glyphs, 0, 0, width)
        counts = [card.counts for card in self._cards.values()]
        running = sum(one.in_progress for one in counts)
        head: list[Part] = [("title", f"{len(counts)} lists"), ("dim", f"  {running} in progress" if running else "")]
        rows = [head]
        for item in board_items(self._cards.values()):
            card = self._cards.get(item.key)
            called = short_name(item.key, self._cards)
            names = min(_NAMES, width // 3)
            rows.append(card_parts(card, context, names, called) if card else [("dim", f" {item.text}")])
        return [_painted(fitted(parts, width), style) for parts in rows]


def _painted(parts: list[Part], style: Style) -> str:
    return "".join(style.paint(name, words) for name, words in parts)
