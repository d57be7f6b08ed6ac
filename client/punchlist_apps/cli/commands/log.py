"""`punch log`: print past events as lines, and follow new ones."""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from punchlist_apps.cli.calling.context import Context, parse_task_id
from punchlist_apps.cli.calling.events import read_events, stream_events
from punchlist_apps.cli.calling.names import match_names, resolve_names
from punchlist_apps.cli.parsing.arguments import Usage, flag, value
from punchlist_apps.cli.printing.failure import UnknownName
from punchlist_apps.common.terminal.argument_types import parse_past_time, parse_whole_number
from punchlist_apps.common.terminal.event_lines import EventFormatter

COMMANDS = {
    "log": Usage(
        (
            flag("-f", "--follow", text="keep printing new events"),
            value("-n", "--limit", text="show only the last N events", metavar="N", type=parse_whole_number),
            value(
                "--since",
                text="show only events since this time, such as 10m, yesterday or 2026-12-24",
                metavar="TIME",
                type=parse_past_time,
            ),
            value("--task", text="show only events of this task", metavar="ID"),
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
    """Print the events of one list or of all lists; with `--follow`, also print new ones.

    In other commands `--actor` sets the author of changes. Here it filters by actor: a name, a prefix of one, or `#3`.
    """
    args = context.args
    formatter = EventFormatter(context.style, name_conversations=args.all_conversations, versions=True)
    actors = None if args.actor is None else _resolve_actors(context)
    filter_ = _Filter(args.since or 0, actors, parse_task_id(args.task))
    last: deque[tuple[dict[str, Any], str]] = deque(maxlen=args.limit)
    position = 0
    for event in read_events(context, everywhere=args.all_conversations):
        line = formatter.format(event)
        if filter_.matches(event):
            last.append((event, line))
        position = event["seq"]
    _print(context, last)
    if filter_ != _Filter(0, None, None) and not last and args.limit != 0 and not args.follow:
        context.note("no matching events; to see all: punch log")
    if args.follow and not context.truncation:
        for event in stream_events(context, after=position, everywhere=args.all_conversations):
            line = formatter.format(event)
            if filter_.matches(event):
                _print(context, [(event, line)])
    return 0


def _resolve_actors(context: Context) -> list[str]:
    """Return the names matched by `--actor`. With `--follow`, also accept a name without events."""
    args = context.args
    try:
        if args.all_conversations:
            return match_names(args.actor, (event["actor"] for event in read_events(context, everywhere=True)))
        return resolve_names(context, args.actor)
    except UnknownName as error:
        if args.follow and not error.is_ambiguous:
            return [args.actor]
        raise


class _Filter(NamedTuple):
    since: int
    actors: list[str] | None
    task: str | None

    def matches(self, recorded: dict[str, Any]) -> bool:
        event: dict[str, Any] = recorded["event"]
        name = event["task"]["id"] if event["type"] == "TaskAdded" else event.get("task")
        by_actor = self.actors is None or recorded["actor"] in self.actors
        return recorded["at"] >= self.since and by_actor and self.task in (None, name)


def _print(context: Context, entries: Iterable[tuple[dict[str, Any], str]]) -> None:
    if context.args.json:
        for event, _ in entries:
            context.print_json(event)
    else:
        context.print_lines(line for _, line in entries)
