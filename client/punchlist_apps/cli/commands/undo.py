"""Commands that reverse changes: undo, redo, revert. History is kept: each of these commands appends new events."""

from __future__ import annotations

import os
from typing import Any

from punchlist.base.actors import THREADS, chats_about
from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import find_version
from punchlist_apps.cli.calling.names import resolve_names
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.terminal.argument_types import parse_history_point, parse_positive

_PREVIEW = flag("--preview", text="show what would change, without changing it")
_FORCE = flag("--force", text="undo as much as possible, even if newer changes depend on it")

COMMANDS = {
    "undo": Usage(
        (
            Argument(
                ("call",),
                "version of the change to undo, by any actor, as in punch log (default: your latest change)",
                {"metavar": "CALL", "nargs": "?", "type": parse_positive},
            ),
            value(
                "-n",
                "--count",
                text="undo the last N changes (default: 1); asks for confirmation on a terminal",
                metavar="N",
                type=parse_positive,
            ),
            value(
                "--of",
                text="undo changes by this actor instead of your own: a name, its beginning or #3",
                metavar="NAME",
                complete="name",
            ),
            flag("--all", text="undo all your changes or, with --of, all changes by that actor"),
            _PREVIEW,
            _FORCE,
            YES,
        ),
        (
            "punch undo",
            "punch undo 12",
            "punch undo -n 3 --preview",
            "punch undo --of claude-code --preview",
            'punch undo --of "#3"',
        ),
    ),
    "redo": Usage(
        (
            value("-n", "--count", text="redo the last N undos (default: 1)", metavar="N", type=parse_positive),
            _PREVIEW,
            _FORCE,
            YES,
        ),
        ("punch redo",),
    ),
    "revert": Usage(
        (
            value(
                "--at",
                text='return to this version or time, such as 12, "10 min ago" or yesterday',
                metavar="POINT",
                type=parse_history_point,
                required=True,
            ),
            _PREVIEW,
            YES,
        ),
        ("punch revert --at 12", 'punch revert --at "10 min ago" --preview'),
    ),
}

_TEXTS = {
    "undo": ("would undo:", "undone:", "Undo all of this?", "punch redo"),
    "redo": ("would redo:", "redone:", "Redo all of this?", "punch undo"),
    "revert": ("would revert:", "reverted:", "Revert all of this?", "punch undo"),
}
"""Command → heading of its preview, heading of its result, confirmation question, and the command that reverses it."""


def run_undo(context: Context) -> int:
    args = context.args
    if args.call is not None and (args.count is not None or args.of or args.all):
        raise UsageError("CALL can't be combined with -n, --of or --all; leave them out")
    if args.call is not None:
        return _undo(context, "undo", {"call": args.call}, confirm=False)
    count = None if args.all else args.count or 1
    of, *also = resolve_names(context, args.of) if args.of else (context.actor, *_find_own_chats(context))
    selection = {"of": of, "count": count, "also": also[:THREADS] or None}
    return _undo(context, "undo", selection, confirm=count != 1)


def run_redo(context: Context) -> int:
    count = context.args.count or 1
    selection = {"of": context.actor, "redo": True, "count": count, "also": _find_own_chats(context) or None}
    return _undo(context, "redo", selection, confirm=count > 1)


def run_revert(context: Context) -> int:
    return _undo(context, "revert", {"to_version": find_version(context, context.args.at)}, confirm=True)


def _find_own_chats(context: Context) -> list[str]:
    """Return the chat actors whose changes to this list count as the user's own."""
    # Chats act for the user at the terminal, not for an explicitly named actor.
    if getattr(context.args, "of", None) or context.args.actor or os.environ.get("PUNCHLIST_ACTOR"):
        return []
    page = context.call("conversation.list", kind="chat", limit=THREADS)["conversations"]
    return chats_about(context.conversation, page)


def _undo(context: Context, command: str, selection: dict[str, Any], *, confirm: bool) -> int:
    args = context.args
    preview_heading, heading, question, reverse = _TEXTS[command]
    # With `whole`, the daemon rejects an undo that it could only carry out in part.
    params = selection | {"whole": not getattr(args, "force", False), "claims": True}
    if confirm and not args.preview and not args.yes and context.style.terminal:
        preview = context.change("list.undo", preview=True, **params)["undone"]
        context.print_lines(_format_undone(preview, preview_heading, command))
        if preview and not context.confirm(question):
            context.note("nothing was changed")
            return REFUSED
    result = context.change("list.undo", preview=args.preview or None, **params)
    lines = _format_undone(result["undone"], preview_heading if args.preview else heading, command)
    if not result["undone"] and "of" in selection:
        name = getattr(args, "of", None) or selection["of"]
        lines.append(
            f"  {safe(name)} has nothing left to {command}; punch log lists all changes, "
            "and punch undo CALL undoes any of them"
        )
    elif result["undone"] and not args.preview:
        lines.append(context.style.paint("dim", f"  to reverse this: {reverse}"))
    return context.answer(result | {"preview": True} if args.preview else result, lines)


def _format_undone(undone: list[str], heading: str, command: str) -> list[str]:
    return [heading, *(f"  {safe(line)}" for line in undone)] if undone else [f"nothing to {command}"]
