"""`punch space repair`: removes posts that no machine can follow from a space."""

from collections.abc import Iterator
from typing import Any

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.terminal.argument_types import parse_positive
from punchlist_apps.common.terminal.render import format_time

COMMANDS = {
    "repair": Usage(
        (
            Argument(("name",), "the space", {"metavar": "SPACE"}),
            Argument(("list",), "the list, by its name in the space", {"metavar": "LIST"}, "list"),
            value(
                "--from",
                text="also remove posts from this position on that another machine may have followed",
                metavar="POSITION",
                dest="start",
                type=parse_positive,
            ),
            YES,
        ),
        ("punch space repair team release-1.0", "punch space repair team release-1.0 --yes"),
    ),
}

_SHOWN = 20
"""Posts that a repair prints."""


def run_repair(context: Context) -> int:
    """Show the posts of a list that no machine can follow; after a yes, remove them from the space."""
    args = context.args
    place = {"space": args.name, "conversation": args.list}
    result = context.call("space.repair", **place)
    chosen = _to_remove(result, args.start)
    if not chosen:
        return context.answer(result, _bad_posts(result, removed=0))
    if not args.yes:
        context.answer(result, _bad_posts(result, removed=0))
        if not context.can_ask:
            raise UsageError(f"repair removes {len(chosen)} of these posts from {safe(args.name)} for good: add --yes")
        if not context.confirmed(f"Remove {len(chosen)} of these posts from {safe(args.name)} for good?"):
            context.note("nothing was changed")
            return REFUSED
    removed = 0
    while chosen:
        result = context.call("space.repair", **place, remove=chosen)
        removed += result.get("removed", 0)
        chosen = _to_remove(result, args.start) if result.get("removed") else []
    return context.answer({**result, "removed": removed}, _bad_posts(result, removed))


def _to_remove(result: dict[str, Any], start: int | None) -> list[str]:
    """The posts that a repair removes: those that no machine followed, and those that the person named."""
    posts = result.get("posts", ())
    return [one["id"] for one in posts if one["certain"] or (start is not None and one["position"] >= start)]


def _bad_posts(result: dict[str, Any], removed: int) -> Iterator[str]:
    name, space = safe(result["conversation"]), safe(result["space"])
    posts = result.get("posts", ())
    if removed:
        yield f"removed {removed} of the posts of {name} from {space}: machines continue with the list within seconds"
    elif not posts:
        yield f"every post of {name} in {space} can be followed; if the space lost changes: punch share {name} --repair"
    for one in posts[:_SHOWN]:
        stored = f" (stored {format_time(one['at'])})" if one.get("at") else ""
        yield f"  {safe(one['why'])}{stored}"
        if not one["certain"]:
            yield (
                "    another machine may have followed it: update punchlist here, or put back what is missing before it"
                f" (punch share {name} --repair on a machine that has it);"
                f" to remove it anyway: punch space repair {space} {name} --from {one['position']}"
            )
    if (more := len(posts[_SHOWN:]) + result.get("more", 0)) > 0:
        yield f"  and {more} more"
