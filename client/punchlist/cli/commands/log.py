"""`punch log`: what happened, as lines, and what happens next."""

from collections import deque
from collections.abc import Iterable
from typing import Any

from punchlist.cli.argument_types import whole
from punchlist.cli.arguments import Usage, flag, value
from punchlist.cli.context import Context
from punchlist.cli.event_lines import EventFormatter
from punchlist.cli.events import events, stream

COMMANDS = {
    "log": Usage(
        (
            flag("-f", "--follow", text="keep printing new events"),
            value("-n", "--limit", text="only the last N events", metavar="N", type=whole),
            flag("--all-conversations", text="of all lists"),
        ),
        ("punch log -n 20", "punch log --follow --all-conversations"),
    ),
}


def run_log(context: Context) -> int:
    """Print the events of a conversation (or of all), and with `--follow` those to come."""
    args = context.args
    story = EventFormatter(context.style, name_conversations=args.all_conversations)
    last: deque[tuple[dict[str, Any], str]] = deque(maxlen=args.limit)
    position = 0
    for event in events(context, everywhere=args.all_conversations):
        last.append((event, story.line(event)))
        position = event["seq"]
    _print(context, last)
    if args.follow and not context.cut:
        for event in stream(context, after=position, everywhere=args.all_conversations):
            _print(context, [(event, story.line(event))])
    return 0


def _print(context: Context, entries: Iterable[tuple[dict[str, Any], str]]) -> None:
    if context.args.json:
        for event, _ in entries:
            context.json(event)
    else:
        context.lines(line for _, line in entries)
