"""`punch find`: full-text search of tasks."""

from collections.abc import Iterable
from typing import Any

from punchlist.base.text import one_line, safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag, owner_option, value
from punchlist_apps.cli.parsing.saved_filters import SORTS
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.terminal.argument_types import parse_positive
from punchlist_apps.common.terminal.render import format_task
from punchlist_schemas.vocabulary import STATUSES

COMMANDS = {
    "find": Usage(
        (
            Argument(
                ("words",),
                "words to search for, or #3; put a phrase in double quotes",
                {"metavar": "WORD", "nargs": "*"},
            ),
            flag("-a", "--all", text="search all lists"),
            choice(
                "-s", "--status", text="show only tasks with this status; repeatable", choices=STATUSES, action="append"
            ),
            owner_option("show only this owner's tasks: a name, its beginning or #3 (--all: a name)"),
            flag("--ready", text="show only tasks that can be started now"),
            value("--label", text="show only tasks with this label; repeatable", metavar="LABEL", action="append"),
            choice("--sort", text="sort by this instead of the best match", choices=SORTS),
            value("-n", "--limit", text="show at most N tasks (default: 50)", metavar="N", type=parse_positive),
        ),
        (
            "punch find lexer",
            "punch find --all cert",
            "punch find '\"renew the\"' -s pending",
            "punch find --all -s failed --sort updated",
        ),
    ),
}

_MAX_HITS = 500


def run_find(context: Context) -> int:
    args = context.args
    filters = {"status": args.status, "owner": args.owner, "label": args.label, "ready": args.ready or None}
    if not (any(word.strip() for word in args.words) or any(filters.values())):
        raise UsageError("no word given, and no filter; to see all tasks: punch list")
    if args.owner is not None and not args.all:
        from punchlist_apps.cli.calling.names import resolve_names

        filters["owner"] = resolve_names(context, args.owner)
    # The shell removes quotes, so an argument that contains a space was quoted. It is searched for as a phrase.
    words = (f'"{word}"' if " " in word and '"' not in word else word for word in args.words)
    query = {"query": " ".join(words), "sort": args.sort, "limit": min(args.limit or 50, _MAX_HITS), **filters}
    result = context.call("task.search", conversation=None if args.all else context.existing_conversation, **query)
    for name in result.get("damaged", ()):
        context.note(f"punch: {name} is damaged; only tasks from before the damage were searched")
    return context.answer(result, _format_hits(context, result))


def _format_hits(context: Context, result: dict[str, Any]) -> Iterable[str]:
    style, hits = context.style, result["hits"]
    if not hits:
        yield (
            "nothing found"
            if context.args.all
            else "nothing found in this list; to search all lists: punch find --all WORD"
        )
        return
    heading = ""
    for hit in hits:
        if context.args.all and hit["conversation"] != heading:
            heading = hit["conversation"]
            yield style.paint("title", safe(heading))
        yield format_task(hit["task"], style)[0]
        excerpt = one_line(hit.get("excerpt", ""))
        if excerpt and excerpt != hit["task"]["title"]:
            yield style.paint("dim", f"      {safe(excerpt)}")
    if (more := result["total"] - len(hits)) > 0:
        yield style.paint("dim", f"  {more} more: --limit")
