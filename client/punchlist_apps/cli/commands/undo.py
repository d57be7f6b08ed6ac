"""What happened is taken back by new events: undo, redo, revert."""

from __future__ import annotations

import os
from typing import Any

from punchlist.base.actors import THREADS, chats_about
from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import version_at
from punchlist_apps.cli.calling.names import resolve
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage, flag, value
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.terminal.argument_types import parse_history_point, parse_positive

_PREVIEW = flag("--preview", text="show what would happen, and change nothing")
_FORCE = flag("--force", text="undo what still can be undone, even if newer calls depend on it")

COMMANDS = {
    "undo": Usage(
        (
            Argument(
                ("call",),
                "this call, whoever's: a version that it made, as the log shows it (default: your newest call, here or "
                "in a chat)",
                {"metavar": "CALL", "nargs": "?", "type": parse_positive},
            ),
            value(
                "-n",
                "--count",
                text="undo the last N calls (default: 1); asks first on a terminal",
                metavar="N",
                type=parse_positive,
            ),
            value(
                "--of",
                text="undo this actor's calls instead of your own: a name, its beginning or #3",
                metavar="NAME",
                complete="name",
            ),
            flag("--all", text="undo all your calls or, with --of, all of that actor"),
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
                text='a version or a time, such as 12, "10 min ago" or yesterday',
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

_WORDS = {
    "undo": ("once undone:", "undone:", "Undo all of this?", "punch redo"),
    "redo": ("once redone:", "redone:", "Redo all of this?", "punch undo"),
    "revert": ("once reverted:", "reverted:", "Revert all of this?", "punch undo"),
}
"""Command → what stands above what it would do and what it did, its question, and what reverses it."""


def run_undo(context: Context) -> int:
    args = context.args
    if args.call is not None and (args.count is not None or args.of or args.all):
        raise UsageError("a call by its version goes without -n, --of and --all")
    if args.call is not None:
        return _take_back(context, {"call": args.call}, "undo", asks=False)
    count = None if args.all else args.count or 1
    of, *also = resolve(context, args.of) if args.of else (context.actor, *_chats(context))
    how = {"of": of, "count": count, "also": also[:THREADS] or None}
    return _take_back(context, how, "undo", asks=count != 1)


def run_redo(context: Context) -> int:
    count = context.args.count or 1
    how = {"of": context.actor, "redo": True, "count": count, "also": _chats(context) or None}
    return _take_back(context, how, "redo", asks=count > 1)


def run_revert(context: Context) -> int:
    return _take_back(context, {"to_version": version_at(context, context.args.at)}, "revert", asks=True)


def _chats(context: Context) -> list[str]:
    """The actors of the chats about the list, whose calls are the person's; not for whoever goes by another name."""
    if getattr(context.args, "of", None) or context.args.actor or os.environ.get("PUNCHLIST_ACTOR"):
        return []
    page = context.call("conversation.list", kind="chat", limit=THREADS)["conversations"]
    return chats_about(context.conversation, page)


def _take_back(context: Context, how: dict[str, Any], command: str, *, asks: bool) -> int:
    """Do it, or show it; on a terminal only after a question where it is more than one call."""
    args = context.args
    would_head, done_head, question, back = _WORDS[command]
    how |= {"whole": not getattr(args, "force", False), "claims": True}
    if asks and not args.preview and not args.yes and context.style.terminal:
        would = context.change("list.undo", preview=True, **how)["undone"]
        context.lines(_lines(would, would_head, command))
        if would and not context.confirmed(question):
            context.note("nothing was changed")
            return REFUSED
    result = context.change("list.undo", preview=args.preview or None, **how)
    lines = _lines(result["undone"], would_head if args.preview else done_head, command)
    if not result["undone"] and "of" in how:
        name = getattr(args, "of", None) or how["of"]
        lines.append(
            f"  {safe(name)} has no call left to {command}; punch log shows the calls of others, "
            "and punch undo CALL undoes one"
        )
    elif result["undone"] and not args.preview:
        lines.append(context.style.paint("dim", f"  to reverse this: {back}"))
    return context.answer(result | {"preview": True} if args.preview else result, lines)


def _lines(undone: list[str], head: str, command: str) -> list[str]:
    return [head, *(f"  {safe(line)}" for line in undone)] if undone else [f"nothing to {command}"]
