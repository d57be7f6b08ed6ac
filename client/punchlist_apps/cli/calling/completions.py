"""`punch complete`: what fits at the end of a command line, for the completion scripts of shells.

A shell runs this at each TAB: if anything is wrong, it prints nothing. It never starts a daemon.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from punchlist.base.text import safe
from punchlist.connection.launch import HOOK_CHECK_AFTER_S
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.names import Ask, find_names
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.common import wire
from punchlist_apps.common.terminal.render import FINISHED
from punchlist_apps.common.terminal.style import write
from punchlist_schemas.project_file import DirectoryError

_TARGET_OPTIONS = {
    "-c": "conversation",
    "--conversation": "conversation",
    "--socket": "socket",
    "--data-dir": "data_dir",
}
_ACCEPT_FINISHED = {"show", "reopen", "rm", "edit", "move"}
"""Commands whose tasks may be finished ones: the others are offered unfinished tasks alone."""


def print_completions(words: Sequence[str]) -> int:
    """Print one `VALUE<TAB>text` a line.

    Args:
        words: `task`, `list` or `name`, and behind `--` the words of the command line so far, without the program.
    """
    kind, given = words[0] if words else "", words[2:]
    args = parse(["list"])
    for option, value in zip(given, given[1:], strict=False):
        if option in _TARGET_OPTIONS:
            setattr(args, _TARGET_OPTIONS[option], value)
    context = Context(args)
    lines_of = _COMPLETERS.get(kind)
    if lines_of is None:
        return 0

    def ask(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        return wire.call(context.target, method, params, timeout_s=HOOK_CHECK_AFTER_S)

    try:
        conversation = "" if kind == "list" else context.find_conversation()
        return write("".join(lines_of(ask, conversation, given)))
    except (DirectoryError, TimeoutError):
        return 0


def _complete_lists(ask: Ask, _conversation: str, _given: Sequence[str]) -> Iterable[str]:
    found = ask("conversation.list", {}) or {}
    names = found.get("names", {})
    for row in found.get("conversations", ()):
        name = row["conversation"]
        yield f"{safe(names.get(name, name))}\t{safe(row.get('title', ''))}\n"


def _complete_tasks(ask: Ask, conversation: str, given: Sequence[str]) -> Iterable[str]:
    for row in (ask("task.list", {"conversation": conversation}) or {}).get("tasks", ()):
        if row["status"] not in FINISHED or not _ACCEPT_FINISHED.isdisjoint(given):
            yield f"{safe(row['id'])}\t{safe(row['title'])}\n"


def _complete_names(ask: Ask, conversation: str, given: Sequence[str]) -> Iterable[str]:
    if "assign" in given:  # its last word is a name, the others are tasks
        yield from _complete_tasks(ask, conversation, given)
    for name in find_names(ask, conversation):
        yield f"{safe(name)}\t\n"


_COMPLETERS = {"task": _complete_tasks, "list": _complete_lists, "name": _complete_names}
"""Kind of completion → function that yields its lines."""
