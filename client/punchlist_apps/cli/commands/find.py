"""`punch find`: tasks by their words."""

from collections.abc import Iterable
from typing import Any

from punchlist.base.text import one_line, safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag, value
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.terminal.argument_types import parse_positive
from punchlist_apps.common.terminal.render import format_task
from punchlist_schemas.vocabulary import STATUSES

COMMANDS = {
    "find": Usage(
        (
            Argument(
                ("words",), "a word to look for; put a phrase in double quotes", {"metavar": "WORD", "nargs": "+"}
            ),
            flag("-a", "--all", text="search all lists"),
            choice(
                "-s", "--status", text="show only tasks with this status; repeatable", choices=STATUSES, action="append"
            ),
            value("-n", "--limit", text="show at most N tasks (default: 50)", metavar="N", type=parse_positive),
        ),
        ("punch find lexer", "punch find --all cert", "punch find '\"renew the\"' -s pending"),
    ),
}

_MOST = 500


def run_find(context: Context) -> int:
    args = context.args
    if not any(word.strip() for word in args.words):
        raise UsageError("name a word to look for; punch list shows all tasks")
    # A word of the shell that holds a space was quoted there: it is looked for as it stands.
    words = (f'"{word}"' if " " in word and '"' not in word else word for word in args.words)
    query = {"query": " ".join(words), "status": args.status, "limit": min(args.limit or 50, _MOST)}
    result = context.call("task.search", conversation=None if args.all else context.known, **query)
    for name in result.get("damaged", ()):
        context.note(f"punch: {name} is damaged: only what was before the damage was searched")
    return context.answer(result, _lines(context, result))


def _lines(context: Context, result: dict[str, Any]) -> Iterable[str]:
    style, hits = context.style, result["hits"]
    if not hits:
        yield (
            "nothing found"
            if context.args.all
            else "nothing found in this list; to search all lists: punch find --all WORD"
        )
        return
    named = ""
    for hit in hits:
        if context.args.all and hit["conversation"] != named:
            named = hit["conversation"]
            yield style.paint("title", safe(named))
        lines = format_task(hit["task"], style)
        yield lines[0]
        excerpt = one_line(hit.get("excerpt", ""))
        if excerpt and excerpt != hit["task"]["title"]:
            yield style.paint("dim", f"      {safe(excerpt)}")
    if (more := result["total"] - len(hits)) > 0:
        yield style.paint("dim", f"  {more} more: --limit")
