"""`punch log`: what happened, as lines, and what happens next."""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from punchlist_apps.cli.calling.context import Context, one_id
from punchlist_apps.cli.calling.events import events, stream
from punchlist_apps.cli.calling.names import match, resolve
from punchlist_apps.cli.parsing.arguments import Usage, flag, value
from punchlist_apps.cli.printing.failure import UnknownName
from punchlist_apps.common.terminal.argument_types import parse_past_time, parse_whole_number
from punchlist_apps.common.terminal.event_lines import EventFormatter

COMMANDS = {
    "log": Usage(
        (
            flag("-f", "--follow", text="go on printing new events"),
            value("-n", "--limit", text="show only the last N events", metavar="N", type=parse_whole_number),
            value(
                "--since",
                text="show only what happened since this time, such as 10m, yesterday or 2026-12-24",
                metavar="TIME",
                type=parse_past_time,
            ),
            value("--task", text="show only what happened to this task", metavar="ID"),
            flag("--all-conversations", text="show the events of all lists"),
        ),
        (
            "punch log -n 20",
            "punch log --since 10m --actor claude-code",
            "punch log --task 3",
            "punch log --follow --all-conversations",
        ),
    ),
}


def run_log(context: Context) -> int:
    """Print the events of a conversation (or of all), and with `--follow` those to come.

    `--actor`, which elsewhere says who does something, keeps what this actor did: a name, its beginning or `#3`.
    """
    args = context.args
    story = EventFormatter(context.style, name_conversations=args.all_conversations, versions=True)
    actors = None if args.actor is None else _actors(context)
    wanted = _Wanted(args.since or 0, actors, one_id(args.task))
    last: deque[tuple[dict[str, Any], str]] = deque(maxlen=args.limit)
    position = 0
    for event in events(context, everywhere=args.all_conversations):
        line = story.format(event)
        if wanted.holds(event):
            last.append((event, line))
        position = event["seq"]
    _print(context, last)
    if wanted != _Wanted(0, None, None) and not last and args.limit != 0 and not args.follow:
        context.note("nothing of this kind happened in the list; punch log alone shows everything")
    if args.follow and not context.cut:
        for event in stream(context, after=position, everywhere=args.all_conversations):
            line = story.format(event)
            if wanted.holds(event):
                _print(context, [(event, line)])
    return 0


def _actors(context: Context) -> list[str]:
    """Return the names that `--actor` means; one to be followed may have done nothing yet."""
    args = context.args
    try:
        if args.all_conversations:
            return match(args.actor, (event["actor"] for event in events(context, everywhere=True)))
        return resolve(context, args.actor)
    except UnknownName as error:
        if args.follow and not error.is_ambiguous:
            return [args.actor]
        raise


class _Wanted(NamedTuple):
    """Which events are shown."""

    since: int
    actors: list[str] | None
    task: str | None

    def holds(self, recorded: dict[str, Any]) -> bool:
        event: dict[str, Any] = recorded["event"]
        name = event["task"]["id"] if event["type"] == "TaskAdded" else event.get("task")
        is_theirs = self.actors is None or recorded["actor"] in self.actors
        return recorded["at"] >= self.since and is_theirs and self.task in (None, name)


def _print(context: Context, entries: Iterable[tuple[dict[str, Any], str]]) -> None:
    if context.args.json:
        for event, _ in entries:
            context.json(event)
    else:
        context.lines(line for _, line in entries)
