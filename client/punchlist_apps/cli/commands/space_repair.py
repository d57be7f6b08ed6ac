"""`punch space repair`: remove posts that no machine can apply from a space."""

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
                text="also remove posts from this position on that another machine may have applied",
                metavar="POSITION",
                dest="start",
                type=parse_positive,
            ),
            YES,
        ),
        ("punch space repair team release-1.0", "punch space repair team release-1.0 --yes"),
    ),
}

_MAX_POSTS = 20
"""Maximum number of posts to print."""


def run_repair(context: Context) -> int:
    """Show the posts of a list that no machine can apply; remove them from the space after confirmation."""
    args = context.args
    place = {"space": args.name, "conversation": args.list}
    result = context.call("space.repair", **place)
    selected = _select_posts(result, args.start)
    if not selected:
        return context.answer(result, _format_posts(result, removed=0))
    if not args.yes:
        context.answer(result, _format_posts(result, removed=0))
        if not context.can_ask:
            raise UsageError(
                f"repair permanently removes {len(selected)} of these posts from {safe(args.name)};"
                " to confirm, add --yes"
            )
        if not context.confirm(f"Permanently remove {len(selected)} of these posts from {safe(args.name)}?"):
            context.note("nothing was changed")
            return REFUSED
    removed = 0
    while selected:
        result = context.call("space.repair", **place, remove=selected)
        removed += result.get("removed", 0)
        selected = _select_posts(result, args.start) if result.get("removed") else []
    return context.answer({**result, "removed": removed}, _format_posts(result, removed))


def _select_posts(result: dict[str, Any], start: int | None) -> list[str]:
    """Return the ids of posts that no machine has applied, and of all listed posts at or after position `start`."""
    posts = result.get("posts", ())
    return [post["id"] for post in posts if post["certain"] or (start is not None and post["position"] >= start)]


def _format_posts(result: dict[str, Any], removed: int) -> Iterator[str]:
    name, space = safe(result["conversation"]), safe(result["space"])
    posts = result.get("posts", ())
    if removed:
        yield f"removed {removed} of the posts of {name} from {space}: machines resume the list within seconds"
    elif not posts:
        yield f"every post of {name} in {space} can be applied; if the space lost changes: punch share {name} --repair"
    for post in posts[:_MAX_POSTS]:
        stored = f" (stored {format_time(post['at'])})" if post.get("at") else ""
        yield f"  {safe(post['why'])}{stored}"
        if not post["certain"]:
            yield (
                "    another machine may have applied it: update punchlist here, or restore the missing earlier changes"
                f" (punch share {name} --repair on a machine that has them);"
                f" to remove it anyway: punch space repair {space} {name} --from {post['position']}"
            )
    if (more := len(posts[_MAX_POSTS:]) + result.get("more", 0)) > 0:
        yield f"  and {more} more"
